"""The look before upsampling."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evenly.data.digits import digits
from evenly.errors import DataError, UsageError
from evenly.models.seeding import seeding
from evenly.resampling import separate
from evenly.resampling.distinctness import distinctness
from evenly.resampling.health import health
from evenly.resampling.suspects import suspects


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def two_groups_or_one(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Class 0 falls into two groups, class 1 is one cloud."""
    rng = generator(seed)
    labels = torch.arange(800) % 2
    logits = torch.randn(800, 2, generator=rng) + 3 * one_hot(labels, 2)
    apart = (labels == 0) & (torch.rand(800, generator=rng) < 0.3)
    logits[apart] += torch.tensor([-9.0, 3.0])
    return logits, labels


def test_one_cloud_is_told_from_two_groups() -> None:
    logits, labels = two_groups_or_one()
    found = health(separate(logits, labels, classes=["cat", "dog"]), logits)
    assert found.indistinct == (1,)
    assert any("1 of 2 classes does not fall into two clusters" in s and "1 (dog): 0." in s for s in found.sentences)


def test_outputs_in_place_of_a_separation_are_refused_with_the_call() -> None:
    logits, labels = two_groups_or_one()
    with pytest.raises(UsageError, match=r"not a Tensor: health\(evenly\.separate\(logits, labels\), logits\)"):
        health(logits, labels)  # type: ignore[arg-type]


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_a_single_cloud_is_seldom_called_two_whatever_its_shape(dim: int) -> None:
    wrong = 0
    for seed in range(30):
        rng = generator(seed)
        cloud = torch.randn(200, dim, generator=rng) * torch.linspace(0.2, 3, dim)
        facts = distinctness(cloud, rng=rng)
        assert facts is not None
        wrong += facts.distinct
    assert wrong <= 9  # about one in ten is expected


def test_two_groups_are_called_two_also_where_one_is_small() -> None:
    for share in (0.05, 0.5):
        for seed in range(5):
            rng = generator(seed)
            cloud = torch.randn(400, 5, generator=rng)
            cloud[: int(400 * share)] += 4
            facts = distinctness(cloud, rng=rng)
            assert facts is not None
            assert facts.distinct


def test_clouds_have_the_covariance_of_the_class() -> None:
    # A line in the plane: its clouds are lines too, with the silhouette of one dimension and not of two.
    rng = generator(0)
    t = torch.randn(400, 1, generator=rng)
    line = distinctness(t @ torch.tensor([[3.0, -4.0]]), rng=generator(1))
    flat = distinctness(5 * t, rng=generator(1))
    disc = distinctness(torch.randn(400, 2, generator=rng), rng=generator(1))
    assert line is not None
    assert flat is not None
    assert disc is not None
    assert np.mean(line.clouds) == pytest.approx(np.mean(flat.clouds), abs=0.02)
    assert np.mean(disc.clouds) < np.mean(line.clouds) - 0.1


def test_few_or_equal_points_are_not_judged() -> None:
    assert distinctness(torch.randn(7, 2, generator=generator(0))) is None
    assert distinctness(torch.ones(50, 2)) is None


def test_wrong_labels_are_suspected_and_hard_examples_are_not() -> None:
    rng = generator(0)
    true = torch.arange(600) % 3
    hard = torch.rand(600, generator=rng) < 0.3
    logits = torch.randn(600, 3, generator=rng) + one_hot(true, 3) * torch.where(hard, 0.5, 6.0)[:, None]
    flipped = (torch.rand(600, generator=rng) < 0.03) & ~hard
    labels = torch.where(flipped, (true + 1) % 3, true)
    found = suspects(logits, labels)
    mask = torch.zeros(600, dtype=torch.bool)
    mask[found.rows] = True
    # A third of the examples have outputs drawn nearly at random, some of them surely of another class.
    assert float(flipped[mask].float().mean()) >= 0.6
    assert float(mask[flipped].float().mean()) >= 0.9
    right = flipped[found.rows]
    assert torch.equal(found.predicted[right], true[found.rows][right])
    assert torch.equal(found.labels, labels[found.rows])
    assert sorted(found.ranking.tolist()) == list(range(600))


def test_being_sure_and_being_far_are_both_needed() -> None:
    rng = generator(0)
    labels = torch.zeros(200, dtype=torch.int64)
    unlearned = torch.randn(200, 2, generator=rng) + torch.tensor([0.0, 5.0])  # the whole class is taken for another
    assert len(suspects(unlearned, labels)) == 0
    unsure = torch.randn(200, 2, generator=rng) * 0.1 + torch.tensor([2.0, 0.0])
    unsure[0] = torch.tensor([0.0, 1.0])  # far, but at 73 %
    assert len(suspects(unsure, labels)) == 0
    unsure[0] = torch.tensor([0.0, 4.0])
    assert suspects(unsure, labels).rows.tolist() == [0]


