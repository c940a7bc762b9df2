"""Appendix D: misprints are told apart from what the appendix claims."""

from pathlib import Path

import pytest

from evenly.errors import UsageError
from evenly.papers.experiment import Context
from evenly.papers.springer2024 import appendix_d
from evenly.papers.verdict import HOLDS, judge

HERE = Context(Path("unused"))


def test_the_printed_formulas_are_wrong_and_the_mended_ones_right():
    values = appendix_d.closed_forms(HERE, seeds=[0, 1], layers=3).values
    for seed in (0, 1):
        assert values["two_layer.printed"][seed] > 1e-2
        assert values["relu.printed"][seed] > 1e-2
        for name in ("two_layer.squared", "linear", "relu"):
            assert values[name][seed] < 1e-10


def test_misprints_are_errata_and_no_claims_of_the_paper():
    values = appendix_d.closed_forms(HERE, seeds=range(5), layers=3).values
    claims = {claim.name: claim for claim in appendix_d.CLAIMS if claim.value in values}
    assert [name for name, claim in claims.items() if not claim.corrects] == ["eq. 33"]
    assert all(judge(claim, values).verdict in HOLDS for claim in claims.values())
    assert [claim.name for claim in appendix_d.EXPERIMENT.primary_claims] == ["eq. 25", "eq. 33"]


def test_an_error_over_no_fitted_examples_is_refused_and_not_zero():
    sizes = {"num_train": 20, "num_test": 40, "width": 8}
    with pytest.raises(UsageError, match="seed 0: after 1 epochs no example"):
        appendix_d.toy_reweighting(HERE, seeds=[0], chi=360.0, rho=0.01, epochs=1, sizes=sizes)


def test_examples_are_fitted_even_at_smoke():
    part = next(part for part in appendix_d.EXPERIMENT.parts("smoke") if part.name == "reweighting")
    values = part.function()(HERE, **part.arguments).values
    for seed in appendix_d.EXPERIMENT.scales["smoke"].seeds:
        assert values["fitted"][seed] > 0.5
        assert 0 < values["sam.error_fitted"][seed] < 0.02
