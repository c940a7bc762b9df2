"""Figures 5, 6, 8 and 9 on images: how SAM spreads importance over real examples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from evenly.data import Splits
from evenly.diagnostics import features, importance, probing_errors
from evenly.diagnostics.probing_error import Balance
from evenly.errors import DataError
from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.phantom_weights import lorenz_points, mapped, spread
from evenly.papers.springer2024.pictures import weights_file
from evenly.recipe import Ascent, Recipe, from_mapping
from evenly.rng import generator
from evenly.training.train import train
from evenly.training.trained_model import load_trained


def weighted(
    context: Context,
    *,
    seed: int,
    recipe: Mapping[str, Any],
    rho: float,
    at_epochs: Sequence[int],
    examples: int,
    called: Sequence[int] | None = None,
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
) -> Found:
    """Importance at the real and the phantom weights of networks trained by SGD and by SAM, at some epochs.

    Quantities are named as those of the toy, `epoch=E.sam.phantom_gini` and so on; phantoms are of batches as in
    training, over `examples` training examples drawn at random; contributions are those of two probes, fitted on
    balanced examples, signed by the label. `called` are other numbers to call the epochs by.
    """
    where = {"fit": "probe", "test": "balanced", **(splits or {})}
    given = from_mapping(Recipe, recipe)
    model = given.model if weights is None else replace(given.model, weights=weights_file(weights, context.data_root))
    values: dict[str, dict[int, float]] = {}
    names = list(called or at_epochs)
    series: dict[str, Any] = {"epochs": names}
    for name, ascent in (("sgd", Ascent()), ("sam", Ascent("sam", rho))):
        wanted = replace(given, model=model, ascent=ascent, seed=seed, keep_epochs=tuple(at_epochs))
        run = train(wanted, runs=context.runs, data_root=context.data_root)
        for epoch, number in zip(at_epochs, names, strict=True):
            seen = load_trained(run, epoch=epoch, data_root=context.data_root)
            if seen.splits.num_classes != 2:
                raise DataError(f"{seen.splits.name} has {seen.splits.num_classes} classes: contributions need two.")
            some = torch.randperm(len(seen.splits.train), generator=generator(seed, "examples"))[:examples]
            part = seen.splits.train.subset(some)
            found = importance(seen.model, part, rho=rho, group=given.batch_size)
            fit, test = seen.splits[where["fit"]], seen.splits[where["test"]]
            parts = Splits(seen.splits.name, {"train": fit, "probe": fit, "balanced": test})
            balance: Balance = "require" if where["fit"] == "probe" else "subsample"
            rng = generator(seed, "probe")
            probes = probing_errors(seen.model, parts, rng=rng, balance=balance, refits=1)
            read = features(seen.model, part)
            sign_N = (2 * part.labels - 1).double()
            parts_N2 = torch.stack([sign_N * probes[a].contribution(read).double() for a in ("easy", "hard")], dim=1)
            under = f"{at(epoch=number)}.{name}"
            for kind, w_N in (("real", found.real.double()), ("phantom", found.phantom.double())):
                values |= {f"{under}.{what}": {seed: v} for what, v in spread(w_N, parts_N2, kind=kind).items()}
                series[f"{under}.{kind}"] = {"lorenz": lorenz_points(w_N[None]), "map": mapped(w_N, parts_N2)}
    return Found(values, series)
