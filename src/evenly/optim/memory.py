"""A rule's memory between optimizer steps: one vector, the same on every process.

A step may have several perturbation groups, processes and micro-batches. Each contributes a lesson, and the rule learns
their mean when the step is over. So a rule behaves the same however its batch is divided, and the state of any process
serves all.
"""

from typing import Any

import torch
from torch import Tensor

from evenly import tree
from evenly.optim.device_space import on_one_device
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Lists
from evenly.tree import Params


class Memory:
    """A vector, with a tensor for each parameter seen so far, and the lessons of the current step.

    >>> memory = Memory()
    >>> memory.add([0], [torch.tensor([2.0])]), memory.recall([0])
    (None, None)
    >>> memory.learn(Rule(), step=0)
    >>> memory.recall([0])
    [tensor([2.])]
    """

    def __init__(self) -> None:
        self.known: dict[int, Tensor] = {}
        self.lessons: dict[int, Tensor] = {}
        self.counts: dict[int, int] = {}

    def recall(self, at: list[int], like: Params | None = None) -> list[Tensor] | None:
        """The vector at these parameters, with zeros for new ones; None if all are new."""
        known = self.known
        if not known or not any(i in known for i in at):
            return None
        return [known[i] if i in known else torch.zeros_like((like or [])[k]) for k, i in enumerate(at)]

    def add(self, at: list[int], lesson: Params) -> None:
        """Keep a group's lesson until the step is over."""
        for i, t in zip(at, lesson, strict=True):
            self.lessons[i] = t if i not in self.lessons else self.lessons[i] + t
            self.counts[i] = self.counts.get(i, 0) + 1

    def learn(self, rule: Rule, *, step: int) -> None:
        """End the step: learn the mean of its lessons."""
        if not self.lessons:
            return
        new = [i for i in self.lessons if i not in self.known]  # A parameter seen for the first time has no memory yet.
        for at in (new, [i for i in self.lessons if i in self.known]):
            if at:
                lesson = [self.lessons[i] if (n := self.counts[i]) == 1 else self.lessons[i] / n for i in at]
                old = None if at is new else [self.known[i] for i in at]
                learned = _finite(rule.learn(Point(Lists(), [], None, old, step), lesson), old)
                self.known.update(zip(at, learned, strict=False))
        self.lessons, self.counts = {}, {}

    def state_dict(self) -> dict[str, Any]:
        """Plain dictionaries."""
        return {"known": dict(self.known), "lessons": dict(self.lessons), "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any], params: Params) -> None:
        """Load a state onto the devices of the parameters; JSON may have turned its keys into strings."""
        for name in ("known", "lessons"):
            mine = {int(i): t.to(params[int(i)].device).clone() for i, t in state[name].items()}
            setattr(self, name, mine)
        self.counts = {int(i): int(n) for i, n in state["counts"].items()}


def _finite(learned: Params, old: Params | None) -> Params:
    """What was learned on a device, unless it is not finite: then the old memory, or nothing if there is none yet.

    On the host a lesson that is not finite was dropped before. A device is asked, which waits, only until it has
    learned something; from then on it chooses by itself.

    >>> _finite([torch.ones(1)], None)
    [tensor([1.])]
    """
    if not on_one_device(learned):
        return learned
    good = torch.isfinite(tree.norm(learned))
    if old is None:
        return learned if bool(good) else []
    return [torch.where(good, new, before) for new, before in zip(learned, old, strict=True)]
