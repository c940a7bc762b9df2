"""The curvatures Hᵢ of n examples, in the basis where their mean is diagonal: as factors, or as diagonals.

Both kinds have the same five methods, and never form an n × R × R tensor.
Shapes: N examples, C rows of a factor (outputs of a network), R directions in which the mean curves.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Factored:
    """Hᵢ = AᵢᵀAᵢ, given by the factors A."""

    factors_NCR: Tensor
    #: Tr(HᵢHⱼ) and λmax(Hᵢ), if known for more directions than the factors cover.
    known_traces_NN: Tensor | None = None
    known_largest_N: Tensor | None = None

    def __len__(self) -> int:
        return len(self.factors_NCR)

    @property
    def width(self) -> int:
        """C, the rows of a factor."""
        return self.factors_NCR.shape[1]

    def sandwich(self, m_RR: Tensor) -> Tensor:
        """meanᵢ Hᵢ M Hᵢ = (1/n) Σᵢ Aᵢᵀ (Aᵢ M Aᵢᵀ) Aᵢ: two products of NC × R × R."""
        a_NCR = self.factors_NCR
        rows, dims = a_NCR.shape[0] * a_NCR.shape[1], a_NCR.shape[2]
        am_NCR = (a_NCR.reshape(rows, dims) @ m_RR).view_as(a_NCR)
        # With one row a block is a number, and no batched product is needed.
        rank_one = a_NCR.shape[1] == 1
        inner_NCR = a_NCR * (am_NCR * a_NCR).sum(-1, keepdim=True) if rank_one else am_NCR @ a_NCR.mT @ a_NCR
        return a_NCR.reshape(rows, dims).mT @ inner_NCR.reshape(rows, dims) / len(self)

    def traces(self) -> Tensor:
        """Tr(HᵢHⱼ) = ‖AᵢAⱼᵀ‖²_F, N × N."""
        return self._traces if self.known_traces_NN is None else self.known_traces_NN

    @cached_property
    def _traces(self) -> Tensor:
        num, width, dims = self.factors_NCR.shape
        a = self.factors_NCR.reshape(num * width, dims)
        gram: Tensor = a @ a.mT
        blocks: Tensor = gram.square_().view(num, width, num, width)
        return blocks.sum((1, 3))

    def largest(self) -> Tensor:
        """λmax(Hᵢ) = λmax(AᵢAᵢᵀ), one per example."""
        if self.known_largest_N is not None:
            return self.known_largest_N
        values_NC: Tensor = torch.linalg.eigvalsh(self.factors_NCR @ self.factors_NCR.mT)
        return values_NC[:, -1]

    def pull(self, counts: Tensor, w: Tensor) -> Tensor:
        """Σᵢ xᵢ Hᵢ w for counts (..., N) and w (..., R)."""
        num, width, dims = self.factors_NCR.shape
        a = self.factors_NCR.reshape(num * width, dims)
        outputs = w @ a.mT
        drawn = outputs * (counts if width == 1 else counts.repeat_interleave(width, -1))
        return drawn @ a

    def rescale(self, by_R: Tensor) -> "Factored":
        """D^½ Hᵢ D^½ for the diagonal D."""
        return Factored(self.factors_NCR * by_R.sqrt())


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Hᵢ = diag(hᵢ): the coordinates are independent, and most results have closed forms."""

    values_NR: Tensor

    def __len__(self) -> int:
        return len(self.values_NR)

    @property
    def width(self) -> int:
        """One number per coordinate."""
        return 1

    def sandwich(self, m_RR: Tensor) -> Tensor:
        """meanᵢ Hᵢ M Hᵢ, entry by entry: M_ab meanᵢ hᵢₐhᵢ_b."""
        return m_RR * (self.values_NR.mT @ self.values_NR / len(self))

    def traces(self) -> Tensor:
        """Tr(HᵢHⱼ) = ⟨hᵢ, hⱼ⟩, N × N."""
        return self.values_NR @ self.values_NR.mT

    def largest(self) -> Tensor:
        """λmax(Hᵢ) = maxₐ hᵢₐ, one per example."""
        return self.values_NR.amax(1)

    def pull(self, counts: Tensor, w: Tensor) -> Tensor:
        """Σᵢ xᵢ Hᵢ w for counts (..., N) and w (..., R)."""
        return (counts @ self.values_NR) * w

    def rescale(self, by_R: Tensor) -> "Diagonal":
        """D^½ Hᵢ D^½ for the diagonal D."""
        return Diagonal(self.values_NR * by_R)


Curvatures = Factored | Diagonal
