"""Figure 2: how the weights of GD and SAM turn towards an easy and a difficult feature."""

from collections.abc import Mapping
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Part, Scale
from evenly.papers.nguyen2024.two_layer_settings import BETAS, COLOURS, NETWORKS, SEEDS, SHOWN, TINY, WITH_BIAS
from evenly.report.chart import Chart, Line

NUM_DRAWN = 27  # points of a curve
LONGER = (
    "800 iterations instead of 600: the paper trains until convergence, and after 600 SAM has just learned the easy "
    "feature (at 602 on average). What is learned in the end is judged after 800, what is learned first after 600"
)
AT_800 = "Declared at 600 iterations first, where SAM has not converged; judged again at 800, with the numbers known."


def _claims_at(beta: float) -> tuple[Claim, ...]:
    gd, sam, at = f"{beta}.gd", f"{beta}.sam", f"β_d = {beta}"
    # Of figure 2a the text says "around epoch 250" and "around epoch 450"; of 2b "the same conclusion".
    first, later, margin = (250.0, 450.0, 100.0) if beta == 0.2 else (None, None, None)
    return (
        Claim(
            f"timing at {beta}",
            f"GD learns the easy feature earlier than SAM ({at})",
            f"{gd}.takeoff < {sam}.takeoff",
            first,
            later,
            margin,
            after=beta == 0.2,
            note="Learned: an alignment of ½; where it is not reached in 800 iterations, 800 is counted.",
        ),
        *(
            Claim(
                f"{SHOWN[rule]} easy first at {beta}",
                f"{SHOWN[rule]} learns the easy feature first: after 600 iterations it is aligned more with it ({at})",
                f"{beta}.{rule}.easy > {beta}.{rule}.hard",
            )
            for rule in SHOWN
        ),
        Claim(
            f"evenly at {beta}",
            f"the gap between the two alignments is smaller in SAM, on average over 600 iterations ({at})",
            f"{sam}.gap < {gd}.gap",
        ),
        Claim(
            f"difficult after 600 at {beta}",
            f"after the paper's 600 iterations SAM is aligned more with the difficult feature than GD ({at})",
            f"{sam}.hard > {gd}.hard",
            note="With most seeds SAM has not learned the easy feature by then.",
        ),
        Claim(
            f"difficult at {beta}",
            f"after 800 iterations SAM is aligned more with the difficult feature than GD ({at})",
            f"{sam}.hard.end > {gd}.hard.end",
            after=True,
            note=AT_800,
        ),
        Claim(
            f"less easy at {beta}",
            f"and less with the easy one ({at})",
            f"{sam}.easy.end < {gd}.easy.end",
            after=True,
            note=AT_800,
        ),
    )


_ACCURACY = tuple(
    Claim(
        f"accuracy of {SHOWN[rule]}",
        f"a stronger difficult feature improves the test accuracy of {SHOWN[rule]} after 800 iterations",
        f"0.4.{rule}.accuracy.end > 0.2.{rule}.accuracy.end",
        after=True,
        note=AT_800,
    )
    for rule in SHOWN
)
_WITHOUT_BIAS = (
    *(
        Claim(
            f"eq. 1 difficult at {beta}",
            f"without a bias GD's difficult alignment does not move in 600 iterations (β_d = {beta})",
            f"eq1 {beta}.gd.hard = eq1 {beta}.gd.hard.start ± 0.02",
            corrects=True,
        )
        for beta in BETAS
    ),
    Claim(
        "eq. 1 accuracy",
        "without a bias the test accuracy of GD does not depend on β_d",
        "eq1 0.4.gd.accuracy = eq1 0.2.gd.accuracy ± 0.5",
        corrects=True,
    ),
    Claim(
        "eq. 1 timing",
        "without a bias, too, GD learns the easy feature earlier than SAM",
        "eq1 0.2.gd.takeoff < eq1 0.2.sam.takeoff",
        corrects=True,
    ),
)


