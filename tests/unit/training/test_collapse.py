"""Whether a run learned anything is said in words, and only where it did not."""

from pathlib import Path

import pytest

from evenly.cli import main
from evenly.recipe import Data, Optimizer, Recipe, Until
from evenly.training.build import load_data
from evenly.training.collapse import describe
from evenly.training.evidence import moment_record
from evenly.training.train import train


def history(errors: list[float], lr: float = 0.1) -> list[dict[str, float]]:
    return [{"epoch": i, "lr": lr, "train.error": error} for i, error in enumerate(errors, 1)]


def test_advice_names_the_rate_of_the_recipe_not_that_of_a_schedule() -> None:
    told = describe(history([0.76, 0.75, 0.75, 0.75], lr=0.0945), num_classes=4, lr=0.1)
    assert "lower learning rate than 0.1: --lr 0.01" in told


def test_a_run_that_ends_at_chance_is_said_to_have_learned_nothing_with_a_rate_to_try() -> None:
    told = describe(history([0.76, 0.75, 0.75, 0.75]), num_classes=4)
    assert told is not None
    assert told.startswith("learned nothing: the training error ended at 75.0%, and guessing gives 75.0%.")
    assert "--lr 0.01" in told


def test_a_run_that_learned_and_lost_it_again_is_told_when() -> None:
    told = describe(history([0.5, 0.3, 0.74, 0.75]), num_classes=4)
    assert told is not None
    assert told.startswith("fell back to guessing: the training error was 30.0% after epoch 2 and ended at 75.0%")


def test_a_training_error_that_stays_high_is_told_from_one_that_still_falls() -> None:
    flat = [0.7, 0.6, 0.55, 0.552, 0.551, 0.55, 0.55, 0.551, 0.55]
    told = describe(history(flat), num_classes=4)
    assert told is not None
    assert told.startswith("stopped learning: after epoch 3")
    falling = [0.7, 0.66, 0.62, 0.58, 0.54, 0.50, 0.47, 0.44, 0.41]
    assert describe(history(falling), num_classes=4) is None


def test_a_standstill_at_the_end_of_a_schedule_is_as_it_should_be() -> None:
    rows = history([0.7, 0.62, 0.57, 0.53]) + history([0.50, 0.499], lr=0.01) + history([0.498, 0.498], lr=0.001)
    assert describe(rows, num_classes=4) is None


