"""An experiment is declared, run, stopped, continued, judged, written and checked: with real training throughout."""

import json
import multiprocessing
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.cli.reproduce import _select, _without_long, find_ledger
from evenly.errors import DataError, UsageError
from evenly.papers import ledger as book
from evenly.papers import measurement, reproduction
from evenly.papers.catalogue import CATALOGUE, PAPERS, paper
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Part, Scale
from evenly.papers.measurement import check, measure
from evenly.papers.reproduction import check_cost, grow, next_seeds, overview, regressions, reproduce
from evenly.records.lock import Lock
from evenly.report.chart import Chart
from evenly.sweep.launch import JobsFailed
from evenly.sweep.where import Where

RECIPE = {"data": {"name": "parity", "options": {"dim": 4}}, "model": {"name": "mlp"}, "batch_size": 16}


def plan(seeds: tuple[int, ...], *, epochs: int) -> list[Part]:
    return [
        Part(
            f"{name} {seed}",
            "train_and_measure:train_recipe",
            {"recipe": RECIPE | {"epochs": n}, "seed": seed, "name": name},
        )
        for name, n in (("short", 1), ("long", epochs))
        for seed in seeds
    ]


def toy(**more: Any) -> Experiment:
    settings: dict[str, Any] = {
        "key": "nguyen2024/toy",
        "title": "Longer training",
        "claim": "Training longer fits better.",
        "plan": plan,
        "claims": (Claim("fit", "longer fits better", "long.train_error < short.train_error"),),
        "scales": {"smoke": Scale((0, 1), 0.1, {"epochs": 8}), "full": Scale((0, 1, 2), 9000, {"epochs": 200})},
        "charts": "verdict:judge",
    }
    return Experiment(**settings | more)


def test_a_wrong_keyword_is_an_error_where_it_is_declared():
    with pytest.raises(UsageError, match=r"nguyen2024/toy at smoke.*epoch"):
        toy(scales={"smoke": Scale((0,), 0.1, {"epoch": 8})})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"key": "toy"}, "a key is paper/what"),
        ({"scales": {"tiny": Scale((0,), 1, {"epochs": 2})}}, "no scale 'tiny'"),
        ({"scales": {"full": Scale((0,), 1, {"epochs": 2})}}, "declare a smoke scale"),
        ({"claims": ()}, "no claim"),
        ({"primary": "fat"}, "no claim 'fat'"),
        ({"remark": True}, "no claim"),
    ],
)
def test_what_cannot_be_judged_cannot_be_declared(wrong: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        toy(**wrong)


def test_work_that_is_not_there_or_takes_other_arguments_is_found_before_it_runs(tmp_path: Path):
    missing = toy(plan=lambda seeds, *, epochs: [Part("one", "train_and_measure:trian", {})])
    with pytest.raises(UsageError, match="'train_and_measure:trian' names nothing"):
        check(missing, "smoke", seeds=None, data_root=None)
    other = toy(plan=lambda seeds, *, epochs: [Part("one", "train_and_measure:train_recipe", {"recipes": 1})])
    with pytest.raises(UsageError, match=r"train_and_measure:train_recipe.*recipe"):
        check(other, "smoke", seeds=None, data_root=None)


def test_missing_data_are_named_with_the_command_that_gets_them(tmp_path: Path):
    needs = toy(scales={"smoke": Scale((0,), 0.1, {"epochs": 2}, data=("cifar-mnist",))})
    with pytest.raises(DataError, match=r"needs cifar-mnist.*evenly data get cifar10; evenly data get mnist"):
        check(needs, "smoke", seeds=None, data_root=str(tmp_path))


def test_the_row_holds_every_seed_and_two_processes_find_what_one_finds(tmp_path: Path):
    row = reproduce(toy(), "smoke", runs=tmp_path / "one", where=Where(at_once=1), ledger=tmp_path / "claims")
    again = reproduce(toy(), "smoke", runs=tmp_path / "two", where=Where(at_once=2))
    assert row["quantities"] == again["quantities"]
    assert row["quantities"]["long.train_error"].keys() == {"0", "1"}
    [claim] = row["claims"]
    assert claim["ours"]["mean"] < claim["ours_against"]["mean"]
    assert claim["difference"]["n"] == 2
    assert row["verdict"] == claim["verdict"] != "contradicted"
    assert book.read(tmp_path / "claims", "nguyen2024/toy", "smoke") == json.loads(json.dumps(row))
    assert not book.stale(row, toy())
    assert not book.stale(row, toy(claims=(replace(toy().claims[0], margin=1.0),))), "its numbers can be judged again"
    unmeasured = replace(toy().claims[0], relation="long.weight_norm < 1")
    assert book.stale(row, toy(claims=(unmeasured,))), "it did not measure that"


def test_parts_that_are_done_are_read_and_the_rest_is_done(tmp_path: Path):
    first, _ = measure(toy(), "smoke", seeds=[0], runs=tmp_path, where=Where(at_once=1))
    done = sorted(path.stat().st_mtime_ns for path in tmp_path.glob("parts/*/done"))
    both, _ = measure(toy(), "smoke", seeds=[0, 1], runs=tmp_path, where=Where(at_once=1))
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.glob("parts/*/done"))[: len(done)] == done
    assert both.values["long.train_error"].keys() == {0, 1}
    assert first.values["long.train_error"][0] == both.values["long.train_error"][0]


