"""The Fisher information matrix of a network, true and empirical, as products that reuse one graph."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.gauss_newton import gauss_newton, output_product
from evenly.curvature.losses import Loss, mean_loss_of
from evenly.curvature.operator import GIBIBYTE, Operator, Product
from evenly.errors import UsageError, did_you_mean
from evenly.models.observation import trainable_parameters

Labels = Literal["model", "data"]


def fisher(
    model: nn.Module,
    data: Data,
    *,
    labels: Labels = "model",
    loss: Loss | None = None,
    only: Sequence[str] | None = None,
    chunk: int = 250,
    memory: int = GIBIBYTE,
) -> Operator:
    """F = (1/N) Σ_i E_y[∇ℓ_i(y) ∇ℓ_i(y)ᵀ] with ℓ_i(y) = −log p(y | x_i); the other arguments are those of `hessian`.

    With y from the network's own distribution (`labels="model"`) it is the Fisher information. For cross-entropy,
    logistic and squared loss (a Gaussian of variance 1) it equals the Gauss–Newton matrix (Martens, 2020), which is how
    it is computed: exactly, without drawing labels. With the labels of the data (`labels="data"`) it is the empirical
    Fisher (1/N) Σ g_i g_iᵀ, the second moment of the examples' gradients. That is another matrix: it vanishes where
    every example is fitted, and is no approximation of the Hessian elsewhere (Kunstner et al., 2019).

    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> data = torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([0.0, 3.0])
    >>> fisher(model, data).dense().tolist()  # mean x xᵀ
    [[1.0, 1.0], [1.0, 2.0]]
    >>> fisher(model, data, labels="data").dense().tolist()  # mean r² x xᵀ, r = f − y
    [[4.5, 9.0], [9.0, 18.0]]
    """
    if labels not in get_args(Labels):
        raise UsageError(f"labels = {labels!r} is not known. {did_you_mean(labels, get_args(Labels))}")
    if labels == "model":
        if callable(loss):
            raise UsageError(
                "the Fisher information needs to know the distribution of the labels: give loss='cross-entropy', "
                "'logistic' or 'squared', or labels='data' for the empirical Fisher of any loss."
            )
        return gauss_newton(model, data, loss=loss, only=only, chunk=chunk, memory=memory)
    params = list(trainable_parameters(model, only=only).values())
    chunks = as_chunks(data, model=model, size=chunk)
    mean = mean_loss_of(model, chunks, loss)

    def build(x: Tensor, y: Tensor | None, weight: float) -> Product:
        assert y is not None  # mean_loss has refused data without labels
        outputs = model(x)
        leaf = outputs.detach().requires_grad_(True)
        slopes_NC: Tensor = len(x) * torch.autograd.grad(mean(leaf, y), leaf)[0].reshape(len(x), -1)

        def curve(pushed: Tensor) -> Tensor:
            along_N1: Tensor = (slopes_NC * pushed.reshape(slopes_NC.shape)).sum(1, keepdim=True)
            return (weight / len(x) * along_N1 * slopes_NC).reshape(outputs.shape)

        return output_product(outputs, params, curve)

    return Operator(build, model=model, params=params, chunks=chunks, memory=memory)
