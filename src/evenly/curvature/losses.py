"""The losses by name, their curvature in the outputs, and a root of it.

Shapes: N examples, C outputs of one example (1 for a scalar network).
"""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly import tree
from evenly.curvature import soundness
from evenly.curvature.chunks import Chunks
from evenly.errors import DataError, UsageError, did_you_mean

Name = Literal["cross-entropy", "logistic", "squared"]
Loss = Name | Callable[[Tensor, Tensor], Tensor]
Mean = Callable[[Tensor, Tensor], Tensor]
NAMES = ("cross-entropy", "logistic", "squared")


def mean_loss(loss: Loss | None, outputs: Tensor, labels: Tensor | None) -> Mean:
    """`loss` as a function of (outputs, labels) that returns the mean over the examples.

    None chooses by labels and outputs: cross-entropy for class numbers and several outputs, logistic for class numbers
    and one output, squared error for floating targets. A callable may return the mean or one loss per example.

    >>> mean_loss(None, torch.zeros(2, 3), torch.tensor([0, 1]))(torch.zeros(2, 3), torch.tensor([0, 1])).item()
    1.0986123085021973
    """
    if labels is None:
        raise DataError("the loss needs labels: give (inputs, labels), or batches of both.")
    if callable(loss):
        given = loss
        _require_mean(given, outputs, labels)
        return lambda f, y: given(f, y).mean()
    chosen = loss_name(loss, outputs, labels)
    return lambda f, y: ON_TARGETS[chosen](f, targets(chosen, f, y))


def mean_loss_of(model: nn.Module, chunks: Chunks, loss: Loss | None) -> Mean:
    """`mean_loss` for the outputs of a model on these data; a model that `soundness.check` refuses is refused.

    >>> from evenly.curvature.chunks import as_chunks
    >>> data = as_chunks((torch.ones(2, 3), torch.tensor([0, 1])))
    >>> mean_loss_of(nn.Linear(3, 1), data, None)(torch.zeros(2, 1), torch.tensor([0, 1])).item()  # logistic: log 2
    0.6931471824645996
    """
    x, y = chunks[0]
    return mean_loss(loss, soundness.check(model, x), y)


def _require_mean(given: Mean, outputs: Tensor, labels: Tensor) -> None:
    """Refuse a loss whose value of a batch is not the mean of those of its parts: chunks would not add up."""
    num, half = len(outputs), len(outputs) // 2
    if half < 2:  # a loss may be unable to take one example
        return
    with torch.no_grad():
        for chosen in (labels[:num], *_pairs_of_classes(labels, num)):
            pairs = [(outputs[part], chosen[part]) for part in (slice(num), slice(half), slice(half, num))]
            whole, first, rest = (float(given(f, y).mean()) for f, y in pairs)
            gap = abs(whole - (half * first + (num - half) * rest) / num)
            if isfinite(whole) and not gap <= 1e-3 * max(abs(whole), abs(first), abs(rest)):
                raise UsageError(
                    f"the loss of {num} examples, {whole:.4g}, is not the mean of their losses, so that chunks of "
                    "examples do not add up (reduction='sum', a mean weighted by class, or labels that are ignored): "
                    "return the mean, or one loss per example."
                )


