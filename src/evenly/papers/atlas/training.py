"""Training with every cure: one ensemble for plain training, which starts with the early network, and one for the rest.

Shapes: K members, S seeds, N examples, C classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from evenly.data import Labelled, Splits, load
from evenly.models import build
from evenly.papers.atlas.cures import CURES, Cure
from evenly.papers.atlas.early import LATEST, Early
from evenly.papers.experiment import Context, PartResult
from evenly.resampling.balance import balance_factors
from evenly.training.ensemble import Ensemble
from evenly.training.objective import predictions

BATCH = 128
AT_ONCE = 2**26  # numbers in the inputs of all members that are evaluated together
TWIN = 1000  # added to a seed: other first weights, another order, the same data


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
) -> PartResult:
    """Train by each cure with each seed: `CURE.test`, `CURE.balanced`, `CURE.worst` in per cent, and `CURE.cost`.

    The features that advice is based on, which need no group labels, are under `early.`.
    """
    tasks = [load(data, seed=seed, root=context.data_root, **options) for seed in seeds]
    study = _Study(tasks, list(seeds), model=model, network=network, lr=lr, epochs=epochs)
    early, twins = study.train_plain(), study.train_twins()
    values: dict[str, dict[int, float]] = {}

    def record(name: str, seed: int, value: float) -> None:
        values.setdefault(name, {})[seed] = value

    for seed, own_early, twin in zip(seeds, early, twins, strict=True):
        for name, number in own_early.features(twin).items():
            record(f"early.{name}", seed, number)
    for own in (["plain"], *study.batches([name for name in cures if name != "plain"])):
        trained = study.plain if own == ["plain"] else study.train(own, early)
        members = [(name, place) for name in own for place in range(len(seeds))]
        for where, errors in _errors(trained, [tasks[place] for _, place in members], group).items():
            for (name, place), error in zip(members, errors, strict=True):
                record(f"{name}.{where}", seeds[place], 100 * error)
        for name, place in members:
            record(f"{name}.cost", seeds[place], CURES[name].cost(early[place].epoch / epochs))
    return PartResult(values)


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
        self.model, self.network = model, network
        self.num_examples = len(tasks[0].train)
        self.batch = min(BATCH, self.num_examples)
        self.steps = -(-self.num_examples // self.batch) * epochs
        self.models = self._built(seeds)

    def train_plain(self) -> list[Early]:
        """Train plainly to the end, and keep the outputs after each of the first epochs."""
        self.plain = self._ensemble(["plain"], None)
        early = self._looked_at(self.plain)
        self.plain.run(self.steps - self.plain.step)
        return early

    def train_twins(self) -> list[Early]:
        """The same data, learned early by other networks in another order."""
        seeds = [seed + TWIN for seed in self.seeds]
        return self._looked_at(self._ensemble(["plain"], None, models=self._built(seeds), seeds=seeds))

    def _looked_at(self, ensemble: Ensemble) -> list[Early]:
        train_S = torch.stack([_inputs(task.train) for task in self.tasks])
        outputs_TSNC = []
        for _ in range(max(1, round(LATEST * self.epochs))):
            ensemble.run(self.steps // self.epochs)
            outputs_TSNC.append(ensemble.outputs(train_S))
        return [
            Early(task.train, [outputs_SNC[place] for outputs_SNC in outputs_TSNC], seed=seed)
            for place, (task, seed) in enumerate(zip(self.tasks, self.seeds, strict=True))
        ]

    def _built(self, seeds: Sequence[int]) -> list[nn.Module]:
        shape, num_classes = self.tasks[0].train.shape, self.tasks[0].train.num_classes
        return [build(self.model, input_shape=shape, num_classes=num_classes, rng=s, **self.network) for s in seeds]

    def batches(self, names: Sequence[str]) -> list[list[str]]:
        """The cures that can be trained as one ensemble, batch size by batch size."""
        shares = dict.fromkeys(CURES[name].batch_share for name in names)
        return [[name for name in names if CURES[name].batch_share == share] for share in shares]

    def train(self, names: Sequence[str], early: Sequence[Early]) -> Ensemble:
        """Train by these cures, each with every seed."""
        ensemble = self._ensemble(names, early)
        ensemble.run(round(self.steps / CURES[names[0]].batch_share))
        return ensemble

    def _ensemble(
        self,
        names: Sequence[str],
        early: Sequence[Early] | None,
        *,
        models: Sequence[nn.Module] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Ensemble:
        models, seeds = models or self.models, seeds or self.seeds
        members = [(CURES[name], place) for name in names for place in range(len(self.seeds))]
        rows = [self._rows(cure, place, early) for cure, place in members]
        copies, weights, noise = (torch.stack(each) for each in zip(*rows, strict=True))
        share = members[0][0].batch_share
        return Ensemble(
            [models[place] for _, place in members],
            [self.tasks[place].train for _, place in members],
            lr=self.lr,
            momentum=0.9,
            weight_decay=5e-4,
            rule=[cure.rule for cure, _ in members],
            rho=[cure.rho for cure, _ in members],
            batch_size=max(1, round(share * self.batch)),
            seeds=[seeds[place] for _, place in members],
            copies=copies,
            weights=weights if bool((weights != 1).any()) else None,
            noise=noise if bool((noise > 0).any()) else None,
            label_smoothing=[cure.label_smoothing for cure, _ in members],
            logit_penalty=[cure.logit_penalty for cure, _ in members],
        )

    def _rows(self, cure: Cure, place: int, early: Sequence[Early] | None) -> tuple[Tensor, Tensor, Tensor]:
        """Copies, weights and noise of every example for one member."""
        ones = torch.ones(self.num_examples, dtype=torch.int64)
        chosen_N = torch.zeros(self.num_examples, dtype=torch.bool)
        if cure.chosen is not None:
            assert early is not None
            chosen_N = early[place].chosen(cure.chosen)
        counted = torch.where(chosen_N, cure.factor, 1)
        if cure.balanced and early is not None:
            counted = balance_factors(early[place].separation, most=cure.factor)
        target_N = chosen_N if cure.noise_on == "chosen" else torch.ones_like(chosen_N)
        noise = torch.where(target_N, cure.noise, 0.0)
        return (ones, counted.double(), noise) if cure.weighted else (counted, ones.double(), noise)


def _errors(ensemble: Ensemble, tasks: Sequence[Splits], group: str) -> dict[str, list[float]]:
    """The errors of every member on the test sets of its task, the worst over the groups that its training set has."""
    by_test_set = {}
    for where in ("test", "balanced"):
        by_test_set[where] = _errors_on(*_answers(ensemble, [task[where] for task in tasks]))
    outputs_KNC, parts = _answers(ensemble, [task["groups"] for task in tasks])
    by_test_set["worst"] = [
        max(_error(outputs_NC[rows], part.labels[rows]) for rows in _groups(part, group))
        for outputs_NC, part in zip(outputs_KNC, parts, strict=True)
    ]
    return by_test_set


def _answers(ensemble: Ensemble, parts: list[Labelled]) -> tuple[Tensor, list[Labelled]]:
    """The outputs of every member on its own data, K × N × C, a slice of the examples at a time."""
    inputs = {id(part): _inputs(part) for part in parts}  # members of one seed share theirs
    size = max(1, AT_ONCE // (len(parts) * inputs[id(parts[0])][0].numel()))
    slices = [
        ensemble.outputs(torch.stack([inputs[id(part)][first : first + size] for part in parts]))
        for first in range(0, len(parts[0]), size)
    ]
    return torch.cat(slices, dim=1), parts


def _groups(part: Labelled, group: str) -> list[Tensor]:
    """The rows of each class whose easy feature agrees with it, and of those whose does not.

    `group` says how: it is missing (`lacks`), or belongs to another class (`contradicts`).
    """
    present_N, agrees_N = part.attributes["easy_present"] == 1, part.attributes["easy_agrees"] == 1
    minority_N = present_N & ~agrees_N if group == "contradicts" else ~present_N
    groups = [
        ((part.labels == label) & kind_N).nonzero()[:, 0]
        for label in range(part.num_classes)
        for kind_N in (agrees_N, minority_N)
    ]
    return [rows for rows in groups if len(rows)]


def _errors_on(outputs_KNC: Tensor, parts: Sequence[Labelled]) -> list[float]:
    return [_error(own_NC, part.labels) for own_NC, part in zip(outputs_KNC, parts, strict=True)]


def _error(outputs_NC: Tensor, labels_N: Tensor) -> float:
    return float((predictions(outputs_NC) != labels_N).double().mean())


def _inputs(part: Labelled) -> Tensor:
    return part.in_memory().gather(range(len(part)))
