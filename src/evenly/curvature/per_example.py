"""Gradients of single examples of any network: by `torch.func.vmap`, or by a loop where `vmap` fails.

Shapes: N examples, P parameters, C outputs of one example.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from evenly.curvature import soundness
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import ON_TARGETS, Loss, loss_name, mean_loss, targets
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


def per_example_gradients(
    model: nn.Module,
    data: Data,
    *,
    loss: Loss | None = None,
    labels: Tensor | None = None,
    only: Sequence[str] | None = None,
    chunk: int = 64,
) -> Tensor:
    """The gradient of every example's loss, N × P; without labels, of every example's only output.

    For a network with several outputs and no labels use `block_gram`, or `jacobians` on one chunk. Memory is
    N × P: the `gram` of the gradients needs far less.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> per_example_gradients(model, torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()  # ∇f(x) = x
    [[1.0, 2.0], [3.0, 4.0]]
    """
    names = list(trainable_parameters(model, only=only))
    chunks = as_chunks(data, model=model, size=chunk, labels=labels)
    x, y = chunks[0]
    outputs = soundness.check(model, x)
    if y is None and loss is not None:
        raise UsageError("gradients of a loss need labels: give labels=, or (inputs, labels).")
    if y is None and outputs[0].numel() > 1:
        raise UsageError(
            f"the network has {outputs[0].numel()} outputs: give labels to differentiate the loss, or use block_gram."
        )
    name = None if y is None or callable(loss) else loss_name(loss, outputs, y)
    mean = None if y is None else ON_TARGETS[name] if name is not None else mean_loss(loss, outputs, y)

    def value(f_C: Tensor, y: Tensor | None) -> Tensor:
        return f_C.reshape(-1) if mean is None or y is None else mean(f_C[None], y[None]).reshape(-1)

    def loss_targets(x: Tensor, y: Tensor | None) -> Tensor | None:
        """The targets of the loss, computed before `vmap`, which cannot branch on values."""
        return y if name is None or y is None else targets(name, outputs[:1].expand(len(x), *outputs.shape[1:]), y)

    with observing(model, training=None):
        parts = [jacobians(model, x, loss_targets(x, y), value, names).squeeze(1) for x, y in chunks]
    return torch.cat(parts)


def jacobians(
    model: nn.Module,
    x: Tensor,
    y: Tensor | None,
    value: Callable[[Tensor, Tensor | None], Tensor],
    names: Sequence[str],
) -> Tensor:
    """The derivative of value(f(x_n), y_n) by the parameters for every example of one chunk: N × (length of value) × P.

    >>> model = nn.Linear(2, 3, bias=False)
    >>> tuple(jacobians(model, torch.ones(4, 2), None, lambda f, y: f, ["weight"]).shape)
    (4, 3, 6)
    """
    everything = {name: p.detach() for name, p in model.named_parameters()}
    chosen = {name: everything.pop(name) for name in names}
    buffers = dict(model.named_buffers())

    def single(params: dict[str, Tensor], x_: Tensor, y_: Tensor | None) -> Tensor:
        # Fresh buffers, so that a model that writes to them leaves its own unchanged.
        own = {name: buffer.clone() for name, buffer in buffers.items()}
        return value(functional_call(model, (params, everything, own), (x_[None],))[0], y_)

    try:
        blocks = vmap(jacrev(single), (None, 0, None if y is None else 0), randomness="same")(chosen, x, y)
    except (RuntimeError, ValueError):
        # Recurrent layers, PReLU, control flow that looks at values: a loop can do what `vmap` cannot.
        return _one_by_one(single, chosen, x, y)
    return torch.cat([blocks[name].flatten(2) for name in names], dim=2)


def _one_by_one(
    single: Callable[[dict[str, Tensor], Tensor, Tensor | None], Tensor],
    chosen: dict[str, Tensor],
    x: Tensor,
    y: Tensor | None,
) -> Tensor:
    """The same by a forward pass for each example and a backward pass for each of its values."""
    leaves = {name: p.detach().requires_grad_(True) for name, p in chosen.items()}
    rows = []
    with torch.enable_grad():
        for i in range(len(x)):
            values = single(leaves, x[i], None if y is None else y[i])
            each = [
                torch.autograd.grad(v, list(leaves.values()), retain_graph=True, materialize_grads=True)
                for v in values.unbind()
            ]
            rows.append(torch.stack([torch.cat([g.reshape(-1) for g in gradient]) for gradient in each]))
    return torch.stack(rows).detach()
