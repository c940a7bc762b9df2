"""Numbers and splits that cannot be meant are refused in words, before anything is trained or written."""

from pathlib import Path

import pytest

from evenly.cli import main
from evenly.cli.useful import numbers
from evenly.errors import UsageError


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
