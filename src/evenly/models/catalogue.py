"""Every model by name: its description, its maker, and `build`, which builds any of them.

This module is free of torch until something is built.
"""

import inspect
import logging
import math
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenly.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import torch
    from torch import nn

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue: a one-line description, the class or function that makes it, and its size."""

    name: str
    summary: str
    maker: str
    parameters: str = ""

    def options(self) -> Mapping[str, inspect.Parameter]:
        """The model's options, with defaults."""
        from evenly.models.options import options_of

        return options_of(self.function())

    def function(self) -> Any:
        """The class or function that makes it."""
        module, name = self.maker.split(":")
        return getattr(import_module(f"evenly.models.{module}"), name)


_ENTRIES = (
    Entry(
        "mlp",
        "perceptron, 3 layers, 512 wide, dropout 0.1 (Nguyen et al.); inputs of any shape",
        "mlp:MLP",
        "1,841,162 for 3×32×32, 10 classes",
    ),
    Entry(
        "cubic",
        "two layers over patches, σ(z) = z³ (Nguyen et al., eq. 1; Deng et al.)",
        "cubic:Cubic",
        "2,040 for 3×50",
    ),
    Entry(
        "disentangled",
        "one Φ for an easy and a hard feature (Springer et al.)",
        "disentangled:Disentangled",
        "11,103 for 4",
    ),
    Entry("relu2", "W₂·ReLU(W₁x + b), one output (Chang & Khanna)", "relu2:ReLU2", "5,100 for 100"),
    Entry("convnet", "three convolutions (Springer et al.)", "convnet:ConvNet", "102,978 for 3×64×32, 2 classes"),
    Entry(
        "airbench",
        "small and quick on natural images: fixed first filters, six convolutions (Jordan, 2024)",
        "airbench:Airbench",
        "497,816 for 3×32×32, 10 classes",
    ),
    Entry(
        "preact-resnet18",
        "PreAct ResNet-18 for small images",
        "preact_resnet:preact_resnet18",
        "11,172,170 for 10 classes",
    ),
    Entry(
        "preact-resnet34",
        "PreAct ResNet-34 for small images",
        "preact_resnet:preact_resnet34",
        "21,326,500 for 100 classes",
    ),
    Entry(
        "vgg19-bn",
        "VGG-19 with BatchNorm, official or light classifier",
        "vgg:VGG19",
        "139,622,218, or 20,040,522 light, for 10 classes",
    ),
    Entry("densenet121", "DenseNet-121, torchvision's layout", "densenet:DenseNet121", "7,978,856 for 1000 classes"),
    Entry(
        "vit-s",
        "vision transformer, 768 wide, 8 deep, patches of 4 (Nguyen et al.)",
        "vit:ViT",
        "41,048,938 for 3×32×32, 10 classes",
    ),
    Entry("resnet18", "ResNet-18, torchvision's layout and names", "resnet:resnet18", "11,689,512 for 1000 classes"),
    Entry("resnet50", "ResNet-50, torchvision's layout and names", "resnet:resnet50", "25,557,032 for 1000 classes"),
)
CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def entry(name: str) -> Entry:
    """The catalogue's entry of that name.

    >>> entry("preact_resnet18")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no model 'preact_resnet18'. Did you mean 'preact-resnet18' or ...
    """
    if name not in CATALOGUE:
        raise UsageError(
            f"there is no model {name!r}. {did_you_mean(name, CATALOGUE)} "
            "Other models are given as timm:NAME, torchvision:NAME or, your own, as module:function."
        )
    return CATALOGUE[name]


def build(
    name: str,
    *,
    input_shape: Sequence[int],
    num_classes: int,
    rng: "torch.Generator | int",
    weights: str | os.PathLike[str] | None = None,
    **options: Any,
) -> "nn.Module":
    """Build the model of that name for these inputs and classes, with first weights drawn from `rng` alone.

    Parameters
    ----------
    name
        A name of the catalogue; or `timm:NAME`, `torchvision:NAME`; or `module:function` of your own, which is
        called with `input_shape` and `num_classes`, as far as it asks for them, and with the options.
    input_shape
        The shape of one input, such as (3, 32, 32).
    num_classes
        How many classes there are to tell apart.
    rng
        The source of the initial weights: a generator, from which one number is drawn, or a key. The
        global generator is restored afterwards. (Of a function of your own, this covers draws from torch.)
    weights
        A file of weights to start from, for fine-tuning: a `.safetensors` file or a state dict that `torch.save`
        wrote. The head stays freshly drawn if the file's has another number of classes, and only then.
    options
        Options of the model itself, such as `width=256` for `mlp`.

    Examples
    --------
    >>> model = build("mlp", input_shape=(1, 8, 8), num_classes=10, rng=0, width=256)
    >>> model.head
    Linear(in_features=256, out_features=10, bias=True)
    >>> build("mlp", input_shape=(1, 8, 8), num_classes=10, rng=0, widht=256)
    Traceback (most recent call last):
    evenly.errors.UsageError: mlp has no option 'widht'. Did you mean 'width'?
    """
    return build_with(options, name, input_shape=input_shape, num_classes=num_classes, rng=rng, weights=weights)


