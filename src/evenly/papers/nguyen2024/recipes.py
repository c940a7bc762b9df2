"""The recipe of the experiments on images (section 5 and appendix C) at three sizes.

`full` is the paper's own. `small` keeps the comparison and shrinks the rest. `smoke` tests the machinery.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = dict[str, Any]

RHO = {"sam": 0.1, "asam": 1.0}
RATES = {"vit-s": 0.01, "mlp": 0.03}  # where it is not 0.1
STAND_INS: Mapping[str, Settings] = {
    "cifar10": {"name": "fashion-mnist", "validation": 0.9},
    "cifar100": {"name": "cifar100", "validation": 0.8},
    "stl10": {"name": "stl10"},
}
# Epochs of separation that the paper names; where it names none, the rule decides.
SEPARATED = {"cifar10": 8, "cifar100": 20}
# The network of each data set, and what keys and titles add for it.
NETWORK = {"cifar10": "preact-resnet18", "cifar100": "preact-resnet34"}
SUFFIX = {"cifar10": "", "cifar100": "-cifar100"}
# CIFAR-10 goes unnamed: at the small size other data stand in for it.
TITLE = {"cifar10": "", "cifar100": ", CIFAR-100"}


@dataclass(frozen=True)
class Case:
    """One way to train on one data set, by USEFUL and by each control: what is compared under one name.

    Cases of one `group` share runs, and are trained one after the other.
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
    settings = {"smoke": _smoke, "small": _small, "full": _full}[size](case)
    if case.ascent != "none":
        rho = 0.01 if case.model in ("mlp", "vit-s") else RHO[case.ascent]
        settings["ascent"] = {"rule": case.ascent, "rho": rho}
    if case.trivial:
        settings["augment"] = [*settings.get("augment", ()), "trivial"]
    settings["optimizer"] = {"lr": round(settings["optimizer"]["lr"] * case.lr_times, 10)}
    settings["batch_size"] *= case.batch_times
    return settings | dict(case.changes)


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
    vit = {"name": "vit-s", "options": {"width": 48, "depth": 3, "num_heads": 4, "head_width": 12}}
    return {
        "data": dict(STAND_INS[case.data]),
        "model": vit if case.model == "vit-s" else {"name": "convnet"},
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
