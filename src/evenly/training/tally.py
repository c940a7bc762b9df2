"""What training itself sees of its examples: loss and error over an epoch, of easy and hard ones apart where known.

Shapes: N training examples, B of them in a batch, G clusters (one, or easy and hard).
"""

import torch
from torch import Tensor

from evenly.training.objective import predictions


class Tally:
    """Sums over the examples of an epoch, each counted once, in the first pass of a step that sees it.

    That pass is at the weights themselves, but for what only a pass at displaced weights sees: the rest of a batch of
    which SAM climbs on a `fraction`, and all of it under a rule that does not look before it moves.

    `hard_N` says of every training example whether it is hard. Only sums are kept, on `device`, so that they can be
    added up over processes and put back after a stop.

    >>> tally = Tally(torch.tensor([False, True]))
    >>> tally.begin(torch.tensor([1, 0]))
    >>> outputs, labels = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> for _ in range(2):  # the second pass of a step is not counted
    ...     tally.see(torch.arange(2), torch.tensor([1.5, 0.5]), outputs, labels)
    >>> tally.metrics(tally.sums_G3)["train.loss"], tally.metrics(tally.sums_G3)["train.hard.error"]
    (1.0, 1.0)
    """

    def __init__(self, hard_N: Tensor | None = None, *, device: torch.device | str = "cpu") -> None:
        self.hard_N = hard_N
        self.sums_G3 = torch.zeros(1 if hard_N is None else 2, 3, dtype=torch.float64, device=device)
        self._hard_B: Tensor | None = None
        self._num_seen = 0

    def begin(self, position_B: Tensor) -> None:
        """A step begins, on the training examples at these positions."""
        self._num_seen = 0
        self._hard_B = None if self.hard_N is None else self.hard_N[position_B]

    def see(self, place_B: Tensor, loss_B: Tensor, outputs_BC: Tensor, labels_B: Tensor) -> None:
        """Outputs and losses of those of the step's examples that stand at `place_B`; each counts the first time.

        SAM may take a batch in groups, one after the other, and climb on the beginning of each: a part is consecutive
        places, and what is new in it are those after all that were seen.
        """
        if not len(place_B):
            return
        first = int(place_B[0])
        known = max(self._num_seen - first, 0)
        if known >= len(place_B):
            return
        self._num_seen = first + len(place_B)
        if known:
            place_B, loss_B, outputs_BC, labels_B = (t[known:] for t in (place_B, loss_B, outputs_BC, labels_B))
        loss_B, wrong_B = loss_B.detach(), predictions(outputs_BC.detach()) != labels_B
        if self._hard_B is None:
            count = loss_B.new_full((), len(loss_B))
            self.sums_G3 += torch.stack([loss_B.sum(dtype=torch.float64), wrong_B.sum(), count])
            return
        hard_B, loss_B, wrong_B = self._hard_B[place_B], loss_B.double(), wrong_B.double()
        member_2B = torch.stack([~hard_B, hard_B]).to(loss_B)
        self.sums_G3 += member_2B @ torch.stack([loss_B, wrong_B, torch.ones_like(loss_B)], dim=1)

    def metrics(self, sums_G3: Tensor) -> dict[str, float]:
        """What sums, of this process or of all, come to: means over all examples, and over each cluster."""
        loss, wrong, num = sums_G3.sum(0).tolist()
        found = {"train.loss": loss / num, "train.error": wrong / num}
        if len(sums_G3) == 2:
            for cluster, (loss, wrong, num) in zip(("easy", "hard"), sums_G3.tolist(), strict=True):
                if num:
                    found |= {f"train.{cluster}.loss": loss / num, f"train.{cluster}.error": wrong / num}
        return found
