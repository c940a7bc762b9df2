"""The input format of a network: how image files, arrays and tensors become the inputs it was trained on.

Shapes: N examples, C channels, H × W pixels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor

from evenly.data.augment import Augmentation, Normalise
from evenly.data.channels import pixels_of
from evenly.data.crops import Resize
from evenly.data.draws import Draws
from evenly.data.formats.image_decoding import as_mode, decode
from evenly.data.labelled import Labelled, scale_pixels
from evenly.data.numpy_memory import as_tensor
from evenly.errors import DataError, UsageError


@dataclass(frozen=True)
class InputFormat:
    """The inputs of a trained network: their shape, and the resizing and normalisation of evaluation.

    Parameters
    ----------
    shape
        The shape of one input in the data: C×H×W of images.
    is_bytes
        Whether the data held bytes, which are scaled to [0, 1].
    resize
        Height and width that evaluation resizes to, where they differ from the data's.
    normalise
        The normalisation that training fitted.

    Examples
    --------
    >>> import numpy as np
    >>> inputs = InputFormat((3, 4, 4), is_bytes=True)
    >>> inputs(Image.new("RGB", (9, 7), "white")).shape, inputs(np.zeros((2, 4, 4, 3), np.uint8)).shape
    (torch.Size([3, 4, 4]), torch.Size([2, 3, 4, 4]))
    """

    shape: tuple[int, ...]
    is_bytes: bool = False
    resize: tuple[int, int] | None = None
    normalise: Normalise | None = None

    @classmethod
    def of(cls, data: Labelled, augment: Augmentation) -> "InputFormat":
        """The format that networks trained on `data` with this augmentation are evaluated in."""
        still = augment.evaluation
        size = next((t.size for t in still.transforms if isinstance(t, Resize)), None)
        resize = (size, size) if isinstance(size, int) else size
        return cls(data.shape, data.gather([0]).dtype == torch.uint8, resize, still.normalise)

    @property
    def model_shape(self) -> tuple[int, ...]:
        """The shape of one input as the network takes it."""
        return self.shape if self.resize is None else (self.shape[0], *self.resize)

    @property
    def is_image(self) -> bool:
        """Whether an input is a picture of one or three channels."""
        return len(self.shape) == 3 and self.shape[0] in (1, 3)

    def __call__(self, given: Any) -> Tensor:
        """One input as the network takes it, or a batch of them where several are given, in float32."""
        if isinstance(given, str | Path | Image.Image):
            return self.finish(self.image(given)[None])[0]
        if isinstance(given, Sequence):
            return torch.stack([self(one) for one in given]) if given else torch.empty((0, *self.model_shape))
        values = self._channels_first(_numbers(given))
        if values.ndim not in (len(self.shape), len(self.shape) + 1):
            raise UsageError(
                f"the inputs have shape {_words(values.shape)}: give one input of {_words(self.model_shape)}, or "
                "several with their number first."
            )
        single = values.ndim == len(self.shape)
        ready = self.finish(values[None] if single else values)
        return ready[0] if single else ready

    def image(self, source: str | Path | Image.Image) -> Tensor:
        """A picture as bytes C×H×W of the size of the data; a `DataError` that names a file which does not decode."""
        if not self.is_image:
            raise UsageError(
                f"this network takes inputs of shape {_words(self.shape)}, which are not images: give arrays "
                "or tensors."
            )
        mode: Literal["RGB", "L"] = "RGB" if self.shape[0] == 3 else "L"
        picture = _converted(source, mode) if isinstance(source, Image.Image) else decode(Path(source), mode)
        height, width = self.shape[1:]
        if picture.size != (width, height):
            picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        return pixels_of(picture)

    def finish(self, values: Tensor) -> Tensor:
        """A batch in the shape of the data as the network takes it: resized, scaled and normalised as in evaluation."""
        if values.dtype == torch.uint8 and self.resize is not None and tuple(values.shape[1:]) == self.shape:
            values = Resize(self.resize)(values, Draws(0, 0, torch.arange(len(values))))
        if tuple(values.shape[1:]) != self.model_shape:
            raise UsageError(
                f"the inputs have shape {_words(values.shape[1:])}, and the network takes {_words(self.model_shape)}. "
                "Resize them, or give image files, which are resized as in training."
            )
        if values.dtype != torch.uint8:
            values = values.to(torch.float32)
            self._check_values(values)
        ready = scale_pixels(values)
        return ready if self.normalise is None else self.normalise(ready)

    def record(self) -> dict[str, Any]:
        """Plain values that `from_record` takes."""
        normalise = self.normalise
        return {
            "shape": list(self.shape),
            "bytes": self.is_bytes,
            "resize": list(self.resize) if self.resize else None,
            "normalise": {"mean": list(normalise.mean), "std": list(normalise.std)} if normalise else None,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "InputFormat":
        """The format that `record` wrote down.

        >>> one = InputFormat((1, 8, 8), True, normalise=Normalise((0.5,), (0.25,)))
        >>> InputFormat.from_record(one.record()) == one
        True
        """
        try:
            resize, normalise = record.get("resize"), record.get("normalise")
            return cls(
                tuple(int(side) for side in record["shape"]),
                bool(record["bytes"]),
                (int(resize[0]), int(resize[1])) if resize else None,
                Normalise(tuple(normalise["mean"]), tuple(normalise["std"])) if normalise else None,
            )
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise DataError(f"the description of the inputs is damaged ({error!r}).") from error

    def _channels_first(self, values: Tensor) -> Tensor:
        """Pictures with their channels last, as arrays hold them, turned round."""
        if not self.is_image or values.ndim not in (3, 4):
            return values
        channels_last = values.shape[-1] == self.shape[0] and values.shape[-3] != self.shape[0]
        return values.movedim(-1, -3) if channels_last else values

    def _check_values(self, values: Tensor) -> None:
        if not bool(values.isfinite().all()):
            wrong = (~values.isfinite()).flatten(1).any(1).nonzero()
            raise DataError(f"input {int(wrong[0])} holds NaN or infinity ({len(wrong)} such inputs). Replace them.")
        if self.is_bytes and len(values) and not -0.01 <= float(values.min()) <= float(values.max()) <= 1.01:
            raise UsageError(
                f"the inputs range from {float(values.min()):g} to {float(values.max()):g}, and this network was "
                "trained on images scaled to [0, 1]: give bytes (uint8), or divide by 255."
            )


def _converted(picture: Image.Image, mode: Literal["RGB", "L"]) -> Image.Image:
    try:
        return as_mode(picture, mode)
    except DataError as error:
        raise DataError(f"the picture has {error}.") from error


def _numbers(given: Any) -> Tensor:
    try:
        return as_tensor(given)
    except (TypeError, ValueError, RuntimeError, LookupError) as error:
        raise UsageError(
            f"a {type(given).__name__} is not a valid input: give image files, a folder, PIL images, arrays or tensors."
        ) from error


def _words(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"