def test_a_failing_part_leaves_the_others_done_and_says_why(tmp_path: Path):
    broken = {"recipe": RECIPE | {"epochs": 1, "optimizer": {"lr": 1e30}}, "seed": 0, "name": "x"}
    wrong = toy(
        plan=lambda seeds, *, epochs: [*plan((0,), epochs=2), Part("x", "train_and_measure:train_recipe", broken)]
    )
    with pytest.raises(UsageError, match="lr"):
        measure(wrong, "smoke", runs=tmp_path, where=Where(at_once=1))
    assert len([*tmp_path.glob("parts/*/done")]) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": {"name": "mpl"}}, "Did you mean 'mlp'"),
        ({"data": {"name": "parities"}}, "Did you mean 'parity'"),
        ({"epoch": 3}, "unknown setting 'epoch'"),
        ({"model": {"name": "mlp", "weights": "nowhere.safetensors"}}, "there is no file nowhere.safetensors"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_found_before_anything_is_trained(wrong: dict, message: str, tmp_path: Path):
    part = Part("last", "train_and_measure:train_recipe", {"recipe": RECIPE | wrong, "seed": 0, "name": "x"})
    bad = toy(plan=lambda seeds, *, epochs: [*plan((0,), epochs=2), part])
    with pytest.raises((UsageError, DataError), match=f"part 'last': .*{message}"):
        measure(bad, "smoke", runs=tmp_path, where=Where(at_once=1))
    assert not [*tmp_path.iterdir()]


def test_fresh_trains_again(tmp_path: Path):
    measure(toy(), "smoke", seeds=[0], runs=tmp_path, where=Where(at_once=1))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/done")}
    measure(toy(), "smoke", seeds=[0], runs=tmp_path, where=Where(at_once=1))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/done")} == before
    measure(toy(), "smoke", seeds=[0], runs=tmp_path, where=Where(at_once=1), fresh=True)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/done")}
    assert after.keys() == before.keys()
    assert all(after[path] > before[path] for path in before)


def test_other_seeds_make_another_row_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    row = reproduce(toy(), "smoke", seeds=[0], runs=tmp_path, where=Where(at_once=1))
    assert not row["declared_seeds"]
    assert "--seeds 0" in row["command"]
    assert row["origins"]["0"]["revision"]
    assert main(["reproduce", "chang2025/theorem3.3", "--scale", "smoke", "--seeds", "7,8"]) == 2
    assert "--ledger DIR" in capsys.readouterr().err


def test_a_scale_that_only_some_have_leaves_the_others_out(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    words = ["reproduce", "chang2025", "--scale", "small", "--dry-run", "--json", "--data-root", str(tmp_path)]
    (tmp_path / "cifar-10-batches-bin").mkdir()
    assert main(words) == 0
    told = capsys.readouterr()
    assert {line["scale"] for line in json.loads(told.out)} == {"small"}
    assert "have no scale small and are left out" in told.err


def test_a_row_of_a_scale_that_is_gone_is_stale(tmp_path: Path):
    row = reproduce(toy(), "smoke", runs=tmp_path, where=Where(at_once=1))
    assert book.stale(row | {"scale": "small"}, toy())


KILLED = """
from evenly.papers.measurement import measure
from evenly.sweep.where import Where
import importlib.util, sys
spec = importlib.util.spec_from_file_location("declared", sys.argv[1])
declared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(declared)
if __name__ == "__main__":
    measure(declared.toy(), "smoke", seeds=range(4), runs=sys.argv[2], where=Where(at_once=2))
"""


def test_a_process_that_the_system_kills_is_told_of_and_what_is_done_stays(tmp_path: Path):
    """As when memory runs out: the parent lives on, and must not answer with a traceback."""

    def strike() -> None:
        while not list(tmp_path.glob("parts/*/done")):
            time.sleep(0.02)
        multiprocessing.active_children()[0].kill()

    threading.Thread(target=strike, daemon=True).start()
    longer = toy(scales={"smoke": Scale((0, 1), 0.1, {"epochs": 300})})
    with pytest.raises(JobsFailed, match=r"1 of 4 runs failed, 3 are done(.|\n)*signal 9(.|\n)*The same command tries"):
        measure(longer, "smoke", runs=tmp_path, where=Where(at_once=2))
    assert len(list(tmp_path.glob("parts/*/done"))) == 3


def test_killed_at_any_moment_the_same_call_goes_on_and_finds_the_same(tmp_path: Path):
    (tmp_path / "script.py").write_text(KILLED)
    words = [sys.executable, str(tmp_path / "script.py"), __file__, str(tmp_path / "runs")]
    process = subprocess.Popen(words)
    while not [*tmp_path.glob("runs/parts/*/done")]:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    time.sleep(1)  # the orphans notice within a fifth of a second
    found, _ = measure(toy(), "smoke", seeds=range(4), runs=tmp_path / "runs", where=Where(at_once=1))
    whole, _ = measure(toy(), "smoke", seeds=range(4), runs=tmp_path / "whole", where=Where(at_once=1))
    assert found.values == whole.values


def test_days_are_asked_for(tmp_path: Path):
    with pytest.raises(UsageError, match=r"takes about 6.2 days.*--yes"):
        check_cost(toy(), "full", yes=False)
    check_cost(toy(), "full", yes=True)


def test_what_is_worse_than_the_ledger_is_said_claim_by_claim(tmp_path: Path):
    row = reproduce(toy(), "smoke", runs=tmp_path, where=Where(at_once=1))
    better = json.loads(json.dumps(row))
    better["verdict"] = better["claims"][0]["verdict"] = "reproduced"
    book.write(tmp_path / "claims", better)
    bad = json.loads(json.dumps(row))
    bad["verdict"] = bad["claims"][0]["verdict"] = "contradicted"
    assert regressions([bad], tmp_path / "claims") == [
        "nguyen2024/toy at smoke: reproduced → contradicted",
        "nguyen2024/toy at smoke, fit: reproduced → contradicted",
    ]
    assert regressions([better], tmp_path / "claims") == []
    half = json.loads(json.dumps(bad))
    half["verdict"] = half["claims"][0]["verdict"] = "inconclusive"
    assert regressions([half], tmp_path / "claims") == [], "two seeds decide nothing"
    book.write(tmp_path / "claims", better | {"scale": "full"})
    assert len(regressions([half | {"scale": "full"}], tmp_path / "claims")) == 2
    renamed = json.loads(json.dumps(better))
    renamed["claims"][0]["name"] = "another"
    assert regressions([renamed], tmp_path / "claims") == [
        "nguyen2024/toy at smoke, fit: reproduced → not declared any more"
    ]
    assert regressions([bad], tmp_path / "nowhere") == []


def test_more_seeds_are_added_to_those_of_the_ledger_and_none_is_measured_again(tmp_path: Path):
    claims = tmp_path / "claims"
    first = grow(toy(), "smoke", 1, ledger=claims, runs=tmp_path / "here", where=Where(at_once=1))
    assert (first["seeds"], first["verdict"]) == ([0], "inconclusive")
    # On another machine, whose folder of runs knows nothing of the first seed.
    grown = grow(toy(), "smoke", 2, ledger=claims, runs=tmp_path / "there", where=Where(at_once=1))
    assert grown["seeds"] == [0, 1, 2]
    assert len(list((tmp_path / "there" / "parts").glob("*/done"))) == 4
    at_once = reproduce(toy(), "smoke", seeds=[0, 1, 2], runs=tmp_path / "once", where=Where(at_once=1))
    assert grown["quantities"] == at_once["quantities"]
    assert (grown["digest"], grown["claims"]) == (at_once["digest"], at_once["claims"])
    assert grown["origins"].keys() == {"0", "1", "2"}
    assert grown["origins"]["0"] == first["origins"]["0"]


def test_reproducing_the_declared_seeds_again_keeps_the_seeds_that_a_row_has_grown_by(tmp_path: Path):
    how: dict[str, Any] = {"ledger": tmp_path / "claims", "runs": tmp_path / "runs", "where": Where(at_once=1)}
    grown = grow(toy(), "smoke", 3, **how)
    assert grown["seeds"] == [0, 1, 2]
    book.write(how["ledger"], grown | {"minutes": 30.0})
    again = reproduce(toy(), "smoke", **how)
    assert (again["seeds"], again["quantities"], again["claims"]) == ([0, 1, 2], grown["quantities"], grown["claims"])
    assert again["minutes"] == pytest.approx(10, abs=2), "a third, of the seed that is kept, and those of seconds now"
    new = reproduce(toy(), "smoke", fresh=True, replacing=True, **how)
    assert new["seeds"] == [0, 1]
    assert book.read(how["ledger"], "nguyen2024/toy", "smoke") == json.loads(json.dumps(new))


def test_seeds_that_another_process_added_during_the_measurement_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    how: dict[str, Any] = {"ledger": tmp_path / "claims", "where": Where(at_once=1)}
    measured = reproduction.measure

    def interrupted(experiment: Experiment, *arguments: Any, **more: Any) -> Any:
        found = measured(experiment, *arguments, **more)
        monkeypatch.setattr(reproduction, "measure", measured)
        other = reproduce(toy(), "smoke", seeds=[7], runs=tmp_path / "there", **how)
        assert other["seeds"] == [7]
        return found

    monkeypatch.setattr(reproduction, "measure", interrupted)
    assert grow(toy(), "smoke", 1, runs=tmp_path / "here", **how)["seeds"] == [0, 7]


def test_the_order_in_which_seeds_were_measured_makes_no_difference_to_a_row(tmp_path: Path):
    how: dict[str, Any] = {"runs": tmp_path / "runs", "where": Where(at_once=1)}
    three = toy(scales={"smoke": Scale((0, 1, 2), 0.1, {"epochs": 8})})
    reproduce(three, "smoke", seeds=[2], ledger=tmp_path / "claims", **how)
    grown = grow(three, "smoke", 2, ledger=tmp_path / "claims", **how)
    turned, straight = reproduce(three, "smoke", seeds=[2, 0, 1], **how), reproduce(three, "smoke", **how)
    for row in (grown, turned, straight):
        assert (row["seeds"], row["drawn"], row["declared_seeds"]) == ([0, 1, 2], [0, 1, 2], True)
        assert row["command"] == straight["command"]
        assert json.dumps(row["quantities"]) == json.dumps(straight["quantities"])
        assert json.dumps(row["claims"]) == json.dumps(straight["claims"])
        assert list(row["origins"]) == ["0", "1", "2"]
        assert row["parts"] == straight["parts"]


def test_a_row_waits_for_another_process_that_is_writing(tmp_path: Path):
    lock = Lock(tmp_path / "lock")
    threading.Timer(1.0, lock.release).start()
    begun = time.monotonic()
    assert grow(toy(), "smoke", 1, ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1))["seeds"] == [0]
    assert time.monotonic() - begun > 0.5


def test_judging_again_keeps_the_seeds_that_another_process_adds_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    how: dict[str, Any] = {"runs": tmp_path / "runs", "where": Where(at_once=1)}
    first = reproduce(toy(), "smoke", seeds=[0], **how)
    grown = reproduce(toy(), "smoke", seeds=[0, 1], **how)
    ledger = tmp_path / "claims"
    book.write(ledger, first | {"title": "as it was called before"})
    monkeypatch.setattr(reproduction, "CATALOGUE", {toy().key: toy()})
    other = Lock(ledger / "lock")
    judging = threading.Thread(target=reproduction.judge_all, args=(ledger,))
    judging.start()
    judging.join(0.3)
    assert judging.is_alive(), "it waits for the other process"
    book.write(ledger, grown | {"title": "as it was called before"})
    other.release()
    judging.join()
    row = book.read(ledger, toy().key, "smoke")
    assert row is not None
    assert (row["seeds"], row["title"]) == ([0, 1], toy().title)


def test_a_dry_run_of_judging_tells_what_would_change_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ledger = tmp_path / "claims"
    row = reproduce(toy(), "smoke", runs=tmp_path / "runs", where=Where(at_once=1))
    path = book.write(ledger, row | {"verdict": "contradicted"})
    before = path.read_bytes()
    monkeypatch.setattr(reproduction, "CATALOGUE", {toy().key: toy()})
    words = ["reproduce", "--judge", "--ledger", str(ledger)]
    assert main([*words, "--dry-run"]) == 0
    changed = f"nguyen2024/toy at smoke: contradicted → {row['verdict']}"
    assert changed in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [each.name for each in ledger.iterdir()] == [path.name], "not even a lock"
    assert main(words) == 0
    assert changed in capsys.readouterr().err
    assert path.read_bytes() != before


@pytest.mark.parametrize(
    ("words", "wrong", "mode"),
    [
        (["--judge", "--fresh", "--yes"], "--yes and --fresh", "--judge"),
        (["--judge", "nguyen2024/fig2"], "KEY", "--judge"),
        (["--judge", "--on", "local:1"], "--on", "--judge"),
        (["--judge", "--scale", "full", "--seeds", "0", "--json"], "--scale, --seeds and --json", "--judge"),
        (["--list", "--dry-run"], "--dry-run", "--list"),
        (["--list", "--judge"], "--judge", "--list"),
        (["--list", "nguyen2024"], "KEY", "--list"),
        (["--next", "--fresh", "--seeds", "3"], "--seeds and --fresh", "--next"),
        (["--next", "--check", "--scale", "smoke"], "--scale and --check", "--next"),
        (["--next", "--more", "2", "--all", "--yes"], "--all, --more and --yes", "--next"),
        (["--next", "nguyen2024/fig2"], "KEY", "--next"),
    ],
    ids=str,
)
def test_an_option_that_would_be_ignored_is_refused_by_name(words, wrong, mode, capsys, tmp_path: Path):
    dry = ["--dry-run"] if mode == "--next" else []  # should it not be refused, nothing is trained here
    assert main(["reproduce", *words, *dry, "--ledger", str(tmp_path / "claims")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"{mode} does not take {wrong}" in told
    assert not (tmp_path / "claims").exists()


def test_the_steps_of_a_campaign_are_printed_for_programs_too(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["reproduce", "--next", "--dry-run", "--json", "--ledger", str(tmp_path)]) == 0
    steps = json.loads(capsys.readouterr().out)
    assert len(steps) > 10
    assert [step["value_per_hour"] for step in steps] == sorted((s["value_per_hour"] for s in steps), reverse=True)
    assert steps[0]["key"] in CATALOGUE


def test_a_figure_of_values_shows_the_seeds_of_all_machines_and_one_of_series_those_it_can(tmp_path: Path):
    def of_values(measured: Measured) -> list[Chart]:
        return [bars_of(measured)]

    def of_series(measured: Measured) -> list[Chart]:
        assert all("curves" in part for part in measured.series.values())
        return [bars_of(measured)]

    def bars_of(measured: Measured) -> Chart:
        return Panel("Error", "%", {"long": "long.train_error"}, "The error.").draw(measured)

    small = toy().scales | {"small": Scale((0, 1), 0.1, {"epochs": 8})}
    for name, charts, drawn in (("values", of_values, [0, 1]), ("series", of_series, [0])):
        experiment = toy(charts=charts, scales=small)
        for machine in ("here", "there"):
            row = grow(experiment, "small", 1, ledger=tmp_path / name, runs=tmp_path / machine, where=Where(at_once=1))
        assert (row["seeds"], row["drawn"]) == ([0, 1], drawn)
        assert f"{len(drawn)} seed" in (tmp_path / name / row["figure"]).read_text()


def test_rows_of_another_identity_are_never_joined(tmp_path: Path):
    grow(toy(), "smoke", 1, ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1))
    longer = toy(scales={"smoke": Scale((0, 1), 0.1, {"epochs": 9})})
    with pytest.raises(UsageError, match="cannot be joined"):
        grow(longer, "smoke", 1, ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1))


def test_a_row_that_was_edited_by_hand_is_refused(tmp_path: Path):
    grow(toy(), "smoke", 1, ledger=tmp_path, runs=tmp_path / "runs", where=Where(at_once=1))
    path = book.path_of(tmp_path, "nguyen2024/toy", "smoke")
    row = json.loads(path.read_text())
    row["quantities"]["long.train_error"]["0"] -= 1.0
    path.write_text(json.dumps(row))
    with pytest.raises(DataError, match="was edited"):
        book.read(tmp_path, "nguyen2024/toy", "smoke")
    with pytest.raises(DataError, match="was edited"):
        reproduce(toy(), "smoke", ledger=tmp_path, runs=tmp_path / "later")
    assert not (tmp_path / "later").exists(), "found before anything is run"


def test_seeds_that_come_next_are_the_declared_ones_first():
    assert next_seeds((), (0, 1, 2), 2) == (0, 1)
    assert next_seeds((0, 2), (0, 1, 2), 3) == (1, 3, 4)
    assert next_seeds((5,), (0, 1), 4) == (0, 1, 2, 3)


def test_a_damaged_row_is_named(tmp_path: Path):
    (tmp_path / "nguyen2024-toy-full.json").write_text('{"key": ')
    with pytest.raises(DataError, match=r"nguyen2024-toy-full\.json cannot be read"):
        book.rows(tmp_path)


def test_the_list_has_a_line_for_every_experiment(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["reproduce", "--list", "--json", "--ledger", str(tmp_path)]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert {line["key"] for line in lines} == set(CATALOGUE)
    assert all(set(line) == {"key", "claim", "scale", "kind", "state", "verdict", "cost"} for line in lines)
    assert {line["state"] for line in lines} == {"not run"}
    assert lines == overview(tmp_path)


def test_a_stand_in_leaves_the_claim_of_the_paper_to_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = Scale((0, 1), 0.1, {"epochs": 8}, stand_in=True)
    experiment = toy(scales=toy().scales | {"small": small})
    monkeypatch.setattr(reproduction, "CATALOGUE", {experiment.key: experiment})
    unrun = {"scale": "full", "kind": "paper", "verdict": "not run"}
    assert [{name: line[name] for name in unrun} for line in overview(tmp_path)] == [unrun]
    made = reproduce(experiment, "small", runs=tmp_path / "runs", where=Where(at_once=1))
    book.write(tmp_path, made)
    seen, missing = overview(tmp_path)
    assert (seen["scale"], seen["kind"], seen["state"]) == ("small", "stand-in", "done")
    assert {name: missing[name] for name in unrun} == unrun


def test_a_dry_run_with_more_counts_the_seeds_that_would_be_added(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    words = ["reproduce", "nguyen2024/fig2", "--scale", "full", "--ledger", str(tmp_path), "--dry-run", "--json"]
    assert main([*words, "--more", "5"]) == 0
    [plan] = json.loads(capsys.readouterr().out)
    assert (plan["seeds"], plan["cost"]) == (5, "about 6 min on two cores")
    monkeypatch.setattr(sys.modules["evenly.sweep.launch"], "check_available", lambda where: where)
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)[0]["seeds"] == 10
    hours = []
    for more in ((), ("--more", "5")):
        assert main([*words, "--on", "ray", *more]) == 0
        hours.append(json.loads(capsys.readouterr().out)["clusters"][0]["hours"])
    assert hours[1] == pytest.approx(hours[0] / 2)


def test_listing_needs_no_torch():
    code = "import sys; from evenly.cli import main; main(['reproduce', '--list']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nguyen2024/fgi2"], "Did you mean 'nguyen2024/fig2'"),
        ([], "give the KEY"),
        (["--all", "nguyen2024/fig2"], "give the KEY"),
        (["nguyen2024/fig2", "--seeds", "a"], "--seeds 'a'"),
        (["nguyen2024/fig2", "--scale", "tiny"], "there is no 'tiny'"),
    ],
)
def test_wrong_words_are_answered_before_anything_runs(words: list[str], message: str, capsys, tmp_path: Path):
    try:
        code = main(["reproduce", *words, "--runs", str(tmp_path / "runs")])
    except SystemExit as leaving:
        code = leaving.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("key", sorted(PAPERS))
