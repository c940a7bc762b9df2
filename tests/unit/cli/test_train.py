"""Files of another kind, and the members of the SAM family by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenly.cli import main
from evenly.cli.train import resolve_recipe
from evenly.errors import UsageError
from evenly.recipe import Ascent, digest, settings
from evenly.rules import RULES


def test_logits_in_another_kind_of_file_are_a_data_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "logits.npy", np.zeros((4, 2)))
    np.savez(tmp_path / "whole.npz", logits=np.zeros((400, 2)), labels=np.arange(400) % 2)
    (tmp_path / "part.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:2000])
    for name in ("logits.npy", "part.npz"):
        assert main(["separate", "--from-logits", str(tmp_path / name), "--out", str(tmp_path / "out.csv")]) == 3
        assert "numpy.savez" in capsys.readouterr().err


def test_every_rule_of_ascent_is_an_optimizer_by_name() -> None:
    for name, (_, rho) in RULES.items():
        recipe = resolve_recipe(data="digits", config=None, model=None, optimizer=name, changes=[])
        assert (recipe.ascent.rule, recipe.ascent.rho, recipe.optimizer.name) == (name, rho, "sgd")


def test_the_example_of_augmentations_can_be_given() -> None:
    import re

    from evenly.data import Augmentation
    from evenly.recipe import Recipe

    doc = next(row.doc for row in settings(Recipe) if row.path == "augment")
    words = re.search(r"\[(.+)\]", doc)
    assert words is not None
    assert len(Augmentation.parse(words[1].split(", ")).transforms) == 2


def test_a_named_optimizer_takes_away_the_sam_of_a_file_and_a_radius_is_then_refused(tmp_path: Path) -> None:
    (tmp_path / "sam.yaml").write_text("ascent: {rule: sam, rho: 0.1}\noptimizer: {lr: 0.02}\n")
    config = str(tmp_path / "sam.yaml")
    kept = resolve_recipe(data="digits", config=config, model=None, optimizer=None, changes=[])
    assert (kept.ascent.rule, kept.ascent.rho) == ("sam", 0.1)
    plain = resolve_recipe(data="digits", config=config, model=None, optimizer="sgd", changes=[])
    assert digest(plain) == digest(replace(kept, ascent=Ascent()))
    with pytest.raises(UsageError, match=r"--rho 0\.3 is the radius of SAM"):
        resolve_recipe(data="digits", config=config, model=None, optimizer="sgd", changes=[], rho="0.3")


@pytest.mark.parametrize("change", ["ascent.options.m=4", "ascent.schedule=linear", "ascent.rho_end=0.3"])
def test_settings_of_sam_are_refused_for_ordinary_training(change: str, tmp_path: Path) -> None:
    given = {"data": "digits", "config": None, "model": None, "changes": [change]}
    with pytest.raises(UsageError, match=rf"{change.split('=')[0].removesuffix('.m')} is for SAM and its family"):
        resolve_recipe(**given, optimizer=None)
    resolve_recipe(**given, optimizer=None, verb="compare")  # whose methods may be of SAM's family
    file = tmp_path / "sam.yaml"
    file.write_text("ascent: {rule: sam, options: {m: 4}}")
    switched_off = {**given, "config": str(file), "changes": ["ascent.rule=none"]}
    assert resolve_recipe(**switched_off, optimizer=None).ascent.rule == "none"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epochs 2 --set epochs=3", "--epochs 2 and --set epochs=3 give epochs two values"),
        ("--lr 0.1 --set optimizer.lr=0.2", "two values"),
        ("--lr auto --set optimizer.lr=0.2", "two values"),
        ("--optimizer sam --set ascent.rule=asam", "two values"),
        ("--optimizer sam --rho 0.1 --set ascent.rho=0.2", "two values"),
        ("--model mlp --set model.name=convnet", "two values"),
        ("--model mlp --optimizer adam --set optimizer.momentum=0.5", "adam has no such setting"),
        ("--set sise=32", "Did you mean 'size'?"),
        ("--set held_oot=0", "Did you mean 'held_out'?"),
        ("--set lr=0.1", "Did you mean 'optimizer.lr'?"),
        ("--set zzz=1", "has no option zzz; it has held_out, size, skip_broken."),
        ("--epochs 0", "--epochs 0: expected a whole number of at least 1. For example: --epochs 200"),
        ("--optimizer asam --rho -0.1", "For example: --rho 0.5"),
        ("--set epochs=0", "For example: epochs=200"),
    ],
)
def test_settings_that_cannot_be_meant_are_answered_in_the_form_they_were_given(
    words: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(
                tmp_path / "photos" / name / f"{i}.png"
            )
    photos, runs = str(tmp_path / "photos"), str(tmp_path / "runs")
    assert main(["train", photos, "--device", "cpu", "--batch-size", "4", "--runs", runs, *words.split()]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_an_option_that_data_do_not_have_is_named_with_those_they_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "digits", "--set", "size=32"]) == 2
    assert "digits has no option size; it has held_out." in " ".join(capsys.readouterr().err.split())


def test_one_value_given_twice_is_no_conflict() -> None:
    recipe = resolve_recipe(data="digits", config=None, model=None, optimizer=None, changes=["epochs=3"], epochs="3")
    assert recipe.epochs == 3
