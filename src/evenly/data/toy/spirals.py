"""Springer et al. (2024), appendix E: a line that is easy to learn beside a spiral that is not.

Shapes: N examples, 2 coordinates per feature.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from evenly.data.labelled import Labelled
from evenly.data.planted import CONTRADICTS, LACKS, RELATIONS, Shares, add_groups, spawn_generator
from evenly.data.splits import Splits
from evenly.data.toy.counts import require_counts
from evenly.errors import UsageError

SCALE_EASY, SCALE_HARD = 2.0, 0.25


def spirals(
    *,
    rng: torch.Generator,
    num_train: int = 300,
    num_test: int = 2_000,
    chi: float = 360.0,
    literal: bool = False,
    label_noise: float = 0.0,
    gaussian_noise: float = 0.0,
    dropout_noise: float = 0.0,
    noise_on: Literal["both", "hard"] = "both",
    alpha: float | None = None,
    conflict: float = 0.0,
    noise: float = 0.0,
    size: int | None = None,
) -> Splits:
    """Inputs x = [x_easy, x_hard] in R⁴: each half alone tells the class; χ is the rotation of the spiral in degrees.

    x_easy = 2·[z, z] with z ~ U(0, 1)·y, and x_hard = 0.25·y·s with s = [−z cos z, z sin z] + U([0, ½]²),
    z = √u · 2πχ/360. `literal` draws the spiral as the appendix prints it instead: its branches are mirror
    images that cross, so that the feature is not predictive.

    Noise as in eq. 45: each feature is flipped with probability `label_noise`, set to 0 with probability
    `dropout_noise`, and `gaussian_noise`·N(0, I) is added; on both features or only on the hard one. It is part
    of every split but `balanced`, which is clean and has the two features independent of each other; its label is
    the class of the hard one.

    Attributes: `easy` and `hard`, the class each feature was drawn for, and `easy_present`, `hard_present`.

    Beyond the appendix, `alpha` is the share of examples whose line agrees with the label, `conflict` the share whose
    line is that of the other class (the rest has none, before noise is added), `noise` the share of wrong training
    labels and `size` the number of training examples, drawn evenly over classes. Any of them brings the attributes
    `easy_agrees`, `group` and, in training, `label_noisy`, and the split `groups`: clean, with a line that agrees,
    contradicts and is missing equally often.

    >>> splits = spirals(rng=torch.Generator().manual_seed(0))
    >>> list(splits), splits.train.shape
    (['train', 'test', 'balanced'], (4,))
    """
    require_counts(4, num_train=num_train, num_test=num_test)
    for name, value in (("label_noise", label_noise), ("dropout_noise", dropout_noise)):
        if not 0 <= value <= 1:
            raise UsageError(f"{name} = {value} is a probability: give a number from 0 to 1.")
    if gaussian_noise < 0:
        raise UsageError(f"gaussian_noise = {gaussian_noise} is a standard deviation: give 0 or more.")
    if chi <= 0:
        raise UsageError(f"chi = {chi} is the rotation of the spiral in degrees: give a positive number.")
    if noise_on not in ("both", "hard"):
        raise UsageError(f"noise_on = {noise_on!r}: give 'both' or 'hard'.")

    def noisy(x_N2: Tensor) -> tuple[Tensor, Tensor]:
        flip_N = 1 - 2 * _chance(len(x_N2), label_noise, rng)
        keep_N = 1 - _chance(len(x_N2), dropout_noise, rng)
        jitter_N2 = gaussian_noise * torch.randn(x_N2.shape, generator=rng)
        return jitter_N2 + (flip_N * keep_N)[:, None] * x_N2, keep_N.long()

    shares = Shares(alpha, conflict, noise, size)
    planted = shares.is_planted or shares.agreeing_share < 1
    extra = spawn_generator(rng, "planted")

    def draw(num: int, *, clean: bool = False, relation_N: Tensor | None = None) -> Labelled:
        hard_N = torch.randint(2, (num,), generator=rng)
        if relation_N is None:
            relation_N = shares.relations(torch.rand(num, generator=extra))
        easy_N = torch.where(relation_N == CONTRADICTS, 1 - hard_N, hard_N)
        x_easy_N2 = line(2 * easy_N - 1, rng=rng) * (relation_N != LACKS)[:, None]
        x_hard_N2 = spiral(2 * hard_N - 1, chi=chi, literal=literal, rng=rng)
        easy_kept_N = hard_present_N = torch.ones(num, dtype=torch.int64)
        if not clean:
            if noise_on == "both":
                x_easy_N2, easy_kept_N = noisy(x_easy_N2)
            x_hard_N2, hard_present_N = noisy(x_hard_N2)
        return Labelled(
            torch.cat([x_easy_N2, x_hard_N2], dim=1),
            hard_N,
            ("-1", "+1"),
            attributes={
                "easy": easy_N,
                "hard": hard_N,
                "easy_present": easy_kept_N * (relation_N != LACKS),
                "hard_present": hard_present_N,
            },
            values={"easy_present": ("absent", "present"), "hard_present": ("absent", "present")},
        )

    parts = {"train": draw(num_train), "test": draw(num_test)}
    parts["balanced"] = draw(num_test, clean=True, relation_N=torch.arange(num_test) % 2)
    if not planted:
        return Splits("spirals", parts)
    parts["groups"] = draw(num_test, clean=True, relation_N=torch.arange(num_test) % len(RELATIONS))
    parts = {split: add_groups(part, ("-1", "+1")) for split, part in parts.items()}
    return Splits("spirals", {**parts, "train": shares.finish(parts["train"], rng=extra)})


def line(sign_N: Tensor, *, rng: torch.Generator) -> Tensor:
    """The easy feature, eqs. 41–42: 2·[z, z] with z uniform between 0 and the sign.

    >>> x = line(torch.tensor([1, -1]), rng=torch.Generator().manual_seed(0))
    >>> (x[0] > 0).all().item(), (x[1] < 0).all().item()
    (True, True)
    """
    z_N1 = (torch.rand(len(sign_N), generator=rng) * sign_N)[:, None]
    return SCALE_EASY * z_N1.expand(-1, 2)


def spiral(sign_N: Tensor, *, chi: float, literal: bool = False, rng: torch.Generator) -> Tensor:
    """The hard feature, eqs. 43–44 as the two-spirals generator has them, or as the appendix prints them.

    The generator's second branch is the point reflection of the first, and the noise is added before the scale.

    >>> plus = spiral(torch.ones(5), chi=360, rng=torch.Generator().manual_seed(0))
    >>> minus = spiral(-torch.ones(5), chi=360, rng=torch.Generator().manual_seed(0))
    >>> torch.equal(plus, -minus)
    True
    """
    num = len(sign_N)
    z_N = torch.rand(num, generator=rng).sqrt() * (2 * math.pi * chi / 360)
    noise_N2 = 0.5 * torch.rand(num, 2, generator=rng)
    if literal:
        z_N = z_N * sign_N
    curve_N2 = torch.stack([-z_N * z_N.cos(), z_N * z_N.sin()], dim=1)
    if literal:
        return SCALE_HARD * curve_N2 + noise_N2
    return SCALE_HARD * sign_N[:, None] * (curve_N2 + noise_N2)


def _chance(num: int, probability: float, rng: torch.Generator) -> Tensor:
    return (torch.rand(num, generator=rng) < probability).float()
