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

    def recall(self, at: list[int], like: Params | None = None) -> list[Tensor] | None:
        """The vector at these parameters, with zeros for new ones; None if all are new."""
        known = self.known
        if not known:
            return None
        vectors = [known.get(i) for i in at]
        gaps = [k for k, t in enumerate(vectors) if t is None]
        if len(gaps) == len(at):
            return None
        for k in gaps:
            vectors[k] = torch.zeros_like((like or [])[k])
        vector = Known(vectors)  # type: ignore[arg-type]  # without gaps now
        if self.length is not None and not gaps and len(at) == len(known):
            vector.known_length = self.length
        return vector

    def add(self, rule: Rule, space: Space, at: list[int], lesson: Params, *, step: int = 0) -> None:
        """Learn from a group, and keep the result until the step is over."""
        known = self.known
        new = [k for k, i in enumerate(at) if i not in known]  # A parameter seen for the first time has no memory yet.
        old = [k for k, i in enumerate(at) if i in known] if new else list(range(len(at)))
        for places in (new, old):
            if places:
                part = lesson if len(places) == len(at) else [lesson[k] for k in places]
                before = None if places is new else [known[at[k]] for k in places]
                learned = rule.learn(Point(space, [], None, before, step), part)
                for k, t in zip(places, learned, strict=True):
                    i = at[k]
                    self.learned[i] = t if i not in self.learned else self.learned[i] + t
                    self.counts[i] = self.counts.get(i, 0) + 1

    def end_step(self, *, check: bool) -> None:
        """Keep the mean of what was learned, if it is finite; without `check` it is known to be, except on a device."""
        if not self.learned:
            return
        counts = self.counts
        mean = {i: t if counts[i] == 1 else t / counts[i] for i, t in self.learned.items()}
        self.learned, self.counts, self.length = {}, {}, None
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
        """Plain dictionaries."""
        return {"known": dict(self.known), "learned": dict(self.learned), "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any], params: Params) -> None:
        """Load a state onto the devices of the parameters; JSON may have turned its keys into strings."""
        for name in ("known", "learned"):
            mine = {int(i): t.to(params[int(i)].device).clone() for i, t in state[name].items()}
            setattr(self, name, mine)
        self.counts = {int(i): int(n) for i, n in state["counts"].items()}
        self.length = None
