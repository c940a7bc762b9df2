"""`compare`: methods times seeds as a plan of runs, carried out anywhere, stored while it goes on, and judged.

Every seed has one early run, which all methods that choose examples share; plain training begins where it ended. A
comparison is stored after each run (`evenly.records.comparison`), so that a page can follow it.
"""

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenly.data import Splits
from evenly.data.augment import Augmentation
from evenly.data.targeted import Targeted
from evenly.errors import EvenlyError, UsageError
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Resampling, Until, identity_settings, to_mapping
from evenly.records import comparison as stored
from evenly.records.identity import data_key
from evenly.sweep import Job, Plan, Where, check_available, launch
from evenly.sweep.launch import JobsFailed, is_here
from evenly.sweep.worker import Outcome
from evenly.training.build import build_parts
from evenly.training.comparison_jobs import data_loaded_once, load_once, run_of
from evenly.training.distributed import World
from evenly.training.early import early_recipe
from evenly.training.evaluate import evaluation_split
from evenly.training.last_layer import check_last_layer
from evenly.training.methods import CONTROLS, Method, parse_all
from evenly.training.recommendation import judge
from evenly.typed.mappings import digest, flatten

_log = logging.getLogger(__name__)
_JOBS = "evenly.training.comparison_jobs"
UNKNOWN = "0" * 12  # stands for the ID of an early run that is not trained yet
ONE_AT_ONCE = Where(at_once=1)
LIBRARIES = 400_000_000  # bytes that a process of training takes before it has any examples


