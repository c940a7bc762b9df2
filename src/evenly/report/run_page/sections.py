"""The sections about training: what came of it, on which examples, and how it went."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report import figures
from evenly.report.blocks import Block, Gallery, Plot, Prose, Section, Table
from evenly.report.chart import Chart
from evenly.report.gain import percent
from evenly.report.run_page.related import Comparison
from evenly.report.run_page.verdict import Outcome


def plots(charts: Sequence[Chart | None], **more: Any) -> list[Block]:
    """The charts that there are."""
    return [Plot(chart, **more) for chart in charts if chart is not None]


def class_names(separation: Mapping[str, Any]) -> dict[int, str]:
    """The names of the classes by their labels, as far as the record has them.

    >>> class_names({"classes": [{"label": 0, "name": "cat"}, {"name": "dog"}]})
    {0: 'cat'}
    """
    rows = separation.get("classes")
    known = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return {row["label"]: str(row["name"]) for row in known if isinstance(row.get("label"), int) and "name" in row}


def comparison_section(comparison: Comparison, found: Sequence[Outcome]) -> Section | None:
    """Every way of training beside the others: a row each, and a dot per seed."""
    if len(found) < 2 and (not found or found[0].error.n < 2):
        return None
    rows = [
        [
            outcome.label,
            ", ".join(map(str, outcome.errors)),
            percent(outcome.error),
            percent(outcome.difference, signed=True) if outcome.difference is not None else None,
            f"{outcome.worst * 100:.2f}" if outcome.worst is not None else None,
            f"{outcome.share:.0%}" if outcome.share else None,
            f"{outcome.cost:.2f}×" if outcome.cost is not None else None,
        ]
        for outcome in found
    ]
    grouped = any(
        name.startswith(f"{comparison.split}.worst.") and not name.endswith(".class")
        for name in comparison.shown.summary
    )
    columns = ["method", "seeds", "error %", "difference", f"worst {'group' if grouped else 'class'} %", "hard", "cost"]
    table = Table(
        columns,
        rows,
        f"Error on {comparison.split} with 95 % intervals over seeds; differences are to plain training, seed by seed; "
        "cost in gradients of single examples, the early run included, plain training being 1.",
    )
    chart = figures.error_by_method(
        {outcome.label: list(outcome.errors.values()) for outcome in found}, split=comparison.split
    )
    return Section("comparison", "Before and after", [table, *plots([chart], wide=True)])


def examples_section(pictures: Gallery | None) -> Section | None:
    """The easiest and hardest examples of every class, to be looked at."""
    return None if pictures is None else Section("examples", "Easiest and hardest examples", [pictures])


def separation_section(separation: Mapping[str, Any], classes: Mapping[int, str], whose: str = "") -> Section | None:
    """Whether the split into easy and hard, which is that of the run `whose`, is one to rely on."""
    if not separation:
        return None
    rows = separation.get("classes") or []
    blocks: list[Block] = [Prose(_told(separation, whose))] if rows else []
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
        cells = [
            [row.get(name) for name in ("name", "easy", "hard", "loss_easy", "loss_hard", "silhouette")]
            + [{True: "yes", False: "no"}.get(row.get("distinct"), "—")]
            for row in rows
        ]
        columns = ["class", "easy", "hard", "loss of easy", "loss of hard", "silhouette", "two clusters"]
        blocks.append(Table(columns, cells, _CLUSTERS))
    if separation.get("suspects"):
        blocks.append(_suspects(separation, classes))
    return Section("separation", "Health of the separation", blocks) if blocks else None


def curves_section(comparison: Comparison) -> Section | None:
    """How training went, and how differently for easy and hard examples."""
    runs = {label: [member.metrics for member in own] for label, own in comparison.by_label.items()}
    charts = [
        figures.training_curves(runs, metric=f"{comparison.split}.error"),
        figures.training_curves(runs, metric="train.loss") if comparison.split != "train" else None,
    ]
    for label, own in comparison.by_label.items():
        charts.append(figures.cluster_curves(own[0].metrics, name=f"{label}, seed {own[0].seed}"))
    if not any("train.easy.error" in row for own in comparison.by_label.values() for row in own[0].metrics[-1:]):
        charts.append(figures.training_curves(runs, metric="train.error"))
    made = plots(charts)
    return Section("curves", "Training curves", made) if made else None


def groups_section(comparison: Comparison) -> Section | None:
    """The errors of named groups, side by side for the ways of training."""
    start = f"{comparison.split}.error."
    by_attribute: dict[str, dict[str, dict[str, list[float]]]] = {}
    for label, own in comparison.by_label.items():
        for member in own:
            for name, value in (member.summary or (member.metrics or [{}])[-1]).items():
                if name.startswith(start) and isinstance(value, float):
                    attribute, _, group = name.removeprefix(start).partition(".")
                    by_method = by_attribute.setdefault(attribute, {}).setdefault(label, {})
                    by_method.setdefault(group, []).append(value)
    made = plots(
        [
            figures.group_errors(errors, attribute=attribute, split=comparison.split)
            for attribute, errors in by_attribute.items()
        ]
    )
    return Section("groups", "Groups", made) if made else None


_CLUSTERS = (
    "The clusters of each class; a silhouette near 1 means well apart. A class is said to have two clusters where its "
    "silhouette is above that of single Gaussian clouds of its own covariance, cut in two likewise: every class has "
    "a threshold of its own, and a higher silhouette may be a no where a lower one is a yes."
)


def _told(separation: Mapping[str, Any], whose: str) -> str:
    share, accuracy, epoch = (separation.get(name) for name in ("share", "accuracy", "epoch"))
    method = separation.get("method", "k-means")
    told = f"Shown is {whose}: separated by {method}" if whose else f"Separated by {method}"
    if epoch is not None:
        told += f" after epoch {epoch} of the early run"
    if accuracy is not None:
        told += f", which was right on {accuracy:.1%} of the training examples by then"
    return told + (f"; {share:.1%} of them are called hard." if share is not None else ".")


def _suspects(separation: Mapping[str, Any], classes: Mapping[int, str]) -> Table:
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
    more = f" The {len(rows)} of highest loss are listed." if number > len(rows) else ""
    return Table(
        ["example", "label", "the early network says", "loss"],
        rows,
        f"Check the label: {number:,} training examples look mislabelled.{more}",
    )
