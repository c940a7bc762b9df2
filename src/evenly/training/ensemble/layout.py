"""K networks of one shape as one matrix, a row each, and the network's own tensors as views of it.

Shapes: K members, P parameters of one member.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly.errors import UsageError

Views = dict[str, Tensor]


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a member lies in its row."""

    shapes: dict[str, torch.Size]
    dtype: torch.dtype
    device: torch.device

    @property
    def num_parameters(self) -> int:
        """The number of parameters, P."""
        return sum(shape.numel() for shape in self.shapes.values())

    def views(self, flat_KP: Tensor) -> Views:
        """Each parameter of all members, K × its shape: views, so that writing to them writes to the rows.

        >>> layout = layout_of([nn.Linear(2, 1)])
        >>> layout.views(torch.tensor([[1.0, 2.0, 3.0]]))
        {'weight': tensor([[[1., 2.]]]), 'bias': tensor([[3.]])}
        """
        parts = torch.split(flat_KP, [shape.numel() for shape in self.shapes.values()], dim=1)
        return {
            name: part.view(len(part), *shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def empty(self, num: int) -> Tensor:
        """An uninitialised num × P matrix."""
        return torch.empty(num, self.num_parameters, dtype=self.dtype, device=self.device)


def layout_of(models: Sequence[nn.Module]) -> Layout:
    """The layout that all of `models` share; an error names a member that differs."""
    if not models:
        raise UsageError("an ensemble needs at least one member: Ensemble([model, ...], data, lr=...)")
    for number, model in enumerate(models):
        if not isinstance(model, nn.Module):
            raise UsageError(f"member {number} is a {type(model).__name__}, not an nn.Module: give built models.")
    first = models[0]
    shapes = {name: p.shape for name, p in first.named_parameters()}
    if not shapes:
        raise UsageError(f"{type(first).__name__} has no parameters, so there is nothing to train.")
    kind = next(first.parameters())
    for number, model in enumerate(models):
        _check_parameters(number, model, shapes, kind)
        if repr(model) != repr(first):
            raise UsageError(
                f"member {number} is built differently from member 0:\n{model}\n{first}\n"
                "An ensemble trains networks of one shape; make one ensemble per shape."
            )
        _check_buffers(number, model, first)
        _check_passes(number, model)
    return Layout(shapes, kind.dtype, kind.device)


def stack_parameters(models: Sequence[nn.Module]) -> Tensor:
    """The parameters of every model as a row, copied.

    >>> stack_parameters([nn.Linear(2, 1), nn.Linear(2, 1)]).shape
    torch.Size([2, 3])
    """
    return torch.stack([torch.cat([p.detach().flatten() for p in model.parameters()]) for model in models])


def _check_parameters(number: int, model: nn.Module, shapes: dict[str, torch.Size], kind: Tensor) -> None:
    own = dict(model.named_parameters())
    for name in shapes | own:
        here = tuple(own[name].shape) if name in own else "absent"
        there = tuple(shapes[name]) if name in shapes else "absent"
        if here != there:
            raise UsageError(
                f"member {number} has another shape than member 0: {name} is {here}, not {there}. "
                "An ensemble trains networks of one shape; make one ensemble per shape."
            )
    for name, p in own.items():
        if (p.dtype, p.device) != (kind.dtype, kind.device):
            raise UsageError(
                f"member {number}: {name} is {p.dtype} on {p.device}, others {kind.dtype} on {kind.device}. "
                f"Bring all to one: model.to({str(kind.device)!r}, {kind.dtype})"
            )
        if not p.requires_grad:
            raise UsageError(
                f"member {number}: {name} is frozen, and an ensemble trains every parameter: "
                "model.requires_grad_(True), or leave frozen layers out of the model."
            )


def _check_buffers(number: int, model: nn.Module, first: nn.Module) -> None:
    theirs = dict(first.named_buffers())
    for name, buffer in model.named_buffers():
        if name not in theirs or not torch.equal(buffer, theirs[name]):
            raise UsageError(
                f"member {number}: the buffer {name} is not that of member 0, and the members of an ensemble share "
                "what they do not train: make it a parameter, or one ensemble per buffer."
            )


def _check_passes(number: int, model: nn.Module) -> None:
    """Refuse layers whose passes are random, depend on the other examples of a batch, or leave traces in the layer."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0:
            raise UsageError(
                f"member {number}: {name} is {module}, and the members of an ensemble draw no masks. "
                "Build the model with dropout=0."
            )
        # Passes are cut into pieces of a batch, each of which would have statistics of its own.
        is_frozen = not module.training and getattr(module, "track_running_stats", False)
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not is_frozen:
            raise UsageError(
                f"member {number}: {name} is {module}, and an ensemble keeps no statistics of batches. "
                "Use a model with LayerNorm or GroupNorm, or with running statistics that are frozen: model.eval()."
            )