@dataclass(frozen=True)
class Design:
    """What is compared.

    Parameters
    ----------
    recipe
        Plain training; its seed is replaced by each of `seeds`.
    methods, seeds
        The names of methods (`evenly.training.methods`), and the seeds that all of them share.
    until, early_model, early_optimizer, early_ascent
        When the early run ends, and what stands in for the recipe's own there.
    factor, keep_suspects
        How often hard examples are shown where a method does not say, and whether those that look mislabelled are too.
    split
        Where the error is taken; by default `test`, or `validation` where there is no such split.
    """

    recipe: Recipe
    methods: Sequence[str] = ("plain", "sam", "useful", "sam+useful", "random", "steps")
    seeds: Sequence[int] = (0, 1, 2)
    until: Until = Until("gain")  # noqa: RUF009  # frozen
    factor: int = 2
    keep_suspects: bool = True
    early_model: Model | None = None
    early_optimizer: Optimizer | None = None
    early_ascent: Ascent | None = None
    split: str | None = None

    @property
    def parsed(self) -> list[Method]:
        """The methods; names that cannot be meant are refused."""
        if not self.methods or not self.seeds:
            raise UsageError("a comparison needs one method and one seed at least.")
        return parse_all(self.methods)

    @property
    def needs_early(self) -> bool:
        """Whether any method needs an early run."""
        return any(method.needs_early for method in self.parsed)

    def plain(self, seed: int) -> Recipe:
        """The recipe that methods change, for one seed."""
        return replace(self.recipe, seed=seed)

    def early(self, seed: int) -> Recipe:
        """The recipe of the early run of one seed."""
        stand_ins = {"model": self.early_model, "optimizer": self.early_optimizer, "ascent": self.early_ascent}
        first = early_recipe(self.plain(seed), self.until, **stand_ins)  # type: ignore[arg-type]
        if first.model != self.recipe.model and any(made.start == "early" for made in self._resamplings()):
            raise UsageError("resampling.start=early goes on with the early network: leave the early model out.")
        return first

    @property
    def largest_factor(self) -> int | None:
        """The largest factor by which a method repeats examples that may be mislabelled; None where none does."""
        chosen = [made for made in self._resamplings() if made.method != "random" and made.among == "all"]
        return max((made.factor for made in chosen), default=None)

    def _resamplings(self) -> list[Resampling]:
        return [recipe.resampling for recipe in self._recipes() if recipe.resampling.method != "none"]

    def _recipes(self) -> list[Recipe]:
        return [each.recipe(self.plain(0), early=UNKNOWN, share=0.4, factor=self.factor) for each in self.parsed]

    def check(self) -> None:
        """Raise, before anything is trained, for methods whose recipes cannot be made."""
        self._recipes()
        if self.needs_early:
            self.early(self.seeds[0])

    def check_on(self, splits: Splits) -> None:
        """Raise, before anything is trained, for what these data cannot take: augmentations, a split for DFR."""
        train = splits.train
        one, index = train.gather([0]), torch.zeros(1, dtype=torch.int64)
        for recipe in self._recipes():
            check_last_layer(recipe, splits)
            for_all = Augmentation.parse(recipe.augment, data=train)
            for_all(one, seed=0, epoch=0, index=index)
            if recipe.resampling.augment:
                for_some = Augmentation.parse(recipe.resampling.augment)
                Targeted(for_some, torch.ones(len(train), dtype=torch.bool)).check(train, for_all)
                for_some(one, seed=0, epoch=0, index=index)


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
    """Train what is missing of a comparison and give it as it is stored, judged.

    Parameters
    ----------
    where
        Where the runs are trained: `evenly.sweep.parse("local:2")`; by default one after the other in this process.
    splits
        The data, where they are loaded already; then everything is trained in this process.
    refuse
        Whether outputs of an early run that cannot be separated end everything that follows from it.
    stop_at_failure
        Whether the first run that fails ends the others, in this process.
    running
        What `train` takes beside a recipe: device, data_root, workers, pace.

    Examples
    --------
    >>> import tempfile
    >>> from evenly.recipe import Data
    >>> small = Recipe(data=Data("parity", {"dim": 5}), epochs=2, batch_size=50)
    >>> found = compare(Design(small, ("plain", "sam"), (0, 1)), runs=tempfile.mkdtemp(), device="cpu")
    >>> [(method["name"], method["cost"]) for method in found["methods"]], found["state"]
    ([('plain', 1.0), ('sam', 2.0)], 'done')
    """
    design.check()
    if splits is not None and where != ONE_AT_ONCE:
        raise UsageError("data that are only in memory can be trained on in this process only: leave `where` out.")
    with data_loaded_once(splits):
        first = design.plain(design.seeds[0])
        data = load_once(first, data_root=running.get("data_root"))
        split = evaluation_split(data, design.split)
        # What does not fit together is an error now, not once in every run.
        design.check_on(data)
        world = World.join(running.get("device", "auto"))
        plain = replace(first, resampling=Resampling())
        build_parts(plain, world=world, splits=data, workers=running.get("workers", 0))
        plan = plan_runs(design, split=split, refuse=refuse, running=running)
        if running.get("device") == "cpu" and where.gpus is None:
            where = replace(where, gpus=0)
        where = check_available(where, memory=_needed(data))
        record = _Record(design, data, split, Path(runs), command, leads=world.leads)
        # Other processes load data that the seed draws by themselves: for the name of a run it is not done here too.
        record.names_runs = is_here(where, plan) or not data.identity().get("drawn_from")
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
    """The runs of a comparison as a graph: for each seed the early run, and the methods that need it or begin there."""
    jobs = []
    for seed in design.seeds:
        recipe, early, first = to_mapping(design.plain(seed)), None, f"early run, seed {seed}"
        has_plain = any(method.name == "plain" for method in design.parsed)
        if design.needs_early:
            early = to_mapping(design.early(seed))
            keep_end = has_plain and _begins_alike(design)
            settings = {"recipe": early, "factor": design.largest_factor, "refuse": refuse, "keep_end": keep_end}
            jobs.append(Job(first, f"{_JOBS}:train_early", settings | {"running": dict(running)}))
        for method in design.parsed:
            waits = early is not None and (method.needs_early or (method.name == "plain" and _begins_alike(design)))
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
            jobs.append(Job(_job_name(method, seed), f"{_JOBS}:train_method", arguments, needs))
    return Plan(jobs)


def _needed(data: Splits) -> int:
    """The bytes of memory that a run needs at least: its examples, and the libraries that it imports."""
    inputs = (data[name].inputs for name in data)
    return LIBRARIES + sum(each.nbytes for each in inputs if isinstance(each, Tensor))


def _begins_alike(design: Design) -> bool:
    """Whether the early run is the beginning of plain training."""
    return (design.early_model, design.early_optimizer, design.early_ascent) == (None, None, None)


def _job_name(method: Method, seed: int) -> str:
    return f"{method.label}, seed {seed}"


def _baseline(names: Sequence[str]) -> str:
    """What the others are compared with: plain training, else a control, else the first."""
    return "plain" if "plain" in names else next((name for name in names if name in CONTROLS), names[0])


