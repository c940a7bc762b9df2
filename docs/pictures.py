"""Draw the picture of README and landing page from the demo's own numbers: `python docs/pictures.py DEMO/toy.json`.

`evenly demo` leaves that file. Both features, four methods, medians and middle halves over seeds.
"""

import json
import sys
from pathlib import Path

from evenly.demo.page import alignment_charts
from evenly.report.static import figure, save

PICTURE = Path(__file__).parent / "_static" / "cure.svg"


def draw(toy: dict, path: Path = PICTURE) -> None:
    """The two features beside each other, with the same y axis."""
    easy, hard = alignment_charts(toy)
    save(figure([easy, hard], note=f"{toy['setting']['seeds']} seeds: median and middle half"), path)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
