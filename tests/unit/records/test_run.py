"""Run folders: written by one process at a time, readable whatever happens to it."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evenly.errors import DataError, Stopped, UsageError
from evenly.recipe import Optimizer, Recipe, digest, from_mapping, to_mapping
from evenly.records import Run, json_text
from evenly.records.identity import Identity

patient = hypothesis_settings(deadline=None)  # a busy machine is not a wrong result
MAPPING = {"optimizer": {"lr": 0.1}, "seed": 0}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path, MAPPING, "c0ffee")


# One folder per recipe


def test_a_run_of_a_recipe_keeps_it_whole(tmp_path: Path) -> None:
    recipe = Recipe(optimizer=Optimizer(lr=1e-5))
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        pass
    assert run.path == tmp_path / digest(recipe)
    again = from_mapping(Recipe, Run.open(digest(recipe)[:4], tmp_path).recipe)
    assert again == recipe
    assert digest(again) == run.id


def test_the_same_recipe_continues_in_the_same_folder_until_it_is_done(tmp_path: Path) -> None:
    for epoch in (1, 2):
        with Run.create(tmp_path, MAPPING, "c0ffee", environment={"sitting": epoch}) as run:
            run.log(epoch=epoch)
    assert run.state == "stopped"
    assert run.stamps() == [{"sitting": 1}, {"sitting": 2}]
    with Run.create(tmp_path, MAPPING, "c0ffee") as run:
        run.finish({"error": math.inf})
    before = sorted((path, path.stat().st_mtime_ns) for path in run.path.iterdir())
    done = Run.create(tmp_path, MAPPING, "c0ffee", environment={"sitting": 4})
    assert (done.state, done.summary(), done.metrics()) == ("done", {"error": math.inf}, [{"epoch": 1}, {"epoch": 2}])
    assert sorted((path, path.stat().st_mtime_ns) for path in run.path.iterdir()) == before


def test_a_done_run_takes_artefacts_but_no_more_metrics(run: Run) -> None:
    run.finish({})
    with pytest.raises(UsageError, match=r"cannot log to run c0ffee: it is done. To run it again, remove .*c0ffee"):
        run.log(epoch=1)
    with pytest.raises(UsageError, match="it is done"):
        run.truncate_metrics(0)
    run.write_json("sharpness.json", {"lambda_max": 2.0})
    assert Run.open(run.path).read_json("sharpness.json") == {"lambda_max": 2.0}


def test_a_folder_made_with_another_recipe_is_not_continued(run: Run, tmp_path: Path) -> None:
    run.close()
    other = {"optimizer": {"lr": 0.2}, "seed": 0}
    with pytest.raises(UsageError, match=r"was made with another recipe \(optimizer.lr: 0.1 → 0.2\)"):
        Run.create(tmp_path, other, "c0ffee")
    assert run.state == "new"  # the refused attempt left no lock
    run.finish({})
    with pytest.raises(UsageError, match="was made with another recipe"):
        Run.create(tmp_path, other, "c0ffee")


def test_a_setting_that_a_later_version_added_does_not_stop_a_run(run: Run, tmp_path: Path) -> None:
    run.close()
    later = {**MAPPING, "added": {"later": 1}}
    # At the value that means what was done without it, the setting is no part of the identity.
    identity = Identity(MAPPING, {}, {"name": "d", "fingerprint": "1f"})
    Run.create(tmp_path, MAPPING, identity.id, identity=identity).close()
    assert Run.create(tmp_path, later, identity.id, identity=identity).state == "running"
    with pytest.raises(UsageError, match=r"another recipe \(added.later: not there → 1\)"):
        Run.create(tmp_path, later, "c0ffee")


def test_a_foreign_folder_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "c0ffee").mkdir()
    (tmp_path / "c0ffee" / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match=r"holds thesis.tex but no recipe.yaml"):
        Run.create(tmp_path, MAPPING, "c0ffee")


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b"])
def test_a_digest_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a run's ID must consist of letters and digits"):
        Run.create(tmp_path, MAPPING, name)


# Opening


def test_a_run_opens_by_folder_id_and_unique_prefix(tmp_path: Path) -> None:
    for name in ("abc1", "abc12", "abd3"):
        Run.create(tmp_path, MAPPING, name).close()
    assert Run.open(tmp_path / "abc1").id == "abc1"
    assert Run.open(str(tmp_path / "abc1")).id == "abc1"
    assert Run.open("abc1", tmp_path).id == "abc1"
    assert Run.open("abd", tmp_path).id == "abd3"
    with pytest.raises(UsageError, match=r"'ab' begins the ID of 3 runs: abc1, abc12, abd3. Give more of it."):
        Run.open("ab", tmp_path)
    with pytest.raises(UsageError, match=r"there is no run 'abx3' in .*. Did you mean 'abd3'"):
        Run.open("abx3", tmp_path)


def test_what_is_no_run_is_refused_with_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no run 'abc' in .*runs. There are none: `evenly train` makes one"):
        Run.open("abc", tmp_path / "runs")
    with pytest.raises(UsageError, match=r"is not a run's folder: it has no recipe.yaml"):
        Run.open(tmp_path)


# State


def test_the_state_is_what_the_files_tell(run: Run, tmp_path: Path) -> None:
    seen = Run.open("c0ffee", tmp_path)
    assert seen.state == "running"
    run.close()
    assert seen.state == "new"
    run.log(epoch=1)
    assert seen.state == "running"
    run.fail("loss became NaN at step 3")
    assert (seen.state, seen.failure()) == ("failed", "loss became NaN at step 3")
    again = Run.create(tmp_path, MAPPING, "c0ffee")
    assert (seen.state, seen.failure()) == ("running", None)
    again.close()
    assert seen.state == "stopped"
    again.finish({})
    assert (seen.state, repr(seen)) == ("done", "<run c0ffee: done>")


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("bad"), "failed"), (Stopped("later"), "stopped"), (KeyboardInterrupt(), "stopped")]
)
def test_leaving_by_an_error_says_how_the_run_ended(tmp_path: Path, error: BaseException, state: str) -> None:
    with pytest.raises(type(error)), Run.create(tmp_path, MAPPING, "c0ffee") as run:  # noqa: PT012
        run.log(epoch=1)
        raise error
    assert run.state == state
    assert run.failure() == ("ValueError: bad" if state == "failed" else None)


# Metrics


def test_what_is_logged_is_read_back(run: Run) -> None:
    run.log(epoch=1, loss=0.5, note="ok", none=None, flag=True, each=[1, 2.5])
    run.log(loss=np.float32(0.5), count=np.int64(3), tensor=torch.tensor(0.25), many=torch.tensor([1.0, math.nan]))
    first, second = run.metrics()
    assert first == {"epoch": 1, "loss": 0.5, "note": "ok", "none": None, "flag": True, "each": [1, 2.5]}
    assert (second["loss"], second["count"], second["tensor"], second["many"][0]) == (0.5, 3, 0.25, 1.0)
    assert math.isnan(second["many"][1])


def test_nan_and_infinities_survive_in_standard_json(run: Run) -> None:
    run.log(a=math.nan, b=math.inf, c=-math.inf, deep={"x": [math.nan]})
    (line,) = (run.path / "metrics.jsonl").read_text().splitlines()

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    json.loads(line, parse_constant=refuse)
    (row,) = run.metrics()
    assert math.isnan(row["a"])
    assert (row["b"], row["c"]) == (math.inf, -math.inf)
    assert math.isnan(row["deep"]["x"][0])


texts = st.text().filter(lambda text: text not in ("NaN", "Infinity", "-Infinity"))


@patient
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=6,
        ),
    )
)
def test_plain_values_survive_as_one_line(values: dict[str, Any]) -> None:
    line = json_text.line(values, path="metrics")
    assert line.count(b"\n") == 1
    assert json_text.decode(json.loads(line)) == values


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "metrics.x: cannot record a object."),
        ([{1}], r"metrics.x\[0\]: cannot record a set."),
        ("NaN", "metrics.x: the text 'NaN' would be read back as a number."),
        ({1: 2}, "metrics.x: names are text, not 1."),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(run: Run, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run.log(x=value)
    assert run.metrics() == []


def test_a_torn_last_line_is_left_out_and_cut_before_the_next(run: Run) -> None:
    run.log(epoch=1)
    run.close()
    with open(run.path / "metrics.jsonl", "ab") as file:
        file.write(b'{"epoch": 2, "lo')
    assert run.metrics() == [{"epoch": 1}]
    run.log(epoch=2)
    assert (run.path / "metrics.jsonl").read_bytes() == b'{"epoch": 1}\n{"epoch": 2}\n'


@pytest.mark.parametrize("damage", [b'{"epoch": 2, "lo', b"[1, 2]", b"\x00\x00", b"", b"\xff"])
def test_a_corrupt_line_in_the_middle_is_named(run: Run, damage: bytes) -> None:
    (run.path / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n' + damage + b'\n{"epoch": 3}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl, line 2: expected a JSON object, found (an empty line|['\"])"):
        run.metrics()


def test_metrics_are_truncated_to_what_a_checkpoint_had_seen(run: Run) -> None:
    for epoch in range(5):
        run.log(epoch=epoch, loss=1 / 3)
    whole = (run.path / "metrics.jsonl").read_bytes()
    run.truncate_metrics(3)
    assert run.metrics() == [{"epoch": epoch, "loss": 1 / 3} for epoch in range(3)]
    for epoch in (3, 4):
        run.log(epoch=epoch, loss=1 / 3)
    assert (run.path / "metrics.jsonl").read_bytes() == whole
    run.truncate_metrics(lambda row: row["epoch"] < 2)
    assert [row["epoch"] for row in run.metrics()] == [0, 1]
    with pytest.raises(DataError, match=r"has 2 lines, 3 should be kept: some are lost"):
        run.truncate_metrics(3)
    assert len(run.metrics()) == 2


# Artefacts


def test_artefacts_are_written_whole_and_read_back(run: Run) -> None:
    run.write_json("probing/epoch 3.json", {"error": math.nan, "sizes": (1, 2)})
    value = run.read_json("probing/epoch 3.json")
    assert math.isnan(value["error"])
    assert value["sizes"] == [1, 2]
    path = run.write_csv(
        "separation.csv", [{"index": 1, "name": 'a,"b"', "loss": 0.1}, {"index": 2, "name": "é", "loss": 2}]
    )
    assert path.read_text() == 'index,name,loss\n1,"a,""b""",0.1\n2,é,2\n'
    with open(path, newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ['a,"b"', "é"]
    assert not list(run.path.rglob("*.part"))


def test_rows_of_a_table_must_have_the_same_columns(run: Run) -> None:
    with pytest.raises(UsageError, match=r"a.csv, row 2: every row needs the columns of the first, unlike \['b'\]"):
        run.write_csv("a.csv", [{"a": 1}, {"a": 1, "b": 2}])
    assert not (run.path / "a.csv").exists()


@pytest.mark.parametrize("name", ["", "../x.json", "/etc/x.json", "metrics.jsonl", "done", "recipe.yaml", "a\\b"])
def test_an_artefact_stays_inside_its_run_and_off_its_records(run: Run, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name an artefact"):
        run.write_json(name, {})


def test_a_missing_or_damaged_artefact_is_named(run: Run) -> None:
    run.write_json("sharpness.json", {})
    with pytest.raises(DataError, match=r"run c0ffee has no sharpnes.json. Did you mean 'sharpness.json'\?"):
        run.read_json("sharpnes.json")
    (run.path / "sharpness.json").write_text("{")
    with pytest.raises(DataError, match=r"sharpness.json is not JSON"):
        run.read_json("sharpness.json")


def test_an_artefact_that_cannot_be_said_leaves_the_old_one(run: Run) -> None:
    run.write_json("a.json", 1)
    with pytest.raises(UsageError, match=r"a.json.x: cannot record a object"):
        run.write_json("a.json", {"x": object()})
    assert run.read_json("a.json") == 1


def test_records_do_not_import_torch() -> None:
    code = "import sys, evenly.records; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
