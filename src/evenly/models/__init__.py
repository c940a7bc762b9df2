"""Every network behind one call: `build(name, input_shape=…, num_classes=…, rng=…)` gives an `nn.Module`."""

from typing import TYPE_CHECKING

from evenly.lazy import attach

if TYPE_CHECKING:
    from evenly.models.catalogue import CATALOGUE as CATALOGUE
    from evenly.models.catalogue import build as build
    from evenly.models.catalogue import build_with as build_with
    from evenly.models.headed import Headed as Headed
    from evenly.models.trial import check as check
    from evenly.models.weights import load_weights as load_weights

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "CATALOGUE": "evenly.models.catalogue",
        "Headed": "evenly.models.headed",
        "build": "evenly.models.catalogue",
        "build_with": "evenly.models.catalogue",
        "check": "evenly.models.trial",
        "load_weights": "evenly.models.weights",
    },
)
