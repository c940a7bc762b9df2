"""What a person and a file are told of a plan while it is carried out."""

import json
import os
import time
from pathlib import Path

import pytest

from evenly import progress
from evenly.errors import DataError, Stopped, UsageError
from evenly.records import Run
from evenly.sweep import Job, Plan, Where, launch, status
from evenly.sweep.status import JobsFailed, Status, under_way
from evenly.sweep.worker import Outcome, seconds_taken

NOTHING = "evenly.sweep.worker:do_nothing"
PLAN = Plan([Job(f"sam, seed {n}", NOTHING) for n in range(4)])


def test_a_line_says_how_many_runs_are_done_and_which_one_is_going_on(tmp_path: Path) -> None:
    with Status(PLAN, Where(), tmp_path / "state", "runs") as status:
        assert status.sentence() == "0 of 4 runs done"
        status.begin(PLAN["sam, seed 0"])
        status.begin(PLAN["sam, seed 1"])
        assert status.sentence() == "0 of 4 runs done, 2 running: sam, seed 0"
        status.end(Outcome("sam, seed 0", "done", seconds=3600.0))
        assert status.sentence() == "1 of 4 runs done, about 3.0 h left: sam, seed 1"
    state = json.loads((tmp_path / "state" / "state.json").read_text())
    assert state["over"]
    assert (state["jobs"], list(state["running"])) == (4, ["sam, seed 1"])
    assert state["ended"] == {"sam, seed 0": ["done", 3600.0, ""]}


