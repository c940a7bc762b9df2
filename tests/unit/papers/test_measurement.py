"""What takes all seeds together is worked out once they are gathered, and is part of what decides a row."""

from dataclasses import replace

import pytest

from evenly.errors import UsageError
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.measurement import check, measure

TABLE = CATALOGUE["springer2024/table1-cifar-mnist"]


def test_derived_values_stand_beside_the_measured_ones(tmp_path):
    found, _ = measure(TABLE, "smoke", runs=tmp_path, processes=1)
    plain, _ = measure(replace(TABLE, derived=""), "smoke", runs=tmp_path, processes=1)
    assert "sam.hard" not in plain.values
    assert found.values["sam.hard"] == plain.values["lr=0.01.rho=0.1.hard"]
    assert found.values["sgd.hard"] == plain.values["lr=0.01.rho=0.hard"]
    assert plain.values.items() <= found.values.items()


def test_another_derivation_is_another_row():
    assert replace(TABLE, derived="").digest("smoke") != TABLE.digest("smoke")


def test_a_derivation_that_is_not_there_is_found_before_the_work():
    with pytest.raises(UsageError, match="nowhere"):
        check(replace(TABLE, derived="springer2024.best_settings:nowhere"), "smoke", seeds=None, data_root=None)
