"""The linear model of a recipe's optimizer: what is read, and what is refused by name with the nearest that is not."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from evenly.curvature import block_gram
from evenly.data import Labelled
from evenly.diagnostics.measurement_data import even_part, random_part
from evenly.errors import UsageError
from evenly.recipe import Ascent, Optimizer, Recipe
from evenly.stability import Problem, mean_square_threshold
from evenly.stability.batch_gradients import mean_gradient_norm, mean_square_gradient
from evenly.stability.recipe_method import method_of
from evenly.stability.run_thresholds import run_report
from evenly.stability.scaled_model import ScaledModel


def test_momentum_decay_rule_radius_and_batch_are_those_of_the_recipe() -> None:
    recipe = Recipe(
        optimizer=Optimizer(momentum=0.8, nesterov=True, weight_decay=0.01), ascent=Ascent("sam", 0.2, {"m": 16}),
        batch_size=32,
    )  # fmt: skip
    method = method_of(recipe)
    assert method.name == "SAM ρ=0.2 on groups of 16 with SGD, Nesterov momentum 0.8, weight decay 0.01"
    assert method.settings == {
        "momentum": 0.8, "nesterov": True, "dampening": 0.0, "weight_decay": 0.01, "sampling": "without",
        "ascent": "batch", "m": 16,
    }  # fmt: skip
    assert (method.rho, method.batch) == (0.2, 32)


def test_unnormalised_sam_needs_no_gradient_norm() -> None:
    method = method_of(Recipe(ascent=Ascent("unnormalised", 0.3)))
    assert method.rho is None
    assert method.settings["rho_over_alpha"] == 0.3


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (Recipe(optimizer=Optimizer("rmsprop")), "used rmsprop.*--optimizer adamw"),
        (Recipe(optimizer=Optimizer("asgd", momentum=0)), "used asgd.*--optimizer sgd"),
        (Recipe(ascent=Ascent("gsam")), "'gsam'.*--ascent sam"),
        (Recipe(ascent=Ascent("lsam")), "'lsam'.*--ascent sam"),
        (Recipe(ascent=Ascent("sam", 0.1, {"every": 5})), "every=5.*--ascent sam"),
        (Recipe(ascent=Ascent("sam", 0.1, {"adaptive": True})), "adaptive=True.*--ascent sam"),
        (Recipe(ascent=Ascent("sam", 0.1, {"where": "head*"})), r"where=head\*.*--ascent sam"),
        (Recipe(ascent=Ascent("sam", 0.1, {"weight_decay": 0.01})), "weight_decay=0.01.*--ascent sam"),
        (Recipe(optimizer=Optimizer("adamw"), ascent=Ascent("sam", 0.1)), "SAM ρ=0.1.*AdamW.*--ascent none"),
        (Recipe(optimizer=Optimizer("adam"), ascent=Ascent("usam", 0.1)), "SAM ρ=0.1.*Adam.*--ascent none"),
    ],
)
def test_a_method_without_an_answer_is_refused_by_name_with_the_nearest(recipe: Recipe, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        method_of(recipe)


def test_a_radius_that_changed_over_training_is_said() -> None:
    method = method_of(Recipe(ascent=Ascent("sam", 0.2, schedule="linear", rho_end=0.05)))
    assert any("began with 0.2 and went to 0.05 (linear)" in note for note in method.notes)


def test_options_that_change_nothing_are_no_other_method() -> None:
    plain = {"every": 1, "fraction": 1.0, "adaptive": False, "same_dropout": True}
    assert method_of(Recipe(ascent=Ascent("sam", 0.1, plain))).rho == 0.1


def test_the_nearest_answers_when_it_is_asked_for() -> None:
    method = method_of(
        Recipe(optimizer=Optimizer("rmsprop"), ascent=Ascent("gsam", 0.1)), optimizer="sgd", ascent="sam"
    )
    assert method.name.startswith("SAM ρ=0.1 on its own batch with SGD")
    assert any("it is judged as sgd" in note for note in method.notes)


def test_sam_with_adam_is_judged_without_its_ascent_on_request() -> None:
    recipe = Recipe(optimizer=Optimizer("adamw", weight_decay=0), ascent=Ascent("sam", 0.1))
    assert method_of(recipe, ascent="none").name == "AdamW, beta1 0.9, second moments frozen"
    assert method_of(recipe, optimizer="sgd").name.startswith("SAM ρ=0.1 on its own batch with SGD")


def test_sgd_of_the_rescaled_weights_is_not_sam_with_adam() -> None:
    """Why it is refused: on a quadratic, frozen Adam with SAM diverges at 2(1 + β)/((1 − β)λmax(D⁻¹H(I + cH)))."""
    h, d, c = torch.diag(torch.tensor([1.0, 4.0])).double(), torch.tensor([4.0, 0.25]).double(), 2.0
    h[0, 1] = h[1, 0] = 0.5
    step = torch.diag(1 / d) @ h @ (torch.eye(2).double() + c * h)
    threshold = 3.8 / (0.1 * float(torch.linalg.eigvals(step).real.max()))
    rescaled = Problem.from_dense((h / d.sqrt() / d.sqrt()[:, None])[None])
    computed = mean_square_threshold(
        rescaled, batch=1, sampling="without", rho_over_alpha=c, ascent="batch", momentum=0.9, dampening=0.9
    )
    assert computed < 0.5 * threshold

    def norm_after(lr: float) -> float:
        w, velocity = torch.ones(2).double(), torch.zeros(2).double()
        for _ in range(3000):
            velocity = 0.9 * velocity + 0.1 * h @ (w + c * h @ w)
            w = w - lr * velocity / d
        return float(w.norm())

    assert norm_after(0.98 * threshold) < 1e-3 < 1e3 < norm_after(1.02 * threshold)


def test_a_ratio_needs_sam_and_stands_in_the_name() -> None:
    plain = Recipe(optimizer=Optimizer(momentum=0, weight_decay=0))
    with pytest.raises(UsageError, match=r"--ratio 0.3 is ρ/α of SAM.*'none'.*--ascent sam"):
        method_of(plain, ratio=0.3)
    with pytest.raises(UsageError, match=r"no ρ to judge it by.*--ratio"):
        method_of(plain, ascent="sam")
    method = method_of(plain, ascent="sam", ratio=0.3)
    assert method.name == "SAM ρ/α=0.3 on its own batch with SGD"
    model, data = toy()
    rng = torch.Generator().manual_seed(0)
    report = run_report(model, data, [data], replace(method, batch=8), lr=0.1, rng=rng, loss="squared")
    assert any("reshuffled epochs have another threshold" in note for note in report["notes"]) == (len(data) > 8)
    assert list(report["methods"]) == [method.name, "plain SGD"]
    own, sgd = report["methods"].values()
    by_hand = Problem.from_factors(data.inputs)
    settings: Any = {"batch": 8, "sampling": "without"}
    exact = mean_square_threshold(by_hand, rho_over_alpha=0.3, ascent="batch", **settings)
    assert own["eta_exact"] == pytest.approx(exact, rel=1e-9)
    assert own["eta_exact"] < sgd["eta_exact"]


def test_samples_of_imbalanced_data_give_the_threshold_of_all() -> None:
    """A rare class of large inputs: equally many of each class would make the threshold several times too low."""
    rng = torch.Generator().manual_seed(1)
    labels = (torch.arange(2000) < 200).long()
    x = torch.randn(2000, 3, generator=rng, dtype=torch.float64) * (1 + 3 * labels[:, None])
    model, data = toy()[0], Labelled(x, labels, ("common", "rare"))
    method = method_of(Recipe(optimizer=Optimizer(momentum=0, weight_decay=0), batch_size=50))
    parts = [random_part(data, 200, torch.Generator().manual_seed(seed)) for seed in range(8)]
    report = run_report(model, data, parts, method, lr=0.1, rng=rng, loss="squared")["methods"]["SGD"]
    exact = mean_square_threshold(Problem.from_factors(x), batch=50, sampling="without")
    assert report["eta_exact"] == pytest.approx(exact, rel=0.2)
    even = [even_part(data, 200, torch.Generator().manual_seed(0))]
    biased = run_report(model, data, even, method, lr=0.1, rng=rng, loss="squared")["methods"]["SGD"]["eta_exact"]
    assert biased < 0.5 * exact
    shares = [float(part.labels.double().mean()) for part in parts]
    assert sum(shares) / 8 == pytest.approx(0.1, abs=0.03)


def toy(num: int = 40) -> tuple[nn.Module, Labelled]:
    rng = torch.Generator().manual_seed(0)
    model = nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.3, -0.2, 0.5]]))
    x = torch.randn(num, 3, generator=rng, dtype=torch.float64)
    return model, Labelled(x, torch.arange(num) % 2, ("a", "b"))


def test_the_mean_norm_and_square_of_batch_gradients_are_those_of_plain_loops() -> None:
    model, data = toy(6)
    x, y = data.inputs, 2.0 * data.labels - 1
    gradients = (x @ model.weight.detach()[0] - y)[:, None] * x
    pairs = torch.combinations(torch.arange(6), 2)
    means = gradients[pairs].mean(1)
    found = mean_gradient_norm(model, data, batch=2, rng=torch.Generator().manual_seed(1), loss="squared", num=4000)
    assert found == pytest.approx(float(means.norm(dim=1).mean()), rel=0.03)
    squares = mean_square_gradient(model, data, batch=6, rng=torch.Generator().manual_seed(1), loss="squared", num=2)
    torch.testing.assert_close(squares, gradients.mean(0).square())


@pytest.mark.parametrize("recipe", [
    Recipe(optimizer=Optimizer(momentum=0, weight_decay=0)), Recipe(ascent=Ascent("sam", 0.1)),
    Recipe(optimizer=Optimizer("adamw")),
])  # fmt: skip
def test_a_batch_with_replacement_may_be_larger_than_the_data(recipe: Recipe) -> None:
    model, data = toy(6)
    method = replace(method_of(recipe), batch=4000)
    method.settings["sampling"] = "with"
    rng = torch.Generator().manual_seed(0)
    report = run_report(model, data, [data], method, lr=0.1, rng=rng, loss="squared")
    if report["mean_gradient_norm"] is not None:  # so large a batch has nearly the gradient of all examples
        assert report["mean_gradient_norm"] == pytest.approx(report["gradient_norm"], rel=0.05)
    assert next(iter(report["methods"].values()))["eta_exact"] > 0
    assert any("the papers' criteria are left out" in note.lower() for note in report["notes"])
    assert any("independent draws with replacement" in note for note in report["notes"])


def test_a_preconditioned_step_is_a_plain_step_of_the_scaled_model() -> None:
    model, data = toy()
    scale = torch.tensor([4.0, 0.25, 1.0], dtype=torch.float64)
    gram = block_gram(ScaledModel(model, scale), data.inputs)
    torch.testing.assert_close(gram, (data.inputs / scale) @ data.inputs.T)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_a_report_is_the_threshold_by_hand(name: str) -> None:
    model, data = toy()
    options: dict[str, Any] = {"eps": 0.1} if name == "adamw" else {}
    recipe = Recipe(optimizer=Optimizer(name, weight_decay=0.02, options=options), batch_size=8)
    rng = torch.Generator().manual_seed(3)
    report = run_report(model, data, [data], method_of(recipe), lr=0.1, rng=rng, loss="squared")
    method = next(iter(report["methods"].values()))
    if name == "sgd":
        problem = Problem.from_factors(data.inputs)
        by_hand = mean_square_threshold(problem, batch=8, sampling="without", momentum=0.9, weight_decay=0.02)
    else:
        rng = torch.Generator().manual_seed(3)
        scale = mean_square_gradient(model, data, batch=8, rng=rng, loss="squared").sqrt() + 0.1
        by_hand = mean_square_threshold(
            Problem.from_factors(data.inputs / scale.sqrt()), batch=8, sampling="without", momentum=0.9, dampening=0.9,
            weight_decay=0.02, decoupled=True,
        )  # fmt: skip
    assert method["eta_exact"] == pytest.approx(by_hand, rel=1e-9)


def test_a_part_has_the_noise_of_the_whole_set() -> None:
    """c₂ = (n − B)/(B(n − 1)) with the whole set's n: a part of the data doubled is the data."""
    model, data = toy()
    twice = Labelled(data.inputs.repeat(2, 1), data.labels.repeat(2), data.classes)
    recipe = Recipe(optimizer=Optimizer(momentum=0, weight_decay=0), batch_size=50)
    rng = torch.Generator().manual_seed(0)
    part = run_report(model, twice, [data], method_of(recipe), lr=0.1, rng=rng, loss="squared")
    whole = run_report(model, twice, [twice], method_of(recipe), lr=0.1, rng=rng, loss="squared")
    assert part["methods"]["SGD"]["eta_exact"] == pytest.approx(whole["methods"]["SGD"]["eta_exact"], rel=1e-9)
    assert part["methods"]["SGD"]["criteria"][1]["eta"] == pytest.approx(whole["methods"]["SGD"]["criteria"][1]["eta"])
