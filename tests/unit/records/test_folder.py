"""Damaged runs never hide others, killed writers leave nothing, and a full or limited disk is told in a sentence."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenly import atomic, records
from evenly.cli import main
from evenly.errors import DataError, SetupError, UsageError
from evenly.records import Run, comparison, index
from evenly.records.identity import Identity

NESTED = "[" * 100_000
DAMAGE = {
    "done": ["[1]", '{"seconds": [1]}', NESTED, "5", '"x"', "", "{", '{"epoch": "x"}', "1" * 5000],
    "metrics.jsonl": [NESTED + "\n", "5\n", "[]\n", '{"train.error": [1]}\n'],
    "recipe.yaml": ["data: 5", "[1]", "5", NESTED, "data: {name: [1]}", "seed: x"],
    "failed": [NESTED, "[1]", "{}"],
    "environment.json": [NESTED, "5", "[1]"],
    "identity.json": [NESTED, "5", "{}", '{"id": 5}'],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in DAMAGE.items() for text in texts])
def test_a_damaged_run_never_hides_the_others(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for digest in ("aaa", "bbb", "ccc"):
        with Run.create(tmp_path, {"data": {"name": "digits"}, "seed": 0}, digest) as run:
            run.log(epoch=1)
            if digest != "bbb" or name == "done":
                run.finish({"epoch": 1, "seconds": 1.0})
    (tmp_path / "bbb" / name).write_text(text)
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "aaa" in said.out
    assert "ccc" in said.out
    assert "bbb" in said.out or "bbb" in said.err
    verbs = [["runs", "show", "bbb", "--runs", str(tmp_path)]]
    verbs += [["report", str(tmp_path / "bbb"), "--out", str(tmp_path / "p.html")]] if text == NESTED else []
    assert all(main(verb) in (0, 2, 3) for verb in verbs)  # told, and never a traceback
    records.runs(tmp_path)


def test_every_json_of_a_run_is_read_by_one_reader_that_names_the_file(tmp_path: Path) -> None:
    run = Run.create(tmp_path, {"seed": 0}, "aaa")
    for name, read in (
        ("done", run.summary),
        ("failed", run.failure),
        ("environment.json", run.stamps),
        ("metrics.jsonl", run.metrics),
        ("found.json", lambda: run.read_json("found.json")),
    ):
        (run.path / name).write_text(NESTED + "\n")
        with pytest.raises(DataError, match=name):
            read()


PART = """
import sys, time
from pathlib import Path
from evenly import atomic
with atomic.replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def writer(path: Path) -> "subprocess.Popen[str]":
    """A process that is in the middle of writing `path`."""
    process = subprocess.Popen([sys.executable, "-c", PART, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as said:
        assert said.readline() == "ready\n"
    return process


def parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.endswith(".part"))


def test_what_a_killed_write_left_is_swept_by_the_next_write_of_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for _ in range(3):
        process = writer(path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert len(parts(tmp_path)) == 1  # each writer took the place of the one before
    atomic.write_text(path, "whole")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_file_of_a_live_writer_is_never_swept(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    process = writer(path)
    try:
        atomic.write_text(path, "whole")
        atomic.sweep(tmp_path)
        assert len(parts(tmp_path)) == 1
        assert path.read_text() == "whole"
    finally:
        process.kill()
        process.wait()
    atomic.sweep(tmp_path)
    assert parts(tmp_path) == []


def test_whoever_holds_a_run_sweeps_what_was_left_in_it(tmp_path: Path) -> None:
    run = Run.create(tmp_path, {"seed": 0}, "aaa")
    run.write_json("measurements/a.json", 1)
    run.close()
    for name in (".done.x3k.part", "measurements/.a.json.0.part"):  # of 0.1, and of now
        (run.path / name).write_text("half")
    assert len(parts(run.path)) == 2
    Run.create(tmp_path, {"seed": 0}, "aaa").close()
    assert parts(run.path) == []


def test_many_writers_of_one_file_at_once_all_succeed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from evenly import atomic\n"
        "for n in range(60): atomic.write_text(Path(sys.argv[1]), sys.argv[2] * 1000)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "x"), sign]) for sign in "abcd"]
    assert [process.wait() for process in running] == [0] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert len(set((tmp_path / "x").read_text())) == 1


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from evenly.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_limit_on_the_size_of_files_is_told_like_a_full_disk(tmp_path: Path) -> None:
    words = [
        "train",
        "parity",
        "--epochs",
        "1",
        "--batch-size",
        "50",
        "--device",
        "cpu",
        "--runs",
        str(tmp_path / "runs"),
    ]
    said = subprocess.run([sys.executable, "-c", LIMITED, *words], capture_output=True, text=True)
    assert said.returncode == 4
    assert "File too large. Files may not grow that large here: raise the limit" in said.stderr
    assert "Traceback" not in said.stderr
    assert parts(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_every_kind_of_full_disk_leaves_the_old_file(number: int, tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "x", "old")

    def write() -> None:
        with atomic.replacing(tmp_path / "x", "w") as file:
            file.write("new")
            raise OSError(number, os.strerror(number))

    with pytest.raises(SetupError, match=os.strerror(number)):
        write()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "old")]


def test_no_record_is_written_where_the_folder_has_gone(tmp_path: Path) -> None:
    run = Run.create(tmp_path, {"seed": 0}, "aaa")
    (tmp_path / "aaa").rename(tmp_path / "away")
    for write in (
        lambda: run.log(epoch=1),
        lambda: run.write_json("a.json", 1),
        lambda: run.write_csv("a.csv", [{"a": 1}]),
        lambda: run.finish({}),
        lambda: run.truncate_metrics(0),
    ):
        with pytest.raises(SetupError, match="was moved, renamed or deleted while it was written"):
            write()
    assert [p.name for p in tmp_path.iterdir()] == ["away"]


def identity(seed: int, data: str = "1f", **more: object) -> Identity:
    settings = {"data": {"name": "d.npz"}, "seed": seed, "epochs": 3, **more}
    return Identity(settings, settings, {"name": "d.npz", "fingerprint": data, "drawn_from": None, "splits": {}})


def made(root: Path, one: Identity) -> Run:
    with Run.create(root, one.settings, one.id, identity=one) as run:
        run.log(epoch=3, **{"test.error": 0.1})
        run.finish({"epoch": 3, "test.error": 0.1})
    return run


def opened(code: str, *arguments: str) -> list[str]:
    """The files that a process opens below a folder, by an audit hook."""
    hook = (
        "import sys; seen = []\n"
        "sys.addaudithook(lambda e, a: seen.append(str(a[0])) if e == 'open' else None)\n"
        f"{code}\n"
        "print(*[path for path in seen if path.startswith(sys.argv[1])], sep='\\n')"
    )
    return subprocess.run(
        [sys.executable, "-c", hook, *arguments], capture_output=True, text=True, check=True
    ).stdout.split()


def test_a_page_of_one_run_opens_the_runs_that_a_comparison_sets_beside_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    siblings = [made(root, identity(seed)) for seed in range(2)]
    strangers = [made(root, identity(seed, batch_size=seed)) for seed in range(60)]
    others = [made(root, identity(seed, data="2e")) for seed in range(2)]
    assert len({run.id for run in (*siblings, *strangers, *others)}) == 64
    code = "from evenly.report.experiments import page_of; page_of([sys.argv[1] + '/' + sys.argv[2]])"

    def opened_runs() -> set[str]:
        files = opened(code, str(root), siblings[0].id)
        assert len(files) < 80
        return {Path(path).relative_to(root).parts[0] for path in files} - {"comparisons"}

    assert opened_runs() == {siblings[0].id}, "no stored comparison names another"
    rows = {str(seed): {"run": run.id, "state": "done", "error": 0.1} for seed, run in enumerate(siblings)}
    method = {"name": "plain", "label": "plain", "runs": rows, "settings": {}, "error": None, "difference": None}
    question = {"id": "c0ffee", "state": "done", "data": "d.npz", "split": "test", "seeds": [0, 1], "early": {}}
    comparison.write(root, {**question, "baseline": "plain", "methods": [method | {"cost": 1.0, "control": False}]})
    assert opened_runs() == {run.id for run in siblings}


def test_the_index_is_a_note_that_may_be_lost_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    runs = [made(root, identity(seed)) for seed in range(3)]
    whole = index.entries(root)
    assert sorted(whole) == sorted(run.id for run in runs)
    (notes,) = (tmp_path / "cache").rglob("*.jsonl")
    for content in (b"", b"[" * 100_000 + b"\n", b'{"run": 5}\n', notes.read_bytes()[:-20], b"\xff\xfe\n"):
        notes.write_bytes(content)
        assert index.entries(root) == whole
    monkeypatch.setenv("EVENLY_CACHE", "/proc/nowhere")
    assert index.entries(root) == whole


def test_a_run_is_found_by_the_beginning_of_its_id_without_opening_others(tmp_path: Path) -> None:
    for name in ("aaa", "aab", "bbb"):
        Run.create(tmp_path, {"seed": 0}, name).close()
    assert Run.open("b", tmp_path).id == "bbb"
    with pytest.raises(UsageError, match=r"'aa' begins the ID of 2 runs"):
        Run.open("aa", tmp_path)


def test_the_last_run_made_in_the_same_words_is_named_among_very_many_quickly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenly.records.previous import previous_run

    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    for seed in range(50):
        made(root, identity(seed))
    old = made(root, identity(0, data="2e"))
    time.sleep(0.01)
    said = previous_run(root, identity(0, data="3d"))
    assert said is not None
    assert f"run {old.id} had the same request, but its data were different" in said
    calls = []
    monkeypatch.setattr("evenly.records.identity.json_text.read", lambda path: calls.append(path) or {})
    previous_run(root, identity(0, data="4c"))
    assert len(calls) <= 8