def test_who_is_rightly_predicted_is_no_suspect_however_far_from_the_rest() -> None:
    logits = torch.stack([torch.linspace(9, 10, 100), torch.zeros(100)], 1)
    logits[0, 0] = 2.5  # at 92 %, among examples at 99.99 %
    assert len(suspects(logits, [0] * 100)) == 0


def test_one_logit_speaks_for_two_classes() -> None:
    one = torch.linspace(3, 4, 50)
    one[7] = -6
    two = torch.stack([torch.zeros(50), one], 1)
    ones = torch.ones(50, dtype=torch.int64)
    assert suspects(one, ones).rows.tolist() == suspects(two, ones).rows.tolist() == [7]
    assert suspects(one, ones).predicted.tolist() == [0]


def test_flipped_labels_of_real_digits_are_found_early_in_training() -> None:
    data = digits().train
    x, rng = data.inputs.flatten(1).float() / 255, generator(0)
    flipped = torch.rand(len(x), generator=rng) < 0.05
    labels = torch.where(flipped, (data.labels + torch.randint(1, 10, (len(x),), generator=rng)) % 10, data.labels)
    with seeding(0):
        network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        for batch in torch.split(torch.randperm(len(x), generator=rng), 32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[batch]), labels[batch]).backward()
            optimizer.step()
    found = suspects(network(x), labels)
    right = int(flipped[found.rows].sum())
    assert right / len(found) > 0.9
    assert right / int(flipped.sum()) > 0.3

    separation = separate(network(x), labels)
    report = health(separation, network(x).detach().numpy())
    assert torch.equal(report.suspects.rows, found.rows)
    assert any(f"{len(found):,} examples look mislabelled" in sentence for sentence in report.sentences)
    spared = separation.repeats(2, once=report.suspects.rows)
    assert bool((spared[found.rows] == 1).all())
    assert int(spared.sum()) == len(x) + separation.num_hard - int(separation.hard[found.rows].sum())


def test_separations_that_do_not_last_are_said_so() -> None:
    logits, labels = two_groups_or_one()
    one = separate(logits, labels)
    same = health(one, logits, others=[one])
    assert same.agreements == ((1.0, 1.0, 1.0),)
    assert not any("not the same" in sentence for sentence in same.sentences)
    other = dataclasses.replace(one, hard=~one.hard)
    differ = health(one, logits, others=[one, other])
    assert any("1 of 2 others share less than half" in sentence for sentence in differ.sentences)


def test_a_healthy_separation_has_nothing_to_say() -> None:
    rng = generator(0)
    labels = torch.arange(600) % 2
    hard = torch.rand(600, generator=rng) < 0.3
    logits = 0.3 * torch.randn(600, 2, generator=rng) + one_hot(labels, 2) * torch.where(hard, 0.0, 5.0)[:, None]
    found = health(separate(logits, labels), logits)
    assert found.sentences == ()
    assert found.indistinct == ()


def test_health_touches_nothing_and_repeats_itself() -> None:
    logits, labels = two_groups_or_one()
    before, copy = torch.get_rng_state(), logits.clone()
    one, two = (health(separate(logits, labels), logits) for _ in range(2))
    assert one.distinctness == two.distinctness
    assert torch.equal(logits, copy)
    assert torch.equal(before, torch.get_rng_state())


def test_outputs_of_another_length_and_bad_settings_are_refused() -> None:
    logits, labels = two_groups_or_one()
    with pytest.raises(DataError, match="799 rows of outputs for a separation of 800"):
        health(separate(logits, labels), logits[1:])
    with pytest.raises(UsageError, match="sure=1"):
        suspects(logits, labels, sure=1.0)


def test_features_are_not_read_as_predictions() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 2
    # As logits, the feature of example 0 would say class 1 with certainty, and its loss is far off.
    features = torch.randn(60, 2, generator=rng)
    features[0] = torch.tensor([0.0, 30.0])
    losses = torch.full((60,), 0.1) + 0.01 * torch.rand(60, generator=rng)
    losses[0] = 9.0
    found = {on: separate(features, labels, losses=losses, on=on, max_accuracy=1) for on in ("features", "logits")}
    assert health(found["logits"], features).suspects.rows.tolist() == [0]
    of_features = health(found["features"], features)
    assert len(of_features.suspects) == 0
    assert set(of_features.distinctness) == {0, 1}
