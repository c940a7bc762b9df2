"""Cures end to end: targeted augmentation, reweighting, balance, going on, and the logit penalty, on digit-dominoes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evenly import rng
from evenly.data import load
from evenly.data.augment import Augmentation, Mirror, PixelNoise
from evenly.data.batches import Batches
from evenly.data.targeted import Targeted
from evenly.errors import UsageError
from evenly.recipe import Data, Model, Optimizer, Recipe, Resampling, Until, override
from evenly.records import Run
from evenly.resampling import multiset
from evenly.resampling.baselines import random_subset
from evenly.training.early import early_recipe
from evenly.training.objective import Objective
from evenly.training.selection import Selection, load_early_weights, second_recipe, select, shorten
from evenly.training.separations import suspect_rows
from evenly.training.train import train
from evenly.training.useful import train_useful

RECIPE = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 32}),
    optimizer=Optimizer(lr=0.05),
    epochs=4,
    batch_size=64,
    evaluate_every=4,
)
UNTIL = Until("epoch", 2)


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The ID of an early run of the recipe, and the folder that holds it."""
    folder = tmp_path_factory.mktemp("runs")
    return train(early_recipe(RECIPE, UNTIL), runs=folder, device="cpu").id, folder


def second(early: tuple[str, Path], method: str, *changes: str, factor: int = 3) -> Recipe:
    return second_recipe(override(RECIPE, changes), early[0], method, factor=factor)


@pytest.mark.parametrize("target", ["hard", "all", "random"])
def test_only_the_examples_of_the_target_are_augmented_and_every_copy_by_itself(
    target: str, early: tuple[str, Path]
) -> None:
    from evenly.training.targets import targeted_augmentation

    data = load("digit-dominoes").train
    recipe = second(early, "useful", "resampling.augment=[noise:0.2]", f"resampling.augment_target={target}")
    picked = select(recipe, runs=early[1], data=data)
    extra = targeted_augmentation(recipe, picked.hard_N, data)
    assert extra is not None
    assert int(extra.target_N.sum()) == (len(data) if target == "all" else int(picked.hard_N.sum()))
    assert torch.equal(extra.target_N, picked.hard_N) == (target == "hard")
    loader = Batches(data, batch_size=64, seed=3, indices=picked.indices, targeted=extra)
    seen: dict[tuple[int, int], torch.Tensor] = {}
    for batch in loader.epoch(1):
        plain = data.inputs[batch.position].float() / 255
        changed = (batch.inputs != plain).flatten(1).any(1)
        assert torch.equal(changed, extra.target_N[batch.position])
        for row, (index, copy) in enumerate(zip(batch.index.tolist(), batch.copy.tolist(), strict=True)):
            seen[index, copy] = batch.inputs[row]
    twice = [index for index, copy in seen if copy == 1 and extra.target_N[index]]
    assert twice
    assert all(not torch.equal(seen[index, 0], seen[index, 1]) for index in twice)


def test_targeted_augmentation_is_the_same_for_any_batch_size_and_point_of_resuming() -> None:
    data = load("digit-dominoes").train
    hard = torch.arange(len(data)) % 3 == 0
    extra = Targeted(Augmentation(PixelNoise(0.2)), hard)
    augment = Augmentation(Mirror())
    small, large = (Batches(data, batch_size=size, seed=0, augment=augment, targeted=extra) for size in (32, 96))
    whole = torch.cat([batch.inputs for batch in small.epoch(2)])
    assert torch.equal(whole, torch.cat([batch.inputs for batch in large.epoch(2)]))
    assert torch.equal(whole[5 * 32 :], torch.cat([batch.inputs for batch in small.epoch(2, start=5)]))
    before = data.inputs.clone()
    assert torch.equal(data.inputs, before)


def test_data_are_not_changed_by_their_augmentation() -> None:
    data = load("digit-dominoes").train
    before = data.inputs.clone()
    everyone = Targeted(Augmentation(PixelNoise(0.3)), torch.ones(len(data), dtype=torch.bool))
    for _ in Batches(data, batch_size=len(data), seed=0, shuffle=False, targeted=everyone).epoch(0):
        pass
    assert torch.equal(data.inputs, before)


