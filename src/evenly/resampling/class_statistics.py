"""Statistics of the two parts of each class: sizes, losses, means, and how distinct they are.

Shapes: N examples, B classes, K examples of the largest of them, D outputs.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from evenly.resampling.kmeans import inertias, means
from evenly.resampling.separation import ClassSplit
from evenly.resampling.silhouette import silhouettes


def splits_by_loss(hard_N: Tensor, label_N: Tensor, loss_N: Tensor) -> tuple[ClassSplit, ...]:
    """The split of every class that has an example, without its outputs.

    >>> splits = splits_by_loss(torch.tensor([True, False, False]), torch.tensor([0, 0, 2]), torch.tensor([3.0, 1, 5]))
    >>> [(split.label, split.num_easy, split.num_hard, split.loss_easy) for split in splits]
    [(0, 1, 1, 1.0), (2, 1, 0, 5.0)]
    """
    num_C = label_N.bincount()
    num_hard_C = label_N[hard_N].bincount(minlength=len(num_C))
    num_C2 = torch.stack([num_C - num_hard_C, num_hard_C], dim=1)
    total_C2 = torch.stack(
        [label_N[part].bincount(loss_N[part].double(), minlength=len(num_C)) for part in (~hard_N, hard_N)], dim=1
    )
    labels = num_C.nonzero().flatten()
    return tuple(
        ClassSplit(label, easy, hard, loss_easy, loss_hard, math.nan, math.nan, torch.empty(0), torch.empty(0))
        for label, (easy, hard), (loss_easy, loss_hard) in zip(
            labels.tolist(), num_C2[labels].tolist(), (total_C2 / num_C2)[labels].tolist(), strict=True
        )
    )


def splits_by_outputs(
    labels: Sequence[int],
    hard_BK: Tensor,
    easy_BK: Tensor,
    loss_BK: Tensor,
    x_BKD: Tensor,
    center_BD: Tensor,
    *,
    sample: int,
    rng: torch.Generator | None,
) -> list[ClassSplit]:
    """The splits of some classes with their outputs, from which `center_BD` has been subtracted.

    Smaller classes are padded: a row that is neither hard nor easy is no example. The silhouette is estimated from
    `sample` points, and left out if that is 0.
    """
    num = zip(easy_BK.sum(dim=1).tolist(), hard_BK.sum(dim=1).tolist(), strict=True)
    losses = means(loss_BK[..., None], easy_BK.to(loss_BK.device), hard_BK.to(loss_BK.device))[..., 0].tolist()
    mean_B2D = means(x_BKD, easy_BK, hard_BK)
    full_B2D = (mean_B2D + center_BD[:, None]).to("cpu", torch.float32)
    inertia_B = inertias(x_BKD, easy_BK, mean_B2D, easy_BK | hard_BK).tolist()
    silhouette_B = [math.nan] * len(labels)
    if sample:
        silhouette_B = silhouettes(x_BKD, hard_BK, easy_BK, sample=sample, rng=rng).tolist()
    return [
        ClassSplit(label, easy, hard, loss_easy, loss_hard, inertia, silhouette, mean_2D[0], mean_2D[1])
        for label, (easy, hard), (loss_easy, loss_hard), inertia, silhouette, mean_2D in zip(
            labels, num, losses, inertia_B, silhouette_B, full_B2D, strict=True
        )
    ]
