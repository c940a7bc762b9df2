"""`compare`: methods times seeds as a plan of runs, carried out anywhere, stored while it runs, and judged.

Every seed has one early run, which all methods that choose examples share; plain training begins where it ended. A
comparison is stored after each run (`evenly.records.comparison`), so that a page can follow it.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from evenly.data import Splits
from evenly.errors import UsageError
from evenly.recipe import to_mapping
from evenly.records import comparison as stored
from evenly.sweep import Job, Plan, Where, check_available, launch
from evenly.sweep.launch import JobsFailed, runs_here
from evenly.training.build import build_parts, check_given
from evenly.training.comparison_jobs import data_loaded_once, load_once
from evenly.training.comparison_record import ComparisonRecord, job_name
from evenly.training.cost import gradients_per_example
from evenly.training.design import Design as Design
from evenly.training.distributed import World
from evenly.training.evaluate import evaluation_split
from evenly.training.methods import Method

_log = logging.getLogger(__name__)
_JOBS = "evenly.training.comparison_jobs"
ONE_AT_ONCE = Where(at_once=1)
LIBRARIES = 400_000_000  # bytes that a process of training takes before it has any examples


def compare(
    design: Design,
    *,
    runs: str | os.PathLike[str] = "runs",
    where: Where = ONE_AT_ONCE,
    splits: Splits | None = None,
    command: str = "",
    refuse: bool = False,
    stop_at_failure: bool = False,
    **running: Any,
) -> dict[str, Any]:
    """Train the missing runs of a comparison; return the stored comparison with its verdict.

    Parameters
    ----------
    where
        Where the runs are trained: `evenly.sweep.parse("local:2")`; by default one after the other in this process.
    splits
        The data, where they are loaded already; then everything is trained in this process. They are checked as those
        that are loaded by name.
    refuse
        Whether outputs of an early run that cannot be separated end everything that follows from it.
    stop_at_failure
        Whether the first run that fails ends the others, in this process.
    running
        What `train` takes beside a recipe: device, data_root, workers, pace.

    Examples
    --------
    >>> import tempfile
    >>> from evenly.recipe import Data, Recipe
    >>> small = Recipe(data=Data("parity", {"dim": 5}), epochs=2, batch_size=50)
    >>> found = compare(Design(small, ("plain", "sam"), (0, 1)), runs=tempfile.mkdtemp(), device="cpu")
    >>> [(method["name"], method["cost"]) for method in found["methods"]], found["state"]
    ([('plain', 1.0), ('sam', 2.0)], 'done')
    """
    design.check()
    if splits is not None:
        for remark in check_given(splits):
            _log.warning(remark)
    if not isinstance(where, Where):
        raise UsageError(f"where = {where!r:.60} is a {type(where).__name__}: give evenly.sweep.parse('local:2').")
    if splits is not None and where != ONE_AT_ONCE:
        raise UsageError("data that are only in memory can be trained on in this process only: leave `where` out.")
    with data_loaded_once(splits):
        first = design.plain(design.seeds[0])
        data = load_once(first, data_root=running.get("data_root"))
        split = evaluation_split(data, design.split)
        # What does not fit together, and files that cannot be used, are an error now, not once in every run.
        design.check_on(data, split=split)
        for remark in design.remarks_on(data):
            _log.warning(remark)
        data.identity()
        world = World.join(running.get("device", "auto"))
        for recipe in design.networks:
            build_parts(recipe, world=world, splits=data, workers=running.get("workers", 0))
        plan = plan_runs(design, split=split, refuse=refuse, running=running)
        if running.get("device") == "cpu" and where.gpus is None:
            where = replace(where, gpus=0)
        where = check_available(where, memory=_least_memory(data))
        record = ComparisonRecord(design, data, split, Path(runs), command, leads=world.leads)
        # If each seed draws its own data, worker processes load them; do not load them here just to name a run.
        record.names_runs = runs_here(where, plan) or not data.identity().get("drawn_from")
        try:
            with stored.being_written(runs, record.content["id"], leads=world.leads):
                launch(plan, where, runs=record.runs, listener=record.hear, stop_at_failure=stop_at_failure)
        except JobsFailed as error:
            record.close("done")
            error.comparison = record.content  # what is done can still be shown
            raise
        except BaseException:
            record.close("stopped")
            raise
        record.close("done")
    return record.content


def plan_runs(design: Design, *, split: str, refuse: bool = False, running: Mapping[str, Any]) -> Plan:
    """The runs of a comparison as a graph: for each seed the early run, and the methods that need it or begin there.

    Of one seed, the longest runs come first, so that at the end no process waits long for another.
    """
    jobs = []
    methods = sorted(design.parsed_methods, key=lambda method: _passes(design, method), reverse=True)
    for seed in design.seeds:
        recipe, early, first = to_mapping(design.plain(seed)), None, f"early run, seed {seed}"
        if design.needs_early:
            early = to_mapping(design.early(seed))
            settings = {"recipe": early, "selections": design.selections, "refuse": refuse}
            settings["keep_end"] = design.plain_continues
            jobs.append(
                Job(first, f"{_JOBS}:train_early", settings | {"running": dict(running)}, cost=_early_part(design))
            )
        for method in methods:
            waits = method.needs_early or (method.name == "plain" and design.plain_continues)
            arguments = {
                "recipe": recipe,
                "early": early if waits else None,
                "method": method.name,
                "factor": design.factor,
                "keep_suspects": design.keep_suspects,
                "split": split,
                "running": dict(running),
            }
            needs = (first,) if waits else ()
            cost = _passes(design, method) * (1.4 if method.resamples or method.has("steps") else 1.0)
            jobs.append(Job(job_name(method, seed), f"{_JOBS}:train_method", arguments, needs, cost))
    return Plan(jobs)


def _early_part(design: Design) -> float:
    """The length of an early run in plain runs; where a rule ends it, a guess."""
    parts = {"epoch": design.until.value / design.recipe.epochs, "fraction": design.until.value}
    return max(0.03, parts.get(design.until.rule, 0.1))


def _least_memory(data: Splits) -> int:
    """The bytes of memory that a run needs at least: its examples, and the libraries that it imports."""
    inputs = (data[name].inputs for name in data)
    return LIBRARIES + sum(each.nbytes for each in inputs if isinstance(each, Tensor))


def _passes(design: Design, method: Method) -> float:
    """The gradients that a step of a method takes per example."""
    return gradients_per_example(method.recipe(design.plain(design.seeds[0])).ascent)
