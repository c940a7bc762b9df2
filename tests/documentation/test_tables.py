"""The tables of README and documentation say what the code and the ledger say."""

import importlib.util
from pathlib import Path

import pytest

from evenly.papers.catalogue import PAPERS

PROJECT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("tables", PROJECT / "docs" / "tables.py")
assert SPEC is not None
assert SPEC.loader is not None
tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_agree_with_the_code_and_the_ledger(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- ledger:") == len(tables.LEDGER.findall(text)), "a table is not ended"
    assert text.count("<!-- list:") == len(tables.LIST.findall(text)), "a list is not ended"
    assert tables.filled(text) == text, "run `make tables`"


@pytest.mark.parametrize("paper", sorted(PAPERS))
def test_every_paper_has_a_page_with_its_verdicts(paper: str) -> None:
    assert f"<!-- ledger: {paper} -->" in (PROJECT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")


def test_the_readme_has_results_from_the_ledger() -> None:
    assert "<!-- ledger: " in (PROJECT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", tables.LISTS)
def test_every_list_has_its_place_in_the_documentation(name: str) -> None:
    assert any(f"<!-- list: {name} -->" in page.read_text(encoding="utf-8") for page in tables.PAGES)
