"""Prediction with a trained run: its network and the classes of new images, without the training data.

Shapes: N inputs, C classes.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, overload

import torch
from PIL import Image
from torch import Tensor, nn

from evenly.data.formats.class_folders import image_names
from evenly.data.formats.image_decoding import Broken
from evenly.data.input_format import InputFormat
from evenly.errors import DataError, UsageError
from evenly.progress import Bar
from evenly.records import Run, json_text
from evenly.training.evaluate import eval_mode
from evenly.training.model_record import ModelRecord, read_record
from evenly.training.recorded_recipe import recorded_recipe
from evenly.training.trained_model import data_of, kept_epochs, missing_weights_error, open_run, weights_at

CONFIG, WEIGHTS = "config.json", "model.safetensors"  # in a folder written by `evenly export --as hub`


class Prediction(NamedTuple):
    """The class of one input, and the probability that the network gives it."""

    name: str
    label: str
    probability: float

    def __repr__(self) -> str:
        return f"{self.name}: {self.label} ({self.probability:.1%})"


@dataclass(frozen=True, eq=False)
class Predictions:
    """A network's predictions for N inputs, in the order given; `skipped` are files that could not be decoded."""

    names: tuple[str, ...]
    probabilities: Tensor
    classes: tuple[str, ...]
    skipped: tuple[Broken, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, position: int) -> Prediction: ...

    @overload
    def __getitem__(self, position: slice) -> "Predictions": ...

    def __getitem__(self, position: int | slice) -> "Prediction | Predictions":
        """The prediction for one input, or the predictions for a range of them."""
        if isinstance(position, slice):
            return Predictions(self.names[position], self.probabilities[position], self.classes)
        best = int(self.probabilities[position].argmax())
        return Prediction(self.names[position], self.classes[best], float(self.probabilities[position, best]))

    def __iter__(self) -> Iterator[Prediction]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        lines = [repr(self[position]) for position in range(min(len(self), 10))]
        more = [f"… and {len(self) - 10:,} more"] if len(self) > 10 else []
        left = [f"{len(self.skipped):,} files do not decode"] if self.skipped else []
        return "\n".join(lines + more + left)

    @property
    def labels(self) -> list[str]:
        """The class of every input."""
        return [self.classes[best] for best in self.probabilities.argmax(1).tolist()]


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """The network of a run: `model` in eval mode, its `classes`, and `preprocess`, which makes inputs for it.

    `model(preprocess(image)[None])` gives logits; `predict` takes image files, folders, arrays and tensors as they are.
    """

    model: nn.Module
    classes: tuple[str, ...]
    preprocess: InputFormat
    record: ModelRecord
    run: Run | None = None

    def __repr__(self) -> str:
        whose = f"run {self.run.id}" if self.run is not None else "an export"
        shape = "×".join(map(str, self.preprocess.shape))
        return f"<network of {whose}: {self.record.name} for inputs of {shape} and {len(self.classes)} classes>"

    def predict(self, images: Any, *, batch_size: int = 64, skip_broken: bool = False) -> Predictions:
        """The class of every input, with its probability.

        Parameters
        ----------
        images
            The path of an image file, or of a folder whose images are taken wherever they lie below it; a PIL image;
            an array, tensor or data frame with one input, or with inputs along the first dimension; or a list of any of
            these.
        batch_size
            How many inputs the network sees at once.
        skip_broken
            Whether files that cannot be decoded are left out and listed as `skipped` rather than raising an error.
        """
        if not isinstance(batch_size, int) or batch_size < 1:
            raise UsageError(
                f"batch_size={batch_size!r:.60}: the network sees at least one input at once; 64 is usual."
            )
        if not isinstance(images, str | os.PathLike | Image.Image | list | tuple):
            ready = self.preprocess(images)
            ready = ready[None] if ready.ndim == len(self.preprocess.model_shape) else ready
            logits = [self.logits(part) for part in torch.split(ready, batch_size)]
            return self._predictions([str(number) for number in range(len(ready))], logits, [])
        names, pieces = _name_inputs(images)
        kept: list[str] = []
        outputs: list[Tensor] = []
        broken: list[Broken] = []
        with Bar("predicting", total=len(pieces)) as bar:
            for start in range(0, len(pieces), batch_size):
                batch = []
                for position in range(start, min(start + batch_size, len(pieces))):
                    try:
                        batch.append(self.preprocess(pieces[position]))
                        kept.append(names[position])
                    except DataError as error:
                        if not skip_broken:
                            raise
                        reason = str(error).removeprefix(f"{names[position]}: ").partition(". ")[0].rstrip(".")
                        broken.append(Broken(Path(names[position]), reason))
                    bar.advance()
                if batch:
                    outputs.append(self.logits(torch.stack(batch)))
        return self._predictions(kept, outputs, broken)

    def _predictions(self, names: list[str], logits: list[Tensor], skipped: list[Broken]) -> Predictions:
        whole = torch.cat(logits) if logits else torch.empty(0, len(self.classes))
        return Predictions(tuple(names), probabilities(whole), self.classes, tuple(skipped))

    def logits(self, inputs: Tensor) -> Tensor:
        """The network's outputs on inputs that `preprocess` made, on the CPU."""
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        with eval_mode(self.model), torch.no_grad():
            outputs: Tensor = self.model(inputs.to(device))
        return outputs.float().cpu()


