"""Importance at the real and the phantom weights of networks on CelebA and Waterbirds (figures 5, 6, 8 and 9)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenly.errors import DataError
from evenly.papers.experiment import Context, Part, PartResult, Scale
from evenly.papers.springer2024.image_training import CELEBA, DIGITS, PRETRAINED, SMOKE_SAYS, WATERBIRDS
from evenly.papers.springer2024.quantities import at

EPOCHS = {"celeba": (1, 5, 10, 20), "waterbirds": (5, 20, 50, 100)}
TITLES = {"celeba": "CelebA", "waterbirds": "Waterbirds"}
RECIPES = {"celeba": CELEBA, "waterbirds": WATERBIRDS}
MINUTES = {"celeba": 8000.0, "waterbirds": 2500.0}
DEVIATIONS = (
    "not in the paper, settled here: lr .001, ρ = .05, the epochs, 5,000 training examples drawn at random",
    "phantoms of batches of 128, as in training; contributions by probes fitted on validation examples of each group",
)


def scales(name: str) -> dict[str, Scale]:
    """The sizes of an experiment on one of the two data sets."""
    # Four epochs of a tiny network stand for those of the paper.
    tiny = {"recipe": {**DIGITS, "epochs": 4}, "at_epochs": (1, 2, 3, 4), "shown_epochs": EPOCHS[name], "examples": 60}
    full = {
        "recipe": RECIPES[name],
        "at_epochs": EPOCHS[name],
        "weights": PRETRAINED,
        "splits": {"fit": "validation", "test": "test"},
    }
    return {
        "smoke": Scale((0, 1), 0.1, tiny, deviations=SMOKE_SAYS),
        "full": Scale((0, 1, 2, 3), MINUTES[name], full, (name,), DEVIATIONS, levels=True),
    }


def plan(
    seeds: Sequence[int],
    *,
    recipe: Mapping[str, Any],
    at_epochs: Sequence[int],
    examples: int = 5000,
    shown_epochs: Sequence[int] | None = None,
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
) -> list[Part]:
    """A part for every seed: SGD and SAM of ρ = .05."""
    more: dict[str, Any] = {"weights": weights, "splits": splits} if weights else {"shown_epochs": shown_epochs}
    given = {"recipe": dict(recipe), "rho": 0.05, "at_epochs": list(at_epochs), "examples": examples, **more}
    return [Part(f"seed {seed}", image_importance, {"seed": seed, **given}) for seed in seeds]


def image_importance(
    context: Context,
    *,
    seed: int,
    recipe: Mapping[str, Any],
    rho: float,
    at_epochs: Sequence[int],
    examples: int,
    shown_epochs: Sequence[int] | None = None,
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
) -> PartResult:
    """Importance at the real and the phantom weights of networks trained by SGD and by SAM, after some epochs.

    Quantities have the names of the toy's, `epoch=E.sam.phantom_gini` and so on; `shown_epochs` are other numbers for
    the epochs in them. Phantoms are of batches as in training, over `examples` training examples drawn at random.
    Contributions are those of two probes, fitted on balanced examples. They are signed by the label, y·vᵀΦ, as the
    paper has it; `by_attribute.…` are signed by the attribute's own value, which differs for the minority groups.
    """
    import torch

    from evenly.data import Splits
    from evenly.diagnostics import features, importance, probing_errors
    from evenly.papers.springer2024.image_training import weights_file
    from evenly.papers.springer2024.importance_spread import importance_map, lorenz_points, spread
    from evenly.recipe import Ascent, Recipe, from_mapping
    from evenly.rng import generator
    from evenly.training.train import train
    from evenly.training.trained_model import load_trained

    where = {"fit": "probe", "test": "balanced", **(splits or {})}
    given = from_mapping(Recipe, recipe)
    model = given.model if weights is None else replace(given.model, weights=weights_file(weights, context.data_root))
    values: dict[str, dict[int, float]] = {}
    shown = list(shown_epochs or at_epochs)
    series: dict[str, Any] = {"epochs": shown, "runs": {}}
    for name, ascent in (("sgd", Ascent()), ("sam", Ascent("sam", rho))):
        wanted = replace(given, model=model, ascent=ascent, seed=seed, keep_epochs=tuple(at_epochs))
        run = train(wanted, runs=context.runs, data_root=context.data_root)
        series["runs"][name] = run.id
        for epoch, number in zip(at_epochs, shown, strict=True):
            trained = load_trained(run, epoch=epoch, data_root=context.data_root)
            if trained.splits.num_classes != 2:
                raise DataError(
                    f"{trained.splits.name} has {trained.splits.num_classes} classes: contributions need two."
                )
            some = torch.randperm(len(trained.splits.train), generator=generator(seed, "examples"))[:examples]
            part = trained.splits.train.subset(some)
            lambdas = importance(trained.model, part, rho=rho, group=given.batch_size)
            fit, test = trained.splits[where["fit"]], trained.splits[where["test"]]
            probes = probing_errors(
                trained.model,
                Splits(trained.splits.name, {"train": fit, "probe": fit, "balanced": test}),
                rng=generator(seed, "probe"),
                balance="require" if where["fit"] == "probe" else "subsample",
                refits=1,
            )
            phi = features(trained.model, part)
            unsigned = {a: probes[a].contribution(phi).double() for a in ("easy", "hard")}
            signs = {a: (2 * part.attribute(a) - 1).double() for a in unsigned}
            label_sign = (2 * part.labels - 1).double()
            parts_N2 = torch.stack([label_sign * each for each in unsigned.values()], dim=1)
            own_parts_N2 = torch.stack([signs[a] * each for a, each in unsigned.items()], dim=1)
            prefix = f"{at(epoch=number)}.{name}"
            for kind, w_N in (("real", lambdas.real.double()), ("phantom", lambdas.phantom.double())):
                by_attribute = spread(w_N, own_parts_N2, kind=kind)
                values |= {f"{prefix}.by_attribute.{what}": {seed: v} for what, v in by_attribute.items()}
                values |= {f"{prefix}.{what}": {seed: v} for what, v in spread(w_N, parts_N2, kind=kind).items()}
                series[f"{prefix}.{kind}"] = {
                    "lorenz": lorenz_points(w_N[None]),
                    "map": importance_map(w_N, parts_N2),
                    "map_by_attribute": importance_map(w_N, own_parts_N2),
                }
    return PartResult(values, series)
