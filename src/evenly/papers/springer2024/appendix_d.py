"""Appendix D: the re-weighting of an example foretold by the norm of its gradient."""

from collections.abc import Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.springer2024.probing_figures import CHI, OPEN, ROOM, SEEDS, TINY, sizes


def _appendix(
    seeds: Sequence[int], *, epochs: int = 20, num_train: int = 300, num_test: int = 2000, width: int = 100
) -> list[Part]:
    given = {"seeds": list(seeds), "chi": CHI, "rho": 0.01, "epochs": epochs}
    return [
        Part("norms", f"{ROOM}.closed_forms:norms", {"seeds": list(seeds), "layers": 3}),
        Part("foretold", f"{ROOM}.closed_forms:foretold", given | {"sizes": sizes(num_train, num_test, width)}),
    ]


APPENDIX_D = Experiment(
    key="springer2024/appendixD",
    title="Re-weighting foretold by ρ‖∇f‖, and the closed forms (appendix D)",
    claim="log(λ̃/λ) of an example grows as ρ‖∇f‖, a weighted sum of the norms of its representations.",
    plan=_appendix,
    claims=(
        Claim(
            "eq. 25",
            "log(λ̃/λ) and ρ‖∇f‖ agree over examples that are fitted (λ < 0.01): median relative error",
            "sam.error_fitted",
            "equal",
            0.0,
            margin=0.02,
        ),
        Claim(
            "eq. 27",
            "and so they do when only the head is displaced",
            "lsam.error_fitted",
            "equal",
            0.0,
            margin=0.02,
        ),
        Claim(
            "norm",
            "LSAM: ‖∇_v f‖ is the norm of the representation, relative error",
            "norm.error",
            "equal",
            0.0,
            margin=1e-4,
        ),
        Claim("eq. 33", "‖∇f‖² of linear networks, relative error", "linear", "equal", 0.0, margin=1e-9),
        Claim(
            "eq. 29",
            "‖∇f‖² of a two-layer linear network as printed, relative error",
            "two_layer.printed",
            "equal",
            0.0,
            margin=1e-9,
            note="‖v‖²‖x‖ misses a square",
        ),
        Claim(
            "eq. 39",
            "‖∇f‖² of ReLU networks with a_j as printed, relative error",
            "relu.printed",
            "equal",
            0.0,
            margin=1e-9,
            note="a_j as printed has neither v nor the last mask",
        ),
        Claim(
            "eq. 29, mended",
            "with ‖v‖²‖x‖², relative error",
            "two_layer.squared",
            "equal",
            0.0,
            margin=1e-9,
            corrects=True,
        ),
        Claim(
            "eq. 39, mended",
            "with a_j = ‖A_{j−1}W_{j−2}ᵀ ⋯ W₁ᵀA₁v‖², relative error",
            "relu",
            "equal",
            0.0,
            margin=1e-9,
            corrects=True,
        ),
        Claim(
            "logistic",
            "for the logistic loss (1 − λ)ρ‖∇f‖ holds for all examples: median relative error",
            "sam.error_logistic",
            "equal",
            0.0,
            margin=0.02,
            corrects=True,
            note="eq. 25 is for the exponential loss; the experiments use the logistic one",
        ),
    ),
    scales={
        "smoke": Scale(
            (0, 1), 0.05, {**TINY, "epochs": 200}, deviations=("20 training points, networks 8 wide: that it runs",)
        ),
        "full": Scale(SEEDS, 0.5, deviations=(*OPEN, "the toy of χ = 360 after 20 epochs of SGD, ρ = 0.01")),
    },
    charts=f"{ROOM}.charts_mechanism:foretold",
    errata=(
        "Eq. 29 has ‖v‖²‖x‖ where ‖v‖²‖x‖² is meant.",
        "Eq. 32 multiplies W₁ ⋯ W_{i−1}v, which does not fit in shape: the transposes, W_{i−1}ᵀ ⋯ W₁ᵀv, are meant.",
        "Eqs. 37–39: the first term misses x, and a_j misses v and the mask A_j next to it.",
        "Eq. 25 is derived for the exponential loss; for the logistic loss it has a factor 1 − λ.",
    ),
)

EXPERIMENTS = (APPENDIX_D,)
