"""A recipe, trained: the run folder is made or found, training goes on to its end, and the run is marked done."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from evenly import rng
from evenly.data import Splits
from evenly.device import repeatable
from evenly.environment import stamp
from evenly.errors import UsageError
from evenly.optim.cost import passes_per_step
from evenly.recipe import Ascent, Recipe, to_mapping
from evenly.records import Run
from evenly.records.earlier import earlier
from evenly.resampling import Separation
from evenly.resampling.moment import AtEpoch
from evenly.training.distributed import World
from evenly.training.evidence import EXAMPLES, leave_evidence
from evenly.training.identify import agreed, identify
from evenly.training.interruption import Interruption
from evenly.training.loop import LAST, Enough, Loop
from evenly.training.objective import predictions
from evenly.training.parts import Parts, assemble, load_data
from evenly.training.predictions import final_predictions, save_predictions
from evenly.training.shortage import explained
from evenly.training.stages import (
    OUTPUTS,
    chosen,
    errors_so_far,
    fitted,
    go_on_from,
    keep_outputs,
    kept_epoch,
    moment,
)
from evenly.training.tensorboard import writing

_log = logging.getLogger(__name__)
CHANGES = frozenset({"world", "device"})


def train(
    recipe: Recipe,
    *,
    runs: str | os.PathLike[str] = "runs",
    splits: Splits | None = None,
    indices: Tensor | None = None,
    weights: Tensor | None = None,
    enough: Enough | None = None,
    device: str = "auto",
    data_root: str | None = None,
    workers: int = 0,
    pace: float = 60.0,
    allow: Iterable[str] = (),
    tensorboard: bool = False,
) -> Run:
    """Train the recipe in its own folder under `runs`, from the beginning, from where it stopped, or not at all.

    Parameters
    ----------
    recipe
        The run, described.
    runs
        The folder that holds run folders; this one's is named by the run's identity: every setting of the recipe,
        the data, and the indices, weights and rule for stopping that are given here.
    splits
        The data, where they are loaded already; by default those that the recipe names.
    indices, weights
        A multiset of positions in the training set to train on; a factor for every training example's loss.
    enough
        Decides after each epoch, from the metrics so far, whether training may end early.
    device, data_root, workers
        Where it runs, where data lie, how many processes decode files: none of them changes the result.
    pace
        Seconds from one checkpoint to the next.
    allow
        What may differ from the sitting before: `world`, the number of processes; `device`, the kind of device.
    tensorboard
        Whether to write the metrics for TensorBoard too, into the run's folder.

    Examples
    --------
    >>> import tempfile
    >>> from evenly.recipe import Data, Model
    >>> recipe = Recipe(data=Data("parity", {"dim": 5}), model=Model("mlp"), epochs=2, batch_size=50)
    >>> run = train(recipe, runs=tempfile.mkdtemp(), device="cpu")
    >>> run.state, len(run.metrics()), (run.path / "weights.safetensors").exists()
    ('done', 2, True)
    """
    for change in allow:
        if change == "data":
            raise UsageError("allow: changed data are another run, and the old one stays as it is. Leave `data` out.")
        if change not in CHANGES:
            raise UsageError(f"allow: {change!r} cannot be allowed to change; {', '.join(sorted(CHANGES))} can.")
    if not pace >= 0:
        raise UsageError(f"pace = {pace} is the seconds between checkpoints: give 0 or more, such as 60.")
    world = World.join(device)
    data = splits if splits is not None else load_data(recipe, data_root=data_root)
    identity = agreed(world, lambda: identify(recipe, data, indices=indices, weights=weights, enough=enough))
    run = Run(os.path.join(runs, identity.id))
    if world.shared(run.state == "done"):
        run.check(to_mapping(recipe), identity)
        if world.leads:  # left where the process was killed between the end of training and this
            with contextlib.suppress(OSError):
                (run.path / LAST).unlink(missing_ok=True)
        return run
    if recipe.sharded and world.size == 1:
        _log.info("sharded=true has no effect in one process: start more with torchrun.")
    if recipe.precision == "bf16" and world.device.type == "cpu" and not _has_bfloat16():
        _log.info("this CPU has no bfloat16 arithmetic: precision=bf16 is slower here than fp32.")
    with (
        explained(recipe, world.device),
        repeatable(recipe.deterministic, world.device),
        rng.forked([world.device]),
        Interruption() as interruption,
    ):
        separation, hard = None, None
        if recipe.resampling.method != "none":
            first, separation, indices, weights, hard = chosen(recipe, runs=runs, data=data.train)
        given = {"indices": indices, "weights": weights, "hard": hard}
        parts = assemble(recipe, world=world, splits=data, workers=workers, **given)
        if separation is not None:
            go_on_from(first, recipe, parts.model)
        environment = stamp(data=parts.splits.fingerprint, device=world.device) if world.leads else None
        if world.leads:
            if not run.path.exists() and (remark := earlier(runs, identity)) is not None:
                _log.info(remark)
            run = Run.create(runs, to_mapping(recipe), identity.id, identity=identity, environment=environment)
        world.wait()
        if world.shared(run.state == "done"):  # by another process, while this one read the data
            return run
        with run, contextlib.ExitStack() as stack:
            if separation is not None and world.leads and not run.file(EXAMPLES).exists():
                leave_evidence(run, separation, early=first, data=data.train)
            loop = Loop(parts, run, interruption, pace=pace, enough=enough or early(parts), allow=frozenset(allow))
            heard: list[Callable[[dict[str, Any]], None]] = []
            if tensorboard and world.leads:
                seen = len(run.metrics())
                heard.append(stack.enter_context(writing(run.path / "tensorboard", purge_after=seen)))
            if recipe.until.rule != "end":
                heard.append(lambda metrics: leave_outputs(loop, metrics))
            loop.listeners = tuple(heard)
            last = loop.train()
            said = final_predictions(loop) if recipe.until.rule == "end" else None
            if world.leads:
                if said is not None:
                    save_predictions(run, said)
                run.finish(summary(parts, loop, last, separation))
                loop.path.unlink(missing_ok=True)
            world.wait()
    return run


def early(parts: Parts) -> Enough | None:
    """The recipe's own word on when training is over before its last epoch; by gain, also once all is fitted."""
    until = parts.recipe.until
    rule = moment(until, epochs=parts.recipe.epochs)
    if rule is None:
        return None

    def enough(history: Sequence[dict[str, Any]]) -> bool:
        errors = errors_so_far(history, num_classes=parts.splits.num_classes)
        return rule(errors) or (until.rule == "gain" and fitted(history[-1]["train.error"]))

    return enough


