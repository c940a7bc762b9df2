"""A comparison end to end: paired seeds, costs, what is stored while it runs, failures, and the same bits anywhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import DataError, UsageError
from evenly.intervals import paired_difference
from evenly.recipe import Data, Model, Optimizer, Recipe, Until
from evenly.records import Run
from evenly.records import comparison as stored
from evenly.report.experiments.lookup import Folder
from evenly.sweep import Where
from evenly.sweep.launch import JobsFailed
from evenly.training import comparison_jobs
from evenly.training.comparison import Design, compare, plan_runs
from evenly.training.forecast import forecast
from evenly.training.loop import END

SMALL = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 32}),
    optimizer=Optimizer(lr=0.05),
    epochs=4,
    batch_size=64,
    evaluate_every=4,
)
METHODS = ("plain", "sam", "useful", "sam+useful", "random", "steps", "useful:8+noise", "batch", "logit-penalty")
DESIGN = Design(SMALL, METHODS, (0, 1), until=Until("epoch", 1))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """All methods on two seeds."""
    runs = tmp_path_factory.mktemp("runs")
    return runs, compare(DESIGN, runs=runs, device="cpu")


def method(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in found["methods"] if each["name"] == name)


def test_every_method_has_a_run_of_every_seed_and_one_early_run_is_shared(made: tuple[Path, dict]) -> None:
    runs, found = made
    assert [each["name"] for each in found["methods"]] == list(METHODS)
    for each in found["methods"]:
        assert [row["state"] for row in each["runs"].values()] == ["done"] * 2
        for seed, row in each["runs"].items():
            run = Run(runs / row["run"])
            assert run.recipe["seed"] == int(seed)
            assert row["error"] == run.summary()["test.error"]
    early = {run for run in (path.name for path in runs.iterdir()) if (runs / run / "outputs.safetensors").exists()}
    assert early == {row["run"] for row in found["early"].values()}
    assert len(early) == 2
    assert not list(runs.glob(f"*/{END}")), "the state at the end of an early run goes once plain training is done"


def test_costs_are_gradients_relative_to_plain_training(made: tuple[Path, dict]) -> None:
    _, found = made
    share = method(found, "useful")["runs"]["0"]["hard_share"]
    costs = {each["name"]: each["runs"]["0"]["cost"] for each in found["methods"]}
    early = 1 / 4
    assert costs["plain"] == 1.0
    assert costs["sam"] == 2.0
    assert costs["useful"] == pytest.approx(1 + share + early)
    assert costs["sam+useful"] == pytest.approx(2 * (1 + share) + early)
    assert costs["useful:8+noise"] == pytest.approx(1 + 7 * share + early)
    assert costs["random"] == costs["useful"]
    assert costs["batch"] == costs["logit-penalty"] == 1.0
    assert costs["steps"] == pytest.approx(round(4 * (1 + share)) / 4)


def test_a_last_batch_that_is_dropped_does_not_make_methods_look_cheaper(tmp_path: Path) -> None:
    """Of 100 examples an epoch then shows 64, under plain training as under SAM."""
    small = Recipe(data=Data("parity", {"dim": 5}), model=Model("mlp"), epochs=1, batch_size=64, drop_last=True)
    found = compare(Design(small, ("plain", "sam"), (0,)), runs=tmp_path, device="cpu")
    assert [each["cost"] for each in found["methods"]] == [1.0, 2.0]


def test_differences_are_paired_by_seed(made: tuple[Path, dict]) -> None:
    _, found = made
    plain, own = (method(found, name) for name in ("plain", "batch"))
    assert plain["difference"] is None
    gap = paired_difference(*([row["error"] for row in each["runs"].values()] for each in (own, plain)))
    assert own["difference"]["mean"] == pytest.approx(gap.mean)
    assert own["difference"]["high"] == pytest.approx(gap.high)
    assert (own["difference"]["to"], own["difference"]["n"]) == ("plain", 2)
    worst = method(found, "plain")["runs"]["0"]
    assert worst["worst_group"].startswith("easy_present.")
    assert worst["worst"] >= worst["error"]


def test_what_is_returned_is_what_is_stored(made: tuple[Path, dict]) -> None:
    runs, found = made
    kept = stored.read(runs, found["id"])
    assert kept["methods"] == found["methods"]
    assert (kept["state"], kept["baseline"], kept["seeds"]) == ("done", "plain", [0, 1])
    assert kept["recommendation"]["sentence"]
    assert method(kept, "sam")["settings"] == {"ascent.rule": "sam", "ascent.rho": 0.05}
    assert method(kept, "useful:8+noise")["settings"]["resampling.factor"] == 8


def test_a_live_reader_sees_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = comparison_jobs.train_method

    def looking(runs: str, **arguments: Any) -> dict[str, Any]:
        (kept,) = stored.comparisons(tmp_path)
        seen.append((kept["state"], stored.progress(kept)["running"], stored.progress(kept)["done"]))
        return real(runs, **arguments)

    monkeypatch.setattr(comparison_jobs, "train_method", looking)
    compare(Design(SMALL, ("plain", "sam"), (0, 1)), runs=tmp_path, device="cpu")
    assert seen == [("running", 1, number) for number in range(4)]


def test_a_second_call_trains_nothing_and_finds_the_same(made: tuple[Path, dict]) -> None:
    runs, found = made
    times = {path: path.stat().st_mtime_ns for path in runs.rglob("weights.safetensors")}
    again = compare(DESIGN, runs=runs, device="cpu")
    assert again["methods"] == found["methods"]
    assert times == {path: path.stat().st_mtime_ns for path in runs.rglob("weights.safetensors")}


def test_two_processes_at_once_give_the_bits_of_one_after_the_other(made: tuple[Path, dict], tmp_path: Path) -> None:
    runs, found = made
    few = replace(DESIGN, methods=("plain", "useful"), seeds=(0, 1))
    there = compare(few, runs=tmp_path, where=Where(at_once=2, threads=1), device="cpu")
    for each in there["methods"]:
        for seed, row in each["runs"].items():
            assert row == method(found, each["name"])["runs"][seed]
            one, two = (folder / row["run"] / "weights.safetensors" for folder in (runs, tmp_path))
            assert one.read_bytes() == two.read_bytes()


def test_a_run_that_fails_ends_only_what_needs_it(tmp_path: Path) -> None:
    # A penalty that large makes the loss infinite within a few steps.
    design = Design(SMALL, ("plain", "logit-penalty:1e30", "batch"), (0,))
    with pytest.raises(JobsFailed, match=r"1 of 3 runs failed, 2 are done:\n  logit penalty 1e30, seed 0: ") as caught:
        compare(design, runs=tmp_path, device="cpu")
    assert caught.value.exit_code == 2
    (kept,) = stored.comparisons(tmp_path)
    states = {each["name"]: each["runs"]["0"]["state"] for each in kept["methods"]}
    assert states == {"plain": "done", "logit-penalty:1e30": "failed", "batch": "done"}
    assert Folder(tmp_path).loose() == []  # a run that failed belongs to its comparison all the same
    assert "Try --lr" in method(kept, "logit-penalty:1e30")["runs"]["0"]["reason"]


def test_where_nothing_can_be_separated_the_other_methods_are_compared(tmp_path: Path) -> None:
    fitted = replace(SMALL, data=Data("parity", {"dim": 4}), batch_size=8, epochs=60, evaluate_every=60)
    design = Design(fitted, ("plain", "useful"), (0,), until=Until("epoch", 50))
    try:
        found = compare(design, runs=tmp_path / "a", device="cpu")
    except JobsFailed:
        (found,) = stored.comparisons(tmp_path / "a")
        assert method(found, "useful")["runs"]["0"]["state"] == "failed"
        with pytest.raises(DataError, match="the split would be noise"):
            compare(design, runs=tmp_path / "b", device="cpu", refuse=True, stop_at_failure=True)
    assert method(found, "plain")["runs"]["0"]["state"] == "done"


@pytest.mark.parametrize(
    ("design", "told"),
    [
        (Design(SMALL, ("plain", "sma"), (0,)), "Did you mean 'sam'"),
        (Design(SMALL, (), (0,)), "one method and one seed"),
        (Design(SMALL, ("plain", "useful"), (0,), until=Until("epoch", 9)), "whole epoch from 1 to 4"),
        (Design(SMALL, ("plain",), (0,), split="tset"), "has no split 'tset'"),
        (Design(replace(SMALL, model=Model("mpl")), ("plain",), (0,)), "mpl"),
        (Design(replace(SMALL, batch_size=10**6), ("plain",), (0,)), "more than the 862 training examples"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_trained(design: Design, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        compare(design, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_without_plain_training_differences_are_to_the_first_method(tmp_path: Path) -> None:
    found = compare(replace(DESIGN, methods=("random", "useful"), seeds=(0,)), runs=tmp_path, device="cpu")
    assert found["baseline"] == "random"
    assert method(found, "useful")["difference"]["to"] == "random"


def test_plain_training_waits_for_the_early_run_only_where_it_can_begin_with_it() -> None:
    design = Design(SMALL, ("plain", "sam", "useful"), (0,), until=Until("epoch", 1))
    plan = plan_runs(design, split="test", running={})
    needs = {name: job.needs for name, job in plan.items()}
    first = ("early run, seed 0",)
    assert needs == {first[0]: (), "plain, seed 0": first, "SAM, seed 0": (), "USEFUL, seed 0": first}
    proxy = plan_runs(replace(design, early_model=Model("mlp")), split="test", running={})
    assert proxy["plain, seed 0"].needs == ()
    assert len(plan_runs(replace(design, methods=("plain", "sam")), split="test", running={})) == 2


def test_of_one_seed_the_longest_runs_begin_first_so_that_no_process_waits_at_the_end() -> None:
    design = Design(SMALL, ("plain", "sam", "asam"), (0, 1))
    names = list(plan_runs(design, split="test", running={}))
    assert [name.partition(",")[0] for name in names] == ["SAM", "ASAM", "plain"] * 2


def test_the_separation_of_an_early_run_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenly.training import separations

    calls = []
    real = separations.separate
    monkeypatch.setattr(separations, "separate", lambda *a, **k: calls.append(1) or real(*a, **k))
    few = replace(DESIGN, methods=("plain", "useful", "random", "upweight", "steps"), seeds=(0, 1))
    compare(few, runs=tmp_path, device="cpu", refuse=True)
    assert len(calls) == 2, "one for each seed"


def test_while_a_run_is_trained_the_stored_comparison_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: dict[str, str | None] = {}
    write = stored.write

    def watched(runs: Path, content: dict[str, Any]) -> Path:
        for method in content["methods"]:
            for row in method["runs"].values():
                if row["state"] == "running":
                    named[method["name"]] = row["run"]
        return write(runs, content)

    monkeypatch.setattr(stored, "write", watched)
    found = compare(Design(SMALL, ("plain", "useful"), (0,)), runs=tmp_path, device="cpu")
    assert named == {method["name"]: method["runs"]["0"]["run"] for method in found["methods"]}


def test_what_speaks_against_repeating_examples_is_said_in_every_comparison_that_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A fifth of the labels is wrong; clusters among what is predicted rightly are what the warning proposes."""
    noisy = replace(SMALL, data=Data("digit-dominoes", {"noise": 0.2}), epochs=8)
    told = {}
    for methods in (("plain", "useful:8"), ("plain", "useful:8+right")):
        caplog.clear()
        compare(Design(noisy, methods, (0,), until=Until("epoch", 4)), runs=tmp_path, device="cpu")
        told[methods[1]] = "contradict what" in caplog.text, caplog.text.count("it will do worse")
    assert told == {"useful:8": (True, 0), "useful:8+right": (False, 1)}


