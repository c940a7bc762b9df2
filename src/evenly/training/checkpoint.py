"""One file that holds all a run needs to go on: tensors as safetensors, the rest as JSON in its header.

One file is replaced in one move: the old checkpoint is there until the new one is whole. Nothing is ever
unpickled, so that a stranger's run is safe to open.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenly import atomic
from evenly.errors import DataError

_MARK = "evenly checkpoint 1"


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write a tree of mappings, lists, scalars and tensors, whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "last.safetensors"
    >>> save(path, {"epoch": 3, "model": {"w": torch.ones(2)}, "seen": [1, None]})
    >>> load(path)
    {'epoch': 3, 'model': {'w': tensor([1., 1.])}, 'seen': [1, None]}
    """
    from safetensors.torch import save as serialised

    tensors: dict[str, Tensor] = {}
    skeleton = _taken_apart(state, "", tensors)
    # Clones: safetensors refuses tensors that share memory, as tied weights do.
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    content = serialised(flat, metadata={"format": _MARK, "state": json.dumps(skeleton)})
    with atomic.replacing(path) as file:
        file.write(content)


def load(path: Path, *, device: torch.device | str = "cpu") -> dict[str, Any]:
    """What `save` wrote; anything else is refused with the reason."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _MARK:
                raise DataError(f"{path} is not a checkpoint of evenly. Give one that a run wrote.")
            skeleton = json.loads(metadata["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping, and not iterable
            state: dict[str, Any] = _put_together(skeleton, tensors)
            return state
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(f"{path} is damaged or truncated ({error}). Remove it: the run then begins again.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write a state dict as plain safetensors, as other programs read it."""
    from safetensors.torch import save as serialised

    with atomic.replacing(path) as file:
        file.write(serialised({name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}))


def _taken_apart(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The value with every tensor replaced by its name; mappings keep integer keys, which JSON has not."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, Mapping):
        return {"map": [[key, _taken_apart(item, f"{path}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_taken_apart(item, f"{path}/{number}", tensors) for number, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold {path}, a {type(value).__name__}")


def _put_together(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "map" in value:
        return {key: _put_together(item, tensors) for key, item in value["map"]}
    return [_put_together(item, tensors) for item in value["list"]]
