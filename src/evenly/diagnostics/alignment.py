"""How well the first layer of a toy network points along the features planted in its data."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError


@dataclass(frozen=True)
class Alignment:
    """⟨w_j, v⟩ over the filters: the largest in size, its filter, and the mean size."""

    largest: float
    filter: int
    mean: float


def alignment(filters_JD: Tensor, *, planted: Mapping[str, Tensor]) -> dict[str, Alignment]:
    """max_j |⟨w_j, v⟩| for every planted direction v (Nguyen et al., 2024, figure 2), v scaled to length 1.

    >>> sizes = alignment(torch.tensor([[0.0, 1.0], [-3.0, 4.0]]), planted={"easy": torch.tensor([2.0, 0.0])})
    >>> sizes["easy"]
    Alignment(largest=3.0, filter=1, mean=1.5)
    """
    if not planted:
        raise DataError("no direction was planted in these data: alignment is for toy data such as 'patches'.")
    if filters_JD.ndim != 2:
        raise UsageError(f"filters of shape {tuple(filters_JD.shape)}: one row per filter is needed.")
    sizes = {}
    for name, v_D in planted.items():
        if v_D.shape != filters_JD.shape[1:]:
            raise UsageError(
                f"filters have {filters_JD.shape[1]} weights but the planted direction {name!r} {v_D.numel()}: "
                "give the weights of the layer that sees the input."
            )
        size_J = (filters_JD.detach() @ (v_D / torch.linalg.vector_norm(v_D)).to(filters_JD)).abs()
        sizes[name] = Alignment(float(size_J.max()), int(size_J.argmax()), float(size_J.mean()))
    return sizes
