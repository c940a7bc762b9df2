"""Any module as K of them at once, by `torch.func`: the vjp of a vmapped call.

Shapes: K members, N examples, F features.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from evenly.models.headed import Headed
from evenly.training.ensemble.layers import Linear
from evenly.training.ensemble.layout import Views
from evenly.training.ensemble.networks import NoHead


class General:
    """Any module that `vmap` can vectorise; a `Headed` model is split at its linear head, any other is all body."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        # A guess for an opaque module: a layer's outputs are the first dimension of its weight.
        self.width = max(p.shape[0] if p.ndim else 1 for p in self.model.parameters())
        self.buffers = dict(self.model.named_buffers())
        self.head: Linear | NoHead = NoHead()
        self.body: nn.Module = _Whole(self.model)
        name = head_name(self.model)
        if name is not None and isinstance(self.model, Headed):
            layer: Any = self.model.get_submodule(name)
            self.head = Linear(f"{name}.weight", f"{name}.bias" if layer.bias is not None else None)
            self.body = _Features(self.model)
        own = {self.head.weight, self.head.bias} if isinstance(self.head, Linear) else set()
        self.names = [n for n, _ in self.model.named_parameters() if n not in own]

    def prepare(self, inputs_N: Tensor) -> Tensor:
        """As they are."""
        return inputs_N

    def features(self, p: Views, x_KN: Tensor) -> tuple[Tensor, Any]:
        """Saved: the pull-back."""
        fixed = {name: t for name, t in p.items() if name not in self.names}

        def one(body: Views, rest: Views, x_N: Tensor) -> Tensor:
            state = {f"model.{name}": t for name, t in (body | rest | self.buffers).items()}
            out: Tensor = functional_call(self.body, state, (x_N,))
            return out.flatten(1)

        if not self.names:
            return vmap(one)({}, fixed, x_KN), None
        found: tuple[Tensor, Any] = vjp(  # type: ignore[assignment]  # three only with has_aux
            lambda body: vmap(one)(body, fixed, x_KN), {name: p[name] for name in self.names}
        )
        return found

    def backward(self, p: Views, g: Views, saved: Any, d_KNF: Tensor) -> None:
        """Pull back, and copy the gradients into `g`."""
        if saved is None:
            return
        (gradients,) = saved(d_KNF)
        torch._foreach_copy_([g[n] for n in self.names], [gradients[n] for n in self.names])

    def model_features(self, features_KNF: Tensor) -> Tensor:
        """As they are."""
        return features_KNF


def head_name(model: nn.Module) -> str | None:
    """The name of the linear head of a `Headed` model; None where there is none.

    >>> from evenly.models.relu2 import ReLU2
    >>> head_name(ReLU2((4,), 2)), head_name(nn.Linear(2, 1))
    ('head', None)
    """
    if not isinstance(model, Headed) or type(model.head) is not nn.Linear:
        return None
    return next((name for name, module in model.named_modules() if module is model.head), None)


class _Whole(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Any:
        return self.model(x)


class _Features(nn.Module):
    def __init__(self, model: Headed) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Any:
        features: Any = self.model.features  # a method or a submodule
        return features(x)
