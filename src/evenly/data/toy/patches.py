"""Nguyen et al. (2024), definition 3.1: three shuffled patches, one easy, one difficult, one noise.

Shapes: N examples, P = 3 patches, D dimensions of a patch.
"""

import torch
from torch import Tensor

from evenly.data.labelled import Labelled
from evenly.data.planted import CONTRADICTS, LACKS, RELATIONS, Shares, add_groups, spawn_generator
from evenly.data.splits import Splits
from evenly.data.toy.counts import require_counts
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
    conflict: float = 0.0,
    mislabelled: float = 0.0,
    size: int | None = None,
) -> Splits:
    """Labels y = ±1; patches β_d·y·v_d, β_e·y·v_e (with probability α, else 0) and N(0, noise²·I), shuffled.

    `noise` is σ_p/√d, the standard deviation of one coordinate. The definition says that the noise patch is
    orthogonal to both features; the code it descends from (Deng et al., 2023) does not make it so.
    `orthogonal_noise` chooses the reading.

    Attributes: `easy` and `hard` are the class each feature speaks for, `easy_present` whether the easy patch
    is there. `planted` holds v_e and v_d as `easy` and `hard`.

    Beyond the definition, `conflict` is the share of examples whose easy patch has the other sign, `mislabelled` the
    share of wrong training labels (`noise` being the patch's) and `size` the number of training examples, drawn evenly
    over classes. Any of them brings the attributes `easy_agrees`, `group` and, in training, `label_noisy`, and two
    test splits: `balanced`, where the easy patch says nothing of the label, and `groups`, where it agrees, contradicts
    and is missing equally often. With `size` equal to `num_train` they are added to unchanged data.

    >>> data = patches(rng=torch.Generator().manual_seed(0), num_train=100, num_test=10).train
    >>> data.shape, sorted(data.attributes)
    ((3, 50), ['easy', 'easy_present', 'hard'])
    """
    shares = Shares(alpha, conflict, mislabelled, size, noise_option="mislabelled")
    require_counts(NUM_PATCHES * dim, num_train=num_train, num_test=num_test)
    if dim < NUM_PATCHES:
        raise UsageError(f"dim = {dim}: two orthogonal features and noise need at least {NUM_PATCHES} dimensions.")
    if noise < 0:
        raise UsageError(f"noise = {noise} is a standard deviation: give 0 or more.")
    features_2D = torch.linalg.qr(torch.randn(dim, 2, generator=rng)).Q.T.contiguous()

    def draw(num: int, relation_N: Tensor | None = None) -> Labelled:
        labels_N = torch.randint(2, (num,), generator=rng)
        u_N = torch.rand(num, generator=rng)
        if relation_N is None:
            relation_N = shares.relations(u_N)
        noise_ND = noise * torch.randn(num, dim, generator=rng)
        if orthogonal_noise:
            noise_ND = noise_ND - noise_ND @ features_2D.T @ features_2D
        easy_N = torch.where(relation_N == CONTRADICTS, 1 - labels_N, labels_N)
        present_N = relation_N != LACKS
        easy_ND = beta_easy * (2 * easy_N - 1)[:, None] * present_N[:, None] * features_2D[0]
        hard_ND = beta_hard * (2 * labels_N - 1)[:, None] * features_2D[1]
        ordered_NPD = torch.stack([easy_ND, hard_ND, noise_ND], dim=1)
        order_NP = torch.rand(num, NUM_PATCHES, generator=rng).argsort(dim=1)
        return Labelled(
            ordered_NPD[torch.arange(num)[:, None], order_NP],
            labels_N,
            ("-1", "+1"),
            attributes={"easy": easy_N, "hard": labels_N, "easy_present": present_N.long()},
            values={"easy_present": ("absent", "present")},
            planted=_planted(features_2D),
        )

    parts = {"train": draw(num_train), "test": draw(num_test)}
    if not shares.is_planted:
        return Splits("patches", parts)
    for split, kinds in (("balanced", 2), ("groups", len(RELATIONS))):
        parts[split] = draw(num_test, torch.arange(num_test) % kinds)
    parts = {split: add_groups(part, ("-1", "+1")) for split, part in parts.items()}
    return Splits("patches", {**parts, "train": shares.finish(parts["train"], rng=spawn_generator(rng, "planted"))})


def _planted(features_2D: Tensor) -> dict[str, Tensor]:
    return {"easy": features_2D[0], "hard": features_2D[1]}
