"""Figure 4: how LSAM changes the learning rates of the two features, over batches."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Measured, Part, PartResult
from evenly.papers.springer2024.toy import RHO, arguments, experiment
from evenly.report.chart import Chart, Histogram, Rule

if TYPE_CHECKING:
    from torch import Tensor

EDGES = [round(-1 + 0.1 * i, 1) for i in range(41)]  # of the histograms: −1 to 3

CLAIMS = (
    Claim("easy", "the easy feature's rate is lowered: the median of ṽ_easy/v_easy", "easy_factor < 1"),
    Claim("hard", "the hard feature's rate is raised: the median of ṽ_hard/v_hard", "hard_factor > 1"),
    Claim("share", "the hard feature's share is larger in ṽ than in v", "phantom_share > real_share"),
    Claim(
        "less lowered",
        "the hard feature's rate keeps more of itself than the easy one's",
        "hard_factor > easy_factor",
        corrects=True,
        note="what the share needs: the hard rate need not rise, only fall less",
    ),
)


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """LSAM of ρ = 1."""
    return [Part("rates", learning_rate_factors, arguments(seeds, rho=RHO, **size))]


def learning_rate_factors(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> PartResult:
    """The factors ṽ/v of both learning rates, and the hard feature's share in their sum, over batches.

    Medians over the batches of every epoch of training; the series holds the histograms of all seeds together.
    """
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy

    toys = [Toy(seed, chi, rho=rho) for seed in seeds]
    v_TKB2, real_TK2 = SpiralNetworks(toys, **sizes).phantom_history(epochs)
    real_TKB2 = real_TK2[:, :, None].expand_as(v_TKB2)
    factor = v_TKB2 / real_TKB2
    measured = {
        "easy_factor": factor[..., 0],
        "hard_factor": factor[..., 1],
        "phantom_share": v_TKB2[..., 1] / v_TKB2.sum(3),
        "real_share": real_TKB2[..., 1] / real_TKB2.sum(3),
    }
    values = {
        name: {toy.seed: float(each[:, k].flatten().quantile(0.5)) for k, toy in enumerate(toys)}
        for name, each in measured.items()
    }
    values["hard_raised"] = {
        toy.seed: float((measured["hard_factor"][:, k] > 1).double().mean()) for k, toy in enumerate(toys)
    }
    series = {name: histogram_shares(each) for name, each in measured.items()}
    return PartResult(values, {"edges": EDGES, **series})


def histogram_shares(values: "Tensor") -> list[float]:
    """The share of the values between each two edges; those outside count in the outermost."""
    inside = values.flatten().nan_to_num(0.0).clamp(EDGES[0], EDGES[-1]).double().numpy()
    counts, _ = np.histogram(inside, EDGES)
    return [round(float(count) / len(inside), 5) for count in counts]


def chart(measured: Measured) -> list[Chart]:
    """(i) the factors of the learning rates, (ii) the hard feature's share, over batches."""
    series = measured.series["rates"]

    def histogram(name: str, what: str) -> Histogram:
        return Histogram(name, series["edges"], series[what])

    return [
        Chart(
            "(i) learning rates, phantom over real",
            "ṽ/v",
            "share of batches",
            [
                histogram("easy feature", "easy_factor"),
                histogram("hard feature", "hard_factor"),
                Rule(x=1.0, name="unchanged"),
            ],
            "How LSAM changes the learning rates of the two features, over all batches of training and all seeds.",
        ),
        Chart(
            "(ii) the hard feature's share",
            "v_hard / (v_easy + v_hard)",
            "share of batches",
            [histogram("real", "real_share"), histogram("phantom", "phantom_share")],
            "The hard feature's part of both learning rates, at the real and at the phantom weights.",
        ),
    ]


EXPERIMENT = experiment(
    "fig4",
    title="LSAM's learning rates of the two features, over batches (figure 4)",
    claim="LSAM lowers the learning rate of the easy feature, raises that of the hard one, and so raises its share.",
    plan=plan,
    primary=("easy", "hard", "share"),
    claims=CLAIMS,
    minutes=0.5,
    deviations=("χ = 360, ρ = 1", "batches of the whole of training, in medians"),
    charts=chart,
    errata=(
        "ṽ_hard exceeds v_hard only in a batch that the hard feature, weighted by importance, gets wrong: half of the "
        "batches before the first step, ever fewer after it. Typically LSAM lowers both rates, the easy one much more.",
    ),
)
