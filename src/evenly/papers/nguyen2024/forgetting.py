"""Figure 8: how often each training example is forgotten, right at the end of one epoch and wrong at that of a later.

Shapes: N training examples, C classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evenly.diagnostics.dynamics import Dynamics
from evenly.papers.experiment import Context, Found
from evenly.papers.learning import usefully
from evenly.records import Run
from evenly.training.checkpoint import load_weights
from evenly.training.trained_model import load_trained


def forgotten(context: Context, *, recipe: Mapping[str, Any], seed: int, name: str, **how: Any) -> Found:
    """Train as `learning.usefully` does, and count: `NAME.METHOD.often` and `.seldom` are percentages of examples.

    Often is in a tenth of the epochs or more, at least twice; seldom is once at most. The series hold, for 0, 1, 2, …
    times, the percentage of examples that are forgotten so often.
    """
    found = usefully(context, recipe=recipe, seed=seed, name=name, **how)
    values, counts = dict(found.values), {}
    for method, number in found.series["runs"].items():
        if method == "early":
            continue
        times_N = times_forgotten(Run.open(number, context.runs), data_root=context.data_root)
        least = max(2, recipe["epochs"] // 10)
        values[f"{name}.{method}.often"] = {seed: _percent(times_N >= least)}
        values[f"{name}.{method}.seldom"] = {seed: _percent(times_N <= 1)}
        counts[method] = [_percent(times_N == times) for times in range(int(times_N.max()) + 1)]
    return Found(values, {**found.series, "forgotten": counts})


def times_forgotten(run: Run, *, data_root: str | None = None) -> Tensor:
    """For every training example, how often a run with `record_examples` forgot it."""
    labels_N = load_trained(run, data_root=data_root).splits.train.labels.cpu()
    epochs = sorted((run.path / "examples").glob("epoch-*.safetensors"))
    return counted([load_weights(run, f"examples/{path.name}")["prediction"] for path in epochs], labels_N)


def counted(predictions: Sequence[Tensor], labels_N: Tensor) -> Tensor:
    """How often each example is predicted wrongly after it was right, one prediction per epoch.

    >>> counted([torch.tensor([0, 0]), torch.tensor([1, 0]), torch.tensor([0, 1])], torch.tensor([0, 1])).tolist()
    [1, 0]
    """
    log, index_N = Dynamics(), torch.arange(len(labels_N))
    num_classes = int(max(labels_N.max(), *(each.max() for each in predictions))) + 1
    for epoch, predicted_N in enumerate(predictions, 1):
        log.update(one_hot(predicted_N.long(), num_classes).double(), labels_N, index_N, epoch=epoch)
    return log.table()["forgotten"]


def _percent(mask_N: Tensor) -> float:
    return 100 * float(mask_N.double().mean())
