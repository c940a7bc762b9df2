"""A small network learns parity, and its curvatures are read every epoch: the runs of table 1 and figures 2 to 4.

Shapes: K members, N examples, D inputs, M hidden units, T epochs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled
from evenly.data.toy.parity import parity
from evenly.models import build
from evenly.papers.chang2025 import contrastive
from evenly.papers.chang2025.curvatures import QUANTITIES, curvatures
from evenly.papers.experiment import Context, PartResult
from evenly.rng import generator
from evenly.training.ensemble import Ensemble

BATCH = 10
MEANS = ("sigma_printed", "sigma", "rank", "lambda_max", "trace", "largest", "lambda_max_s_printed")  # over the epochs
Tracks = Mapping[str, Tensor]


def train_methods(
    context: Context,
    *,
    seeds: Sequence[int],
    lr: float,
    methods: Sequence[Sequence[Any]],
    dim: int = 15,
    width: int = 10,
    num: int = 50,
    epochs: int = 50,
) -> PartResult:
    """Every method with every seed, from the same start on the same data, on the loss (f − y)²."""
    members = [(str(name), float(rho), seed) for name, rho in methods for seed in seeds]
    data = {seed: draw_examples(seed, num=num, dim=dim) for seed in seeds}
    ensemble = Ensemble(
        [initial_network(seed, dim=dim, width=width) for *_, seed in members],
        [data[seed] for *_, seed in members],
        lr=2 * lr,  # (f − y)² at lr is ½(f − y)² at twice lr
        rule="sam",
        rho=[rho for _, rho, _ in members],
        batch_size=BATCH,
        seeds=[seed for *_, seed in members],
        loss="squared",
    )
    x_KND = torch.stack([data[seed].gather(range(num)).double() for *_, seed in members])
    steps = -(-num // BATCH)
    seen = ensemble.run(
        steps * epochs,
        measure=lambda weights, _: curvatures(weights, x_KND),
        at=range(0, steps * epochs + 1, steps),
    )
    return summarise([(name, seed) for name, _, seed in members], {name: seen[name] for name in QUANTITIES})


def train_with_contrast(
    context: Context,
    *,
    seeds: Sequence[int],
    lr: float,
    weights: Sequence[float],
    dim: int = 15,
    width: int = 10,
    num: int = 50,
    epochs: int = 50,
) -> PartResult:
    """SGD with a contrastive term of each weight on the hidden units."""
    members = [(f"contrast{weight:g}", weight, seed) for weight in weights for seed in seeds]
    data = {seed: draw_examples(seed, num=num, dim=dim) for seed in seeds}
    models = [initial_network(seed, dim=dim, width=width) for *_, seed in members]
    x_KND = torch.stack([data[seed].gather(range(num)).double() for *_, seed in members])
    tracks = contrastive.run(
        {name: torch.stack([dict(m.named_parameters())[name].detach() for m in models]) for name in contrastive.NAMES},
        x_KND,
        weight_K=torch.tensor([weight for _, weight, _ in members], dtype=torch.float64),
        seeds=[seed for *_, seed in members],
        lr=lr,
        batch=BATCH,
        epochs=epochs,
        measure=lambda now: curvatures(now, x_KND),
    )
    return summarise([(name, seed) for name, _, seed in members], tracks)


def draw_examples(seed: int, *, num: int, dim: int) -> Labelled:
    """The training examples of a seed."""
    return parity(rng=generator(seed, "data"), num_train=num, num_test=0, dim=dim).train


def initial_network(seed: int, *, dim: int, width: int) -> nn.Module:
    """The network that a seed begins with, in double precision."""
    rng = generator(seed, "init")
    return build("relu2", input_shape=(dim,), num_classes=2, rng=rng, width=width).double()


def summarise(members: Sequence[tuple[str, int]], tracks: Tracks) -> PartResult:
    """Numbers at the end and as a mean over the epochs, the line through them, and the tracks to be drawn.

    A run that blew up or died (no unit active) keeps what it last had, 0 if that was never a number, and is counted:
    `NAME.lost` is 100.
    """
    kept, lost_K = _until_lost(tracks)
    values: dict[str, dict[int, float]] = {}
    curves: dict[str, dict[str, list[list[float]]]] = {}
    for k, (name, seed) in enumerate(members):
        numbers = {"lost": 100.0 * float(lost_K[k])}
        for quantity, track_TK in kept.items():
            track_T = track_TK[:, k]
            numbers[quantity] = float(track_T[-1])
            if quantity in MEANS:
                numbers[f"mean.{quantity}"] = float(track_T[1:].mean())
            runs = curves.setdefault(name, {}).setdefault(quantity, [])
            runs.append([float(f"{v:.4g}") for v in track_T.tolist()])
        numbers["r2"] = line_fit(kept["lambda_max_s_printed"][1:, k], kept["largest"][1:, k])
        for quantity, number in numbers.items():
            values.setdefault(f"{name}.{quantity}", {})[seed] = float(f"{number:.6g}")  # a row is read by people too
    first = members[0][0]
    for name, _ in members:
        for which in ("sigma", "sigma_printed"):
            own, other = values[f"{name}.{which}"], values[f"{first}.{which}"]
            values[f"{name}.{which}_kept"] = {seed: own[seed] / (other[seed] or 1.0) for seed in own}
    return PartResult(values, {"curves": curves})


def line_fit(x_T: Tensor, y_T: Tensor) -> float:
    """R² of the least-squares line through the points; 0 where nothing varies.

    >>> line_fit(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, 3.0, 5.0]))
    1.0
    """
    # Over the largest, so that no square overflows.
    dx, dy = (each / (each.abs().max() or 1.0) for each in (x_T - x_T.mean(), y_T - y_T.mean()))
    spread = float(dx.square().sum() * dy.square().sum())
    return float((dx * dy).sum()) ** 2 / spread if spread > 0 else 0.0


def _until_lost(tracks: Tracks) -> tuple[dict[str, Tensor], Tensor]:
    """The tracks, each standing still from the moment at which its run was lost; and which runs were."""
    finite_TK = torch.stack([track.isfinite() for track in tracks.values()]).all(0) & (tracks["largest"] > 0)
    alive_TK = finite_TK.long().cumprod(0).bool()
    last_K = (alive_TK.sum(0) - 1).clamp_min(0)
    place_TK = torch.minimum(torch.arange(len(alive_TK))[:, None], last_K)
    kept = {name: track.gather(0, place_TK).nan_to_num(0.0, 0.0, 0.0) for name, track in tracks.items()}
    return kept, ~alive_TK[-1]
