"""A network in rescaled weights, whose curvature is that under a diagonal preconditioner."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from evenly.models.observation import trainable_parameters, unflatten


class ScaledModel(nn.Module):
    """The same function of x with parameters θ̃ = θ·√d: its curvatures are D^−½HᵢD^−½.

    A preconditioned step w ← w − ηD⁻¹g is a plain step w̃ ← w̃ − ηg̃ in these units, so that thresholds carry over.

    >>> import torch
    >>> model = nn.Linear(2, 1, bias=False)
    >>> scaled = ScaledModel(model, torch.tensor([4.0, 1.0]))
    >>> x = torch.ones(1, 2)
    >>> torch.allclose(scaled(x), model(x)), torch.autograd.grad(scaled(x).sum(), list(scaled.parameters()))[0].tolist()
    (True, [[0.5, 1.0]])
    """

    def __init__(self, model: nn.Module, scale_P: Tensor) -> None:
        super().__init__()
        named = trainable_parameters(model)
        self._names: Sequence[str] = list(named)
        roots = unflatten(scale_P.sqrt(), list(named.values()))
        self._model = [model]  # in a list, so that its parameters are not registered here
        self.theta = nn.ParameterList(p.detach() * root for p, root in zip(named.values(), roots, strict=True))
        self._roots = [root.clone() for root in roots]
        self.eval()

    def forward(self, *inputs: Any) -> Tensor:
        """The model's output at θ = θ̃/√d."""
        there = {name: p / root for name, p, root in zip(self._names, self.theta, self._roots, strict=True)}
        outputs: Tensor = functional_call(self._model[0], there, inputs)
        return outputs
