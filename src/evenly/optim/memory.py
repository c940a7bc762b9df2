"""A rule's memory between optimizer steps: one vector, the same on every process.

A step may have several perturbation groups, processes and micro-batches. The rule learns from each, and their mean is
its memory when the step is over. So a rule behaves the same however its batch is divided, and the state of any process
serves all.
"""

import math
from typing import Any

import torch
from torch import Tensor

from evenly import tree
from evenly.errors import UsageError
from evenly.optim.device_space import on_one_device
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Space
from evenly.tree import Params


class Known(list[Tensor]):
    """A vector whose length was computed before."""

    known_length: float


class Memory:
    """A vector, with a tensor for each parameter seen so far, and what was learned in the current step.

    >>> from evenly.optim.space import Lists
    >>> memory = Memory()
    >>> memory.add(Rule(), Lists(), [0], [torch.tensor([2.0])]), memory.recall([0])
    (None, None)
    >>> memory.end_step(check=True)
    >>> memory.recall([0])
    [tensor([2.])]
    """

    def __init__(self) -> None:
        self.known: dict[int, Tensor] = {}
        self.learned: dict[int, Tensor] = {}
        self.counts: dict[int, int] = {}
        self.length: float | None = None
        #: The vector last recalled, and where.
        self._recalled: tuple[list[int], Known] | None = None

    def recall(self, at: list[int], like: Params | None = None) -> list[Tensor] | None:
        """The vector at these parameters, with zeros for new ones; None if all are new."""
        known = self.known
        if not known:
            return None
        if self._recalled is not None and self._recalled[0] == at:
            return self._recalled[1]
        new = set(at) - known.keys()
        if len(new) == len(at):
            return None
        vector = Known(known[i] if i not in new else torch.zeros_like((like or [])[k]) for k, i in enumerate(at))
        if self.length is not None and not new and len(at) == len(known):
            vector.known_length = self.length
        self._recalled = (at, vector)
        return vector

    def add(self, rule: Rule, space: Space, at: list[int], memory_input: Params, *, step: int = 0) -> None:
        """Learn from a group, and keep the result until the step is over."""
        known = self.known
        new = set(at) - known.keys()  # A parameter seen for the first time has no memory yet.
        if 0 < len(new) < len(at):
            for places in ([k for k, i in enumerate(at) if (i in new) is first] for first in (True, False)):
                self.add(rule, space, [at[k] for k in places], [memory_input[k] for k in places], step=step)
            return
        before = None if new else [known[i] for i in at]
        learned = dict(zip(at, rule.update_memory(Point(space, [], None, before, step), memory_input), strict=True))
        if not self.learned:
            self.learned, self.counts = learned, dict.fromkeys(at, 1)
            return
        for i, t in learned.items():
            self.learned[i] = t if i not in self.learned else self.learned[i] + t
            self.counts[i] = self.counts.get(i, 0) + 1

    def follow(self, params: Params) -> None:
        """Go where the parameters are, in their precision: `model.double()` or `model.to(...)` may have moved them."""
        for each in (self.known, self.learned):
            moved = {i: t for i, t in each.items() if t.dtype is not params[i].dtype or t.device != params[i].device}
            if moved:
                each.update({i: t.to(params[i].device, params[i].dtype) for i, t in moved.items()})
                self.length = self._recalled = None

    def end_step(self, *, check: bool) -> None:
        """Keep the mean of what was learned, if it is finite; without `check` it is known to be, except on a device."""
        if not self.learned:
            return
        mean, counts = self.learned, self.counts
        if set(counts.values()) != {1}:
            mean = {i: t / counts[i] for i, t in mean.items()}
        self.learned, self.counts, self.length, self._recalled = {}, {}, None, None
        values = list(mean.values())
        if on_one_device(values):
            self.known.update(self._finite(mean, torch.isfinite(tree.norm(values))))
        elif not check:
            self.known.update(mean)
        elif math.isfinite(length := tree.length(values)):
            self.known.update(mean)
            self.length = length if len(mean) == len(self.known) else None

    def _finite(self, mean: dict[int, Tensor], good: Tensor) -> dict[int, Tensor]:
        """What was learned on a device if it is `good`; else the old memory, or nothing if there is none yet.

        A device is asked, which waits, only until it has learned something; from then on it chooses by itself.
        """
        if any(i not in self.known for i in mean):
            return mean if bool(good) else {}
        return {i: torch.where(good, t, self.known[i]) for i, t in mean.items()}

    def state_dict(self) -> dict[str, Any]:
        """Plain dictionaries of whole tensors; shards are gathered, which all processes must do together."""
        known, learned = ({i: _gathered(t) for i, t in each.items()} for each in (self.known, self.learned))
        return {"known": known, "learned": learned, "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any], params: Params) -> None:
        """Load a state onto the devices and shards of the parameters; JSON may have turned its keys into strings."""
        known, learned = ({int(i): t for i, t in state[name].items()} for name in ("known", "learned"))
        for i, t in [*known.items(), *learned.items()]:
            shape = tuple(params[i].shape) if i < len(params) else None
            if tuple(t.shape) != shape:
                own = f"there are only {len(params)}" if shape is None else f"here it has {shape}"
                raise UsageError(
                    f"the state remembers parameter {i} with shape {tuple(t.shape)}, and {own}: it is of another model"
                )
        self.known, self.learned = (
            {i: tree.sharded_like(t.to(params[i].device).clone(), params[i]) for i, t in each.items()}
            for each in (known, learned)
        )
        self.counts = {int(i): int(n) for i, n in state["counts"].items()}
        self.length = self._recalled = None


def _gathered(t: Tensor) -> Tensor:
    """The whole of a sharded tensor, on the host: all of them together may not fit on a device."""
    return tree.whole(t).cpu() if tree.is_shard(t) else t
