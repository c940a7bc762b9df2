"""Augmentation: the transforms of a batch of images before the network sees them.

It is a pure function of (seed, epoch, index, copy): the same for any batch size, order, number of workers,
device and point of resuming. Two copies of one example are augmented differently, and the first is augmented in the
same way with or without a second. Images stay uint8 through every transform; the result is float32 in [0, 1],
normalised on request.

Shapes: N examples, C channels (or features of data that are not images).
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from evenly.data.crops import Mirror, PadCrop, RandomResizedCrop, Resize
from evenly.data.draws import Draws, Transform
from evenly.data.erasing import Erase
from evenly.data.labelled import Labelled, scale_pixels
from evenly.data.pixel_noise import PixelNoise
from evenly.data.trivial_augment import TrivialAugment
from evenly.device import upload
from evenly.errors import UsageError, did_you_mean

__all__ = [
    "Augmentation", "Draws", "Erase", "Mirror", "Normalise", "PadCrop", "PixelNoise", "RandomResizedCrop", "Resize",
    "Transform", "TrivialAugment",
]  # fmt: skip


@dataclass(frozen=True)
class Normalise:
    """(x − mean) / std for every channel of images in [0, 1], or every feature of other data.

    >>> Normalise((0.5,), (0.25,))(torch.tensor([[[[1.0, 0.5]]]])).flatten().tolist()
    [2.0, 0.0]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise UsageError(f"normalise: {len(self.mean)} means but {len(self.std)} standard deviations.")
        if not all(std > 0 for std in self.std):
            raise UsageError(f"normalise: standard deviations must be positive, not {self.std}.")

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised data, float as they came."""
        if x.ndim < 2 or x.shape[1] != len(self.mean):
            raise UsageError(f"normalise was made for {len(self.mean)} channels, not for data of shape {(*x.shape,)}.")
        shape = (1, -1) + (1,) * (x.ndim - 2)
        mean, std = (_constants(values, x.dtype, x.device).view(shape) for values in (self.mean, self.std))
        return (x - mean).div_(std)

    @classmethod
    def fit(cls, data: Labelled, *, kind: Literal["mean", "standard"] = "standard") -> "Normalise":
        """The channel means of `data`, and for `standard` the standard deviations, in two passes at float64.

        With kind `mean` data are only centred; so is a channel that is constant.

        >>> data = Labelled(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([0, 1]), ("a", "b"))
        >>> Normalise.fit(data)
        Normalise(mean=(2.0, 5.0), std=(1.0, 1.0))
        """
        if kind not in ("mean", "standard"):
            raise UsageError(f"normalise: unknown kind {kind!r}. {did_you_mean(kind, ['mean', 'standard'])}")
        if not len(data):
            raise UsageError(f"normalise: {data.name} {data.split} has no examples to take the mean of.")
        mean_C = _channel_means(data, lambda x: x)
        if kind == "mean":
            return cls(tuple(mean_C.tolist()), (1.0,) * len(mean_C))
        variance_C = _channel_means(data, lambda x: (x - mean_C).square())
        std_C = torch.where(variance_C > 0, variance_C.sqrt(), 1.0)
        return cls(tuple(mean_C.tolist()), tuple(std_C.tolist()))


@functools.lru_cache(maxsize=16)
def _constants(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers on the device, sent there once rather than with every batch."""
    return upload(torch.tensor(values, dtype=dtype), device)


def _channel_means(data: Labelled, what: Callable[[Tensor], Tensor], *, chunk: int = 1024) -> Tensor:
    total_C = torch.zeros(data.shape[0], dtype=torch.float64)
    values_per_example = 1
    for start in range(0, len(data), chunk):
        x = scale_pixels(data.gather(torch.arange(start, min(start + chunk, len(data))))).cpu().to(torch.float64)
        x_NPC = x.flatten(2).mT if x.ndim > 2 else x[:, None, :]
        total_C += what(x_NPC).sum((0, 1))
        values_per_example = x_NPC.shape[1]
    return total_C / (len(data) * values_per_example)


