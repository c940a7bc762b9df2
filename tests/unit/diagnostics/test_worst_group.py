"""Which groups the worst group is of, and what it refuses."""

import pytest
import torch
from torch import nn

from evenly.data import Labelled, Splits
from evenly.diagnostics import measure
from evenly.diagnostics.worst_group import group_errors
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


def test_groups_have_the_names_of_their_values() -> None:
    place = torch.tensor([0, 1, 2, 0])
    labels = torch.tensor([0, 0, 1, 1])
    values = {"place": ("", "land", "sea"), "group": ("waterbird", "landbird", "duck")}
    part = Labelled(torch.randn(4, 2), labels, ("cat", "dog"), {"place": place}, values=values)
    names = {group.name for group in group_errors(nn.Linear(2, 2), part, attribute="place")}
    assert names == {"cat, place=(empty)", "cat, place=land", "dog, place=sea", "dog, place=(empty)"}
    part = Labelled(torch.randn(4, 2), labels, ("cat", "dog"), {"group": place}, values=values)
    names = {group.name for group in group_errors(nn.Linear(2, 2), part, attribute="group")}
    assert names == {"group waterbird", "group landbird", "group duck"}


def test_a_number_of_each_example_makes_no_groups() -> None:
    num = 40
    labels, place = torch.arange(num) % 2, torch.arange(num) // 2 % 2
    inputs = torch.where(torch.arange(num) < 4, 1 - labels, labels)[:, None].float()  # the first four are wrong
    attributes = {"index": torch.arange(num), "camera": torch.arange(num) % 34, "place": place, "kind": labels}
    part = Labelled(inputs, labels, ("a", "b"), attributes)
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, 2.0)
    nn.init.constant_(model.bias, -1.0)
    rng = torch.Generator().manual_seed(0)
    numbers = measure(model, Splits("toy", {"train": part, "test": part}), "worst_group", rng=rng)
    assert {group["name"] for group in numbers["groups"]} == {f"{kind}, place={at}" for kind in "ab" for at in (0, 1)}
    assert numbers["worst_group_error"] == pytest.approx(1 / 10)
    chosen = {"worst_group": {"attribute": "camera"}}
    numbers = measure(model, Splits("toy", {"train": part, "test": part}), "worst_group", rng=rng, options=chosen)
    assert numbers["worst_group_error"] == 0.5  # what is chosen is taken
