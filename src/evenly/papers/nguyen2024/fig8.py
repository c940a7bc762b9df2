"""Figure 8: how often each training example is forgotten: right at the end of one epoch and wrong at the next.

Shapes: N training examples, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Measured, PartResult
from evenly.papers.nguyen2024.comparisons import plan_of, scales
from evenly.papers.nguyen2024.recipes import Case
from evenly.report.chart import Chart, Histogram

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.records import Run

CLAIMS = (
    Claim("useful", "USEFUL: fewer examples are forgotten often", "sgd.useful.often < sgd.original.often"),
    Claim("sam", "SAM: fewer examples are forgotten often", "sam.original.often < sgd.original.often"),
    Claim("seldom", "USEFUL: more examples are forgotten once at most", "sgd.useful.seldom > sgd.original.seldom"),
)
_RECORDED = {"record_examples": True, "evaluate_every": 1}
_CASES = (Case("sgd", changes=_RECORDED), Case("sam", ascent="sam", changes=_RECORDED))


def forgetting_scores(context: Context, *, recipe: Mapping[str, Any], seed: int, name: str, **how: Any) -> PartResult:
    """Train USEFUL, and count forgotten examples: `NAME.METHOD.often` and `.seldom` are percentages of all.

    Often is in a tenth of the epochs or more, at least twice; seldom is once at most. The series hold, for 0, 1, 2, …
    times, the percentage of examples that are forgotten so often.
    """
    from evenly.papers.train_and_measure import train_useful
    from evenly.records import Run

    trained = train_useful(context, recipe=recipe, seed=seed, name=name, **how)
    values, counts = dict(trained.values), {}
    for method, number in trained.series["runs"].items():
        if method == "early":
            continue
        times_N = times_forgotten(Run.open(number, context.runs), data_root=context.data_root)
        least = max(2, recipe["epochs"] // 10)
        values[f"{name}.{method}.often"] = {seed: _percent(times_N >= least)}
        values[f"{name}.{method}.seldom"] = {seed: _percent(times_N <= 1)}
        counts[method] = [_percent(times_N == times) for times in range(int(times_N.max()) + 1)]
    return PartResult(values, {**trained.series, "forgotten": counts})


def times_forgotten(run: Run, *, data_root: str | None = None) -> Tensor:
    """For every training example, how often a run with `record_examples` forgot it."""
    from evenly.training.checkpoint import load_weights
    from evenly.training.trained_model import load_trained

    labels_N = load_trained(run, data_root=data_root).splits.train.labels.cpu()
    epochs = sorted((run.path / "examples").glob("epoch-*.safetensors"))
    return count_forgotten([load_weights(run, f"examples/{path.name}")["prediction"] for path in epochs], labels_N)


def count_forgotten(predictions: Sequence[Tensor], labels_N: Tensor) -> Tensor:
    """How often each example is predicted wrongly after it was right, one prediction per epoch.

    >>> from torch import tensor
    >>> count_forgotten([tensor([0, 0]), tensor([1, 0]), tensor([0, 1])], tensor([0, 1])).tolist()
    [1, 0]
    """
    import torch
    from torch.nn.functional import one_hot

    from evenly.diagnostics.dynamics import Dynamics

    log, index_N = Dynamics(), torch.arange(len(labels_N))
    num_classes = int(max(labels_N.max(), *(each.max() for each in predictions))) + 1
    for epoch, predicted_N in enumerate(predictions, 1):
        log.update(one_hot(predicted_N.long(), num_classes).double(), labels_N, index_N, epoch=epoch)
    return log.table()["forgotten"]


def _percent(mask_N: Tensor) -> float:
    return 100 * float(mask_N.double().mean())


def charts(measured: Measured) -> list[Chart]:
    """How many examples are forgotten how often, by SGD, SAM, and SGD on USEFUL's data."""
    shown = {"SGD": ("sgd", "original"), "SAM": ("sam", "original"), "SGD + USEFUL": ("sgd", "useful")}
    layers = []
    for label, (name, method) in shown.items():
        rows = [part["forgotten"][method] for key, part in measured.series.items() if key.rsplit(" ", 1)[0] == name]
        longest = max(map(len, rows))
        mean = [sum(row[t] if t < len(row) else 0.0 for row in rows) / len(rows) for t in range(longest)]
        layers.append(Histogram(label, [t - 0.5 for t in range(longest + 1)], mean))
    sentence = "The percentage of training examples that are forgotten 0, 1, 2, … times, averaged over seeds."
    return [Chart("Forgetting scores", "times forgotten", "examples (%)", layers, sentence, y_log=True)]


EXPERIMENT = Experiment(
    "nguyen2024/fig8",
    "Figure 8: forgetting scores",
    "With SAM and with USEFUL fewer examples are forgotten often than with SGD.",
    plan_of(*_CASES, work=forgetting_scores),
    CLAIMS,
    scales(*_CASES),
    charts,
    (
        "The paper draws all scores and names no threshold: often is here in a tenth of the epochs or more, at least "
        "twice; the figure shows all.",
    ),
    primary=("useful", "sam"),
)
