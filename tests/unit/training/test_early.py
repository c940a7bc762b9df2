"""Outputs of an early run that were damaged."""

from pathlib import Path

import pytest

from evenly.errors import DataError
from evenly.recipe import Recipe, digest, to_mapping
from evenly.records import Run
from evenly.training.early import OUTPUTS, load_outputs, outputs_epoch


def test_damaged_outputs_are_a_data_error(tmp_path: Path) -> None:
    recipe = Recipe(epochs=3)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.close()
    (run.path / OUTPUTS).write_bytes(b"\x09\x00\x00\x00\x00\x00\x00\x00{")
    for read in (load_outputs, outputs_epoch):
        with pytest.raises(DataError, match="is damaged"):
            read(run)
