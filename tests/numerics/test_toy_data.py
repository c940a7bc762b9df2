"""The toy distributions against their definitions: closed forms, moments, and what other libraries find."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from evenly.data import Labelled, load
from evenly.errors import UsageError


def patch_parts(data: Labelled) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Projections of each patch on the two planted features, and the squared norm of what is left."""
    along = torch.stack([data.inputs @ data.planted[name] for name in ("easy", "hard")], dim=-1)
    rest = data.inputs.square().sum(-1) - along.square().sum(-1)
    return along[..., 0], along[..., 1], rest


def test_planted_features_are_orthonormal() -> None:
    planted = load("patches", num_train=10, num_test=1).train.planted
    basis = torch.stack([planted["easy"], planted["hard"]])
    torch.testing.assert_close(basis @ basis.T, torch.eye(2), atol=1e-6, rtol=0)


def test_every_example_has_one_patch_of_each_kind_with_the_label_as_sign() -> None:
    data = load("patches", num_train=2_000, num_test=1, orthogonal_noise=True, noise=0.125).train
    easy, hard, rest = patch_parts(data)
    sign = 2 * data.labels - 1
    # With orthogonal noise the features read off exactly: one patch carries each, the others carry none.
    torch.testing.assert_close(easy.sum(1), sign * data.attributes["easy_present"] * 1.0, atol=1e-5, rtol=0)
    torch.testing.assert_close(hard.sum(1), sign * 0.2, atol=1e-5, rtol=0)
    assert ((easy.abs() > 0.5).sum(1) == data.attributes["easy_present"]).all()
    assert ((hard.abs() > 0.1).sum(1) == 1).all()
    assert ((rest > 0.1).sum(1) == 1).all()


def test_the_easy_patch_is_there_with_probability_alpha_and_patches_are_shuffled() -> None:
    data = load("patches", num_train=20_000, num_test=1, alpha=0.7, orthogonal_noise=True).train
    present = int(data.attributes["easy_present"].sum())
    assert stats.binomtest(present, 20_000, 0.7).pvalue > 1e-3
    _, hard, _ = patch_parts(data)
    positions = hard.abs().argmax(1).bincount(minlength=3).numpy()
    assert stats.chisquare(positions).pvalue > 1e-3


@pytest.mark.parametrize(("orthogonal", "dims"), [(False, 50), (True, 48)])
def test_noise_has_the_stated_variance_in_both_readings(orthogonal: bool, dims: int) -> None:
    data = load("patches", num_train=5_000, num_test=1, beta_easy=0.0, beta_hard=0.0, orthogonal_noise=orthogonal).train
    # ‖ξ‖²/0.125² is χ² with one degree of freedom per direction the noise may take.
    chi2 = data.inputs.square().sum((1, 2)).double().numpy() / 0.125**2
    assert stats.kstest(chi2, "chi2", args=(dims,)).pvalue > 1e-3


@pytest.mark.parametrize("chi", [270, 315, 360, 450])
def test_each_feature_of_the_corrected_spirals_tells_the_class(chi: float) -> None:
    splits = load("spirals", chi=chi, num_train=4_000)
    train, test = splits.train, splits["test"]
    nearest = KNeighborsClassifier(5).fit(train.inputs[:, 2:], train.labels)
    assert nearest.score(test.inputs[:, 2:], test.labels) == 1.0
    linear = LogisticRegression().fit(train.inputs[:, :2], train.labels)
    assert linear.score(test.inputs[:, :2], test.labels) > 0.99
    assert LogisticRegression().fit(train.inputs[:, 2:], train.labels).score(test.inputs[:, 2:], test.labels) < 0.95


@pytest.mark.parametrize("chi", [270, 360, 450])
def test_the_spirals_as_printed_cross_and_do_not_tell_the_class(chi: float) -> None:
    splits = load("spirals", chi=chi, literal=True, num_train=8_000)
    nearest = KNeighborsClassifier(25).fit(splits.train.inputs[:, 2:], splits.train.labels)
    assert nearest.score(splits["test"].inputs[:, 2:], splits["test"].labels) < 0.9


