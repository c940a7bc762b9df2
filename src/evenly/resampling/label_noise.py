"""How many labels are wrong, judged by the outputs of a network that has not yet fitted them.

Shapes: N examples, K of one class, C classes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.resampling.outputs import Array, Outputs, check_outputs

SUREST = 0.2  # the share of examples on which the network is surest: it errs least there
SLACK = 0.05  # how far apart the two estimates may be
FITTED = 0.99  # from this accuracy on, wrong labels are fitted and no longer show
ADMISSIBLE = 0.1  # share of wrong labels among the examples shown, above which upsampling does more harm than good


@dataclass(frozen=True)
class LabelNoise:
    """The estimated share of wrong labels, and its bounds; or None, and the reason in words.

    `disagreement` is the share of labels that contradict the fifth of the predictions the network is surest of, and
    `low` and `high` are its 95% interval. `share` is the estimate of confident learning, at most `high`; where it is
    below the interval, `low` is lowered to it.
    """

    share: float | None
    low: float
    high: float
    disagreement: float
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether labels seem to be wrong: the bounds exclude half a per cent."""
        return self.share is not None and self.low > 0.005

    def largest_factor(self, hard_share: float) -> int | None:
        """The largest factor at which at most a tenth of the examples shown have wrong labels; None if that is unknown.

        An early network contradicts wrong labels, so they are all among the hard examples. If their share is ν and the
        hard share is h, factor k makes them kν/(1 + h(k − 1)) of the examples shown. The limit of a tenth is our
        choice, based on the experiments in docs/cures.md.

        >>> LabelNoise(0.05, 0.04, 0.06, 0.05).largest_factor(0.3), LabelNoise(0.1, 0.09, 0.11, 0.1).largest_factor(0.3)
        (3, 1)
        """
        if self.share is None:
            return None
        factor = 1
        while factor < 64 and (factor + 1) * self.share <= ADMISSIBLE * (1 + hard_share * factor):
            factor += 1
        return factor


def label_noise(logits: Array, labels: Array | Sequence[int]) -> LabelNoise:
    """The share of wrong labels, estimated from outputs on the training set early in training.

    Two estimates must agree. The first is confident learning (Northcutt et al., 2021): an example labelled i counts for
    the class j of largest p_j among those with p_j ≥ t_j, where t_j is the mean p_j of the examples labelled j; rows
    are scaled to the class sizes, and the mass off the diagonal is noise. It is good where the network knows the
    classes, and absurd where it does not: on CIFAR-10 after an epoch it finds half of the labels wrong. The second
    estimate is therefore the share of labels that contradict the surest fifth of the predictions: wrong labels are as
    frequent there as elsewhere, honest mistakes are rarer. Where the first is far above the second, there is no
    estimate.

    One network cannot tell a wrong label from an example whose easy feature contradicts its correct label: it
    confidently predicts another class for both. The estimate is the share of both.

    >>> labels = torch.arange(2000) % 2
    >>> wrong = torch.arange(2000) % 20 < 2
    >>> z = 3 * (2 * torch.nn.functional.one_hot(torch.where(wrong, 1 - labels, labels), 2).float() - 1)
    >>> noise = label_noise(z, labels)
    >>> round(noise.share, 3), round(noise.low, 2), round(noise.high, 2)
    (0.1, 0.07, 0.13)
    """
    outputs = check_outputs(logits, labels)
    confident, sure_N, wrong_N = _confident(outputs)
    error = float(wrong_N.double().mean())
    surest = sure_N.argsort(descending=True, stable=True)[: max(round(SUREST * len(outputs)), 1)]
    contradicted = int(wrong_N[surest].sum())
    rate = contradicted / len(surest)
    low, high = wilson(contradicted, len(surest))
    if len(set(outputs.labels.tolist())) < 2:
        reason = "all labels are the same class"
    elif error < 1 - FITTED:
        reason = f"the network fits {1 - error:.1%} of the labels, and wrong ones among them no longer show"
    elif confident > high + SLACK or high > 0.4:
        reason = (
            f"the network predicts {error:.0%} of the training set wrongly and does not know the classes well enough "
            "to tell a wrong label from a difficult example"
        )
    else:
        return LabelNoise(min(confident, high), min(low, confident), high, rate)
    return LabelNoise(None, math.nan, math.nan, rate, reason)


