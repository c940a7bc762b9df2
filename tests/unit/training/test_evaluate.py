from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from evenly import load_run
from evenly.data import Augmentation, Labelled, load
from evenly.recipe import Data, Model, Recipe
from evenly.training.evaluate import outputs, scores
from evenly.training.objective import Objective
from evenly.training.train import train


def test_outputs_are_in_eval_mode_and_leave_every_module_as_it_was() -> None:
    data = load("digits")["test"]
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(0.5), nn.Linear(64, 10))
    model[1].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    first, second = outputs(model, data, batch_size=100), outputs(model, data, batch_size=7)
    torch.testing.assert_close(first, second)
    assert [m.training for m in model] == [True, False, True, True]
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


class Noting(nn.Module):
    """Notes the sizes of the batches that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(x))
        return x.flatten(1)[:, :2]


@pytest.mark.parametrize(
    ("side", "num", "sizes"), [(32, 520, [512, 8]), (224, 120, [111, 9]), (2400, 2, [1, 1])]
)  # of three channels
def test_large_inputs_are_passed_in_smaller_batches(side: int, num: int, sizes: list[int]) -> None:
    inputs = torch.zeros(1, 1, 1, 1, dtype=torch.uint8).expand(num, 3, side, side)
    model = Noting()
    outputs(model, Labelled(inputs, torch.zeros(num, dtype=torch.int64), ("a", "b")))
    assert model.sizes == sizes


def test_random_augmentation_is_left_out_and_normalisation_is_not() -> None:
    data = load("digits")["test"]
    augment = Augmentation.parse(["mirror:1.0", "normalise:standard"], data=data)
    found = outputs(nn.Flatten(), data, augment=augment)
    flat = data.inputs.flatten(1).double() / 255
    torch.testing.assert_close(found.double(), (flat - flat.mean()) / flat.std(correction=0), atol=1e-4, rtol=1e-4)


def made(wrong: list[bool], groups: list[int]) -> tuple[torch.Tensor, Labelled]:
    labels = torch.zeros(len(wrong), dtype=torch.int64)
    out = torch.tensor([[0.0, 1.0] if w else [1.0, 0.0] for w in wrong])
    data = Labelled(
        torch.zeros(len(wrong), 1),
        labels,
        ("a", "b"),
        attributes={"group": torch.tensor(groups)},
        values={"group": ("land", "water")},
    )
    return out, data


def test_groups_are_told_apart_by_name_with_the_worst_and_the_adjusted_average() -> None:
    out, data = made([False, True, True, True, False], [0, 0, 1, 1, 1])
    _, train = made([False] * 10, [0] * 9 + [1])
    found = scores(out, data, objective=Objective(), reference=train)
    assert found["error"] == pytest.approx(3 / 5)
    assert found["error.group.land"] == pytest.approx(1 / 2)
    assert found["error.group.water"] == pytest.approx(2 / 3)
    assert found["worst.group"] == pytest.approx(2 / 3)
    assert found["adjusted.group"] == pytest.approx(0.9 * 1 / 2 + 0.1 * 2 / 3)


def test_an_attribute_that_is_the_label_or_a_mere_number_is_no_grouping() -> None:
    data = load("parity", num_train=100).train
    out = torch.zeros(100, 2)
    numbered = Labelled(
        data.inputs, data.labels, data.classes, attributes={"same": data.labels, "number": torch.arange(100)}
    )
    assert set(scores(out, numbered, objective=Objective())) == {"loss", "error", "worst.class"}


def test_an_attribute_called_class_leaves_the_worst_class_alone() -> None:
    out, data = made([False, True, True, True, False], [0, 0, 1, 1, 1])
    plain = scores(out, data, objective=Objective())["worst.class"]
    named = Labelled(data.inputs, data.labels, data.classes, attributes={"class": data.attributes["group"]})
    found = scores(out, named, objective=Objective())
    assert found["worst.class"] == plain == pytest.approx(3 / 5)
    assert found["error.class.1"] == pytest.approx(2 / 3)


def test_a_group_without_a_name_is_called_empty() -> None:
    out, data = made([True, False, False, False], [0, 0, 1, 1])
    metrics = scores(out, replace(data, values={"group": ("", "water")}), objective=Objective())
    assert metrics["error.group.(empty)"] == 0.5
    assert not any(key.endswith(".") for key in metrics)


def test_a_value_for_each_example_makes_no_groups() -> None:
    out, data = made([True, False, False], [0, 1, 1])
    numbered = replace(data, attributes={**data.attributes, "index": torch.tensor([7, 3, 9])})
    found = scores(out, numbered, objective=Objective())
    assert found == scores(out, data, objective=Objective())
    assert "error.group.water" in found


@pytest.mark.parametrize("terms", [{"label_smoothing": 0.2}, {"logit_penalty": 0.1}])
def test_evaluation_reports_the_loss_without_the_terms_that_only_train(terms: dict[str, float]) -> None:
    out, data = made(wrong=[False, True, False], groups=[0, 1, 1])
    assert scores(out, data, objective=Objective(**terms)) == scores(out, data, objective=Objective())


@pytest.mark.parametrize("term", ["label_smoothing", "logit_penalty"])
def test_losses_of_two_recipes_compare_whatever_they_add_in_training(term: str, tmp_path: Path) -> None:
    recipe = Recipe(
        data=Data("digits"), model=Model("mlp", {"width": 8}), epochs=1, record_examples=True, **{term: 0.3}
    )
    run = train(recipe, runs=tmp_path, device="cpu")
    network = load_run(run.path).model
    for split, name in (("test", "test.loss"), ("train", "train.clean.loss")):
        data = load("digits")[split]
        loss_N = functional.cross_entropy(outputs(network, data), data.labels, reduction="none")
        assert run.summary()[name] == pytest.approx(loss_N.mean().item(), rel=1e-5)
    recorded = load_file(run.path / "examples" / "epoch-0001.safetensors")["loss"]
    torch.testing.assert_close(recorded, loss_N)
