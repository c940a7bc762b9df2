"""A campaign does what is worth most, passes over what it cannot do, and says so."""

import logging
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import SetupError, Stopped
from evenly.papers import campaign
from evenly.papers import ledger as book
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.reproduction import grow
from evenly.records.lock import Busy
from evenly.sweep.launch import JobsFailed
from evenly.sweep.where import Where


def wanted(key: str, value: float, **more: object) -> Experiment:
    """An experiment whose smoke scale a campaign would run."""
    experiment = CATALOGUE[key]
    scale = replace(experiment.scales["smoke"], value=value, wanted=3, **more)
    return replace(experiment, scales={"smoke": scale})


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    first, second = wanted("chang2025/mistake9", 9.0), wanted("chang2025/theorem3.3", 1.0, minutes=600.0)
    known = {first.key: first, second.key: second}
    monkeypatch.setattr(campaign, "CATALOGUE", known)
    monkeypatch.setattr(campaign, "lower_priority", lambda: None)
    return known


def test_what_is_worth_most_an_hour_comes_first_and_a_row_with_all_seeds_is_left(catalogue, tmp_path: Path):
    steps = campaign.steps(tmp_path)
    assert [step.experiment.key for step in steps] == list(catalogue)
    for num, words in ((1, "1 row could grow"), (2, "2 rows could grow")):
        assert campaign.summary(steps[:num]).startswith(words)
    rows = list(campaign.run(ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1)))
    # What takes an hour at most is run whole.
    assert [(row["key"], len(row["seeds"])) for row in rows] == [
        ("chang2025/mistake9", 3), *(("chang2025/theorem3.3", n) for n in (1, 2, 3))
    ]  # fmt: skip
    assert campaign.steps(tmp_path) == []


@pytest.mark.parametrize(("at_once", "seeds"), [(1, 1), (4, 1), (5, 2), (1000, 3)])
def test_a_step_has_as_few_seeds_as_keep_every_core_busy(catalogue, tmp_path: Path, at_once: int, seeds: int):
    catalogue.clear()
    catalogue["nguyen2024/fig7"] = wanted("nguyen2024/fig7", 1.0, minutes=600.0)  # four runs for each seed
    [step] = campaign.steps(tmp_path, at_once=at_once)
    assert step.seeds == seeds


def test_an_experiment_without_its_data_is_passed_over_with_the_command_that_gets_them(
    catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    catalogue["chang2025/mistake9"] = wanted("chang2025/mistake9", 9.0, data=("cifar10",))
    with caplog.at_level(logging.WARNING):
        rows = list(
            campaign.run(ledger=tmp_path, runs=tmp_path / "runs", data_root=str(tmp_path), where=Where(at_once=1))
        )
    assert {row["key"] for row in rows} == {"chang2025/theorem3.3"}
    assert "chang2025/mistake9 at smoke is skipped" in caplog.text
    assert "evenly data get cifar10" in caplog.text


def test_a_row_that_was_edited_is_named_once_and_the_next_experiment_is_run(
    catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    how = {"ledger": tmp_path, "runs": tmp_path / "runs", "where": Where(at_once=1)}
    grow(catalogue["chang2025/mistake9"], "smoke", 1, **how)
    path = book.path_of(tmp_path, "chang2025/mistake9", "smoke")
    path.write_text(path.read_text().replace('"seeds": [', '"seeds": [ 5,'))
    with caplog.at_level(logging.WARNING):
        assert {row["key"] for row in campaign.run(**how)} == {"chang2025/theorem3.3"}
    assert caplog.text.count("chang2025/mistake9 at smoke is skipped") == 1
    assert "was edited" in caplog.text


@pytest.mark.parametrize("full", [SetupError, JobsFailed, Busy], ids=["disk", "worker", "busy"])
def test_an_experiment_that_cannot_be_run_now_is_told_and_the_next_one_is_run(
    full, catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    grow = campaign.grow

    def out_of_space(experiment: Experiment, *arguments: object, **more: object) -> object:
        if experiment.key == "chang2025/mistake9":
            raise full("runs/part cannot be written: No space left on device. Free some space and repeat.")
        return grow(experiment, *arguments, **more)

    monkeypatch.setattr(campaign, "grow", out_of_space)
    with caplog.at_level(logging.WARNING):
        rows = list(campaign.run(ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1)))
    assert {row["key"] for row in rows} == {"chang2025/theorem3.3"}
    assert "is skipped: runs/part cannot be written: No space left" in caplog.text


def test_an_experiment_whose_training_diverges_is_told_and_the_next_one_is_run(
    catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    data = {"name": "parity", "options": {"dim": 4}}
    recipe = {"data": data, "model": {"name": "mlp"}, "batch_size": 16, "epochs": 3, "optimizer": {"lr": 1e30}}
    catalogue["nguyen2024/diverging"] = Experiment(
        key="nguyen2024/diverging",
        title="Too large a step",
        claim="It is too large.",
        plan=lambda seeds: [
            Part(f"x {seed}", "train_and_measure:train_recipe", {"recipe": recipe, "seed": seed, "name": "x"})
            for seed in seeds
        ],
        claims=(Claim("error", "it has an error", "x.train_error > 0"),),
        scales={"smoke": Scale((0, 1), 0.1, value=1000.0)},
    )
    assert campaign.steps(tmp_path)[0].experiment.key == "nguyen2024/diverging"
    with caplog.at_level(logging.WARNING):
        rows = list(campaign.run(ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1)))
    assert {row["key"] for row in rows} == {"chang2025/mistake9", "chang2025/theorem3.3"}
    assert "nguyen2024/diverging at smoke is skipped" in caplog.text
    assert "lr" in caplog.text


def test_a_campaign_that_is_stopped_does_not_go_on(catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stop(*_: object, **__: object) -> None:
        raise Stopped("the time limit of the job")

    monkeypatch.setattr(campaign, "grow", stop)
    with pytest.raises(Stopped, match="the time limit of the job"):
        list(campaign.run(ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1)))


@pytest.mark.parametrize("hours", [float("inf"), 1e9, 1e300])
def test_more_hours_than_a_clock_can_wait_for_are_as_many_as_it_takes(
    hours: float, catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    catalogue.pop("chang2025/theorem3.3")
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    assert len(list(campaign.run(ledger=tmp_path, runs=tmp_path / "runs", hours=hours, where=Where(at_once=1)))) == 1
    assert failed == []


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_the_time_that_is_up_stops_a_campaign_also_in_the_background(catalogue, tmp_path: Path, handler: Any):
    """A shell starts a process in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        _stops_when_the_time_is_up(tmp_path)
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)


def _stops_when_the_time_is_up(tmp_path: Path) -> None:
    with pytest.raises(Stopped, match="--hours is up"):
        for _ in campaign.run(ledger=tmp_path, runs=tmp_path / "runs", hours=1e-6, where=Where(at_once=1)):
            pass


def test_the_headline_claims_come_in_the_order_of_their_weight(tmp_path: Path):
    order = [step.experiment.key for step in campaign.steps(tmp_path)]
    wanted_first = [
        "nguyen2024/fig9-cifar-mnist", "nguyen2024/fig7", "nguyen2024/fig7-sam", "springer2024/table1-cifar-mnist",
        "springer2024/table1-fmnist-mnist", "nguyen2024/table2-airbench",
    ]  # fmt: skip
    assert [key for key in order if key in wanted_first] == wanted_first
