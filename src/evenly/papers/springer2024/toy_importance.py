"""Importance at the real and the phantom weights of the toy: the work of figures 5, 6, 8 and 9.

Shapes: K networks, N examples, B batches, 2 features (easy, hard).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.experiment import Context, Part, PartResult, Scale
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import OPEN, RHO, SEEDS, SMOKE, TINY, arguments

EPOCHS = (5, 20, 50, 100)
EARLY = EPOCHS[1]  # "(incompletely) trained"
SCALES = {
    # At smoke the networks are looked at after the same epochs, of fewer examples: claims name these epochs.
    "smoke": Scale(
        (0, 1), 0.05, {name: TINY[name] for name in ("num_train", "num_test", "width")}, deviations=SMOKE.deviations
    ),
    "full": Scale(
        SEEDS,
        0.6,
        deviations=(
            *OPEN,
            f"χ = 360, ρ = 1, epochs {', '.join(map(str, EPOCHS))}",
            "phantoms of batches of 5, as in training",
        ),
    ),
}


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """SGD and LSAM of ρ = 1, looked at after four epochs."""
    given = arguments(seeds, rho=RHO, at_epochs=list(EPOCHS), **size)
    del given["epochs"]
    return [Part("weights", toy_importance, given)]


def toy_importance(
    context: Context,
    *,
    seeds: Sequence[int],
    chi: float,
    rho: float,
    at_epochs: Sequence[int],
    sizes: Mapping[str, int],
) -> PartResult:
    """Importance at the real and at the phantom weights of networks trained by SGD and by LSAM, after some epochs.

    `epoch=E.lsam.phantom_gini` and so on, as `spread` names them, and of `sgd`. Both networks have the phantom of the
    same ρ. The series holds Lorenz curves (means over seeds) and maps of median importance (all seeds together).
    """
    from evenly.papers.springer2024.importance_spread import importance_map, lorenz_points, spread
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy, phantom_heads, phantom_importance

    toys = [Toy(seed, chi, rho=r) for r in (0.0, rho) for seed in seeds]
    networks = SpiralNetworks(toys, **sizes)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    series: dict[str, Any] = {"epochs": list(at_epochs)}
    for epoch in at_epochs:
        readout = networks.train(epoch).readout()
        v_KB2 = phantom_heads(readout, rho=[rho] * len(toys), group=networks.batch_size)
        weights = {"real": readout.importance, "phantom": phantom_importance(readout, v_KB2, group=networks.batch_size)}
        parts_KN2 = readout.contributions
        for name, places in (("sgd", range(len(seeds))), ("lsam", range(len(seeds), len(toys)))):
            prefix = f"{at(epoch=epoch)}.{name}"
            for kind, weights_KN in weights.items():
                for place in places:
                    seed, w_N = toys[place].seed, weights_KN[place].double()
                    for what, number in spread(w_N, parts_KN2[place], kind=kind).items():
                        values[f"{prefix}.{what}"][seed] = number
                own = slice(places.start, places.stop)
                series[f"{prefix}.{kind}"] = {
                    "lorenz": lorenz_points(weights_KN[own]),
                    "map": importance_map(weights_KN[own].flatten(), parts_KN2[own].flatten(0, 1)),
                }
    return PartResult(dict(values), series)
