"""What is kept of the work of experiments may be lost, damaged or hostile: it is done again, or refused in words."""

import hashlib
import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.data import load as load_data
from evenly.errors import DataError, Stopped
from evenly.models import build
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Part, PartResult, Scale
from evenly.papers.measurement import measure
from evenly.papers.part_store import load, run_ids, store
from evenly.sweep.where import Where
from evenly.training.ensemble import Ensemble

RECIPE = {"data": {"name": "parity", "options": {"dim": 4}}, "model": {"name": "mlp"}, "batch_size": 16, "epochs": 1}
TOY = Experiment(
    key="nguyen2024/kept",
    title="One run",
    claim="It runs.",
    plan=lambda seeds: [
        Part("only", "train_and_measure:train_recipe", {"recipe": RECIPE, "seed": seeds[0], "name": "x"})
    ],
    claims=(Claim("error", "it has an error", "x.train_error > 0"),),
    scales={"smoke": Scale((0,), 0.1)},
    charts="verdict:judge",
)
PLACES = ["../../precious", "../precious", "", ".", "..", "/", "parts", 3, None, {}, ["x"]]


def do(runs: Path, **how: Any) -> Any:
    return measure(TOY, "smoke", runs=runs, where=Where(at_once=1), **how)[0]


def part_of(runs: Path) -> Path:
    [done] = runs.glob("parts/*/done")
    return done.parent


