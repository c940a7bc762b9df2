"""What is declared is the paper's: every figure and table, its recipe, its numbers; without torch."""

import subprocess
import sys

import pytest

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Experiment
from evenly.recipe import Recipe
from evenly.typed import from_mapping

BY_KEY = {key.removeprefix("nguyen2024/"): each for key, each in CATALOGUE.items() if key.startswith("nguyen2024/")}
FIGURES = ("fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11")
TABLES = ("table1", "table2", "table3", "table4", "table5", "table6")
THEOREMS = ("theorem3.2", "theorem3.3", "theorem3.4", "theorem3.5")


def test_every_figure_table_and_theorem_is_there() -> None:
    assert {*FIGURES, *TABLES, *THEOREMS} <= set(BY_KEY)


def recipes(experiment: Experiment, scale: str) -> list[Recipe]:
    found = []
    for part in experiment.parts(scale):
        given = part.arguments.get("comparisons", [part.arguments])
        found += [from_mapping(Recipe, each["recipe"]) for each in given if "recipe" in each]
    return found


@pytest.mark.parametrize("key", [key for key in BY_KEY if key.startswith(("table", "fig3", "fig4", "fig5", "fig8"))])
def test_full_size_is_the_papers_recipe(key: str) -> None:
    if BY_KEY[key].scales["full"].stand_in:
        pytest.skip("another network stands in for the paper's at this size too")
    for recipe in recipes(BY_KEY[key], "full"):
        vit = recipe.model.name == "vit-s"
        assert (recipe.epochs, recipe.batch_size) == (200, 128)
        assert recipe.optimizer.lr == (0.01 if vit else 0.1)
        assert (recipe.optimizer.momentum, recipe.optimizer.weight_decay) == (0.9, 5e-4)
        assert (recipe.schedule.kind, recipe.schedule.milestones) == ("step", (0.5, 0.75))
        assert recipe.augment[:2] == ("pad-crop", "mirror")
        assert recipe.ascent.radius == {"none": 0.0, "sam": 0.01 if vit else 0.1, "asam": 1.0}[recipe.ascent.rule]


def test_ablations_vary_one_thing_at_a_time() -> None:
    seen = {(r.batch_size, r.optimizer.lr) for r in recipes(BY_KEY["fig10"], "full")}
    assert seen == {(128, 0.1), (256, 0.1), (512, 0.1), (128, 0.2), (128, 0.4)}


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_every_part_is_work_that_takes_its_arguments(key: str) -> None:
    for scale in BY_KEY[key].scales:
        for part in BY_KEY[key].parts(scale):
            part.function()


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_smoke_needs_no_published_data_and_levels_are_only_judged_at_the_papers_size(key: str) -> None:
    scales = BY_KEY[key].scales
    assert scales["smoke"].data == ()
    assert not any(scale.levels for name, scale in scales.items() if name != "full")
    assert all(scale.deviations for name, scale in scales.items())


@pytest.mark.parametrize(
    ("key", "claim", "ours", "theirs"),
    [
        ("table2", "useful", 4.79, 5.07),
        ("table2-cifar100", "random", 22.58, 24.30),
        ("table3", "random", 4.04, 4.17),
        ("table4", "asam+ta", 3.46, 3.93),
        ("table5", "sgd", 4.79, 5.33),
        ("table6", "misclassified", 4.79, 4.98),
        ("table1", "bulk", 1.5, 3.8),
        ("table1", "smallest bulk", 1.5, 2.4),
    ],
)
def test_the_papers_numbers_stand_beside_the_right_quantities(key: str, claim: str, ours: float, theirs: float) -> None:
    found = {each.name: each for each in BY_KEY[key].claims}[claim]
    assert (found.paper, found.paper_against, found.direction) == (ours, theirs, "less")
    assert ".useful." in found.value


def test_no_two_parts_of_an_experiment_train_the_same_run() -> None:
    """Two processes at one run would refuse each other."""
    for key, experiment in BY_KEY.items():
        for scale in experiment.scales:
            seen: dict[str, str] = {}
            for part in experiment.parts(scale):
                given = part.arguments.get("comparisons", [part.arguments])
                for each in given:
                    if "recipe" not in each:
                        continue
                    early = f"{each['recipe']} {each['seed']} {each['until']}"
                    plain = f"{each['recipe']} {each['seed']}" if "original" in each["controls"] else early
                    for run in {early, plain}:
                        assert seen.setdefault(run, part.name) == part.name, (key, scale, part.name)


def test_the_declarations_do_not_import_torch() -> None:
    code = "import sys, evenly.papers.catalogue; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_every_experiment_names_its_primary_claim(key: str) -> None:
    assert BY_KEY[key].primary


@pytest.mark.parametrize(
    ("key", "share"),
    [("fig3", 0.3), ("fig3-cifar100", 0.5), ("fig3-stl10", 0.5), ("fig3-cinic10", 0.45), ("fig3-tiny-imagenet", 0.6)],
)
def test_the_upsampled_shares_of_section_5_2_are_declared(key: str, share: float) -> None:
    claim = {each.name: each for each in BY_KEY[key].claims}["share"]
    assert (claim.value, claim.direction, claim.against) == ("sgd.useful.share", "equal", share)


def test_sgd_on_usefuls_data_is_claimed_to_beat_sam_where_the_paper_says_so() -> None:
    beyond = {key for key, each in BY_KEY.items() if "beyond SAM" in {claim.name for claim in each.claims}}
    assert beyond == {"fig3-stl10", "fig4-vit", "fig7-sam"}


def test_figure_5_is_declared_for_both_data_sets() -> None:
    models = {(recipe.data.name, recipe.model.name) for recipe in recipes(BY_KEY["fig5-cifar100"], "full")}
    assert models == {("cifar100", "preact-resnet34")}
