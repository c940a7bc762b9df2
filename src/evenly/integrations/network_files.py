"""A trained network as a file for other programs: TorchScript, ONNX, or a folder as the Hugging Face Hub expects it.

Every file is read back and compared with the network before it stands under its name. TorchScript and ONNX networks
take float32 images in [0, 1] in the size of training, and normalise them themselves.
"""

import contextlib
import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evenly import atomic
from evenly.data.augment import Normalise
from evenly.errors import SetupError
from evenly.integrations.model_card import model_card
from evenly.training.prediction import CONFIG, WEIGHTS, TrainedRun

TOLERANCE = 1e-4  # of the largest output: another program sums in another order
_EXTRA = 'pip install "evenly[onnx]"'

CARD = "README.md"
HUB = frozenset({CONFIG, WEIGHTS, CARD})  # the files of a folder for the Hub


class Normalised(nn.Module):
    """A network with its normalisation in front: images in [0, 1] in, logits out."""

    def __init__(self, model: nn.Module, normalise: Normalise | None) -> None:
        super().__init__()
        self.model, self.normalise = model, normalise

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images in [0, 1]."""
        logits: Tensor = self.model(images if self.normalise is None else self.normalise(images))
        return logits


def write_torchscript(trained: TrainedRun, out: Path) -> float:
    """Write a TorchScript file, which `torch.jit.load` reads without evenly; return the largest difference seen."""
    model, images = _whole(trained), _samples(trained)
    with atomic.replacing_tree(out) as path, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises torch.export, whose files other programs read less widely
        torch.jit.save(torch.jit.trace(model, images, check_trace=False), str(path))  # type: ignore[no-untyped-call]  # torch's own
        loaded = torch.jit.load(str(path))  # type: ignore[no-untyped-call]  # torch's own
        return _difference(model, images, loaded(images), out)


def write_onnx(trained: TrainedRun, out: Path) -> float:
    """Write an ONNX file with a free number of images; return the largest difference seen (onnxruntime's or onnx's)."""
    for package in ("onnx", "onnxscript"):
        _require(package)
    model, images = _whole(trained), _samples(trained)
    with atomic.replacing_tree(out) as path, _quietly():
        torch.onnx.export(
            model,
            (images,),
            str(path),
            input_names=["images"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("N", min=1)},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        return _difference(model, images, torch.from_numpy(_run_onnx(path, images)), out)


def write_hub(trained: TrainedRun, out: Path) -> float:
    """Write a folder with weights, config and a model card; `evenly.load_run` reads it back. Nothing is uploaded."""
    from safetensors.torch import save_file

    from evenly.training.prediction import load_run

    classes = dict(enumerate(trained.classes))
    config = {
        "architectures": [trained.record.name],
        "num_classes": len(classes),
        "id2label": {str(number): name for number, name in classes.items()},
        "label2id": {name: number for number, name in classes.items()},
        "evenly": trained.record.to_mapping() | {"data": _without_path(trained)},
    }
    with atomic.replacing_tree(out) as folder:
        folder.mkdir()
        state = {
            name: tensor.detach().cpu().contiguous().clone() for name, tensor in trained.model.state_dict().items()
        }
        save_file(state, folder / WEIGHTS, metadata={"format": "pt"})
        (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        (folder / WEIGHTS).chmod((folder / CONFIG).stat().st_mode)  # safetensors lets nobody else read them
        (folder / CARD).write_text(model_card(trained))
        images = _samples(trained)
        read_back = load_run(folder)
        return _difference(_whole(trained), images, _whole(read_back)(images), out)


def _whole(trained: TrainedRun) -> nn.Module:
    return Normalised(trained.model.cpu().eval(), trained.preprocess.normalise).eval().requires_grad_(False)


def _samples(trained: TrainedRun) -> Tensor:
    draws = torch.Generator().manual_seed(0)
    return torch.rand((3, *trained.preprocess.model_shape), generator=draws)


def _difference(model: nn.Module, images: Tensor, outputs: Tensor, out: Path) -> float:
    with torch.no_grad():
        expected = model(images)
    difference = float((outputs.detach() - expected).abs().max())
    if not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):
        raise SetupError(
            f"{out} was not written: what was read back gives other outputs than the network (by {difference:.2g}). "
            "The network may do what this format cannot hold, such as a choice that depends on the input."
        )
    return difference


def _run_onnx(path: Path, images: Tensor) -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        reference = importlib.import_module("onnx.reference")
        return reference.ReferenceEvaluator(str(path)).run(None, {"images": images.numpy()})[0]
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"images": images.numpy()})[0]


def _require(package: str) -> None:
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise SetupError(f"--as onnx needs {package} ({error}). Install it: {_EXTRA}") from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """torch.onnx talks of its own workings through warnings and loggers."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _without_path(trained: TrainedRun) -> dict[str, Any]:
    """What is said of the data where a stranger reads it: not where they lay on this machine."""
    return {name: value for name, value in trained.record.data.items() if name != "path"}
