"""The index of a page: what is said of runs without a comparison."""

from pathlib import Path

from evenly.records import Run, comparison
from evenly.report.experiments.index import index_section
from evenly.report.experiments.lookup import Folder
from evenly.report.experiments.page import page_of


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


def test_a_link_to_nowhere_and_an_odd_record_do_not_hide_the_other_comparisons(tmp_path: Path) -> None:
    record = {"state": "done", "data": "digits", "split": "test", "seeds": [0], "baseline": "plain", "early": {}}
    methods = [{"name": "plain", "settings": {}, "runs": {}}]
    comparison.write(tmp_path, {"id": "aaa", "methods": methods, **record})
    odd = [{"name": "plain", "settings": {}, "runs": {}, "error": {"mean": 0.1, "low": None, "n": None}}]
    comparison.write(tmp_path, {"id": "bbb", "methods": odd, **record})
    (tmp_path / comparison.FOLDER / "dead.json").symlink_to(tmp_path / "nowhere")
    (index,) = [section for section in page_of([tmp_path]).sections if section.id == "index"]
    rows = index.blocks[0].rows  # type: ignore[union-attr]
    assert {row[-1] for row in rows} == {"aaa", "bbb", "dead"}
    assert {row[-1] for row in rows if row[1].text == "failed to read"} >= {"dead"}
