"""Tables 1 and 2 on images: SGD and SAM over a sweep, and what can be read from their features."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.data import Splits
from evenly.data.catalogue import data_root as root_of
from evenly.diagnostics import features, fit_probe, probing_errors
from evenly.diagnostics.probing_error import Balance
from evenly.errors import DataError
from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.names import at
from evenly.recipe import Ascent, Recipe, from_mapping
from evenly.records import Run
from evenly.rng import generator
from evenly.training.train import train
from evenly.training.trained_model import TrainedModel, load_trained

Numbers = dict[str, float]


def probed(
    context: Context,
    *,
    seed: int,
    recipe: Mapping[str, Any],
    rates: Sequence[float],
    rhos: Sequence[float],
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
    refits: int = 5,
) -> Found:
    """Table 1 for one seed: train for every learning rate and ρ, and probe both features.

    `lr=L.rho=R.hard`, `.easy` and `.test` are errors in percent; `.chosen_by`, by which the learning rate of SGD and
    the learning rate and ρ of SAM are chosen over all seeds (`choosing`), is the mean probing error of both features on
    held-out balanced examples (two-fold within those that fit the probe); `.validation_loss` that on the training
    distribution.

    `splits` names where the probe is fitted and tested, by default `probe` and `balanced`; data without these draw
    equally many examples of each group.
    """
    where = {"fit": "probe", "test": "balanced", **(splits or {})}
    found: dict[tuple[float, float], Numbers] = {}
    ids: dict[str, str] = {}
    for lr in rates:
        for rho in rhos:
            run = _trained(context, recipe, lr=lr, rho=rho, seed=seed, weights=weights)
            seen = load_trained(run, data_root=context.data_root)
            found[lr, rho] = _errors(run) | read_out(seen, where, seed=seed, refits=refits)
            ids[at(lr=lr, rho=rho)] = run.id
    values = {at(name, lr=lr, rho=rho): {seed: v} for (lr, rho), row in found.items() for name, v in row.items()}
    return Found(values, {"rates": list(rates), "rhos": list(rhos), "runs": ids})


def transferred(
    context: Context,
    *,
    seed: int,
    under: str,
    recipe: Mapping[str, Any],
    rates: Sequence[float],
    rhos: Sequence[float],
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
    refits: int = 1,
) -> Found:
    """Table 2 for one domain and seed: train on the others, probe on the one held out.

    `UNDER.lr=L.rho=R.accuracy`, a share as in the paper, is that of a linear probe of the label, fitted on the target
    domain's training examples, on its test examples; `.validation_error`, by which settings are chosen over all seeds
    (`choosing`), that of the network itself on the domains that were trained on.
    """
    where = {"fit": "target_train", "test": "target_test", **(splits or {})}
    found: dict[tuple[float, float], Numbers] = {}
    for lr in rates:
        for rho in rhos:
            run = _trained(context, recipe, lr=lr, rho=rho, seed=seed, weights=weights)
            seen = load_trained(run, data_root=context.data_root)
            parts = {name: seen.splits[split] for name, split in where.items()}
            probe = fit_probe(
                features(seen.model, parts["fit"]),
                parts["fit"].labels,
                test_features=features(seen.model, parts["test"]),
                test_targets=parts["test"].labels,
                rng=generator(seed, "probe"),
                refits=refits,
            )
            found[lr, rho] = {"accuracy": 1 - probe.error, **_errors(run)}
    values = {f"{under}.{at(n, lr=lr, rho=rho)}": {seed: v} for (lr, rho), row in found.items() for n, v in row.items()}
    return Found(values, {"rates": list(rates), "rhos": list(rhos)})


def read_out(seen: TrainedModel, where: Mapping[str, str], *, seed: int, refits: int) -> Numbers:
    """The probing errors of both features in percent, and the mean of those on held-out halves of the fitting set."""
    fit, test = seen.splits[where["fit"]], seen.splits[where["test"]]
    balance: Balance = "require" if where["fit"] == "probe" else "subsample"
    rng = generator(seed, "probe")
    parts = Splits(seen.splits.name, {"train": fit, "probe": fit, "balanced": test})
    final = probing_errors(seen.model, parts, rng=rng, balance=balance, refits=refits)
    halves = [range(0, len(fit), 2), range(1, len(fit), 2)]
    held: list[float] = []
    for one, other in (halves, halves[::-1]):
        folds = Splits(seen.splits.name, {"train": fit, "probe": fit.subset(one), "balanced": fit.subset(other)})
        held += [p.error for p in probing_errors(seen.model, folds, rng=rng, balance="subsample", refits=1).values()]
    return {name: 100 * probe.error for name, probe in final.items()} | {"chosen_by": 100 * sum(held) / len(held)}


def weights_file(name: str, data_root: str | None) -> str:
    """Where pretrained weights lie, under the folder of the data.

    >>> weights_file("resnet18.pth", "nowhere")
    Traceback (most recent call last):
    evenly.errors.DataError: nowhere/resnet18.pth, the ImageNet weights to begin with, is not there. ...
    """
    path = Path(root_of(data_root)) / name
    if not path.is_file():
        raise DataError(
            f"{path}, the ImageNet weights to begin with, is not there. Save torchvision's "
            "resnet18(weights='IMAGENET1K_V1').state_dict() under this name with torch.save."
        )
    return str(path)


def _trained(
    context: Context, mapping: Mapping[str, Any], *, lr: float, rho: float, seed: int, weights: str | None
) -> Run:
    recipe = from_mapping(Recipe, mapping)
    model = recipe.model if weights is None else replace(recipe.model, weights=weights_file(weights, context.data_root))
    wanted = replace(
        recipe,
        optimizer=replace(recipe.optimizer, lr=lr),
        ascent=Ascent("sam", rho) if rho else Ascent(),
        model=model,
        seed=seed,
    )
    return train(wanted, runs=context.runs, data_root=context.data_root)


def _errors(run: Run) -> Numbers:
    """Test error in percent, re-weighted by the groups of training where these differ, and validation's."""
    last = run.summary()
    test = last.get("test.adjusted.group", last["test.error"])
    found = {"test": 100 * test, "gradients": float(last["gradients"])}
    if "validation.error" in last:
        found |= {"validation_error": 100 * last["validation.error"], "validation_loss": last["validation.loss"]}
    return found
