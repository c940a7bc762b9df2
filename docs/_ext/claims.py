"""Directives that show the results of the papers' claims from the ledger: one figure, or all figures of a paper.

```{claim} nguyen2024/fig2
```

```{claim-gallery} nguyen2024
```
"""

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive

from evenly.report.verdict_words import num_holding, verdict_words

LEDGER = Path(__file__).parents[2] / "claims"


def rows_of(key: str) -> list[dict[str, Any]]:
    """The rows of an experiment that have a figure, the largest scale first."""
    paths = [LEDGER / f"{key.replace('/', '-')}-{scale}.json" for scale in ("full", "small")]
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
    return [row for row in rows if row["figure"]]


def figure(row: dict[str, Any], *, source: str, small: bool) -> nodes.figure:
    """The figure of a row with its verdict below."""
    holding, total = num_holding(row)
    key, scale = row["key"], row["scale"]
    words = f"{row['title']}. {verdict_words(row['verdict'], row['kind'])}, {len(row['seeds'])} seeds"
    words += f", {holding} of {total} claims hold" if total > 1 and row["kind"] != "atlas" else ""
    # As many steps up as the page lies deep, then to the ledger.
    up = "../" * (len(Path(source).parts))
    image = nodes.image(uri=f"{up}claims/{key.replace('/', '-')}-{scale}.svg", alt=f"{row['title']}: {row['claim']}")
    caption = nodes.caption(
        "", "", nodes.Text(f"{words}. "), nodes.literal("", f"evenly reproduce {key} --scale {scale}")
    )
    return nodes.figure("", image, caption, classes=["claim-small" if small else "claim"])


class Claim(Directive):
    """The figure of one experiment, at the largest scale that was run."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure with its verdict, or the command that makes it."""
        rows = rows_of(self.arguments[0])
        if not rows:
            text = f"{self.arguments[0]} was not run yet: evenly reproduce {self.arguments[0]}"
            return [nodes.paragraph("", text)]
        return [figure(rows[0], source=self._source(), small=False)]

    def _source(self) -> str:
        return self.state.document.settings.env.docname


class ClaimGallery(Directive):
    """The figures of all experiments of a paper, two in a row."""

    required_arguments = 1
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """A grid of figures."""
        paper = self.arguments[0]
        keys = {path.stem.rpartition("-")[0] for path in LEDGER.glob(f"{paper}-*.json")}
        rows = [rows_of(key.replace("-", "/", 1))[:1] for key in sorted(keys)]
        source = self.state.document.settings.env.docname
        figures = [figure(row, source=source, small=True) for own in rows for row in own]
        return [nodes.container("", *figures, classes=["claim-gallery"])]


def setup(app: Any) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("claim", Claim)
    app.add_directive("claim-gallery", ClaimGallery)
    return {"parallel_read_safe": True}
