"""What cannot fit into memory is refused before it is allocated, with the value and the memory that it needs."""

from pathlib import Path

import pytest
from PIL import Image

from evenly import memory
from evenly.data import load
from evenly.errors import SetupError
from evenly.recipe import Data, Model, Recipe
from evenly.training.train import train


def test_what_fits_is_not_refused() -> None:
    memory.require(1, "one byte", "Give less.")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("patches", {"num_train": 10**12}, r"num_train = 1,000,000,000,000 examples of 150 numbers need 600 TB"),
        ("patches", {"num_test": 10, "dim": 10**12}, r"num_train = 10,000 examples of 3,000,000,000,000 numbers"),
        ("parity", {"num_test": 10**12}, r"num_test = 1,000,000,000,000 examples of 100 numbers need 400 TB"),
        ("spirals", {"num_train": 10**30}, r"examples of 4 numbers need 16,000,000,000,000,000,000 TB"),
    ],
)
def test_toy_data_beyond_memory_are_refused(name: str, options: dict[str, int], said: str) -> None:
    with pytest.raises(SetupError, match=said + r".* free\. Give fewer"):
        load(name, **options)


@pytest.mark.parametrize("word", ["resize:2000000", "resized-crop:2000000"])
def test_a_size_of_images_beyond_memory_is_refused(word: str, tmp_path: Path) -> None:
    recipe = Recipe(data=Data("digits"), model=Model("mlp"), augment=(word,), epochs=1)
    with pytest.raises(SetupError, match=r"An image of 1×2000000×2000000 \(resize:2000000\) needs 16 TB"):
        train(recipe, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_a_batch_of_large_images_beyond_memory_is_refused_by_its_size(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("digits"), model=Model("mlp"), augment=("resize:30000",), epochs=1, batch_size=1000)
    with pytest.raises(SetupError, match=r"batch_size=1000 inputs of 1×30000×30000 need 3\.6 TB .*batch-size"):
        train(recipe, runs=tmp_path, device="cpu")


def test_a_size_of_files_beyond_memory_is_refused(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "pets" / name / "1.png")
    with pytest.raises(SetupError, match=r"An image of 2000000×2000000 \(size=2000000\) needs 12 TB"):
        load(str(tmp_path / "pets"), size=2_000_000)