def forge(part: Path, series: Any) -> None:
    """What a part found, with another series, and a checksum that fits."""
    found = json.loads((part / "found.json").read_text()) | {"series": series}
    (part / "found.json").write_text(json.dumps(found))
    done = json.loads((part / "done").read_text())
    done["checksum"] = hashlib.blake2b((part / "found.json").read_bytes(), digest_size=16).hexdigest()
    (part / "done").write_text(json.dumps(done))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kept")
    (root / "precious").mkdir()
    (root / "precious" / "thesis.txt").write_text("years of work")
    do(root / "project" / "runs")
    return root


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> Path:
    """A folder of runs in which the experiment is done, beside something precious."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "project" / "runs"


@pytest.mark.parametrize("place", PLACES, ids=repr)
@pytest.mark.parametrize("where", ["run", "runs"])
def test_beginning_afresh_deletes_nothing_that_a_file_names_but_runs(runs: Path, where: str, place: Any):
    (runs / "notes").mkdir()
    forge(part_of(runs), {where: place if where == "run" else {"early": place}})
    do(runs, fresh=True)
    assert (runs.parents[1] / "precious" / "thesis.txt").read_text() == "years of work"
    assert (runs / "notes").is_dir()
    assert part_of(runs).is_dir()


def test_beginning_afresh_removes_the_part_and_the_run_it_trained(runs: Path):
    [trained] = runs.glob("*/done")
    before = trained.stat().st_mtime_ns, (part_of(runs) / "done").stat().st_mtime_ns
    do(runs, fresh=True)
    after = trained.stat().st_mtime_ns, (part_of(runs) / "done").stat().st_mtime_ns
    assert all(now > then for now, then in zip(after, before, strict=True))


def test_the_command_leaves_what_is_precious(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tmp_path / "far" / "project"
    project.mkdir(parents=True)
    (tmp_path / "far" / "precious").mkdir()
    (tmp_path / "precious").mkdir()
    monkeypatch.chdir(project)
    words = ["reproduce", "nguyen2024/theorem3.2", "--scale", "smoke", "--on", "local:1"]
    assert main(words) == 0
    for done in Path("runs").glob("parts/*/done"):
        forge(done.parent, {"run": "../../precious"})
    assert main([*words, "--fresh"]) == 0
    assert (tmp_path / "precious").is_dir()
    assert (tmp_path / "far" / "precious").is_dir()


def test_a_part_whose_finding_is_gone_is_done_again(runs: Path):
    expected = do(runs).values
    (part_of(runs) / "found.json").unlink()
    assert do(runs).values == expected


def damaged(value: Any) -> Iterator[Any]:
    """The value with each of its nodes, one at a time, replaced by others."""
    for other in (None, True, 7, "text", [], {}, [[1]], {"a": {"b": 1}}):
        if other != value or type(other) is not type(value):
            yield other
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in list(inner)[:6]:
        for other in damaged(each):
            copy = json.loads(json.dumps(value))
            copy[name] = other
            yield copy
        if isinstance(value, dict):
            yield {key: kept for key, kept in value.items() if key != name}


@pytest.mark.parametrize("name", ["found.json", "done", "environment.json"])
def test_a_part_with_any_damage_is_refused_with_a_remedy_that_works(runs: Path, name: str):
    path = part_of(runs) / name
    text = path.read_text()
    whole = json.loads(text)
    refused = []
    parts = TOY.parts("smoke")
    for wrong in damaged(whole):
        path.write_text(json.dumps(wrong))
        try:
            load(Context(runs), parts)
        except DataError as error:
            refused.append(str(error))
    assert len(refused) >= (20 if name == "environment.json" else 40)
    assert all(f"Remove the folder {path.parent}" in told for told in refused)
    for raw in (b"[" * 100_000, b"\xff\xfe", b"", b'{"a": 1' + b"0" * 5000 + b"}", text.encode()[:-5]):
        path.write_bytes(raw)
        with pytest.raises(DataError, match=f"{name} cannot be read"):
            load(Context(runs), parts)
    shutil.rmtree(path.parent)
    assert do(runs).values


def test_beginning_afresh_needs_nothing_of_a_damaged_part(runs: Path):
    (part_of(runs) / "found.json").write_text("[" * 100_000)
    assert do(runs, fresh=True).values


def test_the_origin_of_a_seed_names_every_part_that_measured_it(tmp_path: Path):
    names = ("first", "second", "third")

    def plan(seeds: tuple[int, ...]) -> list[Part]:
        return [
            Part(name, "train_and_measure:train_recipe", {"recipe": RECIPE, "seed": 0, "name": name}) for name in names
        ]

    experiment = replace(TOY, plan=plan, claims=(Claim("error", "it has an error", "first.train_error > 0"),))
    context, parts = Context(tmp_path, None), experiment.parts("smoke")
    measure(experiment, "smoke", runs=tmp_path, where=Where(at_once=1))
    # The first and the last part were done elsewhere, the last one most recently.
    for part, revision, cpu, when in (
        (parts[0], "a1b2", "Cray", "2001-02-03"),
        (parts[2], "c3d4", "Cray", "2099-01-01"),
    ):
        path = tmp_path / "parts" / part.digest / "environment.json"
        stamps = json.loads(path.read_text())
        stamps[-1] |= {"source": {"revision": revision, "dirty": False}, "cpu": cpu, "time": when}
        path.write_text(json.dumps(stamps))
    here = load(context, parts[1:2])[0].origins[0]
    assert load(context, parts)[0].origins[0] == {
        "revision": f"a1b2, {here['revision']}, c3d4", "cpu": f"Cray, {here['cpu']}", "date": "2099-01-01"
    }  # fmt: skip
    assert load(context, parts[::-1])[0].origins[0]["date"] == "2099-01-01"


@pytest.mark.parametrize("key", ["springer2024/table2-vlcs", "springer2024/fig5-waterbirds"])
def test_beginning_afresh_trains_the_runs_of_image_experiments_again(tmp_path: Path, key: str):
    how: dict[str, Any] = {"seeds": [0], "runs": tmp_path, "where": Where(at_once=1)}
    found, _ = measure(CATALOGUE[key], "smoke", **how)
    before = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("*/done")}
    assert {name for series in found.series.values() for name in run_ids(series)} == before.keys()
    again, _ = measure(CATALOGUE[key], "smoke", fresh=True, **how)
    after = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("*/done")}
    assert all(after[name] > before[name] for name in before)
    assert again.values == found.values


def test_a_part_that_was_killed_continues_its_ensembles_and_leaves_no_checkpoints(tmp_path: Path) -> None:
    seen: list[int] = []
    killed = [True]

    def rate(step: int) -> float:
        if step == 6 and killed.pop():
            signal.raise_signal(signal.SIGTERM)
        seen.append(step)
        return 1.0

    def work() -> PartResult:
        model = build("mlp", input_shape=(4,), num_classes=2, rng=0, width=4, dropout=0.0)
        Ensemble([model], load_data("parity", seed=0, dim=4).train, lr=0.1, schedule=rate).run(10)
        return PartResult({"x": {0: 1.0}})

    context, part = Context(tmp_path), Part("only", "train_and_measure:train_recipe", {"recipe": RECIPE, "seed": 0})
    with pytest.raises(Stopped):
        store(context, part, work)
    killed.append(False)
    store(context, part, work)
    assert seen == list(range(10))
    assert load(context, [part])[0].values == {"x": {0: 1.0}}
    assert not list(tmp_path.rglob("checkpoints"))
