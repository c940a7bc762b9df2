"""`evenly advise`: what an early network shows, what the atlas says of it, and when nothing can be said."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.papers.atlas.test_page import KEYS, whole_row

from evenly.cli import main
from evenly.cli.advice_output import sentences, show_advice
from evenly.cli.advised_comparison import advised_command, advised_methods
from evenly.cli.train import recipe_options
from evenly.papers.atlas import task_list
from evenly.papers.atlas.advice import Advice, Choice
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, to_mapping
from evenly.training.signs import Sign

LEDGER = str(Path(__file__).parents[3] / "claims")
ASKED = ["digit-dominoes", "--model", "mlp", "--epochs", "6", "--set", "size=200", "--set", "model.options.width=32"]
LONGER = [word if word != "6" else "12" for word in ASKED]  # in which the gain shrinks


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def advised(capsys: pytest.CaptureFixture[str], *words: str, runs: Path) -> dict:
    capsys.readouterr()
    assert main(["advise", *words, "--runs", str(runs), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_abstains_where_the_atlas_is_empty_and_says_what_to_run(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *ASKED, "--runs", str(runs), "--ledger", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "No advice from the atlas" in told
    assert "evenly reproduce atlas" in told
    assert "evenly compare digit-dominoes" in told
    assert "1. " in told  # signs need no atlas


def test_near_a_task_it_ranks_cures_and_names_their_controls(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features of the early network are given to a task: advice comes from there, with a command that runs."""
    empty = advised(capsys, *LONGER, "--ledger", "nowhere", runs=runs)
    rows = [whole_row(key, {"useful8+noise": -14.0}) for key in KEYS]
    for each in rows:
        for name, value in empty["features"].items():
            each["quantities"][f"early.{name}"] = dict.fromkeys(map(str, range(20, 30)), value)
    monkeypatch.setattr(task_list, "atlas_rows", lambda ledger: rows)
    found = advised(capsys, *LONGER, runs=runs)
    assert not found["abstains"]
    assert found["ranking"][0]["cure"] == "useful8+noise"
    assert found["tested"] == {"tasks": 3, "good": 3, "same_cure": 3}
    methods = found["next"].partition("--methods ")[2].split()[0].split(",")
    assert methods[:2] == ["plain", "useful:8+noise:0.2"]
    assert {"random:8+noise:0.2", "steps:8", "batch", "augment-all:noise:0.2"} <= set(methods)
    assert found["next"].endswith("--split balanced")  # where the gain was seen
    assert main([*found["next"].split()[1:], "--dry-run", "--runs", str(runs)]) == 0
    assert main(["advise", *LONGER, "--runs", str(runs)]) == 0
    assert "USEFUL ×8, noise on the hard" in capsys.readouterr().out


