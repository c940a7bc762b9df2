"""The objective: losses per example, and the class that a model's output predicts.

Shapes: N examples, C classes. A model for two classes may have one output, a logit that is positive for class 1.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch  # noqa: F401  # for the examples
from torch import Tensor
from torch.nn import functional

from evenly.errors import UsageError

Kind = Literal["auto", "cross-entropy", "logistic", "squared"]


def unsmoothed(share: float) -> str:
    """What is said to label smoothing with the squared loss, whose target is a number rather than a distribution."""
    return (
        f"label_smoothing={share:g} has no meaning for loss=squared, whose target is a number. Set it to 0, or take "
        "another loss."
    )


@dataclass(frozen=True)
class Objective:
    """A loss per example, and the prediction that goes with it.

    `cross-entropy` takes one output per class. `logistic`, log(1 + exp(−y f)), and `squared`, ½(f − y)², take one
    output and y = ±1. `auto` is cross-entropy where there is an output per class and logistic where there is one.

    `label_smoothing` spreads a share of the target over all classes; the squared loss has none. `logit_penalty` λ adds
    λ/2·‖outputs‖²: spectral decoupling (Pezeshki et al., 2021), which keeps a network from growing ever more confident
    in one feature.

    >>> two, one = torch.tensor([[0.0, 3.0]]), torch.tensor([[3.0]])
    >>> loss = Objective()
    >>> torch.allclose(loss(two, torch.tensor([1])), loss(one, torch.tensor([1])))
    True
    >>> Objective("squared")(torch.tensor([[0.5]]), torch.tensor([0])).item()
    1.125
    >>> plain, held = Objective()(two, torch.tensor([1])), Objective(logit_penalty=0.1)(two, torch.tensor([1]))
    >>> round((held - plain).item(), 6)
    0.45
    """

    kind: Kind = "auto"
    label_smoothing: float = 0.0
    logit_penalty: float = 0.0

    def __post_init__(self) -> None:
        if self.kind == "squared" and self.label_smoothing:
            raise UsageError(unsmoothed(self.label_smoothing))

    @property
    def plain(self) -> "Objective":
        """The loss of the task alone, by which networks compare whatever was added to it in training.

        >>> Objective("logistic", label_smoothing=0.1, logit_penalty=0.01).plain
        Objective(kind='logistic', label_smoothing=0.0, logit_penalty=0.0)
        """
        return replace(self, label_smoothing=0.0, logit_penalty=0.0)

    def __call__(self, outputs_NC: Tensor, labels_N: Tensor) -> Tensor:
        """The loss of every example."""
        loss_N = self._fit(outputs_NC, labels_N)
        if not self.logit_penalty:
            return loss_N
        return loss_N + self.logit_penalty / 2 * outputs_NC.square().sum(dim=1)

    def _fit(self, outputs_NC: Tensor, labels_N: Tensor) -> Tensor:
        if outputs_NC.shape[1] > 1:
            if self.kind in ("logistic", "squared"):
                raise UsageError(
                    f"loss={self.kind}: it takes one output for two classes, but the model gives "
                    f"{outputs_NC.shape[1]}. Use loss=cross-entropy."
                )
            return functional.cross_entropy(
                outputs_NC, labels_N, reduction="none", label_smoothing=self.label_smoothing
            )
        if self.kind == "cross-entropy":
            raise UsageError("loss=cross-entropy: it takes an output per class, but the model gives one. Use logistic.")
        f_N, y_N = outputs_NC[:, 0], (2 * labels_N - 1).to(outputs_NC.dtype)
        if self.kind == "squared":
            return 0.5 * (f_N - y_N).square()
        # Smoothed targets: y with weight 1 − s/2 and −y with s/2, as cross-entropy does it for two classes.
        loss_N = functional.softplus(-y_N * f_N)
        return loss_N + self.label_smoothing / 2 * y_N * f_N if self.label_smoothing else loss_N


def predictions(outputs_NC: Tensor) -> Tensor:
    """The class that each output predicts.

    >>> predictions(torch.tensor([[0.2], [-1.0]])).tolist(), predictions(torch.tensor([[0.0, 1.0]])).tolist()
    ([1, 0], [1])
    """
    return (outputs_NC[:, 0] > 0).long() if outputs_NC.shape[1] == 1 else outputs_NC.argmax(1)
