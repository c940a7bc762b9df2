"""Correction 1: table 1 leaves out the square root in S."""

from evenly.papers.chang2025.parity_training import SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment

CLAIMS = (
    Claim("λmax(S)", "λmax(S) of SGD, as S is defined", "sgd.lambda_max_s = 12740 ± 3822"),
    Claim("σ", "σ of SGD, as it is defined", "sgd.sigma = 133.9 ± 40.2"),
    Claim("halved", "SAM with ρ = 0.1 keeps 65.7/133.9 of σ", "sam0.1.sigma_kept = 0.49 ± 0.15"),
    Claim(
        "impossible",
        "n·Tr H of SGD, which λmax(S) cannot exceed, is below the printed 12,740",
        "sgd.n_trace < 12740",
        corrects=True,
        after=True,
        note="the paper's own Tr H gives n·Tr H = 2,600",
    ),
    Claim(
        "impossible, σ",
        "σ of SGD is below n = 50, which σ cannot exceed; 133.9 is printed",
        "sgd.sigma < 50",
        corrects=True,
        after=True,
        note="S_ij ≤ max λmax(H_i) for H_i of rank one, so that λmax(S) ≤ n max λmax(H_i)",
    ),
    Claim("possible", "λmax(S) is below n·Tr H", "sgd.n_trace > sgd.lambda_max_s", corrects=True),
    Claim(
        "without the root",
        "Without the root λmax is near the printed one",
        "sgd.lambda_max_s_printed = 12740 ± 3822",
        corrects=True,
        note="margin: 30% of the paper's number, which comes without a spread",
    ),
    Claim("real drop", "σ falls by less than a quarter", "sam0.1.sigma_kept > 0.75", corrects=True),
)

CHARTS = (
    Panel(
        "λmax(S) of SGD",
        "λmax(S)",
        {"as defined": "sgd.lambda_max_s", "n · Tr H": "sgd.n_trace", "no root": "sgd.lambda_max_s_printed"},
        "λmax(S) is {sgd.lambda_max_s:.0f}, and can be no more than n·Tr H = {sgd.n_trace:.0f}; without the root it is "
        "{sgd.lambda_max_s_printed:.0f}.",
        level=12740.0,
        level_name="paper",
    ),
    Panel(
        "σ of SAM (ρ = 0.1) over σ of SGD",
        "ratio",
        {"as defined": "sam0.1.sigma_kept", "no root": "sam0.1.sigma_printed_kept"},
        "SAM keeps {sam0.1.sigma_kept:.2f} of σ as it is defined, and {sam0.1.sigma_printed_kept:.2f} without the "
        "root.",
        level=65.7 / 133.9,
        level_name="paper",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake1",
    title="Correction 1: table 1 leaves out the square root in S",
    claim="With S_ij = √Tr(H_iH_j), as it is defined, table 1's λmax(S) = 12,740 and σ = 133.9 are impossible.",
    plan=plan,
    primary=("impossible", "impossible, σ"),
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
)
