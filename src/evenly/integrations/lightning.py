"""SAM under Lightning's automatic optimization: a callback; the module stays as it is."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from evenly.errors import SetupError, UsageError
from evenly.optim.displaced_gradient import DisplacedGradient

try:
    from pytorch_lightning import Callback, LightningModule, Trainer
except ImportError as error:
    raise SetupError('Lightning is not installed: pip install "evenly[lightning]"') from error


class SharpnessAwareTraining(Callback):
    """Train with a rule of the SAM family: `Trainer(callbacks=[SharpnessAwareTraining(evenly.SAM, rho=0.05)])`.

    `training_step` is called twice a batch, and what it logs is logged once, in the first pass; metrics that it
    updates itself are updated in both. Precision, accumulation, clipping, DDP and checkpoints are Lightning's. With
    `automatic_optimization = False` use `SAM(self, backward=self.manual_backward)` in `training_step` instead.
    """

    def __init__(self, rule: Callable[..., DisplacedGradient], **options: Any) -> None:
        super().__init__()
        self.build = partial(rule, **options)
        self.sam: DisplacedGradient | None = None
        self._state: dict[str, Any] | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Build the rule, now that the module lies where it will train, and put it around `training_step`."""
        if not pl_module.automatic_optimization:
            raise UsageError(
                "SharpnessAwareTraining is for automatic optimization: in a manual training_step call "
                "SAM(self, backward=self.manual_backward).backward(...)"
            )
        self.sam = self.build(pl_module)
        if self._state is not None:
            self.sam.load_state_dict(self._state)
        original = pl_module.training_step

        def training_step(*args: Any, **kwargs: Any) -> Any:
            assert self.sam is not None
            passes = 0

            def closure() -> Any:
                nonlocal passes
                passes += 1
                with contextlib.nullcontext() if passes == 1 else _silent(pl_module):
                    output = original(*args, **kwargs)
                if isinstance(output, Mapping):
                    return output["loss"], output
                if not isinstance(output, Tensor):
                    raise UsageError(f"training_step returned {type(output).__name__}: SAM needs a loss in every step")
                return output

            loss = self.sam.loss(closure)
            return loss if isinstance(loss, Tensor) else {**loss[1], "loss": loss[0]}

        pl_module.training_step = training_step  # type: ignore[method-assign]

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        """Lightning clears gradients only after the next `training_step`, so end the rule's step here."""
        if self.sam is not None:
            self.sam.end_step()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the module its own `training_step` back."""
        vars(pl_module).pop("training_step", None)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, part of Lightning's checkpoint."""
        return {} if self.sam is None else self.sam.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state, or keep it until the rule is built."""
        self._state = state_dict or None
        if self.sam is not None and self._state is not None:
            self.sam.load_state_dict(self._state)


@contextlib.contextmanager
def _silent(module: LightningModule) -> Iterator[None]:
    """Within the context, `log` and `log_dict` of the module do nothing."""
    for name in ("log", "log_dict"):
        vars(module)[name] = lambda *args, **kwargs: None
    try:
        yield
    finally:
        for name in ("log", "log_dict"):
            vars(module).pop(name, None)
