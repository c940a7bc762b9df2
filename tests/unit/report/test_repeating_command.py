"""The command on a page repeats what the page shows: the same recipes, to the digest."""

import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import parser
from evenly.cli.train import resolved
from evenly.cli.useful import early_choice, moment
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Resampling, Schedule, Until, digest, to_mapping
from evenly.records import Run
from evenly.report.run_page import run_page
from evenly.training.early import early_recipe
from evenly.training.selection import second_recipe
from evenly.typed import yaml_text

RECIPES = {
    "defaults": Recipe(),
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
    return resolved(**{name: arguments[name] for name in names if name in arguments})


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_alone_is_repeated_by_train(name: str, tmp_path: Path) -> None:
    recipe = Recipe(**{**RECIPES[name].__dict__, "seed": 7})
    command = run_page([kept(tmp_path, recipe).path]).command
    assert command.startswith("evenly train ")
    assert digest(recipe_of(parsed(command))) == digest(recipe)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("until", [Until("gain"), Until("epoch", 1), Until("fraction", 0.4)], ids=lambda u: u.rule)
def test_a_comparison_is_repeated_by_useful(name: str, until: Until, tmp_path: Path) -> None:
    plain = RECIPES[name]
    first = early_recipe(plain, until)
    second = second_recipe(plain, digest(first), "useful", factor=3, keep_suspects=False)
    for recipe in (plain, first):
        kept(tmp_path, recipe)
    given = parsed(run_page([kept(tmp_path, second).path]).command)
    again = recipe_of(given)
    assert digest(again) == digest(plain)
    optimizer, ascent = early_choice(again, given["early_optimizer"], given["early_lr"])
    early = early_recipe(
        again, moment(given["at_epoch"], given["at_fraction"]), optimizer=optimizer, ascent=ascent
    )  # fmt: skip
    assert digest(early) == digest(first)
    assert (given["seeds"], given["controls"], given["factor"], given["drop_suspect"]) == ("0", "original", 3, True)


def test_another_network_and_optimizer_of_the_first_stage_are_named(tmp_path: Path) -> None:
    plain = RECIPES["sam"]
    optimizer, ascent = early_choice(plain, "sgd", 0.01)
    first = early_recipe(plain, Until("epoch", 1), model=Model("convnet"), optimizer=optimizer, ascent=ascent)
    second = second_recipe(plain, digest(first), "useful", factor=2, keep_suspects=True)
    kept(tmp_path, first)
    given = parsed(run_page([kept(tmp_path, second).path]).command)
    assert (given["early_model"], given["early_optimizer"], given["early_lr"]) == ("convnet", "sgd", 0.01)
    assert Resampling().factor == given["factor"] == 2


STRANGE = "2; touch x"


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """The recipe of a stranger: every word of it that comes into the command would run something else."""
    plain = Recipe(data=Data("digits $(touch x)"), epochs=2)
    first = early_recipe(plain, Until("epoch", 1))
    second = second_recipe(plain, digest(first), "useful", factor=3, keep_suspects=True)
    control = second_recipe(plain, digest(first), "random", factor=3, keep_suspects=True)
    early, useful, random = (kept(tmp_path, recipe) for recipe in (first, second, control))
    for run, changes in (
        (useful, {"resampling": {"factor": STRANGE}}),
        (random, {"resampling": {"factor": STRANGE, "method": "random`touch x`"}}),
        (early, {"optimizer": {"name": "sgd\ntouch x"}, "until": {"value": STRANGE}}),
        (early, {"model": {"name": "mlp\x03';touch x;'"}, "optimizer": {"lr": STRANGE}}),
    ):
        mapping = yaml_text.read(run.path / "recipe.yaml")
        for part, own in changes.items():
            mapping[part] |= own
        (run.path / "recipe.yaml").write_text(yaml_text.render(mapping))
    return useful.path


def test_a_recipe_of_a_stranger_gives_one_command_and_runs_nothing_else(stranger: Path, tmp_path: Path) -> None:
    command = run_page([stranger]).command
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
    assert words[:2] == ["useful", "digits $(touch x)"]
    said = dict(pairwise(words))
    assert said["--factor"] == said["--at-epoch"] == said["--early-lr"] == STRANGE
    assert said["--controls"] == "random`touch x`"
    assert said["--early-optimizer"] == "sgd\ntouch x"
    assert said["--early-model"] == "mlp\x03';touch x;'"
    assert command.isprintable()


def test_a_learning_rate_of_many_digits_is_repeated_to_the_last(tmp_path: Path) -> None:
    plain = Recipe(epochs=2)
    optimizer, ascent = early_choice(plain, None, 0.0123456789)
    first = early_recipe(plain, Until("epoch", 1), optimizer=optimizer, ascent=ascent)
    kept(tmp_path, first)
    given = parsed(run_page([kept(tmp_path, second_recipe(plain, digest(first), "useful")).path]).command)
    assert given["early_lr"] == 0.0123456789
