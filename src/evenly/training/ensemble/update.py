"""The step of SGD for many members, each with its own learning rate, momentum and weight decay.

Small members are updated as one matrix, in a few calls. Large ones do not fit into the processor's cache, and every
call would read all weights, gradients and velocities from memory again: torch's fused kernel reads them once. Other
devices keep the batched update.

Shapes: K members, P parameters.
"""

from typing import NamedTuple

from torch import Tensor
from torch.optim.sgd import sgd

LARGE = 2**20  # numbers in the K × P matrix above which reading memory costs more than calls


class Rates(NamedTuple):
    """The numbers of every member, K × 1."""

    lr: Tensor
    momentum: Tensor
    weight_decay: Tensor


class Update:
    """SGD on the rows of `w_KP`, in place: g ← g + λw, v ← μv + g, w ← w − ηv."""

    def __init__(self, w_KP: Tensor, g_KP: Tensor, velocity_KP: Tensor | None, rates: Rates) -> None:
        self.w_KP, self.g_KP, self.velocity_KP = w_KP, g_KP, velocity_KP
        self.rates, self.decays = rates, bool(rates.weight_decay.any())
        fused = w_KP.numel() > LARGE and w_KP.device.type == "cpu"
        self.equal_members = _equal_members(rates) if fused else {}

    def __call__(self, factor: float) -> None:
        """One step with `factor` times the learning rates, which may write over the gradients."""
        if self.equal_members:
            self._fused(factor)
        else:
            self._batched(factor)

    def _batched(self, factor: float) -> None:
        g_KP = self.g_KP
        if self.decays:
            g_KP.addcmul_(self.w_KP, self.rates.weight_decay)
        if self.velocity_KP is not None:
            g_KP = self.velocity_KP.mul_(self.rates.momentum).add_(g_KP)
        self.w_KP.addcmul_(g_KP, self.rates.lr, value=-factor)

    def _fused(self, factor: float) -> None:
        for (lr, momentum, weight_decay), members in self.equal_members.items():
            velocities = None if self.velocity_KP is None or not momentum else self.velocity_KP
            sgd(
                [self.w_KP[k] for k in members],
                [self.g_KP[k] for k in members],
                [None if velocities is None else velocities[k] for k in members],
                fused=True,
                weight_decay=weight_decay,
                momentum=momentum,
                lr=factor * lr,
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )


def _equal_members(rates: Rates) -> dict[tuple[float, float, float], list[int]]:
    """The members that share all three numbers, by these numbers."""
    equal: dict[tuple[float, float, float], list[int]] = {}
    columns = (column.flatten().tolist() for column in rates)
    for member, (lr, momentum, weight_decay) in enumerate(zip(*columns, strict=True)):
        equal.setdefault((lr, momentum, weight_decay), []).append(member)
    return equal
