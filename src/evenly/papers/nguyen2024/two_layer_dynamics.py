"""Figures 2 and 6: how the weights of GD and SAM turn towards the easy and the difficult feature.

Shapes: K members, S seeds, J filters, D dimensions of a patch, N examples, C outputs, T measurements.
"""

from collections.abc import Mapping, Sequence
from statistics import quantiles
from typing import Any

import torch
from torch import Tensor, nn

from evenly.data.catalogue import load
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.models import build
from evenly.papers.experiment import Context, PartResult
from evenly.rng import key
from evenly.training.ensemble import Ensemble

RULES = ("gd", "sam")
LEARNED = 0.5  # of 1/β_e: the alignment at which a feature counts as learned


def network(seed: int, *, bias: bool, first: str = "init") -> nn.Module:
    """The network with a bias and two logits (Deng et al.), or that of eq. 1, with neither."""
    rng = key(seed, first)
    return build("cubic", input_shape=(3, 50), num_classes=2, rng=rng, bias=bias, single_logit=not bias)


def alignment(weight_KJD: Tensor, v_KD: Tensor) -> Tensor:
    """max_j |⟨w_j, v⟩| of every member with its own direction.

    >>> alignment(torch.tensor([[[1.0, 0.0], [-3.0, 1.0]]]), torch.tensor([[1.0, 0.0]]))
    tensor([3.])
    """
    return torch.einsum("kjd,kd->kj", weight_KJD, v_KD).abs().amax(1)


def stack_examples(data: Sequence[Labelled]) -> tuple[Tensor, Tensor]:
    """Inputs and labels of data sets of one size, one after the other along a new first dimension."""
    parts = [each.gather(range(len(each))) for each in data]
    return torch.stack(parts), torch.stack([each.labels for each in data])


def errors(outputs_KNC: Tensor, labels_KN: Tensor) -> Tensor:
    """The share of wrong predictions of every member, in percent."""
    said_KN = (outputs_KNC.squeeze(2) > 0).long() if outputs_KNC.shape[2] == 1 else outputs_KNC.argmax(2)
    return 100 * (said_KN != labels_KN).double().mean(1)


def alignment_curves(
    context: Context,
    *,
    seeds: Sequence[int],
    name: str,
    beta_hard: float,
    beta_easy: float = 1.0,
    alpha: float = 0.9,
    bias: bool = True,
    num: int = 10_000,
    iterations: int = 800,
    horizon: int = 600,
    every: int = 10,
    lr: float = 0.1,
    rho: float = 0.02,
) -> PartResult:
    """Train every seed by GD and by SAM from the same weights on the same data, as one ensemble.

    `NAME.RULE.easy`, `.hard`, `.accuracy` (percent) are after `horizon` iterations, with `.end` after all;
    `NAME.RULE.takeoff` is the first iteration at which the easy alignment is ½/β_e, or the last one; `NAME.RULE.gap` is
    the mean of easy − hard alignment up to the horizon, and `.gap.late` its mean from 250 iterations on.
    """
    options: dict[str, Any] = {
        "num_train": num,
        "num_test": num,
        "alpha": alpha,
        "beta_easy": beta_easy,
        "beta_hard": beta_hard,
    }
    data = [load("patches", seed=seed, **options) for seed in seeds]
    seen, steps = _train(data, seeds, bias=bias, iterations=iterations, every=every, lr=lr, rho=rho)
    values: dict[str, dict[int, float]] = {}
    at, late = _index_at(steps, horizon), [place for place, step in enumerate(steps) if min(250, horizon) <= step]
    up_to = [place for place, step in enumerate(steps) if 1 <= step <= horizon]
    for rule in RULES:
        easy, hard, accuracy = (seen[rule][what] for what in ("easy", "hard", "accuracy"))
        gap = easy - hard
        quantities = {
            "easy": easy[at],
            "hard": hard[at],
            "accuracy": accuracy[at],
            "easy.start": easy[0],
            "hard.start": hard[0],
            "easy.end": easy[-1],
            "hard.end": hard[-1],
            "accuracy.end": accuracy[-1],
            "takeoff": _takeoff(easy, steps, LEARNED / beta_easy),
            "gap": gap[up_to].mean(0),
            "gap.late": gap[late].mean(0),
        }
        for what, numbers_S in quantities.items():
            values[f"{name}.{rule}.{what}"] = dict(zip(seeds, numbers_S.tolist(), strict=True))
    return PartResult(values, {"steps": steps, "curves": {rule: _summary(seen[rule]) for rule in RULES}})


def _train(
    data: Sequence[Splits], seeds: Sequence[int], *, bias: bool, iterations: int, every: int, lr: float, rho: float
) -> tuple[dict[str, dict[str, Tensor]], list[int]]:
    """Curves T × seeds by rule and quantity, and the iterations they were taken at."""
    members = [(rule, place) for rule in RULES for place in range(len(seeds))]
    ensemble = Ensemble(
        [network(seeds[place], bias=bias) for _, place in members],
        [data[place].train for _, place in members],
        lr=lr,
        rule=["sam" if rule == "sam" else "sgd" for rule, _ in members],
        rho=[rho if rule == "sam" else 0.0 for rule, _ in members],
    )
    easy_KD, hard_KD = (torch.stack([data[place].train.planted[v] for _, place in members]) for v in ("easy", "hard"))
    x_SN, y_SN = stack_examples([each["test"] for each in data])
    which_K = torch.tensor([place for _, place in members])

    def look(parameters: Mapping[str, Tensor], step: int) -> dict[str, Tensor]:
        weight_KJD = parameters["filters.weight"]
        wrong_K = errors(ensemble.outputs(x_SN[which_K]), y_SN[which_K])
        return {
            "easy": alignment(weight_KJD, easy_KD),
            "hard": alignment(weight_KJD, hard_KD),
            "accuracy": 100 - wrong_K,
        }

    seen = ensemble.run(iterations, measure=look, at=range(0, iterations + 1, every))
    num = len(seeds)
    curves = {
        rule: {what: seen[what].double()[:, start : start + num] for what in seen}
        for rule, start in zip(RULES, (0, num), strict=True)
    }
    return curves, seen.steps


def _takeoff(easy_TS: Tensor, steps: Sequence[int], level: float) -> Tensor:
    """The first step at which each column reaches the level; the last step where none does."""
    reached_TS = easy_TS >= level
    first_S = torch.where(reached_TS.any(0), reached_TS.long().argmax(0), len(steps) - 1)
    return torch.tensor(steps, dtype=torch.float64)[first_S]


def _index_at(steps: Sequence[int], step: int) -> int:
    return max(place for place, each in enumerate(steps) if each <= step)


def _summary(curves: Mapping[str, Tensor]) -> dict[str, Any]:
    """Median and quartiles over seeds of every curve, and of the gap between the two features."""
    shown = {**curves, "gap": curves["easy"] - curves["hard"]}
    return {what: quartile_band(curve_TS.tolist()) for what, curve_TS in shown.items()}


def quartile_band(rows: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """The median and the quartiles of every row.

    >>> quartile_band([[1.0, 2.0, 3.0]])
    {'low': [1.5], 'middle': [2.0], 'high': [2.5]}
    """
    cuts = [quantiles(row, n=4, method="inclusive") if len(row) > 1 else [row[0]] * 3 for row in rows]
    return {name: [round(cut[i], 5) for cut in cuts] for i, name in enumerate(("low", "middle", "high"))}
