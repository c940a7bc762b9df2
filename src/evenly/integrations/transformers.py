"""SAM in Transformers' Trainer: a mixin; nothing is left to override."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from evenly.errors import UsageError
from evenly.optim.displaced_gradient import DisplacedGradient

FILE = "sharpness_aware.pt"

if TYPE_CHECKING:
    Loops: Any
else:
    Loops = object


class SharpnessAwareTraining(Loops):  # type: ignore[misc]  # a mixin: what it calls is the Trainer's
    """Put before `Trainer`: `class SAMTrainer(SharpnessAwareTraining, Trainer): ...`, and give `sam=`.

    `sam` builds the rule from the model, `sam=lambda model: evenly.SAM(model, rho=0.05)` or `sam=evenly.SAM`.
    Precision, accumulation, clipping, DDP and checkpoints are the Trainer's; the rule's memory is in its checkpoints.
    """

    def __init__(self, *args: Any, sam: Callable[[nn.Module], DisplacedGradient], **kwargs: Any) -> None:
        if not callable(sam):
            raise UsageError(
                f"sam={sam!r}: give what builds the rule, such as lambda model: evenly.SAM(model, rho=0.05)"
            )
        self._build = sam
        self.sam: DisplacedGradient | None = None
        self._sam_state: dict[str, Any] | None = None
        super().__init__(*args, **kwargs)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """In training, a loss whose gradient is the one at the displaced weights; elsewhere the Trainer's."""
        own = super().compute_loss
        if not (model.training and torch.is_grad_enabled()) or kwargs.get("return_outputs"):
            return own(model, inputs, *args, **kwargs)
        if self.sam is None:
            self.sam = self._build(model)
            if self._sam_state is not None:
                self.sam.load_state_dict(self._sam_state)

        def closure() -> Tensor:
            loss: Tensor = own(model, dict(inputs), *args, **kwargs)  # The Trainer takes labels out of its inputs.
            return loss

        return self.sam.loss(closure)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = None if self.sam is None else self.sam.state_dict()  # All processes gather their shards.
        if state is not None and self.args.should_save:
            torch.save(state, os.path.join(output_dir, FILE))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        path = None if checkpoint is None else os.path.join(checkpoint, FILE)
        if path is not None and os.path.exists(path):
            self._sam_state = torch.load(path, map_location="cpu", weights_only=True)
