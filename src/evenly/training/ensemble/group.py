"""Members that share one rule.

Shapes: K members, P parameters.
"""

from fnmatch import fnmatchcase

import torch
from torch import Tensor

from evenly.training.ensemble.feed import Feed
from evenly.training.ensemble.layout import Layout
from evenly.training.ensemble.passes import Passes, Rows
from evenly.training.ensemble.plan import Plan
from evenly.training.ensemble.rules import Displaced, Rule, RuleSettings, rule_of
from evenly.training.ensemble.update import Rates, Update


class Group:
    """A range of rows that are stepped together."""

    def __init__(
        self,
        rule: Rule,
        *,
        feed: Feed,
        passes: Passes,
        w_KP: Tensor,
        velocity_KP: Tensor | None,
        rates: Rates,
    ) -> None:
        self.rule, self.feed, self.passes = rule, feed, passes
        self.w = Rows(passes.layout, w_KP)
        self.g = Rows(passes.layout, torch.empty_like(w_KP))
        self.update = Update(w_KP, self.g.flat_KP, velocity_KP, rates)

    @property
    def memory(self) -> Tensor | None:
        """What the rule remembers, a row for each member."""
        return self.rule.memory_KP if isinstance(self.rule, Displaced) else None

    @memory.setter
    def memory(self, rows_KP: Tensor | None) -> None:
        if isinstance(self.rule, Displaced):
            self.rule.memory_KP = None if rows_KP is None else rows_KP.to(self.w.flat_KP).clone()

    def step(self, number: int, factor: float) -> None:
        """One step of every member, with `factor` times its learning rate."""
        self.rule(self.passes, self.w, self.g, self.feed.batch(number), number)
        self.update(factor)


def make_groups(plan: Plan, *, feed: Feed, passes: Passes, w_KP: Tensor, velocity_KP: Tensor | None) -> list[Group]:
    """The groups of a plan, on rows in the plan's order."""
    layout = passes.layout
    names = [plan.rule[member] for member in plan.order()]
    columns = {name: plan.column(name, layout) for name in ("rho", "star", "lr", "momentum", "weight_decay")}
    adaptive_P = _adaptive(layout, plan.adapt)
    groups = []
    for name in dict.fromkeys(names):
        first = names.index(name)
        rows = slice(first, first + names.count(name))
        own = {key: column[rows] for key, column in columns.items()}
        part = feed.rows(rows)
        groups.append(
            Group(
                rule_of(
                    name,
                    RuleSettings(
                        own["rho"], part.seeds, plan.eta, adaptive_P, own["star"], own["momentum"], own["weight_decay"]
                    ),
                    layout,
                ),
                feed=part,
                passes=passes.rows(rows),
                w_KP=w_KP[rows],
                velocity_KP=None if velocity_KP is None else velocity_KP[rows],
                rates=Rates(own["lr"], own["momentum"], own["weight_decay"]),
            )
        )
    return groups


def _adaptive(layout: Layout, pattern: str) -> Tensor:
    """Which of the P parameters adapt, for ASAM."""
    flags = [torch.full((shape.numel(),), fnmatchcase(name, pattern)) for name, shape in layout.shapes.items()]
    return torch.cat(flags).to(layout.device)
