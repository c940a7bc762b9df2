"""The sections about the network itself, from its measurements, and about the run: recipe, environment, warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly import environment
from evenly.measurements import titles
from evenly.report import figures
from evenly.report.blocks import Block, Listing, Prose, Section, Table
from evenly.report.run_page.reading import Reader
from evenly.report.run_page.related import Comparison
from evenly.report.run_page.sections import plots
from evenly.typed import yaml_text

Measurements = Mapping[str, Sequence[Mapping[str, Any]]]


def features_section(measured: Measurements) -> Section | None:
    """How evenly easy and hard features are learned."""
    last = {label: rows[-1] for label, rows in measured.items() if rows}
    charts = [figures.probing(last), figures.reliance(last)]
    for label, row in last.items():
        for which in ("real", "phantom"):
            charts.append(_named(figures.importance_map(row, which=which), label, len(last)))
    charts += [_named(figures.lorenz(row), label, len(last)) for label, row in last.items()]
    for draw in (figures.layer_probes, figures.worst_groups):
        charts += [_named(draw(row), label, len(last)) for label, row in last.items()]
    charts += [figures.feature_rank(measured), figures.over_training(measured, "gini", name="Gini of the importance")]
    made = [
        *_table(last, titles("features"), "How evenly examples and features count, at the last epoch measured."),
        *plots(charts),
    ]
    return Section("features", "Feature balance", made) if made else None


def geometry_section(measured: Measurements, stability: Mapping[str, Any]) -> Section | None:
    """The shape of the loss around the weights, and where the learning rate stands."""
    last = {label: rows[-1] for label, rows in measured.items() if rows}
    charts = [_named(figures.spectrum(row), label, len(last)) for label, row in last.items()]
    charts += [_named(figures.mode_connectivity(row), label, len(last)) for label, row in last.items()]
    charts.append(figures.over_training(measured, "lambda_max", name="largest eigenvalue"))
    made: list[Block] = [*_table(last, titles("geometry"), "Curvature at the last epoch measured."), *plots(charts)]
    stands = figures.stability_position(stability) if stability else None
    made += plots([stands], wide=True, height=130 + 42 * len(stands.labels("y"))) if stands is not None else []
    made += _coherence(stability)
    made += [Prose("\n\n".join(stability["notes"]))] if stability.get("notes") else []
    return Section("geometry", "Geometry", made) if made else None


def _coherence(stability: Mapping[str, Any]) -> list[Block]:
    """What the criteria of stability rest on, for every optimizer they were worked out for."""
    names = {"sigma": "coherence σ", "lambda_max": "λmax(H)", "largest_example": "max λmax(Hᵢ)"}
    names |= {"eta_exact": "exact critical learning rate", "stands": "this run"}
    rows = [[name, *(found.get(key) for key in names)] for name, found in stability.get("methods", {}).items()]
    caption = f"Coherence of the curvatures of {stability.get('num_examples', 'the')} examples, in batches of "
    return (
        [Table(["optimizer", *names.values()], rows, f"{caption}{stability.get('batch', 'its size')}.")] if rows else []
    )


def run_section(comparison: Comparison, remarks: Sequence[str], reader: Reader) -> Section:
    """The recipe, the environment, and what there is to beware of."""
    shown = comparison.shown
    blocks: list[Block] = [Prose(remark, tone="warning") for remark in remarks]
    rows = [
        [member.id, member.label, member.seed, member.run.state, _epochs(member.metrics, member.recipe)]
        for own in comparison.by_label.values()
        for member in own
    ]
    blocks.append(Table(["run", "method", "seed", "state", "epoch"], rows, "The runs this page is drawn from."))
    stamps = reader.stamps(shown.run)
    if stamps:
        facts = [
            [name, _words(value)] for name, value in stamps[-1].items() if value is not None and name != "libraries"
        ]
        libraries = stamps[-1].get("libraries")
        known = libraries if isinstance(libraries, Mapping) else {}
        facts += [[name, version] for name, version in known.items() if version]
        blocks.append(Table(["environment", "value"], facts, f"Where run {shown.id} was made."))
    blocks.append(Listing(f"Recipe of run {shown.id}", yaml_text.render(shown.run.recipe)))
    return Section("run", "Recipe, environment, warnings", blocks)


def warnings(comparison: Comparison, reader: Reader) -> list[str]:
    """What a reader should know before relying on the numbers."""
    found = []
    runs = [run for member in comparison.members for run in (member.run, member.early) if run is not None]
    runs = list({run.id: run for run in runs}.values())
    stamps = [stamps[-1] for run in runs if (stamps := reader.stamps(run))]
    # Toy data are drawn by the seed: that their fingerprints differ is as it should be.
    lines = [line for stamp in stamps for line in environment.difference(stamps[0], stamp)]
    differing = {line.split(":")[0] for line in lines} - {"data"}
    if differing:
        found.append(f"The runs were not all made in the same environment: {', '.join(sorted(differing))} differ.")
    for member in comparison.members:
        if failure := reader.failure(member.run):
            found.append(f"Run {member.id} ({member.label}, seed {member.seed}) failed: {failure}")
    if waiting := [m for m in comparison.members if m.run.state in ("running", "stopped", "new")]:
        words = ", ".join(f"{m.id} ({m.label}, seed {m.seed})" for m in waiting)
        found.append(f"Not done, and so not in the table: {words}. The command above continues them.")
    return found


def _table(last: Mapping[str, Mapping[str, Any]], numbers: Mapping[str, str], caption: str) -> list[Block]:
    """The named numbers of every way of training that has any of them."""
    names = [name for name in numbers if any(row.get(name) is not None for row in last.values())]
    rows = [[label, *(row.get(name) for name in names)] for label, row in last.items()]
    return [Table(["method", *(numbers[name] for name in names)], rows, caption)] if names else []


def _named(chart: Any, label: str, num: int) -> Any:
    """The chart with whose it is in its title, where there are several."""
    from dataclasses import replace

    return replace(chart, title=f"{chart.title}: {label}") if chart is not None and num > 1 else chart


def _epochs(metrics: Sequence[Mapping[str, Any]], recipe: Mapping[str, Any]) -> str:
    return f"{metrics[-1].get('epoch', 0) if metrics else 0} of {recipe.get('epochs', '?')}"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items() if item is not None)
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