def load_run(which: str | os.PathLike[str] | Run, *, runs: str | os.PathLike[str] = "runs") -> TrainedRun:
    """The network of a run, ready to use; its training data are not needed.

    `which` is a run as `train` returns it; its folder, its ID or the beginning of it (in the folder `runs`); the
    weights of one of its epochs (`runs/ID/checkpoints/epoch-0001.safetensors`); or a folder that `evenly export --as
    hub` wrote.

    >>> import tempfile
    >>> from evenly.recipe import Data, Recipe
    >>> from evenly.training.train import train
    >>> run = train(Recipe(data=Data("digits"), epochs=1), runs=tempfile.mkdtemp(), device="cpu")
    >>> trained = load_run(run.path)
    >>> trained.classes[:3], len(trained.predict(torch.zeros(5, 1, 8, 8)))
    (('0', '1', '2'), 5)
    """
    which = which.path if isinstance(which, Run) else which
    folder = Path(which)
    if (exported := exported_record(folder)) is not None:
        return _read_export(*exported)
    run, epoch = open_run(os.fspath(which), os.fspath(runs))
    kept = kept_epochs(run)
    if not kept:
        raise missing_weights_error(run)
    record = read_record(run) or _record_from_data(run)
    model = record.build(source=run.path)
    _fill(model, weights_at(run, epoch or kept[-1], last=kept[-1]), f"run {run.id}")
    return TrainedRun(model.eval(), record.classes, record.inputs, record, run)


def probabilities(logits_NC: Tensor) -> Tensor:
    """The probability of every class; a single logit is that of class 1.

    >>> probabilities(torch.zeros(1, 1)).tolist()
    [[0.5, 0.5]]
    """
    if logits_NC.shape[1] > 1:
        return logits_NC.softmax(1)
    second_N = logits_NC[:, 0].sigmoid()
    return torch.stack([1 - second_N, second_N], dim=1)


def image_files(folder: Path) -> list[Path]:
    """The images anywhere below a folder, sorted; a `DataError` where there are none."""
    names = image_names(folder, ".")
    if not names:
        raise DataError(f"{folder}: there are no images in it or in the folders below it.")
    return [folder / name for name in names]


def _name_inputs(images: Any) -> tuple[list[str], list[Any]]:
    """A name for every input, and the inputs one by one."""
    if isinstance(images, str | os.PathLike):
        path = Path(images)
        if not path.exists():
            raise DataError(f"{path} does not exist. Give an image file or a folder of images.")
        files = image_files(path) if path.is_dir() else [path]
        return [str(file) for file in files], list(files)
    if isinstance(images, list | tuple):
        pairs = [_name_inputs(image) for image in images]
        names = [name or str(number) for number, name in enumerate(name for names, _ in pairs for name in names)]
        return names, [piece for _, pieces in pairs for piece in pieces]
    return [getattr(images, "filename", "")], [images]


def _record_from_data(run: Run) -> ModelRecord:
    """The record of a run trained by an older version of evenly, reconstructed from its data."""
    from evenly.data import Augmentation

    recipe = recorded_recipe(run)
    try:
        splits = data_of(run)
    except (DataError, UsageError) as error:
        raise DataError(
            f"run {run.id} was trained by a version of evenly that did not keep the names of its classes, and its "
            f"data tell no more: {error}"
        ) from error
    inputs = InputFormat.of(splits.train, Augmentation.parse(recipe.augment, data=splits.train))
    return ModelRecord(recipe.model.name, recipe.model.options, splits.classes, inputs)


def exported_record(folder: Path) -> tuple[Path, ModelRecord] | None:
    """The file of weights and the record of their network in a folder for the Hub; None for any other folder.

    One that `evenly export --as hub` did not write is refused.
    """
    weights = folder / WEIGHTS
    if not os.path.isfile(folder / CONFIG) or not os.path.isfile(weights):
        return None
    config = json_text.read(folder / CONFIG)
    if not isinstance(config, dict) or "evenly" not in config:
        raise DataError(
            f"{folder / CONFIG} does not say how evenly builds the network: the folder is another program's. Start "
            f"from its weights with the model they belong to: --model M --set model.weights={weights}."
        )
    return weights, ModelRecord.from_mapping(config["evenly"], source=folder / CONFIG)


def _read_export(weights: Path, record: ModelRecord) -> TrainedRun:
    from evenly.models.weights import read

    model = record.build(source=weights.parent)
    _fill(model, dict(read(weights)), str(weights.parent))
    return TrainedRun(model.eval(), record.classes, record.inputs, record)


def _fill(model: nn.Module, weights: dict[str, Tensor], whose: str) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"the weights of {whose} do not fit its model: {error}. Was the code of the model changed since?"
        ) from error
