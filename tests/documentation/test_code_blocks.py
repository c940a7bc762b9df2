"""Every block of code in README and docs runs, and every command in them is one that exists."""

import re
import runpy
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import parser
from evenly.resampling import SeparationWarning

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def _guard_torchvision() -> None:
    """These frameworks import torchvision, whose operators may not fit the torch at hand."""
    runpy.run_path(str(PROJECT / "tests" / "numerics" / "torchvision_guard.py"))["torchvision"]()


def commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line[2:], comments=True) for line in lines]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run_one_after_another(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.stem in ("lightning", "transformers"):
        _guard_torchvision()
        warnings.simplefilter("ignore")  # What other frameworks remark on is not ours.
    warnings.simplefilter("ignore", SeparationWarning)  # Some blocks show what it says.
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
def test_commands_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), flags=re.MULTILINE))
    for words in commands(page):
        if words[0] == "evenly":
            parser(words[1]).parse_args(words[1:])  # exits on a verb or option that does not exist
        elif words[0] == "make":
            assert words[1] in targets
        else:
            assert words[0] in ("pip", "python", "torchrun"), words


@pytest.mark.parametrize("page", [PROJECT / "README.md", PROJECT / "docs" / "useful.md"], ids=lambda p: p.name)
def test_the_first_separation_that_is_shown_finds_something(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(blocks(page, "python")[0], names)
    assert not any("2 of 2 classes" in remark for remark in names["separation"].remarks)
    assert 0.1 < names["separation"].share < 0.5


def test_the_two_commands_are_on_the_first_screen_of_the_readme() -> None:
    first = "\n".join((PROJECT / "README.md").read_text().splitlines()[:24])
    assert "make demo" in first
    assert "make test" in first
