"""Weights of resized crops, made from four whole numbers: those of the dense formula, to the bit."""

import pytest
import torch
from torch import Tensor

from evenly.data.crops import _weights


def dense(start_N: Tensor, length_N: Tensor, full: int, size: int) -> Tensor:
    """The triangle over every pixel in float64, rounded to 1/2048; the largest weight takes what rounding leaves."""
    length_N11 = length_N.double()[:, None, None]
    step_N11 = length_N11 / size
    centre_Ns1 = (torch.arange(size)[None, :, None] + 0.5) * step_N11
    pixel_NsF = torch.arange(full)[None, None, :] - start_N[:, None, None] + 0.5
    share_NsF = (1 - (pixel_NsF - centre_Ns1).abs() / step_N11.clamp_min(1)).clamp_min(0)
    share_NsF = share_NsF * ((pixel_NsF > 0) & (pixel_NsF < length_N11))
    whole_NsF = (share_NsF * (2048 / share_NsF.sum(-1, keepdim=True))).round()
    missing_Ns1 = 2048 - whole_NsF.sum(-1, keepdim=True)
    return whole_NsF.scatter_add_(-1, whole_NsF.argmax(-1, keepdim=True), missing_Ns1).float()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 24, 32, 64, 224, 299])
def test_weights_are_those_of_the_dense_formula(size: int) -> None:
    for length in [*range(1, 40), 63, 64, 65, 100, 128, 200, 224, 256, 300]:
        full = length + 3
        start, lengths = torch.tensor([0, 2, 3]), torch.full((3,), length)
        assert torch.equal(_weights(start, lengths, full, size), dense(start, lengths, full, size)), length


def test_boxes_of_different_lengths_have_the_weights_they_have_alone() -> None:
    start, lengths = torch.tensor([0, 5, 9]), torch.tensor([30, 3, 12])
    together = _weights(start, lengths, 32, 8)
    for i in range(3):
        assert torch.equal(together[i : i + 1], dense(start[i : i + 1], lengths[i : i + 1], 32, 8))
