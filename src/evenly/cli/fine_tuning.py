"""`--from RUN`: settings that start training from the weights of a run, with the model of that run."""

import json
from pathlib import Path

from evenly.errors import UsageError


def starting_from(which: str, model: str | None) -> list[str]:
    """The settings to start from run `which`, a folder or an ID in `runs`; `model` is the user's choice, if any.

    The recipe then holds the absolute path of the weights, and the run's identity a digest of their content.
    """
    from evenly import consent
    from evenly.recipe import from_record
    from evenly.records import Run

    run = Run.open(which)
    weights = run.path.resolve() / "weights.safetensors"
    if not weights.is_file():
        raise UsageError(f"--from {which}: run {run.id} is {run.state} and has kept no weights yet.")
    made = from_record(run.recipe).model
    name, options = made.name, dict(made.options)
    consent.require(name, options, source=run.path)  # the folder may be a stranger's
    if model is not None and model != name:
        raise UsageError(
            f"--from {which} gives the weights of a {name}, which do not fit a {model}. Leave --model out, or give "
            f"--model {name}."
        )
    return [f"model.name={json.dumps(name)}", *_options(options), f"model.weights={json.dumps(str(Path(weights)))}"]


def _options(options: dict[str, object]) -> list[str]:
    return [f"model.options.{name}={json.dumps(value)}" for name, value in options.items()]
