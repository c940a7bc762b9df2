"""`--from RUN`: settings that start training from the weights of a run, or of its export, with its model."""

import json
from pathlib import Path

from evenly.errors import UsageError


def starting_from(which: str, model: str | None) -> list[str]:
    """The settings for a start from `which`: a run's folder or ID, or a folder that `evenly export --as hub` wrote.

    `model` is what the person asked for, if anything.

    The recipe then holds the absolute path of the weights, and the run's identity a digest of their content.
    """
    from evenly import consent
    from evenly.models.foreign import without_fetching
    from evenly.recipe import from_record
    from evenly.records import Run
    from evenly.training.prediction import exported_record

    if (exported := exported_record(Path(which))) is not None:
        weights, record = exported
        name, options = record.name, dict(record.options)
    else:
        run = Run.open(which)
        weights = run.path / "weights.safetensors"
        if not weights.is_file():
            raise UsageError(f"--from {which}: run {run.id} is {run.state} and has kept no weights yet.")
        made = from_record(run.recipe).model
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
