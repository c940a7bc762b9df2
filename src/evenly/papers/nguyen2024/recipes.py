"""The recipe of the experiments on images (section 5 and appendix C) at three sizes, and the parts that compare by it.

`full` is the paper's own. `small` keeps the comparison and shrinks the rest. `smoke` tests the machinery.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from evenly.papers.experiment import Part, Scale

Settings = dict[str, Any]

PAPERS_OWN = (
    "weight decay is in the optimizer, not in the loss, and so not in SAM's ascent",
    "BatchNorm's running statistics are not updated in SAM's second pass",
    "the separating epoch is set in advance, not the best of several",
)
REDUCED = (
    "three convolutions (114,000 parameters) instead of the paper's network",
    "20 epochs of batches of 32 at a learning rate of 0.05, instead of 200 of 128 at 0.1, and no augmentation: near "
    "interpolation in little time",
    "the separating epoch is where the gain in training error shrinks, set by rule",
)
MACHINERY = ("scikit-learn's digits, a perceptron 32 wide, 2 epochs: a test of the machinery, not of the claim",)
RHO = {"sam": 0.1, "asam": 1.0}
STAND_INS: Mapping[str, Settings] = {
    "cifar10": {"name": "fashion-mnist", "validation": 0.9},
    "cifar100": {"name": "cifar100", "validation": 0.8},
    "stl10": {"name": "stl10"},
}
RATES = {"vit-s": 0.01, "mlp": 0.03}  # where it is not 0.1
# Epochs of separation that the paper names; where it names none, the rule decides.
SEPARATED = {"cifar10": 8, "cifar100": 20}
# Minutes that a plain run of SGD takes on two cores: measured for smoke and small, from operations for full.
RUN_MINUTES = {
    "smoke": 0.005,
    "small": 0.4,
    "preact-resnet18": 5500.0,
    "preact-resnet34": 11500.0,
    "vgg19-bn": 4000.0,
    "densenet121": 28000.0,
    "vit-s": 35000.0,
    "mlp": 16.0,
}
EXAMPLES = {"cifar10": 1.0, "cifar100": 1.0, "stl10": 0.9, "cinic10": 1.8, "tiny-imagenet": 8.0}  # in runs of CIFAR


@dataclass(frozen=True)
class Case:
    """One way to train on one data set, by USEFUL and by each control: what is compared under one name.

    Cases of one `group` share runs, and are done one after the other.
    """

    name: str
    data: str = "cifar10"
    model: str = "preact-resnet18"
    ascent: str = "none"
    controls: tuple[str, ...] = ("original",)
    trivial: bool = False
    measured: bool = False
    factor: int = 2
    until: Mapping[str, float | str] | None = None
    lr_times: float = 1.0
    batch_times: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""

    @property
    def runs(self) -> float:
        """How many plain runs of SGD it costs: USEFUL, each control, and the early run."""
        passes = 1 if self.ascent == "none" else 2
        longer = 1 + 0.35 * (self.factor - 1)
        plain = sum(control in ("original", "upweight") for control in self.controls)
        return passes * (plain + longer * (len(self.controls) - plain + 1) + 0.1)


def recipe(case: Case, size: str) -> Settings:
    """The recipe of a case at one size, as plain values."""
    made = {"smoke": _smoke, "small": _small, "full": _full}[size](case)
    if case.ascent != "none":
        rho = RHO[case.ascent]
        if case.model == "mlp" or case.model == "vit-s":
            rho = 0.01
        made["ascent"] = {"rule": case.ascent, "rho": rho}
    if case.trivial:
        made["augment"] = [*made.get("augment", ()), "trivial"]
    made["optimizer"] = {"lr": round(made["optimizer"]["lr"] * case.lr_times, 10)}
    made["batch_size"] *= case.batch_times
    return made | dict(case.changes)


def _smoke(case: Case) -> Settings:
    return {
        "data": {"name": "digits"},
        "model": {"name": "mlp", "options": {"width": 32}},
        "optimizer": {"lr": 0.05},
        "epochs": 2,
        "batch_size": 128,
        "evaluate_every": 2,
    }


def _small(case: Case) -> Settings:
    models: Mapping[str, Settings] = {
        "mlp": {"name": "mlp", "options": {"width": 128}},
        "vit-s": {"name": "vit-s", "options": {"width": 48, "depth": 3, "num_heads": 4, "head_width": 12}},
    }
    return {
        "data": dict(STAND_INS[case.data]),
        "model": dict(models.get(case.model, {"name": "convnet"})),
        "optimizer": {"lr": 0.01 if case.model == "vit-s" else 0.05},
        "epochs": 20,
        "batch_size": 32,
        "evaluate_every": 20,
    }


def _full(case: Case) -> Settings:
    return {
        "data": {"name": case.data},
        "augment": ["pad-crop", "mirror"],
        "model": {"name": case.model},
        "optimizer": {"lr": RATES.get(case.model, 0.1)},
        "epochs": 200,
        "batch_size": 128,
    }


def until(case: Case, size: str) -> Settings:
    """When to separate: as the case says, else the paper's epoch at its own size, else by the rule."""
    if case.until is not None:
        return dict(case.until)
    if size == "smoke":
        return {"rule": "epoch", "value": 1}
    if size == "full" and case.data in SEPARATED:
        return {"rule": "epoch", "value": SEPARATED[case.data]}
    return {"rule": "gain"}


