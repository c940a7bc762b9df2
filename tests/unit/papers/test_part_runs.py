"""The runs of a part, trained one by one in any process, are the ones that the part itself would train."""

import json
from pathlib import Path

import pytest

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Context, Part
from evenly.papers.measurement import measure, plan_parts
from evenly.papers.part_runs import num_runs, runs_of
from evenly.papers.part_store import discard, load, store
from evenly.records import Run
from evenly.sweep.launch import launch
from evenly.sweep.plan import Plan
from evenly.sweep.where import Where

HERE = Where(at_once=1)
KEYS = ["nguyen2024/fig7", "nguyen2024/fig8", "nguyen2024/fig10", "springer2024/table1-cifar-mnist"]


def first_part(key: str) -> Part:
    parts = CATALOGUE[key].parts("smoke", (0,))
    return next((part for part in parts if "comparisons" in part.arguments), parts[0])


def trained(runs: Path) -> set[str]:
    return {done.parent.name for done in runs.glob("*/done")}


@pytest.mark.parametrize("key", KEYS)
def test_a_part_finds_its_runs_done_and_measures_what_it_would_have(key: str, tmp_path: Path) -> None:
    part = first_part(key)
    alone, planned = Context(tmp_path / "alone"), Context(tmp_path / "planned")
    store(alone, part, lambda: part.function()(alone, **part.arguments))
    launch(Plan(runs_of(planned, part, under=key)), HERE, runs=planned.runs)
    before = trained(planned.runs)
    assert before == trained(alone.runs)
    store(planned, part, lambda: part.function()(planned, **part.arguments))
    assert trained(planned.runs) == before
    assert load(planned, [part])[0].values == load(alone, [part])[0].values


@pytest.mark.parametrize("key", KEYS)
def test_the_number_of_runs_is_known_without_planning_them(key: str) -> None:
    part = first_part(key)
    jobs = runs_of(Context(Path("runs")), part, under="")
    assert num_runs(part) == sum("early run" not in job.name for job in jobs)


def test_the_minutes_of_a_part_hold_those_of_its_runs(tmp_path: Path) -> None:
    experiment = CATALOGUE["nguyen2024/fig7"]
    _, minutes = measure(experiment, "smoke", runs=tmp_path, where=HERE, seeds=(0,))
    seconds = sum(Run(tmp_path / name).summary()["seconds"] for name in trained(tmp_path))
    assert 60 * minutes >= seconds > 0


def test_runs_that_comparisons_share_are_counted_once(tmp_path: Path) -> None:
    context, part = Context(tmp_path), first_part("nguyen2024/fig10")
    launch(Plan(runs_of(context, part, under="")), HERE, runs=tmp_path)
    seconds = {name: Run(tmp_path / name).summary()["seconds"] for name in trained(tmp_path)}
    for name in seconds:  # longer than collecting them takes
        done = json.loads((tmp_path / name / "done").read_text()) | {"seconds": 1000.0}
        (tmp_path / name / "done").write_text(json.dumps(done))
    store(context, part, lambda: part.function()(context, **part.arguments))
    assert load(context, [part])[1] * 60 == pytest.approx(1000.0 * len(seconds))


def test_two_processes_share_one_seed(tmp_path: Path) -> None:
    experiment = CATALOGUE["nguyen2024/fig7"]
    plan = plan_parts(Context(tmp_path), {experiment.key: experiment.parts("smoke", (0,))})
    assert [len(layer) for layer in plan.layers()] == [1, 4, 1]
    together, _ = measure(experiment, "smoke", runs=tmp_path / "two", where=Where(at_once=2, threads=1), seeds=(0,))
    alone, _ = measure(experiment, "smoke", runs=tmp_path / "one", where=Where(at_once=1, threads=1), seeds=(0,))
    assert together.values == alone.values


def test_beginning_afresh_removes_the_runs_of_all_comparisons_of_a_part(tmp_path: Path) -> None:
    context, part = Context(tmp_path), first_part("nguyen2024/fig10")
    store(context, part, lambda: part.function()(context, **part.arguments))
    assert trained(tmp_path)
    discard(context, part)
    assert not trained(tmp_path)
