"""A rule is one file and one line, and from that alone it is everywhere; half a rule fails here."""

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenly
from evenly.cli.train import resolved
from evenly.optim.cost import passes_per_step, rule_class
from evenly.optim.rule import Rule
from evenly.recipe import Ascent
from evenly.rules import FORMER_NAMES, RULES

PROJECT = Path(__file__).parents[2]
FILES = sorted(p for p in (Path(evenly.__file__).parent / "optim" / "rules").glob("*.py") if p.stem != "__init__")


def test_every_file_is_in_the_list_and_every_line_has_a_file() -> None:
    assert {path.stem for path in FILES} == set(RULES)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_rule_is_a_file_of_at_most_60_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_in_python_recipe_and_command_line_with_one_radius(name: str) -> None:
    known = RULES[name]
    kind = getattr(evenly, known.kind)
    assert kind is rule_class(name)
    assert known.kind in evenly.__all__
    parameters = inspect.signature(kind).parameters
    assert (parameters.get("rho") or parameters["sigma"]).default == known.rho
    assert Ascent(name).rho == known.rho
    recipe = resolved(data="digits", config=None, model=None, optimizer=name, changes=[])
    assert (recipe.ascent.rule, recipe.ascent.rho) == (name, known.rho)
    changed = resolved(data="digits", config=None, model=None, optimizer=None, changes=[f"ascent.rule={name}"])
    assert changed.ascent == recipe.ascent
    assert issubclass(kind.rule_type, Rule)
    assert 1 <= passes_per_step(name, {}) <= 2


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_computes_and_who_invented_it(name: str) -> None:
    assert re.search(r"\(?\w+ et al\.|& \w+, \d{4}", inspect.getdoc(rule_class(name)) or "")


def test_former_names_are_those_of_rules() -> None:
    assert set(FORMER_NAMES.values()) <= set(RULES)
    assert Ascent("look") == Ascent("looksam")


def test_the_table_in_the_documentation_is_that_of_the_rules() -> None:
    spec = importlib.util.spec_from_file_location("rules_table", PROJECT / "docs" / "rules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.filled(text) == text, "run `python docs/rules.py`"


NEW = '''"""HalfSAM: SAM with half the radius."""

from typing import Any

from evenly.optim.ascent import Ascent
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.rule import Point, Rule


class Half(Rule):
    """ε = ρ/2 ∇L/‖∇L‖."""

    def ascent(self, here: Point, rho: Any) -> Ascent:
        """Half as far."""
        return super().ascent(here, rho / 2)


class HalfSAM(DisplacedGradient):
    """The gradient at w + ρ/2 ∇L/‖∇L‖ (Nobody et al., 2026)."""

    rule_type = Half

    def __init__(self, model: Any, *, rho: Any = 0.05, **options: Any) -> None:
        super().__init__(model, Half(), rho=rho, **options)
'''
SHOWS = """
import torch, evenly
from torch import nn
from evenly.data import load
from evenly.models import build
from evenly.recipe import Ascent
from evenly.cli.train import resolved
from evenly.training.ensemble import Ensemble
w = nn.Parameter(torch.tensor([3.0, 4.0]))
evenly.HalfSAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)
assert torch.allclose(w.grad, torch.tensor([3.15, 4.2])), w.grad
assert Ascent("halfsam").rho == 0.05
assert resolved(data="digits", config=None, model=None, optimizer="halfsam", changes=[]).ascent.rule == "halfsam"
data = load("spirals", seed=0).train
models = [build("disentangled", input_shape=(4,), num_classes=2, rng=0) for _ in range(2)]
both = Ensemble(models, data, lr=0.01, rule=["halfsam", "sam"], rho=[0.2, 0.1], batch_size=5, seeds=0)
both.run(5)
assert all(torch.allclose(v[0], v[1]) for v in both.parameters().values())
"""


def test_a_new_file_and_a_new_line_are_enough(tmp_path: Path) -> None:
    shutil.copytree(Path(evenly.__file__).parent, tmp_path / "evenly", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "evenly" / "optim" / "rules" / "halfsam.py").write_text(NEW)
    listed = tmp_path / "evenly" / "rules.py"
    listed.write_text(listed.read_text().replace("RULES = {\n", 'RULES = {\n    "halfsam": Entry("HalfSAM", 0.05),\n'))
    done = subprocess.run(
        [sys.executable, "-c", SHOWS], env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
