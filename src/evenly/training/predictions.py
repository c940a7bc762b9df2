"""A trained network's prediction for each example, kept with its run so that pages can show what changed.

`predictions.npz` holds, for each split but `train`, `SPLIT.index`, `SPLIT.label`, `SPLIT.predicted` and
`SPLIT.probability` (of the predicted class); and the same for the training examples whose pictures the run keeps.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.data.labelled import Labelled
from evenly.errors import DataError
from evenly.records import Run
from evenly.records.arrays import read_arrays, write_arrays
from evenly.training.evaluate import outputs
from evenly.training.evidence import EXAMPLES
from evenly.training.loop import Loop
from evenly.training.objective import predictions

PREDICTIONS = "predictions.npz"
MOST = 100_000  # larger splits are not recorded


def final_predictions(loop: Loop) -> dict[str, NDArray[Any]]:
    """The current predictions of the network, as arrays; every process must call it."""
    arrays: dict[str, NDArray[Any]] = {}
    for split, data in loop.parts.splits.items():
        if split != "train" and len(data) <= MOST:
            arrays |= _columns(split, loop.outputs(split), data)
    shown = shown_examples(loop.run)
    train = loop.parts.splits.train
    if len(shown):
        rows = torch.isin(train.index.cpu(), torch.as_tensor(shown)).nonzero().flatten()
        few = train.subset(rows.tolist())
        parts = loop.parts
        out = outputs(
            parts.model,
            few,
            augment=parts.augment,
            device=parts.world.device,
            precision=parts.recipe.precision,
            memory_format=parts.memory_format,
        )
        arrays |= _columns("train", out, few)
    return arrays


def save_predictions(run: Run, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the predictions into the run's folder, whole or not at all."""
    write_arrays(run, PREDICTIONS, arrays)


def shown_examples(run: Run) -> NDArray[Any]:
    """The indices of the training examples whose pictures a run keeps; none where it keeps no pictures."""
    path = run.file(EXAMPLES)
    if not path.is_file():
        return np.empty(0, np.int64)
    kept = read_arrays(run, EXAMPLES, advice="Remove it, and repeat the command.")
    if "index" not in kept:
        raise DataError(f"{path} is damaged: it has no array `index`. Remove it, and repeat the command.")
    return np.asarray(kept["index"])


def _columns(split: str, outputs_NC: Tensor, data: Labelled) -> dict[str, NDArray[Any]]:
    if outputs_NC.shape[1] == 1:
        positive_N = outputs_NC[:, 0].sigmoid()
        surely_N = torch.maximum(positive_N, 1 - positive_N)
    else:
        surely_N = outputs_NC.softmax(dim=1).amax(dim=1)
    return {
        f"{split}.index": data.index.cpu().numpy(),
        f"{split}.label": data.labels.cpu().numpy().astype(np.int32),
        f"{split}.predicted": predictions(outputs_NC).cpu().numpy().astype(np.int32),
        f"{split}.probability": surely_N.float().cpu().numpy().astype(np.float16),
    }
