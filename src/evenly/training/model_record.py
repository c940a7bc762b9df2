"""`model.json` in a run's folder: the description of its network that makes it usable without the training data."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from evenly import consent, models
from evenly.data.catalogue import CATALOGUE, HUGGING_FACE, is_path
from evenly.data.input_format import InputFormat
from evenly.errors import DataError
from evenly.models.foreign import without_fetching
from evenly.recipe import Recipe
from evenly.records import Run, json_text
from evenly.training.build import Parts

NAME = "model.json"
FORMAT = 1


@dataclass(frozen=True)
class ModelRecord:
    """A network without its weights: how to build it, the format of its inputs, and the meaning of its outputs."""

    name: str
    options: Mapping[str, Any]
    classes: tuple[str, ...]
    inputs: InputFormat
    data: Mapping[str, Any] = field(default_factory=dict)

    def build(self, *, source: str | os.PathLike[str]) -> nn.Module:
        """The network with fresh weights; `source` is the folder that names its code, for the request of consent."""
        options = without_fetching(self.name, self.options)
        consent.require(self.name, options, source=source)
        return models.build_with(
            options, self.name, input_shape=self.inputs.model_shape, num_classes=len(self.classes), rng=0
        )

    def to_mapping(self) -> dict[str, Any]:
        """Plain values that `from_mapping` takes."""
        return {
            "format": FORMAT,
            "model": {"name": self.name, "options": dict(self.options)},
            "classes": list(self.classes),
            "inputs": self.inputs.record(),
            "data": dict(self.data),
        }

    @classmethod
    def from_mapping(cls, mapping: Any, *, source: str | os.PathLike[str]) -> "ModelRecord":
        """The record that `to_mapping` wrote to the file `source`."""
        try:
            if mapping["format"] != FORMAT:
                raise DataError(f"{source} was written by another version of evenly (format {mapping['format']!r}).")
            model, classes = mapping["model"], tuple(map(str, mapping["classes"]))
            inputs = InputFormat.from_record(mapping["inputs"])
            return cls(str(model["name"]), dict(model["options"]), classes, inputs, dict(mapping.get("data", {})))
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            if isinstance(error, DataError) and str(source) in str(error):
                raise
            raise DataError(f"{source} does not describe a network ({error}). Restore it, or train again.") from error


def model_record(parts: Parts) -> ModelRecord:
    """The record of the network that `parts` train."""
    recipe, splits = parts.recipe, parts.splits
    data = {
        "name": splits.name,
        "fingerprint": splits.fingerprint,
        "examples": {split: len(part) for split, part in splits.items()},
        "path": absolute_path(recipe),
    }
    inputs = InputFormat.of(splits.train, parts.augment)
    return ModelRecord(recipe.model.name, recipe.model.options, splits.classes, inputs, data)


def absolute_path(recipe: Recipe) -> str | None:
    """The absolute path of a recipe's data, for commands in another folder; None for a data set of the catalogue."""
    name = recipe.data.name
    return os.path.abspath(name) if is_path(name) and not name.startswith(HUGGING_FACE) else None


def read_record(run: Run) -> ModelRecord | None:
    """The record in a run's folder; None for a run of an older version, an error if it belongs to another run."""
    path = run.path / NAME
    try:
        record = ModelRecord.from_mapping(json_text.read(path), source=path)
    except FileNotFoundError:
        return None
    kept = run.identity
    if kept is not None and record.data.get("fingerprint") != kept["data"]["fingerprint"]:
        raise DataError(
            f"{path} is of other data than run {run.id} was trained on: its classes may mean something else. Restore "
            "it, or train again."
        )
    return record


def data_source(run: Run, recipe: Recipe) -> str:
    """Where to load a run's data: the path in its recipe, or that path relative to the folder it was started in."""
    name = recipe.data.name
    if name in CATALOGUE or name.startswith(HUGGING_FACE) or os.path.exists(name):
        return name
    record = read_record(run)
    path = record.data.get("path") if record is not None else None
    return path if isinstance(path, str) and os.path.exists(path) else name
