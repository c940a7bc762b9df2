"""Docstrings that the reference renders as they were meant."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "evenly"
MODULES = sorted(SOURCE.rglob("*.py"))


def _docstrings(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", path.stem), text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_after_a_section_have_a_section_of_their_own(path):
    # Otherwise they are taken for parameters: `>>> model = …` became a name, and what followed a colon its type.
    for name, text in _docstrings(path):
        *_, last = ["", *re.findall(r"^(\w+)\n-{4,}$", text.partition(">>>")[0], flags=re.MULTILINE)]
        if ">>>" in text:
            assert last in ("", "Examples"), f"{name}: put its examples under 'Examples'"
