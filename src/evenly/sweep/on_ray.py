"""Tasks of a Ray cluster: each job is one task, and an actor on the cluster holds the plan.

If all nodes share the folder of runs, jobs write to it, and a job whose node is lost resumes on another node from its
last checkpoint. Otherwise a job works in a local folder of its node, its runs return through Ray's object store, and it
starts again if its node is lost.

On a cluster that outlives the command, the actor does too: after Ctrl-C the runs continue there, and the same command
finds them.
"""

import asyncio
import contextlib
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenly.errors import SetupError, Stopped
from evenly.sweep import ray_cluster, run_archives
from evenly.sweep.local import log_of, stoppable
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status, leave_or_cancel
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, skip_outcome

RETRIES = 5  # of a task whose node or process was lost, and of the actor that holds the plan
EVENT_TIMEOUT = 5.0  # seconds to wait for an event before the progress display is refreshed
PAUSE = 0.2  # seconds between two queries for an actor
SAVE_TIMEOUT = 60.0  # seconds that cancelled jobs have to save a checkpoint
LOGS = "sweep"  # in the local folder of a node that does not share the runs


@dataclass(frozen=True)
class Setting:
    """The settings of every task; `home` is the runs folder if all nodes share it, else None."""

    home: str | None
    logs: str
    threads: int
    devices: int
    folder: str
    environment: Mapping[str, str]


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan as tasks of the Ray cluster that `where` names, or of one started on this machine."""
    with stoppable(), ray_cluster.connect(where) as (ray, stays):
        home = str(runs.resolve()) if ray_cluster.is_shared(ray, where, runs) else None
        resources = ray_cluster.resources(ray, where)
        given = {name: value for name, value in os.environ.items() if name.startswith("EVENLY_")}
        setting = Setting(home, str(logs.resolve()), where.threads or 1, where.devices, os.getcwd(), given)
        for attempt in range(RETRIES + 1):
            left = Plan(_without_needs(job, status) for job in plan.values() if job.name not in status.outcomes)
            actor = _plan_actor(ray, plan, left, setting, resources, runs, stays=stays)
            try:
                _follow(ray, actor, plan, runs=runs, logs=logs, status=status)
                ray.kill(actor)
                return
            except ray.exceptions.RayActorError:
                if attempt == RETRIES:
                    raise SetupError(
                        f"--on {where}: the cluster lost the actor that holds the plan {RETRIES} times. What is done "
                        "is kept, and the same command continues."
                    ) from None
            except (KeyboardInterrupt, Stopped) as error:
                if not stays:
                    _cancel(ray, actor)
                elif isinstance(error, KeyboardInterrupt):
                    leave_or_cancel("Ray", lambda actor=actor: _cancel(ray, actor))  # type: ignore[misc]  # a default binds it now
                raise


def _follow(ray: Any, actor: Any, plan: Plan, *, runs: Path, logs: Path, status: Status) -> None:
    """Follow the actor's events and fetch finished runs until every job has ended."""
    ray.get(actor.start.remote())
    heard = 0
    while len(status.outcomes) < len(plan):
        events = ray.get(actor.events_since.remote(heard))
        heard += len(events)
        for event in events:
            if event.name in status.outcomes:
                continue  # recorded before
            if event.outcome is None:
                status.begin(plan[event.name])
            else:
                if event.made:
                    _unpack(ray.get(event.made[0]), runs, plan[event.name], log_of(logs, plan[event.name]))
                status.end(event.outcome)
        status.tick()


def _unpack(made: tuple[bytes, bytes], runs: Path, job: Job, log: str) -> None:
    content, printed = made
    run_archives.unpack(content, runs)
    run_archives.remember(runs, job, content)
    if printed:
        Path(log).write_bytes(printed)


def _without_needs(job: Job, status: Status) -> Job:
    """A job without its finished dependencies, for an actor that replaces a lost one."""
    return replace(job, needs=tuple(name for name in job.needs if name not in status.outcomes))


@dataclass(frozen=True)
class Event:
    """A job started, or ended; `made` refers to the runs it made, if they must be fetched."""

    name: str
    outcome: Outcome | None = None
    made: tuple[Any, ...] = ()