def _pairs_of_classes(labels: Tensor, num: int) -> Iterator[Tensor]:
    """For each class but the first, `num` labels of which the earlier half are the first and the others that class."""
    if labels.is_floating_point() or labels.ndim != 1:
        return
    first, *others = labels.unique()  # type: ignore[no-untyped-call]  # torch's own
    for other in others:
        yield torch.cat([first.expand(num // 2), other.expand(num - num // 2)])


def loss_name(loss: Name | None, outputs: Tensor, labels: Tensor | None) -> Name:
    """The loss of that name, checked against the shapes; None chooses one as `mean_loss` says.

    >>> loss_name(None, torch.zeros(2, 1), torch.tensor([0, 1]))
    'logistic'
    """
    num_outputs = outputs[0].numel()
    if loss is None:
        if labels is not None and labels.is_floating_point():
            return "squared"
        return "logistic" if num_outputs == 1 else "cross-entropy"
    if loss not in NAMES:
        raise UsageError(
            f"there is no loss {loss!r}. {did_you_mean(loss, NAMES)} A function of (outputs, labels) works."
        )
    if loss == "logistic" and num_outputs > 1:
        raise UsageError(f"the logistic loss takes one output, not {num_outputs}: use 'cross-entropy'.")
    if loss == "cross-entropy" and num_outputs == 1:
        raise UsageError(
            "cross-entropy of one output is always 0: use 'logistic', or a network with an output per class."
        )
    return loss


def curvature_root(name: Name, outputs_NC: Tensor) -> Tensor:
    """B with B Bᵀ = Q, the Hessian of one example's loss in its outputs: N × C × C.

    Squared error ½‖f − y‖² has Q = I. Logistic loss has Q = p(1−p). Cross-entropy has Q = diag p − ppᵀ, whose root
    B = diag √p − p √pᵀ needs no eigenvalues. None of them depends on the label.

    >>> f = torch.tensor([[0.0, 1.0, 2.0]])
    >>> p, B = f.softmax(1)[0], curvature_root("cross-entropy", f)[0]
    >>> torch.allclose(B @ B.T, p.diag() - p.outer(p), atol=1e-6)
    True
    """
    num, dim = outputs_NC.shape
    if name == "squared":
        return torch.eye(dim, dtype=outputs_NC.dtype, device=outputs_NC.device).expand(num, dim, dim)
    if name == "logistic":
        p_N = outputs_NC[:, 0].sigmoid()
        return (p_N * (1 - p_N)).sqrt()[:, None, None]
    p_NC = outputs_NC.softmax(1)
    root_NC = p_NC.sqrt()
    return torch.diag_embed(root_NC) - p_NC[:, :, None] * root_NC[:, None, :]


def targets(name: Name, outputs: Tensor, labels: Tensor) -> Tensor:
    """The labels in the form that the loss of that name takes, checked: class numbers, ±1, or real targets.

    For the squared loss class numbers mean y = ±1 (one output) or a one-hot y (several). All branching on the
    labels' values happens here, so that the rest of a loss can run under `vmap`.

    >>> targets("squared", torch.zeros(2, 3), torch.tensor([0, 2])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    num_outputs = outputs[0].numel()
    if name == "cross-entropy":
        _require_class_numbers(name, labels)
        if outputs.ndim != 2:
            raise UsageError(
                f"cross-entropy takes outputs of N × C, not {tuple(outputs.shape)}: give the loss as a function."
            )
        return labels.long()
    if name == "logistic" or (num_outputs == 1 and not labels.is_floating_point()):
        return signs(labels, outputs.dtype)
    if not labels.is_floating_point():
        return F.one_hot(labels.long(), num_outputs).to(outputs.dtype)
    if labels.numel() != outputs.numel():
        raise DataError(f"outputs {tuple(outputs.shape)} and targets {tuple(labels.shape)} do not match in shape.")
    return labels.reshape(len(outputs), num_outputs)


def _logistic(outputs: Tensor, signs_N: Tensor) -> Tensor:
    """log(1 + exp(−y f)), y = ±1."""
    return F.softplus(-signs_N * outputs.reshape(len(signs_N))).mean()


def _squared_error(outputs: Tensor, targets_NC: Tensor) -> Tensor:
    """½‖f − y‖²."""
    f_NC = outputs.reshape(len(outputs), -1)
    return (f_NC - targets_NC.reshape(f_NC.shape)).square().sum(1).mean() / 2


# The mean of each loss, from the outputs and the result of `targets`.
ON_TARGETS: dict[Name, Mean] = {"cross-entropy": F.cross_entropy, "logistic": _logistic, "squared": _squared_error}


def signs(labels: Tensor, dtype: torch.dtype) -> Tensor:
    """Two classes as y = ±1: from 0 and 1, or from −1 and 1 as they are.

    >>> signs(torch.tensor([0, 1, 1]), torch.float32)
    tensor([-1.,  1.,  1.])
    """
    values = set(labels.tolist())
    if values <= {0, 1}:
        return 2 * labels.to(dtype) - 1  # in this order: bytes have no −1
    if values <= {-1, 1}:
        return labels.to(dtype)
    raise DataError(
        f"one output tells two classes apart, but the labels are {sorted(values)[:5]}: number them 0 and 1, "
        "or give floating targets for regression."
    )


def _require_class_numbers(name: str, labels: Tensor) -> None:
    if labels.is_floating_point() or labels.ndim != 1:
        raise DataError(
            f"the loss {name!r} needs one class number per example, not {labels.dtype} of shape {tuple(labels.shape)}: "
            "give labels.long(), or another loss."
        )


def loss_and_gradient(
    model: nn.Module, params: Sequence[Tensor], chunks: Chunks, mean: Mean
) -> tuple[float, list[Tensor]]:
    """The mean loss over all chunks, and its gradient."""
    total, gradient = 0.0, [torch.zeros_like(p) for p in params]
    for size, (x, y) in zip(chunks.sizes, chunks, strict=True):
        assert y is not None  # mean_loss has refused data without labels
        with torch.enable_grad():
            value = mean(model(x), y) * (size / chunks.num_examples)
            part = torch.autograd.grad(value, params, materialize_grads=True)
        total += float(value.detach())
        gradient = tree.add(gradient, part)
    return total, gradient


def predicted_classes(outputs: Tensor) -> Tensor:
    """The class of each example: the largest output, or the sign of the only one.

    >>> predicted_classes(torch.tensor([[0.2, 0.8]])), predicted_classes(torch.tensor([[-1.0], [2.0]]))
    (tensor([1]), tensor([0, 1]))
    """
    f_NC = outputs.reshape(len(outputs), -1)
    return f_NC.argmax(1) if f_NC.shape[1] > 1 else (f_NC[:, 0] > 0).long()
