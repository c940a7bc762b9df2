"""Table 2 on images that ship with scikit-learn: the probe of a domain, and the mean over domains."""

import pytest

from evenly.papers.experiment import Context
from evenly.papers.springer2024.image_training import DIGITS
from evenly.papers.springer2024.table2 import EXPERIMENTS, choose_settings, transfer_accuracies


def test_the_probe_of_a_domain_is_fitted_and_tested_where_it_is_told(tmp_path):
    given = {"seed": 0, "recipe": dict(DIGITS), "rates": [0.01, 0.1], "rhos": [0.0, 0.1]}
    splits = {"fit": "probe", "test": "balanced"}
    result = transfer_accuracies(Context(tmp_path), **given, domain="sketch", splits=splits)
    values = {name: by[0] for name, by in (result.values | choose_settings(result.values)).items()}
    errors = {lr: values[f"sketch.lr={lr:g}.rho=0.validation_error"] for lr in (0.01, 0.1)}
    best = min(errors, key=errors.get)
    assert values["sketch.sgd.accuracy"] == values[f"sketch.lr={best:g}.rho=0.accuracy"]
    assert 0 <= values["sketch.sam.accuracy"] <= 1


def test_the_mean_is_over_the_chosen_settings_of_all_domains():
    values = {}
    for domain, accuracies in (("Art", (0.4, 0.6)), ("Real World", (0.8, 0.7))):
        for rho, accuracy in zip((0, 0.1), accuracies, strict=True):
            values[f"{domain}.lr=0.1.rho={rho}.accuracy"] = {0: accuracy, 1: accuracy + 0.1}
            values[f"{domain}.lr=0.1.rho={rho}.validation_error"] = {0: 1.0, 1: 1.0}
    means = choose_settings(values)
    assert means["mean.sgd.accuracy"] == pytest.approx({0: 0.6, 1: 0.7})
    assert means["mean.sam.accuracy"] == pytest.approx({0: 0.65, 1: 0.75})


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.key)
def test_a_margin_is_at_most_half_of_the_effect(experiment):
    for claim in experiment.claims:
        if claim.paper is not None:
            assert claim.margin <= max(abs(claim.paper - claim.paper_against) / 2, 0.001) + 1e-9
