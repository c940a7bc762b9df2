"""Stored comparisons: written whole, read back, and any damage named with its file and the remedy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import DataError, UsageError
from evenly.records import comparison as stored
from evenly.records import runs as list_runs

SOUND: dict[str, Any] = {
    "id": "c0ffee123456",
    "state": "running",
    "data": "digits",
    "split": "test",
    "seeds": [0, 1],
    "baseline": "plain",
    "early": {"0": {"run": "aaa", "epoch": 2, "rule_fired": True}},
    "methods": [
        {"name": "plain", "settings": {}, "runs": {"0": {"run": "bbb", "state": "done"}, "1": {"state": "running"}}}
    ],
}


def damaged(**changes: Any) -> bytes:
    return json.dumps(SOUND | {"format": 1} | changes).encode()


def test_what_is_written_is_read_back_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    path = stored.write(tmp_path, SOUND)
    assert path == tmp_path / "comparisons" / "c0ffee123456.json"
    found = stored.read(tmp_path, "c0ff")
    assert {name: found[name] for name in SOUND} == SOUND
    assert found["format"] == 1
    assert found["created"] == found["updated"] > 1e9
    assert stored.of_run(tmp_path, "aaa") == stored.of_run(tmp_path, "bbb") == found
    assert stored.of_run(tmp_path, "zzz") is None
    assert stored.progress(found) == {"planned": 0, "running": 1, "done": 1, "failed": 0, "stopped": 0}
    assert list_runs(tmp_path) == [], "the folder of comparisons is no run"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not JSON"),
        (b"[1]", "expected a JSON object"),
        (json.dumps(SOUND | {"format": 9}).encode(), "has format 9"),
        (json.dumps({"format": 1, "id": "x"}).encode(), "state is None, expected str"),
        (json.dumps(SOUND | {"format": 1, "methods": [3]}).encode(), r"methods\[0\] is not a JSON object"),
        (json.dumps(SOUND | {"format": 1, "methods": [{"name": "a"}]}).encode(), r"methods\[0\].runs is None"),
        (
            json.dumps(
                SOUND | {"format": 1, "methods": [{"name": "a", "settings": {}, "runs": {"0": {"state": "odd"}}}]}
            ).encode(),
            r"runs.0 has no known state",
        ),
        (damaged(early={"0": None}), "early.0 is not a JSON object"),
        (damaged(early={"0": {"run": 5}}), "early.0.run is 5, expected the ID of a run"),
        (damaged(early={"0": {"run": "a" * 300}}), "expected the ID of a run"),
        (damaged(early={"0": {"run": "/etc"}}), "expected the ID of a run"),
        (damaged(created=1e300), "created is 1e\\+300, expected seconds"),
        (damaged(created="NaN"), "created is nan, expected seconds"),
        (damaged(recommendation="x"), "recommendation is not a JSON object"),
        (damaged(methods=[{**SOUND["methods"][0], "error": {"mean": 0.1, "n": "x"}}]), "error.n is 'x'"),
        (damaged(methods=[{**SOUND["methods"][0], "difference": "x"}]), "difference is 'x', expected a JSON object"),
        (damaged(methods=[{**SOUND["methods"][0], "runs": {"0": {"run": "a\0b"}}}]), "expected the ID of a run"),
    ],
)
def test_damage_is_named_with_its_file_and_left_out_of_the_list(
    content: bytes, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored.write(tmp_path, SOUND | {"id": "a0"})
    bad = tmp_path / "comparisons" / "bad.json"
    bad.write_bytes(content)
    with pytest.raises(DataError, match=told) as caught:
        stored.read(tmp_path, "bad")
    assert str(bad) in str(caught.value)
    assert [each["id"] for each in stored.comparisons(tmp_path)] == ["a0"]
    assert str(bad) in caplog.text


def test_a_comparison_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There are none: `evenly compare` makes one"):
        stored.read(tmp_path, "c0")
    for name in ("c0a", "c0b"):
        stored.write(tmp_path, SOUND | {"id": name})
    with pytest.raises(UsageError, match="begins the ID of 2 comparisons"):
        stored.read(tmp_path, "c0")


def test_the_newest_comes_first(tmp_path: Path) -> None:
    for name in ("a1", "b2", "a1"):
        stored.write(tmp_path, SOUND | {"id": name})
    assert [each["id"] for each in stored.comparisons(tmp_path)] == ["a1", "b2"]


def test_reading_needs_no_torch() -> None:
    code = "import sys, evenly.records.comparison, evenly.training.recommendation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_comparison_whose_process_was_killed_is_stopped(tmp_path: Path) -> None:
    content = {"id": "c0ffee", "state": "running", "data": "digits", "split": "test", "seeds": [0]}
    stored.write(tmp_path, {**content, "baseline": "plain", "early": {}, "methods": []})
    assert stored.read(tmp_path, "c0ffee")["state"] == "running", "written by a version that left no lock"
    with stored.being_written(tmp_path, "c0ffee"):
        assert stored.read(tmp_path, "c0ffee")["state"] == "running"
        with stored.being_written(tmp_path, "c0ffee"):  # the same command twice
            assert stored.read(tmp_path, "c0ffee")["state"] == "running"
    assert list((tmp_path / "comparisons").iterdir()) == [tmp_path / "comparisons" / "c0ffee.json"]
    killed = (
        "import os, sys; from evenly.records.comparison import being_written\n"
        "with being_written(sys.argv[1], 'c0ffee'): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path)]).returncode == 9
    assert stored.read(tmp_path, "c0ffee")["state"] == "stopped"
