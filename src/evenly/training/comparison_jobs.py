"""The jobs of a comparison: train an early run, train a method. Each returns plain JSON, wherever it runs."""

import contextlib
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from evenly.data import Splits
from evenly.errors import DataError
from evenly.recipe import Recipe, from_mapping
from evenly.records import Run
from evenly.records.comparison import relative_cost
from evenly.training.build import load_data
from evenly.training.continuation import forget_end
from evenly.training.cost import gradients_per_example
from evenly.training.early import outputs_epoch
from evenly.training.guards import cautions
from evenly.training.identify import identify
from evenly.training.methods import Method, parse
from evenly.training.planned_run import Trained, planned_recipe
from evenly.training.train import train_from

_data: dict[str, Splits] | None = None  # loaded data, while it may be kept


@contextlib.contextmanager
def data_loaded_once(splits: Splits | None = None) -> Iterator[None]:
    """Within the context, the jobs of this process load their data once, or all use `splits`."""
    global _data
    previous, _data = _data, ({} if splits is None else {"": splits})
    try:
        yield
    finally:
        _data = previous


def load_once(recipe: Recipe, *, data_root: str | None) -> Splits:
    """The data of a recipe, loaded once in a comparison, or once for each seed if they depend on it."""
    if _data is not None and "" in _data:
        return _data[""]
    # A process that was started for a plan ends with it, and may keep its data until then.
    if _data is None and multiprocessing.parent_process() is None:
        return load_data(recipe, data_root=data_root)
    kept = _data if _data is not None else _of_this_process
    key = repr((recipe.data, data_root))
    drawn = f"{key} {recipe.seed}"
    if key in kept or drawn in kept:
        return kept[key] if key in kept else kept[drawn]
    splits = load_data(recipe, data_root=data_root)
    by_seed = bool(splits.identity().get("drawn_from")) and recipe.data.seed is None
    kept.clear()  # the data of one seed at a time
    kept[drawn if by_seed else key] = splits
    return splits


_of_this_process: dict[str, Splits] = {}


def train_early(
    runs: str,
    *,
    recipe: Mapping[str, Any],
    selections: Sequence[Mapping[str, Any]],
    refuse: bool,
    keep_end: bool,
    running: Mapping[str, Any],
) -> dict[str, Any]:
    """Train an early run, separate its outputs as methods will (`Design.selections`), and collect the warnings.

    With `refuse`, outputs that cannot be separated raise an error now, before any long training.
    """
    first = from_mapping(Recipe, recipe)
    data = load_once(first, data_root=running.get("data_root"))
    run = train_from(None, first, runs=runs, splits=data, keep_end=keep_end, remark=False, **running)
    return {
        "run": run.id,
        "epoch": outputs_epoch(run),
        "rule_fired": bool(run.summary().get("rule_fired", True)),
        "gradients": _Numbers(run)["gradients"],
        "cautions": cautions(run, data.train, selections, refuse=refuse),
    }


def train_method(
    runs: str,
    *,
    recipe: Mapping[str, Any],
    early: Mapping[str, Any] | None,
    method: str,
    factor: int,
    keep_suspects: bool,
    split: str,
    running: Mapping[str, Any],
) -> dict[str, Any]:
    """Train one method with one seed: `recipe` is that of plain training, `early` that of the early run."""
    base, chosen = from_mapping(Recipe, recipe), parse(method)
    data = load_once(base, data_root=running.get("data_root"))
    wanted, first = _recipe_and_early(runs, base, early, chosen, data, factor=factor, keep_suspects=keep_suspects)
    is_plain = chosen.name == "plain"
    run = train_from(first if is_plain else None, wanted, runs=runs, splits=data, remark=False, **running)
    if is_plain and first is not None:
        forget_end(first)
    summary, collapsed = _Numbers(run), run.summary().get("collapsed")
    worst, group = _worst(summary, split)
    before = _Numbers(first)["gradients"] if chosen.resamples and first is not None else 0
    baseline = base.epochs * _shown_examples(base, summary["training_examples"]) * gradients_per_example(base.ascent)
    return {
        "run": run.id,
        "state": "done",
        "error": summary[f"{split}.error"],
        "worst": worst,
        "worst_group": group,
        "hard_share": summary.get("hard_share"),
        "gradients": summary["gradients"],
        "cost": 1.0 if is_plain else relative_cost(summary["gradients"], early=before, baseline=baseline),
        "collapsed": None if collapsed is None else str(collapsed),
    }


def _shown_examples(base: Recipe, num: int) -> int:
    """The examples that an epoch of plain training shows: all but a short last batch that is dropped."""
    return num - num % base.batch_size if base.drop_last else num


class _Numbers(dict[str, Any]):
    """The numbers in a run's summary; a missing one means that the summary is damaged."""

    def __init__(self, run: Run) -> None:
        kinds = {name: value for name, value in run.summary().items() if not isinstance(value, bool)}
        super().__init__({name: value for name, value in kinds.items() if isinstance(value, int | float)})
        self._path = run.path / "done"

    def __missing__(self, name: str) -> NoReturn:
        raise DataError(
            f"{self._path} is damaged: it has no number {name}. Restore it, or remove the run's folder and repeat the "
            "command that made it."
        )


def run_of(runs: str, arguments: Mapping[str, Any]) -> str | None:
    """The ID of the run that `train_method` trains with these arguments; None where finding it would be expensive."""
    base, chosen = from_mapping(Recipe, arguments["recipe"]), parse(arguments["method"])
    if chosen.has("steps"):  # whose epochs depend on the separation
        return None
    data = load_once(base, data_root=arguments["running"].get("data_root"))
    how = {name: arguments[name] for name in ("factor", "keep_suspects")}
    return identify(_recipe_and_early(runs, base, arguments["early"], chosen, data, **how)[0], data).id


def _recipe_and_early(
    runs: str, base: Recipe, early: Mapping[str, Any] | None, chosen: Method, data: Splits, **settings: Any
) -> tuple[Recipe, Run | None]:
    """The recipe of a method, and the early run that it starts from."""
    if early is None:
        return planned_recipe(chosen, base, None, **settings), None
    first = Run(Path(runs) / identify(from_mapping(Recipe, early), data).id)
    return planned_recipe(chosen, base, Trained(first, data.train), early=first.id, **settings), first


def _worst(summary: _Numbers, split: str) -> tuple[float, str | None]:
    """The error and name of the worst group, or of the worst class if the data have no groups."""
    start = f"{split}.worst."
    ends = {name.removeprefix(start): value for name, value in summary.items() if name.startswith(start)}
    groups = {name: value for name, value in ends.items() if name != "class"}
    if not groups:
        return float(summary[f"{start}class"]), None
    attribute = max(groups, key=lambda name: float(groups[name]))
    errors = {
        name.removeprefix(f"{split}.error."): value
        for name, value in summary.items()
        if name.startswith(f"{split}.error.{attribute}.")
    }
    return float(groups[attribute]), max(errors, key=lambda name: float(errors[name]), default=attribute)
