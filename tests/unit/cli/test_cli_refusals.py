"""Options and values that cannot be served are refused by name, before anything is trained or written."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenly.cli import main
from evenly.cli.comparison_arguments import numbers
from evenly.errors import UsageError

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of 80 images of one's own, without a test split."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, shade in (("dark", 0), ("light", 100)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(40):
            picture = rng.integers(shade, shade + 150, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(picture).save(tmp_path / "photos" / name / f"{i:02}.png")
    return "photos"


def small(photos: str, *more: str) -> list[str]:
    return [photos, "--model", "mlp", "--epochs", "2", "--batch-size", "16", "--device", "cpu", *more]


def test_what_the_data_do_not_allow_is_named_and_what_was_measured_is_kept(photos: str, capsys: Captured) -> None:
    assert main(["train", *small(photos, "--json")]) == 0
    run = Path(json.loads(capsys.readouterr().out)["folder"])
    kept = run / "measurements" / "epoch-0002.json"
    assert main(["measure", run.name, "probing", "reliance"]) == 3
    assert not kept.exists()  # nothing was measured, and nothing is written
    capsys.readouterr()
    assert main(["measure", run.name, "rank", "probing", "sharpness", "--json"]) == 3
    out, err = capsys.readouterr()
    assert {"feature_rank", "lambda_max"} <= set(json.loads(out))
    assert json.loads(kept.read_text()) == json.loads(out)
    assert "probing was not measured" in err
    assert "balanced" in err  # why
    assert f"The rest is in {run / 'measurements'}" in err.replace(str(run.parent.resolve()), str(run.parent))


def test_the_example_of_measure_works_for_a_run_on_ones_own_images(photos: str, capsys: Captured) -> None:
    from evenly.cli.measure import EXAMPLES

    assert main(["train", *small(photos, "--json")]) == 0
    run = json.loads(capsys.readouterr().out)["id"]
    words = EXAMPLES.split("\n")[1].split()[1:]
    assert main([words[0], run, *words[2:]]) == 0
    readme = Path(__file__).parents[3] / "README.md"
    assert EXAMPLES.split("\n")[1].strip() in readme.read_text()


@pytest.mark.parametrize("verb", ["train", "useful"])
def test_a_batch_larger_than_the_data_is_answered_with_one_that_works(verb: str, photos: str, capsys: Captured) -> None:
    words = [verb, photos, "--model", "mlp", "--epochs", "2", "--set", "data.validation=0.2"]
    assert main([*words, "--batch-size", "128"]) == 2
    told = capsys.readouterr().err
    assert "128 is more than the 64 training examples" in told
    size = told.partition("--batch-size ")[2].split()[0].rstrip(".,")
    assert main([*words, "--batch-size", size, "--dry-run"]) == 0
    capsys.readouterr()
    assert main([*words, "--dry-run"]) == 0  # nobody asked for 128
    told = " ".join(capsys.readouterr().err.split())
    assert (
        f"The 64 training examples do not fill a batch of 128, the default: batches of {size} are used (--batch-size)."
        in told
    )
    Path("recipe.yaml").write_text("batch_size: 128\n")
    assert main([*words, "--config", "recipe.yaml"]) == 2


def test_remarks_on_the_data_are_made_where_they_can_be_acted_on(photos: str, capsys: Captured) -> None:
    assert main(["train", *small(photos, "--json")]) == 0
    out, err = capsys.readouterr()
    assert "has no test split" in err
    run = json.loads(out)["id"]
    assert main(["measure", run, "rank", "--examples", "20"]) == 0
    assert main(["stability", "threshold", "--run", run, "--examples", "10", "--draws", "1"]) == 0
    assert "has no test split" not in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--split", "validation"], ["--split", "train"], ["--split", "tset"]])
def test_a_dry_run_of_the_method_refuses_the_split_that_the_method_would(
    more: list[str], photos: str, capsys: Captured
) -> None:
    told = []
    for dry in (["--dry-run"], []):
        assert main(["useful", *small(photos, *more, *dry)]) == 2
        told.append(capsys.readouterr().err)
    assert told[0] == told[1]
    assert "--set data.validation=0.2" in told[0]


@pytest.mark.parametrize(
    "more",
    [
        ["--model", "mlp"], ["--epochs", "3"], ["--at-epoch", "1"], ["--at-fraction", "0.5"], ["--set", "epochs=3"],
        ["--seed", "1"], ["--optimizer", "sam"], ["--config", "a.yaml"], ["--batch-size", "4"], ["--lr", "1"],
        ["--rho", "1"], ["--runs", "there"], ["--device", "cpu"], ["--workers", "2"], ["--pace", "5"],
        ["--tensorboard"], ["--allow", "world"], ["--data-root", "there"],
    ],
)  # fmt: skip
def test_outputs_from_a_file_are_not_trained_and_no_setting_of_training_is_taken(
    more: list[str], tmp_path: Path, capsys: Captured
) -> None:
    logits = np.random.default_rng(0).normal(size=(40, 2))
    np.savez(tmp_path / "logits.npz", logits=logits, labels=np.arange(40) % 2)
    words = ["separate", "--from-logits", str(tmp_path / "logits.npz"), "--out", str(tmp_path / "out.csv")]
    assert main([*words, *more]) == 2
    assert f"{' '.join(more)}" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    assert main(words) == 0


@pytest.mark.parametrize(("where", "told"), [("local:0", "give 1 or more"), ("local:-2", "expected a number of jobs")])
def test_no_processes_at_all_are_refused_also_in_a_dry_run(where: str, told: str, capsys: Captured) -> None:
    assert main(["reproduce", "chang2025/mistake2", "--scale", "smoke", "--on", where, "--dry-run"]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_without_a_ledger_makes_no_site(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "photos").mkdir()
    site = tmp_path / "site"
    assert main(["report", "--claims", "--ledger", str(tmp_path / "photos"), "--out", str(site)]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path / 'photos'} holds no ledger" in told
    assert "nguyen2024-fig2-full.json" in told
    assert not site.exists()


def test_a_sheet_may_go_into_a_folder_that_is_not_there_yet(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "new" / "folder" / "sheet.png"
    assert main(["data", "show", "digits", "--split", "tset", "--out", str(out)]) == 2
    assert not (tmp_path / "new").exists()
    assert main(["data", "show", "digits", "--per-class", "1", "--out", str(out)]) == 0
    assert out.is_file()


@pytest.mark.parametrize("verb", ["train", "useful"])
def test_a_wrong_number_of_workers_is_named_by_its_option(verb: str, tmp_path: Path, capsys: Captured) -> None:
    words = [verb, "digits", "--model", "mlp", "--epochs", "2", "--workers", "-1", "--runs", str(tmp_path / "runs")]
    assert main(words) == 2
    assert "--workers -1: give 0 or more" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_range_of_seeds_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 10,000 seeds"):
        numbers("0-100000000000")
    assert len(numbers("1-10000")) == 10_000


def test_the_training_split_compares_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["useful", "digits", "--model", "mlp", "--epochs", "2", "--split", "train"]
    assert main([*words, "--runs", str(tmp_path / "runs")]) == 2
    assert "--split validation" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_one_seed_set_for_a_comparison_is_not_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["useful", "digits", "--model", "mlp", "--epochs", "2", "--set", "seed=4", "--dry-run"]
    assert main([*words, "--runs", str(tmp_path / "runs")]) == 2
    assert "--set seed=4: a comparison has several seeds. Give --seeds 0-4." in capsys.readouterr().err


@pytest.mark.parametrize(("what", "rho"), [("rise", "nan"), ("rise", "inf"), ("importance", "nan")])
def test_a_radius_that_is_no_number_measures_nothing(
    what: str, rho: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "parity", "--set", "data.options.dim=5", "--epochs", "1", "--batch-size", "50", "--json"]
    assert main([*words, "--runs", str(tmp_path)]) == 0
    (run,) = tmp_path.iterdir()
    assert main(["measure", str(run), what, "--rho", rho]) == 2
    assert f"rho = {rho}" in capsys.readouterr().err
    assert not (run / "measurements").exists()


@pytest.mark.parametrize("text", ["path_column=255", "label_column=[1]", "size=\ufffd", "size={a: 1}", "size=true"])
def test_an_option_of_the_wrong_kind_is_named_with_what_was_expected(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list.csv").write_text("path,label\na.png,cat\nb.png,dog\n")
    assert main(["data", "verify", str(tmp_path / "list.csv"), "--set", text]) == 2
    said = capsys.readouterr().err
    assert text.partition("=")[0] in said
    assert "expected" in said


@pytest.mark.parametrize("line", ["x: !!timestamp 2026-99-99", "x: !!float a", "seed: !!int x"])
def test_a_tag_that_does_not_fit_its_value_is_told_with_its_line(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recipe.yaml").write_text(f"epochs: 1\n{line}\n")
    assert main(["train", "--config", str(tmp_path / "recipe.yaml"), "--dry-run"]) == 2
    assert "line 2" in capsys.readouterr().err


def test_a_folder_whose_name_is_not_utf8_is_refused_with_the_reason(photos: str, capsys: Captured) -> None:
    name = os.fsdecode(b"\xff")
    os.rename(photos, name)
    assert main(["train", *small(name)]) == 2
    assert r"'\udcff' is not UTF-8, which a recipe is written in. Rename the file or folder" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["nonsense", "useful:0", "useful:abc", "sam+sam"])
def test_a_method_that_cannot_be_meant_is_not_suggested_again(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "digits", "--methods", method]) == 2
    assert f"--methods plain,{method}" not in capsys.readouterr().err


def test_photos_of_different_sizes_are_refused_before_any_run_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(4):
            side = 9 if (place, number) == (1, 3) else 8
            Image.new("RGB", (side, side), (number, 0, 0)).save(tmp_path / "photos" / name / f"{number}.png")
    for more in ([], ["--skip-broken"]):
        words = ["compare", str(tmp_path / "photos"), "--model", "convnet", "--methods", "plain,sam", "--epochs", "1"]
        assert main([*words, "--runs", str(tmp_path / "runs"), *more]) == 3
        assert "is not 8×8 as the first is" in capsys.readouterr().err
        assert not list((tmp_path / "runs").glob("*/recipe.yaml"))


@pytest.mark.parametrize(
    "words",
    [
        ("--factor", "3"),
        ("--drop-suspect",),
        ("--at-epoch", "1"),
        ("--at-fraction", "0.5"),
        ("--early-model", "nonsense"),
        ("--early-optimizer", "adamw"),
        ("--early-lr", "0.1"),
    ],
)
def test_an_option_of_the_early_run_is_refused_where_no_method_has_one(
    words: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    asked = ["compare", "digits", "--epochs", "2", "--runs", str(tmp_path), "--dry-run"]
    assert main([*asked, "--methods", "plain,sam", *words]) == 2
    told = capsys.readouterr().err
    assert f"{' '.join(words)} is for methods that choose examples by an early run" in told
    assert "--methods plain,sam,useful" in told


def test_a_factor_that_no_method_takes_is_refused(tmp_path: Path, capsys: Captured) -> None:
    asked = ["compare", "digits", "--epochs", "2", "--runs", str(tmp_path), "--dry-run", "--factor", "3"]
    assert main([*asked, "--methods", "plain,jtt,useful:8"]) == 2
    assert "as jtt:3" in capsys.readouterr().err
    assert main([*asked, "--methods", "plain,jtt,useful"]) == 0


def test_an_option_of_data_that_do_not_exist_is_not_blamed(photos: str, capsys: Captured) -> None:
    assert main(["train", *small("photo/", "--set", "size=8")]) == 3
    told = capsys.readouterr().err
    assert "photo does not exist" in told
    assert "size" not in told


def test_an_option_without_a_value_is_named_as_it_was_given(photos: str, capsys: Captured) -> None:
    assert main(["train", *small(photos, "--set", "size")]) == 2
    assert "--set 'size': expected path=value" in capsys.readouterr().err


def test_an_unknown_option_leads_to_the_help_of_its_verb(photos: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", *small(photos, "--epoch", "3")])
    told = capsys.readouterr().err
    assert told.startswith("evenly train: unrecognized arguments: --epoch 3. Did you mean '--epochs'")
    assert told.endswith("See `evenly train --help`.\n")
