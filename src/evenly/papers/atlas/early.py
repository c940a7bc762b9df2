"""The outputs of an early network without group labels, by which cures select examples and advice is given.

Shapes: T epochs, N examples, C classes.
"""

import warnings
from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from evenly import resampling
from evenly.data import Labelled
from evenly.resampling import Separation
from evenly.resampling.agreement import agreement
from evenly.resampling.baselines import random_like
from evenly.resampling.label_noise import label_noise
from evenly.resampling.moment import GainShrinks, first
from evenly.resampling.separation import SeparationWarning
from evenly.rng import generator
from evenly.training.objective import predictions

LATEST = 0.5  # the share of all epochs after which a network no longer counts as early


class Early:
    """The outputs of one network after each of its first epochs, read at the epoch where the gain shrinks."""

    def __init__(self, train: Labelled, outputs_TNC: Sequence[Tensor], *, seed: int) -> None:
        self.train, self.seed = train, seed
        wrong_TN = [predictions(outputs_NC) != train.labels for outputs_NC in outputs_TNC]
        chance = 1 - 1 / train.num_classes
        curve = [chance, *(float(wrong_N.double().mean()) for wrong_N in wrong_TN)]
        self.epoch = first(GainShrinks(), curve) or len(wrong_TN)
        self.error = curve[self.epoch]
        self.outputs_NC = outputs_TNC[self.epoch - 1]
        self.wrong_N, self.wrong_later_N = wrong_TN[self.epoch - 1], wrong_TN[-1]
        self.separation = self._separate("all")

    def _separate(self, among: Literal["all", "right"]) -> Separation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeparationWarning)
            return resampling.separate(
                self.outputs_NC,
                self.train.labels,
                among=among,
                rng=generator(self.seed, "atlas", "separate"),
                max_accuracy=1.0,
            )

    def chosen(self, which: str) -> Tensor:
        """The examples that a cure selects, as a boolean each: see `cures.Chosen`."""
        if which == "hard":
            return self.separation.hard
        if which == "random":
            return random_like(self.separation, rng=generator(self.seed, "atlas", "random")).hard
        return self.wrong_N if which == "wrong" else self._separate("right").hard & ~self.wrong_N

    def features(self, twin: "Early") -> dict[str, float]:
        """The features that advice is based on, none of which needs group labels.

        `epoch` and `error` are the moment and the training error there; `hard_share`, `hard_error` and
        `hard_error_later` the share of the hard clusters and their error, at the moment and after the last epoch seen;
        `distinctness` how far their silhouette is above that of single clouds; `disagreement` the share of labels that
        contradict the surest predictions; `agreement` the adjusted Rand index with the separation of a `twin`, which
        learns the same data with other first weights and in another order.
        """
        hard_N, noise = self.separation.hard, label_noise(self.outputs_NC, self.train.labels)
        margins = [each.silhouette - max(each.clouds) for each in self.separation.distinctness.values()]
        return {
            "epoch": float(self.epoch),
            "error": self.error,
            "hard_share": self.separation.share,
            "hard_error": _share(self.wrong_N, hard_N),
            "hard_error_later": _share(self.wrong_later_N, hard_N),
            "distinctness": sum(margins) / len(margins) if margins else 0.0,
            "disagreement": noise.disagreement,
            "agreement": agreement(hard_N, twin.separation.hard).adjusted_rand,
        }


def _share(of_N: Tensor, among_N: Tensor) -> float:
    return float(of_N[among_N].double().mean()) if bool(among_N.any()) else 0.0
