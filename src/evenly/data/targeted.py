"""Augmentation for some of the examples only.

Shapes: N examples, L inputs at once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.data.augment import Augmentation
from evenly.data.draws import Draws, as_words
from evenly.data.labelled import Labelled
from evenly.device import upload
from evenly.errors import UsageError


@dataclass(frozen=True, eq=False)
class Targeted:
    """Extra augmentation for the examples in `target_N`, after that for all; every copy is augmented differently.

    >>> only_second = Targeted(Augmentation.parse(["noise:0.5"]), torch.tensor([False, True]))
    >>> x = torch.full((2, 1, 2, 2), 128, dtype=torch.uint8)
    >>> out = only_second(x, torch.tensor([0, 1]), Draws(0, 0, torch.tensor([0, 1])))
    >>> (out != 128).flatten(1).any(1).tolist()
    [False, True]
    """

    augment: Augmentation
    target_N: Tensor

    def __call__(self, x_L: Tensor, position_L: Tensor, draws: Draws) -> Tensor:
        """The inputs at `position_L`, with only those of the target read and changed in place."""
        rows = self.target_N[position_L].nonzero()[:, 0]
        if not len(rows):
            return x_L
        there = upload(rows, x_L.device)
        changed = self.augment.transform(x_L.index_select(0, there), draws.rows(rows))
        if x_L.is_contiguous():
            as_words(x_L).index_copy_(0, there, as_words(changed))
            return x_L
        return x_L.index_copy_(0, there, changed)

    def check(self, data: Labelled, beside: Augmentation | None) -> None:
        """Refuse transforms that `data` cannot take after the augmentation `beside` it."""
        if self.target_N.dtype != torch.bool or self.target_N.shape != (len(data),):
            raise UsageError(
                f"targeted augmentation: the target is {self.target_N.dtype} of shape {tuple(self.target_N.shape)}: "
                f"give a boolean for each of the {len(data)} examples of {data.name} {data.split}."
            )
        if self.augment.normalise is not None:
            raise UsageError("targeted augmentation: normalisation is for all examples: leave it to `augment`.")
        twice = {type(t) for t in self.augment.transforms} & {type(t) for t in (beside.transforms if beside else ())}
        if twice:
            # Both would draw the same numbers: a second mirror would undo the first.
            names = ", ".join(sorted(kind.__name__ for kind in twice))
            raise UsageError(
                f"targeted augmentation: {names} is done to all examples already (`augment`): give it once."
            )
        if any(t.for_evaluation() is not None for t in self.augment.transforms):
            raise UsageError("targeted augmentation: resizing some examples of a batch only is not possible.")
