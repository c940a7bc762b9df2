"""Networks that fit the parity y = x₀x₁ exactly, from the simplest to the one that memorises.

The network is f(x) = W2·ReLU(W1x + b) on x ∈ {±1}^d, the loss ½(f − y)². Where it fits, Hᵢ = gᵢgᵢᵀ with gᵢ = ∇f(xᵢ).
Shapes: N examples, D inputs, M hidden units.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError
from evenly.stability.problem import Problem


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights of a two-layer ReLU network with one output; `state_dict` loads them into `evenly.models`' relu2."""

    w1_MD: Tensor
    b_M: Tensor
    w2_M: Tensor

    def __call__(self, inputs_ND: Tensor) -> Tensor:
        """f(x) for every row of the inputs."""
        return self.hidden(inputs_ND).relu() @ self.w2_M

    def hidden(self, inputs_ND: Tensor) -> Tensor:
        """W1x + b."""
        return inputs_ND.to(self.w1_MD) @ self.w1_MD.mT + self.b_M

    def active(self, inputs_ND: Tensor) -> Tensor:
        """Which hidden units each example switches on, N × M."""
        return self.hidden(inputs_ND) > 0

    def gram(self, inputs_ND: Tensor) -> Tensor:
        """K_ij = ⟨∇f(xᵢ), ∇f(xⱼ)⟩ = hᵢ·hⱼ + (aᵢ·aⱼ)(xᵢ·xⱼ + 1), h = ReLU(W1x + b), a = W2 ∘ 1[h > 0]; never N × P."""
        x_ND = inputs_ND.to(self.w1_MD)
        hidden_NM = self.hidden(x_ND)
        outer_NM = self.w2_M * (hidden_NM > 0)
        hidden_NM = hidden_NM.relu()
        # In place, because three N × N products cost less than as many copies of N × N.
        gram: Tensor = x_ND @ x_ND.mT
        return gram.add_(1).mul_(outer_NM @ outer_NM.mT).addmm_(hidden_NM, hidden_NM.mT)

    def problem(self, inputs_ND: Tensor) -> Problem:
        """Its stability problem on these examples; refused where it does not fit them."""
        check_fits(self, inputs_ND)
        return Problem.from_gram(self.gram(inputs_ND))

    def state_dict(self) -> dict[str, Tensor]:
        """The weights under the names of `relu2`: W1 and b are its `hidden` layer, W2 its `head`."""
        return {"hidden.weight": self.w1_MD, "hidden.bias": self.b_M, "head.weight": self.w2_M[None, :]}

    def memorises(self, inputs_ND: Tensor) -> bool:
        """Whether no hidden unit is switched on by two examples."""
        return bool((self.active(inputs_ND).sum(0) <= 1).all())


def feature_solution(c: int, *, dim: int, width: int | None = None, r: float | None = None) -> Solution:
    """The (C, r)-solution: one unit for each sign pattern of the first C coordinates (Chang & Khanna, 2025).

    W1_j = r[(−1)^{a₁}, …, (−1)^{a_C}, 0, …], b_j = −r(C − 1), W2_j = (−1)^{a₁+a₂}/r for j = 1 + Σᵢ 2^{i−1}aᵢ; other
    units are zero. One unit is active per example, and Tr Hᵢ = r² + (d + 1)/r², least, 2√(d+1), at r = (d + 1)^¼,
    which is the default.

    >>> x = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    >>> feature_solution(2, dim=3)(x).tolist()
    [-1.0, 1.0]
    """
    if not 2 <= c <= dim:
        raise UsageError(f"c = {c}: the label needs two coordinates and there are d = {dim}: give 2 to {dim}.")
    if c > 20:
        raise UsageError(f"c = {c} needs 2^{c} hidden units; `memorising_solution` has one per example.")
    width = 2**c if width is None else width
    if width < 2**c:
        raise UsageError(f"width = {width}: {c} features need one unit for each of {2**c} sign patterns.")
    r = _scale(r, dim)
    signs_MC = 1 - 2.0 * ((torch.arange(2**c)[:, None] >> torch.arange(c)) & 1).double()
    w1_MD = torch.zeros(width, dim, dtype=torch.float64)
    b_M, w2_M = torch.zeros(2, width, dtype=torch.float64)
    w1_MD[: 2**c, :c] = r * signs_MC
    b_M[: 2**c] = -r * (c - 1)
    w2_M[: 2**c] = signs_MC[:, 0] * signs_MC[:, 1] / r
    return Solution(w1_MD, b_M, w2_M)


