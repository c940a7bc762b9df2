"""Theorems 3.1 to 3.6 as numerical checks: each statement on sets and data drawn at random."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale

_CHARTS = "chang2025.charts_checks"
THIN = (0, 1, 2)
MANY = tuple(range(20))


def one_part(seeds: Sequence[int], *, work: str, **settings: Any) -> list[Part]:
    """All seeds as one piece of work."""
    return [Part("all", f"chang2025.{work}", {"seeds": list(seeds), **settings})]


def _every(name: str, says: str, quantity: str = "", *, corrects: bool = False, note: str = "") -> Claim:
    """A statement about every set: one that breaks it refutes it."""
    return Claim(
        name,
        f"{says} (sets in which not, %)",
        f"{quantity or name}.violated",
        "equal",
        0.0,
        margin=0.0,
        corrects=corrects,
        after=True,
        note="; ".join(
            filter(None, [note, "until its first run it was judged by the mean over sets, which is weaker"])
        ),
    )


def bounds(
    seeds: Sequence[int], *, dim: int = 100, sizes: Sequence[int] = (50, 100, 400), draws: int = 10
) -> list[Part]:
    """The draws that theorems 3.5 and 3.6 share, in two pieces."""
    settings = {"features": [2, 3, 4, 5], "dim": dim, "sizes": list(sizes), "draws": draws, "ratio": 0.1}
    half = -(-len(seeds) // 2)
    return [
        Part(f"{part[0]}–{part[-1]}", "chang2025.solution_checks:coherence_bounds", {"seeds": part, **settings})
        for part in (list(seeds[:half]), list(seeds[half:]))
        if part
    ]


THEOREM_3_1 = Experiment(
    key="chang2025/theorem3.1",
    title="Theorem 3.1: random perturbation",
    claim="Random perturbation diverges where SGD does; below, its iterates stay bounded and do not vanish.",
    plan=partial(one_part, work="threshold_checks:random_perturbation", num=20, dim=4, batch=4),
    claims=(
        _every("criterion", "The criterion's η is not below the exact one"),
        _every(
            "bounded",
            "At half of the exact threshold E‖w‖² settles at its closed form",
            note="within 10 %, for the Monte Carlo error",
        ),
        _every("hovers", "There E‖w‖² stays above that of SGD, which vanishes"),
        _every(
            "speed",
            "Above, it grows as fast as SGD: their ratio settles",
            note="log₁₀ of the ratio changes by at most 0.01 while the steps double, by the exact recursion",
        ),
    ),
    scales={
        "smoke": Scale(THIN, 0.1, {"steps": 100, "repeats": 200}),
        "full": Scale(MANY, 4, {"steps": 2000, "repeats": 2000}, levels=True),
    },
    charts=f"{_CHARTS}:theorem_3_1",
)

THEOREM_3_2 = Experiment(
    key="chang2025/theorem3.2",
    title="Theorem 3.2: SAM diverges above a stricter threshold",
    claim="SAM diverges above (σ/λmax)(n/B − 1)^−½/(1 + (ρ/α)λmin), and its threshold is below SGD's.",
    plan=partial(one_part, work="threshold_checks:sharpness_aware", num=30, dim=10, batch=5),
    claims=(
        _every("criterion", "The theorem's η is not below the exact one"),
        _every("stricter", "SAM's exact threshold is below SGD's"),
        _every(
            "own coordinates",
            "SGD's criterion on P^½H_iP^½ needs no λmin and is sharper",
            "own_sharper",
            corrects=True,
            note="v = P^½w turns SAM into SGD, so that every result for SGD holds for SAM as it stands",
        ),
        _every("own is true", "and is not below the exact one", "own_true", corrects=True),
    ),
    scales={"smoke": Scale(THIN, 0.1), "full": Scale(tuple(range(100)), 0.2, levels=True)},
    charts=f"{_CHARTS}:theorem_3_2",
    errata=("With singular H the theorem is SGD's criterion (chang2025/mistake5); these sets are not singular.",),
)

THEOREM_3_3 = Experiment(
    key="chang2025/theorem3.3",
    title="Theorem 3.3: a set on which stability is known exactly",
    claim="On H_i = m e₁e₁ᵀ for i ≤ σ SAM is stable exactly where λ₁(1 + (ρ/α)λ₁) < (2σ/η)/(n/B − 1 + σ).",
    plan=partial(one_part, work="threshold_checks:tight_set"),
    claims=(
        _every("at", "E[J²] is 1 at the stated learning rate", note="to 1e-9"),
        _every("below", "and below 1 at 99 % of it"),
        _every("above", "and above 1 at 101 % of it"),
        _every("exact", "Our exact threshold is the stated one", note="to 1e-9"),
    ),
    scales={"smoke": Scale(THIN, 0.1), "full": Scale(tuple(range(100)), 0.1, levels=True)},
    charts=f"{_CHARTS}:theorem_3_3",
    errata=("The proof's E[(JᵀJ)^2k] is (E JᵀJ)^k (chang2025/mistake10); the result is right.",),
)

THEOREM_3_4 = Experiment(
    key="chang2025/theorem3.4",
    title="Theorem 3.4: memorising solutions and diagonal coherence matrices",
    claim="A solution memorises if and only if its coherence matrix is diagonal.",
    plan=partial(one_part, work="solution_checks:diagonal_coherence"),
    claims=(
        Claim("⇒", "S of memorising solutions is diagonal", "memorising.off", "equal", 0.0, margin=1e-9),
        Claim(
            "⇐",
            "Every solution with diagonal S memorises (1 if it does)",
            "shared.memorises",
            "equal",
            1.0,
            margin=0.0,
            note="on a family of solutions with one unit for two opposite examples",
        ),
        Claim("counterexample", "S is diagonal for them", "shared.off", "equal", 0.0, margin=1e-9, corrects=True),
        Claim("it fits", "and they fit both examples", "shared.misfit", "equal", 0.0, margin=1e-9, corrects=True),
    ),
    scales={
        "smoke": Scale(THIN, 0.1, {"num": 10, "dim": 30}),
        "full": Scale(MANY, 0.1, {"num": 100, "dim": 100}, levels=True),
    },
    charts=f"{_CHARTS}:theorem_3_4",
    errata=("⇐ is false: the gradients of two examples that share a unit can be orthogonal (chang2025/mistake6).",),
)

_BOUND_SCALES = {
    "smoke": Scale((0, 1), 0.1, {"dim": 20, "sizes": (20, 40), "draws": 3}, deviations=("d = 20, n = 20 and 40",)),
    "full": Scale(MANY, 3, levels=True, deviations=("n = 50, 100, 400", "ρ/α = 0.1", "δ = 0.05")),
}
_CLUSTER = "The proof takes H_i = H_j within a cluster; their product is about half of that (chang2025/mistake7)."

THEOREM_3_5 = Experiment(
    key="chang2025/theorem3.5",
    title="Theorem 3.5: λmax(S) of (C, r)-solutions falls with C",
    claim="With probability 1 − δ, λmax(S) ≤ 2√(d+1)(n/2^C + √(n(C + log 1/δ)/2)).",
    plan=bounds,
    claims=(
        Claim(
            "bound",
            "The bound fails in less than δ = 5 % of draws, at whichever n and C it fails most often (%)",
            "broken",
            "less",
            5.0,
            after=True,
            note="until its first run the draws of all n and C were counted together, which is weaker",
        ),
        Claim(
            "half",
            "λmax(S) is about half of 2√(d+1) times the largest cluster",
            "filled",
            "equal",
            0.55,
            margin=0.1,
            corrects=True,
            note="1 if H_i = H_j held; a little more than ½ because an example is wholly like itself",
        ),
    ),
    scales=_BOUND_SCALES,
    charts=f"{_CHARTS}:theorem_3_5",
    errata=(_CLUSTER,),
)


def theorem_3_6(small: int, large: int) -> tuple[Claim, ...]:
    """The claims of theorem 3.6 for a smaller and a larger number of examples."""
    return (
        Claim(
            "order",
            f"λmax(S_SAM) over its stated order does not grow with n ({small} to {large})",
            f"n{large}.C3.s",
            "less",
            f"n{small}.C3.s",
        ),
        Claim(
            "sharpest example",
            "max λmax(PH_i) is L(1 + (ρ/α)L/2^C): measured over stated, C = 2",
            f"n{large}.C2.largest",
            "equal",
            1.0,
            margin=0.05,
        ),
        Claim(
            "expectation",
            "Its mean is L + (ρ/α)/n (L² + (n−1)/2^C E⟨g_i, g_j⟩²): measured over ours, C = 2",
            f"n{large}.C2.expected",
            "equal",
            1.0,
            margin=0.05,
            corrects=True,
            note="⟨g_i, g_j⟩ = √(d+1) + (x_i·x_j + 1)/√(d+1)",
        ),
    )


THEOREM_3_6 = Experiment(
    key="chang2025/theorem3.6",
    title="Theorem 3.6: coherence of (C, r)-solutions under SAM",
    claim="λmax(S_SAM) = O((n/2^C) L √…), and max λmax(PH_i) = L(1 + (ρ/α)L/2^C), L = 2√(d+1).",
    plan=bounds,
    claims=theorem_3_6(50, 400),
    scales=_BOUND_SCALES
    | {"smoke": Scale((0, 1), 0.1, {"dim": 20, "sizes": (50, 400), "draws": 1}, deviations=("d = 20, one draw",))},
    charts=f"{_CHARTS}:theorem_3_6",
    errata=(_CLUSTER,),
)

EXPERIMENTS = (THEOREM_3_1, THEOREM_3_2, THEOREM_3_3, THEOREM_3_4, THEOREM_3_5, THEOREM_3_6)
