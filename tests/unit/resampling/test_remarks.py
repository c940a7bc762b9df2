"""What a separation says of itself: clusters that are none, networks that fit everything, wrong predictions."""

import warnings

import pytest
import torch
from sklearn.metrics import silhouette_score
from torch import nn

import evenly
from evenly.data import load
from evenly.errors import DataError, UsageError
from evenly.models.seeding import seeding
from evenly.resampling import Separation, SeparationWarning, separate
from evenly.resampling.evidence import evidence
from evenly.resampling.remarks import classes_to_judge


def two_groups(num: int = 600, *, share: float = 0.3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Outputs of two classes, a share of each near zero; labels, and which these are."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(num) % 2
    hard = torch.rand(num, generator=rng) < share
    means = nn.functional.one_hot(labels, 2) * torch.where(hard, 0.4, 5.0)[:, None]
    return means + 0.3 * torch.randn(num, 2, generator=rng), labels, hard


def test_pure_noise_is_remarked_on_and_warned_of() -> None:
    noise = torch.randn(3_000, 10, generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        separation = evenly.separate(noise, torch.arange(3_000) % 10)
    assert any("do not fall into two clusters" in one and "repeat noise" in one for one in separation.remarks)
    assert any(issubclass(each.category, SeparationWarning) for each in caught)
    assert separation.remarks[-1] in separation.summary()


def test_clusters_that_are_there_are_not_remarked_on() -> None:
    logits, labels, hard = two_groups()
    separation = separate(logits, labels)
    assert separation.remarks == ()
    assert float((separation.hard == hard).double().mean()) > 0.95


def test_health_is_at_the_top_and_repeats_no_sentence() -> None:
    noise = torch.randn(600, 3, generator=torch.Generator().manual_seed(0))
    with pytest.warns(SeparationWarning, match="do not fall"):
        separation = separate(noise, torch.arange(600) % 3)
    found = evenly.health(separation, noise)
    assert sum("do not fall into two clusters" in sentence for sentence in found.sentences) == 1


def test_the_page_and_the_warning_state_the_same_silhouette() -> None:
    noise = torch.randn(900, 3, generator=torch.Generator().manual_seed(1))
    separation = separate(noise, torch.arange(900) % 3)
    found = evenly.health(separation, noise)
    shown = {row["label"]: row["silhouette"] for row in evidence(separation, noise, found)["classes"]}
    for label, facts in found.distinctness.items():
        assert facts.silhouette == shown[label] == separation.splits[label].silhouette
    lowest = min(shown[label] for label in found.indistinct)
    assert any(f": {lowest:.2f} / " in sentence for sentence in found.sentences)
    # A file keeps the silhouettes and not the clouds: what is computed again states the same.
    from dataclasses import replace

    again = evenly.health(replace(separation, distinctness={}, remarks=()), noise)
    assert {label: facts.silhouette for label, facts in again.distinctness.items()} == shown


def test_the_one_silhouette_is_an_estimate_of_scikit_learns() -> None:
    logits, labels, _ = two_groups()
    separation = separate(logits, labels)
    for split in separation.splits:
        members = labels == split.label
        exact = silhouette_score(logits[members].numpy(), separation.hard[members].numpy())
        assert split.silhouette == pytest.approx(exact, abs=0.05)


def test_a_network_that_fits_everything_is_judged_by_its_clusters() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(800) % 2
    cloud = 9 * nn.functional.one_hot(labels, 2) + torch.randn(800, 2, generator=rng)
    with pytest.raises(DataError, match=r"fits 100\.00% .* do not fall into two clusters.*max_accuracy=1"):
        separate(cloud, labels)
    two = cloud.clone()
    two[::5] = 3 * nn.functional.one_hot(labels[::5], 2) + 0.5 * torch.randn(160, 2, generator=rng)
    with pytest.warns(SeparationWarning, match=r"fits .*2 of 2 classes still fall into two clusters"):
        separation = separate(two, labels)
    assert float(separation.hard[::5].double().mean()) > 0.9


@pytest.mark.parametrize(("num", "options"), [(30, {}), (800, {"silhouette_sample": 0})])
def test_where_no_class_can_be_examined_a_network_that_fits_everything_is_warned_of(num: int, options: dict) -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(num) % 2
    cloud = 9 * nn.functional.one_hot(labels, 2) + torch.randn(num, 2, generator=rng)
    with pytest.warns(SeparationWarning, match=r"fits 100\.00% .* no class could be examined .* may be noise"):
        assert separate(cloud, labels, **options).num_hard > 0


def test_on_the_demo_data_a_network_that_fits_everything_still_finds_the_blanks() -> None:
    """Refused before, with outputs that find the blanks better than those of the moment the rule chose."""
    data = load("digit-dominoes").train
    x = data.inputs.flatten(1).float() / 255
    with seeding(0):
        network = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    rng = torch.Generator().manual_seed(0)
    for _ in range(15):
        for rows in torch.randperm(len(x), generator=rng).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), data.labels[rows]).backward()
            optimizer.step()
    with pytest.warns(SeparationWarning, match="still fall into two clusters"):
        separation = separate(network(x).detach(), data.labels)
    assert separation.accuracy > 0.99
    blank = data.attributes["easy_present"] == 0
    assert float(blank.double().mean()) < 0.25
    assert float(blank[separation.hard].double().mean()) > 0.6
    assert float(separation.hard[blank].double().mean()) > 0.9


