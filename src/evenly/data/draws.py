"""The random numbers of a batch, and the interface of its transforms.

Shapes: N images, C channels, H × W pixels.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from evenly import rng
from evenly.device import upload
from evenly.errors import UsageError

_COPY_BIT = 40  # a counter is index + copy · 2⁴⁰: room for 10¹² examples and 8 million copies of each


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a batch: a pure function of (seed, epoch, index, copy) and the transform's name.

    They are drawn on the CPU, whatever the device of the images, so that every device sees the same numbers and
    grouping images by them never waits for a GPU.

    >>> one, many = Draws(0, 3, torch.tensor([7])), Draws(0, 3, torch.tensor([5, 7]), torch.tensor([1, 0]))
    >>> torch.equal(one.uniform("mirror", 1)[0], many.uniform("mirror", 1)[1])
    True
    """

    seed: int
    epoch: int
    index_N: Tensor
    copy_N: Tensor | None = None
    _rows: tuple[int, int | None] = (0, None)
    _drawn: dict[tuple[str, int], Tensor] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.index_N[slice(*self._rows)])

    def uniform(self, name: str, num: int) -> Tensor:
        """`num` numbers in [0, 1) per image for the transform `name`, as an N × num tensor."""
        if (name, num) not in self._drawn:
            self._drawn[name, num] = rng.uniform(self._stream(name), self._counters(), num)
        return self._drawn[name, num][slice(*self._rows)]

    def words(self, name: str, num: int, *, device: torch.device | str = "cpu") -> Tensor:
        """`num` random 64-bit words per image, N × num: for transforms that need a number per pixel.

        They are not cached, since they are many, and are computed on the device: whole numbers are exact everywhere.
        """
        return rng.random_words(self._stream(name), upload(self._counters()[slice(*self._rows)], device), num)

    def rows(self, rows: Tensor) -> "Draws":
        """The numbers of the images at `rows`, drawn for these alone.

        >>> whole = Draws(0, 3, torch.arange(10))
        >>> torch.equal(whole.rows(torch.tensor([7])).uniform("erase", 2)[0], whole.uniform("erase", 2)[7])
        True
        """
        index_N, copy_N = self.index_N[slice(*self._rows)], self.copy_N
        chosen = None if copy_N is None else copy_N[slice(*self._rows)][rows]
        return Draws(self.seed, self.epoch, index_N[rows], chosen)

    def _stream(self, name: str) -> int:
        return rng.key(self.seed, "augment", self.epoch, name)

    def _counters(self) -> Tensor:
        counters_N = self.index_N.to("cpu", torch.int64)
        return counters_N if self.copy_N is None else counters_N + (self.copy_N.to("cpu", torch.int64) << _COPY_BIT)

    def part(self, start: int, stop: int) -> "Draws":
        """The numbers of some of the images; they are drawn for all images at once, on first use.

        >>> whole = Draws(0, 3, torch.arange(10))
        >>> torch.equal(whole.part(4, 6).uniform("mirror", 1), Draws(0, 3, torch.tensor([4, 5])).uniform("mirror", 1))
        True
        """
        return replace(self, _rows=(start, stop))


def as_words(x_N: Tensor) -> Tensor:
    """Inputs as rows of 64-bit words where their size allows it: copying rows by element is then eight times faster.

    >>> as_words(torch.zeros(2, 1, 4, 4, dtype=torch.uint8)).shape
    torch.Size([2, 2])
    """
    rows = x_N.flatten(1)
    return rows.view(torch.int64) if rows.shape[1] * rows.element_size() % 8 == 0 else rows


class Transform(Protocol):
    """A transform of a batch of uint8 images, with random numbers for each."""

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """The transformed images, uint8 as they came."""

    def for_evaluation(self) -> "Transform | None":
        """Its deterministic counterpart for evaluation; None if there is none."""


def check_images(x: Tensor, who: str) -> None:
    """Refuse anything that is not uint8 N×C×H×W.

    >>> check_images(torch.zeros(2, 3), "mirror")
    Traceback (most recent call last):
    evenly.errors.UsageError: mirror works on uint8 images N×C×H×W, not on float32 of shape (2, 3). Leave it out ...
    """
    if x.dtype != torch.uint8 or x.ndim != 4:
        kind = str(x.dtype).removeprefix("torch.")
        raise UsageError(
            f"{who} works on uint8 images N×C×H×W, not on {kind} of shape {tuple(x.shape)}. "
            "Leave it out of the augmentation for data of this kind."
        )


def whole_below(u: Tensor, num: int | Tensor) -> Tensor:
    """Uniform whole numbers in 0..num−1 from uniform `u` in [0, 1).

    Exact for num ≤ 2²⁴: u ≤ 1 − 2⁻²⁴, and num·u then never rounds up to num.

    >>> whole_below(torch.tensor([0.0, 0.5, 1 - 2**-24]), 9).tolist()
    [0, 4, 8]
    """
    return (u * num).to(torch.int64)