def _confident(outputs: Outputs) -> tuple[float, Tensor, Tensor]:
    """The noise by confident learning; each example's largest probability; whether that belongs to another class."""
    threshold_C = thresholds(outputs)
    sure_N = torch.empty(len(outputs), dtype=torch.float64)
    wrong_N = torch.empty(len(outputs), dtype=torch.bool)
    noisy = 0.0
    for label, members_K in outputs.by_class():
        p_KC = outputs.probabilities(outputs.read(members_K)).double().cpu()
        sure_N[members_K], predicted_K = p_KC.max(dim=1)
        wrong_N[members_K] = predicted_K != label
        above_KC = p_KC.where(p_KC >= threshold_C, -1.0)
        best_K, counted_K = above_KC.max(dim=1)
        counted = int((best_K >= 0).sum())
        if counted:
            other = int(((best_K >= 0) & (counted_K != label)).sum())
            noisy += len(members_K) * other / counted
    return noisy / len(outputs), sure_N, wrong_N


def thresholds(outputs: Outputs) -> Tensor:
    """The mean probability of each class among the examples with its label: the threshold of a confident prediction."""
    threshold_C = torch.full((max(outputs.rows.shape[1], 2),), math.inf, dtype=torch.float64)
    for label, members_K in outputs.by_class():
        threshold_C[label] = outputs.probabilities(outputs.read(members_K))[:, label].double().mean()
    return threshold_C


def wilson(successes: int, num: int, *, z: float = 1.96) -> tuple[float, float]:
    """The interval of a proportion observed `successes` times in `num` (Wilson, 1927).

    >>> tuple(round(end, 3) for end in wilson(0, 100))
    (0.0, 0.037)
    """
    share = successes / num
    centre = (share + z**2 / (2 * num)) / (1 + z**2 / num)
    half = z / (1 + z**2 / num) * math.sqrt(share * (1 - share) / num + z**2 / (4 * num**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def on_noise(
    noise: LabelNoise, *, hard_share: float, factor: int | None = None, method: str = "k-means"
) -> tuple[str, ...]:
    """A warning about wrong labels before anything is upsampled, or nothing.

    `hard_share` is the share of the examples that `method` chooses, as in `separate`, and `factor` how often they will
    be shown: then it is also said why nothing could be estimated.
    """
    chosen, remedy = _CHOICES.get(method, _CHOICES["k-means"])
    if noise.share is None:
        if factor is None or factor == 1:
            return ()
        return (
            f"the share of wrong labels could not be estimated: {noise.reason}. Showing {chosen} more often repeats "
            "wrong labels too: look at some of these examples first.",
        )
    if not noise:
        return ()
    largest = noise.largest_factor(hard_share)
    assert largest is not None
    if factor is not None and factor <= largest:
        return ()
    advice = (
        f"repeating {chosen} is likely to harm"
        if largest == 1
        else f"showing {chosen} more than {largest} times is likely to harm, as it repeats them too"
    )
    return (
        f"about {noise.share:.1%} of the labels contradict what the network is surest of ({noise.low:.1%} to "
        f"{noise.high:.1%}, by the surest fifth of its predictions). If they are wrong, {advice}: {remedy}. If they "
        "are right, and these examples contradict an easy feature, do not: one network cannot tell the two apart. "
        "Look at some.",
    )


_CLUSTERS_INSTEAD = "take the clusters of what is predicted rightly instead (among='right', useful+right)"
#: By the method of a separation: what it chooses, and what to do if labels are wrong.
_CHOICES = {
    "k-means": (
        "hard examples",
        "cluster only what is predicted rightly (among='right', --set resampling.among=right)",
    ),
    "misclassified": ("what is predicted wrongly", _CLUSTERS_INSTEAD),
    "quantile": ("the examples of higher loss", _CLUSTERS_INSTEAD),
}
