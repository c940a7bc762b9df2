"""Runs that were trained one by one: paired by seed on the page, as `evenly runs compare` pairs them."""

from pathlib import Path
from typing import Any

import pytest

from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Until, to_mapping
from evenly.records import Run
from evenly.records.identity import Identity
from evenly.report.experiments.lookup import Folder
from evenly.report.experiments.loose_runs import pair_loose_runs
from evenly.report.experiments.page import page_of
from evenly.training.train import train

SMALL = {"data": Data("digits"), "epochs": 1, "batch_size": 50}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of SGD and of SAM, one of another rate, an early run, and a run of other data."""
    folder = tmp_path_factory.mktemp("runs")
    recipes = [Recipe(seed=seed, ascent=rule, **SMALL) for seed in (0, 1) for rule in (Ascent("sam", 0.05), Ascent())]
    recipes += [
        Recipe(seed=0, optimizer=Optimizer(lr=0.01), **SMALL),
        Recipe(seed=0, until=Until("epoch", 1), **SMALL),
        Recipe(seed=0, data=Data("parity", {"dim": 5}), epochs=1, batch_size=50),
    ]
    for recipe in recipes:
        train(recipe, runs=folder, device="cpu", pace=0)
    return folder


def test_recipes_of_one_data_set_are_paired_by_seed_with_plain_training_first(runs: Path) -> None:
    (paired,) = pair_loose_runs(Folder(runs))
    rows = {str(row[0]): row for row in paired.table.rows}  # type: ignore[index]
    numbers = {name: row[1] for name, row in rows.items()}
    assert numbers == {"plain (lr 0.1)": 2, "SAM (lr 0.1)": 2, "plain (lr 0.01)": 1}
    assert next(iter(rows)) == "plain (lr 0.1)"
    assert rows["SAM (lr 0.1)"][4] == "2.00×"
    assert "[" in str(rows["SAM (lr 0.1)"][3])
    assert paired.table.caption.startswith("Runs on digits that were trained one by one, paired by seed")


def test_the_first_screen_of_a_folder_says_what_follows_from_its_pairs(runs: Path) -> None:
    finding = page_of([runs]).lead.finding
    assert "points" in finding
    assert "share one seed, which says nothing yet" in finding


def test_a_single_recipe_has_nothing_to_be_paired_with(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(Recipe(seed=seed, **SMALL), runs=tmp_path, device="cpu", pace=0)
    assert pair_loose_runs(Folder(tmp_path)) == []


def test_single_runs_are_told_apart_by_their_seeds(runs: Path) -> None:
    page = page_of([runs])
    titles = [chapter.title for chapter in page.chapters]
    assert {"SAM on digits: mlp, SGD (seed 0)", "SAM on digits: mlp, SGD (seed 1)"} <= set(titles), titles
    assert page.lead.finding.startswith("7 runs")


def _record(folder: Path, recipe: Recipe, error: Any, **given: str) -> Run:
    """A finished run with this test error, without any training."""
    settings = to_mapping(recipe)
    identity = Identity(settings, {}, {"name": "digits", "fingerprint": "1f"}, given)
    run = Run.create(folder, settings, identity.id, identity=identity)
    run.log(epoch=1)
    run.finish({"test.error": error, "gradients": 10})
    return run


def test_a_method_trained_with_other_settings_is_not_taken_for_the_cause(tmp_path: Path) -> None:
    other = Recipe(ascent=Ascent("sam", 0.05), optimizer=Optimizer(lr=0.01), model=Model("convnet"), **SMALL)
    for recipe, error in ((Recipe(**SMALL), 0.2), (other, 0.1)):
        _record(tmp_path, recipe, error)
    (paired,) = pair_loose_runs(Folder(tmp_path))
    assert [row[0] for row in paired.table.rows] == ["plain (model mlp, lr 0.1)", "SAM (model convnet, lr 0.01)"]  # type: ignore[index]


def test_radii_are_named_only_where_runs_of_one_rule_differ_in_them(tmp_path: Path) -> None:
    for ascent in (Ascent(), Ascent("sam", 0.05), Ascent("sam", 0.1), Ascent("asam", 0.5)):
        _record(tmp_path, Recipe(ascent=ascent, **SMALL), 0.1)
    (paired,) = pair_loose_runs(Folder(tmp_path))
    assert {str(row[0]) for row in paired.table.rows} == {"plain", "SAM (rho 0.05)", "SAM (rho 0.1)", "asam"}  # type: ignore[index]


def test_runs_of_chosen_examples_are_not_mixed_with_runs_of_all(tmp_path: Path) -> None:
    for seed, (error, part) in enumerate([(0.2, 0.5), (0.21, 0.52)]):
        _record(tmp_path, Recipe(seed=seed, **SMALL), error)
        _record(tmp_path, Recipe(seed=seed, **SMALL), part, indices=f"{seed}a")
        _record(tmp_path, Recipe(seed=seed, **SMALL), part, weights="bbb")
    (paired,) = pair_loose_runs(Folder(tmp_path))
    errors = {str(row[0]): (row[1], str(row[2])[:5]) for row in paired.table.rows}  # type: ignore[index]
    assert errors == {
        "plain": (2, "20.50"),
        "plain (indices chosen)": (2, "51.00"),
        "plain (weights bbb)": (2, "51.00"),
    }


@pytest.mark.parametrize("damage", ["{ cut off", '{"test.error": null}', '{"test.error": 0.1, "gradients": "many"}'])
def test_a_run_with_a_damaged_summary_is_left_out_of_the_pairs(tmp_path: Path, damage: str) -> None:
    for seed in (0, 1):
        _record(tmp_path, Recipe(seed=seed, **SMALL), 0.2)
        last = _record(tmp_path, Recipe(seed=seed, ascent=Ascent("sam", 0.05), **SMALL), 0.1)
    (last.path / "done").write_text(damage)
    assert [row[1] for row in pair_loose_runs(Folder(tmp_path))[0].table.rows] == [2, 1]  # type: ignore[index]
    assert page_of([tmp_path]).lead.finding.startswith("4 ")


def test_a_run_whose_seed_is_no_number_is_left_out_of_the_pairs(tmp_path: Path) -> None:
    _record(tmp_path, Recipe(**SMALL), 0.2)
    _record(tmp_path, Recipe(optimizer=Optimizer(lr=0.01), **SMALL), 0.2)
    edited = _record(tmp_path, Recipe(ascent=Ascent("sam", 0.05), **SMALL), 0.1).path / "recipe.yaml"
    edited.write_text(edited.read_text().replace("seed: 0", "seed: zero"))
    assert len(pair_loose_runs(Folder(tmp_path))[0].table.rows) == 2


def test_conclusions_on_a_page_begin_with_a_capital(tmp_path: Path) -> None:
    for lr in (0.1, 0.01):
        _record(tmp_path, Recipe(optimizer=Optimizer(lr=lr), **SMALL), 0.2)
    (paired,) = pair_loose_runs(Folder(tmp_path))
    assert paired.conclusions[0].startswith("Plain (lr 0.")
