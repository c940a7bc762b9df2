"""The sections about the networks, from their measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenly.measurements import MEASUREMENTS, titles
from evenly.report import figures
from evenly.report.blocks import Block, Prose, Section, Table
from evenly.report.chart import Chart
from evenly.report.experiments.sections import plots

Measurements = Mapping[str, Sequence[Mapping[str, Any]]]


def features_section(measured: Measurements) -> Section | None:
    """How evenly easy and hard features are learned."""
    last = {label: rows[-1] for label, rows in measured.items() if rows}
    charts = [figures.probing(last), figures.reliance(last)]
    for label, row in last.items():
        for which in ("real", "phantom"):
            charts.append(_with_title(figures.importance_map(row, which=which), label))
        charts.append(_with_title(figures.importance_map(row, by_attribute=True), label))
    charts += [_with_title(figures.lorenz(row), label) for label, row in last.items()]
    for draw in (figures.layer_probes, figures.worst_groups):
        charts += [_with_title(draw(row), label) for label, row in last.items()]
    charts += [figures.feature_rank(measured), figures.over_training(measured, "gini", name="Gini of the importance")]
    caption = f"How evenly examples and features count, at the last epoch measured.{_sizes(last)}"
    blocks = [*_table(last, titles("features"), caption), *plots(charts)]
    return Section("features", "Feature balance", blocks) if blocks else None


def geometry_section(measured: Measurements, stability: Mapping[str, Any]) -> Section | None:
    """The shape of the loss around the weights, and where the learning rate stands."""
    last = {label: rows[-1] for label, rows in measured.items() if rows}
    charts = [_with_title(figures.spectrum(row), label) for label, row in last.items()]
    charts += [_with_title(figures.mode_connectivity(row), label) for label, row in last.items()]
    charts.append(figures.over_training(measured, "lambda_max", name="largest eigenvalue"))
    drawn = [entry for entry in MEASUREMENTS.values() if entry.section == "geometry" and entry.bars]
    charts += [figures.numbers(last, entry) for entry in drawn]
    for entry in drawn:
        first = next(iter(entry.bars))
        charts.append(figures.over_training(measured, first, name=f"{entry.title[0].lower()}{entry.title[1:]}"))
    caption = f"Curvature at the last epoch measured.{_sizes(last)}"
    blocks: list[Block] = [*_table(last, titles("geometry"), caption), *plots(charts)]
    position = figures.stability_position(stability) if stability else None
    blocks += plots([position], wide=True, height=130 + 42 * len(position.labels("y"))) if position is not None else []
    blocks += _coherence(stability)
    blocks += [Prose("\n\n".join(stability["notes"]))] if stability.get("notes") else []
    return Section("geometry", "Geometry", blocks) if blocks else None


def _coherence(stability: Mapping[str, Any]) -> list[Block]:
    """The coherence and curvatures behind the criteria of stability, a row for every optimizer."""
    names = {"sigma": "coherence σ", "lambda_max": "λmax(H)", "largest_example": "max λmax(Hᵢ)"}
    names |= {"eta_exact": "exact critical learning rate", "stands": "this run"}
    rows = [[name, *(numbers.get(key) for key in names)] for name, numbers in stability.get("methods", {}).items()]
    caption = f"Coherence of the curvatures of {stability.get('num_examples', 'the')} examples, in batches of "
    return (
        [Table(["optimizer", *names.values()], rows, f"{caption}{stability.get('batch', 'its size')}.")] if rows else []
    )


def _table(last: Mapping[str, Mapping[str, Any]], numbers: Mapping[str, str], caption: str) -> list[Block]:
    """The named numbers of every method that has any of them."""
    names = [name for name in numbers if any(row.get(name) is not None for row in last.values())]
    rows = [[label, *(row.get(name) for name in names)] for label, row in last.items()]
    return [Table(["method and seed", *(numbers[name] for name in names)], rows, caption)] if names else []


def _sizes(last: Mapping[str, Mapping[str, Any]]) -> str:
    """The numbers of examples, if the measurements state them."""
    sizes = sorted({row["num_examples"] for row in last.values() if isinstance(row.get("num_examples"), int)})
    return (
        f" Measured on {' or '.join(f'{size:,}' for size in sizes)} examples of one seed each."
        if sizes
        else (" Each row is one seed." if last else "")
    )


def _with_title(chart: Chart | None, label: str) -> Chart | None:
    """The chart with the method and seed in its title."""
    return replace(chart, title=f"{chart.title}: {label}") if chart is not None else None