def test_a_class_without_two_correct_predictions_is_said_to_be_one() -> None:
    logits, labels, _ = two_groups()
    nobody, one = torch.tensor([[0.0, 9.0]]).repeat(5, 1), torch.tensor([[0.0, 9.0]]).repeat(4, 1)
    same = torch.tensor([[0.0, 0.0, 0.0, 0.0, 5.0]]).repeat(3, 1)
    same = torch.cat([same, torch.tensor([[9.0, 0.0, 0.0, 0.0, 5.0]])])
    logits = torch.cat([nn.functional.pad(torch.cat([logits, nobody, one]), (0, 3)), same])
    logits[-5, 3] = 20.0  # the last of class 3 is predicted correctly
    labels = torch.cat([labels, torch.tensor([2] * 5 + [3] * 4 + [4] * 4)])
    with pytest.warns(SeparationWarning):
        said = [each for each in separate(logits, labels, among="right").remarks if "not split" in each]
    assert len(said) == 2
    assert "class 2, 3 (fewer than two of its examples are predicted correctly)" in said[0]
    assert "class 4 (equal outputs for all of its examples that are predicted correctly)" in said[1]


def test_where_no_class_has_two_correct_predictions_that_is_the_error() -> None:
    logits, labels, _ = two_groups()
    with pytest.raises(DataError, match=r"no class has two examples that are predicted correctly \(0.0% of all are\)"):
        separate(logits.abs().neg() * nn.functional.one_hot(labels, 2), labels, among="right")


def test_among_right_clusters_only_what_is_predicted_rightly_and_keeps_the_rest_once() -> None:
    logits, labels, hard = two_groups()
    flipped = labels.clone()
    wrong = (torch.arange(600) % 20 == 7) & ~hard
    flipped[wrong] = 1 - labels[wrong]
    loose = separate(logits, flipped)
    with pytest.warns(SeparationWarning, match="among='right': 46 of 600 examples are predicted wrongly") as caught:
        strict = separate(logits, flipped, among="right")
    assert len(caught) == 1
    assert bool(loose.hard[wrong].all()), "an early network finds what is mislabelled hard"
    assert not bool(strict.hard[wrong].any())
    right = logits.argmax(1) == flipped
    with pytest.warns(SeparationWarning, match="among='right'"):
        nobody = separate(logits, torch.where(labels == 0, 0, 1), among="right", max_accuracy=1)
    assert nobody.splits[0].num + nobody.splits[1].num == 600
    alone = separate(logits[right], flipped[right], max_accuracy=1)
    assert torch.equal(strict.hard[right], alone.hard)
    assert sum(split.num for split in strict.splits) == 600
    for split, other in zip(strict.splits, alone.splits, strict=True):
        assert split.silhouette == pytest.approx(other.silhouette, abs=1e-6)
        members = (flipped == split.label) & ~strict.hard
        assert split.loss_easy == pytest.approx(float(strict.losses[members].double().mean()), rel=1e-5)
    assert any("among='right'" in remark and "will do worse" in remark for remark in strict.remarks)


def test_where_nothing_is_predicted_wrongly_there_is_nothing_to_warn_of() -> None:
    logits, _, _ = two_groups()
    assert separate(logits, logits.argmax(1), among="right", max_accuracy=1).remarks == ()


def test_among_right_is_refused_where_nothing_is_predicted_or_clustered() -> None:
    logits, labels, _ = two_groups()
    with pytest.raises(UsageError, match="among='right' is for clusters"):
        separate(logits, labels, method="quantile", among="right")
    with pytest.raises(UsageError, match="needs predictions"):
        separate(logits, labels, losses=torch.rand(600), on="features", among="right")
    with pytest.raises(UsageError, match="among='wrong'"):
        separate(logits, labels, among="wrong")  # type: ignore[arg-type]


def test_of_very_many_classes_some_are_examined_evenly() -> None:
    labels = torch.arange(40 * 500) % 500
    assert len(classes_to_judge(labels)) == 64
    assert classes_to_judge(torch.arange(30) % 2) == frozenset()
    assert isinstance(separate(*two_groups()[:2]), Separation)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
@pytest.mark.parametrize("binary", [False, True])
def test_probabilities_given_as_logits_are_warned_of(kind: torch.dtype, binary: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 2
    easy = torch.rand(400, 1, generator=rng) < 0.7
    signs = torch.nn.functional.one_hot(labels, 2) - 0.5
    logits = torch.randn(400, 2, generator=rng) + 4 * easy * signs - 2 * ~easy * signs
    logits, p = (logits[:, 1:], logits[:, 1:].sigmoid()) if binary else (logits, logits.softmax(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = separate(p.to(kind), labels)
    assert any("look like probabilities" in str(each.message) for each in caught)
    assert any("Give logits" in remark for remark in found.remarks)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        separate(logits, labels)
        separate(logits, labels, on="probabilities")
        if not binary:
            separate(p.log(), labels)
        separate(p, labels, on="features", losses=torch.rand(400, generator=rng))
    assert not any("probabilities" in str(each.message) for each in caught)
