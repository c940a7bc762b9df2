"""A run whose last layer is fitted to a held-out split at its end: it is scikit-learn's, on the run's own features."""

import re
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression

from evenly.data import Splits, load
from evenly.data.own.repeats import Repeated
from evenly.errors import UsageError
from evenly.models import build
from evenly.recipe import Recipe, digest, from_mapping, override
from evenly.records import Run
from evenly.resampling.last_layer import balanced_rows, retrain_last_layer
from evenly.rng import generator
from evenly.training.build import load_data
from evenly.training.checkpoint import save_weights
from evenly.training.comparison import Design, compare
from evenly.training.forecast import forecast
from evenly.training.last_layer import check_last_layer, on_last_layer
from evenly.training.lr_range import range_test
from evenly.training.prediction import load_run
from evenly.training.train import train
from evenly.training.trained_model import kept_epochs, load_trained

SMALL = {
    "data": {"name": "digits", "validation": 0.3},
    "model": {"name": "mlp", "options": {"width": 32}},
    "epochs": 3,
    "batch_size": 64,
    "augment": ["mirror"],
}


def run(runs, **more):
    return train(from_mapping(Recipe, {**SMALL, **more}), runs=runs, device="cpu", pace=0)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return run(runs), run(runs, last_layer="validation")


def test_only_the_last_layer_differs_and_it_is_scikit_learns(pair):
    plain, refitted = (load_file(each.path / "weights.safetensors") for each in pair)
    changed = [name for name in plain if not torch.equal(plain[name], refitted[name])]
    bias_name, weight_name = sorted(plain)[-2:]
    assert sorted(changed) == sorted([weight_name, bias_name])
    trained = load_trained(pair[0])
    layer = [module for module in trained.model.modules() if isinstance(module, torch.nn.Linear)][-1]
    seen = []
    layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().double()))
    split = trained.splits["validation"]
    with torch.no_grad():
        trained.model(split.gather(range(len(split))).float() / 255)
    features = torch.cat(seen).numpy()
    mean, std = features.mean(0), features.std(0)
    std[std == 0] = 1
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit((features - mean) / std, split.labels.numpy())
    weight = peer.coef_ / std
    bias = peer.intercept_ - weight @ mean
    ours = {name: refitted[name].double().numpy() for name in (weight_name, bias_name)}
    assert ours[weight_name] == pytest.approx(weight, rel=1e-3, abs=1e-3)
    # Biases are known up to a constant, which no prediction depends on.
    shift = ours[bias_name] - bias
    assert np.abs(shift - shift.mean()).max() < 1e-2


def test_the_result_is_that_of_the_new_layer_and_leaves_out_the_split_it_was_fitted_to(pair):
    refitted = pair[1]
    trained = load_trained(refitted)
    test = trained.splits["test"]
    with torch.no_grad():
        wrong = trained.model(test.gather(range(len(test))).float() / 255).argmax(1) != test.labels
    summary = refitted.summary()
    assert summary["test.error"] == pytest.approx(float(wrong.double().mean()))
    assert summary["test.error"] != pair[0].summary()["test.error"]
    assert not [key for key in summary if key.startswith("validation.")]
    assert "validation.error" in pair[0].summary()


