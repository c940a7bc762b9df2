"""Curvatures of many two-layer networks at once, on the loss (f − y)².

Shapes: K members, N examples, D inputs, M hidden units.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from evenly.diagnostics.rank import feature_rank

QUANTITIES = (
    "sigma",
    "lambda_max_s",
    "sigma_printed",
    "lambda_max_s_printed",
    "rank",
    "largest",
    "lambda_max",
    "trace",
    "n_trace",
    "loss",
)
SHARE = 0.9  # of the variance that the effective rank holds


def curvatures(weights: Mapping[str, Tensor], x_KND: Tensor) -> dict[str, Tensor]:
    """What table 1 lists, one number per member, from the Gram matrices of the members' gradients.

    H_i = 2 g_i g_iᵀ for (f − y)², g_i = ∇f(x_i), so S = 2|GGᵀ| entry by entry; `_printed` leaves out the root, as
    the paper's table does. NaN where a member is not finite.
    """
    w1_KMD, b_KM, w2_KM = (weights[name].double() for name in ("hidden.weight", "hidden.bias", "head.weight"))
    before_KNM = x_KND @ w1_KMD.mT + b_KM[:, None]
    hidden_KNM = before_KNM.relu()
    w2_K1M = w2_KM.reshape(len(x_KND), 1, -1)
    outer_KNM = w2_K1M * (before_KNM > 0)
    # ⟨g_i, g_j⟩ = h_i·h_j + (a_i·a_j)(x_i·x_j + 1)
    gram_KNN = 2 * (hidden_KNM @ hidden_KNM.mT + (outer_KNM @ outer_KNM.mT) * (x_KND @ x_KND.mT + 1))
    good_K = gram_KNN.flatten(1).isfinite().all(1) & (gram_KNN.abs().flatten(1).amax(1) < 1e100)
    gram_KNN = torch.where(good_K[:, None, None], gram_KNN, 0.0)
    own_KN = gram_KNN.diagonal(dim1=1, dim2=2)
    largest_K = own_KN.amax(1)
    root_K, printed_K = _largest(gram_KNN.abs()), _largest(gram_KNN.square())
    off_KN = (hidden_KNM * w2_K1M).sum(2) - x_KND[..., 0] * x_KND[..., 1]
    ranks = [feature_rank(h, share=SHARE) if ok else 0 for h, ok in zip(hidden_KNM, good_K.tolist(), strict=True)]
    quantities = {
        "sigma": root_K / largest_K,
        "lambda_max_s": root_K,
        "sigma_printed": printed_K / largest_K,
        "lambda_max_s_printed": printed_K,
        "rank": torch.tensor(ranks, dtype=torch.float64),
        "largest": largest_K,
        "lambda_max": _largest(gram_KNN) / own_KN.shape[1],
        "trace": own_KN.mean(1),
        "n_trace": own_KN.sum(1),
        "loss": off_KN.square().mean(1),
    }
    return {name: torch.where(good_K, value, torch.nan) for name, value in quantities.items()}


def _largest(symmetric_KNN: Tensor) -> Tensor:
    eigenvalues_KN: Tensor = torch.linalg.eigvalsh(symmetric_KNN)
    return eigenvalues_KN[:, -1]
