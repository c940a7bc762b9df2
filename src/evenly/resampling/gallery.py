"""The easiest and hardest examples of every class, small enough to be kept beside a run and looked at.

Shapes: N examples, M of them kept, C channels, H × W pixels, D outputs.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenly.data.formats.image_files import ImageFiles
from evenly.data.labelled import Labelled
from evenly.resampling.evidence import rows_of
from evenly.resampling.matching import positions
from evenly.resampling.outputs import Array
from evenly.resampling.separation import Separation

EACH, IN_ALL, SIDE = 16, 2000, 64  # pictures at either end of a class, pictures in all, pixels of the longer side
FIRST = 8  # numbers of a row that is no picture
MOST_EASY = 20_000  # easy examples among which the nearest is sought


def gallery(separation: Separation, logits: Array, data: Labelled, *, suspects: Tensor) -> dict[str, NDArray[Any]]:
    """For each class the examples of lowest and of highest loss, as arrays that `numpy.savez` takes.

    Sorted by class and loss: `index`, `label`, `predicted`, `loss`, whether each is `hard` and a `suspect` (one of the
    rows in `suspects`), the `probability` of the predicted class, the index and label of the `nearest` easy example by
    the outputs (−1 for none), the name of its `file` if it has one, and `pictures` (uint8, M × C × H × W, no side above
    64) if the data are images, else `text`, the beginning of each row. If the inputs are on disk, only these are read.

    >>> from evenly.resampling import separate
    >>> z = torch.tensor([[4.0, 0.0], [5.0, 0.0], [0.2, 0.3], [0.0, 4.0], [0.0, 5.0], [0.4, 0.1]])
    >>> data = Labelled(torch.arange(12.0).view(6, 2), torch.tensor([0, 0, 0, 1, 1, 1]), ("cat", "dog"))
    >>> kept = gallery(separate(z, data.labels), z, data, suspects=torch.tensor([2]))
    >>> kept["index"].tolist(), kept["suspect"].tolist(), kept["text"][0].item()
    ([1, 0, 2, 4, 3, 5], [False, False, True, False, False, False], '2 3')
    """
    rows_M = extremes(separation.labels, separation.losses)
    where_N = positions(data, separation.index, separation.labels, by_position=separation.by_position, part=True)
    where_M = where_N[rows_M]
    suspect_N = torch.zeros(len(separation), dtype=torch.bool)
    suspect_N[suspects] = True
    outputs_MD = rows_of(logits, rows_M)
    probability_M, predicted_M = predicted_class(outputs_MD)
    nearest_M = nearest_easy(separation, logits, rows_M)
    known = {
        "index": separation.index[rows_M],
        "label": separation.labels[rows_M],
        "predicted": predicted_M,
        "loss": separation.losses[rows_M],
        "hard": separation.hard[rows_M],
        "suspect": suspect_N[rows_M],
        "probability": probability_M,
        "nearest": torch.where(nearest_M >= 0, separation.index[nearest_M.clamp_min(0)], -1),
        "nearest_label": torch.where(nearest_M >= 0, separation.labels[nearest_M.clamp_min(0)], -1),
    }
    kept: dict[str, NDArray[Any]] = {name: values.numpy() for name, values in known.items()}
    if isinstance(data.inputs, ImageFiles):
        names = (data.inputs.names[row] for row in where_M.tolist())
        # Names of files need not be UTF-8; a record is.
        kept["files"] = np.array([name.encode("utf-8", "backslashreplace").decode() for name in names], dtype=np.str_)
    if len(data.shape) == 3 and data.shape[0] in (1, 3):
        return kept | {"pictures": _pictures(data, where_M).numpy()}
    return kept | {"text": np.array([_text(row) for row in data.gather(where_M)], dtype=np.str_)}


def predicted_class(outputs_MD: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of the predicted class, and that class; one output is the logit of class 1.

    >>> probability, predicted = predicted_class(torch.tensor([[0.0, 3.0], [2.0, 2.0]]))
    >>> predicted.tolist(), round(probability[0].item(), 3)
    ([1, 0], 0.953)
    """
    if outputs_MD.shape[1] == 1:
        positive_M = outputs_MD[:, 0].sigmoid()
        return torch.maximum(positive_M, 1 - positive_M), (outputs_MD[:, 0] > 0).long()
    probability_M, predicted_M = outputs_MD.softmax(dim=1).max(dim=1)
    return probability_M, predicted_M


def nearest_easy(separation: Separation, logits: Array, rows_M: Tensor) -> Tensor:
    """For each row the other easy example, of any class, with the nearest outputs; −1 where none is easy.

    >>> from evenly.resampling import separate
    >>> z = torch.tensor([[4.0, 0.0], [5.0, 0.0], [0.2, 0.3], [0.0, 4.0], [0.0, 5.0], [0.4, 0.1]])
    >>> nearest_easy(separate(z, [0, 0, 0, 1, 1, 1]), z, torch.tensor([2, 0])).tolist()
    [3, 1]
    """
    easy_E = (~separation.hard).nonzero().flatten()
    if not len(easy_E):
        return torch.full((len(rows_M),), -1)
    easy_E = easy_E[:: max(len(easy_E) // MOST_EASY, 1)]
    nearest = []
    for part in torch.split(rows_M, 256):
        distance_ME = torch.cdist(rows_of(logits, part), rows_of(logits, easy_E))
        distance_ME[part[:, None] == easy_E] = torch.inf
        nearest.append(easy_E[distance_ME.argmin(dim=1)])
    return torch.cat(nearest)


def extremes(labels_N: Tensor, losses_N: Tensor) -> Tensor:
    """The rows of lowest and highest loss of each class, sorted by class and loss; fewer per class if there are many.

    >>> extremes(torch.tensor([0, 1, 0]), torch.tensor([2.0, 5.0, 1.0])).tolist()
    [2, 0, 1]
    """
    sizes = [size for size in labels_N.bincount().tolist() if size]
    each = min(EACH, max(IN_ALL // (2 * len(sizes)), 1))
    order_N = losses_N.argsort(stable=True)
    order_N = order_N[labels_N[order_N].argsort(stable=True)]
    rows = []
    for members_K in torch.split(order_N, sizes):
        rows += [members_K[:each], members_K[max(each, len(members_K) - each) :]]
    return torch.cat(rows)


def _pictures(data: Labelled, where_M: Tensor) -> Tensor:
    """Images as bytes, with no side above `SIDE`."""
    small = []
    for part in torch.split(where_M, 256):
        x = data.gather(part).cpu()
        height, width = x.shape[2:]
        factor = SIDE / max(height, width)
        if factor < 1:
            size = [max(round(height * factor), 1), max(round(width * factor), 1)]
            shrunk = functional.interpolate(x.float(), size=size, mode="bilinear", antialias=True)
            small.append(shrunk.round().to(x.dtype) if x.dtype == torch.uint8 else shrunk.to(x.dtype))
        else:
            small.append(x)
    pictures = torch.cat(small)
    if pictures.dtype == torch.uint8:
        return pictures
    # Numbers beyond [0, 1] are rescaled to the range of a screen; others are shown as they are.
    low, high = min(float(pictures.min()), 0.0), max(float(pictures.max()), 1.0)
    return ((pictures.double() - low) / (high - low) * 255).round().to(torch.uint8)


def _text(row: Tensor) -> str:
    """The first numbers of an input, in short."""
    flat = row.flatten()
    numbers = " ".join(f"{value:.3g}" for value in flat[:FIRST].tolist())
    return f"{numbers} … ({len(flat):,} numbers)" if len(flat) > FIRST else numbers
