"""Theorems 3.2 to 3.4 step by step: how far each filter moves along v_e and v_d, and how far the theorems say.

The network is that of eq. 1, the noise orthogonal to both features, all in double precision.

Shapes: K members, S seeds, J filters, D dimensions of a patch, N examples, R = 3N patches.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evenly.data.catalogue import load
from evenly.data.labelled import Labelled
from evenly.papers.experiment import Context, PartResult
from evenly.papers.nguyen2024.two_layer_dynamics import RULES, network, stack_examples
from evenly.training.ensemble import Ensemble

# m and M of theorems 3.2 and 3.3, Θ̃(η)αβ_e³, in η α β_e³: 3 l, with l from ⅓ to ½, its value at zero output.
CONSTANTS = (1.0, 1.5)
NEVER = 1e6  # the time of what was not learned: beyond any bound that is met here


class Trajectory(NamedTuple):
    """Alignments of all filters at one step (K × J) or along a run (T × K × J), and the moves the theorems predict.

    SAM takes its gradient at perturbed weights; for GD these are the weights themselves.
    """

    easy: Tensor
    hard: Tensor
    perturbed_easy: Tensor
    perturbed_hard: Tensor
    move_easy: Tensor
    move_hard: Tensor


def gradient(weight_KJD: Tensor, x_KRD: Tensor, y_KN: Tensor) -> tuple[Tensor, Tensor]:
    """∇_{w_j} L of lemma A.2, and l_i = sigmoid(−y_i f(x_i)) of every example.

    >>> x, y = torch.tensor([[[1.0], [0.0], [0.0]]]), torch.tensor([[1.0]])
    >>> g, l = gradient(torch.tensor([[[2.0]]]), x, y)  # f = 8: −3 · sigmoid(−8) · 2² · 1
    >>> torch.allclose(g.flatten(), -12 * torch.sigmoid(torch.tensor([-8.0])))
    True
    """
    num_members, num = y_KN.shape
    z_KRJ = torch.bmm(x_KRD, weight_KJD.mT)
    f_KN = (z_KRJ**3).reshape(num_members, num, -1).sum(2)
    slope_KN = torch.sigmoid(-y_KN * f_KN)
    share_KR1 = (slope_KN * y_KN / num).repeat_interleave(x_KRD.shape[1] // num, dim=1)[:, :, None]
    return -3 * torch.bmm((share_KR1 * z_KRJ**2).mT, x_KRD), slope_KN


def with_assumed_alignments(model: nn.Module, data: Labelled, rho: float) -> nn.Module:
    """The network with alignments as the proofs assume them: all at least ρ, and the best easy one ρ ahead.

    Assumption A.1 and the line before theorem A.16; the rest of the weights stays.
    """
    weight_JD = model.get_parameter("filters.weight")
    v_e, v_d = (data.planted[name].to(weight_JD) for name in ("easy", "hard"))
    with torch.no_grad():
        easy_J, hard_J = weight_JD @ v_e, weight_JD @ v_d
        new_easy_J, new_hard_J = rho + easy_J.abs(), rho + hard_J.abs()
        new_easy_J = new_easy_J + (rho - (new_easy_J.max() - new_hard_J.max())).clamp_min(0)
        weight_JD.add_(torch.outer(new_easy_J - easy_J, v_e) + torch.outer(new_hard_J - hard_J, v_d))
    return model


def trajectories(
    data: Sequence[Labelled],
    models: Sequence[nn.Module],
    *,
    iterations: int,
    lr: float,
    rho: float,
    betas: tuple[float, float],
) -> dict[str, Trajectory]:
    """GD and SAM from the same weights, with the theorems' prediction of every step; until both have learned."""
    num = len(models)
    rhos = [0.0] * num + [rho] * num
    trains = [*data, *data]
    ensemble = Ensemble([*models, *models], trains, lr=lr, rule=["sgd"] * num + ["sam"] * num, rho=rhos)
    inputs_KN, labels_KN = stack_examples(trains)
    x_KRD, y_KN = inputs_KN.double().flatten(1, 2), 2.0 * labels_KN.double() - 1
    present_KN = torch.stack([each.attributes["easy_present"] for each in trains]).double()
    v_e, v_d = (torch.stack([each.planted[name] for each in trains]).double() for name in ("easy", "hard"))
    rho_K = torch.tensor(rhos, dtype=torch.float64)[:, None, None]
    snapshots: list[Trajectory] = []

    def measure(parameters: Mapping[str, Tensor], step: int) -> dict[str, Tensor]:
        weight_KJD = parameters["filters.weight"]
        g_KJD, slope_KN = gradient(weight_KJD, x_KRD, y_KN)
        there_KJD = weight_KJD + rho_K * g_KJD / torch.linalg.vector_norm(g_KJD, dim=(1, 2), keepdim=True)
        slope_KN[num:] = gradient(there_KJD[num:], x_KRD[num:], y_KN[num:])[1]
        easy, hard = _alignment(weight_KJD, v_e), _alignment(weight_KJD, v_d)
        perturbed_easy, perturbed_hard = _alignment(there_KJD, v_e), _alignment(there_KJD, v_d)
        pull_easy, pull_hard = (slope_KN * present_KN).mean(1)[:, None], slope_KN.mean(1)[:, None]
        snapshots.append(
            Trajectory(
                easy,
                hard,
                perturbed_easy,
                perturbed_hard,
                3 * lr * betas[0] ** 3 * pull_easy * perturbed_easy**2,
                3 * lr * betas[1] ** 3 * pull_hard * perturbed_hard**2,
            )
        )
        return {"easy": easy.amax(1)}

    while ensemble.step < iterations:
        ahead = min(10, iterations - ensemble.step)
        seen = ensemble.run(
            ahead, measure=measure, at=range(ensemble.step + (ensemble.step > 0), ensemble.step + ahead + 1)
        )
        if bool((seen["easy"][-1] >= 0.5 / betas[0]).all()):
            break
    whole = [torch.stack(each) for each in zip(*snapshots, strict=True)]
    return {
        rule: Trajectory(*(each[:, own] for each in whole))
        for rule, own in zip(RULES, (slice(num), slice(num, None)), strict=True)
    }


