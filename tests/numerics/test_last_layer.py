"""Last-layer retraining against scikit-learn, and against the condition of its minimum."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from evenly.data import load
from evenly.errors import DataError, UsageError
from evenly.models.seeding import seeding
from evenly.resampling.last_layer import logistic_regression, retrain_last_layer


def network(outputs: int = 2) -> nn.Sequential:
    with seeding(0):
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, outputs))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strength", [0.1, 1.0, 30.0])
def test_logistic_regression_is_that_of_scikit_learn_and_its_gradient_is_zero(classes: int, strength: float) -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(300, 5, generator=rng, dtype=torch.float64)
    labels = (x[:, 0] + 0.5 * torch.randn(300, generator=rng, dtype=torch.float64)).mul(1.5).round().long() % classes
    weight, bias = logistic_regression(x, labels, classes, strength)
    probability = (x @ weight.T + bias).softmax(1)
    residual = probability - nn.functional.one_hot(labels, classes)
    assert float((strength * residual.T @ x + weight).abs().max()) < 1e-3
    assert float(residual.sum(0).abs().max()) < 1e-4
    if classes > 2:  # of two classes scikit-learn fits one vector, whose penalty is another
        theirs = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x.numpy(), labels.numpy())
        torch.testing.assert_close(probability, torch.as_tensor(theirs.predict_proba(x.numpy())), atol=1e-5, rtol=0)
    else:  # W = ±v/2: ‖W‖² = ‖v‖²/2, that is twice the strength
        theirs = LogisticRegression(C=2 * strength, tol=1e-10, max_iter=10_000).fit(x.numpy(), labels.numpy())
        torch.testing.assert_close(probability, torch.as_tensor(theirs.predict_proba(x.numpy())), atol=1e-5, rtol=0)


@pytest.mark.parametrize("outputs", [2, 1])
def test_the_new_layer_predicts_as_scikit_learn_on_standardised_features(outputs: int) -> None:
    model, split = network(outputs), load("spirals")["balanced"]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    layer = retrain_last_layer(model, split)
    assert layer.out_features == outputs
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    features = model[1](model[0](split.inputs)).detach()
    scaled = StandardScaler().fit_transform(features.double().numpy())
    theirs = LogisticRegression(C=2, tol=1e-10, max_iter=10_000).fit(scaled, split.labels.numpy())
    odds = layer(features).detach()
    ours = odds[:, 0] if outputs == 1 else odds[:, 1] - odds[:, 0]
    torch.testing.assert_close(ours.double(), torch.as_tensor(theirs.decision_function(scaled)), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("outputs", [2, 1])
def test_a_layer_without_bias_is_that_of_scikit_learn_without_intercept(outputs: int) -> None:
    split = load("spirals")["balanced"]
    with seeding(0):
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, outputs, bias=False))
    layer = retrain_last_layer(model, split)
    assert layer.bias is None
    features = model[:2](split.inputs).detach().double()
    scale = features.square().mean(0).sqrt()
    scale[scale == 0] = 1
    scaled = (features / scale).numpy()
    theirs = LogisticRegression(C=2, tol=1e-10, max_iter=10_000, fit_intercept=False).fit(scaled, split.labels.numpy())
    odds = layer(features.float()).detach()
    ours = odds[:, 0] if outputs == 1 else odds[:, 1] - odds[:, 0]
    torch.testing.assert_close(ours.double(), torch.as_tensor(theirs.decision_function(scaled)), atol=1e-3, rtol=1e-3)


def test_without_intercept_the_gradient_of_the_weights_is_zero_and_so_is_the_bias() -> None:
    rng = torch.Generator().manual_seed(0)
    x = 1 + torch.randn(300, 5, generator=rng, dtype=torch.float64)
    labels = (x[:, 0] - x[:, 1] > 0.3).long() + (x[:, 2] > 1.5).long()
    weight, bias = logistic_regression(x, labels, 3, 1.0, intercept=False)
    residual = (x @ weight.T).softmax(1) - nn.functional.one_hot(labels, 3)
    assert float((residual.T @ x + weight).abs().max()) < 1e-3
    assert not bias.any()


def test_with_by_the_fit_is_that_of_as_many_examples_of_each_group() -> None:
    split = load("spirals", conflict=0.2)["test"]
    model, group = network(), split.attributes["group"]
    fewest = int(group.bincount()[group.unique()].min())
    seen: list[int] = []
    hook = model[0].register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    layer = retrain_last_layer(model, split, by="group", rng=torch.Generator().manual_seed(0))
    hook.remove()
    assert sum(seen[1:]) == fewest * len(group.unique()), "after the trial that finds the layer"
    again = retrain_last_layer(model, split, by="group", rng=torch.Generator().manual_seed(0))
    assert torch.equal(layer.weight, again.weight)


def test_what_cannot_be_retrained_is_refused() -> None:
    split = load("spirals")["balanced"]
    with pytest.raises(UsageError, match="has no linear layer"):
        retrain_last_layer(nn.Sequential(nn.ReLU()), split)
    with pytest.raises(UsageError, match="head='x' is not a linear layer"):
        retrain_last_layer(network(), split, head="x")
    with pytest.raises(
        UsageError, match=r"head='0' is not .* with 2 outputs.*It has 0 \(16 outputs\), 3 \(2 outputs\)"
    ):
        retrain_last_layer(network(), split, head="0")
    with pytest.raises(UsageError, match="strength=0"):
        retrain_last_layer(network(), split, strength=0)
    with pytest.raises(DataError, match="two classes or more"):
        retrain_last_layer(network(), split.subset((split.labels == 0).nonzero().flatten()))
