"""`evenly runs` lists, filters, compares and removes runs, within 80 columns."""

import json
import math
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.intervals import paired_difference
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Resampling, Until, identity_settings, to_mapping
from evenly.records import Run
from evenly.records.identity import Identity

STAMP = {"evenly": "0.2.0"}
DATA = {"name": "photos", "fingerprint": "f1", "drawn_from": None, "splits": {}}


def done(root: Path, recipe: Recipe, *, error: float, data: dict[str, Any] = DATA, time: str, **more: Any) -> Run:
    identity = Identity(identity_settings(recipe), {}, data)
    stamp = STAMP | {"time": time}
    run = Run.create(root, to_mapping(recipe), identity.id, identity=identity, environment=stamp)
    run.log(epoch=recipe.epochs, lr=0.1, **{"train.error": error / 2, "train.loss": 1.0, "test.error": error})
    run.finish({"epoch": recipe.epochs, "test.error": error, "gradients": 100, "seconds": 1.0} | more)
    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plain = {"data": Data("a/very/long/path/of/photographs"), "model": Model("preact-resnet18"), "epochs": 30}
    for seed, (error, other) in enumerate([(0.30, 0.28), (0.32, 0.29), (0.31, 0.30)]):
        day = f"2026-01-0{seed + 1}T12:00:00+00:00"
        done(tmp_path, Recipe(**plain, seed=seed), error=error, time=day)
        sam = Recipe(**plain, seed=seed, ascent=Ascent("sam"), optimizer=Optimizer(lr=0.05))
        done(tmp_path, sam, error=other, time=day.replace("T12", "T13"), gradients=200)
    return tmp_path


