"""Examples that look mislabelled, the most suspicious first.

Shapes: N examples, K of one class, C classes, D outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.resampling.label_noise import label_noise, thresholds
from evenly.resampling.outputs import Array, Outputs, check_outputs


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows that look mislabelled, the most suspicious first: label, the class predicted, how surely, and the loss.

    `ranking` orders all rows, suspected or not: a user with time for a hundred looks at its first hundred. `reason`
    says why the number of suspects could not be estimated from the outputs, if so; then only the rows of which the
    network is sure are suspects.
    """

    rows: Tensor
    labels: Tensor
    predicted: Tensor
    probability: Tensor
    losses: Tensor
    ranking: Tensor
    reason: str = ""

    def __len__(self) -> int:
        return len(self.rows)


RIDGE = 1.0  # mean variances added to the covariance: chosen on other networks than the tests train
_NONE = torch.empty(0, dtype=torch.int64)
NOBODY = Suspects(_NONE, _NONE, _NONE, _NONE.float(), _NONE.float(), _NONE)


def suspects(
    logits: Array,
    labels: Array | Sequence[int],
    *,
    losses: Array | Sequence[float] | None = None,
    sure: float = 0.9,
    fence: float = 3.0,
) -> Suspects:
    """The examples most likely to be mislabelled, as many as `label_noise` estimates.

    All examples are ranked by the posterior of their label in a regularised linear discriminant of the outputs (see
    `posteriors`): calibrated to the network, which early in training is sure of nothing. (With 3 % wrong labels in
    3,000 pictures of CIFAR-10, its first 3 % contain about a third of them, more than the 3 % of highest loss:
    docs/cures.md.) The suspects are the first in this ranking that the network confidently predicts
    as another class (with at least the mean probability of that class's own examples), as many as `label_noise`
    estimates.

    If `label_noise` gives no estimate, only the surest are suspects: examples predicted as another class with
    probability ≥ `sure`, and with a loss beyond Tukey's outer fence (1977) of their class, the third quartile plus
    `fence` times the interquartile range. Wrong labels show because an early network has not yet fitted them (Arpit et
    al., 2017).

    >>> z = torch.tensor([[5.0, 0.0], [4.0, 0.0], [4.5, 0.0], [5.5, 0.0], [0.0, 6.0], [0.0, 4.0], [0.0, 5.0]])
    >>> suspected = suspects(z, [0, 0, 0, 0, 0, 1, 1])
    >>> suspected.rows.tolist(), suspected.predicted.tolist(), suspected.ranking[0].item()
    ([4], [1], 4)
    """
    if not 0 < sure < 1 or fence < 0:
        raise UsageError(f"sure={sure}, fence={fence}: a probability between 0 and 1, and a multiple of 0 or more.")
    outputs = check_outputs(logits, labels, losses=losses)
    num = len(outputs)
    loss_N, probability_N = torch.empty(num, dtype=torch.float64), torch.empty(num, dtype=torch.float32)
    predicted_N, surely_N = torch.empty(num, dtype=torch.int64), torch.zeros(num, dtype=torch.bool)
    for label, members_K in outputs.by_class():
        x_KD = outputs.read(members_K)
        loss_K, _ = outputs.judge(x_KD, members_K)
        probability_K, predicted_K = outputs.probabilities(x_KD).cpu().max(dim=1)
        ordered_K = loss_K.sort().values
        low, high = ordered_K[(len(ordered_K) - 1) // 4], ordered_K[(3 * (len(ordered_K) - 1) + 3) // 4]
        beyond_K = loss_K > high + fence * (high - low)
        surely_N[members_K] = beyond_K & (predicted_K != label) & (probability_K >= sure)
        loss_N[members_K], probability_N[members_K], predicted_N[members_K] = loss_K, probability_K.float(), predicted_K
    # Of equal posteriors, as in a single class, the larger loss is the more suspicious.
    by_loss_N = loss_N.argsort(descending=True, stable=True)
    ranking_N = by_loss_N[posteriors(outputs)[by_loss_N].argsort(stable=True)]
    noise = label_noise(logits, labels)
    if noise.share is None:
        rows = ranking_N[surely_N[ranking_N]]
    else:
        confident_N = probability_N >= thresholds(outputs)[predicted_N]
        likely = ranking_N[(confident_N & (predicted_N != outputs.labels))[ranking_N]]
        rows = likely[: round(min(noise.share, noise.disagreement) * num)]
    return Suspects(
        rows,
        outputs.labels[rows],
        predicted_N[rows],
        probability_N[rows],
        loss_N[rows].float(),
        ranking_N,
        noise.reason,
    )


def posteriors(outputs: Outputs) -> Tensor:
    """The log-probability log P(label | outputs) of each example, by discriminant analysis.

    Regularised discriminant analysis with equal priors (Friedman, 1989): the outputs of class c are modelled as
    N(μ_c, Σ + σ²I), with the class means, the covariance Σ within classes and its mean variance σ². Without
    σ²I, directions in which outputs hardly vary would count as much as those that tell the classes apart.

    >>> z = torch.tensor([[3.0, 0.0], [4.0, 1.0], [0.0, 3.0], [1.0, 4.0], [0.0, 4.0]])
    >>> posteriors(check_outputs(z, [0, 0, 1, 1, 0])).argmin().item()
    4
    """
    classes = [(label, members_K, outputs.read(members_K).double().cpu()) for label, members_K in outputs.by_class()]
    mean_CD = torch.stack([x_KD.mean(dim=0) for _, _, x_KD in classes])
    within_DD = torch.zeros(mean_CD.shape[1], mean_CD.shape[1], dtype=torch.float64)
    for (_, _, x_KD), mean_D in zip(classes, mean_CD, strict=True):
        within_DD += (x_KD - mean_D).T @ (x_KD - mean_D)
    within_DD /= len(outputs)
    within_DD.diagonal().add_(RIDGE * within_DD.diagonal().mean() + 1e-12)
    weight_CD = torch.linalg.solve(within_DD, mean_CD.T).T
    offset_C = -0.5 * (weight_CD * mean_CD).sum(dim=1)
    log_N = torch.empty(len(outputs), dtype=torch.float64)
    for place, (_, members_K, x_KD) in enumerate(classes):
        log_N[members_K] = (x_KD @ weight_CD.T + offset_C).log_softmax(dim=1)[:, place]
    return log_N