def test_the_spiral_without_its_noise_lies_on_the_archimedean_curve() -> None:
    x = load("spirals", num_train=3_000).train
    sign = (2 * x.labels - 1)[:, None]
    curve = (sign * x.inputs[:, 2:] / 0.25).double().numpy() - 0.25  # noise is U(0, ½): centre it
    radius = np.hypot(*curve.T)
    # r = |z| and the angle of (−cos z, sin z) is π − z: compare modulo the full turn, within the noise's reach.
    far = radius > 2
    angle = np.angle(np.exp(1j * (np.pi - np.arctan2(curve[:, 1], curve[:, 0]) - radius)))
    assert np.abs(angle[far]).max() < 0.55
    # z² is uniform, so that points are spread evenly over the disc.
    assert stats.kstest(radius**2 / (2 * np.pi) ** 2, "uniform").statistic < 0.05


def test_the_balanced_split_has_all_four_combinations_and_labels_the_hard_feature() -> None:
    balanced = load("spirals")["balanced"]
    combinations = (2 * balanced.attributes["easy"] + balanced.attributes["hard"]).bincount(minlength=4)
    assert stats.chisquare(combinations.numpy()).pvalue > 1e-3
    assert torch.equal(balanced.labels, balanced.attributes["hard"])
    easy_sign = (balanced.inputs[:, 0] > 0).long()
    assert torch.equal(easy_sign, balanced.attributes["easy"])


def test_dropout_noise_silences_features_and_says_which() -> None:
    train = load("spirals", dropout_noise=0.4, num_train=5_000).train
    absent = (train.inputs[:, :2] == 0).all(1)
    assert torch.equal(absent, train.attributes["easy_present"] == 0)
    assert stats.binomtest(int(absent.sum()), 5_000, 0.4).pvalue > 1e-3
    hard_only = load("spirals", dropout_noise=0.4, noise_on="hard", num_train=500).train
    assert hard_only.attributes["easy_present"].all()
    assert not hard_only.attributes["hard_present"].all()


def test_label_noise_flips_the_feature_not_the_label() -> None:
    train = load("spirals", label_noise=0.1, num_train=5_000).train
    flipped = (train.inputs[:, 0] > 0).long() != train.labels
    assert stats.binomtest(int(flipped.sum()), 5_000, 0.1).pvalue > 1e-3


def test_gaussian_noise_leaves_the_line_by_its_standard_deviation() -> None:
    train = load("spirals", gaussian_noise=0.3, num_train=5_000).train
    across = (train.inputs[:, 0] - train.inputs[:, 1]).double().numpy() / (0.3 * np.sqrt(2))
    assert stats.kstest(across, "norm").pvalue > 1e-3


def test_parity_is_the_product_of_the_first_two_coordinates_and_linear_models_cannot_see_it() -> None:
    splits = load("parity", dim=10, num_train=4_000)
    x = splits.train.inputs
    assert torch.equal((x[:, 0] * x[:, 1]).long(), 2 * splits.train.labels - 1)
    assert set(x.unique().tolist()) == {-1.0, 1.0}
    linear = LogisticRegression().fit(x, splits.train.labels)
    assert abs(linear.score(splits["test"].inputs, splits["test"].labels) - 0.5) < 0.06


def test_the_seed_decides_what_is_drawn() -> None:
    same, again, other = (load("patches", num_train=10, num_test=5, seed=seed) for seed in (1, 1, 2))
    assert same.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("patches", {"alpha": 1.5}, "alpha = 1.5"),
        ("patches", {"dim": 2}, "dim = 2"),
        ("patches", {"noise": -1}, "noise = -1"),
        ("spirals", {"chi": 0}, "chi = 0"),
        ("spirals", {"label_noise": 2}, "label_noise = 2"),
        ("spirals", {"gaussian_noise": -0.1}, "gaussian_noise = -0.1"),
        ("spirals", {"noise_on": "easy"}, "noise_on: expected one of both, hard, not 'easy'"),
        ("parity", {"dim": 1}, "dim = 1"),
        ("patches", {"beta_esay": 1}, "no option 'beta_esay'. Did you mean 'beta_easy'"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(name, **options)