def test_going_on_with_another_early_network_is_refused_before_training(tmp_path: Path) -> None:
    design = Design(SMALL, ("plain", "useful+continue"), (0,), early_model=Model("mlp", {"width": 8}))
    with pytest.raises(UsageError, match="leave the early model out"):
        compare(design, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (replace(DESIGN, early_model=Model("nonsense")), "there is no model 'nonsense'"),
        (replace(DESIGN, early_optimizer=Optimizer("nonsense")), "there is no optimizer 'nonsense'"),
    ],
)
def test_what_only_a_later_run_would_use_is_refused_before_the_first(
    design: Design, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        compare(design, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_training_can_go_on_where_the_early_run_ended(tmp_path: Path) -> None:
    found = compare(Design(SMALL, ("plain", "useful+continue"), (0,), until=Until("epoch", 1)), runs=tmp_path)
    run = Run(tmp_path / method(found, "useful+continue")["runs"]["0"]["run"])
    assert run.recipe["epochs"] == SMALL.epochs - 1


@pytest.mark.parametrize(
    ("data", "methods", "told"),
    [
        ("spirals", ("plain", "augment-all:erase"), "erase works on uint8 images"),
        ("spirals", ("plain", "useful+augment-all:erase"), "erase works on uint8 images"),
        ("digit-dominoes", ("plain", "useful+noise:-1"), "noise"),
        ("digit-dominoes", ("plain", "useful+augment-all:resized-crop:4"), "resizing some examples"),
    ],
)
def test_a_cure_that_the_data_cannot_take_is_refused_before_training(
    data: str, methods: tuple, told: str, tmp_path: Path
) -> None:
    design = Design(replace(SMALL, data=Data(data)), methods, (0,), until=Until("epoch", 1))
    with pytest.raises(UsageError, match=told):
        compare(design, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match=told):
        forecast(design, runs=tmp_path, device="cpu")
