"""`--from RUN`: settings that start training from the weights of a run, or of its export, with its model."""

import json
from pathlib import Path

from evenly.errors import UsageError


def fine_tuning_settings(which: str, model: str | None, *, runs: str) -> list[str]:
    """The settings for a start from `which`: a run's folder or ID, or a folder that `evenly export --as hub` wrote.

    `model` is what the person asked for, if anything; an ID is looked up in `runs`.

    The recipe then holds the absolute path of the weights, and the run's identity a digest of their content.
    """
    from evenly import consent
    from evenly.models.foreign import without_fetching
    from evenly.records import Run
    from evenly.training.checkpoint import load_weights
    from evenly.training.prediction import exported_record
    from evenly.training.recorded_recipe import recorded_recipe
    from evenly.training.trained_model import WEIGHTS, missing_weights_error

    if (exported := exported_record(Path(which))) is not None:
        weights, record = exported
        name, options = record.name, dict(record.options)
    else:
        run = Run.open(which, runs)
        weights = run.path / WEIGHTS
        if not weights.exists():
            raise missing_weights_error(run)
        load_weights(run, WEIGHTS)  # which refuses those of another run
        made = recorded_recipe(run).model
        name, options = made.name, dict(made.options)
    options = without_fetching(name, options)  # the weights are these
    consent.require(name, options, source=weights.parent)  # the folder may be a stranger's
    if model is not None and model != name:
        raise UsageError(
            f"--from {which} gives the weights of a {name}, which do not fit a {model}. Leave --model out, or give "
            f"--model {name}."
        )
    return [f"model.name={json.dumps(name)}", *_options(options), f"model.weights={json.dumps(str(weights.resolve()))}"]


def _options(options: dict[str, object]) -> list[str]:
    return [f"model.options.{name}={json.dumps(value)}" for name, value in options.items()]
