"""Weights from a file, for fine-tuning: names and shapes must match, except for a head with other classes."""

import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evenly.errors import DataError, UsageError
from evenly.models.headed import Headed
from evenly.models.shapes import shape_text
from evenly.records import seal

WRAPPERS = ("state_dict", "model")


def load_weights(model: nn.Module, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Fill `model` from a `.safetensors` file or from a state dict that `torch.save` wrote; never runs its pickle.

    Every name and shape must be the model's, or nothing is loaded and the error lists what differs. One exception:
    a head with another number of classes keeps its own weights. Returns the names of those parameters.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.pth"
    >>> torch.save(nn.Linear(4, 1000).state_dict(), path)
    >>> load_weights(nn.Linear(4, 10), path), load_weights(nn.Linear(4, 1000), path)
    (('weight', 'bias'), ())
    """
    return fill(model, read(Path(path)), source=path)


def fill(model: nn.Module, held: Mapping[str, Any], *, source: str | os.PathLike[str]) -> tuple[str, ...]:
    """`load_weights` from tensors in memory; errors name `source`."""
    own = model.state_dict()
    given = _rename(_unwrap(held, source), model, own)
    left = _other_classes(model, own, given)
    for name in left:
        del given[name]
    _refuse_misfit(type(model).__name__, source, {name: own[name] for name in own if name not in left}, given)
    model.load_state_dict(given, strict=False)
    return left


def read(path: Path) -> Mapping[str, Any]:
    """The content of a weights file, on the CPU."""
    if not path.is_file():
        raise DataError(f"there is no weights file {path}. Give a .safetensors file or a state dict (.pth, .pt).")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            seal.check(path, run=None, remedy="Fetch or save it again.")
            return load_file(path)
        held = torch.load(path, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path} is damaged, or holds more than tensors and was not opened, because that could run code. "
            "Save it again with torch.save(model.state_dict(), …) or as .safetensors."
        ) from error
    except Exception as error:  # the bytes choose what goes wrong
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot be read as weights: {reason}. Fetch or save it again.") from error
    if not isinstance(held, Mapping):
        raise DataError(f"{path} holds a {type(held).__name__}, not a state dict. Save model.state_dict().")
    return held


def _unwrap(held: Mapping[str, Any], source: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The state dict itself, out of a checkpoint that holds it beside other things or under DDP's names."""
    for wrapper in WRAPPERS:
        if isinstance(held.get(wrapper), Mapping):
            held = held[wrapper]
    odd = [str(name) for name, value in held.items() if not isinstance(value, Tensor)]
    if odd or not held:
        content = f"{_list_names(odd)} that are not tensors" if odd else "nothing"
        raise DataError(f"{source} holds {content}, not a state dict. Save model.state_dict().")
    prefix = "module." if all(name.startswith("module.") for name in held) else ""
    return {name.removeprefix(prefix): value for name, value in held.items()}


def _rename(given: dict[str, Tensor], model: nn.Module, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The file's tensors under the model's own parameter names."""
    patterns = model.published_names if isinstance(model, Headed) else ()
    named = {}
    for name, value in given.items():
        for pattern, replacement in patterns:
            if name not in own:
                name = re.sub(pattern, replacement, name)
        named[name] = value
    return named


def _other_classes(model: nn.Module, own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The names of the head if the file's head differs in the number of classes and in nothing else."""
    name = head_name(model)
    if name is None:
        return ()
    prefix = f"{name}." if name else ""
    head = [key for key in own if key.startswith(prefix) and "." not in key.removeprefix(prefix)]
    if any(key not in given or own[key].shape[1:] != given[key].shape[1:] for key in head):
        return ()
    differs = any(own[key].shape != given[key].shape for key in head)
    return tuple(head) if differs else ()


def head_name(model: nn.Module) -> str | None:
    """The name of the last layer: `head` where there is one, else the linear layer that was registered last.

    >>> from evenly.models import build
    >>> head_name(build("resnet18", input_shape=(3, 64, 64), num_classes=2, rng=0))
    'fc'
    """
    linear = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if isinstance(model, Headed):
        return next((name for name, module in linear if module is model.head), None)
    return linear[-1][0] if linear else None


def _refuse_misfit(
    model: str, source: str | os.PathLike[str], own: Mapping[str, Tensor], given: Mapping[str, Tensor]
) -> None:
    # Files older than torch 0.4.1 lack BatchNorm's counter, which only momentum=None uses: torch fills in 0.
    missing = [name for name in own if name not in given and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in given if name not in own]
    misshapen = [
        f"{name} ({shape_text(given[name].shape)} in the file, {shape_text(own[name].shape)} in the model)"
        for name in own
        if name in given and own[name].shape != given[name].shape
    ]
    lines = [
        f"{label}: {_list_names(names)}."
        for label, names in (("Missing", missing), ("Unexpected", unexpected), ("Of another shape", misshapen))
        if names
    ]
    if lines:
        raise UsageError(
            f"the weights in {source} are not those of this {model}; nothing was loaded. {' '.join(lines)} "
            "Give the file of this architecture, or build the model with the options it was saved with."
        )


def _list_names(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
