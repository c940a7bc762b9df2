"""The sections about training: its results, its examples and its course."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenly.intervals import points_with_interval
from evenly.report import figures, palette
from evenly.report.blocks import Block, Download, Plot, Prose, Section, Table
from evenly.report.chart import Chart, share_y_axes
from evenly.report.experiments.experiment import Experiment, label_of
from evenly.report.experiments.lead import interval_of
from evenly.report.wording import percent


def plots(charts: Sequence[Chart | None], **more: Any) -> list[Block]:
    """The charts that are not None; those with the same y axis share its range."""
    return [Plot(chart, **more) for chart in share_y_axes([chart for chart in charts if chart is not None])]


def comparison_section(experiment: Experiment) -> Section | None:
    """The methods side by side: a row each, and a dot per seed."""
    methods = [method for method in experiment.record.get("methods", []) if method.get("error")]
    if not methods:
        return None
    rows = [_row(method) for method in methods]
    groups = {cell.get("worst_group") for method in methods for cell in method["runs"].values()} - {None}
    columns = ["method", "seeds", "error %", "difference to plain", "worst %", "hard", "cost", "verdict"]
    baseline = palette.display_name(str(experiment.record.get("baseline", "plain")))
    columns[3] = f"difference to {baseline}"
    table = Table(
        columns,
        rows,
        f"Error on {experiment.split} with 95% intervals over seeds, and the paired differences in points. "
        f"Worst: the error of the worst {'group' if groups else 'class'}, a mean over seeds. Cost: gradients of single "
        f"examples, the early run included, where {baseline} is 1.",
    )
    errors = {label_of(method): _values(method, "error") for method in methods}
    chart = figures.error_by_method(errors, split=experiment.split)
    collapsed = [
        Prose(f"{label_of(method)}, seed {seed}: {cell['collapsed']}", tone="warning")
        for method in methods
        for seed, cell in method["runs"].items()
        if cell.get("collapsed")
    ]
    return Section("comparison", "Comparison", [*collapsed, table, *plots([chart], wide=True)])


def _row(method: Mapping[str, Any]) -> list[Any]:
    error, difference = interval_of(method.get("error")), interval_of(method.get("difference"))
    worst, shares = _values(method, "worst"), [share for share in _values(method, "hard_share") if share]
    settings = method.get("settings") or {}
    name = label_of(method)
    details = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in settings.items() if key not in _NAMED)
    verdict = (method.get("difference") or {}).get("verdict")
    return [
        f"{name} ({details})" if details else name,
        ", ".join(seed for seed, cell in method["runs"].items() if cell.get("error") is not None),
        percent(error) if error else None,
        points_with_interval(difference) if difference else None,
        f"{100 * sum(worst) / len(worst):.2f}" if worst else None,
        f"{sum(shares) / len(shares):.0%}" if shares else None,
        f"{method['cost']:.2f}×" if isinstance(method.get("cost"), int | float) else None,
        verdict,
    ]


_NAMED = ("resampling.method", "ascent.rule")  # by the name of the method itself


def _values(method: Mapping[str, Any], name: str) -> list[float]:
    return [cell[name] for cell in method["runs"].values() if isinstance(cell.get(name), int | float)]


def separation_blocks(separation: Mapping[str, Any], classes: Mapping[int, str], called: str = "") -> list[Block]:
    """How reliable the split into easy and hard examples is, for the run `called`."""
    if not separation:
        return []
    rows = separation.get("classes") or []
    blocks: list[Block] = [Prose(_summary(separation, called))] if rows else []
    blocks += [Prose(str(remark), tone="warning") for remark in separation.get("remarks") or []]
    blocks += plots(
        [
            figures.moment(separation.get("early_curve") or [], chosen=separation.get("chosen_epoch")),
            figures.separation_view(separation.get("view") or {}, classes=classes),
            figures.cluster_sizes(rows),
            figures.cluster_losses(rows),
        ]
    )
    if rows:
        # Records of earlier versions have no silhouette of a single cloud.
        columns = {name: key for name, key in _COLUMNS.items() if any(row.get(key) is not None for row in rows)}
        cells = [[_told(row.get(key)) for key in columns.values()] for row in rows]
        blocks.append(Table(list(columns), cells, _CLUSTERS))
    if separation.get("suspects"):
        blocks += _suspects(separation, classes)
    return blocks


def _told(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else value


def curves_section(experiment: Experiment) -> Section | None:
    """How training went, and how differently for easy and hard examples."""
    runs = {label: [member.metrics for member in own] for label, own in experiment.by_label.items()}
    charts = [
        figures.training_curves(runs, metric=f"{experiment.split}.error"),
        _training_loss(experiment, runs) if experiment.split != "train" else None,
    ]
    parted = []
    for label, own in experiment.by_label.items():
        if palette.is_control(label):  # what it repeats was chosen at random and is neither easy nor hard
            continue
        parted.append(figures.cluster_curves(own[0].metrics, name=f"{label}, seed {own[0].seed}"))
    if not any(parted):
        charts.append(figures.training_curves(runs, metric="train.error"))
    blocks = [*plots(charts), *plots(parted)]
    return Section("curves", "Training curves", blocks) if blocks else None


def _training_loss(experiment: Experiment, runs: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> Chart | None:
    """The training loss, with a warning where methods add different terms to it: then their lines do not compare."""
    chart = figures.training_curves(runs, metric="train.loss")
    recipes = [member.recipe for own in experiment.by_label.values() for member in own]
    terms = {(recipe.get("label_smoothing", 0), recipe.get("logit_penalty", 0)) for recipe in recipes}
    if chart is None or len(terms) < 2:
        return chart
    more = "It includes label smoothing and the logit penalty, which differ here: the lines do not compare."
    return replace(chart, sentence=f"{chart.sentence} {more}")


def groups_section(experiment: Experiment) -> Section | None:
    """The errors of named groups, side by side for the methods."""
    start = f"{experiment.split}.error."
    by_attribute: dict[str, dict[str, dict[str, list[float]]]] = {}
    for label, own in experiment.by_label.items():
        for member in own:
            numbers = member.summary or (member.metrics or [{}])[-1]
            worst = f"{experiment.split}.worst."
            attributes = [name.removeprefix(worst) for name in numbers if name.startswith(worst)]
            for name, value in numbers.items():
                if name.startswith(start) and isinstance(value, float):
                    attribute, group = _attribute_and_group(name.removeprefix(start), attributes)
                    by_method = by_attribute.setdefault(attribute, {}).setdefault(label, {})
                    by_method.setdefault(group, []).append(value)
    blocks = plots(
        [
            figures.group_errors(errors, attribute=attribute, split=experiment.split)
            for attribute, errors in by_attribute.items()
        ]
    )
    return Section("groups", "Groups", blocks) if blocks else None


def _attribute_and_group(name: str, attributes: Sequence[str]) -> tuple[str, str]:
    """The attribute and the group that the name of an error ends with; both may have dots in them.

    >>> _attribute_and_group("hair.colour.dark", ["hair.colour", "hair.style"])
    ('hair.colour', 'dark')
    """
    known = [attribute for attribute in attributes if name.startswith(f"{attribute}.")]
    attribute = max(known, key=len, default=name.partition(".")[0])
    return attribute, name.removeprefix(f"{attribute}.")


def class_names(separation: Mapping[str, Any]) -> dict[int, str]:
    """The names of the classes by their labels, as far as the record has them.

    >>> class_names({"classes": [{"label": 0, "name": "cat"}, {"name": "dog"}]})
    {0: 'cat'}
    """
    rows = separation.get("classes")
    known = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return {row["label"]: str(row["name"]) for row in known if isinstance(row.get("label"), int) and "name" in row}


def _suspects(separation: Mapping[str, Any], classes: Mapping[int, str]) -> list[Block]:
    """The examples that look mislabelled, the most suspicious first, as a table and as CSV."""
    columns = ["example", "label", "the early network says", "loss"]
    rows = [
        [
            row["index"],
            classes.get(row["label"], row["label"]),
            classes.get(row["predicted"], row["predicted"]),
            row["loss"],
        ]
        for row in separation["suspects"]
    ]
    number = separation.get("num_suspects", len(rows))
    more = f" The first {len(rows)} are listed." if number > len(rows) else ""
    caption = f"Check the label: {number:,} training examples look mislabelled, the most suspicious first.{more}"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return [
        Table(columns, rows, caption),
        Download("The suspect examples as CSV", "suspect-examples.csv", text.getvalue()),
    ]


_COLUMNS = {"class": "name", "easy": "easy", "hard": "hard", "loss of easy": "loss_easy", "loss of hard": "loss_hard",
            "silhouette": "silhouette", "one cloud": "cloud", "two clusters": "distinct"}  # fmt: skip
_CLUSTERS = (
    "The two clusters of each class, with their mean losses in nats. A silhouette near 1 means that they lie well "
    "apart. There are two clusters where it is above that of one Gaussian cloud of the same covariance cut in two."
)


def _summary(separation: Mapping[str, Any], called: str) -> str:
    share, accuracy, epoch = (separation.get(name) for name in ("share", "accuracy", "epoch"))
    method = separation.get("method", "k-means")
    text = f"This is the separation of {called}, by {method}" if called else f"The examples were separated by {method}"
    if epoch is not None:
        text += f" after epoch {epoch} of the early run"
    if accuracy is not None:
        text += f", when it was right on {accuracy:.1%} of the training examples"
    return text + (f"; {share:.1%} of them are called hard." if share is not None else ".")
