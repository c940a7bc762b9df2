from pathlib import Path

import pytest

from evenly.recipe import Data, Recipe, digest, to_mapping
from evenly.records import Run
from evenly.report.blocks import Plot
from evenly.report.experiments.experiment import Experiment, Member
from evenly.report.experiments.sections import curves_section


@pytest.mark.parametrize(("smoothing", "warned"), [(0.0, False), (0.1, True)])
def test_training_losses_with_other_terms_are_said_not_to_compare(
    smoothing: float, warned: bool, tmp_path: Path
) -> None:
    members = []
    for method, share in (("plain", 0.0), ("label-smoothing", smoothing)):
        recipe = Recipe(data=Data("photos"), label_smoothing=share, batch_size=64 if method == "plain" else 32)
        with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
            run.log(**{"epoch": 1, "train.loss": 1.0, "test.error": 0.5})
            run.finish({"epoch": 1})
        members.append(Member(run, method, 0))
    section = curves_section(Experiment("id", "title", members, members[0]))
    assert section is not None
    sentences = [block.chart.sentence for block in section.blocks if isinstance(block, Plot)]
    loss = next(sentence for sentence in sentences if "training loss" in sentence)
    assert ("the lines do not compare" in loss) == warned