def test_groups_are_balanced_where_the_split_has_them(tmp_path):
    """The layer of a run is that of `retrain_last_layer` by group, and not that of the split as it is."""
    data = load("spirals", conflict=0.1)
    groups = data["groups"]
    first, second = ((groups.attributes["group"] == value).nonzero().flatten() for value in (0, 1))
    uneven = groups.subset(torch.cat([first, second[: len(first) // 8]]).tolist())
    splits = Splits("spirals", {"train": data.train, "test": data["test"], "validation": uneven})
    settings = {"data": {"name": "spirals"}, "model": {"name": "mlp"}, "epochs": 2, "batch_size": 64}
    layers = []
    for more in ({}, {"last_layer": "validation"}):
        recipe = from_mapping(Recipe, settings | more)
        made = train(recipe, runs=tmp_path, splits=splits, device="cpu", pace=0)
        model = build("mlp", input_shape=data.train.shape, num_classes=2, rng=0)
        model.load_state_dict(load_file(made.path / "weights.safetensors"))
        layers.append(model)
    plain, refitted = layers
    ours = refitted.head.weight
    balanced = retrain_last_layer(plain, uneven, by="group", rng=generator(0, "last layer"))
    assert torch.allclose(ours, balanced.weight, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(ours, retrain_last_layer(plain, uneven).weight, rtol=1e-2, atol=1e-2)


def test_a_network_whose_head_has_no_bias_predicts_as_the_layer_fitted_to_it(tmp_path):
    data = {"name": "spirals", "validation": 0.3}
    settings = {"data": data, "model": {"name": "relu2"}, "epochs": 1, "batch_size": 64}
    plain, refitted = (
        load_trained(train(from_mapping(Recipe, settings | more), runs=tmp_path, device="cpu", pace=0))
        for more in ({}, {"last_layer": "validation"})
    )
    plain.model.head = retrain_last_layer(plain.model, plain.splits["validation"])
    inputs = plain.splits["test"].inputs
    with torch.no_grad():
        assert torch.allclose(plain.model(inputs), refitted.model(inputs), atol=1e-3, rtol=1e-3)


class HeadFirst(torch.nn.Module):
    """A network whose head is declared before its body."""

    def __init__(self, input_shape, num_classes):
        super().__init__()
        self.head = torch.nn.Linear(16, num_classes)
        self.body = torch.nn.Linear(64, 16)

    def forward(self, x):
        return self.head(self.body(x.flatten(1)).relu())


class TwoHeads(torch.nn.Module):
    """A network with the sum of two layers as outputs, of which one begins with zeros."""

    def __init__(self, input_shape, num_classes):
        super().__init__()
        self.easy, self.hard = torch.nn.Linear(64, num_classes), torch.nn.Linear(64, num_classes)
        torch.nn.init.zeros_(self.easy.weight)
        torch.nn.init.zeros_(self.easy.bias)

    def forward(self, x):
        return self.easy(x.flatten(1)) + self.hard(x.flatten(1))


def own(model, runs, **more):
    return run(runs, model={"name": f"{__name__}:{model.__name__}"}, augment=[], epochs=1, **more)


def test_a_head_that_is_not_declared_last_is_the_layer_that_is_fitted(tmp_path):
    plain, refitted = (load_file(own(HeadFirst, tmp_path, **more).path / "weights.safetensors")
                       for more in ({}, {"last_layer": "validation"}))  # fmt: skip
    assert sorted(name for name in plain if not torch.equal(plain[name], refitted[name])) == [
        "head.bias",
        "head.weight",
    ]


def test_a_network_with_two_heads_is_refused_before_training(tmp_path):
    with pytest.raises(UsageError, match=r"TwoHeads: none of its linear layers makes its outputs.*It has easy, hard"):
        own(TwoHeads, tmp_path, last_layer="validation")
    assert not list(tmp_path.glob("*/weights.safetensors"))
    assert not list(tmp_path.glob("*/metrics.jsonl"))


def test_the_summary_has_no_numbers_of_the_layer_that_was_replaced(pair, tmp_path):
    plain, refitted = (each.summary() for each in pair)
    assert {"train.loss", "train.error"} <= plain.keys()
    assert not [key for key in refitted if key.startswith("train.")]
    kept = run(tmp_path, last_layer="validation", record_examples=True)
    trained = load_trained(kept)
    part = trained.splits.train
    with torch.no_grad():
        wrong = trained.model(part.gather(range(len(part))).float() / 255).argmax(1) != part.labels
    assert kept.summary()["train.clean.error"] == pytest.approx(float(wrong.double().mean()))


def test_the_network_of_a_run_that_kept_its_last_epoch_has_the_refitted_layer(tmp_path):
    kept = run(tmp_path, last_layer="validation", keep_epochs=[2, 3])
    final = load_file(kept.path / "weights.safetensors")
    last = kept.path / "checkpoints" / "epoch-0003.safetensors"
    for network in (load_run(kept).model, load_run(last).model, load_trained(kept).model):
        assert all(torch.equal(final[name], value) for name, value in network.state_dict().items())
    assert all(torch.equal(final[name], value) for name, value in load_file(last).items())
    earlier = load_trained(kept, epoch=2).model.state_dict()
    assert not any(torch.equal(final[name], value) for name, value in earlier.items())


def test_a_refitted_layer_counts_in_runs_that_kept_the_one_before_it_beside_the_last_epoch(pair, tmp_path):
    """As earlier versions did, under the same epoch."""
    plain, refitted = pair
    shutil.copytree(refitted.path, folder := tmp_path / refitted.id)
    before = load_file(plain.path / "weights.safetensors")
    save_weights(Run(folder), "checkpoints/epoch-0003.safetensors", before)
    final = load_file(refitted.path / "weights.safetensors")
    for network in (load_run(folder).model, load_trained(Run(folder)).model):
        assert all(torch.equal(final[name], value) for name, value in network.state_dict().items())


def test_a_file_of_another_name_beside_kept_weights_is_no_epoch(pair, tmp_path):
    shutil.copytree(pair[0].path, folder := tmp_path / pair[0].id)
    (folder / "checkpoints").mkdir(exist_ok=True)
    shutil.copy(folder / "weights.safetensors", folder / "checkpoints" / "epoch-best.safetensors")
    assert kept_epochs(Run(folder)) == [3]


def test_the_learning_rate_of_a_recipe_with_a_refitted_layer_can_be_tested(tmp_path):
    recipe = from_mapping(Recipe, {**SMALL, "epochs": 1, "last_layer": "validation"})
    assert any(trial.learned for trial in range_test(recipe, runs=tmp_path, device="cpu").trials)


@pytest.mark.parametrize("split", ["train", "test"])
def test_what_the_network_is_trained_on_or_judged_by_is_refused(split):
    with pytest.raises(UsageError, match=f"last_layer={split}: expected a split that the network was not trained on"):
        Recipe(last_layer=split)


def test_a_split_that_is_not_there_is_refused_before_training(tmp_path):
    small = from_mapping(Recipe, {**SMALL, "data": {"name": "digits"}, "last_layer": "validation"})
    with pytest.raises(UsageError, match=r"digits has no split 'validation'.*--set data.validation=0.2"):
        train(small, runs=tmp_path, device="cpu")
    with pytest.raises(UsageError, match="has no split 'validation'"):
        compare(
            Design(from_mapping(Recipe, {**SMALL, "data": {"name": "digits"}}), ("plain", "dfr"), (0,)), runs=tmp_path
        )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def cloud(tmp_path):
    """Data of one's own with nothing but `x` and `y`."""
    labels = np.arange(120) % 2
    inputs = np.random.default_rng(0).normal(size=(120, 4)) + labels[:, None]
    np.savez(tmp_path / "cloud.npz", x=inputs, y=labels)
    return from_mapping(Recipe, {**SMALL, "data": {"name": str(tmp_path / "cloud.npz")}, "augment": [], "epochs": 1})


def advice(recipe, runs, **options):
    """The settings that a refusal advises; nothing is trained before it."""
    with pytest.raises(UsageError) as caught:
        compare(Design(recipe, ("plain", "dfr"), (0,), **options), runs=runs, device="cpu")
    assert not runs.exists()
    return re.findall(r"--set (\S+)", str(caught.value))


def test_what_is_advised_for_data_without_other_splits_works(cloud, tmp_path):
    advised = override(cloud, advice(cloud, tmp_path / "runs"))
    found = compare(Design(advised, ("plain", "dfr"), (0,)), runs=tmp_path / "runs", device="cpu")
    assert found["split"] == "test"
    assert [method["runs"]["0"]["state"] for method in found["methods"]] == ["done", "done"]


def test_a_split_that_judges_the_layer_fitted_to_it_is_refused_before_training(cloud, tmp_path):
    only = override(cloud, ["data.validation=0.2"])
    advised = override(only, advice(only, tmp_path / "runs"))
    assert "test" in load_data(advised)
    with pytest.raises(UsageError, match="the error is taken on validation too"):
        forecast(Design(only, ("plain", "dfr"), (0,)), runs=tmp_path, device="cpu")
    with pytest.raises(UsageError, match=r"the error is taken on validation too.*--split test"):
        compare(Design(advised, ("plain", "dfr"), (0,), split="validation"), runs=tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()


def test_rows_that_repeat_examples_are_not_advised_to_be_held_out(tmp_path):
    part = load("spirals").train
    splits = Repeated("mine", {"train": part, "test": part})
    recipe = from_mapping(Recipe, {"last_layer": "validation"})
    with pytest.raises(UsageError, match="Give it rows of the split validation in a column `split`"):
        check_last_layer(recipe, splits)
    judged = Repeated("mine", {"train": part, "validation": part})
    with pytest.raises(UsageError, match="Give the data rows of the split test in a column `split`"):
        check_last_layer(recipe, judged, judged_on="validation")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"name": "digits", "validation": 0.3}, "digits has no attribute 'group' there"),
        ({"name": "digit-dominoes"}, "the groups of digit-dominoes are its classes there.* by='easy_present'"),
        ({"name": "digit-dominoes", "options": {"conflict": 0.05}}, r"group '. on .*' .* has \d examples there"),
        ({"name": "digit-dominoes", "options": {"conflict": 0.2}}, None),
    ],
)
def test_where_no_groups_are_balanced_or_few_are_left_that_is_said(data, said):
    recipe = from_mapping(Recipe, {"data": data, "last_layer": "validation"})
    remarks = on_last_layer(recipe, load_data(recipe))
    assert len(remarks) == (said is not None)
    assert said is None or re.search(said, remarks[0])


def test_the_number_of_examples_that_small_groups_leave_is_that_of_the_fit():
    recipe = from_mapping(
        Recipe, {"data": {"name": "digit-dominoes", "options": {"conflict": 0.05}}, "last_layer": "validation"}
    )
    splits = load_data(recipe)
    (remark,) = on_last_layer(recipe, splits)
    assert f"fitted to {len(balanced_rows(splits['validation'], 'group'))} of 288" in remark


def test_a_run_says_once_that_no_groups_are_balanced(tmp_path, caplog):
    run(tmp_path, last_layer="validation", epochs=1)
    assert caplog.text.count("has no attribute 'group'") == 1


def test_it_is_a_method_of_a_comparison(tmp_path, caplog):
    found = compare(Design(from_mapping(Recipe, SMALL), ("plain", "dfr"), (0, 1)), runs=tmp_path, device="cpu")
    assert caplog.text.count("has no attribute 'group'") == 1, "for all seeds together"
    assert found["state"] == "done"
    plain, dfr = found["methods"]
    assert (dfr["name"], dfr["label"]) == ("dfr", "DFR")
    errors = [[row["error"] for row in method["runs"].values()] for method in (plain, dfr)]
    assert all(a != b for a, b in zip(*errors, strict=True))


def test_without_it_a_recipe_has_the_digest_it_always_had():
    assert digest(Recipe()) == digest(Recipe(last_layer=None)) != digest(Recipe(last_layer="validation"))


def test_a_refit_outside_of_training_draws_no_random_numbers_of_the_caller() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    before = torch.get_rng_state()
    retrain_last_layer(network, load("spirals")["balanced"])
    assert torch.equal(before, torch.get_rng_state())