def test_the_time_left_follows_the_length_of_jobs_and_those_that_are_running(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(status.time, "time", lambda: now[0])
    plan = Plan([Job("early", NOTHING, cost=0.1), Job("plain", NOTHING), Job("useful", NOTHING, cost=1.5)])
    with Status(plan, Where(), None, "runs") as progress_of:
        progress_of.begin(plan["early"])
        progress_of.end(Outcome("early", "done", seconds=360.0))
        progress_of.begin(plan["plain"])
        assert progress_of.sentence() == "1 of 3 runs done, about 2.5 h left: plain"
        now[0] += 1800.0
        assert progress_of.sentence() == "1 of 3 runs done, about 2.0 h left: plain"
        now[0] += 3 * 1800.0  # twice as long as the early run made believe
        assert progress_of.sentence() == "1 of 3 runs done, about 3.0 h left: plain"


def test_the_last_run_is_said_to_be_late_rather_than_nearly_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(status.time, "time", lambda: now[0])
    names = ("plain", "steps", "collect")
    plan = Plan([Job(name, NOTHING, cost=status.COLLECTING if name == "collect" else 1.0) for name in names])
    with Status(plan, Where(), None, "runs") as progress_of:
        progress_of.end(Outcome("plain", "done", seconds=600.0))
        progress_of.begin(plan["steps"])
        now[0] += 590.0
        assert "about 22.0 s left" in progress_of.sentence()
        now[0] += 300.0
        assert progress_of.sentence() == "1 of 3 runs done, longer than expected: steps"


def finish_training(runs: str, *, run: str) -> dict[str, str]:
    """The rest of a run that another command began."""
    time.sleep(0.6)
    return {"run": run}


def test_a_job_that_was_resumed_counts_with_all_its_seconds(tmp_path: Path) -> None:
    with Run.create(tmp_path, {}, "0123456789ab", environment={}) as run:
        run.finish({"seconds": 3600.0})
    work, names = f"{__name__}:finish_training", ("0123456789ab", "nowhere")
    jobs = [Job(f"seed {n}", work, {"run": name}) for n, name in enumerate(names)]
    ended: dict[str, float] = {}

    def listen(job: Job, outcome: Outcome | None) -> None:
        if outcome is not None:
            ended[job.name] = outcome.seconds

    launch(Plan(jobs), Where(at_once=1), runs=tmp_path, listener=listen)
    assert ended["seed 0"] == 3600.0
    assert 0.5 < ended["seed 1"] < 60, "of a run that is not there, what the job took"
    assert seconds_taken({"run": "0123456789ab"}, str(tmp_path), 0.1) == 0.1, "done before"


def test_a_job_that_only_collects_says_nothing_about_the_time_left() -> None:
    plan = Plan([Job("collect", NOTHING, cost=status.COLLECTING), *(Job(f"seed {n}", NOTHING) for n in range(3))])
    with Status(plan, Where(), None, "runs") as progress_of:
        progress_of.end(Outcome("collect", "done", seconds=30.0))
        assert progress_of.sentence() == "1 of 4 runs done"


def test_failed_and_skipped_jobs_do_not_count_as_done() -> None:
    plan = Plan([Job(f"seed {n}", NOTHING) for n in range(4)])
    with Status(plan, Where(), None, "runs") as progress_of:
        for number, state in enumerate(["done", "failed", "skipped"]):
            progress_of.end(Outcome(f"seed {number}", state))
        assert progress_of.sentence() == "1 of 4 runs done, 1 failed, 1 skipped"


def test_a_running_job_that_only_collects_does_not_slow_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(status.time, "time", lambda: now[0])
    plan = Plan([*(Job(f"seed {n}", NOTHING) for n in range(2)), Job("collect", NOTHING, cost=status.COLLECTING)])
    with Status(plan, Where(), None, "runs") as progress_of:
        progress_of.end(Outcome("seed 0", "done", seconds=3600.0))
        progress_of.begin(plan["collect"])
        now[0] += 600.0
        assert progress_of.sentence() == "1 of 3 runs done, about 1.0 h left: collect"


def test_without_a_terminal_a_line_is_printed_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Bar("training c0ffee", total=100) as bar:
        for second in range(1, 91):
            now[0] = float(second)
            bar.advance()
    assert capsys.readouterr().err.splitlines() == [
        "training c0ffee: 30%, about 1.2 min left",
        "training c0ffee: 60%, about 40.0 s left",
        "training c0ffee: 90%, about 10.0 s left",
    ]


def test_a_short_command_prints_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Bar("reading", total=2) as bar:
        bar.advance()
    launch(PLAN, runs="unused")
    assert capsys.readouterr().err == ""


def test_failures_for_one_reason_are_told_once_and_give_their_exit_code() -> None:
    with Status(PLAN, Where(), None, "runs") as status:
        for name in PLAN:
            status.end(Outcome(name, "failed", error="the loss is nan", host="node7", exit_code=UsageError.exit_code))
    with pytest.raises(
        JobsFailed, match=r"4 of 4 runs failed, 0 are done:\n  sam, seed 0 and 3 more on node7: the lo"
    ) as c:
        status.results()
    assert c.value.exit_code == 2


def test_a_plan_that_was_stopped_says_how_much_is_done() -> None:
    with Status(PLAN, Where(), None, "runs") as status:
        status.end(Outcome("sam, seed 0", "done"))
    with pytest.raises(Stopped, match="1 of 4 runs are done"):
        status.results()


def refuse(runs: str) -> None:
    """A job that fails."""
    raise DataError("no labels")


def test_in_this_process_too_a_failure_ends_only_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jobs_of_this_test", sys.modules[__name__])
    plan = Plan(
        [Job("bad", "jobs_of_this_test:refuse"), Job("after", NOTHING, needs=("bad",)), Job("good", NOTHING, {"n": 1})]
    )
    heard = []
    with pytest.raises(JobsFailed, match="1 of 3 runs failed, 1 is done") as caught:
        launch(plan, listener=lambda job, outcome: heard.append((job.name, outcome and outcome.state)))
    assert caught.value.exit_code == 3
    assert heard == [("bad", None), ("bad", "failed"), ("after", "skipped"), ("good", None), ("good", "done")]
    with pytest.raises(DataError, match="no labels"):
        launch(plan, stop_at_failure=True)


def test_a_plan_that_is_carried_out_can_be_watched_from_outside(tmp_path: Path, monkeypatch) -> None:
    with Status(PLAN, Where("ray"), tmp_path / "sweep" / "abc", "runs") as status:
        status.begin(PLAN["sam, seed 0"])
        assert under_way(tmp_path) == ["0 of 4 runs done: sam, seed 0 (on ray)"]
        later = time.time() + 100
        with monkeypatch.context() as patch:
            patch.setattr("evenly.sweep.status.time.time", lambda: later)  # a command that was killed says nothing more
            assert under_way(tmp_path) == []
    assert under_way(tmp_path) == []


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[1]", b"\xff", b'{"over": false, "now": "x"}', None])
def test_a_plan_whose_state_is_damaged_or_a_pipe_is_passed_over(content: bytes | None, tmp_path: Path) -> None:
    state = tmp_path / "sweep" / "abc" / "state.json"
    state.parent.mkdir(parents=True)
    if content is None:
        os.mkfifo(state)
    else:
        state.write_bytes(content)
    assert under_way(tmp_path) == []


def test_ten_thousand_jobs_are_told_in_linear_time(tmp_path: Path) -> None:
    """Every job that ended was counted again after each: ten times the jobs took a hundred times the time."""

    def seconds(num: int) -> float:
        plan = Plan([Job(f"job {n}", NOTHING) for n in range(num)])
        start = time.process_time()
        with Status(plan, Where(), tmp_path, "runs") as status:
            for job in plan.values():
                status.begin(job)
                status.end(Outcome(job.name, "done", seconds=1.0))
        return time.process_time() - start

    seconds(100)
    assert seconds(10_000) < 60 * seconds(1000)


def test_a_second_interrupt_that_comes_while_the_first_is_answered_cancels_too(monkeypatch):
    said, cancelled = [], []

    def tell(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "tell", tell)
    status.leave_or_cancel("Slurm (7)", lambda: cancelled.append("7"))
    assert cancelled == ["7"]
    assert said[-1].startswith("Cancelled.")
