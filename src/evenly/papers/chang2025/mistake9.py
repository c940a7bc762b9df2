"""Remark 9: SAM with its own normalisation does not come to rest, as the paper's model with constant α does."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evenly.papers.chang2025.seeds import one_part
from evenly.papers.charts import Panel, mean, mean_curve
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Measured, PartResult, Scale
from evenly.report.chart import Chart, Rule

if TYPE_CHECKING:
    from torch import Tensor

Values = dict[str, dict[int, float]]
SHOWN = 60  # steps of a path that is drawn
CLAIMS = (
    Claim(
        "cycle",
        "SAM on a parabola ends in the 2-cycle ηhρ/(2 − ηh) (relative error)",
        "cycle_error = 0 ± 1e-6",
        corrects=True,
    ),
    Claim("model", "The model with constant α comes to rest (|w|/ρ)", "model = 0 ± 1e-6", corrects=True),
)


def follow_paths(context: Context, *, seeds: Sequence[int], steps: int) -> PartResult:
    """Where SAM ends on ½hw², and where the model with constant α does, both over ρ."""
    import torch

    from evenly.rng import generator
    from evenly.stability.stationary import two_cycle

    values: Values = {}
    paths: dict[str, list[list[float]]] = {"SAM": [], "constant α": []}
    for seed in seeds:
        rng = generator(seed, "mistake 9")
        u = torch.rand(3, generator=rng, dtype=torch.float64).tolist()
        h, rho = 0.5 + 4 * u[0], 0.01 + u[1]
        lr = (0.2 + 1.6 * u[2]) / h
        true = sam_path(h, lr=lr, rho=rho, start=1.0, steps=steps)
        # α such that the model contracts by 1 − ηh/2 − 1 = −ηh/2 per step.
        alpha = 2 * rho * h * (lr * h) / (2 - lr * h)
        model = (1 - lr * h * (1 + rho * h / alpha)) ** torch.arange(steps + 1, dtype=torch.float64)
        end = float(true[-2:].abs().mean())
        for name, number in {
            "sam": end / rho,
            "model": float(model[-1].abs()) / rho,
            "cycle": two_cycle(h, lr=lr, rho=rho) / rho,
            "cycle_error": end / two_cycle(h, lr=lr, rho=rho) - 1,
        }.items():
            values.setdefault(name, {})[seed] = number
        for name, path in (("SAM", true), ("constant α", model)):
            paths[name].append([round(v, 6) for v in (path[:SHOWN].abs() / rho).tolist()])
    return PartResult(values, {"paths": paths})


def sam_path(h: float, *, lr: float, rho: float, start: float, steps: int) -> "Tensor":
    """The path of the library's SAM on ½hw²."""
    import torch
    from torch import nn

    from evenly.optim import SAM

    w = nn.Parameter(torch.tensor([start], dtype=torch.float64))
    sam, sgd = SAM([w], rho=rho), torch.optim.SGD([w], lr=lr)
    path = [w.detach().clone()]
    for _ in range(steps):
        sgd.zero_grad()
        sam.backward(lambda: h * w.square().sum() / 2)
        sgd.step()
        path.append(w.detach().clone())
    return torch.cat(path)


def charts(measured: Measured) -> list[Chart]:
    """Where both end, and their paths."""
    paths: Any = measured.series["all"]["paths"]
    lines = [
        mean_curve(name, range(len(runs[0])), runs, colour=number) for number, (name, runs) in enumerate(paths.items())
    ]
    cycle = mean(measured, "cycle")
    sentence = (
        f"SAM stays at |w| = {mean(measured, 'sam'):.2f} ρ in the mean; the 2-cycle is {cycle:.2f} ρ. The model with "
        "constant α vanishes."
    )
    return [
        Chart("On a parabola", "step", "|w|/ρ", [*lines, Rule(y=cycle, name="2-cycle")], sentence, y_log=False),
        Panel("Where they end", "|w|/ρ", {"SAM": "sam", "2-cycle": "cycle", "constant α": "model"}, sentence).draw(
            measured
        ),
    ]


EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake9",
    title="Remark 9: normalised SAM ends in a 2-cycle",
    claim="On a parabola SAM ends in the 2-cycle |w| = ηhρ/(2 − ηh), where the model with constant α comes to rest.",
    plan=partial(one_part, work=follow_paths),
    primary=("cycle", "model"),
    claims=CLAIMS,
    scales={
        "smoke": Scale((0, 1, 2), 0.1, {"steps": 200}),
        "full": Scale(tuple(range(20)), 0.2, {"steps": 400}, levels=True),
    },
    charts=charts,
    errata=("A remark of ours: the paper fixes α openly, as a simplification.",),
)
