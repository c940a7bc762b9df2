"""Whether a separation is reproducible: how well separations of other seeds and epochs agree on the hard examples."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from evenly import rng
from evenly.data import Labelled
from evenly.records import Run
from evenly.resampling import Agreement, Separation, load, separate
from evenly.training.evaluate import outputs
from evenly.training.trained_model import kept_epochs, load_trained


def mean_agreement(runs: Sequence[Run]) -> dict[str, Any] | None:
    """The mean agreement over all pairs of the runs' separations; None unless two or more are of the same data.

    Toy data depend on the seed, so their examples cannot be matched between seeds.
    """
    prints = {(run.stamps() or [{}])[-1].get("data") for run in runs}
    if len(runs) < 2 or len(prints) > 1:
        return None
    separations = [load(run.path / "separation.csv") for run in runs]
    return {"separations": len(runs), **_mean(one.agreement(two) for one, two in combinations(separations, 2))}


def separations_at(
    run: Run,
    data: Labelled,
    *,
    epochs: Iterable[int] | None = None,
    data_root: str | None = None,
    device: str = "cpu",
    **way: Any,
) -> dict[int, Separation]:
    """The separations that the kept weights of a run give, by epoch: one forward pass over the data for each.

    `way` are the arguments `method` and `among` of `separate`.
    """
    by_epoch = {}
    for epoch in kept_epochs(run) if epochs is None else epochs:
        then = load_trained(run, epoch=epoch, data_root=data_root)
        logits = outputs(then.model.to(device), then.splits.train, device=device)
        stream = rng.generator(0, "separate", run.id)
        # No accuracy limit: these separations are only compared, never trained on.
        by_epoch[epoch] = separate(
            logits, data.labels, index=data.index, classes=data.classes, rng=stream, max_accuracy=1, **way
        )
    return by_epoch


def _mean(agreements: Iterable[Agreement]) -> dict[str, Any]:
    values = list(agreements)
    names = Agreement._fields
    return {"pairs": len(values), **{name: sum(getattr(a, name) for a in values) / len(values) for name in names}}
