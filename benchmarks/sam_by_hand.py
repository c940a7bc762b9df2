"""Steps of the SAM family written by hand: the fewest operations that their formulas ask for, and nothing else.

They check nothing, restore weights by swapping them, know no options and take every parameter to have a gradient.
`davda54` is the step that github.com/davda54/sam publishes, in words of our own: operators tensor by tensor, a copy of
every weight before the ascent.
"""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Step = Callable[[], object]
LR, RHO = 1e-4, 0.05


class Hand:
    """A network with its optimizer, and the moves that every rule is made of."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.params = list(problem.model.parameters())
        self.optimizer = torch.optim.SGD(self.params, lr=LR)
        self.memory: list[Tensor] | None = None

    def gradient(self) -> list[Tensor]:
        self.optimizer.zero_grad()
        self.problem.loss().backward()
        return [p.grad for p in self.params]

    def gradient_at(self, d: list[Tensor], size: float, params: list[Tensor] | None = None) -> list[Tensor]:
        params = self.params if params is None else params
        home = [p.data for p in params]
        for p, new in zip(params, torch._foreach_add(home, d, alpha=size), strict=True):
            p.data = new
        torch.clear_autocast_cache()
        try:
            return self.gradient()
        finally:
            for p, old in zip(params, home, strict=True):
                p.data = old
            torch.clear_autocast_cache()

    def set(self, g: list[Tensor]) -> None:
        for p, t in zip(self.params, g, strict=True):
            p.grad = t


def length(d: list[Tensor]) -> float:
    return float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(d))))


def dot(a: list[Tensor], b: list[Tensor]) -> float:
    return sum(torch.dot(x.view(-1), y.view(-1)).item() for x, y in zip(a, b, strict=True))


def sam(hand: Hand) -> None:
    g = hand.gradient()
    hand.gradient_at(g, RHO / length(g))


def usam(hand: Hand) -> None:
    hand.gradient_at(hand.gradient(), RHO)


def asam(hand: Hand) -> None:
    once = hand.gradient()
    twice, weights = list(once), [i for i, p in enumerate(hand.params) if p.ndim > 1]  # T = 1 for biases
    t = torch._foreach_abs([hand.params[i].data for i in weights])
    torch._foreach_add_(t, 0.01)
    stretched = torch._foreach_mul(t, [once[i] for i in weights])
    torch._foreach_mul_(t, stretched)
    for i, a, b in zip(weights, stretched, t, strict=True):
        once[i], twice[i] = a, b
    hand.gradient_at(twice, 0.5 / length(once))


def gsam(hand: Hand) -> None:
    g = hand.gradient()
    there = hand.gradient_at(g, RHO / length(g))
    torch._foreach_mul_(there, 1 + 0.4 * dot(g, there) / length(there) ** 2)
    torch._foreach_add_(there, g, alpha=-0.4)


def wsam(hand: Hand) -> None:
    g = hand.gradient()
    torch._foreach_lerp_(hand.gradient_at(g, RHO / length(g)), g, -8.0)


def friendlysam(hand: Hand) -> None:
    g = hand.gradient()
    d = g if hand.memory is None else torch._foreach_sub(g, hand.memory)
    hand.memory = g if hand.memory is None else torch._foreach_lerp(hand.memory, g, 0.1)
    hand.gradient_at(d, RHO / length(d))


def vasso(hand: Hand) -> None:
    g = hand.gradient()
    hand.memory = g if hand.memory is None else torch._foreach_lerp(hand.memory, g, 0.4)
    hand.gradient_at(hand.memory, RHO / length(hand.memory))


def looksam(hand: Hand) -> None:
    g = hand.gradient()
    if hand.memory is None or next(hand.steps) % 5 == 0:
        there = hand.gradient_at(g, RHO / length(g))
        hand.memory = torch._foreach_add(there, g, alpha=-dot(there, g) / length(g) ** 2)
        hand.size = length(hand.memory)
    else:
        torch._foreach_add_(g, hand.memory, alpha=0.7 * length(g) / hand.size)


def msam(hand: Hand) -> None:
    v = hand.memory
    if v is None:
        hand.memory = [t.clone() for t in hand.gradient()]
    else:
        g = hand.gradient_at(v, -0.3 / length(v))
        torch._foreach_mul_(v, 0.9)
        torch._foreach_add_(v, g)


def randomperturbation(hand: Hand) -> None:
    hand.gradient_at([torch.randn_like(p) for p in hand.params], 0.01)


def lsam(hand: Hand) -> None:
    """The body once; the loss of its features at the head and at the displaced head."""
    model, criterion = hand.problem.model, hand.problem.criterion
    *body, last = model
    head = list(last.parameters())
    hand.optimizer.zero_grad()
    features = hand.problem.x
    for module in body:
        features = module(features)
    g = torch.autograd.grad(criterion(last(features)), head)
    home = [p.data for p in head]
    for p, new in zip(head, torch._foreach_add(home, g, alpha=RHO / length(list(g))), strict=True):
        p.data = new
    criterion(last(features)).backward()
    for p, old in zip(head, home, strict=True):
        p.data = old


def by_hand(rule: Callable[[Hand], None]) -> Callable[[Any], Step]:
    def steps_of(problem: Any) -> Step:
        hand: Any = Hand(problem)
        hand.steps = itertools.count(1)

        def steps() -> None:
            for _ in range(problem.turns):
                rule(hand)
                hand.optimizer.step()

        return steps

    return steps_of


BY_HAND = {
    kind: by_hand(rule)
    for kind, rule in {
        "SAM": sam,
        "ASAM": asam,
        "LSAM": lsam,
        "USAM": usam,
        "GSAM": gsam,
        "WSAM": wsam,
        "LookSAM": looksam,
        "FriendlySAM": friendlysam,
        "VaSSO": vasso,
        "MSAM": msam,
        "RandomPerturbation": randomperturbation,
    }.items()
}


def davda54(problem: Any) -> Step:
    params = list(problem.model.parameters())
    optimizer = torch.optim.SGD(params, lr=LR)
    before: dict[Tensor, Tensor] = {}

    @torch.no_grad()
    def climb() -> None:
        size = RHO / (torch.norm(torch.stack([p.grad.norm(p=2) for p in params]), p=2) + 1e-12)
        for p in params:
            before[p] = p.data.clone()
            p.add_(p.grad * size.to(p))
        optimizer.zero_grad()

    @torch.no_grad()
    def come_back() -> None:
        for p in params:
            p.data = before[p]
        optimizer.step()
        optimizer.zero_grad()

    def steps() -> None:
        for _ in range(problem.turns):
            problem.loss().backward()
            climb()
            problem.loss().backward()
            come_back()

    return steps
