"""Forward and backward through all members, in pieces that stay in the processor's cache.

Eager on purpose: compiling a whole SAM step of 60 `disentangled` networks made it 1.5 times as fast and took half a
minute, which pays after some 15,000 steps; the papers' longest run has 6,000.

Shapes: K members, P parameters, N examples, C outputs, F features.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evenly.training.ensemble.feed import Batch
from evenly.training.ensemble.layers import Linear
from evenly.training.ensemble.layout import Layout, Views
from evenly.training.ensemble.losses import Loss, Terms
from evenly.training.ensemble.networks import Network

AT_ONCE = 2**17  # numbers in the widest layer of a piece


class Rows:
    """A K × P matrix, and its views by name for each range of members that is asked for: made once, then kept."""

    def __init__(self, layout: Layout, flat_KP: Tensor) -> None:
        self.layout, self.flat_KP = layout, flat_KP
        self._views: dict[tuple[int, int], Views] = {}

    def views(self, members: slice) -> Views:
        """The parameters of a range of members, by name."""
        key = (members.start, members.stop)
        if key not in self._views:
            self._views[key] = self.layout.views(self.flat_KP[members])
        return self._views[key]


class Body(NamedTuple):
    """A forward pass of the body: the features, and what its backward pass needs."""

    features: Tensor
    saved: Any


class Piece(NamedTuple):
    """Some members on some examples: the passes, one at a time."""

    network: Network
    loss: Loss
    members: slice
    p: Views
    g: Views
    batch: Batch
    terms: Terms | None = None

    def body(self) -> Body:
        """The features."""
        return Body(*self.network.features(self.p, self.batch.inputs))

    def slope(self, features_KNF: Tensor, p: Views) -> Tensor:
        """∂L/∂f for every example, with the head that is in `p`."""
        return self._slope(self.network.head.forward(p, features_KNF)[0])

    def head_gradient(self, features_KNF: Tensor, slope_KNC: Tensor) -> None:
        """Fill the head's part of `g`."""
        assert isinstance(self.network.head, Linear)
        self.network.head.backward(self.p, self.g, features_KNF, slope_KNC, first=True)

    def body_gradient(self, body: Body, d_KNF: Tensor) -> None:
        """Fill the body's part of `g`."""
        self.network.backward(self.p, self.g, body.saved, d_KNF)

    def gradient(self) -> None:
        """Fill `g`: one pass forward and one back."""
        head = self.network.head
        body = self.body()
        out_KNC, saved = head.forward(self.p, body.features)
        # The type of `saved` is the head's own.
        d_KNF = head.backward(self.p, self.g, saved, self._slope(out_KNC), first=False)  # type: ignore[arg-type]
        assert d_KNF is not None
        self.body_gradient(body, d_KNF)

    def _slope(self, out_KNC: Tensor) -> Tensor:
        slope_KNC = self.loss.slope(out_KNC, self.batch.targets)
        if self.terms is not None:
            self.terms.add_slope(slope_KNC, out_KNC, self.batch.targets)
        return slope_KNC.mul_(self.batch.share)


class Passes:
    """The passes of K members of one network under one loss."""

    def __init__(self, network: Network, loss: Loss, layout: Layout, terms: Terms | None = None) -> None:
        self.network, self.loss, self.layout, self.terms = network, loss, layout, terms
        self._scratch: Rows | None = None

    def rows(self, rows: slice) -> "Passes":
        """The passes of some of the members."""
        return self if self.terms is None else Passes(self.network, self.loss, self.layout, self.terms.of(rows))

    @property
    def head_names(self) -> list[str]:
        """The parameters of the head, its weight first."""
        head = self.network.head
        assert isinstance(head, Linear)
        return [head.weight] if head.bias is None else [head.weight, head.bias]

    def gradient(self, w: Rows, g: Rows, batch: Batch) -> None:
        """Leave in `g` the gradient of every member's loss on its batch, at the weights `w`."""
        num_members, num_examples = batch.inputs.shape[:2]
        for members in cuts(num_members, AT_ONCE // (self.network.width * num_examples)):
            own = _of_members(batch, members)
            size = AT_ONCE // (self.network.width * (members.stop - members.start))
            for examples in cuts(num_examples, size):
                into = g if examples.start == 0 else self._spare(num_members)
                part = own if examples.stop - examples.start == num_examples else _of_examples(own, examples)
                self._piece(members, w, into, part).gradient()
                if into is not g:
                    g.flat_KP[members] += into.flat_KP[members]

    def whole_batches(self, w: Rows, g: Rows, batch: Batch) -> Iterator[Piece]:
        """The members in pieces that hold their whole batch, for rules that need it all before they continue."""
        num_members, num_examples = batch.inputs.shape[:2]
        for members in cuts(num_members, AT_ONCE // (self.network.width * num_examples)):
            yield self._piece(members, w, g, _of_members(batch, members))

    def _piece(self, members: slice, w: Rows, g: Rows, batch: Batch) -> Piece:
        terms = None if self.terms is None else self.terms.of(members)
        return Piece(self.network, self.loss, members, w.views(members), g.views(members), batch, terms)

    def _spare(self, num: int) -> Rows:
        if self._scratch is None or len(self._scratch.flat_KP) < num:
            self._scratch = Rows(self.layout, self.layout.empty(num))
        return self._scratch


def cuts(num: int, size: int) -> list[slice]:
    """Ranges of at most `size`, at least one, that cover num.

    >>> cuts(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, min(size, num))
    return [slice(start, min(start + size, num)) for start in range(0, num, size)]


def _of_members(batch: Batch, members: slice) -> Batch:
    if members.stop - members.start == len(batch.inputs):
        return batch
    share = batch.share[members] if isinstance(batch.share, Tensor) else batch.share
    return Batch(batch.inputs[members], batch.targets[members], share)


def _of_examples(batch: Batch, examples: slice) -> Batch:
    share = batch.share[:, examples] if isinstance(batch.share, Tensor) else batch.share
    return Batch(batch.inputs[:, examples], batch.targets[:, examples], share)


def forward(network: Network, w: Rows, x_KN: Tensor, *, head: bool) -> Tensor:
    """The outputs, or the features where `head` is false, of every member: K × N × C or K × N × F."""
    num_members, num_examples = x_KN.shape[:2]
    rows = []
    for members in cuts(num_members, AT_ONCE // (network.width * num_examples)):
        size = AT_ONCE // (network.width * (members.stop - members.start))
        parts = []
        for examples in cuts(num_examples, size):
            p = w.views(members)
            features, _ = network.features(p, x_KN[members, examples])
            parts.append(network.head.forward(p, features)[0] if head else network.model_features(features))
        rows.append(torch.cat(parts, 1))
    return torch.cat(rows)