@pytest.mark.parametrize(
    ("augment", "target", "words"),
    [
        (Augmentation(Mirror()), torch.ones(862, dtype=torch.bool), "Mirror is done to all examples already"),
        (Augmentation.parse(["resize:8"]), torch.ones(862, dtype=torch.bool), "resizing some examples"),
        (Augmentation(PixelNoise(0.1)), torch.ones(3, dtype=torch.bool), "a boolean for each of the 862 examples"),
    ],
)
def test_what_cannot_be_done_to_some_examples_only_is_refused(
    augment: Augmentation, target: torch.Tensor, words: str
) -> None:
    data = load("digit-dominoes").train
    with pytest.raises(UsageError, match=words):
        Batches(data, batch_size=32, seed=0, augment=Augmentation(Mirror()), targeted=Targeted(augment, target))


def test_normalisation_of_the_chosen_is_refused_before_training_and_left_to_all(tmp_path: Path) -> None:
    recipe = override(RECIPE, ["resampling.augment=[normalise]"])
    with pytest.raises(UsageError, match="normalisation is for all examples: leave it to `augment`"):
        train_useful(recipe, until=UNTIL, runs=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_augmentation_of_the_chosen_is_refused_where_nothing_is_chosen(tmp_path: Path) -> None:
    recipe = override(RECIPE, ["resampling.augment=[noise:0.2]"])
    with pytest.raises(UsageError, match=r"resampling\.augment=\['noise:0\.2'\] is for the examples that resampling"):
        train(recipe, runs=tmp_path, device="cpu")


def test_useful_with_noise_on_the_hard_runs_end_to_end_and_plain_training_stays_plain(tmp_path: Path) -> None:
    recipe = override(RECIPE, ["resampling.augment=[noise:0.2]"])
    rows = train_useful(recipe, until=UNTIL, factor=8, controls=("original", "random"), runs=tmp_path, device="cpu")
    assert [row.method for row in rows] == ["original", "useful", "random"]
    stored = {row.method: Run(tmp_path / row.run).recipe.get("resampling", {}) for row in rows}
    assert "augment" not in stored["original"] or not stored["original"]["augment"]
    assert list(stored["useful"]["augment"]) == ["noise:0.2"]
    plain = train_useful(RECIPE, until=UNTIL, factor=8, controls=("original",), runs=tmp_path, device="cpu")
    assert plain[0].run == rows[0].run, "the control is the run it always was"
    assert plain[1].run != rows[1].run


def test_reweighting_has_mean_one_and_the_gradient_of_copies_up_to_its_scale(early: tuple[str, Path]) -> None:
    data = load("digit-dominoes").train
    copies = select(second(early, "useful"), runs=early[1], data=data)
    weighed = select(second(early, "reweight"), runs=early[1], data=data)
    assert weighed.indices is None
    assert weighed.weights is not None
    assert copies.indices is not None
    assert float(weighed.weights.mean()) == pytest.approx(1, abs=1e-6)
    losses = torch.rand(len(data), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    # A mean over the multiset of copies is the weighted mean over the examples.
    assert float(losses[copies.indices].mean()) == pytest.approx(float((losses * weighed.weights).mean()), rel=1e-6)


def test_balance_shows_the_smaller_cluster_more_often_up_to_the_factor(early: tuple[str, Path]) -> None:
    data = load("digit-dominoes").train
    found = select(second(early, "balance", factor=4), runs=early[1], data=data)
    assert found.indices is not None
    times = found.indices.bincount(minlength=len(data))
    assert int(times.min()) == 1
    assert 1 < int(times.max()) <= 4
    for split in found.separation.splits:
        members = found.separation.labels == split.label
        mean = [float(times[members & (found.separation.hard == hard)].double().mean()) for hard in (False, True)]
        assert (mean[1] > mean[0]) == (split.num_hard < split.num_easy)


def test_going_on_begins_with_the_early_weights_and_takes_the_epochs_that_are_left(
    early: tuple[str, Path], tmp_path: Path
) -> None:
    from evenly import models

    _, folder = early
    run = next(path for path in folder.iterdir() if (path / "weights.safetensors").exists())
    early_run = Run(run)
    recipe = second(early, "useful", "resampling.start=early")
    assert shorten(recipe, taken=2).epochs == 2
    assert shorten(second(early, "useful"), taken=2).epochs == 4
    model = models.build("mlp", input_shape=(1, 16, 8), num_classes=2, rng=torch.Generator().manual_seed(9), width=32)
    load_early_weights(early_run, recipe, model)
    from safetensors.torch import load_file

    kept = load_file(run / "weights.safetensors")
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    with pytest.raises(UsageError, match="has another model"):
        load_early_weights(early_run, replace(recipe, model=Model("mlp", {"width": 8})), model)
    rows = train_useful(
        override(RECIPE, ["resampling.start=early"]), until=UNTIL, controls=(), runs=tmp_path, device="cpu"
    )
    metrics = Run(tmp_path / rows[0].run).metrics()
    assert len(metrics) == 2
    assert json.dumps(metrics[0]["train.error"])


def test_the_logit_penalty_is_half_lambda_times_the_mean_square_norm() -> None:
    outputs = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0, 1])
    plain, held = (Objective("auto", 0.1, penalty)(outputs, labels).mean() for penalty in (0.0, 0.3))
    assert float((held - plain).detach()) == pytest.approx(0.15 * float(outputs.detach().square().sum(1).mean()))
    (gradient,) = torch.autograd.grad(held - plain, outputs)
    torch.testing.assert_close(gradient, 0.3 / 5 * outputs.detach())
    one = torch.tensor([[2.0]])
    assert float(Objective("logistic", 0.0, 0.5)(one, torch.tensor([1]))) == pytest.approx(0.126928 + 1.0, abs=1e-5)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(UsageError, match="among=right is for clusters, and method=misclassified makes none"):
        Resampling("misclassified", 2, "abc", among="right")


