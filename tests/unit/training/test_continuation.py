"""Plain training that begins where an early run ended has the bits of plain training from scratch."""

from dataclasses import replace
from pathlib import Path

import pytest

from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Schedule, Until
from evenly.records import Run
from evenly.training.continuation import is_beginning
from evenly.training.early import early_recipe
from evenly.training.loop import END
from evenly.training.train import train, train_from

SMALL = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 32}),  # with dropout
    optimizer=Optimizer(lr=0.05),
    schedule=Schedule("cosine"),
    epochs=4,
    batch_size=64,
)


def early_run(recipe: Recipe, runs: Path, until: Until = Until("epoch", 2)) -> Run:  # noqa: B008  # frozen
    return train_from(None, early_recipe(recipe, until), runs=runs, device="cpu", keep_end=True)


def weights(run: Run) -> bytes:
    # The seal in the header carries the run's ID, which is equal for equal runs.
    return (run.path / "weights.safetensors").read_bytes()


@pytest.mark.parametrize(
    "recipe",
    [
        SMALL,
        replace(SMALL, ascent=Ascent("sam"), evaluate_every=3),
        replace(SMALL, augment=("pad-crop:1", "noise:0.1"), epochs=3, batch_size=128, drop_last=True),
        replace(SMALL, optimizer=Optimizer("adamw", lr=0.01), ascent=Ascent("looksam")),
    ],
    ids=["sgd", "sam", "augmented", "adamw"],
)
def test_beginning_where_the_early_run_ended_gives_the_bits_of_training_from_scratch(
    recipe: Recipe, tmp_path: Path
) -> None:
    scratch = train(recipe, runs=tmp_path / "scratch", device="cpu")
    early = early_run(recipe, tmp_path / "shared")
    onward = train_from(early, recipe, runs=tmp_path / "shared", device="cpu")
    assert onward.id == scratch.id
    assert onward.metrics() == scratch.metrics()
    assert weights(onward) == weights(scratch)
    same = {name: value for name, value in scratch.summary().items() if name != "seconds"}
    assert {name: value for name, value in onward.summary().items() if name != "seconds"} == same


def test_the_shared_epochs_are_trained_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="evenly")
    early = early_run(SMALL, tmp_path)
    train_from(early, SMALL, runs=tmp_path, device="cpu")
    assert f"begins with the 2 epochs of run {early.id}" in caplog.text


@pytest.mark.parametrize(
    "other",
    [
        replace(SMALL, seed=1),
        replace(SMALL, optimizer=Optimizer(lr=0.1)),
        replace(SMALL, epochs=5),
        replace(SMALL, keep_epochs=(1,)),
        replace(SMALL, record_examples=True),
    ],
    ids=["seed", "lr", "epochs", "keeps an epoch", "records examples"],
)
def test_another_recipe_begins_from_scratch(other: Recipe, tmp_path: Path) -> None:
    from evenly.training.build import load_data
    from evenly.training.identify import identify

    early = early_run(SMALL, tmp_path)
    assert is_beginning(early, SMALL, identify(SMALL, load_data(SMALL)))
    assert not is_beginning(early, other, identify(other, load_data(other)))


def test_a_damaged_end_is_an_error_and_a_missing_one_is_training_from_scratch(tmp_path: Path) -> None:
    from evenly.errors import DataError

    early = early_run(SMALL, tmp_path)
    whole = (early.path / END).read_bytes()
    (early.path / END).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DataError, match="Remove it"):
        train_from(early, SMALL, runs=tmp_path, device="cpu")
    (early.path / END).unlink()
    assert train_from(early, SMALL, runs=tmp_path, device="cpu").state == "done"
