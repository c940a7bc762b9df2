"""Several instruments pointed at one model: `measure(model, data, "sharpness", "probing")` gives plain numbers."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from evenly.curvature import hessian
from evenly.curvature.chunks import EXPECTED, Data, chunked
from evenly.curvature.lanczos import Krylov, Symmetric
from evenly.curvature.observing import observing
from evenly.data.labelled import Labelled, Splits, scaled
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
    data: Splits | Data,
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
        A data set (`Splits`), one part of it (`Labelled`), a pair of tensors (inputs, labels), or the batches of any
        loader, read once. Training examples are measured, `balanced` and `probe` ones are probed. Labels are class
        numbers; uint8 images are scaled to [0, 1].
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
    more = dict(options or {})
    for name in (*what, *more):
        if name not in INSTRUMENTS:
            raise UsageError(f"there is no measurement {name!r}. {did_you_mean(name, INSTRUMENTS)}")
    if examples < 1:
        raise UsageError(f"examples = {examples}: give 1 or more.")
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
    splits = _splits(data, model)
    part = even_part(splits.train, examples, generator(seed, "examples"))
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


def even_part(data: Labelled, examples: int, rng: torch.Generator) -> Labelled:
    """At most `examples` examples, equally many of each class as far as there are, in the order of the data.

    >>> data = Labelled(torch.zeros(10, 1), torch.tensor([0] * 8 + [1] * 2), ("many", "few"))
    >>> even_part(data, 4, torch.Generator().manual_seed(0)).labels.tolist()
    [0, 0, 1, 1]
    """
    if len(data) <= examples:
        return data
    order = torch.randperm(len(data), generator=rng)
    # The first of each class come before the seconds of any.
    labels = data.labels.cpu()[order]
    turn = torch.empty(len(data), dtype=torch.int64)
    for label in set(labels.tolist()):
        members = (labels == label).nonzero().flatten()
        turn[members] = torch.arange(len(members))
    return data.subset(order[turn.argsort(stable=True)[:examples]].sort().values)


def deflated_trace(
    operator: Symmetric, *, rng: torch.Generator, steps: int = 40, probes: int = 60, tol: float = 0.05
) -> tuple[float, float]:
    """Tr H and its standard error: exact on a Krylov space V, by sign vectors z on the rest of the space.

    Tr H = Tr VᵀHV + E[zᵀQHQz], Q = I − VVᵀ. V holds the extreme eigenvectors, which make up the variance of
    Hutchinson's estimator (the idea of Hutch++, Meyer et al., 2021). Probes end when the error is `tol` of the trace.

    >>> class Powers:
    ...     size, dtype, device = 100, torch.float64, torch.device("cpu")
    ...     def __matmul__(self, v):
    ...         return 0.5 ** torch.arange(100, dtype=v.dtype) * v
    >>> trace, error = deflated_trace(Powers(), rng=torch.Generator().manual_seed(0))
    >>> round(trace, 6), error < 1e-6
    (2.0, True)
    """
    krylov = Krylov(operator, rng=rng)
    while krylov.products < min(steps, operator.size):
        krylov.step()
    inside, basis = float(krylov.ritz()[0].sum()), krylov.basis
    if krylov.complete:
        return inside, 0.0
    total = squares = 0.0
    for count in range(1, probes + 1):
        z = (torch.randint(2, (operator.size,), generator=rng, device=rng.device) * 2 - 1).to(basis)
        z = z - basis.T @ (basis @ z)
        value = float(torch.dot(z.double(), (operator @ z).double()))
        total, squares = total + value, squares + value**2
        error = math.sqrt(max(squares - total**2 / count, 0.0) / (count * max(count - 1, 1)))
        if count >= 10 and error <= tol * abs(inside + total / count):
            break
    return inside + total / count, error


def _splits(data: Splits | Data, model: nn.Module) -> Splits:
    """Data of any shape as splits whose examples the model takes and whose labels it can tell apart."""
    if isinstance(data, Labelled):
        data = Splits(data.name, {"train": data})
    if isinstance(data, Splits):
        inputs, labels = data.train.gather(range(min(4, len(data.train)))), data.train.labels
    else:
        inputs, labels = _pair(data)
    num_outputs = _num_outputs(model, scaled(inputs[:4]))
    _check_labels(labels, num_outputs)
    if isinstance(data, Splits):
        return data
    return Splits("data", {"train": Labelled(inputs, labels.long(), tuple(map(str, range(max(num_outputs, 2)))))})


def _pair(data: Data) -> tuple[Tensor, Tensor]:
    """All inputs and all labels of a pair of tensors or of batches."""
    if isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        return data[0], data[1]
    chunks = chunked(data)
    inputs, labels = [x for x, _ in chunks], [y for _, y in chunks if y is not None]
    if len(labels) < len(inputs):
        raise UsageError(f"the data are a tensor, or batches of one, without labels: give {EXPECTED}.")
    try:
        return torch.cat(inputs), torch.cat(labels)
    except RuntimeError as error:
        shapes = ", ".join(sorted({str(tuple(x.shape)) for x in inputs}))
        raise DataError(
            f"the batches, of shapes {shapes}, do not fit together ({error}): give equal shapes."
        ) from error


def _num_outputs(model: nn.Module, few: Tensor) -> int:
    """How many outputs the model has for an example: found by trying it on a few."""
    if not len(few):
        raise DataError("there are no examples to measure: give at least one.")
    try:
        with observing(model), torch.no_grad():
            outputs = model(chunked(few, model=model)[0][0])
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        name, weight = next(iter(model.named_parameters()), ("none", torch.empty(0)))
        raise UsageError(
            f"{type(model).__name__} cannot take examples of shape {tuple(few.shape[1:])} and {few.dtype}; its first "
            f"weight, {name!r}, has shape {tuple(weight.shape)}. Give inputs as it was made for, or change them before "
            f"it, as nn.Sequential(nn.Flatten(), model) does. Torch says: {error}"
        ) from error
    return outputs[0].numel() if isinstance(outputs, Tensor) and outputs.ndim and len(outputs) else 1


def _check_labels(labels: Tensor, num_outputs: int) -> None:
    if labels.is_floating_point() or labels.ndim != 1:
        raise DataError(
            f"labels are {labels.dtype} of shape {tuple(labels.shape)}: measure needs one class number per example, "
            "such as labels.long(). evenly.diagnostics.sharpness and worst_rise take floating targets."
        )
    wrong = ((labels < 0) | (labels >= max(num_outputs, 2))).nonzero().flatten().tolist()
    if wrong:
        raise DataError(
            f"label {int(labels[wrong[0]])} of example {wrong[0]} is out of range ({len(wrong)} such labels): for the "
            f"model's {num_outputs} output(s) classes are numbered 0 to {max(num_outputs, 2) - 1}. Renumber them."
        )
