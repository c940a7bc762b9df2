"""What an instrument cannot mean is said in its own words."""

import pytest
import torch
from torch import nn

from evenly.diagnostics import Dynamics, fit_probe, importance
from evenly.errors import DataError, UsageError


def test_groups_of_no_example_are_refused_and_not_taken_for_all() -> None:
    data = (torch.eye(4), torch.tensor([0, 1, 0, 1]))
    for group in (0, -1):
        with pytest.raises(UsageError, match=f"group = {group} is the number of examples per ascent"):
            importance(nn.Linear(4, 1), data, rho=0.1, group=group)


def test_labels_that_do_not_fit_are_named_themselves() -> None:
    with pytest.raises(DataError, match=r"label -1 does not fit 3 logits: classes are numbered from 0 to 2"):
        Dynamics().update(torch.zeros(2, 3), torch.tensor([2, -1]), torch.tensor([0, 1]))


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
