"""Checkpoints: one file with everything a run needs to resume, tensors as safetensors, the rest as JSON in its header.

The file is replaced atomically: the old checkpoint stays until the new one is complete. It is sealed with the identity
of its run and a checksum, so it is refused in another run's folder or if a single bit has changed. Nothing is ever
unpickled, so a stranger's run is safe to open.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError
from evenly.records import Run, seal
from evenly.typed.mappings import digest

_MARK = "evenly checkpoint 2"
_CONTENTS = "contents"
_BEGIN_AGAIN = "Remove it: the same command then begins the run again."
#: The names of torch's types in safetensors files.
_KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TRAIN_AGAIN = "Remove the folder of the run and train it again."


def save(run: Run, name: str, state: Mapping[str, Any]) -> None:
    """Write a tree of mappings, lists, scalars and tensors into the run's folder, whole or not at all.

    >>> import tempfile
    >>> run = Run.create(tempfile.mkdtemp(), {}, "c0ffee")
    >>> save(run, "checkpoints/last.safetensors", {"epoch": 3, "model": {"w": torch.ones(2)}, "seen": [1, None]})
    >>> load(run, "checkpoints/last.safetensors")
    {'epoch': 3, 'model': {'w': tensor([1., 1.])}, 'seen': [1, None]}
    """
    tensors: dict[str, Tensor] = {}
    skeleton = _flatten(state, "", tensors)
    _write(run, name, tensors, format=_MARK, state=json.dumps(skeleton))


def load(run: Run, name: str, *, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read what `save` wrote for this run; refuse anything else, with the reason."""
    from safetensors import SafetensorError, safe_open

    path = run.path / name
    metadata = seal.check(path, run=_key(run), remedy=_BEGIN_AGAIN)
    if metadata.get("format") != _MARK:
        raise DataError(f"{path} is not a checkpoint of this version of evenly. {_BEGIN_AGAIN}")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            skeleton = json.loads(metadata["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping, and not iterable
            state = _rebuild(skeleton, tensors)
    except (SafetensorError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({error}). {_BEGIN_AGAIN}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    if not isinstance(state, dict):
        raise DataError(f"{path} is damaged (it holds no state of training). {_BEGIN_AGAIN}")
    return state


def kept_weights(epoch: int) -> str:
    """The file, in a run's folder, of the weights that are kept after an epoch.

    >>> kept_weights(1)
    'checkpoints/epoch-0001.safetensors'
    """
    return f"checkpoints/epoch-{epoch:04d}.safetensors"


def save_weights(run: Run, name: str, weights: Mapping[str, Tensor]) -> None:
    """Write a state dict as safetensors that any program reads."""
    _write(run, name, weights, format="pt")


def load_weights(run: Run, name: str) -> dict[str, Tensor]:
    """Read what `save_weights` wrote for this run; files of evenly 0.1 have no seal and are read without that check.

    >>> import tempfile
    >>> run = Run.create(tempfile.mkdtemp(), {}, "c0ffee")
    >>> save_weights(run, "weights.safetensors", {"w": torch.ones(2)})
    >>> load_weights(run, "weights.safetensors")
    {'w': tensor([1., 1.])}
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = run.path / name
    seal.check(path, run=_key(run), remedy=_TRAIN_AGAIN)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path} is damaged ({error}). {_TRAIN_AGAIN}") from error


def with_contents(state: dict[str, Any]) -> dict[str, Any]:
    """The state, with a digest of every name, number and tensor shape in it.

    >>> refuse_incomplete(Path("x"), with_contents({"epoch": 1}))
    """
    return {**state, _CONTENTS: _contents(state)}


def refuse_incomplete(path: Path, state: Mapping[str, Any]) -> None:
    """Raise unless the state matches the digest of `with_contents`: nothing is missing, nothing replaced."""
    rest = {name: value for name, value in state.items() if name != _CONTENTS}
    if state.get(_CONTENTS) != _contents(rest):
        raise DataError(f"{path} does not hold what it was saved with: content is missing or changed. {_BEGIN_AGAIN}")


def check_place(state: Mapping[str, Any], *, epochs: int, steps: int, sums: Tensor) -> None:
    """Raise a ValueError unless the state's epoch, batch and step are consistent."""
    epoch, batch, step = state["epoch"], state["batch"], state["step"]
    if step != epoch * steps + batch or not (0 <= epoch <= epochs and 0 <= batch <= steps):
        raise ValueError(f"step {step} is not batch {batch} of epoch {epoch}")
    if state["lines"] != epoch or state["sums"].shape != sums.shape:
        raise ValueError(f"its metrics are not those of epoch {epoch}")


def misfit_error(path: Path, error: Exception) -> DataError:
    """The error for a checkpoint whose content does not fit the run."""
    return DataError(f"{path} does not fit its run ({type(error).__name__}: {error}). {_BEGIN_AGAIN}")


def _contents(state: Mapping[str, Any]) -> str:
    tensors: dict[str, Tensor] = {}
    skeleton = _flatten(state, "", tensors)
    return digest([skeleton, {name: [list(tensor.shape), str(tensor.dtype)] for name, tensor in tensors.items()}])


def _key(run: Run) -> str | None:
    """The key that seals the run's files: its identity, whatever its folder is called now."""
    return str(run.identity["id"]) if run.identity is not None else None


def _write(run: Run, name: str, tensors: Mapping[str, Tensor], **said: str) -> None:
    """Write a sealed file, tensor by tensor: large models have no room for a second copy of all they are."""
    # Larger numbers first, as safetensors does it: then every number stands at a multiple of its size.
    ordered = dict(sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])))
    shapes = {name: (_kind(name, t), list(t.shape), t.numel() * t.itemsize) for name, t in ordered.items()}
    with run.replacing(name) as file:
        seal.write(file, shapes, map(_bytes, ordered.values()), **seal.metadata(_key(run) or run.id, **said))


def _kind(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _KINDS:
        raise UsageError(f"{name} holds numbers of type {tensor.dtype}, which safetensors files cannot hold.")
    return _KINDS[tensor.dtype]


def _bytes(tensor: Tensor) -> Any:
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def _flatten(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The value with every tensor replaced by its name; mappings keep integer keys, which JSON lacks."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, Mapping):
        return {"map": [[key, _flatten(item, f"{path}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_flatten(item, f"{path}/{number}", tensors) for number, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold {path}, a {type(value).__name__}")


def _rebuild(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "map" in value:
        return {key: _rebuild(item, tensors) for key, item in value["map"]}
    return [_rebuild(item, tensors) for item in value["list"]]
