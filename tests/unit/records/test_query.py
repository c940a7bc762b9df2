"""Questions over many runs, some of them broken."""

import logging
import math
import shutil
from pathlib import Path

import pytest

from evenly.errors import UsageError
from evenly.recipe import Ascent, Data, Optimizer, Recipe, digest, to_mapping
from evenly.records import Run, runs, select, table


def make(root: Path, recipe: Recipe, *errors: float, done: bool = True) -> Run:
    with Run.create(root, to_mapping(recipe), digest(recipe)) as run:
        for epoch, error in enumerate(errors, 1):
            run.log(epoch=epoch, test_error=error)
        if done:
            run.finish({"test_error": errors[-1]})
    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for seed in (0, 1):
        make(tmp_path, Recipe(seed=seed), math.nan, 0.5, 0.2 + seed, math.nan)
        make(tmp_path, Recipe(seed=seed, ascent=Ascent("sam"), optimizer=Optimizer(lr=1.0)), 0.4, 0.3)
    make(tmp_path, Recipe(seed=2, data=Data("patches", {"beta_d": 0.4}), augment=("crop",)), done=False)
    return tmp_path


def test_runs_are_listed_by_id(root: Path) -> None:
    found = [run.id for run in runs(root)]
    assert len(found) == 5
    assert found == sorted(found)


def test_runs_are_selected_by_settings_state_and_options(root: Path) -> None:
    assert len(select(root)) == 5
    assert {run.recipe["seed"] for run in select(root, **{"optimizer.lr": 1})} == {0, 1}
    assert [run.recipe["seed"] for run in select(root, **{"ascent.rule": "none", "seed": 1})] == [1]
    assert [run.recipe["seed"] for run in select(root, **{"data.options.beta_d": 0.4})] == [2]
    assert [run.recipe["seed"] for run in select(root, augment=("crop",))] == [2]
    assert [run.recipe["seed"] for run in select(root, state="new")] == [2]
    assert select(root, seed=True) == []  # true is not one
    assert select(root, seed=99) == []


def test_a_table_has_settings_and_last_smallest_and_largest_metrics(root: Path) -> None:
    columns = [
        "ascent.rule",
        "seed",
        "state",
        "last(test_error)",
        "min(test_error)",
        "max(epoch)",
        "summary(test_error)",
    ]
    rows = sorted(
        table(root, columns, where={"data.name": "digits"}), key=lambda row: (row["ascent.rule"], row["seed"])
    )
    assert [list(row) for row in rows] == [columns] * 4
    assert [row["min(test_error)"] for row in rows] == [0.2, 0.5, 0.3, 0.3]
    assert [row["max(epoch)"] for row in rows] == [4, 4, 2, 2]
    assert math.isnan(rows[0]["last(test_error)"])
    assert math.isnan(rows[0]["summary(test_error)"])
    assert rows[2]["last(test_error)"] == rows[2]["summary(test_error)"] == 0.3
    (empty,) = table(root, ["last(test_error)", "min(test_error)", "summary(test_error)"], where={"state": "new"})
    assert set(empty.values()) == {None}


def test_a_setting_that_no_run_has_is_a_typo(root: Path) -> None:
    with pytest.raises(UsageError, match=r"no run has a setting 'optimizer.lrr'. Did you mean 'optimizer.lr'"):
        select(root, **{"optimizer.lrr": 1})
    with pytest.raises(UsageError, match=r"A metric is asked for as last\(test_error\)"):
        table(root, ["test_error"])


def test_half_written_and_damaged_folders_are_reported_and_skipped_and_foreign_ones_passed_over(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = {run.id for run in runs(root)}
    (root / "notes.txt").write_text("a file is nobody's run")
    (root / ".cache").mkdir()
    (root / "figures").mkdir()
    shutil.copytree(root / next(iter(whole)), root / "parts" / "a0")  # what `evenly reproduce` keeps
    (root / "half").mkdir()
    (root / "half" / "lock").write_text("")
    (root / "torn").mkdir()
    (root / "torn" / "recipe.yaml").write_text("epochs: [")
    with caplog.at_level(logging.WARNING):
        assert {run.id for run in runs(root)} == whole
    assert len(caplog.records) == 2
    for name in ("half", "torn"):
        assert f"skipped {root / name}: " in caplog.text


def test_a_run_with_corrupt_metrics_is_left_out_of_the_table_with_a_warning(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (bad,) = select(root, seed=0, **{"ascent.rule": "sam"})
    (bad.path / "metrics.jsonl").write_text("rubbish\n{}\n")
    rows = table(root, ["id", "last(test_error)"])
    assert len(rows) == 4
    assert bad.id not in {row["id"] for row in rows}
    assert "metrics.jsonl, line 1" in caplog.text


def test_no_runs_are_no_error_but_no_folder_is(tmp_path: Path) -> None:
    assert (runs(tmp_path), select(tmp_path, seed=1), table(tmp_path, ["seed"])) == ([], [], [])
    with pytest.raises(UsageError, match=r"there is no folder .*gone with runs. `evenly train` makes one"):
        runs(tmp_path / "gone")


def test_a_moved_folder_of_runs_reads_the_same(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "runs"
    shutil.copytree(root, elsewhere)
    columns = ["id", "state", "seed", "min(test_error)"]
    assert table(elsewhere, columns) == table(root, columns)
