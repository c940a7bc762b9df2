"""Several instruments pointed at one model: `measure(model, data, "sharpness", "probing")` gives plain numbers."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch import nn

from evenly.curvature.chunks import Data
from evenly.data.labelled import Splits
from evenly.diagnostics.instruments import INSTRUMENTS, Numbers, by_default
from evenly.diagnostics.measured_data import as_splits, even_part
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.progress import track
from evenly.rng import generator, key


def measure(
    model: nn.Module,
    data: Splits | Data,
    *what: str,
    rng: torch.Generator,
    examples: int = 1000,
    rho: float = 0.05,
    layer: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    refused: MutableMapping[str, DataError] | None = None,
) -> Numbers:
    """The named measurements of a model as one dictionary, ready for JSON; by default all quick ones the data allow.

    What can be asked for: `sharpness` (lambda_max, eigenvalues, lambda_ratio_5, trace, l1), `density` (the spectrum of
    the Hessian smeared to a curve, and its tail; only when asked for), `rise` (worst_rise within `rho`), `importance`
    (gini, phantom_gini at `rho`, their lorenz curves, an importance_map where the data name easy and hard features),
    `rank` (feature_rank), `probing` (easy, hard, their intervals; needs a `balanced` split), `reliance` (reliance_NAME
    for attributes that occur with every class).

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
    refused
        Where given, what the data do not allow is put here with its reason, and the rest is measured; by default it is
        raised.

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
    if not isinstance(rng, torch.Generator):
        raise UsageError(f"rng = {rng!r} is no generator: give rng=torch.Generator().manual_seed(0).")
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
    splits = as_splits(data, model)
    part = even_part(splits.train, examples, generator(seed, "examples"))
    found: Numbers = {"examples": len(part)}
    for name in track(what or [name for name in INSTRUMENTS if by_default(name, splits)], "measuring"):
        stream = torch.Generator().manual_seed(key(seed, name))
        asked = {"rho": rho, "layer": layer}
        try:
            found |= INSTRUMENTS[name](model, part, splits, stream, asked, dict(more.get(name, {})))
        except DataError as error:
            if refused is None:
                raise
            refused[name] = error
    # JSON has no NaN: what is unknown is null.
    return {name: None if value != value else value for name, value in found.items()}
