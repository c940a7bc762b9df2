"""A model that is looked at is the same afterwards; a model that cannot be looked at says why."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.curvature import gram, hessian, observing
from evenly.curvature.chunks import as_chunks, outputs_of
from evenly.curvature.soundness import check
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError


class Restless(nn.Module):
    """Writes to one buffer, replaces another and draws random numbers whenever it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(1))
        self.register_buffer("nothing", None)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = torch.rand(1)
        return self.layer(x)


@pytest.mark.parametrize("failing", [False, True])
def test_mode_buffers_and_random_state_come_back_also_after_an_error(failing: bool) -> None:
    model = nn.Sequential(Restless(), nn.Dropout())
    model[1].eval()
    last, state = model[0].last, torch.get_rng_state()
    try:
        with observing(model):
            assert not any(module.training for module in model.modules())
            model(torch.ones(1, 2))
            if failing:
                raise RuntimeError
    except RuntimeError:
        pass
    assert [module.training for module in model.modules()] == [True, True, True, False]
    assert model[0].last is last
    assert model[0].calls == 0
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("measure", [hessian, gram])
def test_curvature_leaves_no_trace(measure) -> None:  # type: ignore[no-untyped-def]
    model = Restless()
    model.layer.weight.grad = torch.ones(2, 2)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    found = measure(model, (torch.eye(2), torch.tensor([0, 1])))
    if measure is hessian:
        found @ torch.ones(6)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model.layer.weight.grad, torch.ones(2, 2))
    assert model.layer.bias.grad is None
    assert not model.layer._forward_hooks


class Functional(nn.Module):
    """Dropout that eval mode does not switch off."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x.repeat(1, 20), 0.5, training=True)  # wide: equal masks by chance are out of the question


class Mixing(nn.Module):
    """An output that depends on the other examples."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class Summing(nn.Module):
    """One output for the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Pair(nn.Module):
    """Two outputs in a tuple."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (nn.BatchNorm1d(2), "statistics of the batch .train mode."),
        (nn.BatchNorm1d(2, track_running_stats=False).eval(), "keeps no running statistics"),
        (nn.Sequential(nn.Dropout(0.1)), "dropout layer '0' is in train mode"),
        (Functional().eval(), "not deterministic: two evaluations"),
        (Mixing(), "when other examples leave the batch"),
        (Summing(), r"shape \(\) for 4 examples"),
        (Pair(), "returns a tuple, not a tensor"),
    ],
)
def test_a_model_that_is_no_function_of_each_example_is_refused(model: nn.Module, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(model, torch.arange(8.0).view(4, 2) ** 2)


def test_outputs_that_are_not_finite_are_refused_with_the_example() -> None:
    with pytest.raises(DataError, match="output of example 2 is not finite"):
        check(nn.Identity(), torch.tensor([[1.0], [1.0], [float("inf")]]))


def test_dropout_that_drops_nothing_and_eval_mode_are_allowed() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.0), nn.BatchNorm1d(3).eval())
    assert check(model, torch.ones(5, 2)).shape == (4, 3)


def test_every_shape_of_data_gives_the_same_chunks() -> None:
    x, y = torch.arange(10.0).view(5, 2), torch.tensor([0, 1, 0, 1, 1])
    model = nn.Linear(2, 2).double()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=2)
    for data in (Labelled(x, y, ("a", "b")), (x, y), loader, [(x[:2], y[:2]), (x[2:4], y[2:4]), (x[4:], y[4:])]):
        chunks = as_chunks(data, model=model, size=2)
        assert chunks.sizes == (2, 2, 1)
        assert chunks.num_examples == 5
        inputs, labels = zip(*chunks, strict=True)
        assert torch.equal(torch.cat(inputs), x.double())
        assert torch.equal(torch.cat(labels), y)


def test_images_are_scaled_as_they_are_in_training() -> None:
    data = Labelled(torch.full((2, 1, 2, 2), 255, dtype=torch.uint8), torch.tensor([0, 1]), ("a", "b"))
    outputs, labels = outputs_of(nn.Flatten(), data)
    assert outputs.max() == 1.0
    assert labels is not None
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        ([], DataError, "no batches"),
        ([{"x": 1}], UsageError, "a batch is a dict"),
        (torch.zeros(0, 2), DataError, "no examples"),
    ],
)
def test_data_that_cannot_be_read_say_what_is_expected(data, error: type[Exception], said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said):
        as_chunks(data)
