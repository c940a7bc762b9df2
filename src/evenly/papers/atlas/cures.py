"""The cures of the atlas: their changes to the training set, the loss and the step.

All take as many steps as plain training, except for the smaller batch, which takes as many epochs. A cure that needs an
early network also costs its epochs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: The examples that a cure selects: those of the hard clusters, as many drawn at random, those that the early network
#: misclassifies, or the hard ones among those it classifies correctly.
Chosen = Literal["hard", "random", "wrong", "right"]


@dataclass(frozen=True)
class Cure:
    """One way to train.

    Parameters
    ----------
    label
        Its name in tables and maps.
    chosen, factor
        Which examples are shown, or weighted, `factor` times.
    weighted
        Loss weights of mean 1 in each batch in place of copies.
    balanced
        Every example as often as SPARE's balance of the clusters requires, at most `factor` times.
    noise, noise_on
        σ of pixel noise, and the examples that get it: `chosen` or `all`.
    label_smoothing, logit_penalty
        As of the training loop.
    rule, rho
        A rule of the SAM family.
    batch_share
        The batch size as a part of the task's.
    """

    label: str
    chosen: Chosen | None = None
    factor: int = 1
    weighted: bool = False
    balanced: bool = False
    noise: float = 0.0
    noise_on: Literal["chosen", "all"] = "chosen"
    label_smoothing: float = 0.0
    logit_penalty: float = 0.0
    rule: str = "sgd"
    rho: float = 0.0
    batch_share: float = 1.0

    def cost(self, early_share: float) -> float:
        """Gradients relative to plain training, if the early network takes `early_share` of its epochs.

        >>> CURES["useful"].cost(0.1), CURES["sam"].cost(0.1), CURES["noise-all"].cost(0.1)
        (1.1, 2.0, 1.0)
        """
        passes = 2.0 if self.rule == "sam" else 1.0
        return passes + (early_share if self.chosen is not None else 0.0)


CURES: Mapping[str, Cure] = {
    "plain": Cure("plain"),
    "random": Cure("random ×8", "random", 8),
    "useful": Cure("USEFUL ×2", "hard", 2),
    "useful8": Cure("USEFUL ×8", "hard", 8),
    "useful8+noise": Cure("USEFUL ×8, noise on the hard", "hard", 8, noise=0.2),
    "useful8+noise-all": Cure("USEFUL ×8, noise on all", "hard", 8, noise=0.2, noise_on="all"),
    "useful2+noise": Cure("USEFUL ×2, noise on the hard", "hard", 2, noise=0.2),
    "random+noise": Cure("random ×8, noise on these", "random", 8, noise=0.2),
    "noise-all": Cure("noise on all", noise=0.2, noise_on="all"),
    "reweight": Cure("loss weights ×8", "hard", 8, weighted=True),
    "balance": Cure("SPARE: balanced clusters", "hard", 8, balanced=True),
    "right": Cure("USEFUL ×2 among the right", "right", 2),
    "jtt": Cure("JTT: misclassified ×5", "wrong", 5),
    "logit-penalty": Cure("logit penalty 0.01", logit_penalty=0.01),
    "useful8+logit-penalty": Cure("USEFUL ×8, logit penalty 0.03", "hard", 8, logit_penalty=0.03),
    "label-smoothing": Cure("label smoothing 0.1", label_smoothing=0.1),
    "sam": Cure("SAM 0.1", rule="sam", rho=0.1),
    "lsam": Cure("LSAM 0.5", rule="lsam", rho=0.5),
    "batch": Cure("a quarter of the batch", batch_share=0.25),
}