class _Record:
    """The stored comparison, kept up to date while its runs are trained."""

    def __init__(self, design: Design, data: Splits, split: str, runs: Path, command: str, *, leads: bool) -> None:
        self.runs, self.leads, self.names_runs = runs, leads, False
        methods = design.parsed
        names = [method.name for method in methods]
        recipe = design.plain(0)
        plain = flatten(to_mapping(replace(recipe, resampling=Resampling())))
        self._methods = {
            _job_name(method, seed): (method.name, str(seed)) for method in methods for seed in design.seeds
        }
        self.content: dict[str, Any] = {
            "id": _identity(design, data, split),
            "created": round(time.time(), 3),
            "command": command,
            "state": "running",
            "data": data.name,
            "data_fingerprint": data_key(data.identity()),
            "model": recipe.model.name,
            "optimizer": recipe.optimizer.name + (f" + {recipe.ascent.rule}" if recipe.ascent.rule != "none" else ""),
            "split": split,
            "epochs": recipe.epochs,
            "seeds": list(design.seeds),
            "baseline": _baseline(names),
            "num_runs": len(design.seeds) * (len(methods) + design.needs_early),
            "early": {},
            "methods": [
                {
                    "name": method.name,
                    "label": method.label,
                    "control": method.name in CONTROLS,
                    "controls": list(method.controls),
                    "settings": _settings(method, design, plain),
                    "cost": None,
                    "runs": {str(seed): {"run": None, "state": "planned"} for seed in design.seeds},
                    "error": None,
                    "difference": None,
                }
                for method in methods
            ],
            "recommendation": None,
        }
        self._written = 0.0
        self._write(now=True)

    def hear(self, job: Job, outcome: Outcome | None) -> None:
        """A run began, or ended."""
        seed = job.name.rpartition(" ")[2]
        if job.name not in self._methods:
            if outcome is not None and outcome.state == "done":
                early = dict(outcome.result)
                for caution in early.pop("cautions"):
                    _log.warning("seed %s: %s", seed, caution)
                self.content["early"][seed] = early
            return
        name, seed = self._methods[job.name]
        rows = next(method["runs"] for method in self.content["methods"] if method["name"] == name)
        if outcome is None:
            rows[seed] = {"run": self._run_of(job), "state": "running"}
        elif outcome.state == "done":
            rows[seed] = outcome.result
        else:
            state = "stopped" if outcome.state == "stopped" else "failed"
            rows[seed] = {"run": None, "state": state, "reason": outcome.error}
        self._write()

    def _run_of(self, job: Job) -> str | None:
        """The ID of the run that a job trains, so that a live page can draw it; the job itself says what is wrong."""
        try:
            return run_of(str(self.runs), job.arguments) if self.names_runs else None
        except EvenlyError:
            return None

    def close(self, state: str) -> None:
        """The comparison is over, or stopped."""
        self.content["state"] = state
        for method in self.content["methods"]:
            for row in method["runs"].values():
                if row["state"] == "running":
                    row["state"] = "stopped"
        self._write(now=True)

    def _write(self, *, now: bool = False) -> None:
        """Judge and store what is known; of thousands of runs not after each, which would cost their square."""
        pause = len(self._methods) / 1000 if len(self._methods) > 200 else 0.0
        if not now and time.monotonic() - self._written < pause:
            return
        self._written = time.monotonic()
        judge(self.content)
        if self.leads:
            stored.write(self.runs, self.content)


def _settings(method: Method, design: Design, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by which a method differs from plain training."""
    made = flatten(to_mapping(method.recipe(design.plain(0), early=UNKNOWN, share=None, factor=design.factor)))
    return {name: value for name, value in made.items() if plain.get(name) != value and name != "resampling.early"}


def _identity(design: Design, data: Splits, split: str) -> str:
    """Twelve hex digits that name a comparison: equal for the same question about the same data."""
    stand_ins: Iterable[Any] = (design.early_model, design.early_optimizer, design.early_ascent)
    question = [
        identity_settings(design.plain(0)),
        [method.name for method in design.parsed],
        list(design.seeds),
        [design.until.rule, design.until.value, design.factor, design.keep_suspects, split],
        [None if each is None else repr(each) for each in stand_ins],
        data_key(data.identity()),
    ]
    return digest(question, digits=12)
