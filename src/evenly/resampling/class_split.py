"""One class in two parts: sizes, losses, means, and how distinct they are."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenly.resampling.kmeans import inertia_of, means_of
from evenly.resampling.silhouette import silhouette


@dataclass(frozen=True, eq=False)
class ClassSplit:
    """The easy and the hard examples of one class.

    `loss_easy` and `loss_hard` are mean losses, `mean_easy` and `mean_hard` mean outputs, all nan where a part is
    empty; `inertia` is the sum of squared distances to the means. What was never known is nan, or a mean of length 0.
    """

    label: int
    num_easy: int
    num_hard: int
    loss_easy: float
    loss_hard: float
    inertia: float
    silhouette: float
    mean_easy: Tensor
    mean_hard: Tensor

    @property
    def num(self) -> int:
        """Examples of the class."""
        return self.num_easy + self.num_hard

    @property
    def divided(self) -> bool:
        """Whether both parts have an example."""
        return self.num_easy > 0 and self.num_hard > 0

    @property
    def share(self) -> float:
        """The part of the class that is hard."""
        return self.num_hard / self.num

    def with_easy(self, loss_K: Tensor) -> "ClassSplit":
        """The same split with more examples counted as easy, which no cluster was made of; their losses are given."""
        if not len(loss_K):
            return self
        num = self.num_easy + len(loss_K)
        known = self.loss_easy * self.num_easy if self.num_easy else 0.0
        return replace(self, num_easy=num, loss_easy=(known + float(loss_K.sum())) / num)


def described(
    label: int,
    hard_K: Tensor,
    loss_K: Tensor,
    x_KD: Tensor | None = None,
    *,
    center_D: Tensor | None = None,
    sample: int = 0,
    rng: torch.Generator | None = None,
) -> ClassSplit:
    """What can be said of one class from which of its examples are hard, their losses and, if known, their outputs.

    `center_D` is what was taken off the outputs before.

    >>> split = described(7, torch.tensor([True, False]), torch.tensor([3.0, 1.0]), torch.tensor([[0.0], [1.0]]))
    >>> split.num_hard, split.loss_hard, split.mean_hard.tolist(), split.inertia
    (1, 3.0, [0.0], 0.0)
    """
    num_hard = int(hard_K.sum())
    loss_easy, loss_hard = means_of(loss_K.double()[:, None], hard_K).flatten().tolist()
    facts = {"inertia": math.nan, "silhouette": math.nan}
    means = [torch.empty(0), torch.empty(0)]
    if x_KD is not None:
        side_K = hard_K.to(x_KD.device)
        mean_2D = means_of(x_KD, side_K)
        means = list((mean_2D if center_D is None else mean_2D + center_D).to("cpu", torch.float32))
        facts["inertia"] = inertia_of(x_KD, side_K, mean_2D)
        if sample:
            facts["silhouette"] = silhouette(x_KD, side_K, sample=sample, rng=rng)
    return ClassSplit(
        label=label,
        num_easy=len(hard_K) - num_hard,
        num_hard=num_hard,
        loss_easy=loss_easy,
        loss_hard=loss_hard,
        mean_easy=means[0],
        mean_hard=means[1],
        **facts,
    )


def described_all(hard_N: Tensor, label_N: Tensor, loss_N: Tensor) -> tuple[ClassSplit, ...]:
    """`described` for every class there is, where outputs are not at hand.

    >>> [s.num for s in described_all(torch.tensor([True, False, False]), torch.tensor([0, 0, 2]), torch.zeros(3))]
    [2, 1]
    """
    splits = []
    for label in sorted(set(label_N.tolist())):
        members = label_N == label
        splits.append(described(label, hard_N[members], loss_N[members]))
    return tuple(splits)