def _alignment(weight_KJD: Tensor, v_KD: Tensor) -> Tensor:
    return torch.einsum("kjd,kd->kj", weight_KJD, v_KD)


def time_bound(z0: float, v: float, *, m: float, M: float, rho: float) -> float:
    """Lemma B.3: T_v = 2z₀/(m(z₀−ρ)²) + (4Mz₀²/(m(z₀−ρ)²))·⌈log₂(v/z₀)⌉.

    >>> time_bound(0.25, 1.0, m=1.0, M=1.0, rho=0.0)  # 2/z₀ + 4 · 2
    16.0
    """
    scale = m * (z0 - rho) ** 2
    return 2 * z0 / scale + 4 * M * z0**2 / scale * math.ceil(math.log2(v / z0))


def growth_statistics(
    context: Context,
    *,
    seeds: Sequence[int],
    name: str,
    beta_hard: float,
    alpha: float = 0.9,
    num: int = 10_000,
    iterations: int = 1000,
    lr: float = 0.1,
    rho: float = 0.02,
    assume: bool = True,
) -> PartResult:
    """What theorems 3.2 to 3.4 say of every step until the easy feature is learned (an alignment of ½/β_e).

    `assume` starts from weights as the proofs assume them, else from the network's own; the times of lemma B.3 are
    those of the first.
    """
    options: dict[str, Any] = {
        "num_train": num,
        "num_test": 2,
        "alpha": alpha,
        "beta_hard": beta_hard,
        "orthogonal_noise": True,
    }
    data = [load("patches", seed=seed, **options).train for seed in seeds]
    models = [network(seed, bias=False).double() for seed in seeds]
    if assume:
        models = [with_assumed_alignments(model, each, rho) for model, each in zip(models, data, strict=True)]
    runs = trajectories(data, models, iterations=iterations, lr=lr, rho=rho, betas=(1.0, beta_hard))
    values: dict[str, dict[int, float]] = {}
    for place, seed in enumerate(seeds):
        gd, sam = (_member(runs[rule], place) for rule in RULES)
        rate = lr * float(data[place].attributes["easy_present"].double().mean())  # the α of these very examples
        numbers = {f"gd.{what}": value for what, value in _growth(gd, 0.0, rate).items()}
        numbers |= {f"sam.{what}": value for what, value in _growth(sam, rho, rate).items()}
        numbers |= _gap_shares(gd, sam, rho)
        if assume:
            numbers |= {f"gd.{what}": value for what, value in _time_and_bound(gd, 0.0, rate).items()}
            numbers |= {f"sam.{what}": value for what, value in _time_and_bound(sam, rho, rate).items()}
        for what, value in numbers.items():
            values.setdefault(f"{name}.{what}", {})[seed] = value
    return PartResult(values, {"gaps": _gaps(runs)})


