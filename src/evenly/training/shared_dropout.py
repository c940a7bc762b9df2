"""Dropout on many devices: every process draws the masks of the whole batch, and uses its share of them.

A run thus has the same masks for any number of processes, if all dropout is in `nn.Dropout` layers.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.dropout import _DropoutNd


class SharedDropout:
    """The dropout layers of a model that process `rank` of `size` trains on the examples rank, rank + size, ….

    >>> layer = nn.Dropout(0.5)
    >>> masked = []
    >>> for rank in (0, 1):
    ...     _ = torch.manual_seed(0)
    ...     with SharedDropout(layer, rank=rank, size=2).batch(share=2, whole=4):
    ...         masked.append(layer(torch.ones(2, 3)))
    >>> _ = torch.manual_seed(0)
    >>> torch.equal(torch.stack(masked, 1).flatten(0, 1), layer(torch.ones(4, 3)))
    True
    """

    def __init__(self, model: nn.Module, *, rank: int, size: int) -> None:
        self.layers = [m for m in model.modules() if type(m) is nn.Dropout and m.p > 0]
        self.rank, self.size = rank, size
        self.share = self.whole = 0

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Whether the model has dropout, all of a kind that drops single numbers.

        >>> SharedDropout.fits(nn.Sequential(nn.Dropout())), SharedDropout.fits(nn.Sequential(nn.Dropout2d()))
        (True, False)
        """
        layers = [m for m in model.modules() if isinstance(m, _DropoutNd) and m.p > 0]
        return bool(layers) and all(type(m) is nn.Dropout for m in layers)

    @contextlib.contextmanager
    def batch(self, *, share: int, whole: int) -> Iterator[None]:
        """Within the context, layers drop as in a single process with all `whole` examples."""
        self.share, self.whole = share, whole
        own = [layer.__dict__.get("forward") for layer in self.layers]
        for layer in self.layers:
            layer.__dict__["forward"] = partial(self._forward, layer, layer.forward)
        try:
            yield
        finally:
            for layer, before in zip(self.layers, own, strict=True):
                if before is None:
                    del layer.__dict__["forward"]
                else:
                    layer.__dict__["forward"] = before

    def _forward(self, layer: Any, plain: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        if not layer.training or not x.ndim:
            return plain(x)
        # A step may take its share in parts; the other processes then do the same.
        num = self.whole if len(x) == self.share else self.size * len(x)
        last = x.ndim == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if last else torch.contiguous_format
        ones = torch.ones((num, *x.shape[1:]), dtype=x.dtype, device=x.device).contiguous(memory_format=layout)
        return x * F.dropout(ones, layer.p, True)[self.rank :: self.size]
