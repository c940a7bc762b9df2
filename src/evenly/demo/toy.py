"""The bias and its cure where both can be seen: an easy and a difficult patch, and how far a network learns each.

Plain gradient descent and SAM are trained on `patches` (Nguyen et al., 2024, definition 3.1), with the network whose
filters have a bias; the plain networks' own early outputs are separated, and two more networks are
trained: one with the hard examples twice, one with as many random examples twice.

Shapes: S seeds, K = 2S networks, N examples, P patches, D dimensions of a patch, J filters.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from evenly import rng
from evenly.data import Labelled, load
from evenly.models import build
from evenly.resampling import Separation, separate
from evenly.resampling.baselines import random_like
from evenly.training.ensemble import Ensemble

SHOWN, AXES = 6, 12


@dataclass(frozen=True)
class Toy:
    """β_e = 1, α = 0.9 and ρ = 0.02 are the paper's, as is β_d, which it varies.

    The learning rate is twice the paper's, which halves the iterations and hardly changes the path, and there are 500
    of them, not the 300 that would be as many as in the paper: SAM sets out later. At `separate_at` the plain network
    of every seed has learned the easy feature and none fits everything; before, there is nothing to separate.
    """

    seeds: int = 10
    num_train: int = 2000
    beta_hard: float = 0.4
    alpha: float = 0.9
    lr: float = 0.2
    rho: float = 0.02
    iterations: int = 500
    separate_at: int = 165
    every: int = 10


# Fewer seeds and examples, but as many iterations: cut shorter, SAM would have learned neither feature yet.
QUICK = Toy(seeds=3, num_train=1000)


def toy_story(setting: Toy = Toy()) -> dict[str, Any]:  # noqa: B008  # frozen
    """Train all networks of `setting` and return what each learned of both features, as plain data for JSON.

    `alignment` holds max_j |⟨w_j, v⟩| for each method and feature, a row per step and a number per seed;
    `separations` what the early outputs found, against the examples that truly lack the easy patch; `error` the test
    error of each seed; `examples` some inputs, their first two coordinates along the easy and the difficult feature.

    >>> seen = toy_story(Toy(seeds=1, num_train=200, iterations=120, separate_at=60, every=60))
    >>> seen["steps"], list(seen["alignment"])
    ([0, 60, 120], ['plain', 'sam', 'useful', 'random'])
    """
    sets = [
        load("patches", seed=seed, num_train=setting.num_train, beta_hard=setting.beta_hard, alpha=setting.alpha)
        for seed in range(setting.seeds)
    ]
    data, tests = [splits.train for splits in sets], [splits["test"] for splits in sets]
    models = [build("cubic", input_shape=data[0].shape, num_classes=2, rng=seed) for seed in range(setting.seeds)]
    ones_SN = torch.ones(setting.seeds, setting.num_train)

    first = _Pair(models, data, setting, rule=["sgd", "sam"], rho=[0.0, setting.rho])
    first.run(setting.separate_at)
    separations = [
        separate(outputs_NC, each.labels, classes=each.classes, rng=rng.generator(seed, "story", "separate"))
        for seed, (outputs_NC, each) in enumerate(zip(first.outputs(data)[: setting.seeds], data, strict=True))
    ]
    first.run(setting.iterations - setting.separate_at)

    chance = [random_like(each, rng=rng.generator(seed, "story", "random")) for seed, each in enumerate(separations)]
    weights_KN = torch.cat([ones_SN + _hard(separations), ones_SN + _hard(chance)])
    second = _Pair(models, data, setting, rule=["sgd", "sgd"], rho=[0.0, 0.0], weights=weights_KN)
    second.run(setting.iterations)

    names = ("plain", "sam", "useful", "random")
    curves = [*first.curves(), *second.curves()]
    errors = [*first.errors(tests), *second.errors(tests)]
    return {
        "setting": asdict(setting),
        "steps": first.steps,
        "alignment": dict(zip(names, curves, strict=True)),
        "error": dict(zip(names, errors, strict=True)),
        "separations": [_scores(seed, *pair) for seed, pair in enumerate(zip(separations, data, strict=True))],
        "examples": _examples(separations[0], data[0]),
    }


class _Pair:
    """Two ways of training, each with every seed, side by side in one ensemble, and the curves they leave."""

    def __init__(self, models: list[Any], data: list[Labelled], setting: Toy, **ways: Any) -> None:
        self.num, self.setting = len(data), setting
        self.steps: list[int] = []
        both = {name: _each(value, self.num) for name, value in ways.items()}
        self.ensemble = Ensemble(models * 2, data * 2, lr=setting.lr, **both)
        planted = {name: torch.stack([each.planted[name] for each in data]) for name in ("easy", "hard")}
        self.planted_KD = {name: torch.cat([v_SD, v_SD]) for name, v_SD in planted.items()}
        self.seen: dict[str, list[Tensor]] = {"easy": [], "hard": []}

    def run(self, steps: int) -> None:
        """Go on for so many steps, and look at the filters every so often."""
        last = self.setting.iterations
        at = {*range(0, last + 1, self.setting.every), last}
        seen = self.ensemble.run(steps, measure=self._largest, at=at)
        self.steps += seen.steps
        for name, values in self.seen.items():
            values += list(seen[name]) if seen.steps else []

    def _largest(self, parameters: dict[str, Tensor], step: int) -> dict[str, Tensor]:
        weight_KJD = parameters["filters.weight"]
        return {name: (weight_KJD @ v_KD[:, :, None]).abs().amax((1, 2)) for name, v_KD in self.planted_KD.items()}

    def outputs(self, data: list[Labelled]) -> Tensor:
        """What all networks say, K × N × C, each of the data of its seed."""
        return self.ensemble.outputs(torch.stack([_inputs(each) for each in data * 2]))

    def curves(self) -> list[dict[str, list[list[float]]]]:
        """For either way, each feature's alignment: a row per step, a number per seed."""
        whole = {name: torch.stack(values) for name, values in self.seen.items()}
        halves = (slice(0, self.num), slice(self.num, None))
        return [{name: _round(t_TK[:, half]) for name, t_TK in whole.items()} for half in halves]

    def errors(self, tests: list[Labelled]) -> list[list[float]]:
        """For either way, the test error of each seed."""
        wrong_K = (self.outputs(tests).argmax(2) != torch.stack([each.labels for each in tests * 2])).double().mean(1)
        return [_round(wrong_K[: self.num]), _round(wrong_K[self.num :])]


