"""The epoch of a separation is that of the outputs it was made from."""

from pathlib import Path

from evenly.papers.experiment import Context
from evenly.papers.train_and_measure import train_useful
from evenly.records import Run

RECIPE = {
    "data": {"name": "digit-dominoes"},
    "model": {"name": "mlp", "options": {"width": 256, "dropout": 0.0}},
    "optimizer": {"lr": 0.2},
    "batch_size": 32,
    "epochs": 8,
    "evaluate_every": 8,
}


def test_a_network_that_fits_all_at_its_last_epoch_was_separated_before_it(tmp_path: Path) -> None:
    found = train_useful(Context(tmp_path), recipe=RECIPE, seed=0, name="it", controls=())
    early = Run.open(found.series["runs"]["early"], tmp_path)
    assert early.summary()["separated_at"] < early.summary()["epoch"]  # else nothing is tested here
    assert found.values["it.early"] == {0: early.summary()["separated_at"]}
