"""Appendix D: the norm of an example's gradient predicts how SAM re-weights it."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenly.errors import UsageError
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Measured, Part, PartResult, Scale
from evenly.papers.springer2024.toy import OPEN, SEEDS, TINY, arguments
from evenly.report.chart import Chart, Layer, Line, Points

if TYPE_CHECKING:
    from torch import Tensor

DIM, WIDTH, EXAMPLES = 6, 8, 50  # of the random networks

CLAIMS = (
    Claim(
        "eq. 25",
        "log(λ̃/λ) and ρ‖∇f‖ agree over examples that are fitted (λ < 0.01): median relative error",
        "sam.error_fitted = 0 ± 0.02",
    ),
    Claim("eq. 27", "and so they do when only the head is displaced", "lsam.error_fitted = 0 ± 0.02"),
    Claim("norm", "LSAM: ‖∇_v f‖ is the norm of the representation, relative error", "norm.error = 0 ± 1e-4"),
    Claim("eq. 33", "‖∇f‖² of linear networks, relative error", "linear = 0 ± 1e-9"),
    Claim(
        "eq. 29, misprint",
        "‖∇f‖² of a two-layer linear network is not what eq. 29 prints, relative error",
        "two_layer.printed > 1e-9",
        corrects=True,
        note="‖v‖²‖x‖ misses a square",
    ),
    Claim("eq. 29, mended", "with ‖v‖²‖x‖², relative error", "two_layer.squared = 0 ± 1e-9", corrects=True),
    Claim(
        "eq. 39, misprint",
        "‖∇f‖² of ReLU networks is not what eq. 39 gives, relative error",
        "relu.printed > 1e-9",
        corrects=True,
        note="a_j as printed has neither v nor the last mask",
    ),
    Claim("eq. 39, mended", "with a_j = ‖A_{j−1}W_{j−2}ᵀ ⋯ W₁ᵀA₁v‖², relative error", "relu = 0 ± 1e-9", corrects=True),
    Claim(
        "logistic",
        "for the logistic loss (1 − λ)ρ‖∇f‖ holds for all examples: median relative error",
        "sam.error_logistic = 0 ± 0.02",
        corrects=True,
        note="eq. 25 is for the exponential loss; the experiments use the logistic one",
    ),
)


def plan(seeds: Sequence[int], *, epochs: int = 20, **size: int) -> list[Part]:
    """The closed forms on random networks, and the re-weighting of the toy's examples."""
    return [
        Part("norms", closed_forms, {"seeds": list(seeds), "layers": 3}),
        Part("reweighting", toy_reweighting, arguments(seeds, rho=0.01, epochs=epochs, **size)),
    ]


def closed_forms(context: Context, *, seeds: Sequence[int], layers: int) -> PartResult:
    """‖∇f‖² of random networks by autograd beside the appendix's formulas: the largest error of each over the mean.

    `two_layer.printed` is eq. 29 as it stands, ‖Wx‖² + ‖v‖²‖x‖; `two_layer.squared` has ‖x‖². `linear` is eq. 33 and
    `relu` eq. 39 with v and the last mask in a_j, where they belong; `relu.printed` is eq. 39 with a_j as printed.
    """
    import torch

    from evenly.papers.springer2024.gradient_norms import by_autograd, layer_sum, worst_error
    from evenly.rng import generator

    values: dict[str, dict[int, float]] = defaultdict(dict)
    for seed in seeds:
        rng = generator(seed, "appendixD")
        x_ND = torch.randn(EXAMPLES, DIM, generator=rng, dtype=torch.float64)
        v_H = torch.randn(WIDTH, generator=rng, dtype=torch.float64) / math.sqrt(WIDTH)
        sizes = [WIDTH] * (layers - 1) + [DIM]
        weights = [torch.randn(WIDTH, size, generator=rng, dtype=torch.float64) / math.sqrt(size) for size in sizes]
        two = [weights[-1]]
        exact_two = by_autograd(v_H, two, x_ND, relu=False)
        wx_NH = x_ND @ weights[-1].T
        printed = wx_NH.square().sum(1) + v_H.square().sum() * x_ND.norm(dim=1)
        values["two_layer.printed"][seed] = worst_error(printed, exact_two)
        values["two_layer.squared"][seed] = worst_error(layer_sum(v_H, two, x_ND, relu=False), exact_two)
        for name, relu, as_printed in (("linear", False, False), ("relu", True, False), ("relu.printed", True, True)):
            exact = by_autograd(v_H, weights, x_ND, relu=relu)
            values[name][seed] = worst_error(layer_sum(v_H, weights, x_ND, relu=relu, printed=as_printed), exact)
    return PartResult(dict(values))


