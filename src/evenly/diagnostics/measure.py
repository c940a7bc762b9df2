"""Several instruments pointed at one model: `measure(model, data, "sharpness", "probing")` gives plain numbers."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from evenly.data.labelled import Labelled, Splits
from evenly.diagnostics.features import features
from evenly.diagnostics.importance import importance
from evenly.diagnostics.probing_error import probing_errors
from evenly.diagnostics.rank import feature_rank
from evenly.diagnostics.reliance import reliance
from evenly.diagnostics.sharpness import sharpness, worst_rise
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.rng import generator, key

Numbers = dict[str, Any]


def measure(
    model: nn.Module,
    data: Splits | Labelled,
    *what: str,
    rng: torch.Generator,
    examples: int = 1000,
    rho: float = 0.05,
    layer: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Numbers:
    """The named measurements of a model as one flat dictionary, ready for JSON; by default all that the data allow.

    What can be asked for: `sharpness` (lambda_max, eigenvalues, lambda_ratio_5, trace, l1), `rise` (worst_rise within
    `rho`), `importance` (gini, phantom_gini at `rho`), `rank` (feature_rank), `probing` (easy, hard, their intervals;
    needs a `balanced` split), `reliance` (reliance_NAME for attributes that occur with every class).

    Parameters
    ----------
    data
        A data set or one part of it. Training examples are measured, `balanced` and `probe` ones are probed.
    examples
        How many training examples to use, equally many of each class (1,000 in Nguyen et al., 2024).
    rho
        The radius for `rise` and `importance`.
    layer
        The layer whose input is probed; by default the last linear layer.
    options
        More for one instrument: `{"sharpness": {"tol": 1e-4}}`.

    Each instrument draws from a stream of its own, so that its numbers do not depend on what else is measured.

    >>> from evenly.data import load
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> found = measure(model, load("spirals"), "sharpness", "importance", rng=torch.Generator().manual_seed(0))
    >>> sorted(found)[:4]
    ['eigenvalue_residuals', 'eigenvalues', 'examples', 'gini']
    """
    splits = data if isinstance(data, Splits) else Splits(data.name, {"train": data})
    more = dict(options or {})
    for name in (*what, *more):
        if name not in INSTRUMENTS:
            raise UsageError(f"there is no measurement {name!r}. {did_you_mean(name, INSTRUMENTS)}")
    if examples < 1:
        raise UsageError(f"examples = {examples}: give 1 or more.")
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
    part = _even_part(splits.train, examples, generator(seed, "examples"))
    found: Numbers = {"examples": len(part)}
    for name in what or [name for name in INSTRUMENTS if _possible(name, splits)]:
        stream = torch.Generator().manual_seed(key(seed, name))
        asked = {"rho": rho, "layer": layer}
        found |= INSTRUMENTS[name](model, part, splits, stream, asked, dict(more.get(name, {})))
    # JSON has no NaN: what is unknown is null.
    return {name: None if value != value else value for name, value in found.items()}


def _sharpness(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    found = sharpness(model, part, rng=rng, **more)
    return {
        "lambda_max": found.lambda_max,
        "lambda_ratio_5": found.lambda_ratio_5,
        "eigenvalues": list(found.eigenvalues),
        "eigenvalue_residuals": list(found.residuals),
        "trace": found.trace,
        "trace_error": found.trace_error,
        "l1": found.l1,
    }


def _rise(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    found = worst_rise(model, part, rng=rng, **{"rho": asked["rho"], **more})
    return {"worst_rise": found.rise, "worst_rise_rho": found.rho, "worst_rise_first_order": found.first_order}


def _importance(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    settings = {"rho": asked["rho"], **more}
    found = importance(model, part, **settings)
    return {"gini": found.real_gini, "phantom_gini": found.phantom_gini, "gini_rho": settings["rho"]}


def _rank(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    settings = {"share": 0.99, **more}
    rank = feature_rank(features(model, part, layer=asked["layer"]), **settings)
    return {"feature_rank": rank, "feature_rank_share": settings["share"]}


def _probing(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    probes = probing_errors(model, splits, rng=rng, **{"layer": asked["layer"], **more})
    return {name: probe.error for name, probe in probes.items()} | {
        f"{name}_interval": list(probe.interval) for name, probe in probes.items()
    }


def _reliance(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    balanced = _first(splits, "balanced")
    natural = _first(splits, "test")
    names = more.pop("attributes", None) or _crossed(balanced)
    if not names:
        raise DataError(
            f"{balanced.name} {balanced.split} has no attribute that occurs with every class in each value: reliance "
            "needs such a split, or evenly.diagnostics.reliance with swap=."
        )
    return {
        f"reliance_{name}": reliance(model, natural, attribute=name, balanced=balanced, **more).reliance
        for name in names
    }


Instrument = Callable[[nn.Module, Labelled, Splits, torch.Generator, Numbers, Numbers], Numbers]
INSTRUMENTS: Mapping[str, Instrument] = {
    "sharpness": _sharpness,
    "rise": _rise,
    "importance": _importance,
    "rank": _rank,
    "probing": _probing,
    "reliance": _reliance,
}


def _possible(name: str, splits: Splits) -> bool:
    if name == "probing":
        return "balanced" in splits and {"easy", "hard"} <= set(splits["balanced"].attributes)
    if name == "reliance":
        return bool(_crossed(_first(splits, "balanced")))
    return True


def _first(splits: Splits, name: str) -> Labelled:
    """The part of that name where there is one, else the training part."""
    if name in splits:
        return splits[name]
    return splits.train


def _crossed(data: Labelled) -> list[str]:
    """The attributes of several values of which every one occurs with every label."""
    labels = data.labels.tolist()
    found = []
    for name, values in data.attributes.items():
        pairs = set(zip(labels, values.tolist(), strict=True))
        if len(set(values.tolist())) > 1 and len(pairs) == len(set(labels)) * len(set(values.tolist())):
            found.append(name)
    return found


def _even_part(data: Labelled, examples: int, rng: torch.Generator) -> Labelled:
    """At most `examples` examples, equally many of each class as far as there are, in the order of the data."""
    if len(data) <= examples:
        return data
    order = torch.randperm(len(data), generator=rng)
    # The first of each class come before the seconds of any.
    labels = data.labels.cpu()[order]
    turn = torch.empty(len(data), dtype=torch.int64)
    for label in set(labels.tolist()):
        members = (labels == label).nonzero().flatten()
        turn[members] = torch.arange(len(members))
    chosen = order[turn.argsort(stable=True)[:examples]]
    return data.subset(chosen.sort().values)
