"""Figure 11: the hard probing error against ρ, for five batch sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenly.papers.claim import Claim
from evenly.papers.experiment import Measured, Part
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import (
    CHI,
    RHOS,
    SMOKE,
    TINY,
    UNSAID,
    arguments,
    experiment,
    radius_chart,
    radius_curve,
)
from evenly.report.chart import Chart

BATCHES = (5, 10, 20, 50, 100)

CLAIMS = (
    *(
        Claim(
            f"batch {size}",
            f"batches of {size}: the hard probing error at ρ = 1 is below SGD's, %",
            f"{at('hard', batch=size, rho=1)} < {at('hard', batch=size, rho=0)}",
            note=UNSAID,
        )
        for size in BATCHES[:3]
    ),
    Claim(
        "degrades",
        "LSAM's improvement at ρ = 1, in points, is smaller in batches of 100 than in batches of 5",
        f"{at('gain', batch=100)} < {at('gain', batch=5)}",
        note="with equal epochs a batch of 100 takes a twentieth of the steps",
    ),
    Claim(
        "best ρ",
        "the best ρ in batches of 100 is that in batches of 5, up to one step of the grid",
        f"{at('best_place', batch=100)} = {at('best_place', batch=5)} ± 1",
        after=True,
        note="“similar across batch sizes”: places of ρ in 0, 0.1, 0.2, 0.5, 1, 2; a step from 1 to 2 is a factor of 2",
    ),
    Claim(
        "sensitive",
        "errors of the five batch sizes lie further apart at ρ = 2 than at ρ = 0.1, in points",
        f"{at('range', rho=2)} > {at('range', rho=0.1)}",
        after=True,
        note="“for large ρ, the probing error of the hard feature is more sensitive to batch size”",
    ),
)


def plan(seeds: Sequence[int], *, batches: Sequence[int] = BATCHES, **size: int) -> list[Part]:
    """A part for every batch size; named by its place, so that tiny batches at smoke stand for the real ones."""
    return [
        Part(
            at(batch=name),
            "springer2024.spiral_probing_error:errors_by_radius",
            arguments(seeds, prefix=at(batch=name), rhos=list(RHOS), batch_size=batch, **size),
        )
        for name, batch in zip(BATCHES, batches, strict=True)
    ]


def best_places_and_ranges(values: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """`batch=B.best_place`, the place in the grid of the ρ with the least error, and `rho=R.range` over batch sizes."""
    errors = {(b, rho): values[at("hard", batch=b, rho=rho)] for b in BATCHES for rho in RHOS}
    seeds = list(errors[BATCHES[0], RHOS[0]])
    places = {
        at("best_place", batch=b): {
            seed: float(min(range(len(RHOS)), key=lambda place: errors[b, RHOS[place]][seed])) for seed in seeds
        }
        for b in BATCHES
    }
    ranges = {
        at("range", rho=rho): {
            seed: max(errors[b, rho][seed] for b in BATCHES) - min(errors[b, rho][seed] for b in BATCHES)
            for seed in seeds
        }
        for rho in RHOS
    }
    return places | ranges


def chart(measured: Measured) -> list[Chart]:
    """Error against ρ, a line for each batch size."""
    lines = [radius_curve(measured, f"batch {size}", at(batch=size)) for size in BATCHES]
    sentence = f"The error of the spiral of χ = {CHI:g} against ρ for five batch sizes, 100 epochs each."
    return [radius_chart("Hard probing error by batch size", lines, sentence)]


EXPERIMENT = experiment(
    "fig11",
    title="Hard error against ρ, by batch size (figure 11)",
    claim="LSAM improves the hard feature over a range of batch sizes; the improvement degrades as batches grow large.",
    plan=plan,
    primary=("batch 5", "batch 10", "batch 20", "degrades"),
    claims=CLAIMS,
    smoke=replace(SMOKE, settings={**TINY, "batches": (2, 4, 5, 10, 20)}),
    minutes=2.0,
    deviations=("χ = 360; sizes 5, 10, 20, 50, 100; equal epochs for all",),
    charts=chart,
    derived=best_places_and_ranges,
)
