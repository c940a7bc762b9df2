"""`evenly useful`, `separate` and `export` as a person runs them."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from evenly.cli import main
from evenly.cli.comparison_arguments import numbers
from evenly.cli.comparison_output import say_default_epochs, say_networks
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.training.comparison import Design


def evenly(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenly", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300
    )


QUICK = ["--model", "mlp", "--epochs", "4", "--set", "model.options.width=32", "--device", "cpu"]


def test_useful_prints_a_table_with_intervals_and_a_verdict_in_a_sentence(tmp_path: Path) -> None:
    rate = ["--lr", "0.1", "--set", "schedule.kind=step"]  # by which USEFUL and plain training differ visibly
    words = [*QUICK, *rate, "--controls", "original,random", "--seeds", "0-1"]
    result = evenly("useful", "digit-dominoes", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["method", "plain", "USEFUL", "random"]
    assert all(len(line) <= 80 for line in lines)
    assert re.search(r" \d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\] ", lines[2]), lines[2]
    assert re.search(r" [+−]\d+\.\d\d \[[+−]\d+\.\d\d, [+−]\d+\.\d\d\] ", lines[2]), lines[2]
    assert "Too early to say: 2 seeds cannot tell a gain from chance." in result.stderr
    assert re.search(r"To tell more:\n  evenly useful .* --seeds 0-4$", result.stderr, flags=re.MULTILINE)
    assert "For `evenly export`, the runs of the method: " in result.stderr
    assert re.search(r"See it as a page:\n  evenly report [0-9a-f]{12} --open\n$", result.stderr)


def test_useful_as_json_has_every_run(tmp_path: Path) -> None:
    words = ["useful", "digit-dominoes", *QUICK, "--seeds", "3", "--at-epoch", "1", "--json"]
    found = json.loads(evenly(*words, cwd=tmp_path).stdout)
    assert [method["name"] for method in found["methods"]] == ["plain", "useful", "random"]
    for method in found["methods"]:
        assert (tmp_path / "runs" / method["runs"]["3"]["run"] / "done").exists()
    stored = json.loads((tmp_path / "runs" / "comparisons" / f"{found['id']}.json").read_text())
    assert stored["methods"] == found["methods"]
    assert stored["command"] == f"evenly {' '.join(words)}"


def chosen(output: str) -> str:
    """The run of the method with seed 0, by what `evenly useful --json` printed."""
    methods = json.loads(output)["methods"]
    return next(method["runs"]["0"]["run"] for method in methods if method["name"] == "useful")


def photos(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for label, name in enumerate(("cat", "dog")):
        (folder / name).mkdir(parents=True)
        for i in range(40):
            picture = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
            if i % 4:  # three in four have the easy feature: a bright half
                picture[:, 4 * label : 4 * label + 4] += 150
            Image.fromarray(picture).save(folder / name / f"{i:02}.png")
    return folder


class FromManifest(Dataset):
    """What anyone writes to train on the exported CSV alone."""

    def __init__(self, path: Path) -> None:
        with path.open() as file:
            rows = list(csv.DictReader(file))
        self.items = [(path.parent / row["path"], row["label"]) for row in rows for _ in range(int(row["repeat"]))]
        self.classes = sorted({label for _, label in self.items})

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        path, label = self.items[i]
        with Image.open(path) as picture:
            return torch.from_numpy(np.array(picture)).permute(2, 0, 1) / 255, self.classes.index(label)


def test_an_exported_csv_alone_trains_a_plain_loop_on_the_upsampled_photos(tmp_path: Path) -> None:
    photos(tmp_path / "photos")
    # A folder has no test split: the error is taken on a validation split.
    words = ["useful", "photos", *QUICK, "--controls", "", "--seeds", "0", "--at-epoch", "2", "--batch-size", "16"]
    words += ["--set", "data.validation=0.2", "--split", "validation", "--json"]
    result = evenly(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    run = chosen(result.stdout)
    with np.load(tmp_path / "runs" / run / "examples.npz", allow_pickle=False) as kept:
        assert all(str(name).endswith(".png") for name in kept["files"]), "pictures are named by their files"
    exported = evenly("export", run, "--as", "csv", "--out", "up.csv", "--json", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    facts = json.loads(exported.stdout)
    data = FromManifest(tmp_path / "up.csv")
    assert len(data) == facts["with_repeats"] > facts["examples"] == 64
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, labels in DataLoader(data, batch_size=16, shuffle=True, generator=torch.Generator()):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    again = evenly("data", "verify", "up.csv", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_a_folder_of_links_and_indices_hold_every_copy(tmp_path: Path) -> None:
    photos(tmp_path / "photos")
    words = ["useful", "photos", *QUICK, "--controls", "", "--seeds", "0", "--at-epoch", "2", "--batch-size", "16"]
    words += ["--set", "data.validation=0.2", "--split", "validation", "--json"]
    run = chosen(evenly(*words, cwd=tmp_path).stdout)
    links = evenly("export", run, "--as", "folder", "--json", cwd=tmp_path)
    assert links.returncode == 0, links.stderr
    num = json.loads(links.stdout)["with_repeats"]
    assert len(list((tmp_path / "upsampled" / "train").glob("*/*"))) == num
    assert evenly("export", run, "--as", "indices", cwd=tmp_path).returncode == 0
    assert len(np.load(tmp_path / "indices.npy")) == num
    often = json.loads(
        evenly("export", run, "--as", "indices", "--factor", "5", "--force", "--json", cwd=tmp_path).stdout
    )
    assert often["with_repeats"] == often["examples"] + 4 * often["hard"]
    assert len(np.load(tmp_path / "indices.npy")) == often["with_repeats"]


def logits_file(path: Path) -> Path:
    rng = np.random.default_rng(1)
    labels = np.arange(200) % 4
    hard = np.arange(200) % 5 == 0
    logits = rng.normal(0, 0.3, (200, 4)) + 6 * np.eye(4)[labels] * ~hard[:, None]
    np.savez(path, logits=logits.astype(np.float32), labels=labels)
    return path


def test_outputs_of_any_network_are_separated_and_exported(tmp_path: Path) -> None:
    logits_file(tmp_path / "logits.npz")
    result = evenly("separate", "--from-logits", "logits.npz", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with (tmp_path / "separation.csv").open() as file:
        hard = [row["hard"] == "1" for row in csv.DictReader(file)]
    assert hard == [i % 5 == 0 for i in range(200)]
    assert evenly("export", "separation.csv", "--as", "indices", cwd=tmp_path).returncode == 0
    assert len(np.load(tmp_path / "indices.npy")) == 240


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["separate", "--from-logits", "none.npz"], 3, "does not exist"),
        (["separate"], 2, "which data?"),
        (["separate", "digits", "--from-logits", "none.npz"], 2, "give one of them"),
        (["useful", "digit-dominoes", "--seeds", "a-b"], 2, "--seeds 'a-b'"),
        (["useful", "digit-dominoes", "--epochs", "1"], 2, "Train for 2 epochs or more"),
        (["useful", "digit-dominoes", "--epochs", "4", "--at-epoch", "99"], 2, "whole epoch from 1 to 4"),
        (["train", "digits", "--rho", "0.1"], 2, "give --optimizer sam too"),
        (["train", "digits", "--optimizer", "sma"], 2, "Did you mean 'sam'"),
        (["train", "digits", "--epochs", "2", "--set", "keep_epochs=[3]"], 2, "3 is beyond them"),
        (["useful", "digit-dominoes", "--controls", "orginal"], 2, "Did you mean 'original'"),
        (["useful", "digit-dominoes", "--on", "locl"], 2, "Did you mean 'local'"),
        (["useful", "digit-dominoes", "--on", ""], 2, "--on '': there is no such engine"),
        (["compare", "digit-dominoes", "--methods", "plain,sma"], 2, "Did you mean 'sam'"),
        (["compare", "digit-dominoes", "--methods", "plain,useful+random"], 2, "two of its words set"),
        (["compare", "digit-dominoes", "--methods", ""], 2, "one method and one seed"),
        (["compare", "digit-dominoes", "--methods", "sam"], 2, "Give --methods plain,sam."),
        (["compare", "digit-dominoes", "--methods", "plain"], 2, "Give --methods plain,sam."),
        (["compare", "digit-dominoes", "--seeds", "4-0"], 2, "a range goes up"),
        (["compare", "digit-dominoes", "--time", "4:00:00"], 2, "--time is for Slurm"),
        (["compare", "digit-dominoes", "--on", "local:0"], 2, "1 or more jobs at once"),
        (["compare", "digit-dominoes", "--optimizer", "sam", "--methods", "plain,sam"], 2, "sam changes nothing"),
        (["compare"], 2, "which data? Give a data set or a path: evenly compare digits"),
        (["useful", "digit-dominoes", "--at-epoch", "1", "--at-fraction", "0.1"], 2, "give one of them"),
        (["export", "abc", "--as", "csv"], 2, "there is no run 'abc'"),
        (["export", "abc", "--as", "cvs"], 2, "Did you mean 'csv'"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    words: list[str],
    code: int,
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        found = main(words)
    except SystemExit as stop:
        found = int(str(stop.code))
    assert found == code
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "runs").exists(), "nothing is made before everything is checked"


def test_json_is_valid_where_a_class_could_not_be_split(tmp_path: Path) -> None:
    logits = np.random.default_rng(0).normal(size=(21, 3)).astype(np.float32)
    np.savez(tmp_path / "lone.npz", logits=logits, labels=np.array([0, 1] * 10 + [2]))
    result = evenly("separate", "--from-logits", "lone.npz", "--json", cwd=tmp_path)
    found = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["classes"][2]["loss_hard"] is None
    assert "cli/separate.py" not in result.stderr, "a remark names no place in the code"


def test_runs_tell_the_stages_of_the_method_apart(tmp_path: Path) -> None:
    evenly("useful", "digit-dominoes", *QUICK, "--seeds", "0", "--at-epoch", "1", cwd=tmp_path)
    listed = json.loads(evenly("runs", "--json", cwd=tmp_path).stdout)
    assert sorted(row["method"] for row in listed) == ["early", "plain", "random", "useful"]


def test_damaged_outputs_are_refused_and_nothing_is_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", logits=np.array([{"a": 1}], dtype=object), labels=np.array([0]))
    result = evenly("separate", "--from-logits", "odd.npz", cwd=tmp_path)
    assert result.returncode == 3
    assert "'logits' is an array of Python objects" in result.stderr
    assert "numpy.savez" in result.stderr
    np.savez(tmp_path / "short.npz", logits=np.zeros((3, 2), np.float32))
    assert "no array 'labels'" in evenly("separate", "--from-logits", "short.npz", cwd=tmp_path).stderr


def test_seeds_are_read_as_people_write_them() -> None:
    assert numbers("0-2,7") == [0, 1, 2, 7]
    with pytest.raises(UsageError, match="5-2 goes down; a range goes up, as 2-5"):
        numbers("0,5-2")
    with pytest.raises(UsageError, match="each only once"):
        numbers("0-2,1")


def test_a_dry_run_of_the_method_shows_both_recipes_and_the_cost_and_makes_nothing(tmp_path: Path) -> None:
    words = ["useful", "digits", *QUICK, "--early-optimizer", "adamw", "--early-model", "mlp", "--dry-run"]
    result = evenly(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [line.split(",")[0] for line in result.stdout.splitlines() if line.startswith("# ")] == [
        "# plain",
        "# early",
        "# useful",
        "# random",
    ]
    assert "optimizer.name: adamw" in result.stdout
    assert "examples, about" in result.stderr
    assert "only the early run can tell" in result.stderr
    found = json.loads(evenly(*words, "--json", cwd=tmp_path).stdout)
    assert [line["method"] for line in found["lines"]] == ["early", "plain", "useful", "random"]
    recipes = found["recipes"]
    assert recipes["early"]["recipe"]["optimizer"]["lr"] == 0.001
    assert recipes["useful"]["recipe"]["resampling"]["early"] == recipes["early"]["id"]
    assert not list(tmp_path.iterdir())


def test_another_early_optimizer_makes_the_early_run_and_seeds_are_compared(tmp_path: Path) -> None:
    words = ["useful", "digits", *QUICK, "--at-epoch", "2", "--seeds", "0-1", "--controls", "", "--optimizer", "sam"]
    words += ["--early-optimizer", "adamw", "--early-lr", "0.01"]
    result = evenly(*words, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["agreement"]["pairs"] == 1
    assert -1 <= found["agreement"]["adjusted_rand"] <= 1
    own = next(method["runs"] for method in found["methods"] if method["name"] == "useful")
    stages = {row["run"]: found["early"][seed]["run"] for seed, row in own.items()}
    listed = {row["id"]: row for row in json.loads(evenly("runs", "--json", cwd=tmp_path).stdout)}
    assert {listed[early]["optimizer"] for early in stages.values()} == {"adamw"}
    assert "sam" in {listed[run]["optimizer"] for run in stages}.pop()
    assert "are hard to both" in evenly(*words, cwd=tmp_path).stderr


def test_a_separation_leaves_itself_in_its_run_and_is_compared_over_kept_epochs(tmp_path: Path) -> None:
    words = ["separate", "digits", *QUICK, "--at-epoch", "2", "--set", "keep_epochs=[1,2]", "--json"]
    result = evenly(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert list(found["agreement"]) == ["1"]
    run = tmp_path / "runs" / found["run"]
    assert (run / "separation.csv").read_text() == (tmp_path / "separation.csv").read_text()
    assert json.loads((run / "separation.json").read_text())["chosen_epoch"] == 2
    assert (run / "examples.npz").exists()
    assert evenly("export", found["run"], "--as", "indices", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "6 runs of 200 epochs, the default. --dry-run says how long that takes here; --epochs 20 is a tenth"),
        ({"changes": ["optimizer.lr=0.1"]}, "6 runs of 200 epochs, the default."),
        ({"epochs": "200"}, ""),
        ({"changes": [" epochs = 7"]}, ""),
        ({"config": "recipe.yaml"}, ""),
    ],
)
def test_the_default_number_of_epochs_is_told_only_where_nobody_said_one(
    given: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Design(Recipe(), methods=("plain", "sam"), seeds=(0, 1, 2))
    say_default_epochs({"changes": [], **given}, made)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)
    assert bool(err) == bool(said)


@pytest.mark.parametrize("verb", ["compare", "useful"])
def test_a_comparison_tells_the_default_epochs_before_it_trains(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A batch larger than the data is refused once training begins: by then the line has been said.
    words = [verb, "digits", "--model", "mlp", "--seeds", "0", "--batch-size", "100000", "--device", "cpu"]
    assert main([*words, "--runs", str(tmp_path)]) == 2
    assert "runs of 200 epochs, the default." in capsys.readouterr().err
    assert main([*words, "--epochs", "3", "--runs", str(tmp_path)]) == 2
    assert "the default." not in capsys.readouterr().err


def test_a_comparison_names_a_network_of_each_method_and_its_own_id_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "digits", *QUICK, "--methods", "plain,sam", "--seeds", "0"]
    assert main([*words, "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    (line,) = (line for line in said.splitlines() if line.startswith("To use a network"))
    plain, sam = re.fullmatch(r"To use a network \(plain (\w+), SAM (\w+)\):", line).groups()  # type: ignore[union-attr]
    assert (tmp_path / plain / "done").exists()
    assert (tmp_path / sam / "done").exists()
    assert f"evenly predict {plain} PHOTOS --runs {tmp_path} --out predictions.csv" in said
    (comparison,) = (tmp_path / "comparisons").glob("*.json")
    assert main(["predict", comparison.stem, str(tmp_path), "--runs", str(tmp_path)]) == 2
    assert f"{comparison.stem} is a comparison, not a run" in capsys.readouterr().err


def test_a_network_for_arrays_is_not_offered_for_photos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.arange(60) % 2
    np.savez(tmp_path / "d.npz", inputs=labels[:, None] + np.zeros((60, 4), np.float32), labels=labels)
    words = [str(tmp_path / "d.npz"), "--model", "mlp", "--epochs", "3", "--batch-size", "8", "--device", "cpu"]
    assert main(["compare", *words, "--methods", "plain,sam", "--seeds", "0", "--runs", str(tmp_path / "r")]) == 0
    said = capsys.readouterr().err
    assert "evenly predict" not in said
    assert 'evenly.load_run("' in said


def test_a_network_that_learned_nothing_is_not_offered_for_use(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"run": "a1", "state": "done", "collapsed": "learned nothing: …"}
    plain = {"label": "plain", "runs": {"0": nothing, "1": {"run": "b2", "state": "done", "collapsed": None}}}
    say_networks({"methods": [plain, {"label": "SAM", "runs": {"0": nothing}}]}, runs="runs")
    assert capsys.readouterr().err.startswith("To use a network (plain b2):")


def test_useful_names_its_factor_and_augmentation_where_they_are_not_the_usual(tmp_path: Path) -> None:
    augment = ["--factor", "8", "--set", "resampling.augment=[noise:0.2]", "--at-epoch", "1"]
    result = evenly("useful", "digit-dominoes", *QUICK, *augment, "--controls", "plain,random", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    shown = [re.split(r"\s{2,}", line)[0] for line in result.stdout.splitlines()]
    assert shown == ["method", "plain", "USEFUL ×8, noise 0.2", "random ×8, noise 0.2"]
