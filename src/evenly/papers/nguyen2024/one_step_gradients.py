"""Theorem 3.5: one step of SAM beside one step of GD on data whose difficult feature is k times as strong.

Shapes: J filters, D dimensions of a patch, R = 3N patches, N examples.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evenly.data.catalogue import load
from evenly.data.labelled import Labelled
from evenly.models import build
from evenly.papers.experiment import Context, PartResult
from evenly.papers.nguyen2024.feature_growth import gradient, with_assumed_alignments
from evenly.rng import key

MOMENTS = (0.0, 0.25, 0.5, 0.75)  # parts of the time until the easy feature is learned
STRONGER = 1.5


class Setting(NamedTuple):
    """A data set with difficult patches of strength 1: any strength is one multiplication away."""

    easy_ND: Tensor
    hard_ND: Tensor
    noise_ND: Tensor
    y_N: Tensor
    v_e: Tensor
    v_d: Tensor

    def gradient(self, weight_JD: Tensor, beta: float, *, rho: float = 0.0) -> Tensor:
        """∇L on D(1, β, α) at the weights, or with ρ at those that SAM looks at."""
        x_NPD = torch.stack([self.easy_ND, beta * self.hard_ND, self.noise_ND], dim=1)
        x_KRD, y_KN = x_NPD.flatten(0, 1)[None], self.y_N[None]
        g_JD = gradient(weight_JD[None], x_KRD, y_KN)[0][0]
        if rho == 0:
            return g_JD
        return gradient((weight_JD + rho * g_JD / g_JD.norm())[None], x_KRD, y_KN)[0][0]

    def difficult_part(self, g_JD: Tensor) -> float:
        """The part of a normalised gradient that lies along the difficult feature."""
        return float((g_JD @ self.v_d).norm() / g_JD.norm())


def factor(weight_D: Tensor, setting: Setting, *, beta: float, alpha: float, rho_t: float) -> float:
    """k³ᐟ² of eq. 95; below zero where ρᵗ is too large for it to mean anything."""
    easy, hard = float(weight_D @ setting.v_e), float(weight_D @ setting.v_d)
    return (1 - 3 * rho_t * beta**3 * hard) / (1 - 3 * rho_t * alpha * easy)


def gradient_statistics(
    context: Context,
    *,
    seeds: Sequence[int],
    name: str,
    beta_hard: float,
    num: int = 10_000,
    lr: float = 0.1,
    rho: float = 0.02,
    num_filters: int = 40,
) -> PartResult:
    """The three statements of theorem 3.5 at four moments of early training, averaged or at the worst of them.

    `NAME.gd`, `.sam` are the parts of the normalised gradients along the difficult feature, `.stronger` those with it
    1.5 times as strong. `NAME.off` is how far the ratio of GD's coefficients on D(β_e, kβ_d, α) is from SAM's, relative
    to it, with one filter and no noise; `NAME.literal` the percentage of moments at which k is right to 1% if ρᵗ is
    taken from the gradient of the loss itself. `NAME.cosine` is between the gradients of GD and SAM with many filters,
    `NAME.best` with the best k, and `NAME.closed` the part of the distance 1 − cosine that the best k closes.
    """
    values: dict[str, dict[int, float]] = {}
    for seed in seeds:
        many, one = (_weights_at_moments(seed, beta_hard, num, lr, rho, filters=n) for n in (num_filters, 1))
        each_moment = [_with_many_filters(setting, weight_JD, beta_hard, rho) for setting, weight_JD in many]
        numbers = {what: sum(at[what] for at in each_moment) / len(each_moment) for what in each_moment[0]}
        numbers["closed"] = (numbers["best"] - numbers["cosine"]) / (1 - numbers["cosine"])
        errors = [_with_one_filter(setting, weight_JD, beta_hard, rho) for setting, weight_JD in one]
        numbers["off"] = max(error for error, _ in errors)
        numbers["literal"] = 100 * sum(right for _, right in errors) / len(errors)
        for what, number in numbers.items():
            values.setdefault(f"{name}.{what}", {})[seed] = number
    return PartResult(values)


def _with_many_filters(setting: Setting, weight_JD: Tensor, beta: float, rho: float) -> dict[str, float]:
    gd, sam = setting.gradient(weight_JD, beta), setting.gradient(weight_JD, beta, rho=rho)
    return {
        "gd": setting.difficult_part(gd),
        "sam": setting.difficult_part(sam),
        "gd.stronger": setting.difficult_part(setting.gradient(weight_JD, STRONGER * beta)),
        "sam.stronger": setting.difficult_part(setting.gradient(weight_JD, STRONGER * beta, rho=rho)),
        "cosine": _cosine(gd, sam),
        "best": max(_cosine(setting.gradient(weight_JD, float(k) * beta), sam) for k in torch.linspace(0.8, 2.0, 49)),
    }


def _with_one_filter(setting: Setting, weight_JD: Tensor, beta: float, rho: float) -> tuple[float, bool]:
    """How far eq. 96 is off with its own gradient (84), and whether it is right with the loss's."""
    alpha = float((setting.easy_ND.norm(dim=1) > 0).double().mean())
    simple_D = 3 * (beta**3 * (weight_JD @ setting.v_d) ** 2)[:, None] * setting.v_d
    simple_D = simple_D + 3 * (alpha * (weight_JD @ setting.v_e) ** 2)[:, None] * setting.v_e
    sam = _ratio(setting, setting.gradient(weight_JD, beta, rho=rho))
    errors = []
    for length in (float(simple_D.norm()), float(setting.gradient(weight_JD, beta).norm())):
        power = factor(weight_JD[0], setting, beta=beta, alpha=alpha, rho_t=rho / length)
        if power <= 0:
            errors.append(float("inf"))
            continue
        errors.append(abs(_ratio(setting, setting.gradient(weight_JD, power ** (2 / 3) * beta)) / sam - 1))
    return errors[0], errors[1] < 0.01


