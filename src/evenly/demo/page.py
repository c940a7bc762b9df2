"""The page of `evenly demo`: the bias, what the separation finds, the cure, and the method on real images."""

from statistics import median, quantiles
from typing import Any

from evenly.demo.findings import (
    IMAGE_METHODS,
    METHODS,
    Plain,
    at_end,
    balance,
    difference_text,
    errors,
    headline,
    image_findings,
    toy_findings,
)
from evenly.demo.pictures import grey, heat, shelves
from evenly.intervals import interval, paired_difference
from evenly.report import palette
from evenly.report.blocks import Gallery, Lead, Listing, Plot, Prose, Section, Table
from evenly.report.chart import Bars, Chart, Line, Rule
from evenly.report.figures.training import FEW, clipped_percent
from evenly.report.page import render
from evenly.report.wording import percent

NEXT = {
    "evenly useful photos/ --model resnet18 --epochs 30": "the method and its controls on a folder of your own images",
    "evenly useful digits --model mlp --epochs 20 --seeds 0-4": "the same on digits, with five seeds",
    "evenly train digits --model mlp --epochs 20 --optimizer sam": "SAM, in a run folder that can be continued",
    "evenly report {runs} --out page.html": "the runs of this demo, looked at one by one",
    "evenly reproduce --list": "the figures and tables of the papers",
}


def demo_page(toy: Plain, images: Plain, *, command: str, runs: str) -> str:
    """The whole page as text, from what `toy_story` and `image_story` return (or from their JSON)."""
    lean, hits, growth, wrong = toy_findings(toy)
    facts = [
        (f"difficult / easy alignment, {METHODS[method]} (1 is even)", f"{median(balance(toy, method)):.2f}")
        for method in ("plain", "useful", "sam")
    ]
    trained = len(toy["alignment"]) * toy["setting"]["seeds"] + _num_runs(images)
    facts.append(("networks trained", f"{trained:,}"))
    sections = [
        _bias(toy, lean),
        _separation(toy, hits),
        _cure(toy, growth, wrong),
        _images(images),
        Section("next", "What to do next", [Prose(_NEXT), Listing("Commands", commands(runs), open=True)]),
    ]
    lead = Lead(f"{headline(toy)} {_ALIGNMENT}", facts=facts, command=command)
    return render("Simplicity bias, and its cure", lead, sections)


def commands(runs: str) -> str:
    """What to try next: a command per line, and what it does."""
    lines = {line.format(runs=runs): why for line, why in NEXT.items()}
    width = max(map(len, lines))
    return "".join(f"{line:{width}}  # {why}\n" for line, why in lines.items())


def _bias(toy: Plain, lean: str) -> Section:
    setting = toy["setting"]
    text = (
        "Every example has a difficult patch that always determines its class, a patch of noise, and mostly "
        f"({setting['alpha']:.0%}) an easy patch, {1 / setting['beta_hard']:.3g} times as strong as the difficult one. "
        f"A network with 40 cubic filters is trained by full-batch gradient descent. {lean}"
    )
    layers: list[Line | Rule] = [
        _curve(toy, "plain", "easy", name="easy feature"),
        _curve(toy, "plain", "hard", name="difficult feature"),
        Rule(x=toy["setting"]["separate_at"], name="outputs separated here"),
    ]
    chart = Chart("Plain training and the two features", "iteration", "alignment", layers, _medians(toy))
    return Section("bias", "The easy feature starves the difficult one", [Prose(text), Plot(chart, wide=True)])


def _separation(toy: Plain, hits: str) -> Section:
    at = toy["setting"]["separate_at"]
    rows = [
        [row["seed"], row["lacking"], row["hard"], f"{row['precision']:.3f}", f"{row['recall']:.3f}"]
        for row in toy["separations"]
    ]
    text = (
        f"After {at:,} iterations each network's outputs are clustered in two within each class; the cluster with the "
        f"higher loss is called hard. The clustering does not know which examples have the easy patch. {hits}"
    )
    pictures = Gallery(
        shelves(toy["examples"], heat, what="three patches"),
        "An example is three patches in random order, one in each row. The first column is the direction of the easy "
        "feature, the second that of the difficult one, and the others are ten of the remaining directions. Vermilion "
        "is positive, blue negative.",
    )
    columns = ["seed", "without the easy patch", "called hard", "precision", "recall"]
    return Section("separation", "Which examples are hard", [Prose(text), Table(columns, rows), pictures])


def _cure(toy: Plain, growth: str, wrong: str) -> Section:
    text = (
        "USEFUL trains again from the same weights with every hard example counted twice. Random upsampling "
        f"counts equally many random examples twice, which shows the effect of more examples alone. SAM takes its "
        f"gradient at a nearby point of higher loss, and needs two gradients per step.\n\n{growth}\n\n{wrong}"
    )
    easy, hard = alignment_charts(toy)
    kept = {method: at_end(toy, method, "hard") for method in METHODS}
    failed = {method: [100 * error for error in toy["error"][method]] for method in METHODS}
    ends = _middles("difficult alignment", kept, METHODS)
    rows = [
        [
            METHODS[method],
            _spread(at_end(toy, method, "easy")),
            _spread(kept[method]),
            _spread(balance(toy, method)),
            "" if method == "plain" else difference_text(paired_difference(kept[method], kept["plain"])),
            f"{100 * interval(toy['error'][method]).mean:.2f}",
            "" if method == "plain" else difference_text(paired_difference(failed[method], failed["plain"])),
        ]
        for method in METHODS
    ]
    columns = [
        "method",
        "easy",
        "difficult",
        "difficult / easy",
        "difficult − plain",
        "test error %",
        "error − plain",
    ]
    return Section(
        "cure",
        "What lets the difficult feature grow",
        [
            Prose(text),
            Plot(hard, wide=True),
            Plot(easy),
            Plot(Chart("The difficult feature at the end", "", "alignment", [ends], _ends(toy))),
            Table(columns, rows, "Alignments: median (quartiles). Differences: mean of pairs [95% t-interval]."),
        ],
    )


