"""Inputs that are still on disk, read batch by batch, optionally by worker processes."""

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from evenly import rng
from evenly.data.labelled import Lazy
from evenly.errors import EvenlyError, UsageError


class Decoder:
    """Reads lazy inputs through `workers` processes that stay alive between epochs, or in this one for 0.

    Only raw inputs come from the workers; whatever is random happens afterwards in one place.
    """

    def __init__(self, inputs: Lazy, *, workers: int = 0, pin_memory: bool = False) -> None:
        self._raw = _Raw(inputs)
        self._plan: list[list[int]] = []  # the loader's batch sampler, refilled for every epoch
        self._turn = 0
        self._loader: DataLoader[Tensor | EvenlyError] | None = None
        if workers:
            self._loader = DataLoader(
                self._raw,
                batch_sampler=self._plan,
                num_workers=workers,
                collate_fn=_as_is,  # batches are already stacked
                persistent_workers=True,
                pin_memory=pin_memory,
                # Without its own generator the loader would draw its workers' seeds from the global one and advance it.
                generator=rng.generator(0, "decoding"),
            )

    def read(self, batches: Sequence[Tensor]) -> Iterator[Tensor]:
        """The inputs at the positions of each batch, in order."""
        self._turn += 1
        turn = self._turn
        self._plan[:] = [positions.tolist() for positions in batches]
        source = map(self._raw.__getitems__, self._plan) if self._loader is None else iter(self._loader)
        for _ in batches:
            if turn != self._turn:
                raise UsageError(
                    "batches: another epoch was begun before this one ended, and the two share worker processes. "
                    "Finish one first, or make a second Batches of the same data."
                )
            inputs = next(source)
            if isinstance(inputs, EvenlyError):
                raise inputs
            yield inputs


class _Raw(Dataset[Tensor]):
    def __init__(self, inputs: Lazy) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitems__(self, positions: Sequence[int]) -> Tensor | EvenlyError:
        # An error returned as a value keeps its message; raised, it would arrive wrapped in a traceback.
        try:
            return self.inputs.read(positions)
        except EvenlyError as error:
            return error


def _as_is(batch: Any) -> Any:
    return batch
