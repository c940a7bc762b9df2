"""Training statistics of an epoch: loss and error, and those of easy and hard examples if they are known.

Shapes: N training examples, B of them in a batch, G clusters (one, or easy and hard).
"""

import math

import torch
from torch import Tensor

from evenly.training.deferred import DeferredLosses
from evenly.training.objective import predictions

_GATHERED = 8  # outputs of a pass


class Tally:
    """Sums over the examples of an epoch, each counted once, in the first pass of a step that includes it.

    That pass is at the weights themselves, except for examples that only a pass at displaced weights includes: the rest
    of the batch if SAM ascends on a `fraction`, and all of it under a rule without a gradient before its ascent.

    `hard_N` says of every training example whether it is hard. Only sums are kept, which can be added over
    processes and restored after a stop. On the CPU losses are summed once a step; errors, whole numbers whose sum does
    not depend on the order, less often. On other devices both stay there until `settle` reads those of many steps at
    once; the host then sums them in the same order as on the CPU, to the same bits.

    >>> tally = Tally(torch.tensor([False, True]))
    >>> tally.begin(torch.tensor([1, 0]))
    >>> outputs, labels = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> for _ in range(2):  # the second pass of a step is not counted
    ...     tally.see(torch.arange(2), torch.tensor([1.5, 0.5]), outputs, labels)
    >>> tally.settle()
    2.0
    >>> tally.metrics(tally.sums_G3)["train.loss"], tally.metrics(tally.sums_G3)["train.hard.error"]
    (1.0, 1.0)
    """

    def __init__(self, hard_N: Tensor | None = None) -> None:
        self.hard_N = hard_N
        self._groups = 1 if hard_N is None else 2
        self._hard_B: Tensor | None = None
        self._num_seen = 0
        self.reset()

    def reset(self, sums_G3: Tensor | None = None) -> None:
        """Begin with these sums of loss, errors and examples, or with none."""
        sums_G3 = torch.zeros(self._groups, 3) if sums_G3 is None else sums_G3
        self._loss_G: list[float]
        self._wrong_G: list[float]
        self._num_G: list[float]
        self._loss_G, self._wrong_G, self._num_G = sums_G3.T.tolist()
        self._losses: list[Tensor] = []
        self._unread: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self._deferred = DeferredLosses()
        #: Steps taken after the first one with a loss that is not finite, which `settle` may detect late.
        self.steps_since = 0

    def begin(self, position_B: Tensor) -> None:
        """Begin a step on the training examples at these positions."""
        self._num_seen = 0
        self._hard_B = None if self.hard_N is None else self.hard_N[position_B]

    def see(self, place_B: Tensor | None, loss_B: Tensor, outputs_BC: Tensor, labels_B: Tensor) -> None:
        """Record outputs and losses of the step's examples at `place_B`, or of all; each counts once.

        SAM may take a batch in consecutive groups and ascend on the beginning of each. A part is a range of places, of
        which only those after all earlier ones are new.
        """
        if not len(loss_B):
            return
        first = 0 if place_B is None else int(place_B[0])
        known = max(self._num_seen - first, 0)
        if known >= len(loss_B):
            return
        self._num_seen = first + len(loss_B)
        if known:
            loss_B, outputs_BC, labels_B = loss_B[known:], outputs_BC[known:], labels_B[known:]
        loss_B = loss_B.detach()
        group_B = None if self._hard_B is None else self._hard_B[first + known : self._num_seen]
        if not loss_B.is_cpu:
            self._deferred.add(loss_B, outputs_BC.detach(), labels_B, group_B)
            return
        self._losses.append(_sum_losses(loss_B, group_B))
        self._unread.append((outputs_BC.detach(), labels_B, group_B))

    def settle(self, *, now: bool = False) -> float:
        """End the step; return the sum of losses over the epoch so far, not finite if one of them is not.

        On a device other than the CPU it is the sum at the last reading, unless a reading is due or forced by `now`.
        """
        if self._deferred:
            if not now:
                self._deferred.end_step()
            return self._read() if now or self._deferred.is_due else sum(self._loss_G)
        for loss_G in self._losses:
            self._loss_G = [old + new for old, new in zip(self._loss_G, loss_G.tolist(), strict=True)]
        self._losses.clear()
        if len(self._unread) >= _GATHERED:
            self._count()
        return sum(self._loss_G)

    def _read(self) -> float:
        """Add the losses of the steps since the last reading, in order, up to one that is not finite."""
        steps = list(self._deferred.read())
        for number, passes in enumerate(steps, 1):
            for seen in passes:
                loss_G = _sum_losses(seen.loss_B, seen.hard_B).tolist()
                self._loss_G = [old + new for old, new in zip(self._loss_G, loss_G, strict=True)]
                self._add(seen.wrong_B, seen.hard_B)
            if not math.isfinite(sum(self._loss_G)):
                self.steps_since = len(steps) - number
                break
        return sum(self._loss_G)

    def _count(self) -> None:
        if not self._unread:
            return
        outputs, labels, hard = zip(*self._unread, strict=True)
        self._add(
            predictions(torch.cat(outputs)) != torch.cat(labels), None if self.hard_N is None else torch.cat(hard)
        )
        self._unread.clear()

    def _add(self, wrong_K: Tensor, hard_K: Tensor | None) -> None:
        kind_K = wrong_K.long()
        if hard_K is not None:
            kind_K += 2 * hard_K
        for group, (right, wrong) in enumerate(torch.bincount(kind_K, minlength=2 * self._groups).view(-1, 2).tolist()):
            self._wrong_G[group] += wrong
            self._num_G[group] += right + wrong

    @property
    def sums_G3(self) -> Tensor:
        """Loss, errors and examples of each cluster."""
        self.settle(now=True)
        self._count()
        return torch.tensor([self._loss_G, self._wrong_G, self._num_G], dtype=torch.float64).T.contiguous()

    def metrics(self, sums_G3: Tensor) -> dict[str, float]:
        """The metrics from sums of one or all processes: means over all examples, and over each cluster."""
        loss, wrong, num = sums_G3.sum(0).tolist()
        metrics = {"train.loss": loss / num, "train.error": wrong / num}
        if len(sums_G3) == 2:
            for cluster, (loss, wrong, num) in zip(("easy", "hard"), sums_G3.tolist(), strict=True):
                if num:
                    metrics |= {f"train.{cluster}.loss": loss / num, f"train.{cluster}.error": wrong / num}
        return metrics


def _sum_losses(loss_B: Tensor, hard_B: Tensor | None) -> Tensor:
    """The losses of each cluster, added up on the CPU in float64."""
    if hard_B is None:
        return loss_B.sum(0, keepdim=True, dtype=torch.float64)
    return torch.stack([~hard_B, hard_B]).double() @ loss_B.double()
