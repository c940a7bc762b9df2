"""Archives of runs: finished runs are kept, unfinished ones are replaced, and folders of runs are merged."""

from pathlib import Path

from evenly.sweep import Job, run_archives


def lay(folder: Path, name: str, **files: str) -> None:
    (folder / name).mkdir(parents=True)
    for file, text in {"recipe.yaml": "epochs: 1", **files}.items():
        (folder / name / file).write_text(text)


def test_runs_and_parts_of_experiments_join_those_that_are_there(tmp_path):
    """The parts of a second job were dropped, since the folder of the first one's was there."""
    for number in range(2):
        made = tmp_path / f"node{number}"
        lay(made, f"run{number}", done="{}")
        lay(made, f"parts/part{number}", done="{}")
        (made / "sweep").mkdir()
        (made / "sweep" / "job.log").write_text("printed")
        run_archives.unpack(run_archives.pack(made), tmp_path)
    assert {path.parent.name for path in tmp_path.glob("run*/done")} == {"run0", "run1"}
    assert {path.parent.name for path in tmp_path.glob("parts/*/done")} == {"part0", "part1"}
    assert not (tmp_path / "sweep").exists()
    assert not list(tmp_path.glob(".arriving*"))


def test_a_run_that_is_done_stays_and_one_that_was_stopped_is_replaced(tmp_path):
    home, node = tmp_path / "home", tmp_path / "node"
    lay(home, "a", done="here")
    lay(home, "b", checkpoint="step 3")
    for name in "ab":
        lay(node, name, done="there")
    run_archives.unpack(run_archives.pack(node), home)
    assert (home / "a" / "done").read_text() == "here"
    assert (home / "b" / "done").read_text() == "there"
    assert not (home / "b" / "checkpoint").exists()


def test_the_runs_of_a_job_are_remembered_and_given_to_it_again(tmp_path):
    home, node, other = tmp_path / "home", tmp_path / "node", tmp_path / "other"
    home.mkdir(), other.mkdir()
    lay(node, "a", done="{}")
    lay(node, "parts/p", done="{}")
    job = Job("seed 0", "m:f", {"seed": 0})
    content = run_archives.pack(node)
    run_archives.unpack(content, home)
    run_archives.remember(home, job, content)
    run_archives.unpack(run_archives.pack_previous_runs(home, Job("another name", "m:f", {"seed": 0})), other)
    assert (other / "a" / "done").exists()
    assert (other / "parts" / "p" / "done").exists()
    assert run_archives.pack_previous_runs(home, Job("seed 1", "m:f", {"seed": 1})) == b""
