"""What every experiment of the paper declares: its primary claim, and the pilots that its grids were chosen after."""

import subprocess
import sys

import pytest

from evenly.papers.catalogue import CATALOGUE

EXPERIMENTS = [experiment for key, experiment in CATALOGUE.items() if key.startswith("springer2024/")]
IDS = [experiment.key for experiment in EXPERIMENTS]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=IDS)
def test_the_primary_claim_is_declared_by_name(experiment):
    assert experiment.primary


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=IDS)
def test_pilots_are_disclosed_where_grids_or_settings_are_ours(experiment):
    for name, scale in experiment.scales.items():
        text = " ".join(scale.deviations)
        if name != "smoke" and ("χ = 360" in text or "-mnist" in experiment.key):
            assert "pilot" in text, f"{experiment.key} at {name}"


def test_declaring_experiments_does_not_import_torch():
    code = "import sys; from evenly.papers.catalogue import CATALOGUE; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
