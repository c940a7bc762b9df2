"""Recipe files: what YAML means, and how a broken file is named."""

import math
import os
from pathlib import Path

import pytest

from evenly.errors import SetupError, UsageError
from evenly.recipe import Data, Recipe, dump, load
from evenly.typed import yaml_text


def test_a_recipe_survives_the_trip_through_a_file(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("patches", {"beta_d": 0.4, "noise": {"kind": "no"}}), augment=("crop", "mirror"), seed=3)
    dump(recipe, tmp_path / "recipe.yaml")
    assert load(tmp_path / "recipe.yaml") == recipe
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


def test_numbers_and_words_in_yaml_mean_what_they_look_like() -> None:
    text = "a: 1e-3\nb: no\nc: 010\nd: 1:30\ne: 2001-01-01\nf: -.INF\ng: 0x1F\nh: 1.\ni: ~\nj: True\nk: +2E+3\nl: 'x'"
    assert yaml_text.parse(text, source="text") == {
        "a": 0.001, "b": "no", "c": 10, "d": "1:30", "e": "2001-01-01", "f": -math.inf, "g": 31, "h": 1.0,
        "i": None, "j": True, "k": 2000.0, "l": "x",
    }  # fmt: skip


BROKEN = [
    ("epochs: 3\nepochs: 4\n", ", line 2: 'epochs' is given twice (first in line 1). Keep one of the two."),
    ("optimizer:\n  lr: 1\n  lr: 1\n", ", line 3: 'lr' is given twice"),
    ("epochs: 3\noptimizer: {lr: 1\n", ", line 3: "),
    ("epochs: 3\n\tseed: 1\n", ", line 2: "),
    ("a: &x [1]\nb: *x\n", ", line 2: aliases (*x) are not read here."),
    ("epochs: 3\nseed: !!python/object/apply:os.getpid []\n", ", line 2: could not determine a constructor"),
    ("epochs: 3\n3: 4\n", ", line 2: the name of a setting must be text, not 3."),
    ("epochs: 3\n---\nepochs: 4\n", ", line 2: expected a single document"),
    ("a: " + "[" * 100_000, "more than 50 levels of nesting."),
    ("epochs: 3\nlr: 1e-3\n", ": unknown setting 'lr'. Did you mean 'optimizer.lr'?"),
    ("epochs: 0\n", ": epochs: expected a whole number of at least 1, not 0."),
    ("", ": expected settings such as 'epochs: 200', one per line, but it holds nothing."),
    ("- a\n- b\n", ": expected settings such as 'epochs: 200', one per line, but it holds list"),
    ("epochs: \x00\n", "control characters are not allowed"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=lambda text: text[:40])
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_missing_file_is_named_with_the_nearest_beside_it(tmp_path: Path) -> None:
    dump(Recipe(), tmp_path / "recipe.yaml")
    with pytest.raises(UsageError, match=r"recipes.yaml does not exist. Did you mean 'recipe.yaml'\?"):
        load(tmp_path / "recipes.yaml")
    with pytest.raises(UsageError, match="There is no YAML file in that folder"):
        load(tmp_path / "nowhere" / "recipe.yaml")


def test_a_folder_and_a_binary_file_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        load(tmp_path)
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load(tmp_path / "a.yaml")


def test_a_recipe_cannot_be_dumped_where_a_file_stands_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot write"):
        dump(Recipe(), tmp_path / "file" / "recipe.yaml")


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recipe.yaml")
    with pytest.raises(UsageError, match=r"recipe\.yaml is not a regular file"):
        yaml_text.read(tmp_path / "recipe.yaml")
