"""The loop against a plain one, and what it says when something cannot work."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from evenly import models, rng
from evenly.data import Labelled, Splits, load
from evenly.data.batches import batches
from evenly.errors import DataError, UsageError
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Schedule
from evenly.training.comparison import Design, compare
from evenly.training.divergence import Diverged
from evenly.training.loop import Loop, Metrics
from evenly.training.prediction import load_run
from evenly.training.train import train

SMALL = Recipe(data=Data("digits"), model=Model("mlp", {"width": 32, "dropout": 0.0}), epochs=2, batch_size=128, seed=3)


def plain(recipe: Recipe, *, weights: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """The same recipe in a loop such as anyone writes."""
    data = load(recipe.data.name, seed=recipe.seed).train
    model = models.build(
        recipe.model.name,
        input_shape=data.shape,
        num_classes=data.num_classes,
        rng=rng.generator(recipe.seed, "init"),
        **recipe.model.options,
    )
    chosen = recipe.optimizer
    optimizer = torch.optim.SGD(
        model.parameters(), lr=chosen.lr, momentum=chosen.momentum, weight_decay=chosen.weight_decay
    )
    for epoch in range(recipe.epochs):
        for group in optimizer.param_groups:
            group["lr"] = chosen.lr * (0.1 if epoch >= recipe.epochs / 2 else 1.0)
        for batch in batches(data, batch_size=recipe.batch_size, seed=recipe.seed, epoch=epoch):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(batch.inputs), batch.labels, reduction="none")
            factor = 1.0 if weights is None else weights[batch.position]
            (loss * factor).mean().backward()
            if recipe.ascent.rule == "sam":
                grads = [p.grad.clone() for p in model.parameters()]
                norm = torch.stack([g.norm() for g in grads]).norm()
                saved = [p.detach().clone() for p in model.parameters()]
                with torch.no_grad():
                    for p, g in zip(model.parameters(), grads, strict=True):
                        p += recipe.ascent.rho * g / norm
                optimizer.zero_grad()
                functional.cross_entropy(model(batch.inputs), batch.labels).backward()
                with torch.no_grad():
                    for p, w in zip(model.parameters(), saved, strict=True):
                        p.copy_(w)
            optimizer.step()
    return model.state_dict()


STEPPED = Recipe(**{**vars(SMALL), "schedule": Schedule("step", milestones=(0.5,))})


@pytest.mark.parametrize("rule", ["none", "sam"])
def test_the_loop_is_the_loop_anyone_would_write(rule: str, tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(STEPPED), "ascent": Ascent(rule, 0.05)})
    ours = load_file(train(recipe, runs=tmp_path, device="cpu").path / "weights.safetensors")
    theirs = plain(recipe)
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name], weight, rtol=1e-4, atol=1e-6)


def test_weighted_losses_count_for_each_example_its_own_weight(tmp_path: Path) -> None:
    weights = 1 + (torch.arange(1438) % 3 == 0).float()
    ours = load_file(train(STEPPED, runs=tmp_path, device="cpu", weights=weights).path / "weights.safetensors")
    for name, weight in plain(STEPPED, weights=weights).items():
        torch.testing.assert_close(ours[name], weight, rtol=1e-4, atol=1e-6)


def test_repeated_indices_are_seen_as_often_as_they_stand(tmp_path: Path) -> None:
    indices = torch.cat([torch.arange(1438), torch.arange(100)])
    run = train(SMALL, runs=tmp_path, device="cpu", indices=indices)
    assert run.summary()["examples_seen"] == 2 * 1538


def test_training_may_end_early_when_it_is_enough(tmp_path: Path) -> None:
    run = train(SMALL, runs=tmp_path, device="cpu", enough=lambda history: len(history) == 1)
    assert [row["epoch"] for row in run.metrics()] == [1]


class _Patience:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, history: list[dict[str, float]]) -> bool:
        self.calls += 1
        return self.calls == 1


def test_a_rule_that_counts_begins_anew_and_finds_the_run_again(tmp_path: Path) -> None:
    rule = _Patience()
    first = train(SMALL, runs=tmp_path, device="cpu", enough=rule)
    assert train(SMALL, runs=tmp_path, device="cpu", enough=rule).id == first.id
    other = train(replace(SMALL, seed=1), runs=tmp_path, device="cpu", enough=rule)
    assert [len(run.metrics()) for run in (first, other)] == [1, 1]


def test_a_run_that_ends_between_evaluations_is_evaluated_at_its_end(tmp_path: Path) -> None:
    recipe = replace(SMALL, epochs=5, evaluate_every=5)
    run = train(recipe, runs=tmp_path, device="cpu", enough=lambda history: len(history) == 2)
    assert "test.error" not in run.metrics()[-1]
    every = train(replace(recipe, evaluate_every=1), runs=tmp_path, device="cpu", enough=lambda h: len(h) == 2)
    assert run.summary()["test.error"] == every.summary()["test.error"]


def test_indices_and_weights_may_be_lists(tmp_path: Path) -> None:
    indices, weights = [*range(1438), *range(100)], [1.0] * 1438
    listed = train(SMALL, runs=tmp_path, device="cpu", indices=indices, weights=weights)
    given = {"indices": torch.tensor(indices), "weights": torch.ones(1438)}
    assert train(SMALL, runs=tmp_path, device="cpu", **given).id == listed.id


@pytest.mark.parametrize(
    "weights", [torch.ones(3), torch.ones(3000), -torch.ones(1438), torch.full((1438,), torch.nan)]
)
def test_weights_that_cannot_be_meant_are_refused_before_a_folder_is_made(
    weights: torch.Tensor, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"batches: .*weight"):
        train(SMALL, runs=tmp_path / "runs", device="cpu", weights=weights)
    assert not (tmp_path / "runs").exists()


def test_what_may_change_can_be_given_by_a_generator(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="allow: 'data2' cannot be allowed"):
        train(SMALL, runs=tmp_path, device="cpu", allow=(word for word in ("world", "data2")))
    heard: list[frozenset[str]] = []

    class Heard(Loop):
        def train(self) -> Metrics:
            heard.append(self.allow)
            return super().train()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.training.train.Loop", Heard)
        train(SMALL, runs=tmp_path, device="cpu", allow=(word for word in ("world", "device")))
    assert heard == [{"world", "device"}]


def test_losses_of_examples_are_recorded_where_asked(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(SMALL), "record_examples": True, "keep_epochs": (1,)})
    run = train(recipe, runs=tmp_path, device="cpu")
    recorded = load_file(run.path / "examples" / "epoch-0002.safetensors")
    labels = load("digits").train.labels
    error = (recorded["prediction"] != labels).double().mean().item()
    assert error == pytest.approx(run.metrics()[-1]["train.clean.error"])
    assert recorded["loss"].double().mean().item() == pytest.approx(run.metrics()[-1]["train.clean.loss"])
    assert (run.path / "checkpoints" / "epoch-0001.safetensors").exists()


def test_bf16_channels_last_and_clipping_train_to_nearly_the_same(tmp_path: Path) -> None:
    base = {"data": Data("digits"), "model": Model("convnet"), "epochs": 4, "optimizer": Optimizer(lr=0.05)}
    plain_run = train(Recipe(**base), runs=tmp_path, device="cpu")
    quick = train(Recipe(**base, precision="bf16", channels_last=True, clip_norm=10.0), runs=tmp_path, device="cpu")
    assert abs(plain_run.summary()["test.error"] - quick.summary()["test.error"]) < 0.05


def test_the_global_generator_is_left_as_it_was(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    train(Recipe(**{**vars(SMALL), "model": Model("mlp", {"width": 8})}), runs=tmp_path, device="cpu")
    assert torch.equal(before, torch.get_rng_state())


def test_a_diverging_run_stops_at_once_and_says_where_and_what_to_try(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(SMALL), "optimizer": Optimizer(lr=1e30)})
    with pytest.raises(Diverged, match=r"the loss is (nan|inf) at step \d+ .*Try --lr 0.1, "):
        train(recipe, runs=tmp_path, device="cpu")
    (folder,) = tmp_path.iterdir()
    assert not (folder / "weights.safetensors").exists()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"batch_size": 5000}, "batch_size=5000 is more than the 1438 training examples"),
        ({"model": Model("mpl")}, "no model 'mpl'. Did you mean 'mlp'"),
        ({"model": Model("disentangled")}, "disentangled"),
        ({"optimizer": Optimizer("sdg")}, "no optimizer 'sdg'. Did you mean 'sgd'"),
        ({"optimizer": Optimizer("sgd", options={"beta": 1})}, "sgd has no 'beta'"),
        ({"optimizer": Optimizer("rprop")}, "rprop has none. Set it to 0"),
        ({"optimizer": Optimizer("lbfgs")}, "no optimizer 'lbfgs'"),
        ({"loss": "squared"}, "loss=squared"),
        ({"augment": ("miror",)}, "unknown transform 'miror'"),
        ({"data": Data("digts")}, "no data set 'digts'. Did you mean 'digits'"),
        ({"ascent": Ascent("sam", 0.1, {"m": 7})}, "m=7 does not divide a batch of 128"),
        ({"ascent": Ascent("sam", 0.1, {"evry": 2})}, "has no option .evry.. Did you mean .every."),
    ],
)
def test_what_cannot_work_is_named_before_training_and_leaves_no_folder(
    changes: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=complaint):
        train(Recipe(**{**vars(SMALL), **changes}), runs=tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()


def test_tensorboard_gets_the_numbers_of_the_records(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(SMALL, runs=tmp_path, device="cpu", tensorboard=True)
    events = EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    written = [(event.step, event.value) for event in events.Scalars("test/error")]
    recorded = [(row["epoch"], pytest.approx(row["test.error"])) for row in run.metrics()]
    assert written == recorded


def test_data_that_cannot_be_trained_on_are_refused_and_odd_ones_remarked_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    import numpy as np

    logging.getLogger("evenly").propagate = True  # another test may have run a command, which speaks to stderr itself
    x = np.random.default_rng(0).normal(size=(21, 4)).astype(np.float32)
    np.savez(tmp_path / "nan.npz", inputs=np.where(x > 2, np.nan, x), labels=np.arange(21) % 2)
    np.savez(tmp_path / "lone.npz", inputs=x, labels=np.array([0, 1] * 10 + [2]))
    recipe = Recipe(model=Model("mlp", {"width": 4}), epochs=1, batch_size=7, data=Data(str(tmp_path / "lone.npz")))
    with pytest.raises(DataError, match=r"(?i)finite|nan"):
        train(Recipe(**{**vars(recipe), "data": Data(str(tmp_path / "nan.npz"))}), runs=tmp_path / "r", device="cpu")
    with caplog.at_level(logging.WARNING, logger="evenly"):
        assert train(recipe, runs=tmp_path / "r", device="cpu").state == "done"
    assert "one" in caplog.text


def test_weights_of_one_change_nothing_also_where_sam_divides_the_batch(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(SMALL), "ascent": Ascent("sam", 0.05, {"m": 32}), "drop_last": True})
    plain_run, weighted = (
        load_file(train(recipe, runs=tmp_path / name, device="cpu", weights=w).path / "weights.safetensors")
        for name, w in (("plain", None), ("weighted", torch.ones(1438)))
    )
    for name, weight in plain_run.items():
        torch.testing.assert_close(weight, weighted[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("pace", [float("nan"), -5.0])
def test_a_pace_that_is_no_time_is_refused_before_a_folder_is_made(pace: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pace = .* seconds between checkpoints"):
        train(Recipe(data=Data("parity", {"dim": 5}), epochs=1), runs=tmp_path / "runs", device="cpu", pace=pace)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_another_process_ends_meanwhile_is_found_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), model=Model("meanwhile:network"), epochs=1, batch_size=50)
    begun = []

    def network(num_classes: int) -> nn.Module:
        if not begun:  # after the first look at the folder, and before the lock is taken
            begun.append(True)
            train(recipe, runs=tmp_path, device="cpu")
        return nn.Sequential(nn.Flatten(), nn.Linear(5, num_classes))

    module = ModuleType("meanwhile")
    module.network = network  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "meanwhile", module)
    run = train(recipe, runs=tmp_path, device="cpu")
    assert run.state == "done"
    assert len(run.metrics()) == 1


def tiny(**changes: torch.Tensor) -> Labelled:
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    return replace(Labelled(x, torch.arange(20) % 2, ("a", "b")), **changes)


SPLITS = {
    "nan": ({"test": lambda: tiny(inputs=torch.full((20, 3), torch.nan))}, "20 inputs of 'test' hold NaN or infinity"),
    "empty": ({"test": lambda: tiny().subset([])}, "the split 'test' is empty"),
    "absent": ({"train": lambda: tiny(labels=torch.zeros(20).long()), "test": tiny}, "class 'b' has no training"),
    "shape": (
        {"test": lambda: tiny(inputs=torch.zeros(20, 4))},
        "inputs of 'test' have shape 4 and those of 'train' 3",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", SPLITS)
def test_data_given_in_python_are_checked_as_those_that_are_loaded(fault: str, tmp_path: Path) -> None:
    parts, words = SPLITS[fault]
    splits = Splits("mine", {"train": tiny(), **{name: make() for name, make in parts.items()}})
    recipe = Recipe(data=Data("mine"), model=Model("mlp", {"width": 4}), epochs=1, batch_size=10)
    with pytest.raises(DataError, match=words):
        train(recipe, splits=splits, runs=tmp_path, device="cpu")
    with pytest.raises(DataError, match=words):
        compare(Design(recipe, ("plain", "sam"), (0, 1)), splits=splits, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_images_that_are_resized_alike_may_differ_in_size(tmp_path: Path) -> None:
    def pictures(size: int) -> Labelled:
        pixels = torch.randint(256, (20, 1, size, size), generator=torch.Generator().manual_seed(0)).byte()
        return Labelled(pixels, torch.arange(20) % 2, ("a", "b"))

    splits = Splits("mine", {"train": pictures(10), "test": pictures(12)})
    recipe = Recipe(data=Data("mine"), model=Model("mlp", {"width": 4}), epochs=1, batch_size=10, augment=("resize:8",))
    assert train(recipe, splits=splits, runs=tmp_path, device="cpu").state == "done"


def test_another_default_precision_of_torch_trains_the_same_network(tmp_path: Path) -> None:
    recipe = replace(SMALL, epochs=1)
    expected = load_file(train(recipe, runs=tmp_path / "one", device="cpu").path / "weights.safetensors")
    torch.set_default_dtype(torch.float64)
    try:
        run = train(recipe, runs=tmp_path / "two", device="cpu")
        assert torch.get_default_dtype() == torch.float64
        assert len(load_run(run).predict(torch.zeros(2, 1, 8, 8))) == 2
    finally:
        torch.set_default_dtype(torch.float32)
    found = load_file(run.path / "weights.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_one_change_may_be_allowed_by_its_name(tmp_path: Path) -> None:
    recipe = replace(SMALL, epochs=1)
    assert train(recipe, runs=tmp_path, device="cpu", allow="world").state == "done"
    with pytest.raises(UsageError, match="'wrold' cannot be allowed to change"):
        train(recipe, runs=tmp_path, device="cpu", allow="wrold")
