"""Examples that look mislabelled: the network is sure that they belong to another class.

Shapes: N examples, K of one class, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.resampling.outputs import Array, checked


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows that look mislabelled, worst first: label, the class predicted, how surely, and the loss."""

    rows: Tensor
    labels: Tensor
    predicted: Tensor
    probability: Tensor
    losses: Tensor

    def __len__(self) -> int:
        return len(self.rows)


_NONE = torch.empty(0, dtype=torch.int64)
NOBODY = Suspects(_NONE, _NONE, _NONE, _NONE.float(), _NONE.float())


def suspects(
    logits: Array,
    labels: Array | Sequence[int],
    *,
    losses: Array | Sequence[float] | None = None,
    sure: float = 0.9,
    fence: float = 3.0,
) -> Suspects:
    """The examples predicted as another class with probability ≥ `sure`, with a loss far beyond that of their class.

    Far beyond is Tukey's outer fence (1977): above the third quartile of the class by more than `fence` times the
    distance between the quartiles. Both conditions are needed: a class the network has not yet learned is often taken
    for another, all of it; a hard example has a high loss, but nobody is sure of it. Early in training the network has
    not yet fitted wrong labels, which is what makes them show (Arpit et al., 2017).

    >>> z = torch.tensor([[5.0, 0.0], [4.0, 0.0], [4.5, 0.0], [5.5, 0.0], [0.0, 6.0], [0.0, 4.0], [0.0, 5.0]])
    >>> found = suspects(z, [0, 0, 0, 0, 0, 1, 1])
    >>> found.rows.tolist(), found.predicted.tolist()
    ([4], [1])
    """
    if not 0 < sure < 1 or fence < 0:
        raise UsageError(f"sure={sure}, fence={fence}: a probability between 0 and 1, and a multiple of 0 or more.")
    outputs = checked(logits, labels, losses=losses)
    parts: list[tuple[Tensor, ...]] = []
    for label, members_K in outputs.by_class():
        x_KD = outputs.read(members_K)
        loss_K = outputs.losses(x_KD, members_K, label)
        probability_K, predicted_K = outputs.probabilities(x_KD).cpu().max(dim=1)
        ordered_K = loss_K.sort().values
        low, high = ordered_K[(len(ordered_K) - 1) // 4], ordered_K[(3 * (len(ordered_K) - 1) + 3) // 4]
        beyond_K = loss_K > high + fence * (high - low)
        chosen_K = beyond_K & (predicted_K != label) & (probability_K >= sure)
        parts.append(tuple(v[chosen_K] for v in (members_K, predicted_K, probability_K, loss_K)))
    row, predicted, probability, loss = (torch.cat(column) for column in zip(*parts, strict=True))
    order = loss.argsort(descending=True)
    return Suspects(row[order], outputs.labels[row[order]], predicted[order], probability[order], loss[order].float())
