"""A separation as a page shows it: classes and suspects in plain numbers, and a view of the outputs in two dimensions.

Shapes: N examples, M of them shown, D outputs.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from evenly.data.class_balanced_rows import evenly_over
from evenly.resampling.health import Health
from evenly.resampling.outputs import Array
from evenly.resampling.separation import Separation
from evenly.rng import generator

MOST_SUSPECTS, MOST_POINTS = 200, 2000


def evidence(separation: Separation, logits: Array, health_: Health) -> dict[str, Any]:
    """The results of a separation, ready for JSON; unknown or undefined values are None.

    >>> from evenly.resampling import separate
    >>> from evenly.resampling.health import health
    >>> z = torch.tensor([[4.0, 0.0], [5.0, 0.0], [0.2, 0.3], [0.0, 4.0], [0.0, 5.0], [0.4, 0.1]])
    >>> separation = separate(z, [0, 0, 0, 1, 1, 1], classes=["cat", "dog"])
    >>> shown = evidence(separation, z, health(separation, z))
    >>> shown["classes"][1]["name"], shown["classes"][1]["hard"], shown["view"]["hard"]
    ('dog', 1, [False, False, True, False, False, True])
    """
    suspected, distinctness = health_.suspects, health_.distinctness
    return {
        "method": separation.method,
        "accuracy": _finite_or_none(separation.accuracy),
        "share": separation.share,
        "remarks": list(health_.sentences),
        "classes": [
            {
                "label": split.label,
                "name": separation.classes[split.label] if separation.classes else str(split.label),
                "easy": split.num_easy,
                "hard": split.num_hard,
                "loss_easy": _finite_or_none(split.loss_easy),
                "loss_hard": _finite_or_none(split.loss_hard),
                "silhouette": _finite_or_none(split.silhouette),
                "cloud": max(distinctness[split.label].clouds) if split.label in distinctness else None,
                "distinct": distinctness[split.label].distinct if split.label in distinctness else None,
            }
            for split in separation.splits
        ],
        "num_suspects": len(suspected),
        "suspects": [
            {"index": int(separation.index[row]), "label": label, "predicted": said, "loss": loss}
            for row, label, said, loss in zip(
                suspected.rows[:MOST_SUSPECTS].tolist(),
                suspected.labels.tolist(),
                suspected.predicted.tolist(),
                suspected.losses.tolist(),
                strict=False,
            )
        ],
        "view": view(separation, logits),
    }


def view(separation: Separation, logits: Array, *, most: int = MOST_POINTS) -> Mapping[str, list[Any]]:
    """The first two principal components of the outputs of at most `most` examples, spread evenly over the classes."""
    rows_M = evenly_over(separation.labels, most, rng=generator(0, "view"))
    plane_M2 = principal_plane(rows_of(logits, rows_M))
    return {
        "x": [float(f"{x:.4g}") for x in plane_M2[:, 0].tolist()],
        "y": [float(f"{y:.4g}") for y in plane_M2[:, 1].tolist()],
        "label": separation.labels[rows_M].tolist(),
        "hard": separation.hard[rows_M].tolist(),
        "index": separation.index[rows_M].tolist(),
    }


def principal_plane(x_MD: Tensor) -> Tensor:
    """The points seen along their two directions of greatest variance, M × 2.

    The sign of a direction is arbitrary: here its largest coordinate is positive, so that the same points always give
    the same picture.

    >>> principal_plane(torch.tensor([[0.0, 1.0, 5.0], [0.0, 3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    centred_MD = x_MD.double() - x_MD.double().mean(dim=0)
    _, vectors_DD = torch.linalg.eigh(centred_MD.T @ centred_MD)
    axes_D2 = vectors_DD.flip(1)[:, :2]
    largest_2 = axes_D2.gather(0, axes_D2.abs().argmax(dim=0, keepdim=True))
    plane_MK = centred_MD @ (axes_D2 * largest_2.sign())
    return torch.nn.functional.pad(plane_MK, (0, 2 - plane_MK.shape[1])) + 0.0  # no −0


def rows_of(logits: Array, rows_M: Tensor) -> Tensor:
    """Some rows of the outputs on the CPU in single precision or better, whatever holds them."""
    if isinstance(logits, Tensor):
        rows = logits.detach()[rows_M.to(logits.device)].cpu()
    else:
        rows = torch.as_tensor(logits[rows_M.numpy()])
    rows = rows[:, None] if rows.ndim == 1 else rows
    return rows if rows.dtype == torch.float64 else rows.float()


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
