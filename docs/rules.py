"""Fill the table of rules in docs/sam.md from the rules themselves: `python docs/rules.py`."""

import inspect
import re
from pathlib import Path

from evenly.optim.cost import passes_per_step, rule_class
from evenly.rules import RULES

PAGE = Path(__file__).parent / "sam.md"
PLACE = re.compile(r"(<!-- rules -->\n).*?(<!-- end of rules -->)", re.DOTALL)


def table() -> str:
    """A row for each rule: names, what it is, passes per step, default radius."""
    rows = ["| Python | recipe, command line | what it is | passes | ρ |", "|---|---|---|---|---|"]
    for name, known in RULES.items():
        first = (inspect.getdoc(rule_class(name)) or "").split("\n\n")[0]
        says = first.replace("\n", " ").rstrip(".").replace("|", "\\|")
        rows.append(f"| `{known.kind}` | `{name}` | {says} | {passes_per_step(name, {}):g} | {known.rho:g} |")
    return "\n".join(rows)


def filled(text: str) -> str:
    """The text with the table as the rules have it."""
    return PLACE.sub(lambda place: f"{place[1]}{table()}\n{place[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
