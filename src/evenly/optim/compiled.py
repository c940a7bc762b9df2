"""A whole SAM step in one compiled graph: for small networks, where most of the time is spent between kernels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value
from torch.fx.experimental.proxy_tensor import make_fx

from evenly.errors import UsageError
from evenly.optim.ascent import TINY
from evenly.optim.rules import Adaptive, Rule, Unnormalised
from evenly.optim.sharpness_aware import Closure, Displaced


class Compiled:
    """`sam.backward`, with both passes and the ascent compiled together by `torch.compile`.

    For SAM, ASAM and USAM with no option but `where`, `every` and `weight_decay`. The closure takes the batch and is
    traced: it must do the same every time, and the first call takes up to a minute. Up to rounding the gradient is
    that of `sam.backward`; a gradient that is not finite is displaced by nothing, and is not counted.

    >>> from evenly.optim import SAM
    >>> net = nn.Linear(2, 1)
    >>> fast = Compiled(SAM(net, rho=0.05), lambda x, y: ((net(x) - y) ** 2).mean(), backend="eager")
    >>> loss = fast.backward(torch.ones(3, 2), torch.ones(3, 1))
    >>> net.weight.grad.shape, fast.step(torch.ones(3, 2), torch.ones(3, 1), lr=0.1).equal(loss)
    (torch.Size([1, 2]), True)
    """

    def __init__(self, sam: Displaced, closure: Closure, **compile_options: Any) -> None:
        if sam.model is None:
            raise UsageError("a compiled step needs the model: SAM(model, rho=...), not its parameters")
        options = {"m": sam.m, "scaler": sam.scaler, "same_dropout": sam.same_dropout or None}
        given = [name for name, value in options.items() if value is not None]
        if given or sam.fraction < 1 or sam.replicas.wrappers or sam.replicas.sharded:
            raise UsageError(f"a compiled step cannot have {', '.join(given) or 'fraction, DDP or FSDP'}: sam.backward")
        if type(sam.rule) not in (Rule, Adaptive, Unnormalised):
            raise UsageError(f"{type(sam).__name__} has no compiled step: use sam.backward, or SAM, ASAM or USAM")
        if sam.statistics.tracking:
            raise UsageError("BatchNorm writes its statistics during the pass, which cannot be compiled: sam.backward")
        self.sam = sam
        self.evaluated = _Evaluated(sam.model, closure)
        self.options = compile_options
        self.graphs: dict[Any, Callable[..., list[Tensor]]] = {}

    def backward(self, *batch: Tensor) -> Tensor:
        """Add the gradient at the displaced weights to `.grad`, and return the loss at the weights."""
        live = [p for p in self.sam.params if p.requires_grad]
        loss, *gradients = self._run(live, batch, 0.0)
        for p, g in zip(live, gradients, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        return loss

    def step(self, *batch: Tensor, lr: float) -> Tensor:
        """The whole step, w ← w − lr · gradient, without leaving the graph; returns the loss at the old weights."""
        if not lr > 0:
            raise UsageError(f"lr={lr} is not a step size: give a positive number")
        return self._run([p for p in self.sam.params if p.requires_grad], batch, lr)[0]

    def _run(self, live: list[Tensor], batch: tuple[Tensor, ...], lr: float) -> list[Tensor]:
        sam = self.sam
        frozen = tuple(i for i, p in enumerate(sam.params) if not p.requires_grad)
        key = (self.evaluated.model.training, frozen, lr > 0, *[(t.shape, t.dtype) for t in batch])
        radius = 0.0 if sam.step % sam.every else sam.rho
        precision = torch.promote_types(live[0].dtype, torch.float32)
        inputs = [torch.tensor((radius, lr), dtype=precision), *[p.data for p in live], *batch]
        graph = self.graphs.get(key)
        if graph is None:
            graph = self.graphs[key] = self._compiled(inputs, len(live), lr > 0)
        sam.step += 1
        return graph(*inputs)

    def _compiled(self, inputs: list[Tensor], num: int, descends: bool) -> Callable[..., list[Tensor]]:
        """The step as a graph over plain tensors, compiled; there is then little left to check before each call."""
        sam, evaluated = self.sam, self.evaluated
        live = [i for i, p in enumerate(sam.params) if p.requires_grad]
        names = [f"model.{sam.names[i]}" for i in live]
        moved = [k for k, i in enumerate(live) if i in set(sam.moved)]
        adapting = sam.rule.adaptive if isinstance(sam.rule, Adaptive) else frozenset()
        eta = sam.rule.eta if isinstance(sam.rule, Adaptive) else 0.0

        def step(sizes: Tensor, *tensors: Tensor) -> list[Tensor]:
            rho, lr = sizes[0], sizes[1]
            w, batch = list(tensors[:num]), tensors[num:]

            def at(weights: list[Tensor]) -> Tensor:
                result: Tensor = functional_call(evaluated, dict(zip(names, weights, strict=True)), batch)
                return result

            g, loss = grad_and_value(at)(w)
            directions, squares = {}, []
            for k in moved:
                d = g[k] + sam.weight_decay * w[k] if sam.weight_decay else g[k]
                t = w[k].abs() + eta if live[k] in adapting else None
                squares.append((d if t is None else t * d).square().sum())
                directions[k] = d if t is None else t * t * d
            norm = torch.stack(squares).sum().sqrt()
            size = rho if isinstance(sam.rule, Unnormalised) else rho / norm
            usable = torch.isfinite(norm) & (norm > TINY)
            there = list(w)
            for k, direction in directions.items():
                there[k] = w[k] + torch.where(usable, size * direction, 0.0)
            gradients = grad_and_value(at)(there)[0]
            if not descends:
                return [loss, *gradients]
            for v, d in zip(w, gradients, strict=True):
                v.sub_(lr * d)
            return [loss]

        # Traced on copies: the trace runs the step, and this one must not count.
        traced = make_fx(step)(*[t.clone() for t in inputs])
        compiled: Callable[..., list[Tensor]] = torch.compile(traced, **{"dynamic": False, **self.options})
        return compiled


class _Evaluated(nn.Module):
    """The closure as a module over the model, so that the model's parameters can be replaced inside it."""

    def __init__(self, model: nn.Module, closure: Closure) -> None:
        super().__init__()
        self.model = model
        self.closure = closure

    def forward(self, *batch: Any) -> Tensor:
        return self.closure(*batch)
