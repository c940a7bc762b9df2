"""What `separate` takes, what it refuses, and what it leaves alone."""

from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.errors import DataError, UsageError
from evenly.resampling import SeparationWarning, separate
from evenly.resampling.health import health
from evenly.resampling.suspects import suspects

LOGITS = torch.tensor([[4.0, 0.0], [5.0, 0.2], [0.2, 0.3], [0.0, 4.0], [0.3, 5.0], [0.4, 0.1]])
LABELS = torch.tensor([0, 0, 0, 1, 1, 1])
HARD = [False, False, True, False, False, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_floating_type_gives_the_same_split(dtype: torch.dtype) -> None:
    assert separate(LOGITS.to(dtype), LABELS).hard.tolist() == HARD


def test_arrays_lists_and_memory_maps_give_the_same_split(tmp_path: Path) -> None:
    array = LOGITS.numpy()
    np.save(tmp_path / "logits.npy", array)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    shuffled = np.array([3, 0, 4, 1, 5, 2])
    for logits, labels in ((array, LABELS.numpy()), (mapped, LABELS.tolist()), (array.astype(np.float16), LABELS)):
        assert separate(logits, labels).hard.tolist() == HARD
    assert separate(mapped[shuffled], LABELS.numpy()[shuffled]).hard.tolist() == [HARD[i] for i in shuffled]
    assert isinstance(mapped, np.memmap)


def test_separating_changes_none_of_its_arguments() -> None:
    logits = LOGITS.clone().requires_grad_()
    before, labels, losses = torch.get_rng_state(), LABELS.clone(), torch.arange(6.0)
    separate(logits, labels, losses=losses)
    assert torch.equal(logits, LOGITS)
    assert logits.grad is None
    assert torch.equal(labels, LABELS)
    assert torch.equal(losses, torch.arange(6.0))
    assert torch.equal(before, torch.get_rng_state())


def test_the_same_call_gives_the_same_split_and_options_of_the_report_do_not_change_it() -> None:
    logits = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(300) % 3
    one = separate(logits, labels, restarts=1)
    assert torch.equal(one.hard, separate(logits, labels, restarts=1).hard)
    assert torch.equal(one.hard, separate(logits, labels, restarts=1, silhouette_sample=0).hard)
    seeding = [separate(logits, labels, restarts=1, rng=torch.Generator().manual_seed(s)).hard for s in range(8)]
    assert any(not torch.equal(one.hard, other) for other in seeding)


def test_more_restarts_never_cost_inertia_on_average() -> None:
    logits = torch.randn(400, 12, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(400, dtype=torch.int64)
    once = [separate(logits, labels, restarts=1, rng=torch.Generator().manual_seed(s)).inertia for s in range(10)]
    many = [separate(logits, labels, restarts=20, rng=torch.Generator().manual_seed(s)).inertia for s in range(10)]
    assert np.mean(many) < np.mean(once)
    assert max(many) < max(once)


def test_a_class_of_one_is_kept_once_and_named() -> None:
    logits = torch.cat([LOGITS, torch.tensor([[1.0, 2.0]])])
    logits = torch.cat([logits, torch.zeros(7, 1)], dim=1)
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2])
    with pytest.warns(SeparationWarning, match=r"class 2 \(newt\) \(only one example\)") as caught:
        found = separate(logits, labels, classes=["cat", "dog", "newt"])
    assert len(caught) == 1
    assert found.hard.tolist() == [*HARD, False]
    assert found.remarks == (str(caught[0].message),)
    assert found.indices(2).tolist() == [0, 1, 2, 3, 4, 5, 6, 2, 5]
    assert not found.splits[2].has_both_parts


def test_a_class_of_equal_outputs_among_others_is_kept_once_and_named() -> None:
    logits = torch.cat([LOGITS, torch.full((2, 2), 0.5)])
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    with pytest.warns(SeparationWarning, match=r"class 2 \(equal outputs for all its examples\)"):
        found = separate(logits, labels, losses=torch.arange(8.0), on="features")
    assert found.hard[6:].tolist() == [False, False]


def test_classes_without_examples_are_passed_over() -> None:
    found = separate(torch.cat([LOGITS, torch.zeros(6, 3)], dim=1), LABELS * 3)
    assert [split.label for split in found.splits] == [0, 3]


