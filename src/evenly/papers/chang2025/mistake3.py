"""Remark 3: a simpler criterion sees all that the σ-criterion sees."""

from collections.abc import Sequence
from functools import partial

from evenly.papers.chang2025.random_sets import random_set
from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

CLAIMS = (
    Claim(
        "contained",
        "In no set does only the σ-criterion see that SGD diverges (%)",
        "only_sigma = 0",
        corrects=True,
        after=True,
        note="λmax(S) ≥ nλmax(H), so σ/λmax(H) ≥ n/max λmax(H_i)",
    ),
    Claim(
        "dominated",
        "In some sets only max λmax(H_i) > (n/η)(n/B − 1)^−½ sees it (%)",
        "only_sharpest > 0",
        corrects=True,
    ),
)


def compare_criteria(context: Context, *, seeds: Sequence[int], sets: int) -> PartResult:
    """In how many sets each criterion sees a divergence that the other does not, in percent."""
    import torch

    from evenly.rng import generator
    from evenly.stability.criteria import coherence_criterion, sharpest_example
    from evenly.stability.maps import overlapping_set

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "mistake 3")
        ratios = []
        for i in range(sets):
            size = [int(torch.randint(2, 30, (), generator=rng)) for _ in range(2)]
            overlap = int(torch.randint(1, size[0] + 1, (), generator=rng))
            problem = (
                overlapping_set(overlap, num_examples=size[0])
                if i % 3 == 0
                else random_set(rng, num=size[0], dim=size[1])
            )
            ratios.append(coherence_criterion(problem, batch=1).lr / sharpest_example(problem, batch=1).lr)
        ratio = torch.tensor(ratios, dtype=torch.float64)
        return {
            "only_sigma": 100 * float((ratio < 1 - 1e-9).double().mean()),
            "only_sharpest": 100 * float((ratio > 1 + 1e-9).double().mean()),
            "sigma_over_sharpest": float(ratio.log().mean().exp()),
        }

    return by_seed(seeds, one)


CHARTS = (
    Panel(
        "Sets in which one criterion is stricter",
        "% of sets",
        {"only the σ-criterion": "only_sigma", "only the sharpest example": "only_sharpest"},
        "The σ-criterion is stricter in {only_sigma:.0f}% of the sets, the one of the sharpest example in "
        "{only_sharpest:.0f}%; in the others they are equal.",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake3",
    title="Remark 3: the σ-criterion is dominated by a simpler one",
    claim="Wherever the σ-criterion sees that SGD diverges, max λmax(H_i) > (n/η)(n/B − 1)^−½ sees it too.",
    plan=partial(one_part, work=compare_criteria),
    primary="contained",
    claims=CLAIMS,
    scales={
        "smoke": Scale((0, 1, 2), 0.1, {"sets": 9}),
        "full": Scale(tuple(range(20)), 0.2, {"sets": 60}, levels=True),
    },
    charts=CHARTS,
    errata=("A remark of ours: the paper nowhere says that its criterion sees more.",),
)
