"""The optimizer around a minimum as a linear filter: SGD with momentum, Nesterov's momentum and weight decay.

With g = A_t w + λw (A_t is the random curvature of a batch, λ the decay in the loss) torch's SGD is

    u ← βu + η(1 − τ)g,     w ← (1 − ηγ)w − u            (heavy ball, dampening τ, decoupled decay γ)
    u ← βu + ηg,            w ← (1 − ηγ)w − ηg − βu      (Nesterov)

In the eigenbasis of Ā = E A_t every direction is a separate filter. Its poles are the roots of z² − τᵢz + δᵢ. One
unit of gradient noise, (A_t − Ā)w, passes through it as the impulse response h_i(t); see docs/stability.md.
Shapes: R directions.
"""

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from evenly.errors import UsageError


@dataclass(frozen=True)
class LinearOptimizer:
    """SGD's settings; `decoupled` says whether the decay is AdamW's w ← (1 − ηλ)w or part of the loss.

    >>> LinearOptimizer(momentum=0.9).mean_threshold(torch.tensor([2.0]))  # 2(1 + β)/λ
    1.9
    """

    momentum: float = 0.0
    nesterov: bool = False
    dampening: float = 0.0
    weight_decay: float = 0.0
    decoupled: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise UsageError(f"momentum = {self.momentum}: give a number from 0 up to, not including, 1.")
        if not 0 <= self.weight_decay < inf:
            raise UsageError(f"weight_decay = {self.weight_decay}: give a finite number of at least 0.")
        if not 0 <= self.dampening < 1:
            raise UsageError(f"dampening = {self.dampening}: give a number from 0 up to, not including, 1.")
        if self.nesterov and (self.dampening or not self.momentum):
            raise UsageError("nesterov needs momentum above 0 and no dampening, as in torch.optim.SGD.")

    @property
    def plain(self) -> bool:
        """Whether there is no momentum, so that coupled and decoupled decay are the same."""
        return self.momentum == 0

    def curvature(self, mean_R: Tensor) -> Tensor:
        """The eigenvalues of Ā with the decay that is part of the loss; without momentum, with any decay."""
        return mean_R if self.decoupled and not self.plain else mean_R + self.weight_decay

    def mean_threshold(self, mean_R: Tensor) -> float:
        """The η at which E[w] stops shrinking: 2(1 + β)/(γ(1 + β) + k·max(λᵢ + λ)).

        k is 1 − τ for the heavy ball and 1 + 2β for Nesterov's momentum.
        """
        beta, top = self.momentum, float(self.curvature(mean_R).max())
        slope = 1 + 2 * beta if self.nesterov else self._kept
        return 2 * (1 + beta) / (self._decoupled * (1 + beta) + slope * top)

    def response(self, mean_R: Tensor, lr: float) -> Tensor:
        """Q_ij = Σ_t h_i(t)h_j(t), the inner products of the impulse responses: R × R, for lr below `mean_threshold`.

        For z² − τz + δ with ε = 1 − τ + δ (the polynomial at 1, which is small and never computed as a difference) and
        the numerator n₁z + n₀,

            Σ_t aᵢaⱼ = (1 − δᵢδⱼ)/D,   D = (1 − δᵢδⱼ)(εᵢ(1 − δⱼ) + εⱼ(1 − δᵢ)) + δⱼεᵢ² + δᵢεⱼ² − (1 + δᵢδⱼ)εᵢεⱼ.

        >>> plain = LinearOptimizer().response(torch.tensor([1.0, 2.0]), 0.5)
        >>> plain[0, 1].item()  # η²/(1 − (1 − ηλᵢ)(1 − ηλⱼ))
        0.25
        """
        a_R, beta, gamma = self.curvature(mean_R), self.momentum, self._decoupled
        if self.nesterov:
            gone_R = (1 - beta) + beta * lr * (gamma + a_R)  # 1 − δ
            epsilon_R = lr * (gamma * (1 - beta) + a_R)
            first, second = -lr * (1 + beta), lr * beta
        else:
            gone_R = torch.full_like(a_R, (1 - beta) + beta * lr * gamma)
            epsilon_R = lr * (gamma * (1 - beta) + self._kept * a_R)
            first = -lr * self._kept
        delta_R = 1 - gone_R
        if not self.nesterov:  # δ is the same in every direction, and D a sum of few terms
            delta, gone = float(delta_R[0]), float(gone_R[0])
            apart_all = gone * (2 - gone)
            own_R = apart_all * gone * epsilon_R + delta * epsilon_R.square()
            bottom = (own_R[:, None] + own_R).addcmul_(epsilon_R[:, None], epsilon_R, value=-(1 + delta * delta))
            return (first**2 * apart_all) / bottom
        e_i, e_j, d_i, d_j = epsilon_R[:, None], epsilon_R, delta_R[:, None], delta_R
        apart = gone_R[:, None] + gone_R - gone_R[:, None] * gone_R  # 1 − δᵢδⱼ
        linear = apart * (e_i * gone_R + e_j * gone_R[:, None])
        bottom = linear + d_j * e_i.square() + d_i * e_j.square() - (1 + d_i * d_j) * e_i * e_j
        tau_i, tau_j = 1 + d_i - e_i, 1 + d_j - e_j
        mixed = tau_i - d_i * tau_j + tau_j - d_j * tau_i
        return ((first**2 + second**2) * apart + first * second * mixed) / bottom

    def blocks(self, mean_R: Tensor, lr: float) -> tuple[Tensor, Tensor]:
        """B (R × 2 × 2) of the mean map on (w, u) in every direction, and s (2), by which gradient noise enters it."""
        a_R, beta, gamma, kept = self.curvature(mean_R), self.momentum, self._decoupled, self._kept
        one = torch.ones_like(a_R)
        if self.nesterov:
            rows = [[1 - lr * gamma - (1 + beta) * lr * a_R, -beta * beta * one], [lr * a_R, beta * one]]
            enters = [-lr * (1 + beta), lr]
        else:
            rows = [[1 - lr * gamma - lr * kept * a_R, -beta * one], [lr * kept * a_R, beta * one]]
            enters = [-lr * kept, lr * kept]
        return torch.stack([torch.stack(row, -1) for row in rows], -2), a_R.new_tensor(enters)

    def step(self, w: Tensor, u: Tensor, gradient: Tensor, lr: float | Tensor) -> tuple[Tensor, Tensor]:
        """One step of (w, u) with the gradient A_t w: what torch's SGD does, with u = η·velocity."""
        gradient = gradient + (self.weight_decay - self._decoupled) * w
        u = self.momentum * u + lr * self._kept * gradient
        w_kept = w - lr * self._decoupled * w
        return (w_kept - lr * gradient - self.momentum * u, u) if self.nesterov else (w_kept - u, u)

    @property
    def _kept(self) -> float:
        """1 − τ; torch's SGD ignores the dampening where there is no momentum."""
        return 1 - self.dampening if self.momentum else 1.0

    @property
    def _decoupled(self) -> float:
        """γ; without momentum both decays are the same, and it is counted in the loss."""
        return self.weight_decay if self.decoupled and not self.plain else 0.0