def ids(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main(["runs", "--runs", str(root), "--json", *words]) == 0
    return [row["id"] for row in json.loads(capsys.readouterr().out)]


def test_the_newest_run_comes_first_with_rate_radius_and_error_in_per_cent(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "--runs", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "date", "data", "model", "method", "lr", "rho", "epochs", "seed", "error", "%"]
    assert lines[1].split()[-6:] == ["sam", "0.05", "0.05", "30", "2", "30.00"]
    assert lines[2].split()[-5:] == ["plain", "0.1", "30", "2", "31.00"]
    assert max(map(len, lines)) <= 80


def test_rows_are_filtered_by_data_model_and_time(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(ids(root, capsys)) == 6
    assert len(ids(root, capsys, "--data", "photographs")) == 6
    assert ids(root, capsys, "--data", "digits") == []
    assert len(ids(root, capsys, "--model", "preact-resnet18")) == 6
    assert len(ids(root, capsys, "--since", "2026-01-03")) == 2
    long = (datetime.now() - datetime(2026, 1, 1)) / timedelta(days=1)
    assert len(ids(root, capsys, "--since", f"{math.ceil(long) + 2}d")) == 6
    assert main(["runs", "--runs", str(root), "--since", "long ago"]) == 2


def test_the_last_line_tells_how_many_runs_match_the_filters(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in [((), "6 runs in "), (("--data", "digits"), "0 of 6 runs in "), (("--model", "x"), " match. ")]:
        assert main(["runs", "--runs", str(root), *words]) == 0
        assert told in capsys.readouterr().err


def test_a_filter_that_no_run_passes_is_answered_with_what_there_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "--runs", str(root), "--data", "photo"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "--data photo: no run has it. Known: a/very/long/path/of/photographs." in told


def test_a_run_that_stopped_early_shows_the_epochs_it_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done(tmp_path, Recipe(epochs=30), error=0.25, time="2026-01-01T12:00:00+00:00", epoch=5)
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-3:] == ["5", "0", "25.00"]


def test_runs_are_paired_by_seed_and_the_settings_that_differ_are_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {row.id: row for row in map(Run, root.iterdir())}
    plain = next(run for run in rows.values() if run.recipe["ascent"]["rule"] == "none")
    sam = next(run for run in rows.values() if run.recipe["ascent"]["rule"] == "sam" and run.recipe["seed"] == 2)
    words = ["runs", "compare", plain.id, sam.id[:8], "--runs", str(root)]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["differing"]) == {"ascent.rule", "ascent.rho", "optimizer.lr"}
    assert told["differing"]["optimizer.lr"] == [0.1, 0.05]
    first, second = told["groups"]
    assert (first["run"], second["run"]) == (plain.id, sam.id), "as they were named"
    assert first["seeds"] == second["seeds"] == [0, 1, 2]
    expected = paired_difference([0.28, 0.29, 0.30], [0.30, 0.32, 0.31])
    assert second["difference"]["mean"] == pytest.approx(expected.mean)
    assert second["difference"]["high"] == pytest.approx(expected.high)
    assert second["cost"] == 2.0
    assert main(words) == 0
    said = capsys.readouterr()
    assert "optimizer.lr" in said.out
    assert "2.00×" in said.out
    assert "may be chance" in said.err


def test_runs_are_compared_beside_one_whose_identity_is_damaged(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = sorted(map(Run, root.iterdir()), key=lambda run: (run.recipe["ascent"]["rule"], run.recipe["seed"]))
    (runs[1].path / "identity.json").write_text("{ cut off")
    assert main(["runs", "compare", runs[0].id, runs[3].id, "--runs", str(root), "--json"]) == 0
    said = capsys.readouterr()
    assert [group["seeds"] for group in json.loads(said.out)["groups"]] == [[0, 2], [0, 1, 2]]
    assert f"skipped {runs[1].path}" in said.err.replace("\n", " ")


def test_what_useful_costs_includes_its_early_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = next(run for run in map(Run, root.iterdir()) if run.recipe["ascent"]["rule"] == "none")
    settings = {"data": Data("a/very/long/path/of/photographs"), "model": Model("preact-resnet18"), "epochs": 30}
    time = "2026-01-09T00:00:00+00:00"
    early = done(root, Recipe(**settings, seed=0, until=Until("gain")), error=0.5, time=time, gradients=20)
    chosen = Recipe(**settings, seed=0, resampling=Resampling("useful", early=early.id))
    useful = done(root, chosen, error=0.29, time=time, gradients=130)
    words = ["runs", "compare", plain.id, useful.id, "--runs", str(root)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"][1]["cost"] == 1.5
    assert main(["runs", "rm", early.id, "--yes", "--runs", str(root)]) == 0
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"][1]["cost"] is None


def test_runs_of_different_data_and_of_one_recipe_are_not_compared(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = [run for run in map(Run, root.iterdir()) if run.recipe["ascent"]["rule"] == "none"]
    other = done(
        root, Recipe(epochs=30, seed=7), error=0.1, data=DATA | {"fingerprint": "f2"}, time="2026-01-09T00:00:00+00:00"
    )
    assert main(["runs", "compare", some[0].id, other.id, "--runs", str(root)]) == 2
    assert "are not of the same data" in capsys.readouterr().err
    assert main(["runs", "compare", some[0].id, some[1].id, "--runs", str(root)]) == 2
    assert "differ only in the seed: there is nothing to compare" in capsys.readouterr().err
    assert main(["runs", "compare", some[0].id, some[0].id[:7], "--runs", str(root)]) == 2
    assert f"both are run {some[0].id}: there is nothing to compare" in capsys.readouterr().err


def test_runs_that_learned_nothing_are_said_to_have(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = next(run for run in map(Run, root.iterdir()) if run.recipe["ascent"]["rule"] == "none")
    recipe = Recipe(data=Data("photos"), model=Model("mlp"), epochs=30, seed=0)
    bad = done(root, recipe, error=0.9, time="2026-01-09T00:00:00+00:00", collapsed="learned nothing: …")
    assert main(["runs", "compare", some.id, bad.id, "--runs", str(root)]) == 0
    said = capsys.readouterr().err
    assert f"1 of 1 run like {bad.id[:7]} learned nothing." in said
    assert "share one seed, which says nothing yet" in said
    assert main(["runs", "--runs", str(root)]) == 0
    said = capsys.readouterr()
    assert "90.00!" in said.out
    assert "Marks: ! = learned nothing." in said.err


def test_rm_asks_deletes_only_what_evenly_made_and_names_what_depends_on_it(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *rest = ids(root, capsys)
    assert main(["runs", "rm", first, "--runs", str(root)]) == 2
    assert "say so with --yes" in capsys.readouterr().err
    assert (root / first).exists()
    assert main(["runs", "rm", first[:8], second, "--yes", "--runs", str(root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": [first, second]}
    assert sorted(ids(root, capsys)) == sorted(rest)
    (root / "abcdef").mkdir()
    (root / "abcdef" / "recipe.yaml").write_text("seed: 0\n")
    assert main(["runs", "rm", "abcdef", "--yes", "--runs", str(root)]) == 2
    assert "may be no run of evenly's" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert main(["runs", "rm", rest[0], "--runs", str(root)]) == 0
    assert "Nothing was deleted" in capsys.readouterr().err
    assert (root / rest[0]).exists()


def test_rm_of_a_run_in_another_folder_does_not_delete_its_namesake(
    root: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ids(root, capsys)[0]
    backup = tmp_path_factory.mktemp("backup")
    shutil.copytree(root / first, backup / first)
    assert main(["runs", "rm", str(backup / first), "--yes", "--runs", str(root)]) == 2
    assert f"--runs {backup}" in capsys.readouterr().err
    assert (root / first).exists()
    assert (backup / first).exists()
    assert main(["runs", "rm", str(backup / first), "--yes", "--runs", str(backup)]) == 0
    assert (root / first).exists()
    assert not (backup / first).exists()


def test_the_folder_before_an_inner_verb_is_the_one_that_counts(
    root: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    first = ids(root, capsys)[0]
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    shutil.copytree(root, here / "runs")
    shutil.copytree(root, here / "archive")
    assert main(["runs", "--runs", "archive", "rm", first, "--yes"]) == 0
    assert f"Deleted {first} from archive." in capsys.readouterr().err
    assert (here / "runs" / first).exists()
    assert not (here / "archive" / first).exists()
    assert main(["runs", "--json", "show", first]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == first


def test_the_error_that_judges_a_run_is_shown_before_its_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Run.create(tmp_path, {"seed": 0}, "a0") as run:
        parts = {f"{part}.{what}": 0.5 for part in ("train", "easy", "hard", "copied") for what in ("loss", "error")}
        run.log(epoch=1, lr=0.1, **parts, **{"test.loss": 1.0, "test.error": 0.125})
        run.finish({"epoch": 1, "test.error": 0.125})
    assert main(["runs", "show", "a0", "--runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "test.error" in out
    assert out.index("test.error") < out.index("easy.error")
    assert "Test error: 12.50%" in err


def test_a_run_shows_the_errors_of_its_easy_and_of_its_hard_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = ("train", "test", "train.easy", "train.hard")
    with Run.create(tmp_path, {"seed": 0}, "a0") as run:
        run.log(epoch=1, lr=0.1, **{f"{split}.{what}": 0.5 for split in splits for what in ("loss", "error")})
        run.finish({"epoch": 1, "test.error": 0.5})
    assert main(["runs", "show", "a0", "--runs", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "train.easy.error  train.hard.error" in out


def test_watching_ends_when_nothing_is_going_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--watch", "--runs", str(root)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7


def test_an_option_of_the_table_is_not_ignored_by_an_inner_verb(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = next(root.iterdir()).name
    assert main(["runs", "--data", "x", "show", some, "--runs", str(root)]) == 2
    assert "--data is for the table" in capsys.readouterr().err
    assert main(["runs", "show", some, "--runs", str(root)]) == 0
