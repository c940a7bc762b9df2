"""Groups of importance: refused, and the same for data of every form."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evenly.diagnostics import importance
from evenly.errors import UsageError


def test_groups_of_no_example_are_refused_and_not_taken_for_all() -> None:
    data = (torch.eye(4), torch.tensor([0, 1, 0, 1]))
    for group in (0, -1):
        with pytest.raises(UsageError, match=f"group = {group} is the number of examples per ascent"):
            importance(nn.Linear(4, 1), data, rho=0.1, group=group)


@pytest.mark.parametrize("group", [4, 9, 40])
def test_the_groups_of_a_loader_are_those_of_the_same_tensors(group: int) -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 2, generator=rng), torch.randint(3, (40,), generator=rng)
    model = nn.Linear(2, 3)
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    of_pair = importance(model, (x, y), rho=0.5, group=group, track=["weight"])
    of_loader = importance(model, loader, rho=0.5, group=group, track=["weight"])
    assert len(of_pair.phantoms["weight"]) == -(-40 // group)
    torch.testing.assert_close(of_loader.phantoms["weight"], of_pair.phantoms["weight"])
    torch.testing.assert_close(of_loader.phantom, of_pair.phantom)
