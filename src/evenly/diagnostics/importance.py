"""How much each example weighs in the gradient, at the weights and at SAM's phantom weights.

Springer et al. (2024), section 6.2: the gradient of the logistic loss is λ_i g_i, with λ_i = σ(−y_i f(x_i)) the
importance of example i. For several classes λ_i = 1 − p_y, which is the same with f the log-odds of the true class.

Shapes: N examples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly import tree
from evenly.curvature.chunks import Chunks, Data, as_chunks
from evenly.curvature.losses import Loss, mean_loss_of, signs
from evenly.diagnostics.inequality import gini, lorenz
from evenly.errors import DataError, UsageError
from evenly.models.observation import observing, trainable_parameters
from evenly.optim import ascent
from evenly.tree import Params

Rule = Callable[[Params, Params], ascent.Ascent]


@dataclass(frozen=True)
class Importance:
    """Importance weights at the real and at the phantom weights, one per example, in the order of the data.

    `real_gini` and `phantom_gini` are 0 where all examples weigh the same and near 1 where one weighs all. `tracked`
    holds the real values of the tracked parameters, `phantoms` their values in each group (groups first).
    """

    real: Tensor
    phantom: Tensor
    real_gini: float
    phantom_gini: float
    tracked: Mapping[str, Tensor]
    phantoms: Mapping[str, Tensor]

    @property
    def real_lorenz(self) -> tuple[Tensor, Tensor]:
        """The Lorenz curve of the real weights: shares of the examples, shares of the importance."""
        return lorenz(self.real)

    @property
    def phantom_lorenz(self) -> tuple[Tensor, Tensor]:
        """The Lorenz curve of the phantom weights."""
        return lorenz(self.phantom)


def importance(
    model: nn.Module,
    data: Data,
    *,
    rho: float,
    rule: Rule | None = None,
    only: Sequence[str] | None = None,
    group: int | None = None,
    loss: Loss | None = None,
    track: Sequence[str] = (),
    chunk: int = 250,
) -> Importance:
    """Importance weights at w and at the phantom w + ε, with ε from the gradient of each group of examples.

    Parameters
    ----------
    rho
        The radius of SAM's ascent.
    rule
        Any ascent of weights and gradients, such as `partial(evenly.optim.ascent.asam, rho=1.0)`; SAM's by default.
    only
        The parameters that are displaced, by name or its beginning: `["head"]` is LSAM.
    group
        Examples per ascent, in the order of the data, as a batch of training would have; all in one by default.
    track
        Names of parameters whose phantom values are wanted.

    Examples
    --------
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> data = (torch.tensor([[1.0], [3.0]]), torch.tensor([1, 1]))
    >>> weighed = importance(model, data, rho=1.0, track=["weight"])  # the ascent takes the weight to 0: λ̃ = ½
    >>> weighed.phantom.tolist(), round(weighed.real_gini, 3), weighed.phantoms["weight"].tolist()
    ([0.5, 0.5], 0.35, [[[0.0]]])
    """
    if rule is None and not rho >= 0:
        raise UsageError(f"rho = {rho} is the radius of SAM's ascent: give 0 or more.")
    if group is not None and group < 1:
        raise UsageError(f"group = {group} is the number of examples per ascent: give 1 or more, or None for all.")
    climb = rule or partial(ascent.sam, rho=rho)
    named = trainable_parameters(model, only=only)
    params: list[Tensor] = list(named.values())
    for name in track:
        if name not in named:
            raise UsageError(f"cannot track {name!r}: it is not among the displaced parameters {', '.join(named)}.")
    real, phantom = [], []
    phantoms: dict[str, list[Tensor]] = {name: [] for name in track}
    with observing(model):
        chunks = as_chunks(data, model=model, size=group or chunk)
        if group is not None:  # the batches of a loader are not the groups
            chunks = chunks.of_size(group)
        mean = mean_loss_of(model, chunks, loss)

        def weights(x: Tensor, y: Tensor | None) -> Tensor:
            assert y is not None  # mean_loss has refused data without labels
            with torch.no_grad():
                return importance_weights(model(x), y)

        for members in _groups(chunks, whole=group is None):
            num = sum(chunks.sizes[i] for i in members)
            gradient: Params = [torch.zeros_like(p) for p in params]
            for i in members:
                x, y = chunks[i]
                with torch.enable_grad():
                    value = mean(model(x), y) * (chunks.sizes[i] / num)
                    gradient = tree.add(gradient, torch.autograd.grad(value, params, materialize_grads=True))
            offset = climb([p.detach() for p in params], gradient).epsilon
            if not all(torch.isfinite(part).all() for part in offset):
                raise DataError("the ascent is not finite: look for NaN or inf in the loss, or for an overflow of rho.")
            real += [weights(*chunks[i]) for i in members]
            with tree.displaced(params, offset):
                phantom += [weights(*chunks[i]) for i in members]
                for name, values in phantoms.items():
                    values.append(named[name].detach().clone())
    real_N, phantom_N = torch.cat(real), torch.cat(phantom)
    return Importance(
        real=real_N,
        phantom=phantom_N,
        real_gini=gini(real_N),
        phantom_gini=gini(phantom_N),
        tracked={name: named[name].detach().clone() for name in track},
        phantoms={name: torch.stack(values) for name, values in phantoms.items()},
    )


def log_odds(outputs: Tensor, labels_N: Tensor) -> Tensor:
    """The log-odds of the true class: y f for one output, z_y − log Σ_{k≠y} exp z_k for several.

    Unlike log(p/(1 − p)) it is exact also where p rounds to 1.

    >>> log_odds(torch.tensor([[100.0, 0.0]]), torch.tensor([0])).item()
    100.0
    """
    f_NC = outputs.reshape(len(outputs), -1)
    if f_NC.shape[1] == 1:
        return signs(labels_N, f_NC.dtype) * f_NC[:, 0]
    labels_N = labels_N.long()  # bytes and short integers are class numbers too
    mask_NC = F.one_hot(labels_N, f_NC.shape[1]).bool()
    return f_NC.gather(1, labels_N[:, None])[:, 0] - f_NC.masked_fill(mask_NC, -torch.inf).logsumexp(1)


def importance_weights(outputs: Tensor, labels_N: Tensor) -> Tensor:
    """The importance λ = σ(−y f), or 1 − p_y for several classes.

    >>> importance_weights(torch.tensor([0.0, 2.0]), torch.tensor([1, 0]))
    tensor([0.5000, 0.8808])
    """
    return torch.sigmoid(-log_odds(outputs, labels_N))


def _groups(chunks: Chunks, *, whole: bool) -> list[list[int]]:
    return [list(range(len(chunks)))] if whole else [[i] for i in range(len(chunks))]