def toy_reweighting(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> PartResult:
    """log(λ̃/λ) of every training example of the toy under its own ascent, beside ρ‖∇f‖ (eq. 25) and ρ‖φ‖ (eq. 27).

    `KIND.correlation` of measured and predicted over the examples (KIND `sam` or `lsam`); `.error` the median relative
    error of the exponential loss's formula, `.error_fitted` that among examples with λ < 0.01, whose share is
    `fitted`, and `.error_logistic` that of the logistic loss's, (1 − λ)·ρ‖∇f‖. `norm.error`: ‖∇_v f‖ beside ‖φ(x)‖.
    """
    import torch

    from evenly.diagnostics import reweighting
    from evenly.papers.springer2024.gradient_norms import worst_error
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy

    networks = SpiralNetworks([Toy(seed, chi) for seed in seeds], **sizes).train(epochs)
    readout = networks.readout()
    values: dict[str, dict[int, float]] = defaultdict(dict)
    series: dict[str, dict[str, list[float]]] = {}
    for place, seed in enumerate(seeds):
        model, train = networks.ensemble.member(place), networks.data[place].train
        fitted = readout.importance[place] < 0.01
        if not fitted.any():
            raise UsageError(
                f"seed {seed}: after {epochs} epochs no example has λ < 0.01, and eq. 25 is about such: train longer."
            )
        values["fitted"][seed] = float(fitted.double().mean())
        for kind, only in (("sam", None), ("lsam", ["head"])):
            result = reweighting(model, train, rho=rho, only=only)
            truth, predicted = result.measured.double(), result.predicted.double()
            error_N = (predicted / truth - 1).abs()
            values[f"{kind}.correlation"][seed] = float(torch.corrcoef(torch.stack([truth, predicted]))[0, 1])
            values[f"{kind}.error"][seed] = float(error_N.quantile(0.5))
            values[f"{kind}.error_fitted"][seed] = float(error_N[fitted].quantile(0.5))
            values[f"{kind}.error_logistic"][seed] = float(
                (result.predicted_logistic.double() / truth - 1).abs().quantile(0.5)
            )
            if only:
                norm = rho * torch.linalg.vector_norm(readout.phi[place], dim=1).double()
                values["norm.error"][seed] = worst_error(predicted, norm)
            if place == 0:
                series[kind] = {"measured": _round(truth), "predicted": _round(predicted)}
    return PartResult(dict(values), series)


def _round(values: "Tensor") -> list[float]:
    return [round(float(value), 5) for value in values]


def chart(measured: Measured) -> list[Chart]:
    """log(λ̃/λ) of every example beside what eq. 25 and eq. 27 say."""
    panels = []
    for kind, formula in (("sam", "ρ‖∇f‖"), ("lsam", "ρ‖φ(x)‖")):
        shown = measured.series["reweighting"][kind]
        top = max(shown["predicted"])
        lines: list[Layer] = [
            Line("equal", [0, top], [0, top], dashed=True, colour=6),
            Points("examples", shown["predicted"], shown["measured"]),
        ]
        sentence = (
            f"The re-weighting of each training example (seed 0) beside {formula}: below the line where λ is large."
        )
        title = f"{kind.upper()}: re-weighting, predicted by {formula}"
        panels.append(Chart(title, formula, "log(λ̃/λ)", lines, sentence))
    return panels


EXPERIMENT = Experiment(
    key="springer2024/appendixD",
    title="Re-weighting predicted by ρ‖∇f‖, and the closed forms (appendix D)",
    claim="log(λ̃/λ) of an example grows as ρ‖∇f‖, a weighted sum of the norms of its representations.",
    plan=plan,
    primary=("eq. 25", "eq. 33"),
    claims=CLAIMS,
    scales={
        "smoke": Scale(
            (0, 1), 0.05, {**TINY, "epochs": 200}, deviations=("20 training points, networks 8 wide: that it runs",)
        ),
        "full": Scale(SEEDS, 0.5, deviations=(*OPEN, "the toy of χ = 360 after 20 epochs of SGD, ρ = 0.01")),
    },
    charts=chart,
    errata=(
        "Eq. 29 has ‖v‖²‖x‖ where ‖v‖²‖x‖² is meant.",
        "Eq. 32 multiplies W₁ ⋯ W_{i−1}v, which does not fit in shape: the transposes, W_{i−1}ᵀ ⋯ W₁ᵀv, are meant.",
        "Eqs. 37–39: the first term misses x, and a_j misses v and the mask A_j next to it.",
        "Eq. 25 is derived for the exponential loss; for the logistic loss it has a factor 1 − λ.",
    ),
)
