"""Training data with known truth: which examples lack the easy feature, contradict it, or are mislabelled.

Each random decision has its own numbers, drawn whatever the shares are: two data sets that differ in one share differ
only in the examples it affects, and the examples of a smaller share are among those of a larger one.

Shapes: N examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenly.data.class_balanced_rows import evenly_over
from evenly.data.labelled import Labelled
from evenly.errors import UsageError
from evenly.rng import generator

AGREES, CONTRADICTS, LACKS = range(3)
RELATIONS = ("agrees", "contradicts", "lacks")
_ROUNDING = 1e-9  # 0.9 + 0.1 may miss 1 by a bit


@dataclass(frozen=True)
class Shares:
    """What is planted: `alpha` + `conflict` ≤ 1, and the rest lacks the easy feature.

    `alpha` is the share of examples whose easy feature agrees with the label (None: all that do not conflict),
    `conflict` the share whose easy feature speaks for another class, `noise` the share of training labels that are
    wrong, `size` the number of training examples (None: all).

    >>> Shares(conflict=0.05).agreeing_share
    0.95
    >>> Shares(alpha=0.9, conflict=0.2)
    Traceback (most recent call last):
    evenly.errors.UsageError: alpha = 0.9 and conflict = 0.2: together more than 1. ... Give alpha ≤ 0.8.
    """

    alpha: float | None = None
    conflict: float = 0.0
    noise: float = 0.0
    size: int | None = None
    num_classes: int = 2
    noise_option: str = "noise"

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("conflict", self.conflict), (self.noise_option, self.noise)):
            if value is not None and (isinstance(value, bool) or not 0 <= value <= 1):
                raise UsageError(f"{name} = {value} is {_MEANING.get(name, _WRONG)}: give a number from 0 to 1.")
        if self.agreeing_share + self.conflict > 1 + _ROUNDING:
            raise UsageError(
                f"alpha = {self.alpha:g} and conflict = {self.conflict:g}: together more than 1. The easy feature of "
                "an example agrees with the label (alpha), contradicts it (conflict), or is missing (the rest). "
                f"Give alpha ≤ {round(1 - self.conflict, 6):g}."
            )
        chance = 1 - 1 / self.num_classes
        if self.noise >= chance - _ROUNDING:
            raise UsageError(
                f"{self.noise_option} = {self.noise:g}: labels of {self.num_classes} classes that are so often wrong "
                f"no longer carry information about the class. Give a share below {chance:g}."
            )
        if self.size is not None and (
            isinstance(self.size, bool) or self.size != int(self.size) or self.size < self.num_classes
        ):
            raise UsageError(
                f"size = {self.size} is the number of training examples, drawn evenly over {self.num_classes} classes: "
                f"give a whole number of {self.num_classes} or more."
            )

    @property
    def agreeing_share(self) -> float:
        """The share of examples whose easy feature agrees with the label."""
        return 1 - self.conflict if self.alpha is None else self.alpha

    @property
    def is_planted(self) -> bool:
        """Whether conflict, wrong labels or a size are set, beyond `alpha`."""
        return self.conflict > 0 or self.noise > 0 or self.size is not None

    def relations(self, u_N: Tensor) -> Tensor:
        """How the easy feature of each example relates to its label, decided by a uniform number per example.

        >>> Shares(alpha=0.5, conflict=0.2).relations(torch.tensor([0.1, 0.6, 0.9])).tolist()
        [0, 1, 2]
        """
        relation_N = (u_N >= self.agreeing_share).long()
        if 1 - self.agreeing_share - self.conflict > _ROUNDING:
            relation_N += (u_N >= self.agreeing_share + self.conflict).long()
        return relation_N

    def finish(self, train: Labelled, *, rng: torch.Generator) -> Labelled:
        """The training split: as few examples as `size` says, then wrong labels for `noise` of them.

        Exactly that share, rounded, is given another class, each of the others equally likely. The attribute
        `label_noisy` says which.
        """
        num = len(train)
        kept_N = torch.arange(num)
        order_seed = int(torch.randint(2**62, (), generator=rng))
        rank_N = torch.rand(num, generator=rng)
        wrong_N = other_class(train.labels, self.num_classes, torch.rand(num, generator=rng))
        if self.size is not None:
            if self.size > num:
                raise UsageError(
                    f"size = {self.size}: there are {num} training examples to draw from. Give {num} or less."
                )
            kept_N = evenly_over(train.labels, int(self.size), rng=torch.Generator().manual_seed(order_seed))
        noisy_N = torch.zeros(num, dtype=torch.bool)
        noisy_N[kept_N[rank_N[kept_N].argsort()[: round(self.noise * len(kept_N))]]] = True
        whole = replace(
            train,
            labels=torch.where(noisy_N, wrong_N, train.labels),
            attributes={**train.attributes, "label_noisy": noisy_N.long()},
            values={**train.values, "label_noisy": ("right", "wrong")},
        )
        return whole if self.size is None else whole.subset(kept_N)


def add_groups(part: Labelled, easy_classes: Sequence[str]) -> Labelled:
    """The examples with the attributes `easy_agrees` and `group`, computed from `easy`, `hard` and `easy_present`.

    A group is the class of the easy feature, or `nothing` where it is missing, on that of the hard one.

    >>> columns = {"easy": [0, 1, 0], "hard": [0, 0, 1], "easy_present": [1, 1, 0]}
    >>> rows = {name: torch.tensor(column) for name, column in columns.items()}
    >>> part = add_groups(Labelled(torch.zeros(3, 1), rows["hard"], ("a", "b"), rows), ("x", "y"))
    >>> part.attributes["easy_agrees"].tolist(), [part.values["group"][i] for i in part.attributes["group"]]
    ([1, 0, 0], ['x on a', 'y on a', 'nothing on b'])
    """
    easy_N, hard_N, present_N = (part.attributes[name] for name in ("easy", "hard", "easy_present"))
    lower = part.values.get("hard", part.classes)
    return replace(
        part,
        attributes={
            **part.attributes,
            "easy_agrees": ((present_N == 1) & (easy_N == hard_N)).long(),
            "group": torch.where(present_N == 1, easy_N, len(easy_classes)) * len(lower) + hard_N,
        },
        values={
            **part.values,
            "easy_agrees": ("no", "yes"),
            "group": tuple(f"{above} on {below}" for above in (*easy_classes, "nothing") for below in lower),
        },
    )


def other_class(label_N: Tensor, num_classes: int, u_N: Tensor) -> Tensor:
    """A class that is not the label, each of the others equally likely, by a uniform number per example.

    >>> other_class(torch.tensor([0, 1, 2, 2]), 3, torch.tensor([0.0, 0.9, 0.4, 0.6])).tolist()
    [1, 0, 0, 1]
    """
    return (label_N + 1 + (u_N * (num_classes - 1)).long()) % num_classes


def spawn_generator(rng: torch.Generator, name: str) -> torch.Generator:
    """A new generator that depends on the state of `rng` and does not change it.

    >>> rng = torch.Generator().manual_seed(0)
    >>> one, two = (torch.rand(1, generator=spawn_generator(rng, "planted")) for _ in range(2))
    >>> torch.equal(one, two)
    True
    """
    return generator(int(torch.randint(2**62, (), generator=rng.clone_state())), name)


_WRONG = "the share of training labels that are wrong"
_MEANING = {
    "alpha": "the share of examples whose easy feature agrees with the label",
    "conflict": "the share of examples whose easy feature contradicts the label",
}
