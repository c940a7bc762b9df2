import pytest
import torch
from torch.nn import functional

from evenly.errors import UsageError
from evenly.training.objective import Objective, predictions


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_one_logit_is_two_logits_of_which_one_is_zero(smoothing: float) -> None:
    f = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(9) % 2
    one = Objective("logistic", smoothing)(f[:, None], labels)
    two = functional.cross_entropy(
        torch.stack([torch.zeros_like(f), f], 1), labels, reduction="none", label_smoothing=smoothing
    )
    torch.testing.assert_close(one, two)


def test_the_squared_loss_has_the_residual_as_its_gradient() -> None:
    f = torch.tensor([[0.3], [2.0]], requires_grad=True)
    Objective("squared")(f, torch.tensor([1, 0])).sum().backward()
    torch.testing.assert_close(f.grad, torch.tensor([[0.3 - 1], [2.0 + 1]]))


@pytest.mark.parametrize(("kind", "columns"), [("squared", 3), ("logistic", 2), ("cross-entropy", 1)])
def test_a_loss_that_does_not_fit_the_outputs_is_refused(kind: str, columns: int) -> None:
    with pytest.raises(UsageError, match=f"loss={kind}"):
        Objective(kind)(torch.zeros(1, columns), torch.zeros(1, dtype=torch.int64))


def test_predictions_are_the_larger_logit_or_the_sign() -> None:
    assert predictions(torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]])).tolist() == [1, 0]
    assert predictions(torch.tensor([[0.1], [-0.1]])).tolist() == [1, 0]


def test_label_smoothing_of_the_squared_loss_is_refused() -> None:
    with pytest.raises(UsageError, match=r"label_smoothing=0\.1 has no meaning for loss=squared"):
        Objective("squared", label_smoothing=0.1)
