"""Running statistics advance once a step, however many passes the step makes."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

_LOOK_AT_THE_FLAG = (nn.modules.batchnorm._BatchNorm.forward, nn.SyncBatchNorm.forward)


class RunningStatistics:
    """The buffers of a model that a forward pass writes to.

    BatchNorm layers stop tracking during later passes: they still normalise with the batch, but update neither the
    running mean and variance nor the batch counter. For other modules that write to buffers (spectral norm,
    InstanceNorm, custom layers), the values after the first pass are saved and restored after the last. A pass that
    sees only a part of the batch, before the first that sees all, changes nothing.

    >>> import torch
    >>> norm = nn.BatchNorm1d(1)
    >>> with RunningStatistics(norm).freeze():
    ...     _ = norm(torch.ones(2, 1))
    >>> norm.num_batches_tracked.item()
    0
    """

    def __init__(self, model: object) -> None:
        modules = list(model.modules()) if isinstance(model, nn.Module) else []
        self.tracking = [m for m in modules if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        # A BatchNorm with a forward of its own may not look at the flag that stops the tracking.
        self.others = [m for m in modules if m._buffers and type(m).forward not in _LOOK_AT_THE_FLAG]

    def __bool__(self) -> bool:
        return bool(self.tracking or self.others)

    @contextlib.contextmanager
    def freeze(self) -> Iterator[None]:
        """Within the context, BatchNorm layers do not track."""
        # Straight into __dict__: Module.__setattr__ is slow, and this is one plain flag.
        switched: list[dict[str, Any]] = []
        for module in self.tracking:
            if module.training and module.track_running_stats:
                module.__dict__["track_running_stats"] = False
                switched.append(module.__dict__)
        try:
            yield
        finally:
            for attributes in switched:
                attributes["track_running_stats"] = True

    def watch_step(self) -> "StepWatch":
        """Watch one step: its first pass advances the statistics, passes inside `later_pass()` do not."""
        return StepWatch(self)


class StepWatch:
    """What the first pass of a step did to the buffers, and how to undo the rest."""

    def __init__(self, statistics: RunningStatistics) -> None:
        self.statistics = statistics
        self.before = [
            (module, name, buffer, _version(buffer))
            for module in statistics.others
            for name, buffer in module._buffers.items()
        ]
        self.kept: list[tuple[nn.Module, str, Tensor | None, Tensor | None]] | None = None

    def later_pass(self) -> contextlib.AbstractContextManager[None]:
        """The context for every pass after the first."""
        if self.kept is None:
            self.kept = []
            for module, name, old, version in self.before:
                now = module._buffers.get(name)
                if now is not None and (now is not old or _version(now) != version):
                    self.kept.append((module, name, now, now.detach().clone()))
        return self.statistics.freeze()

    @contextlib.contextmanager
    def early_pass(self) -> Iterator[None]:
        """The context for a pass before the first that counts; its changes are undone at its end."""
        values = [None if buffer is None else buffer.detach().clone() for *_, buffer, _ in self.before]
        try:
            with self.statistics.freeze():
                yield
        finally:
            for (module, name, buffer, version), value in zip(self.before, values, strict=True):
                if module._buffers.get(name) is not buffer or _version(buffer) != version:
                    _put_back(module, name, buffer, value)
            self.before = [(module, name, buffer, _version(buffer)) for module, name, buffer, _ in self.before]

    def restore(self) -> None:
        """Restore the buffers to their values after the first pass."""
        for each in self.kept or ():
            _put_back(*each)


def _version(buffer: Tensor | None) -> int:
    """How often a buffer was changed in place; one made in inference mode does not count, and cannot be."""
    return 0 if buffer is None or buffer.is_inference() else buffer._version


def _put_back(module: nn.Module, name: str, buffer: Tensor | None, value: Tensor | None) -> None:
    if buffer is not None and value is not None and not buffer.is_inference():
        buffer.data.copy_(value)
    module._buffers[name] = buffer
