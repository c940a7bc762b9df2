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

#: The attribute of a wrapped `training_step` that holds what the module had in its place; None for its class's own.
_OWN = "evenly_own"


class SharpnessAwareTraining(Callback):
    """Train with a rule of the SAM family: `Trainer(callbacks=[SharpnessAwareTraining(evenly.SAM, rho=0.05)])`.

    `training_step` is called twice a batch, and what it logs is logged once, in the first pass; metrics that it
    updates itself are updated in both. Precision, accumulation, clipping, DDP and checkpoints are Lightning's. With
    `automatic_optimization = False` use `SAM(self, backward=self.manual_backward)` in `training_step` instead.
    """

    def __init__(self, rule: Callable[..., DisplacedGradient], **options: Any) -> None:
        super().__init__()
        kind = type(rule).__name__
        if not callable(rule):
            raise UsageError(
                "SharpnessAwareTraining builds the rule itself, when the module lies where it will train, and was "
                f"given a {kind}: give the class and its options, SharpnessAwareTraining(evenly.SAM, rho=0.05)."
            )
        self.build = partial(rule, **options)
        self.sam: DisplacedGradient | None = None
        #: A state read from a checkpoint, until it is loaded.
        self._state: dict[str, Any] | None = None
        self._fitting = False

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Build the rule, now that the module lies where it will train, and put it around `training_step`."""
        if not pl_module.automatic_optimization:
            raise UsageError(
                "SharpnessAwareTraining is for automatic optimization: in a manual training_step call "
                "SAM(self, backward=self.manual_backward).backward(...)"
            )
        _unwrap(pl_module)  # of a fit that ended without a word
        self.sam = self.build(pl_module)
        if self._state is not None:
            self.sam.load_state_dict(self._state)
            self._state = None
        self._fitting = True
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
                    if "loss" not in output:
                        raise UsageError(
                            f"training_step returned a {type(output).__name__} of {', '.join(map(str, output))}: SAM "
                            "needs the loss of every step under the name `loss`."
                        )
                    return output["loss"], output
                if not isinstance(output, Tensor):
                    raise UsageError(f"training_step returned {type(output).__name__}: SAM needs a loss in every step")
                return output

            loss = self.sam.loss(closure)
            return loss if isinstance(loss, Tensor) else {**loss[1], "loss": loss[0]}

        vars(training_step)[_OWN] = vars(pl_module).get("training_step")
        vars(pl_module)["training_step"] = training_step

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        """Lightning clears gradients only after the next `training_step`, so end the rule's step here."""
        if self.sam is not None:
            self.sam.end_step(optimizer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the module its own `training_step` back."""
        self._fitting = False
        _unwrap(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Do so after an error or Ctrl-C too, when Lightning does not call `teardown`."""
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, part of Lightning's checkpoint."""
        return {} if self.sam is None else self.sam.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state, or keep it until the rule of the next fit is built."""
        if self._fitting and self.sam is not None and state_dict:
            self.sam.load_state_dict(state_dict)
        else:
            self._state = state_dict or None


def _unwrap(module: LightningModule) -> None:
    """Give the module its own `training_step` back, however often it was wrapped."""
    attributes = vars(module)
    while hasattr(attributes.get("training_step"), _OWN):
        own = getattr(attributes.pop("training_step"), _OWN)
        if own is not None:
            attributes["training_step"] = own


@contextlib.contextmanager
def _silent(module: LightningModule) -> Iterator[None]:
    """Within the context, `log` and `log_dict` of the module do nothing."""
    attributes, names = vars(module), ("log", "log_dict")
    own = {name: attributes[name] for name in names if name in attributes}
    attributes.update(dict.fromkeys(names, lambda *args, **kwargs: None))
    try:
        yield
    finally:
        for name in names:
            attributes.pop(name, None)
        attributes.update(own)
