"""Fill the tables of README and documentation from the ledger: `make tables`.

A table stands between `<!-- ledger: NAME -->` and `<!-- end of ledger -->`; NAME is a paper, for all its verdicts, or
keys of experiments, parted by commas, for their numbers.
"""

import re
from pathlib import Path

from evenly.papers import ledger as book
from evenly.papers.catalogue import PAPERS
from evenly.papers.reproduction import overview
from evenly.report.verdict_tables import markdown, results

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
PLACE = re.compile(r"(<!-- ledger: (\S+) -->\n).*?(<!-- end of ledger -->)", re.DOTALL)


def filled(text: str, ledger: Path = PROJECT / "claims") -> str:
    """The text with every table as the ledger has it."""
    lines, rows = overview(ledger), book.rows(ledger)

    def table(place: re.Match[str]) -> str:
        name = place[2]
        body = markdown(lines, rows, paper=name) if name in PAPERS else results(rows, name.split(","))
        return f"{place[1]}{body}\n{place[3]}"

    return PLACE.sub(table, text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            page.write_text(filled(text), encoding="utf-8")
            print(page.relative_to(PROJECT))
