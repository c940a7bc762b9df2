"""Each instrument as `measure` calls it: from a model and its data to plain numbers under plain names."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from evenly.curvature import density, hessian
from evenly.curvature.observing import observing
from evenly.data.labelled import Labelled, Splits
from evenly.diagnostics.features import features
from evenly.diagnostics.importance import importance
from evenly.diagnostics.importance_map import can_be_mapped, importance_map, lorenz_curves
from evenly.diagnostics.probing_error import probing_errors
from evenly.diagnostics.rank import feature_rank
from evenly.diagnostics.reliance import reliance
from evenly.diagnostics.sharpness import sharpness, worst_rise
from evenly.diagnostics.trace import deflated_trace
from evenly.errors import DataError

Numbers = dict[str, Any]
TAIL = 0.1  # of the largest eigenvalue: what is above it are outliers of the bulk


def _sharpness(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    found = sharpness(model, part, rng=rng, **{"trace_probes": 0, **more})
    trace, trace_error = found.trace, found.trace_error
    if "trace_probes" not in more:
        with observing(model):
            operator = hessian(model, part, loss=more.get("loss"), chunk=more.get("chunk", 250))
            trace, trace_error = deflated_trace(operator, rng=rng)
    return {
        "lambda_max": found.lambda_max,
        "lambda_ratio_5": found.lambda_ratio_5,
        "eigenvalues": list(found.eigenvalues),
        "eigenvalue_residuals": list(found.residuals),
        "trace": trace,
        "trace_error": trace_error,
        "l1": found.l1,
    }


def _density(
    model: nn.Module, part: Labelled, splits: Splits, rng: torch.Generator, asked: Numbers, more: Numbers
) -> Numbers:
    with observing(model):
        operator = hessian(model, part, loss=more.pop("loss", None), chunk=more.pop("chunk", 250))
        found = density(operator, rng=rng, **{"probes": 4, "steps": 40, **more})
    grid_X, values_X, width = found.grid()
    above = TAIL * float(found.nodes.max())
    return {
        "density": {"grid": grid_X.tolist(), "values": values_X.tolist(), "width": width},
        "tail": {
            "above": above,
            "share": found.share_above(above),
            "trace": found.trace_above(above),
            "negative": found.trace - found.trace_above(0.0),  # what the eigenvalues below zero add to it
        },
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
    numbers = {"gini": found.real_gini, "phantom_gini": found.phantom_gini, "gini_rho": settings["rho"]}
    if (curves := lorenz_curves(found)) is not None:
        numbers["lorenz"] = curves
    if can_be_mapped(part, splits):
        numbers["importance_map"] = importance_map(model, part, splits, found=found, rng=rng, layer=asked["layer"])
    return numbers


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
    balanced, natural = _first(splits, "balanced"), _first(splits, "test")
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
    "density": _density,
    "rise": _rise,
    "importance": _importance,
    "rank": _rank,
    "probing": _probing,
    "reliance": _reliance,
}


def by_default(name: str, splits: Splits) -> bool:
    """Whether a measurement is made unless others are asked for: the data allow it, and it does not take long."""
    if name == "density":
        return False
    if name == "probing":
        return "balanced" in splits and {"easy", "hard"} <= set(splits["balanced"].attributes)
    if name == "reliance":
        return bool(_crossed(_first(splits, "balanced")))
    return True


def _first(splits: Splits, name: str) -> Labelled:
    """The part of that name where there is one, else the training part."""
    return splits[name if name in splits else "train"]


def _crossed(data: Labelled) -> list[str]:
    """The attributes of several values of which every one occurs with every label."""
    labels = data.labels.tolist()
    found = []
    for name, values in data.attributes.items():
        pairs, num = set(zip(labels, values.tolist(), strict=True)), len(set(values.tolist()))
        if num > 1 and len(pairs) == len(set(labels)) * num:
            found.append(name)
    return found
