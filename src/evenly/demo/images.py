"""The whole method on images that need no download, beside its controls, with every seed in a run folder.

`digit-dominoes` stacks a digit 0 or 1, which is easy to tell apart, on an even or odd digit, which is not; in a fifth
of the examples the upper place is blank. `test` is made like the training set. In `balanced` the upper digit says
nothing of the label: there a network shows how far it has learned the difficult one.
"""

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from evenly.data import Labelled
from evenly.demo.toy import precision_and_recall
from evenly.recipe import Data, Model, Recipe, Until
from evenly.records import Run
from evenly.report.palette import method
from evenly.resampling import Separation
from evenly.training.build import load_data
from evenly.training.separations import separation_of
from evenly.training.useful import train_useful

SPLITS = ("test", "balanced")
SHOWN = 8


@dataclass(frozen=True)
class Images:
    """Which data, how long, how often."""

    data: str = "digit-dominoes"
    seeds: int = 10
    epochs: int = 30
    width: int = 128

    def recipe(self) -> Recipe:
        """How each network is trained; its seed is replaced."""
        model = Model("mlp", {"width": self.width})
        return Recipe(data=Data(self.data), model=model, epochs=self.epochs, evaluate_every=self.epochs)


QUICK = Images(seeds=2, epochs=8)


def image_story(
    setting: Images = Images(),  # noqa: B008  # frozen
    *,
    runs: str | os.PathLike[str],
    device: str = "auto",
) -> dict[str, Any]:
    """Run USEFUL, plain training and random upsampling with the same seeds, and return the results as plain data.

    `rows` has a run each, with its error on every split of `SPLITS`; `separations` how many of the examples whose
    upper place is blank were called hard; `examples` the easiest and hardest pictures of the first seed. Finished
    runs in `runs` are used again.
    """
    recipe = setting.recipe()
    rows: list[dict[str, Any]] = []
    # `test` decides nothing here: every split's error is read from the finished runs.
    for made in train_useful(
        recipe,
        seeds=range(setting.seeds),
        controls=("original", "random"),
        until=Until("gain"),
        runs=runs,
        split="test",
        device=device,
    ):
        summary = Run.open(made.run, runs).summary()
        rows.append(
            {"method": method(made.method), "seed": made.seed, "run": made.run, "early": made.early}
            | {"share": made.share, "cost": made.cost}
            | {f"error.{split}": summary[f"{split}.error"] for split in SPLITS}
        )
    separations: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    for row in (row for row in rows if row["method"] == "useful"):
        data = load_data(replace(recipe, seed=row["seed"]), data_root=None).train
        early = Run.open(row["early"], runs)
        separation = separation_of(early, data)
        lacking_N = data.attributes["easy_present"] == 0
        counts = {"seed": row["seed"], "epoch": early.summary()["separated_at"], "hard": separation.num_hard}
        separations.append(
            counts | {"lacking": int(lacking_N.sum())} | precision_and_recall(separation.hard, lacking_N)
        )
        if not examples:
            examples = _extremes(separation, data)
    return {
        "setting": asdict(setting),
        "rows": rows,
        "separations": separations,
        "examples": examples,
    }


def _extremes(separation: Separation, data: Labelled) -> list[dict[str, Any]]:
    """Of each class the easy examples of lowest loss and the hard ones of highest."""
    shown = []
    for label, name in enumerate(data.classes):
        for hard in (False, True):
            members = ((data.labels == label) & (separation.hard == hard)).nonzero().flatten()
            order = separation.losses[members].argsort(descending=hard, stable=True)
            for row in members[order[:SHOWN]].tolist():
                pixels_CHW = data.gather(torch.tensor([row]))[0]
                shown.append(
                    {
                        "label": name,
                        "hard": hard,
                        "loss": round(float(separation.losses[row]), 4),
                        "lacking": not bool(data.attributes["easy_present"][row]),
                        "pixels": pixels_CHW[0].tolist(),
                    }
                )
    return shown
