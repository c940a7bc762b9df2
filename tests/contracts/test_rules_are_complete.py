"""Every SAM rule is one file and one line; a rule that lacks either, or its source, fails here."""

import inspect
import re
from pathlib import Path

import pytest

import evenly
from evenly.cli.train import resolve_recipe
from evenly.optim.cost import passes_per_step, rule_class
from evenly.optim.rule import Rule
from evenly.recipe import Ascent
from evenly.rules import FORMER_NAMES, RULES

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
    recipe = resolve_recipe(data="digits", config=None, model=None, optimizer=name, changes=[])
    assert (recipe.ascent.rule, recipe.ascent.rho) == (name, known.rho)
    changed = resolve_recipe(data="digits", config=None, model=None, optimizer=None, changes=[f"ascent.rule={name}"])
    assert changed.ascent == recipe.ascent
    assert issubclass(kind.rule_type, Rule)
    assert 1 <= passes_per_step(name, {}) <= 2


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_computes_and_who_invented_it(name: str) -> None:
    assert re.search(r"\(?\w+ et al\.|& \w+, \d{4}", inspect.getdoc(rule_class(name)) or "")


def test_former_names_are_those_of_rules() -> None:
    assert set(FORMER_NAMES.values()) <= set(RULES)
    assert Ascent("look") == Ascent("looksam")
