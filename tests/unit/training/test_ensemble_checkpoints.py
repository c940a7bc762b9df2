"""An ensemble that is killed within a piece of work continues from its checkpoint, with the same bits."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from evenly.data import load
from evenly.errors import DataError, Stopped
from evenly.models import build
from evenly.records import Run
from evenly.training.ensemble import Ensemble
from evenly.training.ensemble.checkpoints import keeping_checkpoints

DATA = load("digit-dominoes", seed=0, size=40).train
STEPS = 12


class Killed(Exception):
    """Stands for the end of a process: nothing is saved on the way out."""


class Schedule:
    """A constant rate that counts the steps, and may do something before one of them."""

    def __init__(self, at: int | None = None, do: Callable[[], Any] | None = None) -> None:
        self.seen: list[int] = []
        self.at, self.do = at, do

    def __call__(self, step: int) -> float:
        if step == self.at and self.do is not None:
            self.do()
        self.seen.append(step)
        return 1.0


def kill() -> None:
    raise Killed


def ensemble(
    schedule: Schedule, *, first: int = 0, lr: float = 0.05, rules: Sequence[str] = ("sgd", "sam")
) -> Ensemble:
    models = [build("mlp", input_shape=DATA.shape, num_classes=2, rng=first + k, width=4, dropout=0.0) for k in (0, 1)]
    return Ensemble(
        models,
        DATA,
        lr=lr,
        momentum=0.9,
        rule=list(rules),
        rho=[0.0, 0.1],
        batch_size=16,
        seeds=[0, 1],
        copies=torch.arange(len(DATA)) % 3 + 1,
        noise=torch.full((len(DATA),), 0.2),
        schedule=schedule,
    )


def weights(trained: Ensemble) -> torch.Tensor:
    return torch.cat([each.flatten() for each in trained.parameters().values()])


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path, {}, "c0ffee")


@pytest.fixture(scope="module")
def uninterrupted() -> torch.Tensor:
    trained = ensemble(Schedule())
    trained.run(STEPS)
    return weights(trained)


def test_a_killed_ensemble_continues_after_its_last_checkpoint_with_the_same_bits(
    run: Run, uninterrupted: torch.Tensor
) -> None:
    with keeping_checkpoints(run, pace=0.0), pytest.raises(Killed):
        ensemble(Schedule(7, kill)).run(STEPS)
    schedule = Schedule()
    with keeping_checkpoints(run, pace=0.0) as kept:
        again = ensemble(schedule)
        again.run(STEPS)
    assert schedule.seen == list(range(7, STEPS))
    assert torch.equal(weights(again), uninterrupted)
    assert kept.earlier > 0


def test_what_was_seen_between_two_calls_is_seen_again(run: Run, uninterrupted: torch.Tensor) -> None:
    def work(schedule: Schedule) -> tuple[torch.Tensor, torch.Tensor]:
        trained = ensemble(schedule)
        trained.run(4)
        between = weights(trained).clone()
        trained.run(STEPS - 4)
        return between, weights(trained)

    expected, _ = work(Schedule())
    with keeping_checkpoints(run, pace=0.0), pytest.raises(Killed):
        work(Schedule(9, kill))
    schedule = Schedule()
    with keeping_checkpoints(run, pace=0.0):
        between, last = work(schedule)
    assert schedule.seen == [9, 10, 11]
    assert torch.equal(between, expected)
    assert torch.equal(last, uninterrupted)


def test_short_calls_before_a_long_one_are_made_again_and_leave_its_checkpoint(
    run: Run, uninterrupted: torch.Tensor
) -> None:
    with keeping_checkpoints(run) as kept:
        trained = ensemble(Schedule())
        trained.run(4)
        kept.pace = 0.0
        trained.schedule = Schedule(9, kill)
        with pytest.raises(Killed):
            trained.run(STEPS - 4)
    schedule = Schedule()
    with keeping_checkpoints(run, pace=0.0):
        again = ensemble(schedule)
        again.run(4)
        again.run(STEPS - 4)
    assert schedule.seen == [0, 1, 2, 3, 9, 10, 11]
    assert torch.equal(weights(again), uninterrupted)


def test_a_finished_ensemble_is_not_trained_again_when_the_next_one_is_killed(run: Run) -> None:
    def work(schedules: Sequence[Schedule]) -> list[torch.Tensor]:
        done = []
        for number, schedule in enumerate(schedules):
            trained = ensemble(schedule, first=10 * number)
            trained.run(STEPS)
            done.append(weights(trained))
        return done

    with keeping_checkpoints(run, pace=0.0), pytest.raises(Killed):
        work([Schedule(), Schedule(5, kill)])
    schedules = [Schedule(), Schedule()]
    with keeping_checkpoints(run, pace=0.0):
        again = work(schedules)
    assert [each.seen for each in schedules] == [[], list(range(5, STEPS))]
    assert all(map(torch.equal, again, work([Schedule(), Schedule()])))


@pytest.mark.parametrize("other", [{"first": 5}, {"lr": 0.1}, {"rules": ("sgd", "asam")}])
def test_the_checkpoint_of_another_ensemble_is_not_used(run: Run, other: dict[str, Any]) -> None:
    with keeping_checkpoints(run, pace=0.0), pytest.raises(Killed):
        ensemble(Schedule(7, kill)).run(STEPS)
    schedule = Schedule()
    with keeping_checkpoints(run, pace=0.0):
        ensemble(schedule, **other).run(STEPS)
    assert schedule.seen == list(range(STEPS))


def test_sigterm_finishes_the_step_saves_and_stops(run: Run, uninterrupted: torch.Tensor) -> None:
    stop = Schedule(3, lambda: signal.raise_signal(signal.SIGTERM))
    with keeping_checkpoints(run), pytest.raises(Stopped, match="after step 4 of 12"):
        ensemble(stop).run(STEPS)
    schedule = Schedule()
    with keeping_checkpoints(run):
        again = ensemble(schedule)
        again.run(STEPS)
    assert schedule.seen == list(range(4, STEPS))
    assert torch.equal(weights(again), uninterrupted)


def test_a_run_that_measures_is_not_saved_since_a_checkpoint_would_lack_what_it_saw(run: Run) -> None:
    with keeping_checkpoints(run, pace=0.0):
        trained = ensemble(Schedule())
        seen = trained.run(3, measure=lambda params, step: {"loss": trained.loss()}, at=[1, 3])
    assert seen.steps == [1, 3]
    assert not (run.path / "checkpoints").exists()


def test_short_work_saves_nothing(run: Run) -> None:
    with keeping_checkpoints(run):
        ensemble(Schedule()).run(STEPS)
    assert not (run.path / "checkpoints").exists()


def test_a_damaged_checkpoint_is_refused_with_the_remedy(run: Run) -> None:
    with keeping_checkpoints(run, pace=0.0), pytest.raises(Killed):
        ensemble(Schedule(7, kill)).run(STEPS)
    [saved] = (run.path / "checkpoints").iterdir()
    saved.write_bytes(saved.read_bytes()[:-1] + b"?")
    with keeping_checkpoints(run), pytest.raises(DataError, match="Remove it"):
        ensemble(Schedule()).run(STEPS)
