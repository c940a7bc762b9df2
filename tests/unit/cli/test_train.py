"""Files of another kind, and the members of the SAM family by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

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
