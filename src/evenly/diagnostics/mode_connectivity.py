"""Linear mode connectivity: the loss on the straight line between the weights of two networks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, mean_loss_of, predicted_classes, signs
from evenly.errors import UsageError
from evenly.models.observation import observing


@dataclass(frozen=True)
class Connection:
    """Losses and 0–1 errors at fractions of the way from the first network (0) to the second (1).

    Floating targets are not classes: their errors are NaN.
    """

    shares: tuple[float, ...]
    losses: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def barrier(self) -> float:
        """max_t L(t) − ((1 − t)L(0) + tL(1)) (Frankle et al., 2020; Entezari et al., 2022); 0 without one."""
        first, last = self.losses[0], self.losses[-1]
        return max(loss - ((1 - t) * first + t * last) for t, loss in zip(self.shares, self.losses, strict=True))


def mode_connectivity(
    first: nn.Module, second: nn.Module, data: Data, *, loss: Loss | None = None, points: int = 11, chunk: int = 500
) -> Connection:
    """L((1 − t)w₁ + tw₂) for t from 0 to 1 (Frankle et al., 2020).

    Two runs in one basin have no barrier; runs that learned by different features usually have. Running statistics of
    BatchNorm are mixed like weights, which overstates the barrier of such networks (Jordan et al., 2023). Weights that
    the networks share between layers are mixed once.

    >>> a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(a.weight, -1.0), nn.init.constant_(b.weight, 1.0)
    >>> data = torch.ones(1, 1), torch.zeros(1)
    >>> round(mode_connectivity(a, b, data, points=3).barrier, 6)  # a convex loss has none
    0.0
    """
    if points < 2:
        raise UsageError(f"points = {points}: give 2 or more, both ends included.")
    states = [dict(model.state_dict()) for model in (first, second)]
    shapes = [{name: tuple(value.shape) for name, value in state.items()} for state in states]
    if shapes[0] != shapes[1]:
        odd = sorted(set(shapes[0].items()) ^ set(shapes[1].items()))[0][0]
        raise UsageError(
            f"the networks are not of one shape: they differ in {odd!r}. Give two runs of one architecture."
        )
    distinct = _distinct(first, second, states)
    shares = torch.linspace(0, 1, points).tolist()
    losses, errors = [], []
    with observing(first), torch.no_grad():
        chunks = as_chunks(data, model=first, size=chunk)
        mean = mean_loss_of(first, chunks, loss)
        for t in shares:
            mixed = {
                name: torch.lerp(a, states[1][name].to(a), t) if a.is_floating_point() else a
                for name, a in states[0].items()
                if name in distinct
            }
            total, wrong = 0.0, 0.0
            for x, y in chunks:
                assert y is not None  # mean_loss has refused data without labels
                outputs = functional_call(first, mixed, (x,))
                total += float(mean(outputs, y)) * len(x)
                wrong += _num_wrong(outputs, y)
            losses.append(total / chunks.num_examples)
            errors.append(wrong / chunks.num_examples)
    return Connection(tuple(shares), tuple(losses), tuple(errors))


def connection_numbers(connection: Connection, names: Sequence[str]) -> dict[str, object]:
    """A connection as plain numbers for records and pages."""
    return {
        "barrier": connection.barrier,
        "mode_connectivity": {
            "between": list(names),
            "shares": list(connection.shares),
            "losses": list(connection.losses),
            "errors": [None if error != error else error for error in connection.errors],  # JSON has no NaN
        },
    }


def _distinct(first: nn.Module, second: nn.Module, states: Sequence[dict[str, Tensor]]) -> set[str]:
    """One name of every tensor of the networks; refused if they do not share the same ones between layers."""
    names = [{name for name, _ in (*m.named_parameters(), *m.named_buffers())} for m in (first, second)]
    if odd := sorted((names[0] ^ names[1]) & states[0].keys()):
        raise UsageError(
            f"{odd[0]!r} is shared between layers in one network and not in the other. Give two runs of one "
            "architecture."
        )
    return names[0]


def _num_wrong(outputs: Tensor, labels: Tensor) -> float:
    """How many examples are classified wrongly; NaN for floating targets."""
    if labels.is_floating_point():
        return math.nan
    is_binary = outputs[0].numel() == 1
    classes = (signs(labels, outputs.dtype) > 0).long() if is_binary else labels
    return float((predicted_classes(outputs) != classes).sum())
