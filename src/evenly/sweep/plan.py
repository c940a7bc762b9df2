"""A plan: named jobs, their dependencies, and the order that follows from them."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenly.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Job:
    """One piece of work: a function that writes to a folder of runs, with results that depend only on its arguments.

    Parameters
    ----------
    name
        The name shown to the user, such as `USEFUL, seed 2`; unique in its plan.
    call
        `module:function` of `f(runs, **arguments) -> plain JSON`. It may be called again at any time: it does not
        repeat finished work, and resumes stopped work.
    arguments
        Plain JSON.
    needs
        Its dependencies: the names of the jobs that must be done before this one.
    cost
        Its length, relative to the other jobs of its plan, for the time that is left.
    """

    name: str
    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    cost: float = 1.0


class Plan(Mapping[str, Job]):
    """Jobs by name; `layers` orders them so that each comes after its dependencies.

    >>> plan = Plan([Job("early", "m:f"), Job("plain", "m:f"), Job("useful", "m:f", needs=("early",))])
    >>> [[job.name for job in layer] for layer in plan.layers()]
    [['early', 'plain'], ['useful']]
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs: dict[str, Job] = {}
        for job in jobs:
            if job.name in self._jobs:
                raise UsageError(f"a plan has two jobs named {job.name!r}: name each once.")
            self._jobs[job.name] = job
        for job in self._jobs.values():
            for needed in job.needs:
                if needed not in self._jobs:
                    raise UsageError(f"{job.name!r} needs {needed!r}. {did_you_mean(needed, self._jobs)}")
            try:
                json.dumps(job.arguments)
            except (TypeError, ValueError) as error:
                raise UsageError(f"{job.name!r}: its arguments are not plain JSON: {error}.") from error
        self._layers = self._sort()

    def __getitem__(self, name: str) -> Job:
        return self._jobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def layers(self) -> list[list[Job]]:
        """The jobs in layers: each needs only jobs of the layers before its own."""
        return self._layers

    def dependants(self) -> dict[str, list[str]]:
        """For every job, the names of the jobs that need it."""
        dependants: dict[str, list[str]] = {name: [] for name in self._jobs}
        for job in self._jobs.values():
            for needed in job.needs:
                dependants[needed].append(job.name)
        return dependants

    @property
    def digest(self) -> str:
        """Twelve hex digits that identify the plan."""
        rows = [[job.name, job.call, job.arguments, job.needs] for job in self._jobs.values()]
        return hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=6).hexdigest()

    def _sort(self) -> list[list[Job]]:
        """Kahn's algorithm (1962), layer by layer: time and memory are linear in the jobs and their dependencies."""
        missing = {name: len(set(job.needs)) for name, job in self._jobs.items()}
        dependants: dict[str, set[str]] = {name: set() for name in self._jobs}
        for job in self._jobs.values():
            for needed in job.needs:
                dependants[needed].add(job.name)
        layers: list[list[Job]] = []
        ready = [name for name, count in missing.items() if count == 0]
        while ready:
            layers.append([self._jobs[name] for name in ready])
            following = []
            for name in ready:
                for dependant in dependants[name]:
                    missing[dependant] -= 1
                    if missing[dependant] == 0:
                        following.append(dependant)
            order = {name: place for place, name in enumerate(self._jobs)} if len(following) > 1 else {}
            ready = sorted(following, key=lambda name: order.get(name, 0))
        if sum(map(len, layers)) < len(self._jobs):
            stuck = next(name for name, count in missing.items() if count)
            raise UsageError(f"{stuck!r} needs itself, through the jobs it needs: a plan has no cycles.")
        return layers
