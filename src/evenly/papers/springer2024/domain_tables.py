"""Table 2: what SAM's features are worth in a domain that was not trained on (DomainBed)."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.picture_tables import (
    DIGITS,
    FINE_TUNED,
    FIXED,
    PRETRAINED,
    SMOKE_SAYS,
    STACKED,
    SWEEP,
    margin,
)
from evenly.papers.springer2024.probing_figures import ROOM

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
    **FINE_TUNED,
    "augment": ["resized-crop:224,0.7,1.0", "mirror", "normalise:standard"],
    "epochs": 20,
    "evaluate_every": 20,
}
REDUCED: Mapping[str, Any] = {**STACKED, "augment": ["mirror", "normalise:standard"]}
OPEN = (
    "not in the paper, settled here: network (ResNet-18), 20 epochs, batch 128, Waterbirds' augmentation, 3 seeds",
    "DomainBed's 80 % / 20 % split of every domain",
    "one learning rate and ρ for all seeds, chosen by the mean validation error on the domains trained on",
)


def _transferred(
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
    parts = []
    for domain in DOMAINS[name]:
        # Without options the recipe's own data stand for every domain: a smoke test.
        held = {"data": {"name": name, "options": {"target": domain, **options}}} if options is not None else {}
        more: dict[str, Any] = {"weights": weights} if weights else {"splits": splits} if splits else {}
        given = {"recipe": {**recipe, **held}, "rates": list(rates), "rhos": list(rhos), "under": domain, **more}
        parts += [Part(f"{domain}, seed {s}", f"{ROOM}.pictures:transferred", {"seed": s, **given}) for s in seeds]
    return parts


def _claim(domain: str, numbers: tuple[float, float] | None) -> Claim:
    sgd, sam = numbers or (None, None)
    return Claim(
        domain,
        f"{domain} held out: a probe reads the class from SAM's features better than from SGD's, accuracy",
        f"{domain}.sam.accuracy",
        "greater",
        f"{domain}.sgd.accuracy",
        paper=sam,
        paper_against=sgd,
        margin=None if sgd is None or sam is None else margin(sgd, sam, floor=0.001, most=0.02),
        note="" if numbers else "the paper's number could not be read from its text",
    )


def _fixed(domain: str) -> Claim:
    lr, rho = FIXED
    return Claim(
        f"{domain}, ρ = {rho:g}",
        f"{domain} also without any choice: ρ = {rho:g} beside SGD, both of learning rate {lr:g}, accuracy",
        f"{domain}.{at('accuracy', lr=lr, rho=rho)}",
        "greater",
        f"{domain}.{at('accuracy', lr=lr, rho=0)}",
        corrects=True,
        after=True,
        note="the best of a sweep can be better by the choice alone, and SAM's sweep is the longer one",
    )


def _table_2(name: str, title: str, minutes: float, small: Mapping[str, Scale] | None = None) -> Experiment:
    tiny = {
        "recipe": DIGITS,
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
        "weights": PRETRAINED,
    }
    return Experiment(
        key=f"springer2024/table2-{name}",
        title=title,
        claim="On the domain that was left out, a linear probe reads SAM's features better than SGD's.",
        plan=_transferred,
        claims=(
            *(_claim(domain, numbers) for domain, numbers in DOMAINS[name].items()),
            *(_fixed(domain) for domain in DOMAINS[name]),
        ),
        scales={
            "smoke": Scale((0, 1), 0.1, tiny, deviations=SMOKE_SAYS),
            **(small or {}),
            "full": Scale((0, 1, 2), minutes, full, (name,), (*OPEN, SWEEP.format(9, 3)), levels=True),
        },
        charts=f"{ROOM}.charts_pictures:table_2",
        derived=f"{ROOM}.choosing:table_2",
    )


SMALL_PACS = Scale(
    (0, 1, 2),
    90.0,
    {
        "recipe": REDUCED,
        "name": "pacs",
        "rates": (0.01,),
        "rhos": (0.0, 0.05, 0.1),
        "options": {"size": 32},
    },
    ("pacs",),
    (
        "images of 32×32 and the three-convolution network from scratch, instead of a pretrained ResNet-18",
        "one learning rate, .01, and ρ in 0, .05, .1",
        *OPEN[1:],
        SWEEP.format(2, 1),
    ),
    stand_in=True,
)
EXPERIMENTS = (
    _table_2("office-home", "Transfer to the domain left out, OfficeHome (table 2)", 150_000.0),
    _table_2("pacs", "Transfer to the domain left out, PACS (table 2)", 90_000.0, {"small": SMALL_PACS}),
    _table_2("vlcs", "Transfer to the domain left out, VLCS (table 2)", 95_000.0),
)
