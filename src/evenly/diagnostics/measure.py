"""Several measurements of one model: `measure(model, data, "sharpness", "probing")` returns plain numbers."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any

import torch
from torch import nn

from evenly.curvature.chunks import Data
from evenly.data.splits import Splits
from evenly.diagnostics.measurement_data import as_splits, even_part
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.measurements import MEASUREMENTS, Measurement
from evenly.progress import track
from evenly.rng import generator, key

_UNKNOWN_OPTION = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def measure(
    model: nn.Module,
    data: Splits | Data,
    *what: str,
    rng: torch.Generator,
    examples: int = 1000,
    rho: float = 0.05,
    layer: str | None = None,
    lr: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    refused: MutableMapping[str, DataError] | None = None,
) -> Numbers:
    """The named measurements of a model as one dictionary, ready for JSON; by default all quick ones the data allow.

    `evenly.measurements` and `evenly measure --help` list the names; docs/instruments.md says what each returns.

    Parameters
    ----------
    data
        A data set (`Splits`), one part of it (`Labelled`), a pair of tensors (inputs, labels), or the batches of any
        loader, read once. Training examples are measured, `balanced` and `probe` ones are probed. Labels are class
        numbers; uint8 images are scaled to [0, 1].
    examples
        How many training examples to use, equally many of each class (1,000 in Nguyen et al., 2024).
    rho
        The radius of the measurements whose entry `takes` it: `rise`, `importance` and others.
    layer
        The layer whose input `rank`, `probing` and `importance` read; by default the last linear layer.
    lr
        The learning rate, which `sam_edge` needs.
    options
        Options of one instrument: `{"sharpness": {"tol": 1e-4}}`.
    refused
        If given, measurements that the data do not allow are put here with the reason, and the rest are made; by
        default the reason is raised.

    Each instrument draws from a stream of its own, so that its numbers do not depend on what else is measured.

    Examples
    --------
    >>> from evenly.data import load
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> numbers = measure(model, load("spirals"), "sharpness", "importance", rng=torch.Generator().manual_seed(0))
    >>> sorted(numbers)[:4]
    ['eigenvalue_residuals', 'eigenvalues', 'examples', 'gini']
    """
    more = dict(options or {})
    for name in (*what, *more):
        if name not in MEASUREMENTS:
            raise UsageError(f"there is no measurement {name!r}. {did_you_mean(name, MEASUREMENTS)}")
    if layer is not None and layer not in (layers := dict(model.named_modules())):
        raise UsageError(f"there is no layer {layer!r}. {did_you_mean(layer, [each for each in layers if each])}")
    if examples < 1:
        raise UsageError(f"examples = {examples}: give 1 or more.")
    if not isinstance(rng, torch.Generator):
        raise UsageError(f"rng = {rng!r} is not a generator: give rng=torch.Generator().manual_seed(0).")
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
    splits = as_splits(data, model)
    part = even_part(splits.train, examples, generator(seed, "examples"))
    numbers: Numbers = {"examples": len(part)}
    quick = [name for name, entry in MEASUREMENTS.items() if entry.quick and _is_possible(entry, splits)]
    for name in track(what or quick, "measuring"):
        stream = torch.Generator().manual_seed(key(seed, name))
        subject = Subject(model, part, splits, stream, rho, layer, lr, dict(more.get(name, {})))
        try:
            numbers |= function_of(name)(subject)
        except TypeError as error:
            if subject.options and (unknown := _UNKNOWN_OPTION.search(str(error))) is not None:
                raise UsageError(_without_option(name, *unknown.groups())) from error
            raise
        except DataError as error:
            if refused is None:
                raise
            refused[name] = error
    # JSON has no NaN: an unknown number is null.
    return {name: None if value != value else value for name, value in numbers.items()}


def function_of(name: str) -> Callable[[Subject], Numbers]:
    """The function that makes a measurement, imported when it is needed.

    >>> function_of("rank").__name__
    'measure_rank'
    """
    function: Callable[[Subject], Numbers] = _import(MEASUREMENTS[name].where)
    return function


def _is_possible(entry: Measurement, splits: Splits) -> bool:
    return not entry.possible or bool(_import(entry.possible)(splits))


def _import(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(f"evenly.diagnostics.{module}"), name)


def _without_option(name: str, function: str, option: str) -> str:
    """The sentence on an option that an instrument does not have; it suggests those of the function that refused it."""
    refused = getattr(sys.modules[function_of(name).__module__], function, None)
    taken = inspect.signature(refused).parameters.values() if refused is not None else ()
    known = [each.name for each in taken if each.kind is each.KEYWORD_ONLY]
    return f"{name} has no option {option!r}." + (f" {did_you_mean(option, known)}" if known else "")
