"""Figure 4: histograms hold every value."""

import pytest
import torch

from evenly.papers.springer2024.fig4 import histogram_shares


def test_the_shares_of_a_histogram_sum_to_one_with_what_lies_outside_its_edges():
    shares = histogram_shares(torch.tensor([-50.0, 0.05, 0.05, 1.0, 90.0]))
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(0.2)
    assert shares[-1] == pytest.approx(0.2)