def test_every_paper_can_be_cited(key: str, capsys: pytest.CaptureFixture[str]):
    assert main(["cite", key]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("@")
    assert printed.count("{") == printed.count("}")
    assert paper(f"{key}/anything").key == key


def test_several_experiments_are_one_plan_and_a_failure_keeps_only_its_own_row(tmp_path, monkeypatch):
    """They were carried out one after the other, and the first that failed ended the command."""
    good, bad = CATALOGUE["chang2025/mistake5"], CATALOGUE["chang2025/mistake6"]

    def broken(context, part):
        from evenly.errors import DataError

        if part.address.startswith("chang2025.theorem3_4"):
            raise DataError("no such file")
        do_part(context, part)

    do_part = measurement.do_part
    monkeypatch.setattr(measurement, "do_part", broken)
    given = {"where": Where(at_once=1), "ledger": tmp_path / "claims", "runs": tmp_path / "runs"}
    whole, failed = reproduction.measure_together([(bad, "smoke"), (good, "smoke")], **given)
    assert [each.key for each, _ in whole] == [good.key]
    assert "no such file" in str(failed)
    monkeypatch.undo()
    whole, failed = reproduction.measure_together([(bad, "smoke"), (good, "smoke")], **given)
    assert (len(whole), failed) == (2, None)


def test_parts_can_be_trained_by_two_processes_each(tmp_path):
    """Each process wanted the lock of the part, and waited for the other for ever."""
    found, _ = measure(toy(), "smoke", seeds=(0,), runs=tmp_path, where=Where(at_once=1, devices=2, threads=1))
    assert found.values["long.error"].keys() == {0}


def test_small_is_full_where_that_is_small_already(capsys):
    assert main(["reproduce", "springer2024/fig2", "--scale", "small", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert "springer2024/fig2 has no scale small: it runs at full, which takes minutes." in told.err
    assert book.resolve_scale("small", CATALOGUE["springer2024/fig2"]) == "full"
    with pytest.raises(UsageError, match="has no scale 'small'"):
        book.resolve_scale("small", CATALOGUE["springer2024/table1-celeba"])


def test_own_rows_lie_on_top_of_those_that_came_with_the_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = len(book.rows(find_ledger(None)))
    key, scale = "chang2025/mistake9", "smoke"
    known = book.read(find_ledger(None), key, scale)
    assert shipped > 100
    assert known is not None
    words = ["reproduce", key, "--scale", scale, "--on", "local:1"]
    assert main([*words, "--more", "1"]) == 0
    assert [path.name for path in Path("claims").glob("*.json")] == ["chang2025-mistake9-smoke.json"]
    grown = book.read(find_ledger(None), key, scale)
    assert grown is not None
    assert grown["seeds"] == [*known["seeds"], max(known["seeds"]) + 1]
    assert len(book.rows(find_ledger(None))) == shipped
    capsys.readouterr()
    assert main(["report", "--claims", "--out", "site"]) == 0
    assert main(["report", "--atlas", "--out", "atlas"]) == 0
    assert main(["reproduce", "--next", "--dry-run"]) == 0
    assert "atlas/lacking-20 at small" not in capsys.readouterr().out
    assert find_ledger(Path("elsewhere")) == Path("elsewhere")


def test_a_whole_paper_leaves_out_what_takes_days_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = _select(["nguyen2024"], "auto", every=False)
    kept = _without_long(chosen, ["nguyen2024"])
    assert 0 < len(kept) < len(chosen)
    assert all(reproduction.cost(each, size) <= reproduction.LONG for each, size in kept)
    left = next(each for each, _ in chosen if each.key not in {one.key for one, _ in kept})
    assert f"{len(chosen) - len(kept)} of {len(chosen)} experiments take more than ten hours" in capsys.readouterr().err
    assert left.key in {each.key for each, _ in _without_long(chosen, [left.key])}
    assert main(["reproduce", left.key]) == 2
    assert "Add --yes to begin" in capsys.readouterr().err
