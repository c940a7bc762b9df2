"""A linear-stability problem: n positive semidefinite curvatures Hᵢ around a minimum.

A problem is always represented on the range of H = meanᵢ Hᵢ, in its eigenbasis: directions without curvature neither
grow nor shrink under any of the methods, and do not matter to stability.
Shapes: N examples, C rows of a factor, P parameters, R = rank of H.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError
from evenly.stability.curvatures import Curvatures, Diagonal, Factored
from evenly.stability.low_rank import OVERSAMPLING, Truncation, leading_factors

BLOCK = 512  # rows that are checked at once


@dataclass(frozen=True, eq=False)
class Problem:
    """Curvatures Hᵢ ⪰ 0 of n examples, made by one of the `from_…` constructors.

    Parameters
    ----------
    eigenvalues_R
        The positive eigenvalues of H, ascending (in the order of the coordinates for a diagonal problem).
    curvatures
        The Hᵢ in the eigenbasis of H.
    basis_PR
        The eigenvectors, where the parameters are known; None for a problem made from a Gram matrix.

    Examples
    --------
    >>> problem = Problem.from_gram(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> problem.num_examples, round(problem.lambda_max, 6), round(problem.trace, 6)
    (2, 1.5, 2.0)
    """

    eigenvalues_R: Tensor
    curvatures: Curvatures
    basis_PR: Tensor | None = None
    #: The size of the data set that the N examples are a part of, if it is larger than N.
    drawn_from: int | None = None
    #: The truncation of a problem that was projected on the leading directions of H.
    truncation: Truncation | None = None

    @classmethod
    def from_gram(cls, gram: Tensor, *, num_outputs: int = 1, rank: int | None = None) -> "Problem":
        """From K_ij = AᵢAⱼᵀ alone: N × N, N × N × C × C, or (N·C) × (N·C) with C = `num_outputs` rows per example.

        The last is what `evenly.curvature.block_gram` gives for a network. With K = U Λ Uᵀ the factors are Aᵢ = UᵢΛ^½
        in the basis where H = Λ/n. With `rank`, only so many leading directions are kept where K has more, and
        `truncation` bounds what that changes (`low_rank`): the dense eigenproblem of thousands of rows is avoided.
        """
        num, width = _gram_shape(gram, num_outputs)
        flat = gram if gram.ndim == 2 else gram.permute(0, 2, 1, 3).reshape(num * width, num * width)
        flat = _symmetric(_finite(flat, "the Gram matrix"), "the Gram matrix")
        if rank is not None and rank < 1:
            raise UsageError(f"rank = {rank}: give 1 direction or more, or None for all.")
        if rank is not None and rank + OVERSAMPLING < len(flat):
            return cls._from_large_gram(flat, num, width, rank)
        eigenvalues, vectors = torch.linalg.eigh(flat.double())
        low, rounding = float(eigenvalues[0]), _rounding(flat) * float(eigenvalues[-1].clamp_min(0))
        if low < -4 * rounding:
            raise DataError(
                f"the Gram matrix is not positive semidefinite: its smallest eigenvalue is {low:.3g}, its largest "
                f"{float(eigenvalues[-1]):.3g}. Give K = A Aᵀ of per-example factors (Gauss–Newton, not Hessians)."
            )
        kept = eigenvalues > rounding
        _check_some(kept)
        factors = (vectors[:, kept] * eigenvalues[kept].sqrt()).view(num, width, -1)
        return cls(eigenvalues[kept] / num, Factored(factors))

    @classmethod
    def _from_large_gram(cls, flat: Tensor, num: int, width: int, rank: int) -> "Problem":
        if not float(flat.diagonal().max()) > 0:
            _check_some(flat.diagonal() > 0)
        lam_R, factors_NCR, lost = leading_factors(flat, num=num, width=width, rank=rank)
        # A row at a time: all squares in double would take three times the memory of the Gram matrix.
        traces_NN = torch.stack([row.double().square().sum((0, 2)) for row in flat.view(num, width, num, width)])
        blocks_NCC = flat.view(num, width, num, width).diagonal(dim1=0, dim2=2).permute(2, 0, 1).double()
        largest_N = torch.linalg.eigvalsh(blocks_NCC)[:, -1]
        return cls(lam_R, Factored(factors_NCR, traces_NN, largest_N), truncation=lost)

    @classmethod
    def from_factors(cls, factors: Tensor) -> "Problem":
        """From Aᵢ with Hᵢ = AᵢᵀAᵢ: N × P (rank one) or N × C × P.

        >>> Problem.from_factors(torch.eye(3)).lambda_max
        0.3333333333333333
        """
        if factors.ndim not in (2, 3) or not factors.numel():
            raise DataError(f"factors must be N×P or N×C×P and not empty, not {tuple(factors.shape)}.")
        a_NCP = _finite(factors, "factors") if factors.ndim == 3 else _finite(factors, "factors")[:, None, :]
        num, width, dims = a_NCP.shape
        a = a_NCP.double().reshape(num * width, dims)
        # The thinner side is decomposed: H for few parameters, the Gram for few examples.
        if dims <= num * width:
            eigenvalues, vectors = torch.linalg.eigh(a.mT @ a)
            kept = eigenvalues > _rounding(a) * eigenvalues[-1]
            _check_some(kept)
            basis = vectors[:, kept]
        else:
            eigenvalues, vectors = torch.linalg.eigh(a @ a.mT)
            kept = eigenvalues > _rounding(a) * eigenvalues[-1]
            _check_some(kept)
            basis = a.mT @ (vectors[:, kept] / eigenvalues[kept].sqrt())
        return cls(eigenvalues[kept] / num, Factored((a @ basis).view(num, width, -1)), basis)

    @classmethod
    def from_dense(cls, hessians: Tensor) -> "Problem":
        """From the matrices Hᵢ themselves, N × P × P, each symmetric and positive semidefinite.

        >>> Problem.from_dense(torch.tensor([[[1.0, 0.0], [0.0, -0.5]]]))
        Traceback (most recent call last):
        evenly.errors.DataError: H_0 is not positive semidefinite: its smallest eigenvalue is -0.5 ...
        """
        if hessians.ndim != 3 or hessians.shape[1] != hessians.shape[2] or not hessians.numel():
            raise DataError(f"dense curvatures must be N×P×P and not empty, not {tuple(hessians.shape)}.")
        h_NPP = _symmetric(_finite(hessians, "curvatures"), "H")
        eigenvalues_NP, vectors_NPP = torch.linalg.eigh(h_NPP.double())
        rounding_N1 = _rounding(hessians) * eigenvalues_NP[:, -1:].clamp_min(0)
        _check_psd(eigenvalues_NP, 4 * rounding_N1)
        real_NP = eigenvalues_NP > rounding_N1
        roots_NP = torch.where(real_NP, eigenvalues_NP, 0.0).sqrt()
        rank = max(1, int(real_NP.sum(1).max()))
        return cls.from_factors((vectors_NPP * roots_NP[:, None, :]).mT[:, -rank:, :])

    @classmethod
    def from_diagonal(cls, values: Tensor) -> "Problem":
        """From hᵢ with Hᵢ = diag(hᵢ), N × P: thresholds of such sets have closed forms.

        >>> Problem.from_diagonal(torch.tensor([[4.0, 0.0], [0.0, 0.0]])).rank
        1
        """
        if values.ndim != 2 or not values.numel():
            raise DataError(f"diagonal curvatures must be N×P and not empty, not {tuple(values.shape)}.")
        h_NP = _finite(values, "curvatures").double()
        if (h_NP < 0).any():
            i, a = (int(v) for v in (h_NP == h_NP.min()).nonzero()[0])
            raise DataError(
                f"H_{i} is not positive semidefinite: entry {a} of its diagonal is {float(h_NP[i, a]):.3g}. "
                "Linear stability is about minima, where no example curves downward."
            )
        mean_P = h_NP.mean(0)
        kept = mean_P > 0
        _check_some(kept)
        basis = torch.eye(len(mean_P), dtype=torch.float64)[:, kept]
        return cls(mean_P[kept], Diagonal(h_NP[:, kept]), basis)

    def sam(self, rho_over_alpha: float) -> "Problem":
        """The problem that SAM solves: v = P^½w turns w ← (I − ηH_tP)w into SGD on P^½HᵢP^½, P = I + (ρ/α)H.

        P is diagonal in the eigenbasis of H, so the basis stays and every SGD result holds for SAM as it stands.

        >>> Problem.from_diagonal(torch.tensor([[2.0]])).sam(0.5).lambda_max
        4.0
        """
        check_ratio(rho_over_alpha)
        if rho_over_alpha == 0:
            return self
        p_R = 1 + rho_over_alpha * self.eigenvalues_R
        return replace(self, eigenvalues_R=self.eigenvalues_R * p_R, curvatures=self.curvatures.rescale(p_R))

    @property
    def num_examples(self) -> int:
        """N, the number of examples."""
        return len(self.curvatures)

    @property
    def population(self) -> int:
        """The number of examples that batches are drawn from: N, or more if the N examples represent a larger set."""
        return self.drawn_from or self.num_examples

    def part_of(self, num_examples: int) -> "Problem":
        """The same curvatures as a random part of a larger data set: means are the part's, noise is the whole set's.

        >>> Problem.from_factors(torch.eye(3)).part_of(50_000).population
        50000
        """
        if num_examples < self.num_examples:
            raise UsageError(
                f"{self.num_examples} examples cannot be a part of {num_examples}: give the larger set's size."
            )
        return replace(self, drawn_from=num_examples)

    def drawable(self, sampling: str) -> int:
        """N, for code that draws or lists batches; a part of a larger set is refused, since it cannot give its batches.

        With replacement the size of the set does not matter.

        >>> Problem.from_factors(torch.eye(3)).part_of(50).drawable("with")
        3
        """
        if self.population != self.num_examples and sampling != "with":
            raise UsageError(
                f"these {self.num_examples} examples are a part of {self.population}, whose batches cannot be drawn "
                "from the part. Give sampling='with', which hardly differs for small batches, or a problem of all "
                "examples; mean-square thresholds know the larger set."
            )
        return self.num_examples

    @property
    def rank(self) -> int:
        """R, the number of directions in which the mean curvature is not zero."""
        return len(self.eigenvalues_R)

    @property
    def singular(self) -> bool:
        """Whether H has, or may have, directions without curvature (a Gram matrix cannot tell)."""
        return self.basis_PR is None or self.basis_PR.shape[0] > self.rank

    @property
    def lambda_max(self) -> float:
        """λmax(H)."""
        return float(self.eigenvalues_R.max())

    @property
    def lambda_min(self) -> float:
        """The smallest eigenvalue of H on its range; that of H itself is 0 where H is `singular`."""
        return float(self.eigenvalues_R.min())

    @property
    def trace(self) -> float:
        """Tr H."""
        return float(self.eigenvalues_R.sum()) if self.truncation is None else self.truncation.trace


def check_ratio(rho_over_alpha: float) -> None:
    """Refuse a ρ/α that is not a finite number of at least 0."""
    if not 0 <= rho_over_alpha < float("inf"):
        raise UsageError(f"rho_over_alpha = {rho_over_alpha}: give the ratio ρ/α as a number of at least 0.")


def _gram_shape(gram: Tensor, num_outputs: int) -> tuple[int, int]:
    """N and C of a Gram matrix, flat or in blocks."""
    shape = tuple(gram.shape)
    if len(shape) == 2 and shape[0] == shape[1] > 0:
        if num_outputs < 1 or shape[0] % num_outputs:
            raise DataError(f"a Gram matrix of {shape[0]} rows is not that of examples with {num_outputs} rows each.")
        return shape[0] // num_outputs, num_outputs
    if len(shape) == 4 and shape[0] == shape[1] > 0 and shape[2] == shape[3] > 0:
        return shape[0], shape[2]
    raise DataError(f"a Gram matrix is N×N or, block by block, N×N×C×C, not {'×'.join(map(str, shape))}.")


def _rounding(t: Tensor) -> float:
    """How large, relative to the largest, an eigenvalue may be by rounding alone in the precision it came in."""
    dtype = t.dtype if t.dtype.is_floating_point else torch.float64
    return float(4 * t.shape[-1] ** 0.5 * torch.finfo(dtype).eps)


def _finite(t: Tensor, what: str) -> Tensor:
    """The tensor on the host, in float64, if it is finite."""
    if not all(bool(torch.isfinite(t[i : i + BLOCK]).all()) for i in range(0, len(t), BLOCK)):
        first = tuple(int(v) for v in (~torch.isfinite(t)).nonzero()[0])
        raise DataError(f"{what}: entry {first} is {t[first].item()}. Stability needs finite numbers.")
    return t.detach().cpu()


def _symmetric(t: Tensor, what: str) -> Tensor:
    """The symmetric part, if the rest is rounding; by blocks of rows, so that only the result is as large as t."""
    blocks = [slice(start, start + BLOCK) for start in range(0, t.shape[-1], BLOCK)]
    off = largest = t.new_zeros(t.shape[:-2])
    for rows in blocks:
        here, there = t[..., rows, :], t[..., rows].mT
        off = torch.maximum(off, (here - there).abs().flatten(-2).amax(-1))
        largest = torch.maximum(largest, here.abs().flatten(-2).amax(-1))
    allowed = 4 * _rounding(t) * largest
    if (off > allowed).any():
        worst = int((off - allowed).argmax()) if off.ndim else 0
        name = f"{what}_{worst}" if off.ndim else what
        raise DataError(f"{name} is not symmetric: it differs from its transpose by {float(off.max()):.3g}.")
    half = torch.empty_like(t, dtype=torch.result_type(t, 0.5))
    for rows in blocks:
        half[..., rows, :] = (t[..., rows, :] + t[..., rows].mT) / 2
    return half


def _check_psd(eigenvalues_NP: Tensor, slack_N: Tensor) -> None:
    below_N = eigenvalues_NP[:, 0] < -slack_N[:, 0]
    if below_N.any():
        worst = int(eigenvalues_NP[:, 0].argmin())
        raise DataError(
            f"H_{worst} is not positive semidefinite: its smallest eigenvalue is {float(eigenvalues_NP[worst, 0]):.3g} "
            f"(its largest {float(eigenvalues_NP[worst, -1]):.3g}; {int(below_N.sum())} of {len(below_N)} are so). "
            "Use Gauss–Newton curvature, or `coherence_of_hessians`, which counts what is undefined."
        )


def _check_some(kept: Tensor) -> None:
    if not kept.any():
        raise DataError("every curvature is zero: nothing can be said about stability where nothing curves.")
