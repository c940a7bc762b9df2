"""The files of a separation in a run's folder, from which a page can be drawn without the data and without torch.

`separation.csv` has a row per example, `separation.json` the results for classes, suspects and the moment, and
`examples.npz` pictures of the easiest and hardest examples of each class.
"""

from typing import Any

from evenly.data import Labelled
from evenly.records import Run
from evenly.records.arrays import write_arrays
from evenly.resampling import Separation
from evenly.resampling.evidence import evidence
from evenly.resampling.gallery import gallery
from evenly.resampling.health import Health, health
from evenly.resampling.storage import write_rows
from evenly.training.early import errors_from_chance, load_outputs, outputs_epoch

EVIDENCE, EXAMPLES = "separation.json", "examples.npz"


def write_evidence(
    run: Run, separation: Separation, *, early: Run, data: Labelled, health_: Health | None = None
) -> Health:
    """Write the separation of the outputs of `early` into `run`, which may be the same run; return its health."""
    logits = load_outputs(early)["logits"]
    health_ = health_ or health(separation, logits)
    with run.replacing("separation.csv", "w") as file:
        write_rows(separation, file)
    run.write_json(EVIDENCE, {**evidence(separation, logits, health_), **moment_record(early, data)})
    write_arrays(run, EXAMPLES, gallery(separation, logits, data, suspects=health_.suspects.rows))
    return health_


def moment_record(early: Run, data: Labelled) -> dict[str, Any]:
    """When an early run was separated, and the error curve, from chance on, that decided it."""
    epoch = outputs_epoch(early)
    errors = errors_from_chance(early.metrics(), num_classes=data.num_classes)
    return {
        "early": early.id,
        "epoch": epoch,
        "chosen_epoch": epoch,
        "rule_fired": early.summary().get("rule_fired", True),
        "early_curve": [{"epoch": number, "error": error} for number, error in enumerate(errors)],
    }
