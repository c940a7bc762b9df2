"""A trained run, loaded: its model with the weights of any kept epoch, and its data as the model sees them."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from evenly import consent, models
from evenly.data import Augmentation, Labelled, Splits
from evenly.errors import DataError, EvenlyError, UsageError
from evenly.models.foreign import without_fetching
from evenly.recipe import Recipe
from evenly.records import Run
from evenly.records.identity import check_data
from evenly.rng import generator
from evenly.training.build import augmented_shape, load_data
from evenly.training.checkpoint import kept_weights, load_weights
from evenly.training.model_record import data_source
from evenly.training.recorded_recipe import recorded_recipe

WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class TrainedModel:
    """A run's recipe, its model in eval mode, and its splits with the run's normalisation applied."""

    recipe: Recipe
    model: nn.Module
    splits: Splits
    epoch: int


def open_run(which: str, root: str = "runs") -> tuple[Run, int | None]:
    """The run that `which` names, and its epoch; None means the last.

    `which` is an argument of `Run.open`, or the path of a run's weights: RUN/weights.safetensors or
    RUN/checkpoints/epoch-0001.safetensors.

    >>> open_run("model.safetensors")
    Traceback (most recent call last):
    evenly.errors.UsageError: model.safetensors is not the weights file of a run...
    """
    path = Path(which)
    if path.suffix != ".safetensors":
        return Run.open(which, root), None
    if path.name == WEIGHTS and (path.parent / "recipe.yaml").is_file():
        folder, epoch = path.parent, None
    elif (kept := re.fullmatch(r"epoch-(\d+)", path.stem)) and (path.parent.parent / "recipe.yaml").is_file():
        folder, epoch = path.parent.parent, int(kept[1])
    else:
        raise UsageError(
            f"{which} is not the weights file of a run: expected runs/ID/weights.safetensors or "
            "runs/ID/checkpoints/epoch-0001.safetensors. For weights of your own call evenly.measure(model, data)."
        )
    if not path.is_file():
        raise UsageError(f"{which} does not exist. `evenly measure {folder}` measures the last epoch that was kept.")
    return Run.open(folder), epoch


def kept_epochs(run: Run) -> list[int]:
    """The epochs whose weights a run has kept, including the last one when it is done."""
    names = (path.stem for path in (run.path / "checkpoints").glob("epoch-*.safetensors"))
    kept = [int(known[1]) for name in names if (known := re.fullmatch(r"epoch-(\d+)", name))]
    if (run.path / WEIGHTS).exists():
        # From the summary, since the last line of metrics may be lost.
        ended = [run.summary()] if "epoch" in run.summary() else run.metrics()[-1:]
        kept += [line["epoch"] for line in ended if isinstance(line.get("epoch"), int)]
    return sorted(set(kept))


def load_trained(
    run: Run, *, epoch: int | None = None, data_root: str | None = None, splits: Splits | None = None
) -> TrainedModel:
    """The model of a run after `epoch`, the last by default, and its data, where `splits` are not them already."""
    kept = kept_epochs(run)
    if not kept:
        raise missing_weights_error(run)
    epoch = kept[-1] if epoch is None else epoch
    if epoch not in kept:
        raise UsageError(
            f"run {run.id} has not kept the weights of epoch {epoch}; it has those of {', '.join(map(str, kept))}. "
            f"Train with --set keep_epochs=[{epoch}] to keep them."
        )
    recipe = recorded_recipe(run)
    options = without_fetching(recipe.model.name, recipe.model.options)
    consent.require(recipe.model.name, options, source=run.path)  # the folder may be a stranger's
    if splits is None:
        splits = data_of(run, data_root=data_root)
    else:
        check_data(run.path, splits.identity())
    augment = Augmentation.parse(recipe.augment, data=splits.train)
    model = models.build_with(
        options,
        recipe.model.name,
        input_shape=augmented_shape(splits.train.shape, augment),
        num_classes=splits.num_classes,
        rng=generator(recipe.seed, "init"),
    )
    try:
        model.load_state_dict(weights_at(run, epoch, last=kept[-1]))
    except RuntimeError as error:
        raise DataError(
            f"the weights of run {run.id} do not fit its model: {error}. Was the code of the model changed since?"
        ) from error
    return TrainedModel(recipe, model.eval(), evaluation_splits(splits, augment), epoch)


def missing_weights_error(run: Run) -> EvenlyError:
    """The error for a run without its last weights: it is not done yet, or something removed them."""
    if run.state == "done":
        return DataError(
            f"run {run.id} is done, but its {WEIGHTS} is missing. Restore it, or remove {run.path} and train again."
        )
    return UsageError(f"run {run.id} is {run.state} and has kept no weights yet. Let `evenly train` finish it.")


def data_of(run: Run, *, data_root: str | None = None) -> Splits:
    """The data that a run was trained on, from any working directory; refused if they have changed since."""
    recipe = recorded_recipe(run)
    recipe = replace(recipe, data=replace(recipe.data, name=data_source(run, recipe)))
    splits = load_data(recipe, data_root=data_root, remark=False)  # training has remarked on them
    check_data(run.path, splits.identity())
    return splits


def evaluation_splits(splits: Splits, augment: Augmentation) -> Splits:
    """The splits as the model sees them in evaluation: resized and normalised where the recipe says so."""
    still = augment.evaluation
    if not still.transforms and still.normalise is None:
        return splits

    def transform(part: Labelled) -> Labelled:
        raw = part.in_memory()
        pieces = []
        for start in range(0, len(part), 512):
            where = range(start, min(start + 512, len(part)))
            pieces.append(still(raw.gather(where), seed=0, epoch=0, index=part.index[where.start : where.stop]))
        return replace(part, inputs=torch.cat(pieces))

    return Splits(splits.name, {split: transform(part) for split, part in splits.items()}, drawn_from=splits.drawn_from)


def weights_at(run: Run, epoch: int, *, last: int) -> dict[str, Tensor]:
    """The weights that a run kept after `epoch`; `last` is the last epoch it kept.

    After the epoch at which a run is done they are its final ones, in which the last layer may be fitted anew.
    """
    name = kept_weights(epoch)
    is_final = run.summary().get("epoch") == epoch or (epoch == last and not (run.path / name).exists())
    return load_weights(run, WEIGHTS if is_final and (run.path / WEIGHTS).exists() else name)
