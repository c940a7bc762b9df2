"""What table 1, figures 2 to 4 and mistake 1 share: training from scratch, and how it is drawn."""

from collections.abc import Sequence
from typing import Any

from evenly.papers.charts import mean, mean_curve
from evenly.papers.experiment import Measured, Part, Scale
from evenly.report.chart import Chart

METHODS = {"sgd": 0.0, "sam0.01": 0.01, "sam0.05": 0.05, "sam0.1": 0.1}  # and their ρ
NAMES = {"sgd": "SGD", "sam0.01": "SAM .01", "sam0.05": "SAM .05", "sam0.1": "SAM .1"}
LABELS = {
    "sigma_printed": "σ as printed (no root)",
    "sigma": "σ as defined",
    "lambda_max_s_printed": "λmax(S) as printed (no root)",
    "lambda_max_s": "λmax(S) as defined",
    "rank": "effective rank",
    "largest": "max λmax(Hᵢ)",
    "lambda_max": "λmax(H)",
    "trace": "Tr H",
}
SCALES = {
    "smoke": Scale(
        (0, 1, 2),
        0.1,
        {"dim": 6, "width": 6, "num": 20, "epochs": 4},
        deviations=("d = 6, width 6, n = 20, 4 epochs",),
    ),
    "full": Scale(
        tuple(range(40)),
        1,
        levels=True,
        deviations=(
            "40 seeds; the paper gives neither their number nor a spread",
            "PyTorch's initialisation",
            "learning rate 0.1, which the numbers of table 1 fit; C.5 read literally would give 0.01",
        ),
    ),
}
ERRATA = (
    "The columns σ and λmax(S) leave out the square root of S: λmax(S) ≤ n·Tr H = 2,600 < 12,740. Both are measured: "
    "`sigma`, `lambda_max_s` with the root, `…_printed` without.",
    "The numbers fit the loss (f − y)²: run here as ½(f − y)² with twice the learning rate, curvatures doubled.",
    "H_i is the Gauss–Newton curvature: the Hessian's own trace is negative for many pairs before it fits.",
)
_EVERY = 2  # epochs from one point of a curve to the next


def plan(seeds: Sequence[int], **sizes: Any) -> list[Part]:
    """All methods and seeds as one ensemble at learning rate 0.1."""
    return [at_learning_rate(0.1, seeds, **sizes)]


def at_learning_rate(lr: float, seeds: Sequence[int], *, prefix: str = "", **sizes: Any) -> Part:
    """All methods and seeds as one ensemble; `prefix` begins the names of its quantities."""
    methods = [[prefix + method, rho] for method, rho in METHODS.items()]
    settings = {"seeds": list(seeds), "lr": lr, "methods": methods, **sizes}
    return Part(f"lr {lr:g}", "chang2025.parity_runs:train_methods", settings)


def epochs_chart(measured: Measured, quantity: str) -> Chart:
    """One quantity over the epochs for every method."""
    curves: Any = measured.series["lr 0.1"]["curves"]
    runs = {method: [run[::_EVERY] for run in curves[method][quantity]] for method in METHODS}
    lines = [
        mean_curve(NAMES[method], range(0, _EVERY * len(each[0]), _EVERY), each, colour=number)
        for number, (method, each) in enumerate(runs.items())
    ]
    label = LABELS[quantity]
    ends = ", ".join(f"{mean(measured, f'{method}.{quantity}'):.4g} with {NAMES[method]}" for method in METHODS)
    return Chart(label, "epoch", label, lines, f"{label} at the end: {ends}.")
