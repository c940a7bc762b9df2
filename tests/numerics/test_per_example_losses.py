"""Gradients of single examples under every loss that has a name, against one backward pass per example."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.curvature import gram, hessian, per_example_gradients
from evenly.curvature.losses import signs

CLASSES = torch.tensor([0, 1, 1, 0, 1])
CASES = {
    "logistic by default": (1, None, CLASSES, lambda f, y: F.softplus(-(2.0 * y - 1) * f[:, 0])),
    "logistic": (1, "logistic", CLASSES, lambda f, y: F.softplus(-(2.0 * y - 1) * f[:, 0])),
    "logistic of signs": (1, "logistic", 2 * CLASSES - 1, lambda f, y: F.softplus(-y * f[:, 0])),
    "squared, one output": (1, "squared", CLASSES, lambda f, y: (f[:, 0] - (2.0 * y - 1)) ** 2 / 2),
    "squared, several": (3, "squared", CLASSES, lambda f, y: ((f - F.one_hot(y, 3)) ** 2).sum(1) / 2),
    "squared, numbers": (1, "squared", torch.linspace(-1, 1, 5), lambda f, y: (f[:, 0] - y) ** 2 / 2),
    "cross-entropy": (3, None, CLASSES, lambda f, y: F.cross_entropy(f, y, reduction="none")),
}


def network(outputs: int) -> tuple[nn.Module, Tensor]:
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, outputs)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model, torch.randn(5, 4, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize(("outputs", "loss", "labels", "each"), CASES.values(), ids=CASES)
def test_every_named_loss_has_gradients_of_single_examples(outputs, loss, labels, each) -> None:  # type: ignore[no-untyped-def]
    model, x = network(outputs)
    labels = labels.double() if labels.is_floating_point() else labels
    expected = torch.stack(
        [
            torch.cat([g.flatten() for g in torch.autograd.grad(value, list(model.parameters()), retain_graph=True)])
            for value in each(model(x), labels)
        ]
    )
    for chunk in (2, 64):
        found = per_example_gradients(model, (x, labels), loss=loss, chunk=chunk)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gram(model, (x, labels), loss=loss), expected @ expected.T, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.bool])
def test_two_classes_are_signs_whatever_holds_their_numbers(kind: torch.dtype) -> None:
    assert signs(CLASSES.to(kind), torch.float64).tolist() == [-1, 1, 1, -1, 1]
    model, x = network(1)
    same = [hessian(model, (x, labels)).dense() for labels in (CLASSES, CLASSES.to(kind))]
    assert torch.equal(*same)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_batches_of_any_size_keep_to_the_memory_that_is_given(size: int) -> None:
    model, x = network(1)
    x = x.repeat(8, 1)
    batches = [(part, part[:, 0]) for part in x.split(size)]
    few, all_of_it = (hessian(model, batches, memory=memory) for memory in (1, 2**30))
    v = torch.linspace(-1, 1, few.size, dtype=torch.float64)
    torch.testing.assert_close(few @ v, all_of_it @ v)
    # What is kept is seen by what is there after a product: nothing where one byte is allowed.
    assert (len(few._kept), len(all_of_it._kept)) == (0, len(batches))
    each = _bytes_per_example(model, x)
    some = hessian(model, batches, memory=10 * each)
    _ = some @ v
    assert len(some._kept) * size <= 20


def _bytes_per_example(model: nn.Module, x: Tensor) -> int:
    """What one more example adds to the tensors that a graph of the gradient keeps, counted without evenly."""
    sizes = []
    for num in (8, 16):
        seen: dict[int, int] = {}

        def note(t: Tensor, seen: dict[int, int] = seen) -> Tensor:
            seen[t.untyped_storage().data_ptr()] = t.numel() * t.element_size()
            return t

        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            loss = ((model(x[:num])[:, 0] - x[:num, 0]) ** 2).mean()
            _kept = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
            sizes.append(sum(seen.values()))
    return (sizes[1] - sizes[0]) // 8
