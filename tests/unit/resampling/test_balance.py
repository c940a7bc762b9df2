"""The weights of SPARE: clusters of a class balanced by a power of their size."""

import numpy as np
import pytest
import torch
from tests.unit.resampling.test_remarks import two_groups

from evenly.resampling import separate
from evenly.resampling.balance import balance_factors, balance_weights


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_balanced_clusters_and_classes_have_the_weights_of_spare(power: float) -> None:
    logits, labels, _ = two_groups(share=0.2)
    separation = separate(logits, labels)
    weights = balance_weights(separation, power=power).double().numpy()
    sizes = np.array(
        [int(((labels == y) & (separation.hard == h)).sum()) for y, h in zip(labels, separation.hard, strict=True)]
    )
    expected = sizes.astype(float) ** -power
    for label in (0, 1):
        members = (labels == label).numpy()
        expected[members] /= expected[members].sum()
    np.testing.assert_allclose(weights, expected * 600 / expected.sum(), rtol=1e-5)
    assert weights.mean() == pytest.approx(1)
    if power == 1:  # every cluster of a class weighs the same in all
        hard = separation.hard.numpy()
        for label in (0, 1):
            members = (labels == label).numpy()
            assert weights[members & hard].sum() == pytest.approx(weights[members & ~hard].sum())


def test_the_power_of_balance_is_one_where_clusters_are_distinct_and_two_where_they_are_not() -> None:
    logits, labels, _ = two_groups(share=0.2)
    close = separate(logits, labels)
    assert all(split.silhouette < 0.9 for split in close.splits) or all(
        split.silhouette >= 0.9 for split in close.splits
    )
    far = separate(torch.where(logits > 2, logits * 8, logits), labels, max_accuracy=1)
    for separation in (close, far):
        power = 1.0 if separation.splits[0].silhouette >= 0.9 else 2.0
        assert torch.equal(balance_weights(separation), balance_weights(separation, power=power))
    assert balance_factors(close, most=3).max() == 3
