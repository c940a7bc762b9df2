"""A network in two parts: a body that makes features, and a linear head that reads them.

Everything that looks inside a network (probes, LSAM, feature rank, importance) uses these two names only, for any
architecture.
"""

from typing import Any, ClassVar

from torch import Tensor, nn


class Headed(nn.Module):
    """The base of evenly's models: `model(x)` is `model.head(model.features(x))`, by definition.

    `features(x)` is the penultimate representation, one row per example. `head` is the last layer, linear in the
    features; it has parameters wherever the architecture gives it some (`cubic` only sums). The output has one
    column per class, or, in the papers' binary models, a single logit that is positive for class 1.

    `published_names` are patterns and their replacements, for files with other parameter names than here.

    >>> from evenly.models import build
    >>> model = build("mlp", input_shape=(1, 8, 8), num_classes=10, rng=0)
    >>> model.head
    Linear(in_features=512, out_features=10, bias=True)
    """

    published_names: ClassVar[tuple[tuple[str, str], ...]] = ()

    features: Any  # a method or a submodule
    head: Any  # a layer, or a property that names one

    def forward(self, x: Tensor) -> Tensor:
        """The outputs, N × classes (or N × 1)."""
        out: Tensor = self.head(self.features(x))
        return out