def alignment_charts(toy: Plain) -> tuple[Chart, Chart]:
    """How far the filters of every method point along the easy and along the difficult feature."""
    easy, hard = (
        Chart(
            title, "iteration", "alignment", [_curve(toy, m, feature, name=METHODS[m]) for m in METHODS], _medians(toy)
        )
        for feature, title in (("easy", "The easy feature"), ("hard", "The difficult feature"))
    )
    return easy, hard


def _images(images: Plain) -> Section:
    setting = images["setting"]
    hits, test, balanced = image_findings(images)
    text = (
        "A digit 0 or 1, easy to tell apart, on an even or odd digit, which is not: scikit-learn's handwritten digits, "
        f"two by two. A fifth have no upper digit. A small network, {setting['epochs']} epochs, {setting['seeds']} "
        f"seeds: the whole method, early run and separation included.\n\n{hits}\n\n{test}\n\n{balanced}"
    )
    blocks: list[Any] = [
        Prose(text),
        Gallery(shelves(images["examples"], grey, what="a digit on a digit"), _EXTREMES),
    ]
    for split, title in (("test", "Test error"), ("balanced", "Error where the upper digit says nothing")):
        values = {method: errors(images, method, split) for method in IMAGE_METHODS}
        layer = _bars(title, values, IMAGE_METHODS)
        sentence = test if split == "test" else balanced
        blocks.append(Plot(Chart(title, "", "error (%)", [layer], f"{sentence} {_means(layer)}")))
    blocks.append(Table(["method", "test %", "change", "balanced %", "change", "cost"], _image_rows(images), _PAIRS))
    return Section("images", "The whole method on real images", blocks)


def _image_rows(images: Plain) -> list[list[str]]:
    rows = []
    for method, name in IMAGE_METHODS.items():
        row = [name]
        for split in ("test", "balanced"):
            own = errors(images, method, split)
            row += [
                percent(interval([error / 100 for error in own])),
                "" if method == "plain" else difference_text(paired_difference(own, errors(images, "plain", split))),
            ]
        cost = interval([each["cost"] for each in images["rows"] if each["method"] == method]).mean
        rows.append([*row, f"{cost:.2f}×"])
    return rows


def _num_runs(images: Plain) -> int:
    return len({row[kind] for row in images["rows"] for kind in ("run", "early") if row[kind]})


def _curve(toy: Plain, method: str, feature: str, *, name: str) -> Line:
    """Median over seeds, with the middle half."""
    cuts = [_quartiles(row) for row in toy["alignment"][method][feature]]
    low, middle, high = zip(*cuts, strict=True)
    return Line(name, toy["steps"], middle, low=low, high=high, dashed=palette.is_control(name))


def _middles(name: str, values: dict[str, list[float]], names: dict[str, str]) -> Bars:
    """Medians and quartiles, as in the tiles and the table."""
    low, middle, high = zip(*map(_quartiles, values.values()), strict=True)
    return Bars(name, [names[method] for method in values], middle, low, high, dots=list(values.values()))


def _bars(name: str, values: dict[str, list[float]], names: dict[str, str]) -> Bars:
    """Mean errors in per cent with their intervals, cut at 0 and 100%."""
    known = {method: interval(own) for method, own in values.items()}
    return Bars(
        name,
        [names[method] for method in values],
        [each.mean for each in known.values()],
        low=[clipped_percent(each.low) for each in known.values()],
        high=[clipped_percent(each.high) for each in known.values()],
        dots=list(values.values()),
        bar=max(map(len, values.values())) > FEW,
    )


def _means(layer: Bars) -> str:
    mark = "bar" if layer.bar else "diamond"
    num = max(map(len, layer.dots or [()]))
    return f"A {mark} is the mean of {num} seeds, its whisker the 95% interval, cut at 0 and 100%; a dot is a seed."


def _quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _spread(values: list[float]) -> str:
    low, middle, high = _quartiles(values)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def _medians(toy: Plain) -> str:
    return f"A line is the median over seeds, its band the interquartile range, n = {toy['setting']['seeds']} seeds."


def _ends(toy: Plain) -> str:
    num = toy["setting"]["seeds"]
    return f"A bar is the median over seeds, its whisker the interquartile range, a dot a seed; n = {num} seeds."


_NEXT = (
    "USEFUL can help where an easy feature hides a difficult one that matters, and does harm where labels are wrong. "
    "Try it on your data, always with its controls: the intervals say whether it helped. It is not for training for a "
    "single epoch, regression, or class imbalance alone."
)
_EXTREMES = "First seed: easy examples with the lowest and hard ones with the highest loss in the early network."
_PAIRS = (
    "Errors and changes against plain training: mean over seeds [95% t-interval]; changes in points, paired by seed."
)
_ALIGNMENT = "Alignment with a feature v is the largest |⟨w, v⟩| over all filters w."