def leave_outputs(loop: Loop, metrics: dict[str, Any]) -> None:
    """Keep the outputs of this epoch: the last that an early run ends with, unless it has fitted everything."""
    recipe, train = loop.parts.recipe, loop.parts.splits.train
    rule = moment(recipe.until, epochs=recipe.epochs)
    if isinstance(rule, AtEpoch) and metrics["epoch"] < rule.epoch:
        return  # only a rule that looks at the errors may turn out to have come an epoch ago
    kept = loop.outputs("train")
    error = float((predictions(kept) != train.labels.cpu()).double().mean())
    first = not (loop.run.path / OUTPUTS).exists()
    if loop.parts.world.leads and (first or recipe.until.rule != "gain" or not fitted(error)):
        keep_outputs(loop.run, kept, train, epoch=metrics["epoch"])


def summary(parts: Parts, loop: Loop, last: dict[str, Any], separation: Separation | None) -> dict[str, Any]:
    """What a run comes to: the last epoch's metrics, what it cost, and how large the model is."""
    seen = loop.epoch * parts.batches.examples
    found = {
        **last,
        "training_examples": len(parts.splits.train),
        "examples_seen": seen,
        "gradients": round(seen * passes(parts.recipe.ascent)),
        "parameters": sum(p.numel() for p in parts.model.parameters()),
        "seconds": round(loop.seconds, 3),
    }
    if separation is not None:
        found["hard_share"] = separation.share
    if parts.recipe.until.rule != "end":
        found["separated_at"] = kept_epoch(loop.run)
    return found


def passes(ascent: Ascent) -> float:
    """Gradients per example and step: one, and one more where a rule looks first, as often and on as much as it does.

    >>> passes(Ascent("none")), passes(Ascent("sam")), passes(Ascent("sam", 0.1, {"every": 5})), passes(Ascent("lsam"))
    (1.0, 2.0, 1.2, 1.0)
    >>> passes(Ascent("sam", 0.0))  # a plain step
    1.0
    """
    if ascent.radius == 0:
        return 1.0
    return passes_per_step(ascent.rule, ascent.options)


def _has_bfloat16() -> bool:
    """Whether the CPU computes in bfloat16 itself rather than by detours; True where torch cannot tell."""
    asked = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return any(ask is None or ask() for ask in asked)
