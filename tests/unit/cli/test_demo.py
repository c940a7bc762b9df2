"""`evenly demo` as a person runs it: the quick one once, then again, and wrong words."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def demo(*words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "EVENLY_DATA"}
    command = [sys.executable, "-m", "evenly", "demo", *words]
    return subprocess.run(command, capture_output=True, text=True, env=clean, timeout=300)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "with space"


@pytest.fixture(scope="module")
def first(out: Path) -> subprocess.CompletedProcess[str]:
    return demo("--quick", "--out", str(out))


def test_the_path_of_the_page_is_all_that_goes_to_stdout(first: subprocess.CompletedProcess[str], out: Path) -> None:
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{out / 'index.html'}\n"
    assert (out / "index.html").stat().st_size < 10_000_000
    assert not list(out.rglob("*.part"))


def test_the_terminal_tells_the_story_and_how_to_open_the_page(
    first: subprocess.CompletedProcess[str], out: Path
) -> None:
    told = " ".join(first.stderr.split())
    assert "finds exactly the examples that lack the easy patch, with 3 of 3 seeds" in told
    assert "(higher with 3 of 3 seeds" in told
    assert "Test error on data made like the training set" in told
    assert f"Open {(out / 'index.html').as_uri()}" in told
    page = (out / "index.html").read_text()
    assert "evenly demo --quick --out" in page
    assert "with 3 of 3 seeds" in page


def test_a_second_call_uses_what_is_finished_and_a_foreign_page_is_kept_unless_forced(
    first: subprocess.CompletedProcess[str], out: Path
) -> None:
    assert first.returncode == 0, first.stderr
    ours, runs = (out / "index.html").read_text(), {p: p.stat().st_mtime_ns for p in out.rglob("done")}
    (out / "index.html").write_text("<h1>mine</h1>")
    refused = demo("--quick", "--out", str(out))
    assert refused.returncode == 2
    assert "is not a page of evenly's" in refused.stderr
    assert "--force" in refused.stderr
    assert (out / "index.html").read_text() == "<h1>mine</h1>"
    again = demo("--quick", "--out", str(out), "--force")
    assert again.returncode == 0, again.stderr
    assert "finished before" in again.stderr
    assert (out / "index.html").read_text() == ours
    assert {p: p.stat().st_mtime_ns for p in out.rglob("done")} == runs


@pytest.mark.parametrize("option", ["--out", "--runs"])
def test_a_file_in_the_way_is_named_before_anything_is_trained(option: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    words = {"--out": str(tmp_path / "new")} | {option: str(tmp_path / "taken" / "inside")}
    result = demo("--quick", *(word for pair in words.items() for word in pair))
    assert result.returncode == 2
    assert f"{tmp_path / 'taken'} is a file" in result.stderr
    assert option in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_trained() -> None:
    result = demo("--quick", "--out", "/proc/nowhere")
    assert result.returncode == 4
    assert "cannot make /proc/nowhere" in result.stderr
    assert "1 of 2" not in result.stderr


def test_ctrl_c_leaves_nothing_half_written_and_no_trace_of_the_code(tmp_path: Path) -> None:
    # Shells start background jobs with SIGINT ignored, and children inherit it.
    program = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from evenly.cli import main\nsys.exit(main(['demo', '--out', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "demo")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "1 of 2" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=180)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert [path for path in (tmp_path / "demo").rglob("*") if path.is_file()] == []


def test_a_mistyped_option_is_answered_with_the_right_one() -> None:
    result = demo("--quik")
    assert result.returncode == 2
    assert "--quick" in result.stderr
