"""Table 2: what SAM's features are worth in a domain that was not trained on (DomainBed)."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers import charts
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Measured, Part, PartResult, Scale
from evenly.papers.springer2024 import image_training
from evenly.papers.springer2024.best_settings import Values, best_settings
from evenly.papers.springer2024.quantities import at
from evenly.report.chart import Chart

# Accuracies of the probe, SGD's and SAM's, as far as the table can be read in the paper's text.
DOMAINS: Mapping[str, Mapping[str, tuple[float, float] | None]] = {
    "office-home": {"Art": None, "Clipart": (0.716, 0.745), "Product": None, "Real World": None},
    "pacs": {"art_painting": None, "cartoon": (0.897, 0.921), "photo": (0.955, 0.964), "sketch": None},
    "vlcs": {
        "Caltech101": (0.993, 0.996),
        "LabelMe": (0.736, 0.748),
        "SUN09": (0.748, 0.776),
        "VOC2007": (0.812, 0.830),
    },
}
LARGE: Mapping[str, Any] = {
    **image_training.FINE_TUNED,
    "augment": ["resized-crop:224,0.7,1.0", "mirror", "normalise:standard"],
    "epochs": 20,
    "evaluate_every": 20,
}
REDUCED: Mapping[str, Any] = {**image_training.STACKED, "augment": ["mirror", "normalise:standard"]}
OPEN = (
    "not in the paper, settled here: network (ResNet-18), 20 epochs, batch 128, Waterbirds' augmentation, 3 seeds",
    "DomainBed's 80% / 20% split of every domain",
    "one learning rate and ρ for all seeds, chosen by the mean validation error on the domains trained on",
)


def claims(name: str) -> tuple[Claim, ...]:
    """The mean over the domains of a data set, each domain, and each without any choice of settings."""
    lr, rho = image_training.FIXED
    known = [numbers for numbers in DOMAINS[name].values() if numbers]
    mean = (
        [sum(column) / len(known) for column in zip(*known, strict=True)] if len(known) == len(DOMAINS[name]) else None
    )
    return (
        _accuracy_claim("mean", "the mean over the domains held out", mean),
        *(_accuracy_claim(domain, f"{domain} held out", numbers) for domain, numbers in DOMAINS[name].items()),
        *(
            Claim(
                f"{domain}, ρ = {rho:g}",
                f"{domain} also without any choice: ρ = {rho:g} beside SGD, both of learning rate {lr:g}, accuracy",
                f"{domain}.{at('accuracy', lr=lr, rho=rho)} > {domain}.{at('accuracy', lr=lr, rho=0)}",
                corrects=True,
                after=True,
                note=image_training.SWEEP_NOTE,
            )
            for domain in DOMAINS[name]
        ),
    )


def _accuracy_claim(prefix: str, where: str, numbers: Sequence[float] | None) -> Claim:
    sgd, sam = numbers or (None, None)
    return Claim(
        prefix,
        f"{where}: a probe reads the class from SAM's features better than from SGD's, accuracy",
        f"{prefix}.sam.accuracy > {prefix}.sgd.accuracy",
        paper=sam,
        paper_against=sgd,
        margin=None if sgd is None or sam is None else image_training.margin(sgd, sam, floor=0.001, most=0.02),
        note="" if numbers else "the paper's number could not be read from its text",
    )


def plan(
    seeds: Sequence[int],
    *,
    recipe: Mapping[str, Any],
    name: str,
    rates: Sequence[float],
    rhos: Sequence[float],
    options: Mapping[str, Any] | None = None,
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
) -> list[Part]:
    """A part for every domain and seed."""
    parts = []
    for domain in DOMAINS[name]:
        # Without options the recipe's own data stand for every domain: a smoke test.
        data = {"data": {"name": name, "options": {"target": domain, **options}}} if options is not None else {}
        more: dict[str, Any] = {"weights": weights} if weights else {"splits": splits} if splits else {}
        given = {"recipe": {**recipe, **data}, "rates": list(rates), "rhos": list(rhos), "domain": domain, **more}
        parts += [Part(f"{domain}, seed {s}", transfer_accuracies, {"seed": s, **given}) for s in seeds]
    return parts


def transfer_accuracies(
    context: Context,
    *,
    seed: int,
    domain: str,
    recipe: Mapping[str, Any],
    rates: Sequence[float],
    rhos: Sequence[float],
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
    refits: int = 1,
) -> PartResult:
    """Train on the other domains, probe on the one held out.

    `DOMAIN.lr=L.rho=R.accuracy`, a share as in the paper, is that of a linear probe of the label, fitted on the target
    domain's training examples, on its test examples; `.validation_error`, by which settings are chosen over all seeds,
    that of the network itself on the domains that were trained on.
    """
    from evenly.diagnostics import features, fit_probe
    from evenly.rng import generator
    from evenly.training.trained_model import load_trained

    where = {"fit": "target_train", "test": "target_test", **(splits or {})}
    values: dict[str, dict[int, float]] = {}
    ids: dict[str, str] = {}
    for lr in rates:
        for rho in rhos:
            run = image_training.train_network(context, recipe, lr=lr, rho=rho, seed=seed, weights=weights)
            trained = load_trained(run, data_root=context.data_root)
            fit, test = trained.splits[where["fit"]], trained.splits[where["test"]]
            probe = fit_probe(
                features(trained.model, fit),
                fit.labels,
                test_features=features(trained.model, test),
                test_targets=test.labels,
                rng=generator(seed, "probe"),
                refits=refits,
            )
            row = {"accuracy": 1 - probe.error, **image_training.run_errors(run)}
            values |= {f"{domain}.{at(what, lr=lr, rho=rho)}": {seed: number} for what, number in row.items()}
            ids[at(lr=lr, rho=rho)] = run.id
    return PartResult(values, {"rates": list(rates), "rhos": list(rhos), "runs": ids})


def choose_settings(values: Values) -> dict[str, dict[int, float]]:
    """`DOMAIN.sgd.…` and `DOMAIN.sam.…` of the settings with the least validation error, and `mean.sgd.accuracy`."""
    best = best_settings(values, "validation_error")
    for name in ("sgd", "sam"):
        domains = [by_seed for quantity, by_seed in best.items() if quantity.endswith(f".{name}.accuracy")]
        best[f"mean.{name}.accuracy"] = {
            seed: sum(each[seed] for each in domains) / len(domains) for seed in domains[0]
        }
    return best


def chart(measured: Measured) -> list[Chart]:
    """The accuracy of the probe in every domain left out."""
    domains = [name.removesuffix(".sgd.accuracy") for name in measured.values if name.endswith(".sgd.accuracy")]
    panel = charts.Panel(
        "Accuracy of a probe in the domain left out",
        "accuracy",
        {name.upper(): {domain: f"{domain}.{name}.accuracy" for domain in domains} for name in ("sgd", "sam")},
        f"SGD beside SAM. {image_training.EVERY_SEED}",
        bar=True,
    )
    return [panel.draw(measured)]


def experiment(name: str, title: str, minutes: float, small: Mapping[str, Scale] | None = None) -> Experiment:
    """One data set of the table."""
    tiny = {
        "recipe": image_training.DIGITS,
        "name": name,
        "rates": (0.01,),
        "rhos": (0.0, 0.1),
        "splits": {"fit": "probe", "test": "balanced"},
    }
    full = {
        "recipe": LARGE,
        "name": name,
        "rates": (0.005, 0.01, 0.02),
        "rhos": (0.0, 0.03, 0.05, 0.1),
        "options": {"size": 224},
        "weights": image_training.PRETRAINED,
    }
    return Experiment(
        key=f"springer2024/table2-{name}",
        title=f"Transfer to the domain left out, {title} (table 2)",
        claim="On the domain that was left out, a linear probe reads SAM's features better than SGD's.",
        plan=plan,
        primary="mean",  # “SAM outperforms SGD on all three datasets”
        claims=claims(name),
        scales={
            "smoke": Scale((0, 1), 0.1, tiny, deviations=image_training.SMOKE_SAYS),
            **(small or {}),
            "full": Scale((0, 1, 2), minutes, full, (name,), (*OPEN, image_training.SWEEP.format(9, 3)), levels=True),
        },
        charts=chart,
        derived=choose_settings,
    )


SMALL_PACS = Scale(
    (0, 1, 2),
    90.0,
    {"recipe": REDUCED, "name": "pacs", "rates": (0.01,), "rhos": (0.0, 0.05, 0.1), "options": {"size": 32}},
    ("pacs",),
    (
        "images of 32×32 and the three-convolution network from scratch, instead of a pretrained ResNet-18",
        "one learning rate, .01, and ρ in 0, .05, .1",
        *OPEN[1:],
        image_training.SWEEP.format(2, 1),
    ),
    stand_in=True,
)
EXPERIMENTS = (
    experiment("office-home", "OfficeHome", 150_000.0),
    experiment("pacs", "PACS", 90_000.0, {"small": SMALL_PACS}),
    experiment("vlcs", "VLCS", 95_000.0),
)