def test_equal_losses_make_the_smaller_cluster_hard() -> None:
    logits = torch.tensor([[0.0], [0.1], [0.2], [9.0]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        found = separate(logits[order], [0, 0, 0, 0], losses=[1.0] * 4)
        assert found.hard.tolist() == [place == 3 for place in order]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"labels": LABELS[:5]}, DataError, "5 labels for 6 rows.*drop_last"),
        ({"labels": LABELS.float()}, DataError, "labels are float32.*Bin a continuous target.*SAM alone"),
        ({"labels": torch.eye(6, 2).long()}, DataError, r"shape \(6, 2\).*argmax.*several labels"),
        ({"labels": LABELS - 1}, DataError, "label -1 of example 0 is negative"),
        ({"labels": LABELS * 2}, DataError, "label 2 of example 3 is out of range.*on='features'"),
        ({"labels": [], "logits": torch.zeros(0, 2)}, DataError, "no examples"),
        ({"labels": list("abcabc")}, DataError, "labels are a list such as 'a', not numbers: give one class number"),
        ({"labels": None}, DataError, "labels are None, not numbers: give one class number per example"),
        ({"logits": None}, DataError, "logits are None, not numbers: give a row of the network's outputs"),
        ({"losses": ["low"] * 6}, DataError, "losses are a list such as 'low', not numbers: give one number"),
        ({"index": ["x"] * 6}, DataError, "index are a list such as 'x', not numbers"),
        ({"logits": LOGITS.long()}, DataError, "logits are int64"),
        ({"logits": LOGITS[None]}, DataError, r"shape \(1, 6, 2\)"),
        ({"logits": torch.zeros(6, 2)}, DataError, r"all outputs of every class are equal.*0\.6931.*ln\(2\) = 0\.6931"),
        ({"losses": [1.0, 2.0]}, DataError, r"losses: shape \(2,\).*6 examples.*reduction='none'"),
        ({"losses": [1.0, 2, 3, 4, 5, float("inf")]}, DataError, "losses: inf at example 5"),
        ({"method": "kmeans"}, UsageError, "method='kmeans' is not known. Did you mean 'k-means'"),
        ({"on": "probs"}, UsageError, "on='probs'"),
        ({"on": "features"}, UsageError, "Give losses="),
        ({"method": "score"}, UsageError, "score="),
        ({"score": torch.ones(6)}, UsageError, "method='score' and score= go together"),
        ({"share": 0.3}, UsageError, "k-means finds its own share"),
        ({"share": 1.5, "method": "random"}, UsageError, "share=1.5"),
        ({"share": "0.3", "method": "random"}, UsageError, "share='0.3'"),
        ({"restarts": 0}, UsageError, "restarts=0"),
        ({"restarts": 2.5}, UsageError, "restarts=2.5: give a whole number"),
        ({"silhouette_sample": -1}, UsageError, "silhouette_sample=-1: give a number of points"),
        ({"max_accuracy": "0.9"}, UsageError, "max_accuracy='0.9' is a share"),
        ({"max_accuracy": float("nan")}, UsageError, "max_accuracy=nan"),
        ({"classes": ["only one"]}, UsageError, "classes names 1 classes, the labels go up to 1"),
        ({"index": [0, 1, 2]}, DataError, "index: .*expected 6 whole numbers"),
        ({"index": [0, 1, 2, 2, 4, 5]}, DataError, r"index: example 2 has 2 rows \(1 rows too many.*replacement"),
        ({"labels": torch.arange(6), "logits": torch.eye(6)}, DataError, "each of the 6 classes has one example"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(change: dict, error: type[Exception], words: str) -> None:
    arguments = {"logits": LOGITS, "labels": LABELS} | change
    with pytest.raises(error, match=words):
        separate(**arguments)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_outputs_that_are_not_finite_are_refused_by_example(bad: float) -> None:
    logits = LOGITS.clone()
    logits[4, 1] = bad
    with pytest.raises(
        DataError, match=r"outputs of example 4 are not finite.*\(1 such example in class 1\).*diverged"
    ):
        separate(logits, LABELS)


def test_large_outputs_are_taken_and_larger_ones_refused() -> None:
    assert separate(LOGITS * 1e14, LABELS, max_accuracy=1).hard.tolist() == HARD
    for sign in (1, -1):
        with pytest.raises(DataError, match=r"example 0 are not finite, or beyond ±1e.15"):
            separate(sign * LOGITS * 1e15, LABELS)


def test_of_equal_outputs_the_first_is_the_prediction() -> None:
    logits = torch.tensor([[1.0, 1.0], [3.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert separate(logits, labels).accuracy == float((logits.argmax(1) == labels).double().mean()) == 0.75


def test_a_network_that_fits_everything_is_refused_unless_asked() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(1_000) % 2
    logits = 10 * torch.nn.functional.one_hot(labels, 2) + torch.randn(1_000, 2, generator=rng)
    logits[:4] = logits[:4].flip(1)  # 99.6 % right
    with pytest.raises(DataError, match=r"fits 99\.60% of the training set.*earlier epoch, below 99%.*max_accuracy=1"):
        separate(logits, labels)
    assert separate(logits, labels, max_accuracy=1).accuracy == pytest.approx(0.996)
    assert separate(logits, labels, method="quantile").num_hard == 500


def test_features_of_any_width_need_only_losses() -> None:
    features = torch.cat([LOGITS, torch.zeros(6, 3)], dim=1)
    found = separate(features, LABELS + 40, losses=[0, 0, 1.0, 0, 0, 1.0], on="features")
    assert found.hard.tolist() == HARD
    assert np.isnan(found.accuracy)


def test_quantile_marks_the_losses_above_the_median() -> None:
    losses = [0.5, 0.1, 0.9, 0.2, 0.8, 0.3]
    found = separate(LOGITS, LABELS, losses=losses, method="quantile")
    assert found.hard.tolist() == [True, False, True, False, True, False]
    assert separate(LOGITS, LABELS, losses=losses, method="quantile", share=0.34).hard.tolist() == [
        False, False, True, False, True, False,
    ]  # fmt: skip


def test_misclassified_marks_the_wrong_predictions() -> None:
    assert separate(LOGITS, LABELS, method="misclassified").hard.tolist() == HARD
    with pytest.raises(UsageError, match="needs predictions"):
        separate(LOGITS, LABELS, losses=[1.0] * 6, on="features", method="misclassified")


def test_a_score_marks_its_upper_share() -> None:
    found = separate(LOGITS, LABELS, method="score", score=[6, 5, 4, 3, 2, 1], share=1 / 3)
    assert found.hard.tolist() == [True, True, False, False, False, False]


def test_random_marks_a_share_of_all_and_depends_on_the_generator() -> None:
    logits, labels = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)), torch.arange(400) % 2
    one, two = (
        separate(logits, labels, method="random", share=0.3, rng=torch.Generator().manual_seed(s)) for s in (0, 1)
    )
    assert one.num_hard == two.num_hard == 120
    assert not torch.equal(one.hard, two.hard)
    assert abs(one.splits[0].num_hard - 60) < 25


def test_a_seed_in_place_of_a_generator_is_refused_with_the_generator_to_give() -> None:
    with pytest.raises(
        UsageError, match=r"rng=7 is not a torch\.Generator: give torch\.Generator\(\)\.manual_seed\(7\)"
    ):
        separate(torch.eye(4), [0, 1, 2, 3], rng=7)


@pytest.mark.filterwarnings("ignore::evenly.resampling.SeparationWarning")
def test_another_default_precision_changes_nothing() -> None:
    logits, labels = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3
    expected = separate(logits, labels)
    torch.set_default_dtype(torch.float64)
    try:
        found = separate(logits, labels)
        assert torch.equal(found.hard, expected.hard)
        assert torch.equal(found.losses, expected.losses)
        assert found.losses.dtype == suspects(logits, labels).probability.dtype == torch.float32
        health(found, logits)
    finally:
        torch.set_default_dtype(torch.float32)


def test_numbers_that_are_no_class_numbers_are_refused_before_memory_is_asked_for() -> None:
    with pytest.raises(DataError, match=r"label 1000000000000 of example 1.*Number them anew"):
        separate(torch.eye(2), [0, 10**12], on="features", losses=[0.0, 1.0])
