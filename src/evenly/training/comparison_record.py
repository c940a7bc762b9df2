"""The record of a comparison (`evenly.records.comparison`) while its runs are trained."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.data import Splits
from evenly.errors import EvenlyError
from evenly.recipe import Resampling, identity_settings, to_mapping
from evenly.records import comparison as stored
from evenly.records.identity import data_key
from evenly.sweep import Job
from evenly.sweep.worker import Outcome
from evenly.training.comparison_jobs import run_of
from evenly.training.controls import explains, is_control
from evenly.training.design import UNKNOWN, Design
from evenly.training.methods import Method
from evenly.training.recommendation import judge
from evenly.typed.mappings import digest, flatten

_log = logging.getLogger(__name__)


class ComparisonRecord:
    """The stored comparison, kept up to date while its runs are trained."""

    def __init__(self, design: Design, data: Splits, split: str, runs: Path, command: str, *, leads: bool) -> None:
        self.runs, self.leads, self.names_runs = runs, leads, False
        methods = design.parsed_methods
        recipe = design.plain(0)
        plain = flatten(to_mapping(replace(recipe, resampling=Resampling())))
        self._methods = {
            job_name(method, seed): (method.name, str(seed)) for method in methods for seed in design.seeds
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
            "baseline": _baseline(methods),
            "num_runs": len(design.seeds) * (len(methods) + design.needs_early),
            "early": {},
            "methods": [
                {
                    "name": method.name,
                    "label": method.label_in(recipe, factor=design.factor),
                    "control": is_control(method),
                    "controls": [
                        other.name for other in methods if explains(other, method, recipe, factor=design.factor)
                    ],
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
            # Named all the same: its folder belongs to this comparison, on pages too.
            rows[seed] = {"run": rows[seed].get("run"), "state": state, "reason": outcome.error}
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
        """Judge and store the comparison; with many runs at intervals: storing after each takes quadratic time."""
        pause = len(self._methods) / 1000 if len(self._methods) > 200 else 0.0
        if not now and time.monotonic() - self._written < pause:
            return
        self._written = time.monotonic()
        judge(self.content)
        if self.leads:
            stored.write(self.runs, self.content)


def job_name(method: Method, seed: int) -> str:
    """What the run of a method and seed is called while it is trained."""
    return f"{method.label}, seed {seed}"


def _baseline(methods: Sequence[Method]) -> str:
    """What the others are compared with: plain training, else a control, else the first."""
    names = [method.name for method in methods]
    return "plain" if "plain" in names else next((each.name for each in methods if is_control(each)), names[0])


def _settings(method: Method, design: Design, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by which a method differs from plain training."""
    made = flatten(to_mapping(method.recipe(design.plain(0), early=UNKNOWN, share=None, factor=design.factor)))
    return {name: value for name, value in made.items() if plain.get(name) != value and name != "resampling.early"}


def _identity(design: Design, data: Splits, split: str) -> str:
    """Twelve hex digits that name a comparison: equal for the same question about the same data."""
    stand_ins: Iterable[Any] = (design.early_model, design.early_optimizer, design.early_ascent)
    question = [
        identity_settings(design.plain(0)),
        [method.name for method in design.parsed_methods],
        list(design.seeds),
        [design.until.rule, design.until.value, design.factor, design.keep_suspects, split],
        [None if each is None else repr(each) for each in stand_ins],
        data_key(data.identity()),
    ]
    return digest(question, digits=12)