def _member(whole: Trajectory, place: int) -> Trajectory:
    return Trajectory(*(each[:, place] for each in whole))


def _learned_at(run: Trajectory) -> int:
    """T₀: the first step after which the easy feature is learned; the last one where it is not."""
    learned_T = run.easy.amax(1) >= 0.5
    return int(learned_T.long().argmax()) if bool(learned_T.any()) else len(learned_T) - 1


def _time_and_bound(run: Trajectory, rho: float, rate: float) -> dict[str, float]:
    """Whether the easy feature was learned (100 or 0), when, and the time of lemma B.3 for m = ηα and M = 3ηα/2.

    The constants are set, not fitted. Where the lemma says nothing, its time is 0, which nothing is within.
    """
    z_T = run.easy.amax(1)
    z0, learned = float(z_T[0]), bool((z_T >= 0.5).any())
    m, M = (rate * constant for constant in CONSTANTS)
    applies = rho < z0 < 0.5 and m > 0
    return {
        "learned": 100.0 * learned,
        "time": float(_learned_at(run)) if learned else NEVER,
        "limit": time_bound(z0, 0.5, m=m, M=M, rho=rho) if applies else 0.0,
    }


def _growth(run: Trajectory, rho: float, rate: float) -> dict[str, float]:
    """How far steps are off the theorems' prediction, the constant of the growth, and what it led to by T₀."""
    until = max(1, _learned_at(run))
    moved_easy, moved_hard = (each[1 : until + 1] - each[:until] for each in (run.easy, run.hard))
    off = [
        ((moved - predicted[:until]).abs().amax(1) / moved.abs().amax(1).clamp_min(1e-300)).max()
        for moved, predicted in ((moved_easy, run.move_easy), (moved_hard, run.move_hard))
    ]
    z = run.easy.amax(1)
    grown = z[1 : until + 1] - z[:until]
    constant = grown / (rate * run.perturbed_easy.amax(1)[:until].square())
    return {
        "off": float(torch.stack(off).max()),
        "constant.low": float(constant.min()),
        "constant.high": float(constant.max()),
        "reached": float(until),
        "easy": float(z[until]),
        "hard.growth": float(run.hard[until].amax() / run.hard[0].amax()),
        "hard.rises": float(100 * (moved_hard >= 0).double().mean()),
        "between.easy": _between(run.perturbed_easy[:until], run.easy[:until], rho),
        "between.hard": _between(run.perturbed_hard[:until], run.hard[:until], rho),
    }


def _between(perturbed: Tensor, own: Tensor, rho: float) -> float:
    """In percent: how often a − ρ ≤ ⟨w_ε, v⟩ ≤ a (eqs. 41 and 43)."""
    inside = (perturbed <= own + 1e-15) & (perturbed >= own - rho - 1e-15)
    return float(100 * inside.double().mean())


def _gap_shares(gd: Trajectory, sam: Trajectory, rho: float) -> dict[str, float]:
    """Theorem 3.4 and (60) to (63) of theorem A.16, over t = 1 … T₀ of GD: shares of the steps, in percent."""
    until = min(max(1, _learned_at(gd)), len(sam.easy) - 1)
    g_e, g_d, s_e, s_d = (each[1 : until + 1].amax(1) for each in (gd.easy, gd.hard, sam.easy, sam.hard))
    p_e, p_d = (each[1 : until + 1].amax(1) for each in (sam.perturbed_easy, sam.perturbed_hard))
    holds = {
        "evenly": s_e - s_d < g_e - g_d,
        "easy.ahead": rho + s_d <= s_e,
        "easy.ahead.perturbed": p_d < p_e,
        "easy.less": s_e <= g_e,
        "hard.less": s_d <= g_d,
    }
    shares = {what: float(100 * each.double().mean()) for what, each in holds.items()}
    return shares | {"gap.gd": float((g_e - g_d).mean()), "gap.sam": float((s_e - s_d).mean())}


def _gaps(found: Mapping[str, Trajectory]) -> dict[str, list[list[float]]]:
    """Easy − difficult alignment over time, a row per seed, at most 200 snapshots."""
    stride = max(1, len(found["gd"].easy) // 200)
    return {
        rule: [[round(x, 5) for x in row] for row in (run.easy.amax(2) - run.hard.amax(2))[::stride].T.tolist()]
        for rule, run in found.items()
    } | {"stride": [[float(stride)]]}
