"""One training step: the gradient of a batch, at the weights or SAM's point, whole or in parts; then the update.

Shapes: B examples of a batch.
"""

from typing import Any

import torch
from torch import Tensor

from evenly.data.batches import Batch
from evenly.training.accumulation import in_parts
from evenly.training.build import Parts
from evenly.training.evaluate import autocast, to_memory_format
from evenly.training.tally import Tally


class Step:
    """Takes steps with the parts of a run, and reports every example's loss and output to `tally`."""

    def __init__(self, parts: Parts, tally: Tally) -> None:
        self.parts, self.tally = parts, tally

    def take(self, batch: Batch, *, lr: float) -> None:
        """Change the weights by one step at this learning rate."""
        parts = self.parts
        recipe, optimizer, scaler = parts.recipe, parts.optimizer, parts.scaler
        if not parts.forward.training:  # Walking over all modules in every step would take a tenth of a small one.
            parts.forward.train()
        for group in optimizer.param_groups:
            group["lr"] = lr
            for p in group["params"]:  # `zero_grad`, without its check for profilers.
                p.grad = None
        self.tally.begin(batch.position)
        x, y, weights = to_memory_format(batch.inputs, parts.memory_format), batch.labels, self._weights(batch)
        loss = self._whole if recipe.accumulate == 1 else self._in_parts
        if parts.ascent is None:
            mean = loss(x, y, None, *weights)
            (mean if scaler is None else scaler.scale(mean)).backward()  # type: ignore[no-untyped-call]  # torch's own
        else:
            # SAM may take the batch in parts: each example carries its place in it.
            parts.ascent.backward(loss, x, y, torch.arange(len(y)), *weights)
        if recipe.clip_norm is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(parts.model.parameters(), recipe.clip_norm)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()

    def _whole(self, x: Tensor, y: Tensor, place_B: Tensor | None, weight_B: Tensor | None = None) -> Tensor:
        """The mean loss of examples at these places of the batch."""
        parts = self.parts
        with autocast(parts.world.device, parts.recipe.precision):
            out = parts.forward(x)
        loss_B = parts.objective(out.float(), y)
        self.tally.see(place_B, loss_B, out, y)
        if weight_B is not None:
            loss_B = loss_B * weight_B
        return loss_B.mean() if len(loss_B) else loss_B.sum()

    def _in_parts(self, x: Tensor, y: Tensor, place_B: Tensor | None, weight_B: Tensor | None = None) -> Tensor:
        parts = self.parts
        if not torch.is_grad_enabled() or len(y) < 2:
            return self._whole(x, y, place_B, weight_B)
        batch = (x, y, torch.arange(len(y)) if place_B is None else place_B, *(() if weight_B is None else (weight_B,)))
        params = [p for p in parts.model.parameters() if p.requires_grad]
        return in_parts(self._whole, batch, num=parts.recipe.accumulate, params=params, scaler=parts.scaler)

    def _weights(self, batch: Batch) -> tuple[Tensor, ...]:
        """The weight of each loss in this process's share; None where the loss is the plain mean."""
        parts = self.parts
        weight_B = batch.weight
        if parts.world.size > 1:
            # DDP averages over processes, whose shares of a batch may differ by one example. Weights of a mean, not of
            # a sum: SAM may divide the share into groups and averages over these.
            factor = parts.world.size * len(batch.labels) / batch.whole
            full = torch.full((len(batch.labels),), factor, device=parts.world.device)
            weight_B = full if weight_B is None else weight_B * factor
        return () if weight_B is None else (weight_B,)


def scaler_state(parts: Parts) -> dict[str, Any] | None:
    """The scaler of fp16 as a checkpoint keeps it."""
    return None if parts.scaler is None else parts.scaler.state_dict()
