"""What a rule remembers between optimizer steps: one vector, the same on every process.

A step may see several perturbation groups, processes and micro-batches. Each teaches a lesson; their mean is learned
when the step is over, so that a rule behaves alike however its batch is divided, and the state of one process is
everybody's.
"""

from typing import Any

import torch
from torch import Tensor

from evenly.optim.rule import Here, Rule
from evenly.optim.space import Lists
from evenly.tree import Params


class Memory:
    """A vector with a tensor for each parameter that has one, and the lessons of the step that is not over.

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
        """The vector at these parameters, with zeros for one that is new; None if all are."""
        known = self.known
        if not known or not any(i in known for i in at):
            return None
        return [known[i] if i in known else torch.zeros_like((like or [])[k]) for k, i in enumerate(at)]

    def add(self, at: list[int], lesson: Params) -> None:
        """Keep what a group taught until the step is over."""
        for i, t in zip(at, lesson, strict=True):
            self.lessons[i] = t if i not in self.lessons else self.lessons[i] + t
            self.counts[i] = self.counts.get(i, 0) + 1

    def learn(self, rule: Rule, *, step: int) -> None:
        """Make the mean of the lessons part of the memory: the step is over."""
        if not self.lessons:
            return
        new = [i for i in self.lessons if i not in self.known]  # A parameter met for the first time has no past.
        for at in (new, [i for i in self.lessons if i in self.known]):
            if at:
                lesson = [self.lessons[i] if (n := self.counts[i]) == 1 else self.lessons[i] / n for i in at]
                old = None if at is new else [self.known[i] for i in at]
                learned = rule.learn(Here(Lists(), [], None, old, step), lesson)
                self.known.update(zip(at, learned, strict=True))
        self.lessons, self.counts = {}, {}

    def state_dict(self) -> dict[str, Any]:
        """Plain dictionaries."""
        return {"known": dict(self.known), "lessons": dict(self.lessons), "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any], params: Params) -> None:
        """Take over a state, onto the devices of the parameters; keys may have become strings on the way."""
        for name in ("known", "lessons"):
            mine = {int(i): t.to(params[int(i)].device).clone() for i, t in state[name].items()}
            setattr(self, name, mine)
        self.counts = {int(i): int(n) for i, n in state["counts"].items()}
