"""The training loop: every run folder comes from here.

There are two engines. This loop trains one network by any recipe: real data, any model, SAM's rules, checkpoints,
many devices. `evenly.training.ensemble` trains hundreds of small networks at once as one batched computation, for the
toy problems of the papers, and keeps no run folders. A test holds the two equal on a common case.

A run is a pure function of its recipe and data. Order, augmentation and dropout are derived from (seed, epoch,
batch), so that a run which is killed at any moment and started again ends with the same bits.
"""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenly import rng
from evenly.data import Labelled
from evenly.data.batches import Batch
from evenly.errors import EvenlyError, UsageError
from evenly.optim.schedule import multiplier, radius
from evenly.progress import Bar
from evenly.records import Run
from evenly.training import checkpoint
from evenly.training.build import Parts
from evenly.training.distributed import gather, restore
from evenly.training.divergence import Diverged, divergence_error, weight_norm
from evenly.training.evaluate import outputs, scores
from evenly.training.interruption import Interruption
from evenly.training.objective import predictions
from evenly.training.placement import place
from evenly.training.shared_dropout import SharedDropout
from evenly.training.step import Step, scaler_state
from evenly.training.tally import Tally

_log = logging.getLogger(__name__)
LAST = "checkpoints/last.safetensors"
END = "checkpoints/end.safetensors"  # the state at the end, for a run that continues from there
Metrics = dict[str, Any]
#: Decides after an epoch, from the metrics of all epochs so far, whether training is over.
Enough = Callable[[Sequence[Metrics]], bool]


