"""The work of experiments on real data: train a recipe, alone or with USEFUL and its controls, and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenly.papers.experiment import Context, PartResult
from evenly.recipe import Recipe, Until
from evenly.records import Run
from evenly.typed import from_mapping

CURVES = ("epoch", "train.error", "train.loss", "test.error", "test.loss")


def train_recipe(
    context: Context,
    *,
    recipe: Mapping[str, Any],
    seed: int,
    name: str,
    split: str = "test",
    measures: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> PartResult:
    """Train one recipe with one seed: `NAME.error` in percent, `NAME.cost` in gradients, and each measurement.

    `measures` are those of `evenly measure`: `sharpness` gives `NAME.lambda_max`, and so on. `options` go to it.
    """
    from evenly.training.train import train

    wanted = replace(_recipe(recipe), seed=seed)
    run = train(wanted, runs=context.runs, data_root=context.data_root)
    values = _values(run, name, split, seed) | _measurements(context, run, name, seed, measures, options)
    return PartResult(values, {"curves": _curves(run), "run": run.id})


def train_useful(
    context: Context,
    *,
    recipe: Mapping[str, Any],
    seed: int,
    name: str,
    controls: Sequence[str] = ("original",),
    until: Mapping[str, Any] | None = None,
    factor: int = 2,
    split: str = "test",
    measures: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> PartResult:
    """Train one recipe by USEFUL and by each control with one seed: `NAME.METHOD.error` in percent, `.share`, `.cost`.

    `NAME.early` is the epoch of the separation.
    """
    from evenly.training.useful import train_useful

    rows = train_useful(
        _recipe(recipe),
        seeds=(seed,),
        controls=tuple(controls),
        until=from_mapping(Until, until) if until else Until("gain"),
        factor=factor,
        runs=context.runs,
        split=split,
        data_root=context.data_root,
    )
    values: dict[str, dict[int, float]] = {}
    series: dict[str, Any] = {"curves": {}, "runs": {}}
    for row in rows:
        run = Run.open(row.run, context.runs)
        under = f"{name}.{row.method}"
        values |= _values(run, under, split, seed) | {
            f"{under}.share": {seed: row.share},
            f"{under}.cost": {seed: row.cost},
        }
        values |= _measurements(context, run, under, seed, measures, options)
        series["curves"][row.method], series["runs"][row.method] = _curves(run), run.id
        if row.early is not None:
            early = Run.open(row.early, context.runs)
            # Not the last epoch: a network that fits everything by then is separated at an earlier one.
            values[f"{name}.early"] = {seed: float(early.summary()["separated_at"])}
            series["curves"]["early"], series["runs"]["early"] = _curves(early), early.id
    return PartResult(values, series)


def _recipe(mapping: Mapping[str, Any]) -> Recipe:
    return from_mapping(Recipe, mapping)


def _values(run: Run, under: str, split: str, seed: int) -> dict[str, dict[int, float]]:
    """All final errors of a run, in percent: of the split itself, of its worst class or group, and adjusted."""
    values = {f"{under}.gradients": {seed: float(run.summary()["gradients"])}}
    for name, value in run.summary().items():
        if name.startswith(f"{split}.") and isinstance(value, int | float):
            rest = name.removeprefix(f"{split}.")
            if rest == "error" or rest.startswith(("worst.", "adjusted")):
                values[f"{under}.{rest}"] = {seed: 100 * value}
    if "train.error" in run.metrics()[-1]:
        values[f"{under}.train_error"] = {seed: 100 * run.metrics()[-1]["train.error"]}
    return values


def _measurements(
    context: Context,
    run: Run,
    under: str,
    seed: int,
    measures: Sequence[str],
    options: Mapping[str, Any] | None,
) -> dict[str, dict[int, float]]:
    if not measures:
        return {}
    from evenly.diagnostics.measure import measure
    from evenly.rng import generator
    from evenly.training.trained_model import load_trained

    parts = load_trained(run, data_root=context.data_root)
    numbers = measure(
        parts.model, parts.splits, *measures, rng=generator(seed, "measure"), **(dict(options) if options else {})
    )
    return {f"{under}.{name}": {seed: float(v)} for name, v in numbers.items() if isinstance(v, int | float)}


def _curves(run: Run) -> dict[str, list[Any]]:
    rows = run.metrics()
    return {name: [row.get(name) for row in rows] for name in CURVES if any(name in row for row in rows)}
