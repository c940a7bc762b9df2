"""`train`: create or find the run folder of a recipe, train to the end, and mark the run as done."""

import contextlib
import copy
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from evenly import rng
from evenly.cpu_bfloat16 import check_bfloat16_on_cpu, has_native_bfloat16
from evenly.data import Splits
from evenly.data.splits import require_splits
from evenly.device import repeatable
from evenly.environment import stamp
from evenly.models.seeding import single_precision
from evenly.recipe import Recipe, to_mapping
from evenly.records import Run
from evenly.records.previous import previous_run
from evenly.resampling import Separation
from evenly.resampling.moment import AtEpoch
from evenly.training.argument_checks import allowed_changes, check_settings, numbers, require_recipe
from evenly.training.build import build_parts, check_given, load_data
from evenly.training.continuation import is_beginning
from evenly.training.distributed import World
from evenly.training.early import OUTPUTS, fits_nearly_all, moment, save_outputs, stopping_rule
from evenly.training.evidence import EXAMPLES, write_evidence
from evenly.training.identify import agree, identify
from evenly.training.interruption import Interruption
from evenly.training.last_layer import check_can_refit, check_last_layer, on_last_layer, refit_last_layer
from evenly.training.loop import LAST, Enough, Loop
from evenly.training.model_record import NAME as MODEL
from evenly.training.model_record import model_record
from evenly.training.objective import predictions
from evenly.training.out_of_memory import explain_out_of_memory
from evenly.training.predictions import final_predictions, save_predictions
from evenly.training.run_summary import remarks, summarise
from evenly.training.selection import load_early_weights, select
from evenly.training.tensorboard import metrics_writer

_log = logging.getLogger(__name__)


