"""The gradient at displaced weights: `backward(closure)` of every rule, which changes nothing but `.grad`."""

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any, ClassVar, Literal, Self

from torch import Tensor, nn

from evenly import tree
from evenly.errors import UsageError
from evenly.optim import step_end
from evenly.optim.closures import WithGradients
from evenly.optim.device_space import Skips
from evenly.optim.groups import Batch
from evenly.optim.memory import Memory
from evenly.optim.options import check, refuse_non_numbers, refuse_positional, refuse_unknown
from evenly.optim.passes import ClosurePasses
from evenly.optim.radius import GroupRadii, Radius, radius_at
from evenly.optim.replicas import Replicas
from evenly.optim.rule import Rule, settings
from evenly.optim.scratch import Scratch
from evenly.optim.select import Place, Where, as_reusable, group_radii, named_parameters, refuse_new_parameters, select
from evenly.optim.statistics import RunningStatistics
from evenly.optim.step import Collector, Step
from evenly.rules import RULES

Closure = Callable[..., Any]
_HOOKS = attrgetter("_post_accumulate_grad_hooks")
_NOTHING = contextlib.nullcontext()


class DisplacedGradient:
    """A gradient computation: `backward(closure)` fills `.grad` with the gradient at displaced weights.

    Afterwards the weights are bit for bit what they were, BatchNorm's statistics have advanced once, and the first loss
    is returned. Optimizer, scheduler, clipping and checkpoints stay the user's. Micro-batches whose gradients add up
    before one optimizer step count as one step, which ends when an optimizer or other code changes the weights or
    `.grad`.

    Parameters
    ----------
    model
        A module, or parameters as an optimizer takes them. Only with the module can running statistics advance once
        and DDP skip synchronisation. Wrap and shard (DDP, FSDP2) first, as for an optimizer.
    rule
        Where to move, and how to combine the gradients.
    rho
        The size of the displacement: a number, or a function of the step, counted from 0. An attribute that may be
        set between steps. Parameter groups may have their own, `{"params": ..., "rho": 0.1}`. 0 is a plain step.
    where
        Which parameters are displaced; the others are part of no norm. Name patterns, modules, module types, or a
        function.
    every
        Displace every k-th step only; the others are plain.
    fraction
        Climb on the first part of the batch only; needs the batch: `backward(loss, x, y)`.
    m
        The perturbation group: examples that share one displacement. None means the batch of one call on one process;
        "all" the batch of all processes together; a number divides the batch of a process (for a loss that is a mean
        over examples), and batch × processes equals "all". A number needs the batch.
    weight_decay
        λ‖w‖²/2 is added to the objective of the ascent, as in the authors' JAX code, and nothing to `.grad`.
    adaptive, eta, adapt
        Whether the ball is ASAM's, stretched by |w| + η for the parameters whose names match `adapt`.
    same_dropout
        Whether the second pass draws the random numbers of the first again, as in the authors' JAX code.
    scaler
        A GradScaler; the closure then returns the unscaled loss. Without it, a closure may scale the loss itself if the
        rule divides by a norm.
    backward
        A framework's own backward function, such as Lightning's `self.manual_backward` or `accelerator.backward`. It
        is called once a step, on a loss whose gradient is the one at the displaced weights.
    """

    #: The rule class, available without a model.
    rule_type: ClassVar[type[Rule]] = Rule
    #: How many passes through the whole network a displaced step makes.
    passes: int = 2
    #: The gradient that the last call left: its parameter's place, the tensor, and the versions of both.
    _left: tuple[int, weakref.ref[Tensor], int, int] | None = None

    @classmethod
    def passes_with(cls, options: Mapping[str, Any]) -> int:
        """How many passes a displaced step makes with these options."""
        return cls.passes

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse unknown options, and settings that are no numbers, before any `__init__` runs."""
        refuse_positional(cls, args)
        refuse_unknown(cls, options)
        refuse_non_numbers(cls.rule_type, options)
        self = super().__new__(cls)
        step_end.tell(self)  # Here, since copies are made without __init__.
        return self

    def __init__(
        self,
        model: nn.Module | Iterable[Any],
        rule: Rule,
        *,
        rho: Radius,
        where: Where = None,
        every: int = 1,
        fraction: float = 1.0,
        m: int | Literal["all"] | None = None,
        weight_decay: float = 0.0,
        adaptive: bool = False,
        eta: float | None = None,
        adapt: str | None = None,
        same_dropout: bool = False,
        scaler: Any = None,
        backward: Callable[[Tensor], Any] | None = None,
    ) -> None:
        model = as_reusable(model)
        named = named_parameters(model)
        chosen = {id(p) for _, p in select(model, named, where)}
        self.model = model if isinstance(model, nn.Module) else None
        self.names = [name for name, _ in named]
        self.params = [p for _, p in named]
        self.moved = [i for i, p in enumerate(self.params) if id(p) in chosen]
        self.refuse_frozen()
        check(
            rule, every=every, fraction=fraction, m=m, weight_decay=weight_decay, adaptive=adaptive,
            same_dropout=same_dropout,
        )  # fmt: skip
        if not adaptive and (eta is not None or adapt is not None):
            raise UsageError("eta and adapt belong to the stretched ball of ASAM: give adaptive=True too")
        if scaler is not None and backward is not None:
            raise UsageError(
                "scaler and backward: the framework that provides backward scales the loss; leave out scaler"
            )
        self.adaptive = self._adaptive_flags(adapt) if adaptive else None
        self.rule = replace(rule, eta=0.01 if eta is None else eta) if adaptive else rule
        self.radii = GroupRadii(group_radii(model), self.params)
        self.every, self.fraction = int(every), fraction
        self.m = m if m is None or isinstance(m, str) else int(m)
        self.weight_decay, self.same_dropout, self.scaler = weight_decay, same_dropout, scaler
        self.own_backward = backward
        #: How many optimizer steps have begun.
        self.num_steps = 0
        self.skips = Skips()
        #: Which micro-batch of its step the last call was, counted from 0.
        self.micro = 0
        self.memory = Memory()
        self.rho = rho
        self.statistics = RunningStatistics(model)
        self.replicas = Replicas(model, dict(named))
        self.whole = len(self.moved) == len(self.params)
        self.plain = tree.swappable(self.params)
        reuses = self.whole and self.plain and not self.replicas.wrappers
        self.scratch = Scratch(self.params) if reuses else None
        #: Memory for the weights while they are displaced where they lie, as on a device.
        self.aside: list[Tensor] | None = None
        self._located = False
        #: Whether a loss has ever had a gradient for any of the parameters.
        self._reached = False

    @property
    def skipped(self) -> int:
        """How many ascents were skipped because their gradient was not finite; on a device, reading it waits."""
        return self.skips.total()

    @skipped.setter
    def skipped(self, value: int) -> None:
        self.skips = Skips(value)

    @property
    def watched(self) -> Tensor | None:
        """The parameter whose `.grad` a closure must leave alone: the first that has one; None where DDP moves it."""
        return None if self.replicas.rebuckets else next((p for p in self.params if p.requires_grad), None)

    @property
    def rho(self) -> float:
        """The radius of the current or next step."""
        return radius_at(self._rho, self.num_steps)

    @rho.setter
    def rho(self, value: Radius) -> None:
        radius_at(value, self.num_steps)
        self._rho = value if callable(value) else float(value)

    def backward(self, closure: Closure, *batch: Any) -> Any:
        """Add the gradient at the displaced weights to `.grad`, and return the loss at the weights, detached.

        `closure` returns the loss and does not call backward. It is called with `batch`, if one is given. If it
        returns `(loss, outputs)`, so does this, of the first pass; with several perturbation groups `outputs` is a
        list with one entry for each.
        """
        if self.own_backward is not None or any(map(_HOOKS, self.params)):
            loss, rest = self._loss(closure, batch)
            (self.own_backward or Tensor.backward)(loss)
            return loss.detach() if rest is None else (loss.detach(), *rest)
        result = self.take(ClosurePasses(closure, self.params, self.replicas, self.scale_loss, self.watched), batch)
        self.note()
        return result.detach()

    def loss(self, closure: Closure, *batch: Any) -> Any:
        """The loss; calling backward on it adds the gradient at the displaced weights to `.grad`.

        For frameworks that call backward themselves, and may scale the loss first. All passes are made here, and the
        weights are restored before this returns; backward only stores the result.

        >>> import torch
        >>> from evenly.optim import SAM
        >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
        >>> loss = SAM([w], rho=0.5).loss(lambda: (w**2).sum() / 2)
        >>> (2 * loss).backward()
        >>> loss.item(), w.grad
        (12.5, tensor([6.6000, 8.8000]))
        """
        loss, rest = self._loss(closure, batch)
        return loss if rest is None else (loss, *rest)

    def _loss(self, closure: Closure, batch: Batch) -> tuple[Tensor, tuple[Any, ...] | None]:
        if self.scaler is not None:
            raise UsageError(
                "scaler=...: a loss whose backward someone else calls (a framework, or hooks on accumulated gradients) "
                "is not scaled here; drop scaler"
            )
        collected = Collector()
        result = self.take(
            ClosurePasses(closure, self.params, self.replicas, self.scale_loss, self.watched), batch, collected
        )
        leaves, gradients = collected.pairs(self.params)
        self._reached |= any(g is not None for g in collected.own)
        self._refuse_unreached()
        loss = WithGradients.apply(result.loss.detach(), self.note, gradients, *leaves)  # type: ignore[no-untyped-call]  # torch's own
        return loss, result.rest

    def take(self, passes: Any, batch: Batch, into: Collector | None = None) -> Any:
        """Make the passes of one call; `into` collects the gradients that otherwise go to `.grad`."""
        step, micro = self.begin()
        with self.replicas.reducing() if self.replicas.sharded else _NOTHING:
            result = Step(self, passes, step, micro).take(batch, into)
        self.num_steps, self.micro = step + 1, micro
        return result

    def begin(self) -> tuple[int, int]:
        """Which optimizer step this call belongs to, and which micro-batch of it this is, both counted from 0."""
        if not self._located:
            if not self.replicas.sharded:  # FSDP2 shows other tensors while weights are gathered
                refuse_new_parameters(self.model, self.params, type(self).__name__)
            self._find_replicas()
        if self._accumulates():
            return self.num_steps - 1, self.micro + 1
        if self.rule.remembers:
            self.memory.follow(self.params)
            self.memory.end_step(check=not self.rule.ascent_checks_input)
        return self.num_steps, 0

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss times the GradScaler's factor, if there is a scaler."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def step(self, *_: Any, **__: Any) -> None:
        """Always refused: the optimizer takes the step."""
        raise UsageError(
            f"{type(self).__name__} computes gradients and takes no step: call sam.backward(...), then "
            "optimizer.step(). For an optimizer whose step takes a closure: evenly.optim.SharpnessAware(optimizer, sam)"
        )

    first_step = second_step = step

    def note(self) -> None:
        """Remember the gradient just written, to see later whether it was cleared or changed."""
        for i, p in enumerate(self.params):
            g = p.grad
            if g is not None:
                self._left = (i, weakref.ref(g), g._version, p._version)
                self._reached = True
                return
        self._refuse_unreached()

    def _refuse_unreached(self) -> None:
        """Refuse a loss without a gradient for any parameter, unless an earlier one had some: it would be plain SGD."""
        if not self._reached:
            raise UsageError(
                f"the loss depends on none of the {len(self.params)} parameters of {type(self).__name__}: build it "
                "from the model that the closure calls, after all that replaces parameters (adapters, to_empty, "
                "load_state_dict(assign=True))"
            )

    def refuse_frozen(self) -> None:
        """Refuse to displace nothing: every step would be plain."""
        if not any(self.params[i].requires_grad for i in self.moved):
            names = ", ".join(self.names[i] for i in self.moved)
            raise UsageError(
                f"all that {type(self).__name__} displaces is frozen ({names}): call requires_grad_(True) on it, or "
                "displace other parameters"
            )

    def end_step(self, optimizer: Any = None) -> None:
        """Make the next call begin a new step, for loops that clear `.grad` only after their closure has run."""
        self._left = None
        for old, new in self.radii.follow(optimizer) if optimizer is not None and self.radii else ():
            warnings.warn(
                f"the optimizer's parameter groups were replaced (load_state_dict): the step that has just been made "
                f"had rho={old!r}, later ones have the rho={new!r} of the new group. Build "
                f"{type(self).__name__} after loading the optimizer's state.",
                stacklevel=2,
            )

    def awaits(self, optimizer: Any) -> bool:
        """Whether a step of this optimizer uses the gradients that the last call left: it holds some of the parameters.

        Not only the parameter in `_left`: the optimizer may be that of another part of the model.
        """
        if self._left is None:
            return False
        known = set(map(id, self.params))
        return any(id(p) in known for group in optimizer.param_groups for p in group["params"])

    def _accumulates(self) -> bool:
        """Whether the gradient of the last call is still in place, so that this call adds to it."""
        if self._left is None:
            return False
        i, left, version, weights = self._left
        p = self.params[i]
        return p.grad is not None and left() is p.grad and p.grad._version == version and p._version == weights

    def _find_replicas(self) -> None:
        """Find the processes that share gradients; Lightning's wrapper may appear only after construction."""
        if self.replicas.unidentified:
            self.replicas = Replicas(self.model, dict(zip(self.names, self.params, strict=True)))
        if self.replicas.unidentified and (self.own_backward is None or self.rule.remembers):
            raise UsageError(
                "there are several processes, and the model shows no DDP or FSDP2 by which they share gradients: build "
                f"{type(self).__name__} from the wrapped model; in Lightning from the LightningModule, with "
                "backward=self.manual_backward; backward=torch.Tensor.backward if you average gradients yourself"
                + (" (this rule remembers gradients and must see the wrapper)" if self.own_backward else "")
            )
        if self.replicas.sharded and self.replicas.count > 1 and self.m is None:
            raise UsageError(
                'm=None is the batch of one process, but under FSDP2 all processes share one displacement: give m="all"'
            )
        self._located = True

    def _adaptive_flags(self, adapt: str | None) -> list[bool]:
        if adapt not in (None, "*") and any(isinstance(name, Place) for name in self.names):
            raise UsageError(
                f"adapt={adapt!r} is a pattern over names, and parameters were given without: pass the model, or "
                "model.named_parameters()"
            )
        pattern = "*weight*" if adapt is None else adapt
        flags = [isinstance(name, Place) or fnmatchcase(name, pattern) for name in self.names]
        if not any(flags):
            raise UsageError(f"adapt={pattern!r} matches no parameter name: that would be SAM; use evenly.SAM")
        return flags

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to continue bit for bit: the step, the skipped ascents, the rule's memory.

        It is the same on every process; under FSDP2 all must call this, since shards are gathered. The settings are
        included for reading, and checked when the state is loaded.
        """
        return {
            "step": self.num_steps,
            "skipped": self.skipped,
            "rho": self.rho,
            "settings": settings(self.rule),
            "memory": self.memory.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict` of the same rule, for parameters of the same shapes."""
        missing = {"step", "skipped", "rho", "settings", "memory"}.difference(state)
        if missing:
            raise UsageError(
                f"the state has no {', '.join(sorted(missing))}: pass what state_dict() of {type(self).__name__} "
                "returned"
            )
        if state["settings"] != settings(self.rule):
            raise UsageError(
                f"the state is of {_in_words(state['settings'])}, this is {_in_words(settings(self.rule))}: build the "
                "same rule to resume"
            )
        self.memory.load_state_dict(state["memory"], self.params)  # This may refuse, so it is first.
        self.num_steps, self.skipped = int(state["step"]), int(state["skipped"])
        if not callable(self._rho):
            self.rho = float(state["rho"])
        self._left = None

    # Weak references cannot be copied; a copy's gradients are others anyway. Memory set aside holds no information.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_left": None, "aside": None}

    def __repr__(self) -> str:
        moved = f"{len(self.moved)} of {len(self.params)} parameters"
        return f"{type(self).__name__}(rho={self.rho:g}, displaces {moved}, {self.num_steps} steps)"


def _in_words(given: Mapping[str, Any]) -> str:
    """The settings of a rule in a state, under the name by which users know the rule."""
    from evenly.optim.cost import rule_class

    public = {(kind := rule_class(name)).rule_type.__name__: kind.__name__ for name in reversed(RULES)}
    options = ", ".join(f"{name}={value!r}" for name, value in given.items() if name != "rule" and value is not None)
    return f"{public.get(given.get('rule', ''), given.get('rule'))}({options})"