def precision_and_recall(hard_N: Tensor, lacking_N: Tensor) -> dict[str, float]:
    """Precision |A ∩ B|/|A| and recall |A ∩ B|/|B| of the examples called hard, A, for those that lack something, B.

    >>> precision_and_recall(torch.tensor([True, True, False]), torch.tensor([True, False, False]))
    {'precision': 0.5, 'recall': 1.0}
    """
    both = int((hard_N & lacking_N).sum())
    return {"precision": both / max(int(hard_N.sum()), 1), "recall": both / max(int(lacking_N.sum()), 1)}


def _scores(seed: int, separation: Separation, data: Labelled) -> dict[str, Any]:
    lacking_N = data.attributes["easy_present"] == 0
    counts = {"seed": seed, "hard": separation.num_hard, "lacking": int(lacking_N.sum())}
    return counts | precision_and_recall(separation.hard, lacking_N) | {"accuracy": separation.accuracy}


def _examples(separation: Separation, data: Labelled) -> list[dict[str, Any]]:
    """Some of either part and class, turned so that the first two coordinates are the features."""
    basis_D2 = torch.stack([data.planted["easy"], data.planted["hard"]], dim=1)
    axes_DD, r = torch.linalg.qr(torch.cat([basis_D2, torch.eye(len(basis_D2))], dim=1))
    axes_DD = axes_DD * r.diagonal().sign()  # QR leaves the signs open
    shown = []
    for label, name in enumerate(data.classes):
        for hard in (False, True):
            for row in ((data.labels == label) & (separation.hard == hard)).nonzero().flatten()[:SHOWN].tolist():
                shown.append(
                    {
                        "label": name,
                        "hard": hard,
                        "loss": round(float(separation.losses[row]), 4),
                        "lacking": not bool(data.attributes["easy_present"][row]),
                        "patches": _round(_inputs(data)[row] @ axes_DD[:, :AXES]),
                    }
                )
    return shown


def _inputs(data: Labelled) -> Tensor:
    return data.gather(range(len(data)))


def _each(value: Any, num: int) -> Any:
    return value if isinstance(value, Tensor) else [item for item in value for _ in range(num)]


def _hard(separations: list[Separation]) -> Tensor:
    return torch.stack([each.hard for each in separations]).float()


def _round(values: Tensor) -> Any:
    return values.double().mul(1e5).round().div(1e5).tolist()