def parts(seeds: tuple[int, ...], *, cases: Sequence[Case], size: str, work: str = "learning:usefully") -> list[Part]:
    """A part for every case (or group of them) and seed; seeds in turn, so that what was interrupted is balanced."""
    found = []
    for seed in seeds:
        for case in cases:
            if not case.group:
                found.append(Part(f"{case.name} {seed}", work, _arguments(case, size, seed)))
        for group in dict.fromkeys(case.group for case in cases if case.group):
            each = [_arguments(case, size, seed) for case in cases if case.group == group]
            found.append(Part(f"{group} {seed}", "nguyen2024.several:in_turn", {"comparisons": each}))
    return found


def _arguments(case: Case, size: str, seed: int) -> Settings:
    found = {
        "recipe": recipe(case, size),
        "seed": seed,
        "name": case.name,
        "controls": list(case.controls),
        "until": until(case, size),
        "factor": case.factor,
    }
    if case.measured:
        examples = 200 if size == "smoke" else 1000
        found["measures"] = ["sharpness"]
        found["options"] = {"examples": examples, "options": {"sharpness": {"trace_probes": 0}}}
    return found


def plan_of(*cases: Case, work: str = "learning:usefully") -> Any:
    """`plan(seeds, size=…)` for these cases."""
    return partial(parts, cases=cases, work=work)


def scales(
    *cases: Case,
    small: bool = True,
    seeds: tuple[int, ...] = (0, 1, 2),
    small_deviations: tuple[str, ...] = (),
    full_deviations: tuple[str, ...] = (),
    value: float = 0.0,
    wanted: int = 0,
) -> dict[str, Scale]:
    """The three sizes with what they need, how they deviate and what they cost; `value` is that of the full one."""
    runs = sum(case.runs for case in cases)
    data = tuple(dict.fromkeys(case.data for case in cases))
    full = sum(case.runs * RUN_MINUTES[case.model] * EXAMPLES[case.data] for case in cases)
    found = {
        "smoke": Scale(
            (0, 1), round(2 * runs * RUN_MINUTES["smoke"], 3), {"size": "smoke"}, (), MACHINERY, stand_in=True
        )
    }
    if small and all(name in STAND_INS for name in data):
        names = tuple(dict.fromkeys(str(STAND_INS[name]["name"]) for name in data))
        found["small"] = Scale(
            (0, 1, 2),
            round(3 * runs * RUN_MINUTES["small"], 1),
            {"size": "small"},
            names,
            (*_stand_in(data), *small_deviations, *REDUCED),
            stand_in=True,
        )
    found["full"] = Scale(
        seeds,
        float(round(len(seeds) * full)),
        {"size": "full"},
        data,
        (*full_deviations, *PAPERS_OWN),
        levels=True,
        value=value,
        wanted=wanted,
    )
    return found


def _stand_in(data: Sequence[str]) -> tuple[str, ...]:
    said = {
        "cifar10": "6,000 examples of Fashion-MNIST instead of CIFAR-10",
        "cifar100": "10,000 examples of CIFAR-100",
    }
    return tuple(said[name] for name in data if name in said)
