"""`evenly measure` and `evenly stability` as a person runs them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.cli import main
from evenly.diagnostics import importance, sam_edge
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Schedule
from evenly.records import Run
from evenly.training.train import train
from evenly.training.trained_model import load_trained


def evenly(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenly", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    recipe = Recipe(
        data=Data("digit-dominoes"),
        model=Model("mlp", {"width": 16}),
        augment=("normalise:standard",),
        epochs=3,
        batch_size=64,
        keep_epochs=(1, 2),
        optimizer=Optimizer(lr=0.05),
    )
    return train(recipe, runs=tmp_path_factory.mktemp("w") / "runs", device="cpu")


def test_a_run_is_measured_in_plain_names_and_the_numbers_go_into_its_records(trained: Run) -> None:
    result = evenly(
        "measure", trained.id[:6], "sharpness", "probing", "importance", "--json", cwd=trained.path.parents[1]
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"lambda_max", "lambda_ratio_5", "l1", "easy", "hard", "gini"} <= set(found)
    assert found["easy"] < found["hard"]
    assert json.loads((trained.path / "measurements" / "epoch-0003.json").read_text())["l1"] == found["l1"]


def test_what_cannot_be_stored_is_shown_with_a_warning(
    trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(trained.path, tmp_path / trained.id))
    shutil.rmtree(copy / "measurements", ignore_errors=True)
    (copy / "measurements").write_text("in the way")
    assert main(["measure", str(copy), "rank", "--examples", "50", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "feature_rank" in json.loads(out)
    assert "was not stored: cannot write" in err
    # A folder that only others may write to, for a test that may run as root: the lock cannot be made.
    (copy / "lock").unlink(missing_ok=True)
    (copy / "lock").mkdir()
    assert main(["measure", str(copy), "rank", "--examples", "50"]) == 0
    assert "Written to" not in capsys.readouterr().err
    assert main(["stability", "threshold", "--run", str(copy), "--examples", "20", "--draws", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "methods" in json.loads(out)
    assert "stability.json was not stored" in err


def test_measurements_follow_the_epochs_whose_weights_were_kept(trained: Run) -> None:
    result = evenly("measure", trained.path, "rank", "--at-epochs", "1,2,3", "--json", cwd=trained.path.parents[1])
    assert [row["epoch"] for row in json.loads(result.stdout)] == [1, 2, 3], result.stderr
    missing = evenly("measure", trained.path, "rank", "--at-epochs", "7", cwd=trained.path.parents[1])
    assert missing.returncode == 2
    assert "it has those of 1, 2, 3" in missing.stderr
    unknown = evenly("measure", trained.path, "sharpnes", cwd=trained.path.parents[1])
    assert unknown.returncode == 2
    assert "Did you mean 'sharpness'" in unknown.stderr


def test_a_weights_file_of_a_run_is_measured_at_its_epoch(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    kept = trained.path / "checkpoints" / "epoch-0001.safetensors"
    for path, epoch in ((kept, 1), (trained.path / "weights.safetensors", 3)):
        assert main(["measure", str(path), "rank", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["epoch"] == epoch
    assert main(["measure", str(kept), "rank", "--at-epochs", "2"]) == 2
    assert "is epoch 1 already" in capsys.readouterr().err
    assert main(["measure", str(kept.with_name("epoch-0009.safetensors"))]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_batch_larger_than_the_training_set_is_refused_and_not_clamped(
    trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["stability", "threshold", "--run", str(trained.path)]
    assert main([*words, "--batch", "100000"]) == 2
    complaint = capsys.readouterr().err
    assert "training examples, fewer than --batch 100000" in complaint
    assert "--sampling with" in complaint
    assert main([*words, "--examples", "0"]) == 2
    assert main([*words, "--draws", "0"]) == 2
    assert main([*words, "--momentum", "0.5"]) == 2
    assert "it is read from the run's recipe" in capsys.readouterr().err


def test_a_run_with_momentum_is_judged_with_it_and_with_the_noise_of_the_whole_set(
    trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["stability", "threshold", "--run", str(trained.path), "--examples", "20", "--json"]
    assert main([*words, "--draws", "2"]) == 0  # the run's batch of 64 is larger than the part
    report = json.loads(capsys.readouterr().out)
    assert report["lr"] == report["lr_initial"] == 0.05
    assert report["lr_last"] == trained.metrics()[-1]["lr"] < 0.05
    assert report["notes"][0].startswith("Judged at the initial learning rate; the run began with 0.05 and ended with")
    assert all(note[0].isupper() and note.endswith(".") for note in report["notes"])
    assert (report["num_examples"], report["draws"], report["sampling"]) == (20, 2, "without")
    assert report["population"] == len(load_trained(trained).splits.train)
    name = "SGD, momentum 0.9, weight decay 0.0005"
    assert list(report["methods"]) == [name, "plain SGD"]
    assert f"Model of the optimizer: {name}." in report["notes"]
    own, plain = report["methods"][name], report["methods"]["plain SGD"]
    assert own["eta_interval"][0] <= own["eta_exact"] <= own["eta_interval"][1]
    assert own["eta_exact"] < plain["eta_exact"]
    assert "not this run's optimizer" in plain["stands"]
    assert main(words[:-1]) == 0
    out = capsys.readouterr().out
    assert "σ = " in out
    assert "95% interval of the threshold" in out
    assert "None" not in out


def test_a_run_is_judged_by_examples_that_are_drawn_with_equal_chances(
    trained: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenly.stability import run_thresholds

    seen = []
    report = run_thresholds.run_report

    def look(model, train, parts, method, **settings):  # type: ignore[no-untyped-def]
        seen.extend(parts)
        return report(model, train, parts, method, **settings)

    monkeypatch.setattr(run_thresholds, "run_report", look)
    words = ["stability", "threshold", "--run", str(trained.path), "--examples", "20", "--json"]
    assert main(words) == 0
    capsys.readouterr()
    counts = [torch.bincount(part.labels, minlength=len(part.classes)) for part in seen]
    assert max(int(count.max() - count.min()) for count in counts) > 1  # equal classes would be 2 of each


def test_a_ratio_for_a_run_without_sam_is_refused(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["stability", "threshold", "--run", str(trained.path), "--examples", "20", "--draws", "1", "--json"]
    assert main([*words, "--ratio", "0.3"]) == 2
    assert "--ratio 0.3 is ρ/α of SAM" in capsys.readouterr().err
    assert main([*words, "--ratio", "0.3", "--ascent", "sam"]) == 0
    name = "SAM ρ/α=0.3 on its own batch with SGD, momentum 0.9, weight decay 0.0005"
    assert list(json.loads(capsys.readouterr().out)["methods"]) == [name, "plain SGD"]


@pytest.mark.parametrize("option", ["--examples 9", "--draws 2", "--optimizer sgd", "--ascent none"])
def test_an_option_of_runs_is_refused_for_a_gram_file(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "gram.npy", np.eye(4))
    assert main(["stability", "threshold", "--gram", str(tmp_path / "gram.npy"), "--batch", "2", *option.split()]) == 2
    assert f"{option}: a Gram matrix has no run to apply it to" in capsys.readouterr().err


def test_an_adamw_run_is_never_judged_as_sgd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(
        data=Data("spirals", {"num_train": 60}), model=Model("mlp", {"width": 8}), epochs=2, batch_size=20,
        optimizer=Optimizer("adamw", lr=0.001, weight_decay=0.01), schedule=Schedule("constant"),
    )  # fmt: skip
    run = train(recipe, runs=tmp_path / "runs", device="cpu")
    assert main(["stability", "threshold", "--run", str(run.path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    name = "AdamW, beta1 0.9, second moments frozen, decoupled weight decay 0.01"
    assert "approximate threshold" in report["methods"][name]["stands"]
    assert any(note.startswith("An approximation: ") for note in report["notes"])


def test_a_loaded_run_predicts_what_it_predicted_when_it_was_trained(trained: Run) -> None:
    found = load_trained(trained)
    test = found.splits["test"]
    with torch.no_grad():
        wrong = (found.model(test.inputs).argmax(1) != test.labels).double().mean().item()
    assert wrong == pytest.approx(trained.summary()["test.error"])


def test_solutions_have_the_guides_facts(tmp_path: Path) -> None:
    rows = json.loads(evenly("stability", "solutions", "--c", "2,3,4,5", "--json", cwd=tmp_path).stdout)
    assert [row["c"] for row in rows] == [2, 3, 4, 5, "memorising"]
    assert all(row["trace"] == pytest.approx(2 * np.sqrt(101)) for row in rows)
    assert all(row["eta_criterion"] == pytest.approx(1.658, abs=1e-3) for row in rows)
    exact = [row["eta_exact"] for row in rows]
    assert exact == sorted(exact)
    assert exact[-1] == pytest.approx(0.995, abs=1e-3)


def test_the_map_is_drawn_and_not_over_another_file(tmp_path: Path) -> None:
    words = ["stability", "map", "--out", "f.png", "--repeats", "2", "--steps", "200"]
    assert evenly(*words, cwd=tmp_path).returncode == 0
    again = evenly(*words, cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_a_trained_network_is_told_where_its_learning_rate_stands(tmp_path: Path) -> None:
    recipe = Recipe(
        data=Data("parity", {"dim": 8, "num_train": 40}),
        model=Model("relu2", {"width": 16}),
        loss="squared",
        optimizer=Optimizer(lr=0.05, momentum=0, weight_decay=0),
        schedule=Schedule("constant"),
        epochs=300,
        batch_size=10,
        evaluate_every=300,
    )
    run = train(recipe, runs=tmp_path / "runs", device="cpu")
    result = evenly("stability", "threshold", "--run", run.id, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["batch"] == 10
    assert report["lr"] == 0.05
    assert report["methods"]["SGD"]["eta_exact"] > 0
    assert "SGD" in evenly("stability", "threshold", "--run", run.id, cwd=tmp_path).stdout


def test_a_gram_file_is_judged_without_a_network(tmp_path: Path) -> None:
    np.save(tmp_path / "gram.npy", np.eye(4))
    words = ["stability", "threshold", "--gram", "gram.npy", "--batch", "2", "--lr", "0.1", "--json"]
    assert json.loads(evenly(*words, cwd=tmp_path).stdout)["methods"]["SGD"]["eta_exact"] == pytest.approx(4.0)


def test_a_gram_file_without_a_learning_rate_gives_the_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "gram.npy", np.eye(4))
    words = ["stability", "threshold", "--gram", str(tmp_path / "gram.npy")]
    assert main([*words, "--batch", "2"]) == 0
    out = capsys.readouterr().out
    assert "stable in mean square below lr = 4" in out
    assert "None" not in out
    assert main(words) == 2
    assert "give --batch too" in capsys.readouterr().err


def test_a_gram_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "zip.npz", gram=np.eye(4))
    np.save(tmp_path / "objects.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    (tmp_path / "empty.npy").touch()
    for name in ("zip.npz", "objects.npy", "words.npy", "empty.npy"):
        assert main(["stability", "threshold", "--gram", str(tmp_path / name)]) == 3
        assert f"{name}" in (said := capsys.readouterr().err)
        assert "numpy.save" in said


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["stability", "threshold"], 2, "either --run RUN or --gram FILE"),
        (["stability", "threshold", "--gram", "none.npy", "--batch", "1", "--lr", "1"], 3, "does not exist"),
        (["stability", "threshold", "--gram", "none.npy"], 3, "does not exist"),
        (["measure", "model.safetensors"], 2, "not the weights file of a run"),
        (["stability", "solutions", "--c", "two"], 2, "--c 'two'"),
        (["stability", "map", "--ratios", "x"], 2, "--ratios 'x'"),
        (["measure", "nothing"], 2, "there is no run 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_said(
    words: list[str],
    code: int,
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    assert complaint in capsys.readouterr().err


def test_curves_and_maps_are_phrases_on_a_table_and_arrays_in_the_records(trained: Run) -> None:
    result = evenly("measure", trained.path, "density", "importance", cwd=trained.path.parents[1])
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "200 points from" in rows["density"]
    assert "of the eigenvalues are above" in rows["tail"]
    assert "to the trace; the negative ones take away" in rows["tail"]
    assert "the least important half of the examples holds" in rows["lorenz"]
    assert "10 × 10 cells" in rows["importance_map"]
    assert "[" not in result.stdout
    found = trained.read_json("measurements/epoch-0003.json")
    assert len(found["density"]["grid"]) == len(found["density"]["values"]) == 200
    assert len(found["importance_map"]["real"]) == 10


def test_adaptive_sharpness_groups_layers_and_the_line_to_another_run_are_measured(
    trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["measure", str(trained.path), "adaptive_sharpness", "worst_group", "layer_probes", "sam_edge"]
    words += ["--examples", "60", "--other", str(trained.path / "checkpoints" / "epoch-0001.safetensors")]
    assert main(words) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert {"adaptive_sharpness", "worst_group_error", "layer_probes", "sam_edge", "barrier"} <= set(rows)
    assert "easy" in rows["layer_probes"]
    assert "{" not in out
    numbers = trained.read_json("measurements/epoch-0003.json")
    assert numbers["mode_connectivity"]["shares"][0] == 0
    assert len(numbers["mode_connectivity"]["losses"]) == 11
    assert numbers["sam_edge_lr"] == trained.metrics()[-1]["lr"]


def test_where_a_run_stands_goes_into_its_records(trained: Run) -> None:
    words = ["stability", "threshold", "--run", trained.path, "--examples", "128", "--json"]
    result = evenly(*words, cwd=trained.path.parents[1])
    assert result.returncode == 0, result.stderr
    kept = trained.read_json("stability.json")
    assert (kept["epoch"], kept["examples"], kept["batch"]) == (3, 128, 64)
    printed = json.loads(result.stdout)
    assert set(kept["methods"]) == set(printed["methods"])
    assert kept["trace"] == printed["trace"]
    assert trained.state == "done"


def test_the_edge_of_a_sam_run_is_that_of_its_own_radius(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(
        data=Data("digit-dominoes"), model=Model("mlp", {"width": 8}), epochs=1, optimizer=Optimizer(lr=0.05),
        ascent=Ascent("sam", 0.2),
    )  # fmt: skip
    run = train(recipe, runs=tmp_path / "runs", device="cpu")
    for more, rho in (([], 0.2), (["--rho", "0.1"], 0.1)):
        assert main(["measure", str(run.path), "sam_edge", "--examples", "50", "--json", *more]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["sam_edge_rho"] == rho
        assert found["sam_edge_descent"] == pytest.approx(2 * 1.9 / found["sam_edge_lr"])  # momentum 0.9
        assert found["sam_edge"] == pytest.approx(
            sam_edge(found["sam_edge_gradient_norm"], lr=found["sam_edge_lr"], rho=rho, momentum=0.9)
        )


def test_a_run_is_measured_with_its_own_loss_and_optimizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(
        data=Data("parity", {"dim": 8, "num_train": 40}), model=Model("relu2", {"width": 16}), epochs=1, batch_size=20,
        loss="squared", optimizer=Optimizer("adamw", lr=0.01),
    )  # fmt: skip
    run = train(recipe, runs=tmp_path / "runs", device="cpu")
    assert main(["measure", str(run.path), "importance", "--rho", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["phantom_gini"]
    stored = load_trained(run)
    squared, other = (
        importance(stored.model, stored.splits.train, rho=2.0, loss=loss).phantom_gini  # type: ignore[arg-type]
        for loss in ("squared", None)
    )
    assert found == pytest.approx(squared, rel=1e-5)
    assert found != pytest.approx(other, rel=1e-3)
    assert main(["measure", str(run.path), "sam_edge"]) == 2
    assert "the run used adamw, and the edge is known for SGD only" in capsys.readouterr().err


def test_an_option_of_one_measurement_can_be_set_and_a_wrong_one_is_named(
    trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["measure", str(trained.path), "m_sharpness", "--examples", "40", "--json"]
    assert main([*words, "--set", "m_sharpness.m=4"]) == 0
    assert json.loads(capsys.readouterr().out)["m_sharpness_m"] == 4
    for wrong, said in (
        ("m_sharpness.n=4", "m_sharpness has no option 'n'"),
        ("m_sharpnes.m=4", "Did you mean 'm_sharpness'"),
        ("m=4", "expected MEASUREMENT.OPTION=VALUE"),
        ("rise.steps=4", "rise is not measured here"),
    ):
        assert main([*words, "--set", wrong]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(("setting", "value", "what"), [("rho", "0.1", "rank"), ("layer", "head", "sharpness")])
def test_a_setting_that_nothing_named_depends_on_is_refused(
    setting: str, value: str, what: str, trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", str(trained.path), what, f"--{setting}", value]) == 2
    said = capsys.readouterr().err
    assert f"--{setting} {value}: {what} would not depend on it" in said
    assert "importance" in said
    assert main(["measure", str(trained.path), f"{what}s", f"--{setting}", value]) == 2
    assert f"no measurement '{what}s'" in capsys.readouterr().err


def test_layers_are_probed_for_the_attributes_that_are_named(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["measure", str(trained.path), "layer_probes", "--set", "layer_probes.attributes=[hard]"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "head: hard " in printed
    assert "easy" not in printed