def memorising_solution(inputs_ND: Tensor, *, r: float | None = None) -> Solution:
    """One unit of its own for every example: W1_i = r xᵢ, b_i = −r(d − 1), W2_i = yᵢ/r.

    It is the (d, r)-solution without the units that no example uses: same trace, and K = Tr(Hᵢ) I.

    >>> x = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    >>> memorising_solution(x).gram(x).round(decimals=9).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    x_ND = inputs_ND.double()
    _check_cube(x_ND)
    _, where, counts = x_ND.unique(dim=0, return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]  # untyped in torch
    if (counts > 1).any():
        twins = (where == int(counts.argmax())).nonzero().flatten().tolist()
        raise DataError(f"examples {twins} are equal and cannot have units of their own: drop all but one of them.")
    r = _scale(r, x_ND.shape[1])
    b_M = torch.full((len(x_ND),), -r * (x_ND.shape[1] - 1), dtype=torch.float64)
    return Solution(r * x_ND, b_M, x_ND[:, 0] * x_ND[:, 1] / r)


def shared_unit_counterexample() -> tuple[Solution, Tensor]:
    """A network and two examples that refute theorem 3.4 (⇐): S is diagonal, yet both examples share a unit.

    x₂ = −x₁ = −(1, 1, 1), W1 = .3(1, −1, 0), b = 2^¼, W2 = 2^−¼: it fits, ⟨∇f(x₁), ∇f(x₂)⟩ = √2 + (−3 + 1)/√2 = 0.

    >>> solution, x = shared_unit_counterexample()
    >>> solution.gram(x).round(decimals=9).tolist()[0][1] == 0, solution.memorises(x)
    (True, False)
    """
    x_ND = torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], dtype=torch.float64)
    w1_MD = 0.3 * torch.tensor([[1.0, -1.0, 0.0]], dtype=torch.float64)
    b_M, w2_M = (torch.tensor([2.0**power], dtype=torch.float64) for power in (0.25, -0.25))
    return Solution(w1_MD, b_M, w2_M), x_ND


def check_fits(solution: Solution, inputs_ND: Tensor, *, tol: float = 1e-8) -> None:
    """Refuse a network that does not give y = x₀x₁ on every example: Hᵢ = gᵢgᵢᵀ holds only where it fits."""
    _check_cube(inputs_ND)
    off_N = (solution(inputs_ND) - (inputs_ND[:, 0] * inputs_ND[:, 1]).to(solution.w1_MD)).abs()
    if (off_N > tol).any():
        worst = int(off_N.argmax())
        raise DataError(
            f"the network does not fit: example {worst} is off by {float(off_N[worst]):.3g} "
            f"({int((off_N > tol).sum())} of {len(off_N)} are off). Linear stability is about minima."
        )


def _scale(r: float | None, dim: int) -> float:
    if r is not None and not 0 < r < float("inf"):
        raise UsageError(f"r = {r}: the scale of the first layer is a positive number.")
    return (dim + 1.0) ** 0.25 if r is None else r


def _check_cube(x_ND: Tensor) -> None:
    if x_ND.ndim != 2 or x_ND.shape[1] < 2 or not len(x_ND):
        raise DataError(f"inputs must be N×D with at least two coordinates, not {tuple(x_ND.shape)}.")
    if (x_ND.abs() != 1).any():
        bad = tuple(int(v) for v in (x_ND.abs() != 1).nonzero()[0])
        raise DataError(f"inputs must be ±1; entry {bad} is {float(x_ND[bad]):g}.")
