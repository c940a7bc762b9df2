"""Feature-probing error: how well each named attribute can be read from a network's features."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.diagnostics.features import features
from evenly.diagnostics.probe import Probe, fit_probe
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError, UsageError

Balance = Literal["require", "subsample", "ignore"]


def probing_error(
    model: nn.Module,
    data: Labelled,
    *,
    test: Labelled,
    attribute: str,
    rng: torch.Generator,
    layer: str | None = None,
    balance: Balance = "require",
    over: Sequence[str] | None = None,
    **options: Any,
) -> Probe:
    """The 0–1 error of a linear probe for `attribute`, fitted on balanced data, on balanced `test` data.

    Springer et al. (2024), section 3: on a balanced set all combinations of the attributes are equally likely, so that
    the easy feature cannot stand in for the hard one. Features are the inputs of `layer` (by default the last linear
    layer), in eval mode.

    Parameters
    ----------
    balance
        "require" refuses data whose combinations are not equally frequent; "subsample" draws equally many of each
        for every refit and averages the error over them; "ignore" takes the data as they are.
    over
        The attributes that are combined: `easy` and `hard` if there are both, else `attribute` and the label.
    options
        Options of `fit_probe`: `refits`, `strengths`, `held_out`.

    Examples
    --------
    >>> from evenly.data import load
    >>> parts = load("spirals", num_train=20, num_test=400)
    >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))  # every feature is still in there
    >>> data, rng = parts["balanced"], torch.Generator().manual_seed(0)
    >>> halves = data.subset(range(200)), data.subset(range(200, 400))
    >>> probing_error(model, halves[0], test=halves[1], attribute="easy", rng=rng, balance="subsample").error < 0.1
    True
    """
    cells = balanced_groups(data, attribute=attribute, over=over, balance=balance)
    test_cells = balanced_groups(test, attribute=attribute, over=over, balance=balance)
    return fit_probe(
        features(model, data, layer=layer),
        data.attribute(attribute),
        test_features=features(model, test, layer=layer),
        test_targets=test.attribute(attribute),
        groups=cells,
        test_groups=test_cells,
        rng=rng,
        **options,
    )


def probing_errors(
    model: nn.Module,
    splits: Splits,
    *,
    rng: torch.Generator,
    attributes: Sequence[str] = ("easy", "hard"),
    layer: str | None = None,
    balance: Balance = "require",
    **options: Any,
) -> dict[str, Probe]:
    """The probing error of every attribute of a data set: fitted on its `probe` split, tested on `balanced`.

    Without a `probe` split, half of `balanced`, drawn by `rng`, is used instead.

    >>> from evenly.data import load
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> errors = probing_errors(model, load("spirals", num_test=400), rng=torch.Generator().manual_seed(0), refits=1)
    >>> list(errors)
    ['easy', 'hard']
    """
    fit, test = probe_splits(splits, rng)
    for name in attributes:  # before any work: refuse a missing name, an unbalanced set
        for part in (fit, test):
            balanced_groups(part, attribute=name, over=None, balance=balance)
    seen = [features(model, part, layer=layer) for part in (fit, test)]
    probes = {}
    for name in attributes:
        cells = [balanced_groups(part, attribute=name, over=None, balance=balance) for part in (fit, test)]
        probes[name] = fit_probe(
            seen[0],
            fit.attribute(name),
            test_features=seen[1],
            test_targets=test.attribute(name),
            groups=cells[0],
            test_groups=cells[1],
            rng=rng,
            **options,
        )
    return probes


def measure_probing(subject: Subject) -> Numbers:
    """Probing errors of the easy and the hard feature, with intervals."""
    probes = probing_errors(
        subject.model, subject.splits, rng=subject.rng, **{"layer": subject.layer, **subject.options}
    )
    return {name: probe.error for name, probe in probes.items()} | {
        f"{name}_interval": list(probe.interval) for name, probe in probes.items()
    }


def can_probe(splits: Splits) -> bool:
    """Whether the data name an easy and a hard feature on a balanced split."""
    return "balanced" in splits and {"easy", "hard"} <= set(splits["balanced"].attributes)


def probe_splits(splits: Splits, rng: torch.Generator) -> tuple[Labelled, Labelled]:
    """The examples that probes are fitted on, and those they are tested on."""
    if "balanced" not in splits:
        raise DataError(
            f"{splits.name} has no 'balanced' split among {', '.join(splits)}: use probing_error with sets of your own "
            "and balance='subsample'."
        )
    test = splits["balanced"]
    if "probe" in splits:
        return splits["probe"], test
    order = torch.randperm(len(test), generator=rng)
    return test.subset(order[: len(test) // 2]), test.subset(order[len(test) // 2 :])


def balanced_groups(data: Labelled, *, attribute: str, over: Sequence[str] | None, balance: Balance) -> Tensor | None:
    """Each example's combination, if examples must be drawn by it; refuse data that cannot be balanced.

    >>> tag = torch.tensor([0, 1, 0, 1] * 2)
    >>> data = Labelled(torch.zeros(8, 1), torch.tensor([0, 0, 1, 1] * 2), ("a", "b"), {"tag": tag})
    >>> balanced_groups(data, attribute="tag", over=None, balance="subsample").tolist()
    [0, 2, 1, 3, 0, 2, 1, 3]
    """
    if balance not in ("require", "subsample", "ignore"):
        raise UsageError(f"balance = {balance!r}: give 'require', 'subsample' or 'ignore'.")
    target_N = data.attribute(attribute)
    if int(target_N.min()) == int(target_N.max()):
        raise DataError(
            f"attribute {attribute!r} has one value, {int(target_N[0])}, in {data.name} {data.split}: a probe needs "
            "two. Choose another attribute or split."
        )
    if balance == "ignore":
        return None
    names = list(over) if over is not None else _default_attributes(data, attribute)
    columns = [data.attribute(name) for name in names]
    cell_N = torch.zeros(len(data), dtype=torch.int64)
    for column in columns:
        values, places = torch.unique(column, return_inverse=True)
        cell_N = cell_N * len(values) + places
    num_cells = 1
    for column in columns:
        num_cells *= len(set(column.tolist()))
    count = torch.bincount(cell_N, minlength=num_cells)
    if int(count.min()) < 2:
        raise DataError(
            f"{data.name} {data.split}: a combination of {' and '.join(names)} has {int(count.min())} examples. "
            "Use a split where each combination occurs, or balance='ignore'."
        )
    if balance == "require" and not _is_even(count):
        raise DataError(
            f"{data.name} {data.split} is not balanced over {' and '.join(names)}: its combinations have "
            f"{int(count.min())} to {int(count.max())} examples. Ask for balance='subsample' or 'ignore'."
        )
    return cell_N if balance == "subsample" else None


def _is_even(count: Tensor) -> bool:
    """Whether no combination is a quarter more frequent than another, or all are as even as a fair draw would be."""
    expected = count.double().mean()
    return bool(count.max() <= 1.25 * count.min() or ((count - expected).abs() <= 3 * expected.sqrt()).all())


def _default_attributes(data: Labelled, attribute: str) -> list[str]:
    if "easy" in data.attributes and "hard" in data.attributes:
        pair = ["easy", "hard"]
        return pair if attribute in (*pair, "label", "group") else [*pair, attribute]
    return [attribute] if attribute == "label" else [attribute, "label"]
