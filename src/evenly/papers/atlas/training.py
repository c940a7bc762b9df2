"""Training by every cure: one ensemble for plain training, whose beginning is the early network, and one for the rest.

Shapes: K members, S seeds, N examples, C classes.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from evenly import resampling
from evenly.data import Labelled, Splits, load
from evenly.models import build
from evenly.papers.atlas.cures import CURES, Cure
from evenly.papers.experiment import Context, Found
from evenly.resampling import Separation
from evenly.resampling.baselines import random_like
from evenly.resampling.label_noise import label_noise
from evenly.resampling.moment import GainShrinks, first
from evenly.resampling.separation import SeparationWarning
from evenly.rng import generator
from evenly.training.ensemble import Ensemble
from evenly.training.objective import predictions

BATCH = 128
LATEST = 0.5  # the part of all epochs after which an early network is early no longer


def train_cures(
    context: Context,
    *,
    data: str,
    options: Mapping[str, Any],
    model: str,
    network: Mapping[str, Any],
    group: str,
    lr: float,
    epochs: int,
    cures: Sequence[str],
    seeds: Sequence[int],
) -> Found:
    """Train by each cure with each seed: `CURE.test`, `CURE.balanced`, `CURE.minority` in per cent, and `CURE.cost`.

    What can be known early without group labels stands under `early.`: it is what advice is based on.
    """
    tasks = [load(data, seed=seed, root=context.data_root, **options) for seed in seeds]
    study = _Study(tasks, list(seeds), model=model, network=network, lr=lr, epochs=epochs)
    early = study.train_plain()
    values: dict[str, dict[int, float]] = {}

    def record(name: str, by_seed: Mapping[int, float]) -> None:
        values.setdefault(name, {}).update({seed: float(value) for seed, value in by_seed.items()})

    for name, by_seed in early.features().items():
        record(f"early.{name}", by_seed)
    for own in (["plain"], *study.batches([name for name in cures if name != "plain"])):
        trained = study.plain if own == ["plain"] else study.train(own, early)
        members = [(name, place) for name in own for place in range(len(seeds))]
        for where, errors in _errors(trained, [tasks[place] for _, place in members], group).items():
            for (name, place), error in zip(members, errors, strict=True):
                record(f"{name}.{where}", {seeds[place]: 100 * error})
        for name, place in members:
            record(f"{name}.cost", {seeds[place]: CURES[name].cost(early.epochs[place] / epochs)})
    return Found(values)


class _Early:
    """What the early networks say: their outputs at the separating moment, and the separation of each seed."""

    def __init__(self, tasks: Sequence[Splits], seeds: Sequence[int], outputs: Sequence[Tensor]) -> None:
        self.tasks, self.seeds = tasks, seeds
        errors_TS = [_errors_on(each, [task.train for task in tasks]) for each in outputs]
        chance = 1 - 1 / tasks[0].train.num_classes
        curves = [[chance, *(row[place] for row in errors_TS)] for place in range(len(seeds))]
        self.epochs = [first(GainShrinks(), curve) or len(outputs) for curve in curves]
        self.errors = [curve[epoch] for curve, epoch in zip(curves, self.epochs, strict=True)]
        self.outputs = [outputs[epoch - 1][place] for place, epoch in enumerate(self.epochs)]
        self.separations = [self._separate(place) for place in range(len(seeds))]

    def _separate(self, place: int, among: str = "all") -> Separation:
        train = self.tasks[place].train
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeparationWarning)
            return resampling.separate(
                self.outputs[place],
                train.labels,
                among=among,  # type: ignore[arg-type]  # one of its two words
                rng=generator(self.seeds[place], "atlas", "separate"),
                max_accuracy=1.0,
            )

    def chosen(self, place: int, which: str) -> Tensor:
        """The examples that a cure is about, as a boolean each."""
        train, separation = self.tasks[place].train, self.separations[place]
        if which == "hard":
            return separation.hard
        if which == "random":
            return random_like(separation, rng=generator(self.seeds[place], "atlas", "random")).hard
        wrong_N = predictions(self.outputs[place]) != train.labels
        return wrong_N if which == "wrong" else self._separate(place, "right").hard & ~wrong_N

    def features(self) -> dict[str, dict[int, float]]:
        """What advice can be based on: numbers that need no group labels."""
        found: dict[str, dict[int, float]] = {}
        for place, seed in enumerate(self.seeds):
            separation, train = self.separations[place], self.tasks[place].train
            wrong_N = predictions(self.outputs[place]) != train.labels
            hard_N, noise = separation.hard, label_noise(self.outputs[place], train.labels)
            margins = [each.silhouette - max(each.clouds) for each in separation.distinctness.values()]
            numbers = {
                "epoch": self.epochs[place],
                "error": self.errors[place],
                "hard_share": separation.share,
                "hard_error": float(wrong_N[hard_N].double().mean()) if bool(hard_N.any()) else 0.0,
                "distinctness": sum(margins) / len(margins) if margins else 0.0,
                "disagreement": noise.disagreement,
            }
            for name, number in numbers.items():
                found.setdefault(name, {})[seed] = float(number)
        return found


class _Study:
    """Ensembles of one task: the same data, first weights and orders for every cure of a seed."""

    def __init__(
        self,
        tasks: Sequence[Splits],
        seeds: list[int],
        *,
        model: str,
        network: Mapping[str, Any],
        lr: float,
        epochs: int,
    ) -> None:
        self.tasks, self.seeds, self.lr, self.epochs = tasks, seeds, lr, epochs
        self.num_examples = len(tasks[0].train)
        self.batch = min(BATCH, self.num_examples)
        self.steps = -(-self.num_examples // self.batch) * epochs
        shape, num_classes = tasks[0].train.shape, tasks[0].train.num_classes
        self.models = [build(model, input_shape=shape, num_classes=num_classes, rng=s, **network) for s in seeds]

    def train_plain(self) -> _Early:
        """Train plainly to the end, and look at the outputs after each of the first epochs."""
        self.plain = self._ensemble(["plain"], None)
        train_S = torch.stack([_inputs(task.train) for task in self.tasks])
        per_epoch, looks = self.steps // self.epochs, max(1, round(LATEST * self.epochs))
        outputs = []
        for _ in range(looks):
            self.plain.run(per_epoch)
            outputs.append(self.plain.outputs(train_S))
        self.plain.run(self.steps - looks * per_epoch)
        return _Early(self.tasks, self.seeds, outputs)

    def batches(self, names: Sequence[str]) -> list[list[str]]:
        """The cures that can be trained as one ensemble, batch size by batch size."""
        shares = dict.fromkeys(CURES[name].batch_share for name in names)
        return [[name for name in names if CURES[name].batch_share == share] for share in shares]

    def train(self, names: Sequence[str], early: _Early) -> Ensemble:
        """Train by these cures, each with every seed."""
        ensemble = self._ensemble(names, early)
        ensemble.run(round(self.steps / CURES[names[0]].batch_share))
        return ensemble

    def _ensemble(self, names: Sequence[str], early: _Early | None) -> Ensemble:
        members = [(CURES[name], place) for name in names for place in range(len(self.seeds))]
        rows = [self._rows(cure, place, early) for cure, place in members]
        copies, weights, noise = (torch.stack(each) for each in zip(*rows, strict=True))
        share = members[0][0].batch_share
        return Ensemble(
            [self.models[place] for _, place in members],
            [self.tasks[place].train for _, place in members],
            lr=self.lr,
            momentum=0.9,
            weight_decay=5e-4,
            rule=[cure.rule for cure, _ in members],
            rho=[cure.rho for cure, _ in members],
            batch_size=max(1, round(share * self.batch)),
            seeds=[self.seeds[place] for _, place in members],
            copies=copies,
            weights=weights if bool((weights != 1).any()) else None,
            noise=noise if bool((noise > 0).any()) else None,
            label_smoothing=[cure.label_smoothing for cure, _ in members],
            logit_penalty=[cure.logit_penalty for cure, _ in members],
        )

    def _rows(self, cure: Cure, place: int, early: _Early | None) -> tuple[Tensor, Tensor, Tensor]:
        """Copies, weights and noise of every example for one member."""
        ones = torch.ones(self.num_examples, dtype=torch.int64)
        chosen_N = torch.zeros(self.num_examples, dtype=torch.bool)
        if cure.chosen is not None:
            assert early is not None
            chosen_N = early.chosen(place, cure.chosen)
        counted = torch.where(chosen_N, cure.factor, 1)
        target_N = chosen_N if cure.noise_on == "chosen" else torch.ones_like(chosen_N)
        noise = torch.where(target_N, cure.noise, 0.0)
        return (ones, counted.double(), noise) if cure.weighted else (counted, ones.double(), noise)


def _errors(ensemble: Ensemble, tasks: Sequence[Splits], group: str) -> dict[str, list[float]]:
    """The errors of every member on the test sets of its task."""
    found = {}
    for where, split in (("test", "test"), ("balanced", "balanced"), ("minority", "groups")):
        parts = [task[split] for task in tasks]
        if where == "minority":
            parts = [part.subset(_of_group(part, group).nonzero()[:, 0]) for part in parts]
        found[where] = _errors_on(ensemble.outputs(torch.stack([_inputs(part) for part in parts])), parts)
    return found


def _of_group(part: Labelled, group: str) -> Tensor:
    """Whether the easy feature of each example is missing (`lacks`), or there and another class's (`contradicts`)."""
    present_N = part.attributes["easy_present"] == 1
    return present_N & (part.attributes["easy_agrees"] == 0) if group == "contradicts" else ~present_N


def _errors_on(outputs_KNC: Tensor, parts: Sequence[Labelled]) -> list[float]:
    return [
        float((predictions(own_NC) != part.labels).double().mean())
        for own_NC, part in zip(outputs_KNC, parts, strict=True)
    ]


def _inputs(part: Labelled) -> Tensor:
    return part.in_memory().gather(range(len(part)))
