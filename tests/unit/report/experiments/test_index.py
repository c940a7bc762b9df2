"""The index of a page: what is said of runs without a comparison."""

from pathlib import Path

from evenly.records import Run
from evenly.report.experiments.index import index_section
from evenly.report.experiments.lookup import Folder


def test_runs_without_a_comparison_are_listed_with_the_command_that_pairs_them(tmp_path: Path) -> None:
    captions = []
    for name in ("a1", "b2"):
        with Run.create(tmp_path, {"seed": 0}, name) as run:
            run.log(epoch=1, **{"train.error": 0.5})
        (table,) = index_section(Folder(tmp_path), {}).blocks
        captions.append(table.caption)  # type: ignore[union-attr]
    assert captions == [
        "1 run belongs to no comparison.",
        "2 runs belong to no comparison. `evenly runs compare ID ID` pairs them by seed.",
    ]