@dataclass
class Loop:
    """Training in progress: its state and its steps.

    `pace` is the number of seconds between checkpoints. `enough` may end training early, at the end of an epoch;
    `listeners` receive the metrics of each. `keep_end` keeps the state at the end of training; `begin_with` is a run
    that kept it and whose epochs are the first of this one.
    """

    parts: Parts
    run: Run
    interruption: Interruption
    pace: float = 60.0
    enough: Enough | None = None
    allow: frozenset[str] = frozenset()
    listeners: tuple[Callable[[Metrics], None], ...] = ()
    keep_end: bool = False
    begin_with: Run | None = None
    epoch: int = 0
    batch: int = 0
    step: int = 0
    seconds: float = 0.0
    tally: Tally = field(init=False)
    _step: Step = field(init=False)
    _dropout: SharedDropout | None = field(init=False)
    _placed: dict[str, Labelled] = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.parts.hard_N)
        self._step = Step(self.parts, self.tally)
        world, model = self.parts.world, self.parts.model
        shares = world.size > 1 and not self.parts.recipe.compile and SharedDropout.fits(model)
        self._dropout = SharedDropout(model, rank=world.rank, size=world.size) if shares else None
        self._placed = {"train": self.parts.batches.data}

    @property
    def path(self) -> Path:
        """The checkpoint from which a run resumes."""
        return self.run.path / LAST

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._since > self.pace

    @property
    def _is_evaluated(self) -> bool:
        """Whether all splits are evaluated at the end of the epoch that was trained last."""
        recipe = self.parts.recipe
        return self.epoch % recipe.evaluate_every == 0 or self.epoch == recipe.epochs

    def train(self) -> Metrics:
        """Train to the end of the recipe; return the metrics of the last epoch, with an evaluation of all splits."""
        recipe, world = self.parts.recipe, self.parts.world
        self._resume()
        history = self.run.metrics()
        self._recall(history)
        self._since = time.monotonic()
        steps = recipe.epochs * len(self.parts.batches)
        with Bar(f"training {self.run.id}", total=steps, done=self.step) as bar:
            while self.epoch < recipe.epochs and not self._is_enough(history):
                self.parts.forward.train()
                for batch in self.parts.batches.epoch(self.epoch, start=self.batch):
                    self.take(batch)
                    bar.advance()
                    stop, due = world.any_of(self.interruption.requested, self._is_due, step=self.step)
                    if stop or due:
                        self._save()
                    if stop:
                        raise self.interruption.error(f"after step {self.step}, in epoch {self.epoch + 1}")
                history.append(self._end_of_epoch())
                bar.note(loss=history[-1]["train.loss"], error=history[-1]["train.error"])
        # A rule that ends training early may do so between two evaluations.
        last = history[-1] if self._is_evaluated else history[-1] | self.evaluate()
        world.check_replicas(self.parts.model)
        if self.keep_end:
            self._save(END)
        self.save_weights()
        self.seconds += time.monotonic() - self._since
        return last

    def take(self, batch: Batch) -> None:
        """One step."""
        parts, recipe = self.parts, self.parts.recipe
        position = self.epoch + self.batch / len(parts.batches)
        factor = multiplier(recipe.schedule, epoch=position, epochs=recipe.epochs)
        if parts.ascent is not None and recipe.ascent.schedule != "constant":
            parts.ascent.rho = radius(recipe.ascent, part=position / recipe.epochs, lr_factor=factor)
        # Dropout draws from the global generators, so their state too is a function of (seed, epoch, batch).
        shared = self._dropout
        place = rng.key(recipe.seed, "dropout", parts.world.rank if shared is None else 0, self.epoch, self.batch)
        rng.seed_global(place, parts.world.device)
        with contextlib.nullcontext() if shared is None else shared.batch(share=len(batch.labels), whole=batch.whole):
            self._step.take(batch, lr=recipe.optimizer.lr * factor)
        self.step, self.batch = self.step + 1, self.batch + 1
        self._check_loss()

    def _end_of_epoch(self) -> Metrics:
        parts, world = self.parts, self.parts.world
        self._check_loss(now=True)
        self._check_weights()
        seen = self.tally.metrics(world.sum(self.tally.sums_G3))
        self.epoch, self.batch = self.epoch + 1, 0
        self.tally.reset()
        metrics: Metrics = {
            "epoch": self.epoch,
            "step": self.step,
            "lr": parts.optimizer.param_groups[0]["lr"],
            **seen,
        }
        if parts.ascent is not None and parts.ascent.skipped:
            metrics["ascents_skipped"] = parts.ascent.skipped
        if self._is_evaluated:
            metrics |= self.evaluate()
        if world.leads:
            self.run.log(**metrics)
        for listener in self.listeners:
            listener(metrics)
        if self.epoch in parts.recipe.keep_epochs:
            self.save_weights(checkpoint.kept_weights(self.epoch))
        if any(world.any_of(self._is_due)):
            self._save()
        return metrics

    def evaluate(self) -> Metrics:
        """Losses and errors of the network as it is now, split by split."""
        parts = self.parts
        metrics: Metrics = {}
        for split, data in parts.splits.items():
            if split == "train" and not parts.recipe.record_examples:
                continue
            out = self.outputs(split)
            metrics |= {
                f"{split if split != 'train' else 'train.clean'}.{name}": value
                for name, value in scores(out, data, objective=parts.objective, reference=parts.splits.train).items()
            }
            if split == "train" and parts.world.leads:
                self._record_examples(out)
        return metrics

    def outputs(self, split: str) -> Tensor:
        """The model's outputs on a split, in eval mode and without augmentation."""
        parts = self.parts
        if split not in self._placed:  # once rather than for every evaluation
            self._placed[split] = place(parts.splits[split], parts.world.device)
        return outputs(
            parts.model,
            self._placed[split],
            augment=parts.augment,
            device=parts.world.device,
            precision=parts.recipe.precision,
            memory_format=parts.memory_format,
            workers=parts.batches.workers,
        )

    def _record_examples(self, out_NC: Tensor) -> None:
        """The loss and prediction of every training example at the end of this epoch."""
        labels_N = self.parts.splits.train.labels.cpu()
        loss_N = self.parts.objective.plain(out_NC, labels_N)
        state = {"loss": loss_N, "prediction": predictions(out_NC).to(torch.int32)}
        checkpoint.save_weights(self.run, f"examples/epoch-{self.epoch:04d}.safetensors", state)

    def _is_enough(self, history: Sequence[Metrics]) -> bool:
        if self.enough is None or self.batch > 0 or not history:
            return False
        # One process decides for all: errors may differ by BatchNorm's running statistics, and clocks do.
        return bool(self.parts.world.broadcast(self.enough(history)))

    def _recall(self, history: Sequence[Metrics]) -> None:
        """After a stop, show the rule that ends training the epochs it has judged before: it may count them."""
        if self.enough is not None:
            judged = len(history) if self.batch > 0 else len(history) - 1
            for num in range(1, judged + 1):
                self.enough(history[:num])

    def _check_loss(self, *, now: bool = False) -> None:
        """Stop and name the step whose loss is not finite: at that step on the CPU, some steps later elsewhere."""
        total = self.tally.settle(now=now)
        if not math.isfinite(total):
            raise self._divergence(f"the loss is {total}", step=self.step - self.tally.steps_since)

    def _check_weights(self) -> None:
        """The loss belongs to the weights before the step, so the weights after it are checked separately."""
        size = weight_norm(self.parts.model)
        if not math.isfinite(size):
            raise self._divergence(f"the norm of the weights is {size}")

    def _divergence(self, what: str, *, step: int | None = None) -> Diverged:
        parts = self.parts
        epoch = self.epoch + (self.batch > 0)
        return divergence_error(
            what,
            parts.recipe,
            parts.model,
            step=step or self.step,
            epoch=epoch,
            path=self.path,
            data=parts.splits.train,
        )

    def save_weights(self, name: str = "weights.safetensors") -> None:
        """Keep the weights as they are now; on several devices all of them must call this."""
        weights = self._weights()
        if self.parts.world.leads:
            checkpoint.save_weights(self.run, name, weights)

    def _weights(self) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = gather(self.parts.model.state_dict())
        return weights

    def _save(self, name: str = LAST) -> None:
        parts, world = self.parts, self.parts.world
        self._check_loss(now=True)
        self._check_weights()
        now = time.monotonic()
        self.seconds += now - self._since
        self._since = now
        state = {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "seconds": self.seconds,
            "sums": world.sum(self.tally.sums_G3),
            "lines": len(self.run.metrics()) if world.leads else 0,
            "world": world.size,
            "device": world.kind,
            "model": self._weights(),
            "optimizer": gather(parts.optimizer.state_dict()),
            "ascent": parts.ascent.state_dict() if parts.ascent is not None else None,
            "scaler": scaler_state(parts),
        }
        if world.leads:
            checkpoint.save(self.run, name, checkpoint.with_contents(state))
        world.wait()

    def _resume(self) -> None:
        world = self.parts.world
        if not self.path.exists():
            if world.leads:
                self.run.truncate_metrics(0)
            if self.begin_with is not None:
                self._begin_with(self.begin_with)
            world.wait()
            return
        state = checkpoint.load(self.run, LAST)
        checkpoint.refuse_incomplete(self.path, state)
        try:
            self._go_on_from(state)
        except (LookupError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            if isinstance(error, EvenlyError):
                raise
            raise checkpoint.misfit_error(self.path, error) from error
        if world.leads:
            self.run.truncate_metrics(state["lines"])
            _log.info("run %s resumes after step %d, in epoch %d.", self.run.id, self.step, self.epoch + 1)
        world.wait()

    def _begin_with(self, early: Run) -> None:
        """Continue from a run that is the beginning of this one: take its metrics and its final state."""
        state = checkpoint.load(early, END)
        if state["world"] != self.parts.world.size or state["device"] != self.parts.world.kind:
            return  # its bits would differ on this machine: train from scratch
        checkpoint.refuse_incomplete(early.path / END, state)
        self._go_on_from(state)
        if self.parts.world.leads:
            for row in early.metrics()[: state["lines"]]:
                self.run.log(**row)
            _log.debug("run %s begins with the %d epochs of run %s.", self.run.id, self.epoch, early.id)

    def _go_on_from(self, state: dict[str, Any]) -> None:
        parts, world = self.parts, self.parts.world
        for name, now in (("world", world.size), ("device", world.kind)):
            was = state[name]
            if was != now and name not in self.allow:
                raise UsageError(
                    f"run {self.run.id} cannot resume exactly: {name} was {was} and is {now}. Resume as before, "
                    f"--allow {name} to resume anyway, or remove {self.path} to begin again."
                )
        checkpoint.check_place(state, epochs=parts.recipe.epochs, steps=len(parts.batches), sums=self.tally.sums_G3)
        restore(parts.model, parts.optimizer, state["model"], state["optimizer"])
        if parts.ascent is not None:
            parts.ascent.load_state_dict(state["ascent"])
        if parts.scaler is not None and state.get("scaler"):
            parts.scaler.load_state_dict(state["scaler"])
        self.epoch, self.batch, self.step = state["epoch"], state["batch"], state["step"]
        self.seconds = float(state["seconds"])
        # One process keeps the sums of all; they are summed over processes again at the end of the epoch.
        self.tally.reset(state["sums"] if world.leads else None)
