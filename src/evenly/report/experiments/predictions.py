"""The trained networks' predictions on test examples: confusion matrices, and changes between methods."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.report.blocks import Block, Download, Plot, Prose, Section, Switch, Table
from evenly.report.chart import Chart, Heat
from evenly.report.experiments.experiment import Experiment
from evenly.report.experiments.run_records import Reader

Columns = Mapping[str, NDArray[Any]]
MOST_CLASSES, MOST_LISTED = 20, 2000


def predictions_section(experiment: Experiment, names: Mapping[int, str], reader: Reader) -> Section | None:
    """Confusion matrices, a method at a time, and the examples that one method gets right and another does not."""
    by_method: dict[str, dict[int, Columns]] = {}
    for label, own in experiment.by_label.items():
        for member in own:
            columns = reader.predictions(member.run).get(experiment.split)
            if columns:
                by_method.setdefault(label, {})[member.seed] = columns
    if not by_method:
        return None
    matrices: dict[str, Sequence[Block]] = {
        label: [Plot(confusion(list(seeds.values()), names, label=label, split=experiment.split), height=420)]
        for label, seeds in by_method.items()
    }
    blocks: list[Block] = [Switch("Method", matrices)]
    baseline = next(iter(by_method))
    if len(by_method) > 1:
        blocks += changes(by_method, baseline, names, split=experiment.split)
    return Section("predictions", "Predictions", blocks)


def confusion(seeds: Sequence[Columns], names: Mapping[int, str], *, label: str, split: str) -> Chart:
    """How often each class was predicted as each other one, in per cent of the class, over all seeds.

    Of many classes those with most errors are shown, and those that they are taken for share a last column.

    >>> columns = {"label": np.array([0, 0, 1]), "predicted": np.array([0, 1, 1])}
    >>> confusion([columns], {0: "cat", 1: "dog"}, label="plain", split="test").layers[0].z
    ((50.0, 50.0), (0.0, 100.0))
    """
    labels = np.concatenate([columns["label"] for columns in seeds])
    predicted = np.concatenate([columns["predicted"] for columns in seeds])
    present, sizes = np.unique(labels, return_counts=True)
    wrong = {int(c): float((predicted[labels == c] != c).mean()) for c in present}
    shown = (
        sorted(wrong) if len(wrong) <= MOST_CLASSES else sorted(sorted(wrong, key=lambda c: -wrong[c])[:MOST_CLASSES])
    )
    others = sorted({int(c) for c in np.unique(predicted)} - set(wrong))  # predicted, but with no example here
    columns = sorted([*shown, *others]) if len(wrong) <= MOST_CLASSES else shown
    shares = {row: {column: float((predicted[labels == row] == column).mean()) for column in columns} for row in shown}
    table = [[round(100 * shares[row][column], 1) for column in columns] for row in shown]
    called = [names.get(c, str(c)) for c in columns]
    if len(wrong) > MOST_CLASSES:
        table = [
            [*cells, max(0.0, round(100 * (1 - sum(shares[row].values())), 1))]
            for row, cells in zip(shown, table, strict=True)
        ]
        called.append("all others")
    pairs, counts = np.unique(np.stack([labels, predicted])[:, labels != predicted], axis=1, return_counts=True)
    remark = " Nothing is confused."
    if len(counts):
        rates = [count / int((labels == true).sum()) for count, true in zip(counts, pairs[0], strict=True)]
        true, taken = (int(c) for c in pairs[:, int(np.argmax(rates))])
        share = 100 * max(rates)
        remark = (
            f" Most often {names.get(true, str(true))} is taken for {names.get(taken, str(taken))}: "
            f"{share:.{1 if share >= 0.1 else 4}f}%."
        )
    some = f" The {MOST_CLASSES} classes with most errors are shown." if len(wrong) > MOST_CLASSES else ""
    num = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return Chart(
        f"Confusion matrix, {label}",
        "predicted",
        "true class",
        [
            Heat(
                called,
                [names.get(c, str(c)) for c in shown],
                table,
                "% of the class",
                low=0.0,
                high=100.0,
                show_values=len(called) <= 12,
            )
        ],
        f"How the {int(sizes.sum()) // len(seeds):,} examples of {split} were classified, n = {num}.{remark}{some}",
    )


def changes(
    by_method: Mapping[str, Mapping[int, Columns]], baseline: str, names: Mapping[int, str], *, split: str
) -> list[Block]:
    """How many examples each method gets right that the baseline gets wrong, and the other way round, seed by seed."""
    rows: list[list[Any]] = []
    listed: list[list[Any]] = []
    for label, seeds in by_method.items():
        for seed, said in seeds.items() if label != baseline else ():
            plain = by_method[baseline].get(seed)
            if plain is None or not np.array_equal(plain["index"], said["index"]):
                continue
            before, after = plain["predicted"] == plain["label"], said["predicted"] == said["label"]
            fixed, broken = ~before & after, before & ~after
            rows.append([label, seed, int(fixed.sum()), int(broken.sum()), int((~before & ~after).sum())])
            for word, which in (("now right", fixed), ("now wrong", broken)):
                for row in np.flatnonzero(which):
                    classes = [
                        names.get(int(each["predicted"][row]), int(each["predicted"][row])) for each in (plain, said)
                    ]
                    true = int(said["label"][row])
                    listed.append([label, seed, int(said["index"][row]), names.get(true, true), *classes, word])
    if not rows:
        return [Prose(f"No seed has predictions of both {baseline} and another method.")]
    columns = ["method", "seed", f"{baseline} wrong, now right", f"{baseline} right, now wrong", "wrong with both"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["method", "seed", "index", "class", f"predicted by {baseline}", "predicted by the method", "change"]
    )
    writer.writerows(listed[:MOST_LISTED])
    more = f" (the first {MOST_LISTED:,} of {len(listed):,})" if len(listed) > MOST_LISTED else ""
    return [
        Table(
            columns, rows, f"Examples of {split} whose classification changed, against {baseline} with the same seed."
        ),
        Download(f"The examples that changed as CSV{more}", "changed-examples.csv", text.getvalue()),
    ]
