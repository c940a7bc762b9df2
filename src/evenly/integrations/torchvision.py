"""Import this first where torchvision may be built for another torch: then `import torchvision` works all the same.

timm, Transformers and Lightning (by torchmetrics) import torchvision, whose import fails if its compiled operators do
not fit the torch at hand ("operator torchvision::nms does not exist"). Its models and transforms do not need them.
"""

import importlib
import sys
from types import ModuleType

import torch


def torchvision() -> ModuleType | None:
    """torchvision, with stubs for the operators its import asks for where they are missing; None if not installed."""
    try:
        return importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return None
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    stubs = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # torch's own
    for name in ("nms", "qnms"):
        signature = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        stubs.define(signature)  # type: ignore[no-untyped-call]  # torch's own
    module = importlib.import_module("torchvision")
    module.stubs = stubs  # type: ignore[attr-defined]  # the stubs live as long as the library object
    return module


torchvision()
