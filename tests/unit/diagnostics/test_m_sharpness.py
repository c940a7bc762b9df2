"""m-sharpness of data of every form."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evenly.data import Labelled
from evenly.diagnostics import m_sharpness
from evenly.errors import UsageError


def test_a_pair_and_a_loader_are_grouped_like_labelled_data() -> None:
    x, y = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    model = nn.Linear(2, 3)
    forms = (Labelled(x, y, ("a", "b", "c")), (x, y), DataLoader(TensorDataset(x, y), batch_size=7))
    found = [m_sharpness(model, each, rho=0.05, m=5, rng=torch.Generator().manual_seed(1)) for each in forms]
    assert found[0].groups == 6
    assert found[1].rise == pytest.approx(found[0].rise, rel=1e-6)
    assert found[2].rise == pytest.approx(found[0].rise, rel=1e-6)
    with pytest.raises(UsageError, match="m = 31: a group has 1 to 30 examples"):
        m_sharpness(model, (x, y), rho=0.05, m=31, rng=torch.Generator())