def train(
    recipe: Recipe,
    *,
    runs: str | os.PathLike[str] = "runs",
    splits: Splits | None = None,
    indices: Tensor | Sequence[int] | None = None,
    weights: Tensor | Sequence[float] | None = None,
    enough: Enough | None = None,
    device: str = "auto",
    data_root: str | None = None,
    workers: int | None = None,
    pace: float = 60.0,
    allow: str | Iterable[str] = (),
    tensorboard: bool = False,
) -> Run:
    """Train the recipe in its own folder under `runs`; resume it if it was stopped, return it if it is done.

    Parameters
    ----------
    recipe
        The settings of the run.
    runs
        The folder of run folders. A run's folder is named by its identity: every setting of the recipe, the data, and
        the indices, weights and stopping rule given here.
    splits
        The data, if they are already loaded; by default those that the recipe names. Both are checked first: empty
        splits, inputs that are not finite, classes without a training example are refused (`evenly.data.checks`).
    indices, weights
        A multiset of positions in the training set to train on; a factor from 0 on for every training example's loss.
    enough
        Decides after each epoch, from the metrics of all epochs so far, whether training may end early. An object is
        copied first: what it counts in one run must not change the identity or the end of the next.
    device, data_root, workers
        The device, the folder of data sets, and the number of processes that decode files (by default as many as a GPU
        can use on this machine, and none without one). None of them changes the result.
    pace
        Seconds between checkpoints.
    allow
        What may have changed since the run was stopped, one or several: `world`, the number of processes; `device`, the
        kind of device.
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
    if splits is not None:
        check_given(splits)
    return train_from(
        None,
        recipe,
        runs=runs,
        splits=splits,
        indices=indices,
        weights=weights,
        enough=enough,
        device=device,
        data_root=data_root,
        workers=workers,
        pace=pace,
        allow=allow,
        tensorboard=tensorboard,
    )


@single_precision()
def train_from(
    early: Run | None,
    recipe: Recipe,
    *,
    runs: str | os.PathLike[str] = "runs",
    splits: Splits | None = None,
    indices: Tensor | Sequence[int] | None = None,
    weights: Tensor | Sequence[float] | None = None,
    enough: Enough | None = None,
    device: str = "auto",
    data_root: str | None = None,
    workers: int | None = None,
    pace: float = 60.0,
    allow: str | Iterable[str] = (),
    tensorboard: bool = False,
    keep_end: bool = False,
    remark: bool = True,
) -> Run:
    """Like `train`, but continue from the end of `early` if its epochs are the first epochs of this recipe.

    The result is that of training from scratch, bit for bit (`evenly.training.continuation`). With `keep_end` a run
    keeps its final state, so that another one can continue from it. Without `remark` nothing is said about the data
    or of a run that is done already, for a comparison that has said it.
    """
    require_recipe(recipe)
    check_settings(enough=enough, pace=pace, workers=workers)
    allowed = allowed_changes(allow)
    positions, factors = numbers("indices", indices), numbers("weights", weights)
    world = World.join(device)
    data = require_splits(splits) if splits is not None else load_data(recipe, data_root=data_root)
    check_last_layer(recipe, data)
    identity = agree(world, lambda: identify(recipe, data, indices=positions, weights=factors, enough=enough))
    run = Run(os.path.join(runs, identity.id))
    if world.broadcast(run.state == "done"):
        run.check(to_mapping(recipe), identity)
        if world.leads:  # left if the process was killed between the end of training and this line
            with contextlib.suppress(OSError):
                (run.path / LAST).unlink(missing_ok=True)
            if remark:
                _say(run, remarks(recipe, run.summary()))
        return run
    for sentence in on_last_layer(recipe, data) if remark and world.leads else ():
        _log.warning(sentence)
    _check_machine(recipe, world)
    with (
        explain_out_of_memory(recipe, world.device),
        repeatable(recipe.deterministic, world.device),
        rng.fork_generators([world.device]),
        Interruption() as interruption,
    ):
        separation, hard, first = None, None, None
        if recipe.resampling.method != "none":
            first, separation, positions, factors, hard = select(recipe, runs=runs, data=data.train)
        given = {"indices": positions, "weights": factors, "hard": hard}
        parts = build_parts(recipe, world=world, splits=data, workers=workers, **given)
        check_can_refit(parts)
        if first is not None:
            load_early_weights(first, recipe, parts.model)
        environment = stamp(data=parts.splits.fingerprint, device=world.device) if world.leads else None
        if world.leads:
            if not run.path.exists() and (said := previous_run(runs, identity)) is not None:
                _log.info(said)
            run = Run.create(runs, to_mapping(recipe), identity.id, identity=identity, environment=environment)
        world.wait()
        if world.broadcast(run.state == "done"):  # by another process, while this one was reading the data
            return run
        with run, contextlib.ExitStack() as stack:
            if separation is not None and first is not None and world.leads and not run.file(EXAMPLES).exists():
                write_evidence(run, separation, early=first, data=data.train)
            if world.leads and not (run.path / MODEL).exists():
                run.write_json(MODEL, model_record(parts).to_mapping())
            is_over = _copy(enough) or stopping_rule(recipe, num_classes=data.num_classes)
            loop = Loop(parts, run, interruption, pace=pace, enough=is_over, allow=allowed, keep_end=keep_end)
            if early is not None and not tensorboard and is_beginning(early, recipe, identity):
                loop.begin_with = early
            heard: list[Callable[[dict[str, Any]], None]] = []
            if tensorboard and world.leads:
                seen = len(run.metrics())
                heard.append(stack.enter_context(metrics_writer(run.path / "tensorboard", purge_after=seen)))
            if recipe.until.rule != "end":
                heard.append(lambda metrics: save_early_outputs(loop, metrics))
            loop.listeners = tuple(heard)
            _finish(loop, loop.train(), separation)
    return run


def _check_machine(recipe: Recipe, world: World) -> None:
    """Refuse or remark on settings that this machine does not support."""
    if recipe.sharded and world.size == 1:
        _log.info("sharded=true has no effect in one process: start more with torchrun.")
    if recipe.precision == "bf16" and world.device.type == "cpu":
        check_bfloat16_on_cpu()
        if not has_native_bfloat16():
            _log.info("this CPU has no bfloat16 arithmetic: precision=bf16 is slower here than fp32.")


def _finish(loop: Loop, last: dict[str, Any], separation: Separation | None) -> None:
    """Refit the last layer if the recipe says so, keep predictions and summary, and mark the run as done."""
    parts, run = loop.parts, loop.run
    predicted = None
    if parts.recipe.until.rule == "end":
        last = refit_last_layer(loop, last)
        predicted = final_predictions(loop)
    if parts.world.leads:
        if predicted is not None:
            save_predictions(run, predicted)
        result = summarise(parts, loop, last, separation)
        run.finish(result)
        loop.path.unlink(missing_ok=True)
        _say(run, remarks(parts.recipe, result))
    parts.world.wait()


def save_early_outputs(loop: Loop, metrics: dict[str, Any]) -> None:
    """Save the outputs of this epoch; the early run keeps the last ones, unless they fit everything."""
    recipe, train = loop.parts.recipe, loop.parts.splits.train
    rule = moment(recipe.until, epochs=recipe.epochs)
    if isinstance(rule, AtEpoch) and metrics["epoch"] < rule.epoch:
        return  # only a rule based on errors can end too late, with the previous epoch to fall back on
    kept = loop.outputs("train")
    error = float((predictions(kept) != train.labels.cpu()).double().mean())
    first = not (loop.run.path / OUTPUTS).exists()
    if loop.parts.world.leads and (first or recipe.until.rule != "gain" or not fits_nearly_all(error)):
        save_outputs(loop.run, kept, train, epoch=metrics["epoch"])


def _say(run: Run, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        _log.warning("run %s %s", run.id, sentence)


def _copy(enough: Enough | None) -> Enough | None:
    """A rule with its own state; one that cannot be copied as it is."""
    try:
        return copy.deepcopy(enough)
    except Exception:  # whatever the object raises
        return enough
