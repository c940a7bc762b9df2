"""Doing the work of an experiment: part by part, on all cores, each kept when it is done."""

import functools
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from evenly import environment
from evenly.data.catalogue import data_root as root_of
from evenly.data.catalogue import entry
from evenly.errors import DataError, EvenlyError, SetupError, Stopped, UsageError, did_you_mean
from evenly.papers.experiment import Context, Experiment, Found, Measured, Part, resolve
from evenly.papers.part_store import discard, is_stored, load, store
from evenly.progress import Bar
from evenly.recipe import Recipe
from evenly.typed import from_mapping

Values = Mapping[str, Mapping[int, float]]  # of a quantity, by seed


def check(experiment: Experiment, scale: str, *, seeds: Sequence[int] | None, data_root: str | None) -> list[Part]:
    """Check everything about an experiment that can be checked without running it, and give its parts."""
    parts = experiment.parts(scale, seeds)
    for part in parts:
        part.function()
        json.dumps(part.arguments)
        if "recipe" in part.arguments:
            _check_recipe(part)
    if experiment.derived:
        resolve(experiment.derived)
    root = root_of(data_root)
    for name in experiment.scales[scale].data:
        missing = entry(name).missing(root)
        if missing:
            how = "; ".join(f"evenly data get {each}" for each in missing)
            raise DataError(f"{experiment.key} at {scale} needs {name}, which is not in {root}. Get it: {how}")
    return parts


def _check_recipe(part: Part) -> None:
    """A recipe that cannot be meant is an error now, not when its turn comes."""
    from evenly.models.catalogue import CATALOGUE

    try:
        recipe = from_mapping(Recipe, part.arguments["recipe"])
        entry(recipe.data.name)
        if ":" not in recipe.model.name and recipe.model.name not in CATALOGUE:
            raise UsageError(f"there is no model {recipe.model.name!r}. {did_you_mean(recipe.model.name, CATALOGUE)}")
        if recipe.model.weights and not Path(recipe.model.weights).is_file():
            raise DataError(f"the weights {recipe.model.weights} are not there.")
    except EvenlyError as error:
        raise type(error)(f"part {part.name!r}: {error}") from error


def measure(
    experiment: Experiment,
    scale: str,
    *,
    seeds: Sequence[int] | None = None,
    runs: str | os.PathLike[str] = "runs",
    data_root: str | None = None,
    processes: int | None = None,
    fresh: bool = False,
) -> tuple[Measured, float]:
    """What the parts of an experiment find, and the minutes they took (also those done before).

    Parts that are done are read, the others done on `processes` (by default as many as there are cores and parts);
    stopped at any moment, the same call goes on with what is left. `fresh` does all again.
    """
    parts = check(experiment, scale, seeds=seeds, data_root=data_root)
    context = Context(Path(runs), data_root)
    if fresh:
        for part in parts:
            discard(context, part)
    waiting = [part for part in parts if not is_stored(context, part)]
    cores = environment.stamp()["usable_cpus"] or 1
    workers = min(processes or cores, len(waiting))
    if processes is not None and processes < 1:
        raise UsageError(f"processes = {processes}: give 1 or more.")
    with Bar(f"{experiment.key} at {scale}", total=len(parts)) as bar:
        bar.advance(len(parts) - len(waiting))
        if workers <= 1:
            for part in waiting:
                do_part(context, part)
                bar.advance()
        else:
            with _pool(workers, cores) as pool:
                futures: dict[Future[None], Part] = {pool.submit(do_part, context, part): part for part in waiting}
                for future in as_completed(futures):
                    future.result()
                    bar.advance()
    found, minutes = load(context, parts)
    return derive(experiment, found), minutes


def derive(experiment: Experiment, found: Measured) -> Measured:
    """What was measured, and what follows from all seeds together."""
    if not experiment.derived:
        return found
    function: Callable[[Values], Values] = resolve(experiment.derived)
    return replace(found, values={**found.values, **function(found.values)})


def do_part(context: Context, part: Part) -> None:
    """Do one part and keep what it finds; another process that does the same one is refused by its lock."""

    def work() -> Found:
        found = part.function()(context, **part.arguments)
        if not isinstance(found, Found):
            raise UsageError(f"{part.address} returned {type(found).__name__}: return a Found.")
        return found

    store(context, part, work)


@contextmanager
def _pool(workers: int, cores: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that share the cores between them; the work that has not begun is dropped when one fails."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=functools.partial(_share, max(1, cores // workers)),
    )
    try:
        yield pool
    except (KeyboardInterrupt, Stopped):
        # Training answers by keeping where it stands; Ctrl-C reaches only this process.
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    except BrokenProcessPool:
        # The others were asked to end, which training answers at its next step and the next part then does not.
        for process in list(pool._processes.values()):
            process.kill()
        raise SetupError(
            "a process that did a part was killed, most likely for want of memory. The parts that are done are kept: "
            "the same command goes on with the others, and --processes 1 needs the least memory."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _share(threads: int) -> None:
    """What a working process does first: leave the terminal to the one bar, and take its part of the cores."""
    import torch

    os.environ["TERM"] = "dumb"
    os.setpgrp()  # out of reach of the terminal's Ctrl-C, which the parent passes on once
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(threads)


def _leave_with(parent: int) -> None:
    """End when the parent was killed: nobody waits for the work, and its lock would be in the way of the next."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
