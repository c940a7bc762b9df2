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
    A Trainer that makes a new model for each `train()` (`model_init`, as in a hyperparameter search) builds a new rule
    from it.
    """

    def __init__(self, *args: Any, sam: Callable[[nn.Module], DisplacedGradient], **kwargs: Any) -> None:
        if not callable(sam):
            raise UsageError(
                f"sam={sam!r}: give what builds the rule, such as lambda model: evenly.SAM(model, rho=0.05)"
            )
        self._build = sam
        self.sam: DisplacedGradient | None = None
        #: The model that the rule was built from.
        self._sam_model: nn.Module | None = None
        #: A state read from a checkpoint, until it is loaded.
        self._sam_state: dict[str, Any] | None = None
        super().__init__(*args, **kwargs)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """In training, a loss whose gradient is the one at the displaced weights; elsewhere the Trainer's."""
        own = super().compute_loss
        if not (model.training and torch.is_grad_enabled()) or kwargs.get("return_outputs"):
            return own(model, inputs, *args, **kwargs)
        sam = self._sam_of(model)

        def closure() -> Tensor:
            loss: Tensor = own(model, dict(inputs), *args, **kwargs)  # The Trainer takes labels out of its inputs.
            return loss

        return sam.loss(closure)

    def _sam_of(self, model: nn.Module) -> DisplacedGradient:
        """The rule of this model, with the state of a checkpoint that was loaded since the last call."""
        before = self.sam
        if before is None or model is not self._sam_model:
            self.sam, self._sam_model = self._build(model), model
            # Another wrapper around the same parameters, as DDP gets in a second `train()`, goes on where it was.
            if before is not None and set(map(id, before.params)) == set(map(id, self.sam.params)):
                self.sam.load_state_dict(before.state_dict())
        assert self.sam is not None
        if self._sam_state is not None:
            self.sam.load_state_dict(self._sam_state)
            self._sam_state = None
        return self.sam

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = None if self.sam is None else self.sam.state_dict()  # All processes gather their shards.
        if state is not None and self.args.should_save:
            torch.save(state, os.path.join(output_dir, FILE))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        self._sam_state = None
        if checkpoint is None:
            return
        path = os.path.join(checkpoint, FILE)
        if os.path.exists(path):
            self._sam_state = torch.load(path, map_location="cpu", weights_only=True)
        else:
            self.sam = None  # What it remembers is not of this checkpoint.