class PlanActor:
    """The actor: submits each job once its dependencies are done, and records which jobs started and ended."""

    def __init__(self, plan: Plan, setting: Setting, resources: Mapping[str, Any], known: Mapping[str, bytes]) -> None:
        import ray

        self._ray, self._plan, self._setting, self._known = ray, plan, setting, known
        self._task = ray.remote(num_returns=2, max_retries=RETRIES, **resources)(_task)
        self._events: list[Event] = []
        self._references: dict[str, Any] = {}
        self._made: dict[str, Any] = {}
        self._ended = {name: asyncio.Event() for name in plan}
        self._outcomes: dict[str, Outcome] = {}
        self._changed = asyncio.Event()
        self._cancelled = False
        self._all: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the plan, if it has not started."""
        self._all = self._all or [asyncio.create_task(self._carry_out(job)) for job in self._plan.values()]

    async def events_since(self, after: int) -> list[Event]:
        """The events after the first `after`; waits briefly if there are none."""
        if len(self._events) <= after:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), EVENT_TIMEOUT)
        return self._events[after:]

    async def report_start(self, name: str) -> None:
        """Called by a task when it starts."""
        self._add_event(Event(name))

    async def is_over(self) -> bool:
        """Whether every job has ended."""
        return len(self._outcomes) == len(self._plan)

    async def cancel(self) -> None:
        """Start no more jobs, and make running jobs save and stop."""
        self._cancelled = True
        for name, reference in self._references.items():
            if name not in self._outcomes:
                self._ray.cancel(reference)
        await asyncio.wait(self._all, timeout=SAVE_TIMEOUT)

    async def _carry_out(self, job: Job) -> None:
        for name in job.needs:
            await self._ended[name].wait()
        bad = next((name for name in job.needs if self._outcomes[name].state != "done"), None)
        if bad is not None or self._cancelled:
            outcome = Outcome(job.name, "stopped") if bad is None else skip_outcome(job, bad)
            self._end(job, outcome)
            return
        needed = [self._made[name] for name in job.needs] if self._setting.home is None else []
        if self._setting.home is None and job.name in self._known:
            needed.append(self._ray.put((self._known[job.name], b"")))
        itself = self._ray.get_runtime_context().current_actor
        said, made = self._task.options(name=job.name).remote(job, self._setting, itself, *needed)
        self._references[job.name], self._made[job.name] = said, made
        try:
            self._end(job, await said)
        except self._ray.exceptions.TaskCancelledError:
            self._end(job, Outcome(job.name, "stopped"))
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            log = log_of(self._setting.logs, job)
            self._end(job, Outcome(job.name, "lost", error=f"Ray gave up after {RETRIES} tries: {reason}", log=log))

    def _end(self, job: Job, outcome: Outcome) -> None:
        self._outcomes[job.name] = outcome
        self._ended[job.name].set()
        travels = self._setting.home is None and job.name in self._made and outcome.state != "lost"
        self._add_event(Event(job.name, outcome, (self._made[job.name],) if travels else ()))

    def _add_event(self, event: Event) -> None:
        self._events.append(event)
        self._changed.set()
        self._changed = asyncio.Event()


def _task(job: Job, setting: Setting, actor: Any, *needed: tuple[bytes, bytes]) -> tuple[Outcome, tuple[bytes, bytes]]:
    """Do one job on a node of the cluster; return its outcome and, if no folder is shared, its runs and its log."""
    os.environ.update(setting.environment)
    with contextlib.suppress(OSError):  # paths of data may be relative to the folder of the command
        os.chdir(setting.folder)
    actor.report_start.remote(job.name)
    how: dict[str, Any] = {"threads": setting.threads, "devices": setting.devices}
    if setting.home is not None:
        return do(job, runs=setting.home, log=log_of(setting.logs, job), **how), (b"", b"")
    with tempfile.TemporaryDirectory(prefix="evenly-") as folder:
        for content, _ in needed:
            run_archives.unpack(content, Path(folder))
        log = log_of(Path(folder) / LOGS, job)
        outcome = do(job, runs=folder, log=log, **how)
        return outcome, (run_archives.pack(Path(folder)), Path(log).read_bytes())


def _plan_actor(
    ray: Any, plan: Plan, left: Plan, setting: Setting, resources: Mapping[str, Any], runs: Path, *, stays: bool
) -> Any:
    """The actor that an earlier command left with this plan, or a new one."""
    name = f"{plan.digest}-{uuid.uuid5(uuid.NAMESPACE_URL, f'{socket.gethostname()}{runs.resolve()}').hex}"
    if (there := _running_actor(ray, name, setting)) is not None:
        return there
    known: dict[str, bytes] = {}
    if setting.home is None:
        archives = ((job, run_archives.pack_previous_runs(runs, job)) for job in left.values())
        known = {job.name: content for job, content in archives if content}
    life = {"name": name, "namespace": ray_cluster.NAMESPACE, "lifetime": "detached"} if stays else {}
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    here = strategy(ray.get_runtime_context().get_node_id(), soft=True)
    # Ray places an actor without resources on any node, even one that does not know this node yet: so request a byte.
    actor = ray.remote(num_cpus=0, memory=1, max_concurrency=1000, scheduling_strategy=here, **life)(PlanActor)
    return actor.remote(left, setting, resources, known)


def _running_actor(ray: Any, name: str, setting: Setting) -> Any:
    """The actor of this name that still answers, or None; on a shared folder a finished one is removed."""
    while True:
        try:
            there = ray.get_actor(name, namespace=ray_cluster.NAMESPACE)
        except ValueError:
            return None
        with contextlib.suppress(ray.exceptions.RayActorError):
            # A finished actor's results were never collected. On a shared folder, its finished jobs are found again.
            if not ray.get(there.is_over.remote()) or setting.home is None:
                return there
            ray.kill(there)
        time.sleep(PAUSE)  # the cluster takes a while to notice that an actor is lost and to free its name


def _cancel(ray: Any, actor: Any) -> None:
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(actor.cancel.remote())
        ray.kill(actor)
