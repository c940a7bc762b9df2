"""The command on a page repeats what the page shows: the same recipes, to the digest."""

import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import parser
from evenly.cli.train import fast_where_possible, resolve_recipe
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Schedule, digest, to_mapping
from evenly.records import Run
from evenly.report.experiments import page_of
from evenly.typed import yaml_text

RECIPES = {
    "defaults": Recipe(),
    "a network that has a rate of its own": Recipe(model=Model("convnet")),
    "a space in the path": Recipe(data=Data("my photos/train set"), epochs=3),
    "sam": Recipe(ascent=Ascent("sam", 0.2), optimizer=Optimizer(lr=0.05), batch_size=32),
    "lists, maps and words": Recipe(
        augment=("pad-crop:4", "mirror"),
        data=Data("patches", {"beta_hard": 0.4, "noise_on": "hard"}),
        model=Model("mlp", {"width": 64}),
        schedule=Schedule("step", (0.3, 0.6)),
        precision="bf16",
        clip_norm=1.0,
    ),
    "adamw": Recipe(
        optimizer=Optimizer("adamw", lr=1e-3, momentum=0.0, options={"betas": [0.9, 0.95]}), keep_epochs=(1, 2)
    ),
}  # fmt: skip


def kept(root: Path, recipe: Recipe) -> Run:
    with Run.create(root, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.2})
        run.finish({"test.error": 0.2, "hard_share": 0.3})
    return run


def parsed(command: str) -> dict[str, Any]:
    words = shlex.split(command)
    assert words[0] == "evenly"
    return vars(parser(words[1]).parse_args(words[1:]))


def recipe_of(arguments: dict[str, Any]) -> Recipe:
    names = ("data", "config", "model", "optimizer", "changes", "rho", "lr", "epochs", "batch_size", "seed")
    recipe = resolve_recipe(**{name: arguments[name] for name in names if name in arguments})
    return fast_where_possible(recipe, arguments, device="cpu")


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_alone_is_repeated_by_train(name: str, tmp_path: Path) -> None:
    recipe = Recipe(**{**RECIPES[name].__dict__, "seed": 7})
    command = page_of([kept(tmp_path, recipe).path]).lead.command
    assert command.startswith("evenly train ")
    assert digest(recipe_of(parsed(command))) == digest(recipe)


STRANGE = "2; touch x"


def test_a_recipe_of_a_stranger_gives_one_command_and_runs_nothing_else(tmp_path: Path) -> None:
    run = kept(tmp_path, Recipe(data=Data("digits $(touch x)"), epochs=2))
    mapping = yaml_text.read(run.path / "recipe.yaml")
    mapping["optimizer"] |= {"name": "sgd\ntouch x", "lr": STRANGE}
    mapping["model"] |= {"name": "mlp\x03';touch x;'"}
    (run.path / "recipe.yaml").write_text(yaml_text.render(mapping))
    command = page_of([run.path]).lead.command
    program = tmp_path / "bin" / "evenly"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\037" "$@"\n')
    program.chmod(0o755)
    away = tmp_path / "away"
    away.mkdir()
    shell = subprocess.run(
        ["bash", "-c", command],
        cwd=away,
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert list(away.iterdir()) == []
    assert shell.stderr == ""
    words = shell.stdout.split("\x1f")[:-1]
    assert words[:2] == ["train", "digits $(touch x)"]
    said = dict(pairwise(words))
    assert said["--lr"] == STRANGE
    assert said["--model"] == "mlp\x03';touch x;'"
    assert command.isprintable()
