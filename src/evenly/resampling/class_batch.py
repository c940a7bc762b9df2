"""One large class, or several small ones padded to the length of the longest, as one tensor of centred points.

Shapes: B classes, K examples of the largest, M examples of all, D outputs, E = D + 1, R restarts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.resampling.class_statistics import splits_by_outputs
from evenly.resampling.kmeans import center, means, point_mask, two_sides
from evenly.resampling.separation import ClassSplit


@dataclass(frozen=True, eq=False)
class ClassBatch:
    """Centred points of some classes, with their labels and losses; padding is zero and not `real_BK`."""

    x_BKE: Tensor
    center_BD: Tensor
    count_B: Tensor
    real_BK: Tensor
    loss_BK: Tensor

    @classmethod
    def pad(cls, x_MD: Tensor, scratch: Tensor, sizes_B: Tensor, loss_M: Tensor) -> "ClassBatch":
        """Pad the classes that follow one another in `x_MD`, which is stored at the beginning of `scratch`.

        A single class is centred in place: a second copy of a large one would take too much memory.
        """
        count_B = sizes_B.to(x_MD.device)
        longest = int(sizes_B.max())
        real_BK = point_mask(count_B, longest)
        if len(sizes_B) == 1:
            x_BKE, loss_BK = scratch[None, :longest], loss_M[None]
        else:
            x_BKE = scratch.new_zeros(len(sizes_B), longest, scratch.shape[1])
            x_BKE[..., :-1][real_BK] = x_MD
            loss_BK = loss_M.new_zeros(len(sizes_B), longest)
            loss_BK[real_BK.cpu()] = loss_M
        return cls(x_BKE, center(x_BKE, count_B), count_B, real_BK, loss_BK)

    @property
    def x_BKD(self) -> Tensor:
        """The points alone."""
        return self.x_BKE[..., :-1]

    def place(self, values_M: Tensor) -> Tensor:
        """Arrange one boolean per example by class and place in the class."""
        value_BK = torch.zeros_like(self.real_BK)
        value_BK[self.real_BK] = values_M.to(value_BK.device)
        return value_BK

    def rows(self, value_BK: Tensor) -> Tensor:
        """The inverse of `place`."""
        return value_BK[self.real_BK]

    def harder_cluster(self, draws_BR2: Tensor) -> Tensor:
        """In each class, the cluster of higher mean loss, or the smaller if equal; none without two clusters."""
        side_BK = two_sides(self.x_BKE, self.count_B, self.center_BD, draws_BR2)
        other_BK = self.real_BK & ~side_BK
        loss_B2 = means(self.loss_BK[..., None], side_BK.cpu(), other_BK.cpu())[..., 0].to(side_BK.device)
        smaller_B = 2 * side_BK.sum(dim=1) <= self.count_B
        harder_B = (loss_B2[:, 0] > loss_B2[:, 1]) | ((loss_B2[:, 0] == loss_B2[:, 1]) & smaller_B)
        divided_B = side_BK.any(dim=1)
        return torch.where(harder_B[:, None], side_BK, other_BK) & divided_B[:, None]

    def splits(
        self, labels: Sequence[int], hard_BK: Tensor, *, sample: int, rng: torch.Generator | None
    ) -> list[ClassSplit]:
        """The `ClassSplit` of each class, given its label and which of its examples are hard."""
        easy_BK = self.real_BK & ~hard_BK
        return splits_by_outputs(
            labels, hard_BK, easy_BK, self.loss_BK, self.x_BKD, self.center_BD, sample=sample, rng=rng
        )