def test_a_run_is_advised_on_as_it_was_trained(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    again = advised(capsys, found["run"][:8], "--ledger", "nowhere", runs=runs)
    assert again["features"] == found["features"]
    assert again["next"] == found["next"]
    assert again["next"].startswith("evenly compare digit-dominoes --epochs 6 --lr 0.1 --set data.options.size=200")
    assert main([*again["next"].split()[1:], "--dry-run", "--runs", str(runs)]) == 0
    assert [set(sign) for sign in found["signs"]] == [{"seen", "advice", "methods", "against"}] * len(found["signs"])
    for option, value in recipe_options().items():
        words = [value] if option in ("compile", "skip_broken") else [value, "seed=1" if option == "changes" else "1"]
        assert main(["advise", found["run"], *words, "--runs", str(runs)]) == 2, value
        assert f"{' '.join(words) if option == 'changes' else value}: run {found['run']} has a recipe already" in (
            capsys.readouterr().err
        )


def test_the_features_need_no_group_labels_and_are_those_of_the_early_network(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    assert set(found["features"]) >= {"hard_share", "distinctness", "agreement", "disagreement", "hard_error_later"}
    assert 0 < found["features"]["hard_share"] < 1
    assert found["epochs"] == 3


def test_data_that_no_cure_is_for_are_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    pictures = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "one.npz", inputs=pictures, labels=np.zeros(40, dtype=np.int64))
    assert main(["advise", str(tmp_path / "one.npz"), "--model", "mlp", "--runs", str(tmp_path / "runs")]) == 3
    assert "class" in capsys.readouterr().err
    np.savez(tmp_path / "real.npz", inputs=pictures, labels=np.linspace(0, 1, 40))
    assert main(["advise", str(tmp_path / "real.npz"), "--model", "mlp", "--runs", str(tmp_path / "runs")]) == 3
    assert main(["advise", "digits", "--model", "mlp", "--epochs", "2", "--runs", str(tmp_path / "runs")]) == 2
    assert "--epochs 4" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_run_too_short_for_advice_is_answered_with_a_command_that_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "runs")
    few = ["--set", "size=200", "--set", "model.options.width=8"]
    assert main(["train", "digit-dominoes", "--model", "mlp", "--epochs", "1", *few, "--runs", folder, "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["folder"]
    assert main(["advise", run, "--runs", folder]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "has 1 epoch, and advice looks at an early network" in told
    assert "evenly advise digit-dominoes --model mlp --epochs 4" in told


def test_odd_data_are_remarked_on_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.array([0] * 30 + [1] * 30 + [2])
    inputs = np.random.default_rng(0).normal(labels[:, None], 1.0, (61, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", inputs=inputs, labels=labels)
    words = [str(tmp_path / "d.npz"), "--model", "mlp", "--epochs", "4", "--batch-size", "16"]
    assert main(["advise", *words, "--runs", str(tmp_path / "runs")]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("has one training example") == 1
    assert told.count("a fifth of every class with two examples or more is held out") == 1


def test_data_that_do_not_exist_are_answered_as_by_every_other_verb(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "digit-domino", "--model", "mlp"]) in (2, 3)
    assert "digit-dominoes" in capsys.readouterr().err
    assert main(["advise", "3f2a", "--runs", str(runs)]) == 2
    assert f"there is no run '3f2a' in {runs}" in capsys.readouterr().err
    assert main(["advise"]) == 2
    assert torch.is_grad_enabled()


def proposal(recipe: Recipe, advice: Advice, signs: list[Sign], *, balanced: bool) -> str:
    return advised_command(recipe, advice, advised_methods(recipe, advice, signs), balanced=balanced)


def test_the_comparison_that_is_advised_is_of_the_data_as_they_were_given() -> None:
    recipe = Recipe(data=Data("my photos/", {"size": [32, 32], "skip_broken": True}), model=Model("convnet"))
    command = shlex.split(proposal(recipe, Advice({}), [], balanced=True))
    assert command[:5] == ["evenly", "compare", "my photos/", "--model", "convnet"]
    assert {"data.options.size=[32, 32]", "data.options.skip_broken=true"} <= set(command)


def test_the_comparison_tests_what_the_signs_advise() -> None:
    sign = Sign("None of 2 classes falls into two clusters.", "try SAM or a smaller batch.", ("sam", "batch"))
    command = proposal(Recipe(), Advice({}), [sign], balanced=False)
    assert "--methods plain,sam,batch " in command
    assert "--methods plain,useful,random,batch " in proposal(Recipe(), Advice({}), [], balanced=False)


def test_the_comparison_that_is_advised_repeats_every_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adam = Optimizer("adamw", lr=0.002)
    recipe = Recipe(data=Data("digit-dominoes", {"size": 200}), optimizer=adam, epochs=6, clip_norm=1.0, seed=3)
    command = shlex.split(proposal(recipe, Advice({}), [], balanced=True))
    assert main([*command[1:], "--dry-run", "--json", "--runs", str(tmp_path)]) == 0
    plain = json.loads(capsys.readouterr().out)["recipes"]["plain"]["recipe"]
    assert plain == json.loads(json.dumps(to_mapping(replace(recipe, seed=0))))


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One Gaussian cloud for each class: there is no second group."""
    path, labels = tmp_path_factory.mktemp("data") / "clouds.npz", np.arange(400) % 2
    inputs = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    inputs[:, 0] += 2 * labels - 1
    np.savez(path, inputs=inputs, labels=labels)
    return str(path)


def test_where_there_is_no_group_nothing_that_needs_one_is_ranked_or_compared(
    clouds: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [clouds, "--model", "mlp", "--epochs", "10", "--ledger", LEDGER]
    found = advised(capsys, *words, runs=runs)
    assert "USEFUL has no group" in " ".join(sign["advice"] for sign in found["signs"])
    assert not found["abstains"]
    assert not [choice for choice in found["ranking"] if choice["cure"].startswith(("useful", "right", "reweight"))]
    assert {"useful8", "right", "reweight"} <= set(found["ruled_out"]) | set(found["harmful"])
    methods = found["next"].partition("--methods ")[2].split()[0].split(",")
    assert "sam" in methods
    assert not [method for method in methods if "useful" in method]
    assert main(["advise", *words, "--runs", str(runs)]) == 0
    assert "Left out, because of what the early network shows: " in capsys.readouterr().err


def test_before_the_gain_shrinks_nothing_that_needs_clusters_is_ranked_or_compared(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    assert "did not slow to a tenth" in empty["signs"][0]["seen"]
    assert "--methods plain,sam,batch " in empty["next"]
    rows = [whole_row(key, {"useful8+noise": -14.0}) for key in KEYS]
    for each in rows:
        for name, value in empty["features"].items():
            each["quantities"][f"early.{name}"] = dict.fromkeys(map(str, range(20, 30)), value)
    monkeypatch.setattr(task_list, "atlas_rows", lambda ledger: rows)
    found = advised(capsys, *ASKED, runs=runs)
    assert "useful8+noise" in found["ruled_out"]
    assert not [choice for choice in found["ranking"] if "useful" in choice["cure"]]
    assert "useful" not in found["next"]


def test_harm_done_where_labels_are_wrong_is_told_as_such_and_does_not_contradict_a_sign(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["digit-dominoes", "--model", "mlp", "--epochs", "30", "--ledger", LEDGER]
    assert main(["advise", *words, "--runs", str(runs)]) == 0
    told = capsys.readouterr().err
    assert "USEFUL has a group to upsample" in told
    assert "two classes" not in told
    (harm,) = [line for line in told.splitlines() if "Not first: " in line and "USEFUL ×2;" in line]
    assert "The ordinary test error rose on noisy-2" in harm
    assert "of the labels contradict the early network (0.0% here): if your labels are right" in harm


def test_a_cure_is_compared_where_it_gained_and_its_loss_elsewhere_is_told(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["digit-dominoes", "--model", "mlp", "--epochs", "30", "--set", "data.options.noise=0.2"]
    found = advised(capsys, *words, "--ledger", LEDGER, runs=runs)
    first = found["ranking"][0]
    assert first["test"] < 0 < first["balanced"]
    assert "--split" not in found["next"]
    assert main(["advise", *words, "--ledger", LEDGER, "--runs", str(runs)]) == 0
    told = capsys.readouterr().err
    assert "lower test error, but a higher one where the easy feature says nothing" in told
    assert "USEFUL has a group" not in told  # which may be the wrong labels


def test_the_price_of_the_comparison_is_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = advised(capsys, *LONGER, "--ledger", "nowhere", runs=runs)
    share, made = found["features"]["hard_share"], found["estimate"]
    assert made["runs"] == 40
    assert made["early_runs"] == pytest.approx(10 * 2 * (2 + 2 * (1 + share)))  # plain, batch, useful, random
    assert main(["advise", *LONGER, "--ledger", "nowhere", "--runs", str(runs)]) == 0
    assert "That is 40 runs, " in capsys.readouterr().err


def test_what_a_sign_advises_joins_what_the_atlas_does_unless_it_surely_harms() -> None:
    ranking = (Choice("logit-penalty", -2.0, -2.0, -2.0, -2.0, 0.0, 1.0),)
    signs = [Sign("", "", ("useful", "random", "batch"))]
    near = {"atlas/noisy-2": 0.5}
    joined = advised_methods(Recipe(), Advice(near, ranking), signs)
    assert joined == ["plain", "logit-penalty:0.01", "label-smoothing", "useful", "random", "batch"]
    harmed = Advice(near, ranking, {"useful": ("atlas/noisy-2",)})
    assert "useful" not in advised_methods(Recipe(), harmed, signs)
    assert "useful" in advised_methods(Recipe(), replace(harmed, noisier={"atlas/noisy-2": 0.02}), signs)
    again = Advice(near, (replace(ranking[0], cure="useful8+noise"),))
    assert advised_methods(Recipe(), again, signs)[1:] == [
        "useful:8+noise:0.2", "random:8+noise:0.2", "steps:8", "batch", "augment-all:noise:0.2"
    ]  # fmt: skip


def test_what_is_compared_without_advice_differs_from_the_recipe() -> None:
    too_early = [Sign("", "", against=("useful",))]
    assert advised_methods(Recipe(), Advice({}), too_early) == ["plain", "sam", "batch"]
    assert advised_methods(Recipe(ascent=Ascent("sam")), Advice({}), too_early) == ["plain", "batch"]
    assert advised_methods(Recipe(), Advice({}), []) == ["plain", "useful", "random", "batch"]


def test_a_method_that_the_recipe_has_already_is_not_compared_with_itself() -> None:
    recipe = Recipe(logit_penalty=0.01)
    ranking = (Choice("logit-penalty", -2.0, -2.0, -2.0, -2.0, 0.0, 1.0),)
    assert advised_methods(recipe, Advice({}, ranking), []) == ["plain", "label-smoothing"]


FEATURES = {
    "epoch": 4, "error": 0.1, "hard_share": 0.2, "hard_error": 0.4, "hard_error_later": 0.1, "distinctness": 0.2,
    "disagreement": 0.034, "agreement": 0.8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("feature", "value", "told"),
    [
        ("disagreement", 0.034, "surest, 3.4% have another label: wrong labels, "),  # of these, not of all labels
        ("disagreement", 0.0, "surest, none has another label."),
        ("distinctness", 0.2, "which are more distinct than halves of one cloud (+0.20)"),
        ("distinctness", 0.004, "which are no more distinct than halves of one cloud (+0.00)"),
        ("distinctness", -0.03, "which are no more distinct than halves of one cloud (−0.03)"),
        ("distinctness", -0.004, "which are no more distinct than halves of one cloud (+0.00)"),
    ],
)
def test_sentences_on_the_early_network_say_what_its_numbers_say(feature: str, value: float, told: str) -> None:
    assert told in " ".join(sentences(FEATURES | {feature: value}, 15))


def show(*ranking: Choice, pictures: bool = True, balanced: bool = True) -> None:
    found = {
        "features": FEATURES, "epochs": 15, "signs": [], "ranking": [vars(choice) for choice in ranking],
        "next": "evenly compare …", "tested": {"tasks": 0},
        "estimate": {"runs": 20, "early_runs": 40.0, "seconds": 60.0},
    }  # fmt: skip
    advice = Advice({"atlas/lacking-20": 0.2}, ranking)
    show_advice(found, advice, ledger="claims", pictures=pictures, balanced=balanced)


PLAIN = Choice("plain", 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(("split", "balanced", "told"), [
    ("balanced", False, True), ("balanced", True, False), ("test", False, False)
])  # fmt: skip
def test_a_gain_that_the_comparison_cannot_show_is_told(
    split: str, balanced: bool, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    means = {"balanced": (-8.6, 0.12), "test": (1.0, -0.4)}[split]
    show(Choice("useful8", -8.6, means[0], -12.0, -4.9, means[1], 3.6), PLAIN, balanced=balanced)
    said = capsys.readouterr().err
    assert (
        "USEFUL ×8 gained on data where the easy feature says nothing, and yours have no such split" in said
    ) == told
    assert ("it changed the error by +0.12 points" in said) == told


def test_nothing_that_did_worse_than_plain_training_is_there_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    worse = Choice("label-smoothing", 0.4, 0.1, -1.0, 0.9, -0.6, 1.0)
    show(Choice("logit-penalty", -0.3, -0.2, -0.5, 0.1, -0.35, 1.0), PLAIN, worse)
    tried = capsys.readouterr().out
    assert "logit penalty 0.01" in tried
    assert "plain" in tried
    assert "label smoothing" not in tried


@pytest.mark.parametrize(("cure", "pictures", "warned"), [
    ("useful8+noise", False, True), ("useful8+noise", True, False), ("logit-penalty", False, False)
])  # fmt: skip
def test_noise_on_pixels_is_not_advised_for_other_inputs_without_a_word_on_its_scale(
    cure: str, pictures: bool, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = Choice(cure, -2.0, -2.0, -2.0, -2.0, 0.0, 1.0)
    show(choice, pictures=pictures)
    assert ("Your inputs are no pictures, and σ is in their own units" in capsys.readouterr().err) == warned
