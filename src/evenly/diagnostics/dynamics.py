"""A log of every example during training, from any training loop.

Shapes: N examples known so far, B examples of an update, C classes.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from evenly.data.batches import occurrences
from evenly.errors import DataError, UsageError

_INTEGERS = ("seen", "judged", "right", "forgotten", "first_learned", "last_right", "last_epoch")
_AT_EPOCH_END = ("evaluated", "forgotten_at_epoch_end", "last_right_at_epoch_end")
_SUMS = ("margin", "el2n", "confidence", "squared_deviation")
MOST = 2**28  # rows; a larger index must be an identifier, not a position


class Dynamics:
    """`log.update(logits, labels, indices)` at every batch; `log.table()` at any time.

    From one pass over the outputs come, for each example: forgetting events (Toneva et al., 2019), the area under the
    margin (Pleiss et al., 2020), EL2N (Paul et al., 2021), mean confidence and variability (Swayamdipta et al., 2020).

    Rows are by the index of the original example: copies of an example share one. Without `epoch` every presentation is
    judged; with `epoch=` an example is judged once per epoch, by the first copy that is shown, so that counts of
    repeated and single examples can be compared. Means are always over all presentations.

    Forgetting is counted in two ways, and they differ. `forgotten_at_presentation` (Toneva et al., 2019; `forgotten`
    for short) compares an example with its previous presentation. `forgotten_at_epoch_end` (Nguyen et
    al., 2024, figure 8) compares evaluations of all examples with the same weights, one after each epoch: log those by
    `evaluate`.

    >>> log = Dynamics()
    >>> for logits in ([2.0, 0.0], [0.0, 1.0], [3.0, 0.0]):  # right, forgotten, right
    ...     log.update(torch.tensor([logits]), torch.tensor([0]), torch.tensor([5]))
    >>> table = log.table()
    >>> table["index"].tolist(), table["forgotten"].tolist(), table["first_learned"].tolist()
    ([5], [1], [1])
    >>> round(table["area_under_margin"].item(), 6)  # the mean of 2, −1 and 3
    1.333333
    """

    def __init__(self) -> None:
        integers = (*_INTEGERS, *_AT_EPOCH_END)
        self._columns: dict[str, Tensor] = {name: torch.zeros(0, dtype=torch.int64) for name in integers}
        self._columns |= {name: torch.zeros(0, dtype=torch.float64) for name in _SUMS}

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor, *, epoch: int | None = None) -> None:
        """Log one batch: logits B × C (or B for two classes), class numbers, and the index of each example."""
        logits_BC, labels_B, index_B = self._validate(logits, labels, indices)
        self._grow(int(index_B.max()) + 1 if len(index_B) else 0)
        p_BC = logits_BC.softmax(1)
        own_B1 = labels_B[:, None]
        others_BC = logits_BC.scatter(1, own_B1, -torch.inf)
        facts = {
            "margin": logits_BC.gather(1, own_B1)[:, 0] - others_BC.max(1).values,
            "el2n": torch.linalg.vector_norm(p_BC.scatter_add(1, own_B1, -torch.ones_like(p_BC[:, :1])), dim=1),
            "confidence": p_BC.gather(1, own_B1)[:, 0],
        }
        right_B = (facts["margin"] > 0).long()
        # Copies of one example in one batch follow each other: one round for the firsts, one for the seconds.
        round_B = occurrences(index_B)
        for turn in range(int(round_B.max()) + 1 if len(round_B) else 0):
            now = round_B == turn
            self._log(index_B[now], {name: fact[now] for name, fact in facts.items()}, right_B[now], epoch)

    def evaluate(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Log an evaluation at the end of an epoch: each example once, in one call or several, and not trained on.

        >>> log = Dynamics()
        >>> for logits in ([2.0, 0.0], [0.0, 1.0]):
        ...     log.evaluate(torch.tensor([logits]), torch.tensor([0]), torch.tensor([5]))
        >>> log.table()["forgotten_at_epoch_end"].tolist()
        [1]
        """
        logits_BC, labels_B, index_B = self._validate(logits, labels, indices)
        if len(index_B.unique()) < len(index_B):  # type: ignore[no-untyped-call]  # untyped in torch
            raise UsageError("an evaluation shows every example once: give each index once.")
        self._grow(int(index_B.max()) + 1 if len(index_B) else 0)
        c, own_B1 = self._columns, labels_B[:, None]
        best_B = logits_BC.scatter(1, own_B1, -torch.inf).max(1).values
        right_B = (logits_BC.gather(1, own_B1)[:, 0] > best_B).long()
        c["forgotten_at_epoch_end"][index_B] += ((c["last_right_at_epoch_end"][index_B] == 1) & (right_B == 0)).long()
        c["evaluated"][index_B] += 1
        c["last_right_at_epoch_end"][index_B] = right_B

    def table(self) -> dict[str, Tensor]:
        """One row per example seen, as columns.

        `seen` presentations, of which `judged` ones count for `right`, `forgotten` (right, then wrong; also
        `forgotten_at_presentation`) and `first_learned` (the first judgement that was right, from 1; 0 for never);
        `never_learned`; `evaluated`, how often `evaluate` was called, and `forgotten_at_epoch_end`;
        `area_under_margin`, `el2n`, `confidence`, `variability` (standard deviation of the confidence).
        """
        c = self._columns
        rows = ((c["seen"] > 0) | (c["evaluated"] > 0)).nonzero().flatten()
        seen = c["seen"][rows]
        return {
            "index": rows,
            "seen": seen,
            "judged": c["judged"][rows],
            "right": c["right"][rows],
            "forgotten": c["forgotten"][rows],
            "forgotten_at_presentation": c["forgotten"][rows],
            "evaluated": c["evaluated"][rows],
            "forgotten_at_epoch_end": c["forgotten_at_epoch_end"][rows],
            "first_learned": c["first_learned"][rows],
            "never_learned": c["first_learned"][rows] == 0,
            "area_under_margin": c["margin"][rows],
            "el2n": c["el2n"][rows],
            "confidence": c["confidence"][rows],
            "variability": (c["squared_deviation"][rows] / seen.clamp_min(1)).clamp_min(0).sqrt(),
        }

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that has been logged, to be saved with a checkpoint."""
        return {name: column.clone() for name, column in self._columns.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`."""
        if not set(self._columns) - set(_AT_EPOCH_END) <= set(state) <= set(self._columns):
            raise DataError(
                f"this is not the state of a Dynamics log: it holds {', '.join(sorted(state)) or 'nothing'}."
            )
        rows = len(torch.as_tensor(state["seen"]))
        # Logs of version 0.1 hold no evaluations.
        self._columns = {
            name: torch.as_tensor(state[name]).clone() if name in state else column.new_zeros(rows)
            for name, column in self._columns.items()
        }

    def _log(self, i: Tensor, facts: dict[str, Tensor], right: Tensor, epoch: int | None) -> None:
        c = self._columns
        c["seen"][i] += 1
        deviation = facts["confidence"] - c["confidence"][i]
        for name, fact in facts.items():  # running means: sums would lose digits over many epochs
            c[name][i] += (fact - c[name][i]) / c["seen"][i]
        c["squared_deviation"][i] += deviation * (facts["confidence"] - c["confidence"][i])
        if epoch is not None:
            fresh = (c["judged"][i] == 0) | (c["last_epoch"][i] != epoch)
            i, right = i[fresh], right[fresh]
            c["last_epoch"][i] = epoch
        c["forgotten"][i] += ((c["last_right"][i] == 1) & (right == 0)).long()
        c["judged"][i] += 1
        c["right"][i] += right
        first = (right == 1) & (c["first_learned"][i] == 0)
        c["first_learned"][i[first]] = c["judged"][i[first]]
        c["last_right"][i] = right

    def _grow(self, rows: int) -> None:
        have = len(self._columns["seen"])
        if rows > have:
            room = max(rows, have + have // 2)
            for name, column in self._columns.items():
                self._columns[name] = torch.cat([column, column.new_zeros(room - have)])

    def _validate(self, logits: Tensor, labels: Tensor, indices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits_BC, labels_B, index_B = logits.detach().cpu().double(), labels.detach().cpu(), indices.detach().cpu()
        if logits_BC.ndim == 1 or (logits_BC.ndim == 2 and logits_BC.shape[1] == 1):
            # One output z tells two classes apart as the logits (−z/2, z/2) do: same probabilities, margin ±z.
            z_B1 = logits_BC.reshape(-1, 1) / 2
            logits_BC = torch.cat([-z_B1, z_B1], dim=1)
        if not len(logits_BC) == len(labels_B) == len(index_B):
            raise DataError(
                f"{len(logits_BC)} logits, {len(labels_B)} labels, {len(index_B)} indices: one each is needed."
            )
        for name, column in (("labels", labels_B), ("indices", index_B)):
            if column.is_floating_point() or column.ndim != 1:
                raise UsageError(
                    f"{name} must be whole numbers, one per example, not {column.dtype} {tuple(column.shape)}."
                )
        if len(index_B) and not 0 <= int(index_B.min()) <= int(index_B.max()) < MOST:
            raise UsageError(
                f"indices run from 0 to {MOST - 1}: number the examples by their position in the data set."
            )
        if len(labels_B) and not 0 <= int(labels_B.min()) <= int(labels_B.max()) < logits_BC.shape[1]:
            wrong = int(labels_B[(labels_B < 0) | (labels_B >= logits_BC.shape[1])][0])
            raise DataError(
                f"label {wrong} does not fit {logits_BC.shape[1]} logits: classes are numbered from 0 to "
                f"{logits_BC.shape[1] - 1}."
            )
        if not torch.isfinite(logits_BC).all():
            bad = int((~torch.isfinite(logits_BC)).any(1).nonzero()[0])
            raise DataError(f"the logits of example {int(index_B[bad])} are not finite.")
        return logits_BC, labels_B.long(), index_B.long()