def plan(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    """Both networks at both strengths of the difficult feature."""
    return [
        Part(
            f"{network}β_d = {beta}",
            "nguyen2024.two_layer_dynamics:alignment_curves",
            {"seeds": list(seeds), "name": f"{network}{beta}", "beta_hard": beta, "bias": bias, **size},
        )
        for network, bias in NETWORKS.items()
        for beta in BETAS
    ]


def charts(measured: Measured) -> list[Chart]:
    """Panels a, b and c with the network that has a bias, and a and c with that of eq. 1, where b looks like a."""
    with_bias, without = (
        _panels({beta: measured.series[f"{network}β_d = {beta}"] for beta in BETAS}, shown)
        for network, shown in (("", "with bias"), ("eq1 ", "eq. 1, no bias"))
    )
    return [*with_bias, without[0], without[2]]


def _panels(parts: Mapping[float, Mapping[str, Any]], shown: str) -> list[Chart]:
    sentence = (
        "Alignment with the easy feature (dashed) and the difficult one (solid): medians and quartiles over seeds."
    )
    panels = []
    for beta, part in parts.items():
        layers = [
            median_curve(f"{SHOWN[rule]}, {feature}", part, rule, what, dashed=what == "easy")
            for rule in SHOWN
            for what, feature in (("easy", "easy"), ("hard", "difficult"))
        ]
        panels.append(Chart(f"β_d = {beta}, {shown}", "iteration", "max |⟨w, v⟩|", layers, sentence))
    # Accuracies of four kinds cross all over: bands would hide them.
    accuracy = [
        median_curve(f"{SHOWN[rule]}, β_d = {beta}", part, rule, "accuracy", dashed=beta == 0.2, band=False)
        for beta, part in parts.items()
        for rule in SHOWN
    ]
    sentence = (
        "Test accuracy of GD and SAM with a weak (dashed) and a stronger difficult feature (solid): medians over seeds."
    )
    return [*panels, Chart(f"Test accuracy, {shown}", "iteration", "test accuracy (%)", accuracy, sentence)]


def median_curve(
    name: str, part: Mapping[str, Any], rule: str, what: str, *, dashed: bool = False, band: bool = True
) -> Line:
    """The median over seeds of a curve of `two_layer_dynamics.alignment_curves`, with its quartiles."""
    stride = -(-len(part["steps"]) // NUM_DRAWN)
    low, middle, high = (part["curves"][rule][what][each][::stride] for each in ("low", "middle", "high"))
    if not band:
        low = high = None
    return Line(name, part["steps"][::stride], middle, low, high, dashed=dashed, colour=COLOURS[rule])


EXPERIMENT = Experiment(
    key="nguyen2024/fig2",
    title="Figure 2: how GD and SAM learn an easy and a difficult feature",
    claim="GD learns the easy feature earlier than SAM, and SAM learns the two more evenly.",
    plan=plan,
    claims=(*_claims_at(0.2), *_claims_at(0.4), *_ACCURACY, *_WITHOUT_BIAS),
    scales={
        "smoke": Scale((0, 1), 0.05, {"num": 200, "iterations": 60, "horizon": 40, "every": 10}, deviations=TINY),
        "small": Scale(SEEDS, 2, {"num": 2000}, deviations=("2,000 examples instead of 10,000", WITH_BIAS, LONGER)),
        "full": Scale(SEEDS, 12, {"num": 10_000}, deviations=(WITH_BIAS, LONGER), levels=True),
    },
    charts=charts,
    errata=(
        "Equation 1 has no bias and one logit; with it the difficult feature does not move and the accuracy does not "
        "depend on β_d. The figure needs the bias of the code it descends from.",
        "ρ = 0.02 is said to satisfy the constraint of theorem 3.4, which wants every initial alignment above ρ; those "
        "of this initialisation have a standard deviation of 0.008.",
        "The paper shows one seed. When the easy feature is learned depends on the seed by hundreds of iterations.",
        "With a bias, training ends in one of two states. Either the leading filter keeps a bias near 0, an easy "
        "alignment near 2, and learns little of the difficult feature; or filters grow a bias near ±1, answer almost "
        "linearly, and learn both. GD reaches the second with 4 seeds of 10 and soon, SAM with most but after 600 "
        "iterations: which of them is aligned more with the difficult feature depends on the seed.",
    ),
    primary=("timing at 0.2", "evenly at 0.2", "timing at 0.4", "evenly at 0.4"),
)