def _ratio(setting: Setting, g_JD: Tensor) -> float:
    return float((g_JD @ setting.v_d) / (g_JD @ setting.v_e))


def _cosine(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum() / (a.norm() * b.norm()))


def _weights_at_moments(
    seed: int, beta: float, num: int, lr: float, rho: float, *, filters: int
) -> list[tuple[Setting, Tensor]]:
    """The weights of GD at four moments until the easy feature is learned; one filter goes without noise."""
    noise = 0.0 if filters == 1 else 0.125
    drawn = load("patches", seed=seed, num_train=num, num_test=2, beta_hard=beta, noise=noise, orthogonal_noise=True)
    setting = _setting(drawn.train, noise)
    options: dict[str, Any] = {"num_filters": filters, "bias": False, "single_logit": True}
    model = build("cubic", input_shape=(3, 50), num_classes=2, rng=key(seed, "init"), **options).double()
    weight_JD = with_assumed_alignments(model, drawn.train, rho).get_parameter("filters.weight").detach().clone()
    weights = [weight_JD.clone()]
    while float((weight_JD @ setting.v_e).max()) < 0.5 and len(weights) < 2000:
        weight_JD -= lr * setting.gradient(weight_JD, beta)
        weights.append(weight_JD.clone())
    return [(setting, weights[int(part * (len(weights) - 1))]) for part in MOMENTS]


def _setting(data: Labelled, noise: float) -> Setting:
    """The patches of each kind: they are shuffled, and the easy and the difficult one lie along v_e and v_d."""
    x_NPD, y_N = data.gather(range(len(data))).double(), (2.0 * data.labels - 1).double()
    v_e, v_d = (data.planted[name].double() for name in ("easy", "hard"))
    easy_ND = (x_NPD @ v_e).sum(1)[:, None] * v_e
    noise_ND = x_NPD.sum(1) - easy_ND - (x_NPD @ v_d).sum(1)[:, None] * v_d
    return Setting(easy_ND, y_N[:, None] * v_d, noise_ND if noise else torch.zeros_like(noise_ND), y_N, v_e, v_d)
