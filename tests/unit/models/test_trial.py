"""`check`: what is said of a model that does not fit, and that it leaves no trace."""

import pytest
import torch
from torch import Tensor, nn

from evenly.errors import UsageError
from evenly.models import check


class Says(nn.Module):
    """Returns what it was told to."""

    def __init__(self, what: object) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Tensor) -> object:
        return self.what


@pytest.mark.parametrize(
    ("model", "shape", "words"),
    [
        (nn.Linear(4, 3), (5,), r"Linear cannot take inputs of 5: mat1 and mat2 shapes cannot be multiplied"),
        (nn.Conv2d(3, 4, 3), (1, 8, 8), r"Conv2d cannot take inputs of 1×8×8: .*3 channels"),
        (nn.Linear(4, 3), (4,), r"gives 3 outputs, but there are 10 classes\. Build it with 10 outputs"),
        (nn.Linear(4, 1), (4,), r"gives 1 output, but there are 10 classes"),
        (nn.Conv2d(3, 10, 3), (3, 8, 8), r"outputs of 2×10×6×6 for 2 examples, but 2×10, examples×classes"),
        (nn.Flatten(0), (4,), r"outputs of 8 for 2 examples"),
        (Says((torch.zeros(2, 10),)), (4,), r"returns a tuple, not a tensor\. Wrap it"),
        (Says({"logits": 0}), (4,), r"returns a dict"),
        (nn.LazyLinear(10), (4,), r"lazy layers"),
    ],
)
def test_what_does_not_fit_is_said(model: nn.Module, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(model, shape, 10)


def test_a_single_logit_will_do_for_two_classes() -> None:
    check(nn.Linear(4, 1), (4,), 2)


def test_the_name_in_the_message_can_be_given() -> None:
    with pytest.raises(UsageError, match="timm:tiny gives 3"):
        check(nn.Linear(4, 3), (4,), 10, name="timm:tiny")


def test_a_model_in_another_dtype_is_tried_in_it() -> None:
    check(nn.Linear(4, 3, dtype=torch.float64), (4,), 3)


class Restless(nn.Module):
    """Changes in a forward pass whatever a forward pass can, in eval mode too."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("last", torch.zeros(2))
        self.fails = fails

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = torch.rand(2)
        self.layer.train()
        out: Tensor = self.layer(x)
        if self.fails:
            raise RuntimeError("no")
        return out


@pytest.mark.parametrize("fails", [False, True])
def test_no_trace_is_left_also_when_the_model_raises(fails: bool) -> None:
    model = Restless(fails)
    model.layer[1].eval()
    torch.manual_seed(0)
    rng, calls, last = torch.get_rng_state(), model.calls, model.last
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    if fails:
        with pytest.raises(UsageError, match="Restless cannot take inputs of 4: no"):
            check(model, (4,), 3)
    else:
        check(model, (4,), 3)
    assert torch.equal(torch.get_rng_state(), rng)
    assert model.calls is calls
    assert model.last is last
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())


class More(nn.Module):
    """Returns two tensors in train mode, as models with auxiliary heads do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> object:
        return (self.layer(x), self.layer(x)) if self.training else self.layer(x)


def test_a_model_that_returns_more_in_train_mode_is_refused_for_training() -> None:
    model = More().eval()
    check(model, (4,), 3)
    with pytest.raises(UsageError, match=r"More returns a tuple in train mode, not a tensor\. Wrap it"):
        check(model, (4,), 3, training=True)
    model.aux_logits = True  # type: ignore[assignment]  # as torchvision's have
    with pytest.raises(UsageError, match=r"further heads: --set model\.options\.aux_logits=false"):
        check(model, (4,), 3, training=True)
    assert not any(module.training for module in model.modules())


class Frozen(nn.Module):
    """Keeps its BatchNorm in eval mode, as fine-tuning does."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))

    def train(self, mode: bool = True) -> "Frozen":
        super().train(mode)
        self.layers[1].eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        assert not self.layers[1].training
        out: Tensor = self.layers(x)
        return out


def test_train_mode_is_what_the_model_itself_makes_of_it() -> None:
    check(Frozen(), (4,), 3, training=True)
