"""Figure 1: decision surfaces of Φ_easy and Φ_hard, trained by SGD and by LSAM."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenly.papers import charts
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Measured, Part, PartResult
from evenly.papers.springer2024.toy import UNSAID, arguments, experiment
from evenly.report.chart import Chart, Heat, Points

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.papers.springer2024.spiral_networks import SpiralNetworks

GRID = 64  # points along each side of a decision surface
SHOWN = 15  # training points of each class in a chart

CLAIMS = (
    Claim("hard", "LSAM (ρ = 2) misreads the spiral less than SGD, %", "lsam.hard < sgd.hard", note=UNSAID),
    Claim("easy", "LSAM reads the easy feature, % wrong", "lsam.easy = 0 ± 1"),
    Claim("easy of SGD", "SGD reads the easy feature, % wrong", "sgd.easy = 0 ± 1"),
    Claim("label", "LSAM learns the label perfectly, % wrong", "lsam.label = 0 ± 1"),
    Claim("label of SGD", "SGD learns the label perfectly, % wrong", "sgd.label = 0 ± 1"),
    Claim(
        "fitted",
        "so too when the threshold on Φ_hard is fitted, %",
        "lsam.hard_fitted < sgd.hard_fitted",
        corrects=True,
        note="the paper reads Φ_hard at zero; Φ's one bias serves both features, so zero need not be the best",
    ),
)


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """SGD and LSAM of ρ = 2 on the spiral of χ = 360."""
    return [Part("surfaces", decision_surfaces, arguments(seeds, rho=2.0, **size))]


def decision_surfaces(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> PartResult:
    """Φ over the plane of each feature, trained by SGD and by LSAM, and the errors of both, in percent.

    The surfaces are those of the first seed, as parts of their largest value.
    """
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy
    from evenly.papers.springer2024.spiral_probing_error import probing_errors

    toys = [Toy(seed, chi, rho=r) for r in (0.0, rho) for seed in seeds]
    networks = SpiralNetworks(toys, **sizes).train(epochs)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for what, errors in probing_errors(networks).items():
        for toy, error in zip(toys, errors, strict=True):
            values[f"{'lsam' if toy.rho else 'sgd'}.{what}"][toy.seed] = error
    train = networks.data[0].train
    inputs_N4 = train.gather(range(len(train)))
    series: dict[str, Any] = {"points": {"inputs": inputs_N4.tolist(), "labels": train.labels.tolist()}, "planes": {}}
    for name, place in (("sgd", 0), ("lsam", len(seeds))):
        for number, feature in enumerate(("easy", "hard")):
            x_N2 = inputs_N4[:, 2 * number : 2 * number + 2]
            series["planes"][f"{name} {feature}"] = _surface(networks, place, number, x_N2)
    return PartResult(dict(values), series)


def _surface(networks: "SpiralNetworks", member: int, feature: int, x_N2: "Tensor") -> dict[str, Any]:
    """Φ of one network over a square that holds the points: the axis, and a row of values for each height."""
    import torch

    reach = 1.15 * float(x_N2.abs().max())
    axis = torch.linspace(-reach, reach, GRID)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    inputs = torch.zeros(GRID * GRID, 4)
    inputs[:, 2 * feature], inputs[:, 2 * feature + 1] = columns.flatten(), rows.flatten()
    phi = networks.ensemble.features(inputs)[member, :, feature].view(GRID, GRID)
    return {"axis": _round(axis), "phi": [_round(row) for row in phi / phi.abs().max()]}


def _round(values: "Tensor") -> list[float]:
    return [round(float(value), 4) for value in values]


def chart(measured: Measured) -> list[Chart]:
    """Φ over the plane of each feature."""
    series = measured.series["surfaces"]
    inputs, labels = series["points"]["inputs"], series["points"]["labels"]
    seed = min(measured.values["sgd.easy"])
    panels = []
    for name in ("sgd", "lsam"):
        for number, feature in enumerate(("easy", "hard")):
            plane = series["planes"][f"{name} {feature}"]
            error = charts.mean(measured, f"{name}.{feature}")
            # In steps, as contours are; it also makes a small picture.
            steps = [[round(5 * value) / 5 for value in row] for row in plane["phi"]]
            heat = Heat(plane["axis"], plane["axis"], steps, "Φ / max |Φ|", diverging=True, low=-1.0, high=1.0)
            points = [_points(inputs, labels, number, label) for label in (0, 1)]
            sentence = (
                f"Φ_{feature} as {name.upper()} has trained it (seed {seed}), over the plane of that feature, with the "
                f"{SHOWN} training points of each class."
            )
            title = f"{name.upper()}: Φ_{feature}, {error:.1f}% misread"
            panels.append(Chart(title, f"{feature} feature, first", "second", [heat, *points], sentence))
    return panels


def _points(inputs: Sequence[Sequence[float]], labels: Sequence[int], number: int, label: int) -> Points:
    own = [row for row, each in zip(inputs, labels, strict=True) if each == label][:SHOWN]
    x, y = [round(row[2 * number], 3) for row in own], [round(row[2 * number + 1], 3) for row in own]
    name, colour = ("+1" if label else "−1"), "#24292F"  # by mark: every hue is lost on some part of the map
    return Points(name, x, y, colour=colour, mark="cross" if label else "dot")


EXPERIMENT = experiment(
    "fig1",
    title="Decision surfaces of Φ_easy and Φ_hard, by SGD and by LSAM (figure 1)",
    claim="SGD and LSAM both learn the label and the easy feature; only LSAM learns the spiral.",
    plan=plan,
    primary=("hard", "easy", "easy of SGD", "label", "label of SGD"),
    claims=CLAIMS,
    minutes=0.5,
    deviations=("χ = 360 and ρ = 2",),
    charts=chart,
)