@dataclass(frozen=True, init=False)
class Augmentation:
    """Transforms in order, then float32 in [0, 1], then normalisation.

    >>> augment = Augmentation(PadCrop(1), Mirror())
    >>> x = torch.randint(0, 256, (3, 3, 8, 8), dtype=torch.uint8)
    >>> whole = augment(x, seed=0, epoch=2, index=torch.tensor([4, 5, 5]), copy=torch.tensor([0, 0, 1]))
    >>> torch.equal(whole[1:2], augment(x[1:2], seed=0, epoch=2, index=torch.tensor([5])))
    True
    """

    transforms: tuple[Transform, ...]
    normalise: Normalise | None

    def __init__(self, *transforms: Transform | Normalise) -> None:
        ends = [t for t in transforms if isinstance(t, Normalise)]
        if ends and (len(ends) > 1 or transforms[-1] is not ends[0]):
            raise UsageError("augmentation: normalise comes once, as the last transform; the others work on uint8.")
        steps = tuple(t for t in transforms if not isinstance(t, Normalise))
        if len({type(t) for t in steps}) < len(steps):
            # Both would draw the same numbers, and two mirrors would undo each other.
            raise UsageError(f"augmentation: each transform may be used only once, not {', '.join(map(repr, steps))}.")
        if sum(isinstance(t, Resize | RandomResizedCrop) for t in steps) > 1:
            raise UsageError("augmentation: resize and resized-crop both decide the size of images: give one of them.")
        object.__setattr__(self, "transforms", steps)
        object.__setattr__(self, "normalise", ends[0] if ends else None)

    def __call__(self, x: Tensor, *, seed: int, epoch: int, index: Tensor, copy: Tensor | None = None) -> Tensor:
        """The augmented examples as float32; `index` and `copy` say which ones they are (no `copy`: the first)."""
        return self.finish(self.transform(x, Draws(seed, epoch, index, copy)))

    def transform(self, x: Tensor, draws: Draws) -> Tensor:
        """The random transforms, on images as they are stored: uint8."""
        for transform in self.transforms:
            x = transform(x, draws)
        return x

    def finish(self, x: Tensor) -> Tensor:
        """The network's input: float32 in [0, 1], or normalised."""
        x = scale_pixels(x).to(torch.float32)
        return x if self.normalise is None else self.normalise(x)

    @property
    def evaluation(self) -> "Augmentation":
        """The part that is not random: resizing to the training size, and normalisation.

        >>> Augmentation(RandomResizedCrop(32), Mirror()).evaluation.transforms
        (Resize(size=32),)
        """
        kept = [t.for_evaluation() for t in self.transforms]
        end = [] if self.normalise is None else [self.normalise]
        return Augmentation(*(t for t in kept if t is not None), *end)

    @classmethod
    def parse(cls, spec: Sequence[str], *, data: Labelled | None = None) -> "Augmentation":
        """Build from words, as a recipe holds them; `data` is what `normalise:mean` and `normalise:standard` fit.

        >>> Augmentation.parse(["pad-crop:4", "mirror"]).transforms
        (PadCrop(padding=4), Mirror(probability=0.5))
        >>> Augmentation.parse(["miror"])
        Traceback (most recent call last):
        evenly.errors.UsageError: augmentation: unknown transform 'miror'. Did you mean 'mirror'?
        """
        if isinstance(spec, str):
            raise UsageError(f"augmentation: {spec!r} is one word: give a list of them, [{spec!r}].")
        return cls(*(_transform(word, data) for word in spec))


_FORMS: dict[str, tuple[str, Callable[..., Transform]]] = {
    "pad-crop": ("pad-crop[:PIXELS]", PadCrop),
    "mirror": ("mirror[:PROBABILITY]", Mirror),
    "resize": ("resize:SIZE or resize:HEIGHTxWIDTH", Resize),
    "resized-crop": (
        "resized-crop:SIZE[,LOW,HIGH], where LOW and HIGH bound the share of the area",
        lambda size, low=0.7, high=1.0, /: RandomResizedCrop(size, scale=(low, high)),
    ),
    "trivial": ("trivial[:BINS]", TrivialAugment),
    "noise": ("noise:SIGMA, in units of [0, 1]", PixelNoise),
    "erase": (
        "erase[:PROBABILITY[,LOW,HIGH[,VALUE]]], where LOW and HIGH bound the share of the area",
        lambda probability=0.5, low=0.02, high=0.33, value=0, /: Erase(probability, scale=(low, high), value=value),
    ),
}


def _transform(word: str, data: Labelled | None) -> Transform | Normalise:
    name, colon, rest = word.partition(":")
    if name == "normalise":
        kind = rest if colon else "standard"
        if data is None:
            raise UsageError(f"augmentation: {word!r} needs data to fit: Augmentation.parse(..., data=train).")
        return Normalise.fit(data, kind=kind)  # type: ignore[arg-type]  # fit refuses other words itself
    if name not in _FORMS:
        raise UsageError(f"augmentation: unknown transform {name!r}. {did_you_mean(name, [*_FORMS, 'normalise'])}")
    form, make = _FORMS[name]
    try:
        numbers = [_number(text) for text in rest.split(",")] if colon else []
        return make(*numbers)
    except UsageError:
        raise
    except (ValueError, TypeError):
        raise UsageError(f"augmentation: cannot read {word!r}. Write {form}.") from None


def _number(text: str) -> int | float | tuple[int, ...]:
    if "x" in text:
        return tuple(int(part) for part in text.split("x"))
    try:
        return int(text)
    except ValueError:
        return float(text)
