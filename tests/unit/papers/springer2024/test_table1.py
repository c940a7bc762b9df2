"""Table 1 on images that ship with scikit-learn: what is trained, probed and chosen, and which margins judge it."""

import pytest

from evenly.diagnostics import probing_errors
from evenly.papers.experiment import Context
from evenly.papers.springer2024.image_training import DIGITS
from evenly.papers.springer2024.table1 import EXPERIMENTS, choose_settings, sweep_errors
from evenly.records import Run
from evenly.rng import generator
from evenly.training.trained_model import load_trained

GIVEN = {"seed": 0, "recipe": dict(DIGITS), "rates": [0.01, 0.1], "rhos": [0.0, 0.1], "refits": 1}


@pytest.fixture(scope="module")
def context(tmp_path_factory) -> Context:
    return Context(tmp_path_factory.mktemp("runs"))


def test_both_features_of_every_setting_are_probed_and_the_best_is_chosen(context):
    result = sweep_errors(context, **GIVEN)
    values = {name: by[0] for name, by in (result.values | choose_settings(result.values)).items()}
    for name, rho in (("sgd", 0.0), ("sam", 0.1)):
        assert values[f"{name}.rho"] == rho
        by = {lr: values[f"lr={lr:g}.rho={rho:g}.chosen_by"] for lr in (0.01, 0.1)}
        assert values[f"{name}.lr"] == min(by, key=by.get)
        assert values[f"{name}.hard"] == values[f"lr={values[f'{name}.lr']:g}.rho={rho:g}.hard"]
    losses = {lr: values[f"lr={lr:g}.rho=0.1.validation_loss"] for lr in (0.01, 0.1)}
    assert values["sam_by_loss.lr"] == min(losses, key=losses.get)
    trained = load_trained(Run.open(result.series["runs"]["lr=0.1.rho=0.1"], context.runs))
    probes = probing_errors(trained.model, trained.splits, rng=generator(0, "probe"), refits=1)
    assert values["lr=0.1.rho=0.1.hard"] == pytest.approx(100 * probes["hard"].error)
    assert values["lr=0.1.rho=0.1.easy"] == pytest.approx(100 * probes["easy"].error)


def test_sgd_and_sam_are_other_runs(context):
    result = sweep_errors(context, **GIVEN)
    runs = {name: Run.open(run, context.runs).recipe for name, run in result.series["runs"].items()}
    assert runs["lr=0.1.rho=0"].get("ascent", {}).get("rule", "none") == "none"
    assert runs["lr=0.1.rho=0.1"]["ascent"]["rule"] == "sam"
    assert runs["lr=0.1.rho=0.1"]["optimizer"]["lr"] == 0.1


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.key)
def test_a_margin_is_half_of_the_effect_or_the_last_digit_that_the_paper_prints(experiment):
    for claim in experiment.claims:
        if claim.paper is not None:
            assert claim.margin <= max(abs(claim.paper - claim.paper_against) / 2, 0.1) + 1e-9