@pytest.mark.parametrize("errors", [[0.4, 0.2, 0.1], [0.5, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [0.9, 0.88, 0.80]])
def test_a_run_that_learned_is_not_accused(errors: list[float]) -> None:
    assert describe(history(errors), num_classes=10) is None


def test_with_one_large_class_its_share_is_what_guessing_gives() -> None:
    rows = history([0.1, 0.1, 0.1])
    assert describe(rows, num_classes=2) is None
    told = describe(rows, num_classes=2, chance=0.1)
    assert told is not None
    assert "guessing gives 10.0%" in told


def test_a_tiny_rate_is_advised_upwards_and_a_large_radius_downwards() -> None:
    slow = describe(history([0.75] * 4, lr=1e-5), num_classes=4)
    assert slow is not None
    assert "higher learning rate than 1e-05: --lr 0.0001." in slow
    wide = describe(history([0.75] * 4), num_classes=4, rho=2.0)
    assert wide is not None
    assert wide.endswith("or a smaller radius than 2: --rho 0.2.")


def test_a_short_run_and_a_rate_that_is_neither_large_nor_tiny_are_sent_to_the_test() -> None:
    short = describe(history([0.75]), num_classes=4)
    assert short is not None
    assert "too few epochs (1), or another learning rate is needed: --lr auto." in short
    middling = describe(history([0.75] * 4, lr=0.001), num_classes=4)
    assert middling is not None
    assert middling.endswith("Try another learning rate than 0.001: --lr auto.")


def test_a_run_of_few_steps_is_advised_to_take_more() -> None:
    told = describe(history([0.75] * 3), num_classes=4, steps=9, planned=3)
    assert told is not None
    assert told.endswith("It took only 9 steps. Train for longer: --epochs 34, or with a smaller --batch-size.")


def test_a_run_that_lost_what_it_had_learned_is_not_short_of_steps() -> None:
    told = describe(history([0.5, 0.3, 0.74, 0.75]), num_classes=4, steps=8)
    assert told is not None
    assert "--epochs" not in told
    assert told.endswith("Try a lower learning rate than 0.1: --lr 0.01.")


def test_a_run_that_a_rule_ended_is_not_accused_of_the_standstill_that_the_rule_waits_for() -> None:
    flat = history([0.7, 0.6, 0.55, 0.552, 0.551, 0.55, 0.55, 0.551, 0.55])
    assert describe(flat, num_classes=4, steps=48, planned=25) is None
    assert describe(flat, num_classes=4, steps=48, planned=9) is not None


def test_a_run_that_a_rule_ended_too_soon_is_advised_to_separate_later_and_no_later_than_its_end() -> None:
    rows = history([0.75] * 3)
    assert (describe(rows, num_classes=4, steps=24, planned=25) or "").endswith("Separate later: --at-epoch 13.")
    assert (describe(rows, num_classes=4, steps=24, planned=8) or "").endswith("Separate later: --at-epoch 8.")


def test_a_run_whose_test_error_fell_has_learned_whatever_the_error_during_its_epoch() -> None:
    rows = history([0.75])
    assert describe([rows[0] | {"test.error": 0.0}], num_classes=4) is None
    assert describe([rows[0] | {"test.error": 0.60}], num_classes=4) is not None, "luck"
    assert describe([rows[0] | {"test.error": 0.74, "test.error.camera": 0.1}], num_classes=4) is not None
    flat = history([0.7, 0.6, 0.55, 0.552, 0.551, 0.55, 0.55, 0.551, 0.55])
    assert describe([*flat[:-1], flat[-1] | {"validation.error": 0.1}], num_classes=4) is None
    assert describe([*flat[:-1], flat[-1] | {"validation.error": 0.5}], num_classes=4) is not None


def test_the_command_says_once_that_a_run_learned_nothing_also_if_it_was_done_before(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "train parity --set data.options.dim=5 --lr 1e-9 --epochs 2 --batch-size 50 --device cpu --runs"
    for _ in range(2):
        assert main([*words.split(), str(tmp_path)]) == 0
        said = capfd.readouterr()
        assert " ".join((said.out + said.err).split()).count("learned nothing") == 1


def test_without_a_training_error_nothing_is_said() -> None:
    assert describe([], num_classes=4) is None
    assert describe([{"epoch": 1}], num_classes=4) is None


def test_a_run_that_learned_nothing_says_so_in_its_summary_and_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), optimizer=Optimizer(lr=1e-9), epochs=2, batch_size=50)
    with caplog.at_level("WARNING", logger="evenly"):
        run = train(recipe, runs=tmp_path, device="cpu")
    assert run.summary()["collapsed"].startswith("learned nothing")
    assert f"run {run.id} learned nothing" in caplog.text


def test_a_separating_moment_that_never_came_is_recorded_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = Recipe(optimizer=Optimizer(lr=0.001), epochs=3, until=Until("gain"))
    with caplog.at_level("WARNING", logger="evenly"):
        run = train(recipe, runs=tmp_path, device="cpu")
    assert run.summary()["rule_fired"] is False
    assert run.summary()["separated_at"] == 3
    assert "was separated after its last epoch, 3, because no moment to separate came before" in caplog.text
    data = load_data(recipe).train
    assert moment_record(run, data)["rule_fired"] is False


def test_a_moment_that_came_is_recorded_as_that(tmp_path: Path) -> None:
    run = train(Recipe(epochs=3, until=Until("epoch", 1)), runs=tmp_path, device="cpu")
    assert run.summary()["rule_fired"] is True
