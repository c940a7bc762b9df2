"""Two images stacked, an easy one on a hard one: perfectly correlated in training, independent where we probe.

Shah et al. (2020) and Springer et al. (2024), appendix B. K classes; images are N×C×H×W.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

from evenly.data.digits import digits
from evenly.data.formats.cifar import cifar10
from evenly.data.formats.idx import fashion_mnist, mnist
from evenly.data.held_out import held_out, where
from evenly.data.labelled import Labelled, Splits
from evenly.errors import UsageError


def cifar_mnist(*, root: Path, rng: torch.Generator) -> Splits:
    """MNIST 0/1 on CIFAR-10 airplane/automobile, 3×64×32 pixels; the digit is the easy feature.

    A tenth of the training images is held out: stacked by class as `validation`, independently as `probe`.
    """
    return _dominoes("cifar-mnist", easy=mnist(root=root), hard=cifar10(root=root), num_classes=2, rng=rng)


def fmnist_mnist(*, root: Path, rng: torch.Generator) -> Splits:
    """The first five classes of MNIST on the first five of Fashion-MNIST, 3×64×32 pixels; the digit is easy.

    A tenth of the training images is held out: stacked by class as `validation`, independently as `probe`.
    """
    return _dominoes("fmnist-mnist", easy=mnist(root=root), hard=fashion_mnist(root=root), num_classes=5, rng=rng)


def digit_dominoes(*, rng: torch.Generator, alpha: float = 0.8) -> Splits:
    """A digit 0 or 1 (easy) on a digit from 2 to 9 that is even or odd (hard), 1×16×8 pixels, no download.

    The upper digit is there with probability `alpha`, else its place is blank: such an example can be told by the
    hard feature alone, as those of `patches`. `alpha=1` is the perfect correlation of `cifar-mnist`. The attribute
    `easy_present` says which have it; `probe` and `balanced` all have it.

    >>> splits = digit_dominoes(rng=torch.Generator().manual_seed(0))
    >>> list(splits), splits.train.shape
    (['train', 'validation', 'test', 'probe', 'balanced'], (1, 16, 8))
    """
    whole = digits()

    def part(split: str, *, easy: bool) -> Labelled:
        labelled = whole[split]
        chosen = labelled.subset(where((labelled.labels < 2) == easy))
        return replace(chosen, labels=chosen.labels % 2, classes=("0", "1") if easy else ("even", "odd"))

    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha = {alpha} is the share of examples with the easy digit: give a number from 0 to 1.")
    easy, hard = (Splits(kind, {s: part(s, easy=kind == "easy") for s in whole}) for kind in ("easy", "hard"))
    made = _stacked("digit-dominoes", easy=easy, hard=hard, held_out_share=0.25, rng=rng)
    shares = {split: 1.0 if split in ("probe", "balanced") else alpha for split in made}
    return Splits(made.name, {split: _thinned(part, shares[split], rng) for split, part in made.items()})


def stacked(easy: Labelled, hard: Labelled, *, balanced: bool, rng: torch.Generator) -> Labelled:
    """Each hard image once, under an easy image of the same class, or of each class equally often if `balanced`.

    Easy images are drawn without replacement and begin again when they are used up. The label is the class of the
    hard image, and with it, unless balanced, that of the easy one.

    >>> images = Labelled(torch.zeros(4, 1, 2, 2), torch.tensor([0, 0, 1, 1]), ("a", "b"))
    >>> both = stacked(images, images, balanced=True, rng=torch.Generator().manual_seed(0))
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


def _dominoes(name: str, *, easy: Splits, hard: Splits, num_classes: int, rng: torch.Generator) -> Splits:
    """The first classes of two published data sets, each image made 3×32×32."""

    def prepared(part: Labelled) -> Labelled:
        chosen = part.subset(where(part.labels < num_classes))
        return replace(chosen, inputs=_square(chosen.gather(range(len(chosen)))), classes=part.classes[:num_classes])

    easy, hard = (Splits(name, {s: prepared(p) for s, p in splits.items()}) for splits in (easy, hard))
    return _stacked(name, easy=easy, hard=hard, held_out_share=0.1, rng=rng)


def _stacked(name: str, *, easy: Splits, hard: Splits, held_out_share: float, rng: torch.Generator) -> Splits:
    def divided(splits: Splits, kind: str) -> tuple[Labelled, Labelled]:
        mask = held_out(splits.train.labels, share=held_out_share, key=f"{name} {kind}")
        return splits.train.subset(where(~mask)), splits.train.subset(where(mask))

    easy_train, easy_held = divided(easy, "easy")
    hard_train, hard_held = divided(hard, "hard")
    return Splits(
        name,
        {
            "train": stacked(easy_train, hard_train, balanced=False, rng=rng),
            "validation": stacked(easy_held, hard_held, balanced=False, rng=rng),
            "test": stacked(easy["test"], hard["test"], balanced=False, rng=rng),
            "probe": stacked(easy_held, hard_held, balanced=True, rng=rng),
            "balanced": stacked(easy["test"], hard["test"], balanced=True, rng=rng),
        },
    )


def _every_combination(hard_class_N: Tensor, num_classes: int) -> Tensor:
    """An easy class for every example: within each hard class, each easy class equally often (± 1)."""
    easy_class_N = torch.empty_like(hard_class_N)
    for label in sorted(set(hard_class_N.tolist())):
        members = where(hard_class_N == label)
        # The starting class turns with the label, so that the remainders do not all fall on one easy class.
        easy_class_N[members] = (torch.arange(len(members)) + label) % num_classes
    return easy_class_N


def _thinned(part: Labelled, alpha: float, rng: torch.Generator) -> Labelled:
    """The upper picture of each example kept with probability `alpha` and blanked otherwise."""
    present_N = torch.rand(len(part), generator=rng) < alpha
    inputs = part.gather(range(len(part)))
    inputs[~present_N, :, : inputs.shape[2] // 2] = 0
    return replace(
        part,
        inputs=inputs,
        attributes={**part.attributes, "easy_present": present_N.long()},
        values={**part.values, "easy_present": ("absent", "present")},
    )


def _square(x_NCHW: Tensor, side: int = 32) -> Tensor:
    """Zero-padded to side × side, grey repeated to three channels."""
    rows, columns = side - x_NCHW.shape[2], side - x_NCHW.shape[3]
    padded = pad(x_NCHW, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
    return padded.expand(-1, 3, -1, -1)
