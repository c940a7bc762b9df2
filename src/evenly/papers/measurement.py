"""Do the work of an experiment part by part, as a plan of jobs whose results are stored."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.data.catalogue import data_root as root_of
from evenly.data.catalogue import entry
from evenly.errors import DataError, EvenlyError, UsageError, did_you_mean
from evenly.papers.experiment import Context, Experiment, Measured, Part, PartResult, resolve
from evenly.papers.part_runs import runs_of
from evenly.papers.part_store import discard, is_stored, load, store
from evenly.recipe import Recipe
from evenly.sweep.launch import HERE, launch
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import COLLECTING
from evenly.sweep.where import Where
from evenly.typed import from_mapping

Values = Mapping[str, Mapping[int, float]]  # of a quantity, by seed


def check(experiment: Experiment, scale: str, *, seeds: Sequence[int] | None, data_root: str | None) -> list[Part]:
    """Check everything about an experiment that can be checked without running it, and return its parts."""
    parts = experiment.parts(scale, seeds)
    for part in parts:
        part.function()
        json.dumps(part.arguments)
        if "recipe" in part.arguments:
            _check_recipe(part)
    if experiment.derived:
        resolve(experiment.derived)
    root = root_of(data_root)
    for name in experiment.scales[scale].data:
        missing = entry(name).missing(root)
        if missing:
            how = "; ".join(f"evenly data get {each}" for each in missing)
            raise DataError(f"{experiment.key} at {scale} needs {name}, which is not in {root}. Get it: {how}")
    return parts


def _check_recipe(part: Part) -> None:
    """Refuse an invalid recipe now rather than when its turn comes."""
    from evenly.models.catalogue import CATALOGUE

    try:
        recipe = from_mapping(Recipe, part.arguments["recipe"])
        entry(recipe.data.name)
        if ":" not in recipe.model.name and recipe.model.name not in CATALOGUE:
            raise UsageError(f"there is no model {recipe.model.name!r}. {did_you_mean(recipe.model.name, CATALOGUE)}")
        if recipe.model.weights and not Path(recipe.model.weights).is_file():
            raise DataError(f"model.weights: there is no file {recipe.model.weights}.")
    except EvenlyError as error:
        raise type(error)(f"part {part.name!r}: {error}") from error


def measure(
    experiment: Experiment,
    scale: str,
    *,
    seeds: Sequence[int] | None = None,
    runs: str | os.PathLike[str] = "runs",
    data_root: str | None = None,
    where: Where = HERE,
    fresh: bool = False,
) -> tuple[Measured, float]:
    """The results of an experiment's parts, and the minutes they took, including those done before.

    Finished parts are read, the others run on `where` (by default as many at once as this machine has cores). After an
    interruption the same call continues with the rest. `fresh` runs everything again.
    """
    parts = check(experiment, scale, seeds=seeds, data_root=data_root)
    context = Context(Path(runs), data_root)
    if fresh:
        for part in parts:
            discard(context, part)
    plan = plan_parts(context, {experiment.key: parts})
    launch(plan, where, runs=context.runs, what=f"{experiment.key} at {scale}", stop_at_failure=True)
    measured, minutes = load(context, parts)
    return derive(experiment, measured), minutes


def plan_parts(context: Context, parts: Mapping[str, Sequence[Part]]) -> Plan:
    """The unfinished parts of one or several experiments as jobs, after the runs that they train; shared ones once."""
    jobs: list[Job] = []
    planned = set()
    for key, own in parts.items():
        for part in own:
            if part.digest in planned or is_stored(context, part):
                continue
            planned.add(part.digest)
            name = f"{key}, {part.name}"
            runs = runs_of(context, part, under=name)
            given = {"name": part.name, "work": part.address, "given": dict(part.arguments)}
            job = {**given, "data_root": context.data_root}
            needs, cost = tuple(each.name for each in runs), COLLECTING if runs else 1.0
            jobs += [*runs, Job(name, "evenly.papers.measurement:do_job", job, needs, cost)]
    return Plan(jobs)


def do_job(runs: str, *, name: str, work: str, given: Mapping[str, Any], data_root: str | None) -> None:
    """One part as a job of a plan, in any process."""
    do_part(Context(Path(runs), data_root), Part(name, work, given))


def derive(experiment: Experiment, measured: Measured) -> Measured:
    """Add the quantities that are derived from all seeds together."""
    if not experiment.derived:
        return measured
    function: Callable[[Values], Values] = resolve(experiment.derived)
    return replace(measured, values={**measured.values, **function(measured.values)})


def do_part(context: Context, part: Part) -> None:
    """Run one part and store its result; its lock refuses another process with the same part."""

    def work() -> PartResult:
        result = part.function()(context, **part.arguments)
        if not isinstance(result, PartResult):
            raise UsageError(f"{part.address} returned {type(result).__name__}: return a PartResult.")
        return result

    if os.environ.get("RANK", "0") != "0":
        work()  # of several processes that train together, the first stores the result
        return
    store(context, part, work)
