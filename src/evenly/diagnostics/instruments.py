"""The first instruments as `measure` calls them: from a subject to plain numbers under plain names."""

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
from evenly.diagnostics.subject import Numbers, Subject
from evenly.diagnostics.trace import deflated_trace
from evenly.errors import DataError

TAIL = 0.1  # of the largest eigenvalue: what is above it are outliers of the bulk


def measure_sharpness(subject: Subject) -> Numbers:
    """λ1 … λ5 with residuals, λ1/λ5, the trace with its error, and the L1 norm of the weights."""
    more = dict(subject.options)
    found = sharpness(subject.model, subject.part, rng=subject.rng, **{"trace_probes": 0, **more})
    trace, trace_error = found.trace, found.trace_error
    if "trace_probes" not in more:
        with observing(subject.model):
            operator = hessian(subject.model, subject.part, loss=more.get("loss"), chunk=more.get("chunk", 250))
            trace, trace_error = deflated_trace(operator, rng=subject.rng)
    return {
        "lambda_max": found.lambda_max,
        "lambda_ratio_5": found.lambda_ratio_5,
        "eigenvalues": list(found.eigenvalues),
        "eigenvalue_residuals": list(found.residuals),
        "trace": trace,
        "trace_error": trace_error,
        "l1": found.l1,
    }


def measure_density(subject: Subject) -> Numbers:
    """The spectral density of the Hessian on a grid, and its tail."""
    more = dict(subject.options)
    with observing(subject.model):
        operator = hessian(subject.model, subject.part, loss=more.pop("loss", None), chunk=more.pop("chunk", 250))
        found = density(operator, rng=subject.rng, **{"probes": 4, "steps": 40, **more})
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


def measure_rise(subject: Subject) -> Numbers:
    """The worst rise of the loss within ρ, beside ρ‖∇L‖."""
    more = dict(subject.options)
    found = worst_rise(subject.model, subject.part, rng=subject.rng, **{"rho": subject.rho, **more})
    return {"worst_rise": found.rise, "worst_rise_rho": found.rho, "worst_rise_first_order": found.first_order}


def measure_importance(subject: Subject) -> Numbers:
    """Gini indices and Lorenz curves of the examples, and a map over easy and hard where the data name them."""
    more = dict(subject.options)
    settings = {"rho": subject.rho, **more}
    found = importance(subject.model, subject.part, **settings)
    numbers = {"gini": found.real_gini, "phantom_gini": found.phantom_gini, "gini_rho": settings["rho"]}
    if (curves := lorenz_curves(found)) is not None:
        numbers["lorenz"] = curves
    if can_be_mapped(subject.part, subject.splits):
        numbers["importance_map"] = importance_map(
            subject.model, subject.part, subject.splits, found=found, rng=subject.rng, layer=subject.layer
        )
    return numbers


def measure_rank(subject: Subject) -> Numbers:
    """The PCA rank of the features."""
    more = dict(subject.options)
    settings = {"share": 0.99, **more}
    rank = feature_rank(features(subject.model, subject.part, layer=subject.layer), **settings)
    return {"feature_rank": rank, "feature_rank_share": settings["share"]}


def measure_probing(subject: Subject) -> Numbers:
    """Probing errors of the easy and the hard feature, with intervals."""
    more = dict(subject.options)
    probes = probing_errors(subject.model, subject.splits, rng=subject.rng, **{"layer": subject.layer, **more})
    return {name: probe.error for name, probe in probes.items()} | {
        f"{name}_interval": list(probe.interval) for name, probe in probes.items()
    }


def measure_reliance(subject: Subject) -> Numbers:
    """The accuracy that is lost when an attribute no longer tells the label."""
    more = dict(subject.options)
    balanced, natural = subject.split("balanced"), subject.split("test")
    names = more.pop("attributes", None) or _crossed(balanced)
    if not names:
        raise DataError(
            f"{balanced.name} {balanced.split} has no attribute that occurs with every class in each value: reliance "
            "needs such a split, or evenly.diagnostics.reliance with swap=."
        )
    return {
        f"reliance_{name}": reliance(subject.model, natural, attribute=name, balanced=balanced, **more).reliance
        for name in names
    }


def allowed(name: str, splits: Splits) -> bool:
    """Whether the data have what a quick measurement needs."""
    if name == "probing":
        return "balanced" in splits and {"easy", "hard"} <= set(splits["balanced"].attributes)
    if name == "reliance":
        return bool(_crossed(splits["balanced" if "balanced" in splits else "train"]))
    return True


def _crossed(data: Labelled) -> list[str]:
    """The attributes with several values, each of which occurs with every label."""
    labels = data.labels.tolist()
    crossed = []
    for name, values in data.attributes.items():
        pairs, num = set(zip(labels, values.tolist(), strict=True)), len(set(values.tolist()))
        if num > 1 and len(pairs) == len(set(labels)) * num:
            crossed.append(name)
    return crossed
