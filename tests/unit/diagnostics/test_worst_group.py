"""What the worst group refuses."""

import pytest
import torch
from torch import nn

from evenly.data import Labelled, Splits
from evenly.diagnostics import measure
from evenly.errors import UsageError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"split": "tset"}, r"toy has no split 'tset'. Did you mean 'test'"),
        ({"atribute": "tag"}, r"worst_group has no option 'atribute'. Did you mean 'attribute'"),
        ({"attribute": "tga"}, "Did you mean 'tag'"),
    ],
)
def test_a_misspelt_option_is_refused(options: dict[str, str], said: str) -> None:
    tag = torch.tensor([0, 1, 0, 1])
    part = Labelled(torch.randn(4, 2), torch.tensor([0, 0, 1, 1]), ("a", "b"), {"tag": tag})
    rng = torch.Generator().manual_seed(0)
    splits = Splits("toy", {"train": part, "test": part})
    assert "worst_group_error" in measure(nn.Linear(2, 2), splits, "worst_group", rng=rng)
    with pytest.raises(UsageError, match=said):
        measure(nn.Linear(2, 2), splits, "worst_group", rng=rng, options={"worst_group": options})
