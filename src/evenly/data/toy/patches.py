"""Nguyen et al. (2024), definition 3.1: three shuffled patches, one easy, one difficult, one noise.

Shapes: N examples, P = 3 patches, D dimensions of a patch.
"""

import torch
from torch import Tensor

from evenly.data.labelled import Labelled, Splits
from evenly.errors import UsageError

NUM_PATCHES = 3


def patches(
    *,
    rng: torch.Generator,
    num_train: int = 10_000,
    num_test: int = 10_000,
    dim: int = 50,
    beta_easy: float = 1.0,
    beta_hard: float = 0.2,
    alpha: float = 0.9,
    noise: float = 0.125,
    orthogonal_noise: bool = False,
) -> Splits:
    """Labels y = ±1; patches β_d·y·v_d, β_e·y·v_e (with probability α, else 0) and N(0, noise²·I), shuffled.

    `noise` is σ_p/√d, the standard deviation of one coordinate. The definition says that the noise patch is
    orthogonal to both features; the code it descends from (Deng et al., 2023) does not make it so.
    `orthogonal_noise` chooses the reading.

    Attributes: `easy` and `hard` are the class each feature speaks for, `easy_present` whether the easy patch
    is there. `planted` holds v_e and v_d as `easy` and `hard`.

    >>> data = patches(rng=torch.Generator().manual_seed(0), num_train=100, num_test=10).train
    >>> data.shape, sorted(data.attributes)
    ((3, 50), ['easy', 'easy_present', 'hard'])
    """
    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha = {alpha} is the share of examples with the easy patch: give a number from 0 to 1.")
    if dim < NUM_PATCHES:
        raise UsageError(f"dim = {dim}: two orthogonal features and noise need at least {NUM_PATCHES} dimensions.")
    if noise < 0:
        raise UsageError(f"noise = {noise} is a standard deviation: give 0 or more.")
    features_2D = torch.linalg.qr(torch.randn(dim, 2, generator=rng)).Q.T.contiguous()

    def draw(num: int) -> Labelled:
        labels_N = torch.randint(2, (num,), generator=rng)
        sign_N1 = (2 * labels_N - 1)[:, None]
        present_N = torch.rand(num, generator=rng) < alpha
        noise_ND = noise * torch.randn(num, dim, generator=rng)
        if orthogonal_noise:
            noise_ND = noise_ND - noise_ND @ features_2D.T @ features_2D
        easy_ND = beta_easy * sign_N1 * present_N[:, None] * features_2D[0]
        hard_ND = beta_hard * sign_N1 * features_2D[1]
        ordered_NPD = torch.stack([easy_ND, hard_ND, noise_ND], dim=1)
        order_NP = torch.rand(num, NUM_PATCHES, generator=rng).argsort(dim=1)
        return Labelled(
            ordered_NPD[torch.arange(num)[:, None], order_NP],
            labels_N,
            ("-1", "+1"),
            attributes={"easy": labels_N, "hard": labels_N, "easy_present": present_N.long()},
            values={"easy_present": ("absent", "present")},
            planted=_planted(features_2D),
        )

    return Splits("patches", {"train": draw(num_train), "test": draw(num_test)})


def _planted(features_2D: Tensor) -> dict[str, Tensor]:
    return {"easy": features_2D[0], "hard": features_2D[1]}
