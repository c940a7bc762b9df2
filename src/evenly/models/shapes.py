"""The shapes of inputs that a model can take, and errors for those it cannot."""

from collections.abc import Sequence

from evenly.errors import UsageError


def shape_text(shape: Sequence[int]) -> str:
    """A shape as people write it.

    >>> shape_text((3, 32, 32)), shape_text(())
    ('3×32×32', 'a single number')
    """
    return "×".join(map(str, shape)) or "a single number"


def image(model: str, shape: tuple[int, ...], *, least: int = 1) -> tuple[int, int, int]:
    """Channels, height and width of images that `model` can take: at least `least` pixels on a side.

    >>> image("vgg19-bn", (3, 16, 16), least=32)
    Traceback (most recent call last):
    evenly.errors.UsageError: vgg19-bn takes images of channels×height×width with at least 32 pixels on a side, ...
    """
    if len(shape) != 3 or min(shape[1:]) < least:
        smallest = f" with at least {least} pixels on a side" if least > 1 else ""
        fix = (
            "Enlarge the images, or choose a model for small ones: preact-resnet18 or convnet."
            if len(shape) == 3
            else "For inputs of any shape choose mlp."
        )
        raise UsageError(
            f"{model} takes images of channels×height×width{smallest}, but the inputs are {shape_text(shape)}. {fix}"
        )
    channels, height, width = shape
    return channels, height, width


def vector(model: str, shape: tuple[int, ...]) -> int:
    """The dimension of vectors that `model` can take.

    >>> vector("relu2", (15,))
    15
    """
    if len(shape) != 1:
        raise UsageError(
            f"{model} takes vectors, inputs of a shape such as 15, but the inputs are {shape_text(shape)}. "
            "For inputs of any shape choose mlp."
        )
    return shape[0]


def binary(model: str, num_classes: int) -> None:
    """Refuse more than the two classes that a single logit can tell apart."""
    if num_classes != 2:
        raise UsageError(
            f"{model} has one logit and so tells 2 classes apart, but there are {num_classes}. "
            "For more classes choose mlp."
        )
