"""The maps of figure 1 (a–c): where SGD, random perturbation and SAM diverge over batch size B and coherence σ.

One simulation serves the three panels and mistake 8. Shapes: M methods, B batch sizes, S values of σ.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenly.papers.charts import mean
from evenly.papers.experiment import Context, Measured, Part, PartResult, Scale
from evenly.report.chart import Chart, Heat, Line

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.stability.maps import StabilityMap

RATIOS = (0.1, 0.2, 0.4)  # ρ/α; at 0.5 SAM would diverge by sharpness alone, ηλ(1 + (ρ/α)λ) = 2
LARGER = 20  # batches from here on are called large
#: On this set the line of theorem 3.3 is the exact mean-square boundary.
LINES = {"criterion": "theorem 3.2", "mean_square": "theorem 3.3, exact mean square", "almost_sure": "almost sure"}
# Seen on the dark of what diverges and on the light of what does not.
_COLOURS = {"criterion": 3, "mean_square": 0, "almost_sure": 1}  # of the series of the palette
SCALES = {
    "smoke": Scale((0, 1), 0.1, {"stride": 12, "steps": 200, "repeats": 4, "each": 1}, deviations=("every 12th cell",)),
    "full": Scale(
        tuple(range(20)),
        5,
        levels=True,
        deviations=(
            "η = 0.5: the paper says only that it is below 1",
            "ρ/α = 0.1, 0.2 and 0.4, and random perturbation of size 0.1: the paper's text does not give them",
        ),
    ),
}
ALMOST_SURE = (
    "The simulation reads one run's norm: its boundary is the almost-sure one, not the mean-square one that the "
    "criteria bound (chang2025/mistake8)."
)


def plan(seeds: Sequence[int], *, stride: int = 1, steps: int = 1000, repeats: int = 10, each: int = 5) -> list[Part]:
    """Maps of all methods at once, `each` seeds in a part."""
    groups = [list(seeds[start : start + each]) for start in range(0, len(seeds), each)]
    settings = {"ratios": list(RATIOS), "stride": stride, "steps": steps, "repeats": repeats}
    return [Part(f"maps {group[0]}–{group[-1]}", simulate_maps, {"seeds": group, **settings}) for group in groups]


def simulate_maps(
    context: Context, *, seeds: Sequence[int], ratios: Sequence[float], stride: int, steps: int, repeats: int
) -> PartResult:
    """A map for each seed: which share of cells diverged, and how often each line says the same, in percent."""
    import torch

    from evenly.rng import generator
    from evenly.stability.maps import stability_map

    values: dict[str, dict[int, float]] = {}
    names = ["sgd", "random", *(f"sam{ratio:g}" for ratio in ratios)]
    maps = {
        seed: stability_map(
            rng=generator(seed, "map"),
            batches=range(1, 50, stride),
            sigmas=range(1, 51, stride),
            rho_over_alpha=ratios,
            steps=steps,
            repeats=repeats,
        )
        for seed in seeds
    }
    for seed, each in maps.items():
        for name, number in count_cells(each, names).items():
            values.setdefault(name, {})[seed] = number
    first = maps[seeds[0]]
    counts_MBS = torch.stack([each.diverged for each in maps.values()]).sum(0)
    return PartResult(
        values,
        {
            "num": len(seeds),
            "batches": list(first.batches),
            "sigmas": list(first.sigmas),
            "diverged": {name: counts_MBS[i].T.tolist() for i, name in enumerate(names)},
            "lines": {name: curves(first, i) for i, name in enumerate(names)},
        },
    )


def count_cells(cells: "StabilityMap", names: Sequence[str]) -> dict[str, float]:
    """What one map says, in percent of its cells; `.small` and `.large` are about batches below 20 and from 20 on.

    `missed` are cells above the criterion that the simulation calls stable, and `gap` those between the lines of
    theorems 3.2 and 3.3.
    """
    import torch

    lines = unstable_cells(cells)
    large_B = torch.tensor(cells.batches) >= LARGER
    values = {"random.differs": _percent(cells.diverged[0] != cells.diverged[1])}
    for i, name in enumerate(names):
        diverged_BS = cells.diverged[i]
        between_BS = lines["mean_square"][i] & ~lines["criterion"][i]
        values[f"{name}.diverged"] = _percent(diverged_BS)
        values[f"{name}.missed"] = _percent(~diverged_BS[lines["criterion"][i]])
        for size, chosen_B in (("small", ~large_B), ("large", large_B)):
            values[f"{name}.gap.{size}"] = _percent(between_BS[chosen_B])
        for line, unstable_MBS in lines.items():
            agrees_BS = unstable_MBS[i] == diverged_BS
            values[f"{name}.agrees.{line}"] = _percent(agrees_BS)
            for size, chosen_B in (("small", ~large_B), ("large", large_B)):
                values[f"{name}.agrees.{line}.{size}"] = _percent(agrees_BS[chosen_B])
    return values


def unstable_cells(cells: "StabilityMap") -> dict[str, "Tensor"]:
    """Where each of the lines says that the method diverges, M × B × S."""
    return {
        "criterion": cells.lr > cells.criterion_lr,
        "mean_square": cells.lr > cells.mean_square_lr,
        "almost_sure": cells.exponent > 0,
    }


def curves(cells: "StabilityMap", method: int) -> dict[str, list[float | None]]:
    """Each line as a curve: for every batch size the largest σ at which it says that the method diverges."""
    import torch

    sigma_S = torch.tensor(cells.sigmas, dtype=torch.float64)
    highest = {line: (unstable[method] * sigma_S).amax(1).tolist() for line, unstable in unstable_cells(cells).items()}
    return {line: [sigma or None for sigma in sigmas] for line, sigmas in highest.items()}


def map_chart(measured: Measured, method: str, title: str, *, lines: Sequence[str] = tuple(LINES)) -> Chart:
    """The share of seeds in which each cell stayed stable, and the lines that bound it."""
    first = _parts(measured)[0]
    stable = [[1 - share for share in row] for row in diverged_share(measured, method)]
    heat = Heat(first["batches"], first["sigmas"], stable, name="share of seeds that stay stable", low=0.0, high=1.0)
    layers = [
        Line(
            LINES[line],
            first["batches"],
            first["lines"][method][line],
            dashed=line == "mean_square",
            colour=_COLOURS[line],
        )
        for line in lines
    ]
    sentence = (
        f"{title} diverges in {mean(measured, f'{method}.diverged'):.1f}% of the cells, below the curves. "
        f"Cells that each line gets right, for batches below {LARGER} and from {LARGER} on: "
        + ", ".join(
            f"{LINES[line]} {mean(measured, f'{method}.agrees.{line}.small'):.1f} and "
            f"{mean(measured, f'{method}.agrees.{line}.large'):.1f}%"
            for line in lines
        )
        + "."
    )
    return Chart(title, "batch size B", "coherence σ", [heat, *layers], sentence)


def boundary_chart(measured: Measured, methods: Mapping[str, str], title: str) -> Chart:
    """The simulated boundary of each method: for every batch size the largest σ at which most seeds diverge."""
    batches = _parts(measured)[0]["batches"]
    lines = [
        Line(
            label,
            batches,
            boundary(measured, method),
            dashed=method == "random",
            colour=2 if method == "random" else number,
        )
        for number, (label, method) in enumerate(methods.items())
    ]
    shares = ", ".join(
        f"{mean(measured, f'{method}.diverged'):.1f}% of the cells with {label}" for label, method in methods.items()
    )
    return Chart(title, "batch size B", "coherence σ", lines, f"Diverged, below the curves: {shares}.")


def boundary(measured: Measured, method: str) -> list[float | None]:
    """For every batch size the largest σ at which most seeds diverge; None where they do at no σ."""
    first = _parts(measured)[0]
    rows = zip(first["sigmas"], diverged_share(measured, method), strict=True)
    unstable = [(sigma, [share > 0.5 for share in row]) for sigma, row in rows]
    return [
        max((sigma for sigma, row in unstable if row[place]), default=None) for place in range(len(first["batches"]))
    ]


def diverged_share(measured: Measured, method: str) -> list[list[float]]:
    """The share of seeds in which each cell diverged: a row for each σ, a column for each batch size."""
    parts = _parts(measured)
    num = sum(part["num"] for part in parts)
    tables = [part["diverged"][method] for part in parts]
    return [[sum(cells) / num for cells in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]


def _parts(measured: Measured) -> list[Any]:
    return list(measured.series.values())


def _percent(cells: "Tensor") -> float:
    return 100 * float(cells.double().mean()) if cells.numel() else 0.0
