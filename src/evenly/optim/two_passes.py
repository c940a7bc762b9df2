"""A step where no option asks for more than two passes, written out.

Between two passes of a tiny network every function that is called takes a microsecond or two from memory gone cold;
asking the questions of the general way is then a tenth of a step.
"""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from evenly import tree
from evenly.optim import ascent
from evenly.optim.closures import differentiate, evaluate
from evenly.optim.room import Room
from evenly.optim.rules import Gradients, Memory, Moment, Rule


class Climber(Protocol):
    """What a step needs of `Displaced`."""

    params: list[Tensor]
    room: Room | None
    rule: Rule
    rho: float
    weight_decay: float
    memories: dict[int, Memory]
    moved: list[int]
    step: int
    skipped: int

    def climb(self, g: Gradients | None, now: Moment) -> tree.Home | None:
        """Displace the weights by what the rule says; None where there is nowhere to go."""


def two_passes(sam: Climber, closure: Callable[..., Tensor], batch: tuple[Any, ...]) -> Tensor:
    """`Displaced.backward` for rules that look first and combine nothing.

    >>> import torch
    >>> from evenly.optim import SAM
    >>> w = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> two_passes(SAM([w], rho=0.5), lambda: (w**2).sum() / 2, ()).item(), w.grad
    (12.5, tensor([3.3000, 4.4000]))
    """
    params, room, rho = sam.params, sam.room, sam.rho
    loss = evaluate(closure, batch, params)
    held = [p.grad for p in params]
    for p in params:
        p.grad = None
    try:
        differentiate(loss)
        g: Gradients = [p.grad for p in params]
        loss = loss.detach()
    finally:
        for p, old in zip(params, held, strict=True):
            p.grad = old
    home = None
    whole = [t for t in g if t is not None and not t.is_sparse]
    if (
        type(sam.rule) is Rule
        and room is not None
        and len(whole) == len(g)
        and whole[0].is_cpu
        and not sam.weight_decay
    ):
        size = ascent.sam(params, whole, rho=rho).size
        if 0 < size < float("inf"):
            home = room.displace(whole, size)
        elif size != 0:
            sam.skipped += 1
    else:
        home = sam.climb(g, Moment(rho, sam.step, 0, sam.memories.setdefault(0, {}), sam.moved))
    g.clear()  # Its memory is the second pass's to use.
    whole.clear()
    try:
        differentiate(evaluate(closure, batch, params))
    finally:
        if home is not None:
            tree.restore(home)
    sam.step += 1
    return loss
