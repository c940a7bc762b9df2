"""Coherence and thresholds of (C, r)-solutions, against dense matrices and a second-moment recursion."""

from pathlib import Path

import pytest
import torch

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.feature_solutions import compare_features, cube
from evenly.papers.chang2025.mistake5 import gradients
from evenly.papers.experiment import Context
from evenly.papers.verdict import judge
from evenly.rng import generator
from evenly.stability import feature_solution

CONTEXT = Context(Path("unused"))


def test_sigma_under_sam_is_that_of_dense_hessians() -> None:
    seen = compare_features(CONTEXT, seeds=[3], features=[2], dim=4, num=6, batch=2, ratios=[0.5]).values
    x = cube(generator(3, "solutions"), num=6, dim=4)
    g = gradients(feature_solution(2, dim=4), x)
    h_NPP = g[:, :, None] * g[:, None]

    def sigma(ratio: float) -> float:
        p = torch.eye(g.shape[1], dtype=torch.float64) + ratio * h_NPP.mean(0)
        ph = p @ h_NPP
        s = torch.einsum("iab,jba->ij", ph, ph).clamp_min(0).sqrt()
        largest = torch.linalg.eigvals(ph).abs().max()
        return float(torch.linalg.eigvalsh(s)[-1] / largest)

    assert seen["C2.gain0.5"][3] == pytest.approx(sigma(0.5) / sigma(0.0), rel=1e-9)
    assert seen["C2.gain0.5"][3] > 1.01


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_the_exact_threshold_of_sam_is_where_the_second_moment_begins_to_grow(factor: float) -> None:
    num, batch, ratio = 6, 2, 0.5
    seen = compare_features(CONTEXT, seeds=[3], features=[2], dim=4, num=num, batch=batch, ratios=[ratio]).values
    lr = factor * seen["C2.sam0.5"][3]
    g = gradients(feature_solution(2, dim=4), cube(generator(3, "solutions"), num=num, dim=4))
    h_NPP = g[:, :, None] * g[:, None]
    h = h_NPP.mean(0)
    p = torch.eye(len(h), dtype=torch.float64) + ratio * h
    m = h @ h  # in the range of H, where alone something moves
    sizes = []
    for _ in range(1500):
        w = p @ m @ p
        m = (
            m
            - lr * (h @ p @ m + m @ p @ h)
            + lr**2 * (h @ w @ h + (1 / (num * batch) - 1 / num**2) * (h_NPP @ w @ h_NPP).sum(0))
        )
        sizes.append(float(m.trace()))
    assert (sizes[-1] > sizes[-2]) == (factor > 1)


def test_few_features_gain_sigma_under_sam_and_lose_stability_all_the_same() -> None:
    sizes = {"features": [2, 5], "dim": 60, "num": 60, "batch": 6, "ratios": [0.1, 0.5]}
    seen = compare_features(CONTEXT, seeds=[0, 1, 2], **sizes).values
    verdicts = {claim.name: judge(claim, seen).verdict for claim in CATALOGUE["chang2025/mistake4"].claims}
    for ratio in ("0.1", "0.5"):
        assert verdicts[f"bias, {ratio}"] == "reproduced"  # the paper's statement
        assert verdicts[f"conclusion, {ratio}"] == "contradicted"  # what it concludes
        assert verdicts[f"reverse, {ratio}"] == "reproduced"  # ours
    verdicts = {claim.name: judge(claim, seen).verdict for claim in CATALOGUE["chang2025/mistake2"].claims}
    assert (verdicts["equal"], verdicts["reverse"]) == ("reproduced", "reproduced")
