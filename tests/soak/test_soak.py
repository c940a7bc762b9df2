"""The soak itself: a tool that finds nothing must have looked."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from soak.scenarios import differences, snapshot  # noqa: E402

from soak import containers, mutations, structures, tally  # noqa: E402

SWITCH = """
import sys, os, json
from pathlib import Path
from soak import switch
switch.install(number=int(sys.argv[2]), moment=sys.argv[3])
folder = Path(sys.argv[1])
(folder / "a").write_text("whole")
handle = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
os.write(handle, b"0123456789")
os.replace(folder / "a", folder / "b")
print("ended")
"""


@pytest.mark.parametrize(
    ("number", "moment", "left"),
    [
        (1, "before", {}),
        (1, "after", {"a": ""}),
        (2, "before", {"a": "whole"}),
        (3, "before", {"a": "whole", "log": ""}),
        (3, "halfway", {"a": "whole", "log": "01234"}),
        (3, "after", {"a": "whole", "log": "0123456789"}),
        (4, "before", {"a": "whole", "log": "0123456789"}),
        (4, "after", {"b": "whole", "log": "0123456789"}),
        (5, "before", {"b": "whole", "log": "0123456789"}),
    ],
)
def test_a_process_ends_at_the_writing_call_it_is_told(
    number: int, moment: str, left: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWITCH, str(tmp_path), str(number), moment],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if number > 4 else -9), done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == left


def test_a_snapshot_passes_over_times_and_nothing_else(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, seconds, loss in ((one, 1.5, 0.25), (other, 2.5, 0.25)):
        folder.mkdir()
        (folder / "done").write_text(json.dumps({"loss": loss, "seconds": seconds}))
        (folder / "w.bin").write_bytes(b"\x00\x01")
    assert differences(snapshot(one), snapshot(other)) == ([], [])
    (other / "done").write_text(json.dumps({"loss": 0.2500001, "seconds": 1.5}))
    (other / "w.bin").unlink()
    (other / ".w.bin.abc.part").touch()
    wrong, strays = differences(snapshot(one), snapshot(other))
    assert wrong == ["done is other", "w.bin is missing"]
    assert strays == [".w.bin.abc.part"]


@pytest.mark.parametrize("kind", ["JSON", "JSON_LINES", "YAML", "CELLS"])
def test_damage_is_the_same_for_the_same_seed_and_mostly_damage(kind: str) -> None:
    content = b'{"a": [1, 2, {"b": "c"}], "d": 0.5}\n'
    found = []
    for _ in range(2):
        rng = random.Random(0)
        found.append([rng.choice(getattr(structures, kind))(content, rng) for _ in range(200)])
    assert found[0] == found[1]
    assert sum(each != content for each in found[0]) > 150
    assert len(set(found[0])) > 100


def test_containers_are_damaged_inside_and_stay_containers(tmp_path: Path) -> None:
    import io
    import zipfile

    import numpy as np

    file = io.BytesIO()
    np.savez(file, inputs=np.zeros((3, 2)), labels=np.arange(3))
    rng = random.Random(0)
    changed = [containers.change_archive(file.getvalue(), rng) for _ in range(60)]
    assert sum(zipfile.is_zipfile(io.BytesIO(each)) for each in changed) > 50
    rng = random.Random(0)
    assert all(isinstance(mutate(b"", rng), bytes) for mutate in mutations.TEXT for _ in range(20))


def test_the_table_sums_and_finds_its_place_in_a_document(tmp_path: Path) -> None:
    found = tally.Tally()
    found.row("train").kills += 1200
    found.row("recipes").inputs += 7
    found.row("recipes").tracebacks += 1
    assert found.total.wrong == 1
    assert "| all     | 1,200 |      7 |" in found.markdown()
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- soak -->\nold\n<!-- end of soak -->\nafter\n")
    tally.write_docs(page, "new")
    assert page.read_text() == "before\n<!-- soak -->\nnew\n<!-- end of soak -->\nafter\n"


def test_help_needs_nothing_but_python() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "soak", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--minutes" in done.stdout
