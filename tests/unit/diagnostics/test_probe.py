"""Arguments of linear probes that are refused."""

import pytest
import torch

from evenly.diagnostics import fit_probe
from evenly.errors import DataError


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (torch.tensor([0] * 9 + [7]), "group 7 of groups has one example"),
        (torch.zeros(9, dtype=torch.int64), r"groups of shape \(9,\) for 10 examples"),
    ],
)
def test_probes_refuse_groups_that_cannot_be_divided(groups: torch.Tensor, said: str) -> None:
    x, y = torch.randn(10, 2, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 2
    with pytest.raises(DataError, match=said):
        fit_probe(x, y, test_features=x, test_targets=y, groups=groups, rng=torch.Generator())
