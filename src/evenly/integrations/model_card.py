"""A model card: what a network is for, what it was trained on and how, what came of it, and what it is not good for."""

import json
from typing import Any

from evenly import __version__
from evenly.recipe import Recipe
from evenly.training.prediction import TrainedRun
from evenly.training.recorded_recipe import recorded_recipe


def model_card(trained: TrainedRun) -> str:
    """The card in the form that the Hugging Face Hub shows: YAML in front, then Markdown."""
    record, run = trained.record, trained.run
    recipe = recorded_recipe(run) if run is not None else None
    summary = run.summary() if run is not None else {}
    front = {
        "library_name": "evenly",
        "pipeline_tag": "image-classification" if trained.preprocess.is_image else "tabular-classification",
        "tags": ["evenly", "pytorch", "safetensors", record.name.replace(":", "-")],
    }
    name = record.data.get("name", "data")
    lines = ["---", *(f"{key}: {json.dumps(value)}" for key, value in front.items()), "---", ""]
    lines += [f"# {record.name} on {name}", ""]
    classes = ", ".join(f"`{each}`" for each in trained.classes)  # a name may hold a comma
    lines += [f"A network that tells {len(trained.classes)} classes apart: {classes}.", ""]
    lines += ["## Use", "", "```python", "import evenly", "", 'trained = evenly.load_run("this folder")']
    lines += ['print(trained.predict("image.jpg"))', "```", ""]
    lines += [f"Inputs: {_inputs(trained)}. Outputs: logits, in the order of the classes above.", ""]
    lines += ["## Data", "", *_data(record.data), ""]
    lines += ["## Method", "", *(_method(recipe) if recipe is not None else ["Not known."]), ""]
    lines += ["## Results", "", *_results(summary), ""]
    lines += ["## Limits", "", *_limits(trained, summary), ""]
    lines += [f"Made with evenly {__version__}" + (f", run {run.id}." if run is not None else "."), ""]
    return "\n".join(lines)


def _inputs(trained: TrainedRun) -> str:
    inputs = trained.preprocess
    shape = "×".join(map(str, inputs.model_shape))
    scale = ", scaled to [0, 1]" if inputs.is_bytes else ""
    if inputs.normalise is None:
        return f"{shape}{scale}"
    mean, std = ([round(v, 4) for v in values] for values in (inputs.normalise.mean, inputs.normalise.std))
    return f"{shape}{scale}, less the mean {mean} and divided by {std}"


def _data(data: Any) -> list[str]:
    sizes = data.get("examples")
    counts = sizes.items() if isinstance(sizes, dict) else ()
    examples = ", ".join(f"{number:,} {split}" for split, number in counts if isinstance(number, int))
    return [f"{data.get('name', 'Not known')}: {examples or 'of unknown size'} examples."]


def _method(recipe: Recipe) -> list[str]:
    optimizer, ascent = recipe.optimizer, recipe.ascent
    lines = [
        f"- {recipe.epochs} epoch{'s' * (recipe.epochs > 1)}, batches of {recipe.batch_size}, {optimizer.name} with "
        f"learning rate {optimizer.lr:g} ({recipe.schedule.kind} schedule), weight decay "
        f"{optimizer.weight_decay:g}, seed {recipe.seed}",
    ]
    if ascent.rule != "none":
        lines.append(f"- sharpness-aware: {ascent.rule}, ρ = {ascent.radius:g}")
    if recipe.resampling.method != "none":
        lines.append(
            f"- training examples chosen by `{recipe.resampling.method}`, shown {recipe.resampling.factor} times"
        )
    if recipe.augment:
        lines.append(f"- augmentation: {', '.join(recipe.augment)}")
    return lines


def _results(summary: dict[str, Any]) -> list[str]:
    summary = {name: value for name, value in summary.items() if isinstance(value, int | float)}
    splits = [name.removesuffix(".error") for name in summary if name.endswith(".error") and name.count(".") == 1]
    if not splits:
        return ["None were recorded."]
    rows = ["| split | error % | worst class or group % |", "|---|---|---|"]
    for split in splits:
        worst = [v for key, v in summary.items() if key.startswith(f"{split}.worst.")]
        rows.append(f"| {split} | {summary[f'{split}.error'] * 100:.2f} | {max(worst) * 100:.2f} |" if worst else
                    f"| {split} | {summary[f'{split}.error'] * 100:.2f} | |")  # fmt: skip
    return rows


def _limits(trained: TrainedRun, summary: dict[str, Any]) -> list[str]:
    lines = [
        "- It names one of its classes for any input, also for one that shows none of them; the probabilities are not "
        "calibrated.",
        "- The errors are those on data like the training data. On other data they are likely to be higher.",
    ]
    if not any(name.startswith(("test.", "validation.")) for name in summary):
        lines.append("- No examples were held out: nothing is known of its error on examples it was not trained on.")
    if "collapsed" in summary:
        lines.append(f"- This run {summary['collapsed']}")
    return lines