def build_with(
    options: Mapping[str, Any],
    name: str,
    *,
    input_shape: Sequence[int],
    num_classes: int,
    rng: "torch.Generator | int",
    weights: str | os.PathLike[str] | None = None,
) -> "nn.Module":
    """`build` with the model's options as a mapping, so that they may be called what `build`'s own arguments are.

    >>> build_with({"width": 256}, "mlp", input_shape=(1, 8, 8), num_classes=10, rng=0).head
    Linear(in_features=256, out_features=10, bias=True)
    """
    shape = _shape(input_shape)
    if not _is_count(num_classes) or num_classes < 2:
        raise UsageError(f"num_classes: expected a whole number of at least 2, not {num_classes!r}.")
    from evenly.models.seeding import seeding

    make = _build_foreign if ":" in name else _build_own
    with seeding(rng):
        model = make(name, shape, int(num_classes), options)
    if weights is not None:
        from evenly.models.weights import load_weights

        if left := load_weights(model, weights):
            _log.info(
                "the last layer of %s (%s) starts anew: that in %s is for another number of classes.",
                name,
                ", ".join(left),
                weights,
            )
    return model


def _build_own(name: str, shape: tuple[int, ...], num_classes: int, options: Mapping[str, Any]) -> "nn.Module":
    from evenly.models.options import check_options

    known = entry(name)
    maker = known.function()
    checked = check_options(name, maker, options)

    def make() -> "nn.Module":
        model: nn.Module = maker(shape, num_classes, **checked)
        return model

    # A network of about the usual size is built directly; only a much larger one is measured first.
    usual = known.options()
    is_large = any(isinstance(value, int) and value > 16 * usual[option].default for option, value in checked.items())
    if is_large or math.prod(shape) * num_classes > _LARGE:
        given = [f"{option}={value}" for option, value in checked.items()]
        _require_memory(f"{name} for {'×'.join(map(str, shape))} and {num_classes} classes", given, make)
    return make()


_LARGE = 1000 * 3 * 224 * 224  # numbers of an input, times classes: an MLP has more parameters than these


def _require_memory(name: str, options: Sequence[str], make: "Callable[[], nn.Module]") -> None:
    """Raise where a network is larger than the memory that is free; on the meta device it takes none."""
    import torch

    from evenly import memory

    try:
        with torch.device("meta"):
            model = make()
        needed = sum(each.numel() * each.element_size() for each in (*model.parameters(), *model.buffers()))
    except (RuntimeError, TypeError):  # more than the largest number of bytes there is
        needed = 1 << 63
    left = memory.budget("cpu")
    if needed > left:
        raise UsageError(
            f"{name}{' with ' * bool(options)}{', '.join(options)} has {needed / 1e9:,.0f} GB of parameters, and "
            f"{left / 1e9:,.0f} GB are free for them. Give smaller options or inputs."
        )


def _build_foreign(name: str, shape: tuple[int, ...], num_classes: int, options: Mapping[str, Any]) -> "nn.Module":
    from evenly.models.foreign import foreign
    from evenly.models.trial import check

    model = foreign(name, shape, num_classes, options)
    # Our own models check their inputs when they are built; others need a trial run.
    check(model, shape, num_classes, name=name)
    return model


def _shape(shape: Any) -> tuple[int, ...]:
    sides = tuple(shape) if isinstance(shape, list | tuple) else ()
    if not sides or not all(map(_is_count, sides)):
        raise UsageError(
            f"input_shape: expected the shape of one input, such as (3, 32, 32), not {shape!r}. "
            "It has no place for the number of examples."
        )
    return tuple(map(int, sides))


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and value is not True and int(value) >= 1
