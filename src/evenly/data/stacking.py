"""Pictures stacked in pairs, the upper one easy and the lower one hard: by class, independently, or as planted.

Shapes: N examples; images are N×C×H×W.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenly.data.held_out import held_out_mask, where
from evenly.data.labelled import Labelled
from evenly.data.planted import CONTRADICTS, LACKS, RELATIONS, Shares, add_groups, other_class
from evenly.data.splits import Splits


def stack(easy: Labelled, hard: Labelled, *, balanced: bool, rng: torch.Generator) -> Labelled:
    """Each hard image once, under an easy image of the same class, or of each class equally often if `balanced`.

    Easy images are drawn without replacement and begin again when they are used up. The label is the class of the
    hard image, and with it, unless balanced, that of the easy one.

    >>> images = Labelled(torch.zeros(4, 1, 2, 2), torch.tensor([0, 0, 1, 1]), ("a", "b"))
    >>> both = stack(images, images, balanced=True, rng=torch.Generator().manual_seed(0))
    >>> both.shape, sorted(zip(both.attributes["easy"].tolist(), both.attributes["hard"].tolist()))
    ((1, 4, 2), [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    order_N = torch.randperm(len(hard), generator=rng)
    hard_class_N = hard.labels[order_N]
    easy_class_N = _every_combination(hard_class_N, easy.num_classes) if balanced else hard_class_N
    partner_N = torch.empty_like(order_N)
    for label in range(easy.num_classes):
        wanted = where(easy_class_N == label)
        members = where(easy.labels == label)
        rounds = [torch.randperm(len(members), generator=rng) for _ in range(-(-len(wanted) // len(members)))]
        partner_N[wanted] = members[torch.cat(rounds)[: len(wanted)]] if len(wanted) else wanted
    return Labelled(
        torch.cat([easy.gather(partner_N), hard.gather(order_N)], dim=2),
        hard_class_N,
        tuple(f"{upper} on {lower}" for upper, lower in zip(easy.classes, hard.classes, strict=True)),
        attributes={
            "easy": easy_class_N,
            "hard": hard_class_N,
            "group": easy_class_N * hard.num_classes + hard_class_N,
        },
        values={
            "easy": easy.classes,
            "hard": hard.classes,
            "group": tuple(f"{upper} on {lower}" for upper in easy.classes for lower in hard.classes),
        },
    )


@dataclass(frozen=True)
class Pools:
    """The easy and the hard pictures of training, held-out and test splits, from which dominoes are made."""

    name: str
    easy: dict[str, Labelled]
    hard: dict[str, Labelled]

    @classmethod
    def of(cls, name: str, *, easy: Splits, hard: Splits, held_out_share: float) -> "Pools":
        """A fixed share of the training pictures held out, and the rest as published."""

        def split_pool(splits: Splits, kind: str) -> dict[str, Labelled]:
            mask = held_out_mask(splits.train.labels, share=held_out_share, key=f"{name} {kind}")
            parts = {"train": splits.train.subset(where(~mask)), "validation": splits.train.subset(where(mask))}
            return {**parts, "test": splits["test"]}

        return cls(name, split_pool(easy, "easy"), split_pool(hard, "hard"))

    def stack(self, rng: torch.Generator) -> Splits:
        """Each hard picture under an easy one of its class, and once more, held out, under one of any class."""

        def pair(pool: str, *, balanced: bool) -> Labelled:
            return stack(self.easy[pool], self.hard[pool], balanced=balanced, rng=rng)

        together = {split: pair(split, balanced=False) for split in ("train", "validation", "test")}
        return Splits(
            self.name,
            {**together, "probe": pair("validation", balanced=True), "balanced": pair("test", balanced=True)},
        )

    def plant(self, made: Splits, shares: Shares, u: Mapping[str, Tensor], *, rng: torch.Generator) -> Splits:
        """The same dominoes with some easy pictures missing or of another class; `u` has a number per example."""
        parts = {}
        for split in ("train", "validation", "test"):
            relation_N = shares.relations(u[split])
            parts[split] = _relate(made[split], self.easy[split], relation_N, rng=rng)
        for split in ("probe", "balanced"):
            present_N = torch.ones(len(made[split]), dtype=torch.bool)
            parts[split] = add_groups(blank_easy(made[split], present_N), self.easy["test"].classes)
        num = len(made["test"])
        thrice = made["test"].subset(torch.arange(num).repeat(len(RELATIONS)))
        every_N = torch.arange(len(RELATIONS)).repeat_interleave(num)
        groups = _relate(replace(thrice, index=torch.arange(len(thrice))), self.easy["test"], every_N, rng=rng)
        parts["train"] = shares.finish(parts["train"], rng=rng)
        return Splits(self.name, {**parts, "groups": groups})


def blank_easy(part: Labelled, present_N: Tensor) -> Labelled:
    """The upper picture of each example kept where `present_N` says so and blanked elsewhere."""
    inputs = part.gather(range(len(part)))
    inputs[~present_N, :, : inputs.shape[2] // 2] = 0
    return replace(
        part,
        inputs=inputs,
        attributes={**part.attributes, "easy_present": present_N.long()},
        values={**part.values, "easy_present": ("absent", "present")},
    )


def _relate(part: Labelled, easy: Labelled, relation_N: Tensor, *, rng: torch.Generator) -> Labelled:
    """The dominoes with their upper pictures as `relation_N` says: as they are, of another class, or blank."""
    u_N2 = torch.rand(len(part), 2, generator=rng)
    easy_class_N = torch.where(
        relation_N == CONTRADICTS, other_class(part.labels, easy.num_classes, u_N2[:, 0]), part.attributes["easy"]
    )
    inputs = part.gather(range(len(part)))
    half = inputs.shape[2] // 2
    for label in range(easy.num_classes):
        lying = where((relation_N == CONTRADICTS) & (easy_class_N == label))
        members = where(easy.labels == label)
        inputs[lying, :, :half] = easy.gather(members[(u_N2[lying, 1] * len(members)).long()])
    changed = replace(part, inputs=inputs, attributes={**part.attributes, "easy": easy_class_N})
    return add_groups(blank_easy(changed, relation_N != LACKS), easy.classes)


def _every_combination(hard_class_N: Tensor, num_classes: int) -> Tensor:
    """An easy class for every example: within each hard class, each easy class equally often (± 1)."""
    easy_class_N = torch.empty_like(hard_class_N)
    for label in sorted(set(hard_class_N.tolist())):
        members = where(hard_class_N == label)
        # The starting class rotates with the label, so that the remainders do not all fall on one easy class.
        easy_class_N[members] = (torch.arange(len(members)) + label) % num_classes
    return easy_class_N