NOISY = replace(RECIPE, data=Data("digit-dominoes", {"noise": 0.1}))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The ID of an early run on data with wrong labels, and the folder that holds it."""
    folder = tmp_path_factory.mktemp("noisy")
    return train(early_recipe(NOISY, UNTIL), runs=folder, device="cpu").id, folder


def drawn(noisy: tuple[str, Path], method: str, *, keep_suspects: bool, like: str | None = None) -> Selection:
    recipe = second_recipe(NOISY, noisy[0], method, factor=4, keep_suspects=keep_suspects, like=like)
    return select(recipe, runs=noisy[1], data=load("digit-dominoes", noise=0.1).train)


@pytest.mark.parametrize("method", ["upweight", "reweight"])
def test_examples_that_look_mislabelled_weigh_no_more_than_others_if_they_are_not_to_be_repeated(
    method: str, noisy: tuple[str, Path]
) -> None:
    all_of_them, without = (drawn(noisy, method, keep_suspects=keep).weights for keep in (True, False))
    copies = drawn(noisy, "useful", keep_suspects=False).indices
    assert all_of_them is not None
    assert without is not None
    assert copies is not None
    times = copies.bincount(minlength=len(without)).double()
    assert not torch.equal(all_of_them, without), "there are suspects among the hard examples"
    torch.testing.assert_close(without.double() / without.min(), times / times.min())
    if method == "reweight":
        assert float(without.mean()) == pytest.approx(1, abs=1e-6)


def test_a_random_choice_is_the_draw_it_always_was(noisy: tuple[str, Path]) -> None:
    cure, control = (drawn(noisy, method, keep_suspects=True) for method in ("useful", "random"))
    generator = rng.generator(NOISY.seed, "random upsampling")
    hard_N = random_subset(len(cure.separation), cure.separation.num_hard, rng=generator)
    assert torch.equal(control.separation.hard, hard_N)
    assert torch.equal(control.indices, multiset.expand(multiset.repeats(hard_N, factor=4)))


@pytest.mark.parametrize("keep_suspects", [True, False])
@pytest.mark.parametrize("cure", ["useful", "misclassified", "quantile", "balance"])
def test_a_random_choice_shows_as_many_other_examples_as_often_as_the_cure_it_is_like(
    cure: str, keep_suspects: bool, noisy: tuple[str, Path]
) -> None:
    own = drawn(noisy, cure, keep_suspects=keep_suspects)
    control = drawn(noisy, "random", keep_suspects=keep_suspects, like=None if cure == "useful" else cure)
    times, others = (each.indices.bincount(minlength=len(own.hard_N)) for each in (own, control))
    assert torch.equal(times.sort().values, others.sort().values)
    assert not torch.equal(times, others)
    assert int(control.hard_N.sum()) == int(own.hard_N.sum())
    if not keep_suspects:
        suspects = suspect_rows(own.early, own.separation)
        assert len(suspects) > 0
        assert int(others[suspects].max()) == 1
