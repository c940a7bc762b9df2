"""Figure 1: where the methods diverge over batch size and coherence, and how fast simple solutions are fitted."""

from collections.abc import Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale

RATIOS = (0.1, 0.2, 0.4)  # ρ/α; at 0.5 SAM would diverge by sharpness alone, ηλ(1 + (ρ/α)λ) = 2
FEATURES = (2, 3, 4, 5)  # C; the width of 50 holds 2^5 units, not 2^6


def maps(seeds: Sequence[int], *, stride: int = 1, steps: int = 1000, repeats: int = 10, each: int = 5) -> list[Part]:
    """Maps of all methods at once, so that the panels of the figure and the errata share them."""
    groups = [list(seeds[start : start + each]) for start in range(0, len(seeds), each)]
    settings = {"ratios": list(RATIOS), "stride": stride, "steps": steps, "repeats": repeats}
    return [
        Part(f"maps {group[0]}–{group[-1]}", "chang2025.mapping:mapped", {"seeds": group, **settings})
        for group in groups
    ]


def descents(seeds: Sequence[int], *, dim: int = 100, num: int = 100, width: int = 50, epochs: int = 50) -> list[Part]:
    """Training from the solutions of figure 1d: one ensemble for each method."""
    settings = {"seeds": list(seeds), "features": list(FEATURES), "dim": dim, "num": num, "width": width}
    return [
        Part(name, "chang2025.descending:descended", {"name": name, "rho": rho, "epochs": epochs, **settings})
        for name, rho in (("sgd", 0.0), ("sam", 0.01))
    ]


_SMOKE = Scale((0, 1), 0.1, {"stride": 12, "steps": 200, "repeats": 4, "each": 1}, deviations=("every 12th cell",))
_FULL = Scale(tuple(range(20)), 5, levels=True, deviations=("η = 0.5: the paper says only that it is below 1",))
_MAP_SCALES = {"smoke": _SMOKE, "full": _FULL}
_ALMOST_SURE = (
    "The simulation reads one run's norm: its boundary is the almost-sure one, not the mean-square one that the "
    "criterion bounds (chang2025/mistake8)."
)


def _missed(method: str, who: str) -> Claim:
    return Claim(
        f"{method} criterion",
        f"{who} diverges in every cell where the criterion says so (cells that do not, %)",
        f"{method}.missed",
        "equal",
        0.0,
        margin=1.0,
        note="% of the cells above the criterion that the simulation calls stable",
    )


FIG1A = Experiment(
    key="chang2025/fig1a",
    title="Figure 1a: where SGD diverges over batch size and coherence",
    claim="SGD diverges where the coherence criterion says, for small batches and small coherence.",
    plan=maps,
    claims=(
        _missed("sgd", "SGD"),
        Claim(
            "coherence", "More cells diverge at low σ than at high σ (%)", "sgd.low_sigma", "greater", "sgd.high_sigma"
        ),
        Claim(
            "batch",
            "More cells diverge at small B than at large B (%)",
            "sgd.small_batch",
            "greater",
            "sgd.large_batch",
        ),
    ),
    scales=_MAP_SCALES,
    charts="chang2025.charts:fig1a",
    errata=(_ALMOST_SURE,),
)

FIG1B = Experiment(
    key="chang2025/fig1b",
    title="Figure 1b: where SGD with random perturbation diverges",
    claim="Random perturbation diverges where SGD does.",
    plan=maps,
    claims=(
        Claim("area", "As many cells diverge as with SGD (%)", "random.diverged", "equal", "sgd.diverged", margin=1.0),
        Claim("cells", "They are the same cells (those that differ, %)", "random.differs", "equal", 0.0, margin=2.0),
    ),
    scales=_MAP_SCALES,
    charts="chang2025.charts:fig1b",
    errata=(_ALMOST_SURE,),
)

FIG1C = Experiment(
    key="chang2025/fig1c",
    title="Figure 1c: where SAM diverges, for several ρ/α",
    claim="SAM diverges in more cells than SGD, and in more for larger ρ/α, where its criterion says so.",
    plan=maps,
    claims=(
        Claim("stricter", "SAM diverges in more cells than SGD (%)", "sam0.1.diverged", "greater", "sgd.diverged"),
        Claim("rising", "More for ρ/α = 0.2 than 0.1 (%)", "sam0.2.diverged", "greater", "sam0.1.diverged"),
        Claim("rising on", "More for ρ/α = 0.4 than 0.2 (%)", "sam0.4.diverged", "greater", "sam0.2.diverged"),
        _missed("sam0.1", "SAM with ρ/α = 0.1"),
        _missed("sam0.4", "SAM with ρ/α = 0.4"),
    ),
    scales=_MAP_SCALES,
    charts="chang2025.charts:fig1c",
    errata=(
        _ALMOST_SURE,
        "ρ/α is a constant of the model: SAM's own α is the gradient norm of the moment (chang2025/mistake9).",
    ),
)

_LOSS = "log₁₀ of the training loss after the last epoch"
FIG1D = Experiment(
    key="chang2025/fig1d",
    title="Figure 1d: training from (C, r)-solutions with noise",
    claim="From solutions with fewer features the loss falls faster, and faster with SAM.",
    plan=descents,
    claims=(
        Claim("simple, SGD", "SGD ends lower from C = 2 than from C = 5", "sgd.C2", "less", "sgd.C5", note=_LOSS),
        Claim("simple, SAM", "SAM ends lower from C = 2 than from C = 5", "sam.C2", "less", "sam.C5", note=_LOSS),
        Claim("SAM, C = 2", "SAM ends lower than SGD from C = 2", "sam.C2", "less", "sgd.C2", note=_LOSS),
        Claim("SAM, C = 5", "SAM ends lower than SGD from C = 5", "sam.C5", "less", "sgd.C5", note=_LOSS),
    ),
    scales={
        "smoke": Scale((0, 1), 0.1, {"dim": 10, "num": 20, "width": 32, "epochs": 3}, deviations=("d = 10, n = 20",)),
        "full": Scale(
            tuple(range(20)),
            3,
            levels=True,
            deviations=("20 runs; the paper has 5", "N(0, 0.01) is read as variance; `narrow` has it as deviation"),
        ),
    },
    charts="chang2025.charts:fig1d",
    errata=(
        "The loss is (f − y)², which table 1 needs: run here as ½(f − y)² with twice the learning rate.",
        "It is no local effect: from noise of standard deviation 0.01 (quantities `narrow.…`) SGD ends alike from "
        "every C, and SAM ends lower the larger C is, as the exact thresholds would have it (chang2025/mistake2).",
    ),
)

EXPERIMENTS = (FIG1A, FIG1B, FIG1C, FIG1D)
