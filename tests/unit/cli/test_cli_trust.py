"""Code that a run's folder or a recipe names runs only if the person named it here before, or trusts it now.

The stranger's model leaves a file behind when its module is imported and another when it is called: where something
is refused, neither is there.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import evenly
from evenly import consent
from evenly.cli import main
from evenly.errors import UsageError
from evenly.recipe import Data, Model, Recipe, dump, from_record, identity_settings, load
from evenly.records import Run
from evenly.training.train import train
from evenly.training.trained_model import load_trained
from evenly.typed import yaml_text
from evenly.typed.mappings import digest

STRANGERS = """
import pathlib
import torch
HERE = pathlib.Path({folder!r})
(HERE / "imported").touch()

def net(input_shape, num_classes, width=8):
    (HERE / "called").touch()
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, num_classes))
"""
SMALL = ["--epochs", "1", "--runs", "runs"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module `strangers_net` that leaves traces, on a machine that remembers nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(consent, "_named", set())
    (tmp_path / "strangers_net.py").write_text(STRANGERS.format(folder=str(tmp_path)))
    sys.modules.pop("strangers_net", None)
    return tmp_path


@pytest.fixture
def run(here: Path) -> Run:
    """A stranger's run: whole, of a network of the catalogue, but its recipe names the stranger's code instead."""
    made = train(
        Recipe(data=Data("digits"), model=Model("mlp", {"width": 8}), epochs=1), runs=here / "runs", device="cpu"
    )
    forge_recipe(made, "strangers_net:net", {"width": 8})
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(here / "digit.png")
    assert main(["export", str(made.path), "--as", "hub", "--out", "exported"]) == 0
    for record in (made.path / "model.json", here / "exported" / "config.json"):
        record.write_text(record.read_text().replace('"mlp"', '"strangers_net:net"'))
    dump(Recipe(model=Model("strangers_net:net", {"width": 8}), epochs=2), here / "strangers.yaml")
    return Run(made.path)


def forge_recipe(run: Run, name: str, options: dict[str, Any]) -> None:
    """Let a run's recipe name this model, and its identity agree: whoever sends a run can write both.

    Its four epochs are the fewest that `advise` trains.
    """
    recipe = run.recipe | {"model": {"name": name, "options": options, "weights": None}, "epochs": 4}
    (run.path / "recipe.yaml").write_text(yaml_text.render(recipe))
    settings = identity_settings(from_record(recipe))
    (run.path / "identity.json").write_text(json.dumps({**run.identity, "recipe": digest(settings)}))


def traces(here: Path) -> list[str]:
    return [name for name in ("imported", "called") if (here / name).exists()]


REFUSED = [
    "measure {run} rank",
    "stability threshold --run {run}",
    "train --config strangers.yaml --runs other",
    "train digits --config strangers.yaml --epochs 1 --runs other",
    "train --config {run}/recipe.yaml --runs other",
    "train --config strangers.yaml --dry-run",
    "useful --config strangers.yaml --seeds 0 --at-epoch 1 --runs other",
    "useful --config strangers.yaml --seeds 0 --at-epoch 1 --dry-run",
    "separate --config strangers.yaml --at-epoch 1 --runs other",
    "compare --config strangers.yaml --methods plain,sam --seeds 0 --runs other",
    "predict {run} digit.png",
    "predict exported digit.png",
    "export {run} --as torchscript",
    "export {run} --as hub --out hub",
    "train digits --from {run} --epochs 1 --runs other",
    "train digits --from exported --epochs 1 --runs other",
    "compare digits --from {run} --methods plain,sam --seeds 0 --epochs 1 --runs other",
    "advise {run} --runs other",
]
HARMLESS = [
    "runs --runs runs",
    "runs show {run}",
    "report {run} --out page.html",
    "export {run} --as indices",
]


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_run_a_strangers_code_is_refused_and_nothing_of_it_runs(
    words: str, here: Path, run: Run, capsys: Any
):
    command = shlex.split(words.format(run=run.path))
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "strangers_net:net(width=8)" in told
    assert f"evenly {shlex.join(command)} --trust-code" in told, "the line that would allow it"
    assert traces(here) == []
    assert "strangers_net" not in sys.modules
    assert not (here / "other").exists()


@pytest.mark.parametrize("words", HARMLESS)
def test_what_only_looks_at_a_strangers_run_runs_nothing_of_it(words: str, here: Path, run: Run):
    assert main(shlex.split(words.format(run=run.path))) in (0, 2)  # there may be nothing to export
    assert traces(here) == []


@pytest.mark.parametrize("words", REFUSED)
def test_whoever_trusts_it_says_so(words: str, here: Path, run: Run, capsys: Any):
    """It goes on to the code: what comes of it is the code's affair (its weights do not fit the run's, here)."""
    try:
        code = main([*shlex.split(words.format(run=run.path)), "--trust-code"])
    except RuntimeError:
        code = 0
    assert "names code to run" not in capsys.readouterr().err
    assert traces(here) == ["imported", "called"], code


def test_the_program_itself_refuses_and_imports_nothing(here: Path, run: Run):
    environment = os.environ | {"PYTHONPATH": str(Path(evenly.__file__).parents[1])}
    words = [sys.executable, "-m", "evenly", "measure", str(run.path), "rank"]
    done = subprocess.run(words, cwd=here, env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "names code to run" in done.stderr
    assert traces(here) == []


def test_the_shells_door_is_shut(here: Path, run: Run, capsys: Any):
    forge_recipe(run, "os:system", {"command": f"touch {here / 'called'}"})
    assert main(["measure", str(run.path), "rank"]) == 2
    assert "os:system(command=" in capsys.readouterr().err
    assert traces(here) == []


def test_what_a_person_names_on_the_command_line_runs_and_is_remembered_with_its_options(here: Path, capsys: Any):
    named = ["train", "digits", "--model", "strangers_net:net", "--set", "model.options.width=8", *SMALL]
    assert main(named) == 0
    [made] = (here / "runs").glob("*/done")
    assert main(["measure", str(made.parent), "rank"]) == 0
    assert main(["train", "--config", str(made.parent / "recipe.yaml"), *SMALL]) == 0
    capsys.readouterr()
    # The same function with other options is other code: those decide what it does.
    forge_recipe(Run(made.parent), "strangers_net:net", {"width": 9})
    assert main(["measure", str(made.parent), "rank"]) == 2
    assert "strangers_net:net(width=9)" in capsys.readouterr().err


def test_options_from_a_file_are_not_agreed_to_by_naming_the_function(here: Path, run: Run, capsys: Any):
    words = ["train", "--config", "strangers.yaml", "--model", "strangers_net:net", "--runs", "other"]
    assert main(words) == 2
    assert traces(here) == []
    assert main([*words, "--set", "model.options.width=8", "--epochs", "1"]) == 0


def test_a_module_of_the_same_name_in_another_folder_is_another(here: Path, monkeypatch: pytest.MonkeyPatch):
    consent.remember("strangers_net:net", {})
    assert consent.has_consent("strangers_net:net", {})
    (here / "theirs").mkdir()
    (here / "theirs" / "strangers_net.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(here / "theirs")
    assert not consent.has_consent("strangers_net:net", {})
    assert (here / "state" / "evenly" / "code").stat().st_mode & 0o077 == 0


def test_python_names_code_by_making_the_recipe_and_asks_for_that_of_a_file(here: Path, run: Run):
    with pytest.raises(UsageError, match="trust_code=True"):
        load("strangers.yaml")
    with pytest.raises(UsageError, match=r"consent\.trusting"):
        load_trained(run)
    assert traces(here) == []
    mine = Recipe(data=Data("digits"), model=Model("strangers_net:net", {"width": 8}), epochs=1)
    made = train(mine, runs=here / "mine", device="cpu")
    assert isinstance(load_trained(made).model, torch.nn.Sequential)
    assert load("strangers.yaml").model == mine.model, "named before"


def test_trust_ends_where_it_was_given(here: Path, run: Run):
    with consent.trusting():
        assert load("strangers.yaml").model.name == "strangers_net:net"
    with pytest.raises(UsageError, match="names code to run"):
        load("strangers.yaml")


def test_a_memory_that_cannot_be_written_or_read_is_no_obstacle_to_training(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    (here / "state").write_text("a file where a folder should be")
    assert main(["train", "digits", "--model", "strangers_net:net", *SMALL]) == 0
    (here / "state").unlink()
    (here / "state" / "evenly").mkdir(parents=True)
    (here / "state" / "evenly" / "code").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(consent, "_named", set())
    assert not consent.has_consent("strangers_net:net", {})


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("timm:resnet18", {}, False),
        ("timm:resnet18", {"drop_rate": 0.1, "depths": (1, 2), "pretrained": False}, False),
        ("timm:resnet18", {"pretrained": True}, True),
        ("torchvision:resnet18", {"weights": "DEFAULT"}, True),
        ("timm:resnet18", {"pretrained_cfg": {"url": "http://example.org/x.pth"}}, True),
        ("timm.models:create_model", {}, True),
        ("mlp", {"width": 8}, False),
        (":x", {}, True),
        ("x:", {}, True),
    ],
)
def test_numbers_cannot_make_a_library_fetch_or_read_a_file(name: str, options: dict[str, Any], code: bool):
    assert consent.is_code(name, options) is code
