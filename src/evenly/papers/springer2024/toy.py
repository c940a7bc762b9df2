"""The settings of the toy of sections 5 and 6, shared by its figures.

The paper does not say how long the toy is trained, nor its grids, seeds, test set and first v. They are settled here.
"""

from collections.abc import Sequence
from typing import Any

from evenly.papers import charts
from evenly.papers.experiment import Experiment, Measured, Scale
from evenly.papers.springer2024.quantities import at
from evenly.report.chart import Chart, Layer, Line

CHI = 360.0
RHOS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
RHO = 1.0  # where the mechanism is looked at: for larger ρ, ṽ_easy passes through zero
SEEDS = tuple(range(10))

TINY = {"epochs": 2, "num_train": 20, "num_test": 40, "width": 8}
SMOKE = Scale((0, 1), 0.05, TINY, deviations=("20 training points, networks 8 wide, 2 epochs: that it runs",))
OPEN = (
    "not in the paper, settled here: 100 epochs, v = (1, 1) at first, 2,000 test points",
    "the spiral as the two-spirals generator has it: appendix E's own formula is not separable",
    "epochs and grids were chosen after pilot runs of three seeds with χ from 180 to 540 and ρ up to 4: SGD learns the "
    "spiral of χ = 180, nothing learns that of χ = 540, and training fails at ρ = 4",
)
SPIRAL = (
    "Appendix E's spiral is mis-transcribed: read literally (class −1 with z < 0, noise after the scale) the branches "
    "are mirror images that cross, and no classifier separates them; the generator it comes from has the point "
    "reflection and adds the noise before the scale.",
)
UNSAID = "the paper shows this as a figure and gives no number"
MEDIANS = "medians over the batches of every epoch, where the paper has means: ṽ_easy passes through zero"

RHO_AXIS = "ρ (0 is SGD)"
ERROR_AXIS = "hard probing error (%)"
BAND = "Means and 95% intervals over seeds."


def experiment(
    figure: str,
    *,
    minutes: float,
    deviations: tuple[str, ...],
    errata: tuple[str, ...] = (),
    seeds: tuple[int, ...] = SEEDS,
    smoke: Scale = SMOKE,
    **declared: Any,
) -> Experiment:
    """A figure on the toy: its own deviations and errata stand after those of the toy."""
    scales = {"smoke": smoke, "full": Scale(seeds, minutes, deviations=(*OPEN, *deviations))}
    return Experiment(key=f"springer2024/{figure}", scales=scales, errata=(*SPIRAL, *errata), **declared)


def arguments(
    seeds: Sequence[int],
    *,
    epochs: int = 100,
    num_train: int = 300,
    num_test: int = 2000,
    width: int = 100,
    batch_size: int = 5,
    **more: Any,
) -> dict[str, Any]:
    """The arguments that all work on the toy takes, and `more`."""
    sizes = {"num_train": num_train, "num_test": num_test, "width": width, "batch_size": batch_size}
    return {"seeds": list(seeds), "chi": CHI, "epochs": epochs, "sizes": sizes, **more}


def radius_chart(title: str, lines: Sequence[Layer], sentence: str, *, x: str = RHO_AXIS, y: str = ERROR_AXIS) -> Chart:
    """A chart of curves against ρ."""
    return Chart(title, x, y, lines, f"{sentence} {BAND}")


def radius_curve(
    measured: Measured,
    name: str,
    prefix: str,
    what: str = "hard",
    *,
    rhos: Sequence[float] = RHOS,
    dashed: bool = False,
) -> Line:
    """A quantity against ρ: its mean over seeds with the interval."""
    return charts.curve(measured, name, rhos, [f"{prefix}.{at(what, rho=rho)}" for rho in rhos], dashed=dashed)
