"""Arguments of importance that are refused."""

import pytest
import torch
from torch import nn

from evenly.diagnostics import importance
from evenly.errors import UsageError


def test_groups_of_no_example_are_refused_and_not_taken_for_all() -> None:
    data = (torch.eye(4), torch.tensor([0, 1, 0, 1]))
    for group in (0, -1):
        with pytest.raises(UsageError, match=f"group = {group} is the number of examples per ascent"):
            importance(nn.Linear(4, 1), data, rho=0.1, group=group)
