"""Tasks of a Ray cluster: each job is one task, and an actor on the cluster holds the plan.

Where all nodes see the folder of runs, jobs write to it, and a job whose node is lost goes on elsewhere from its last
checkpoint. Where they do not, a job works in a folder of its own node, and the runs it made travel back through Ray's
object store; it then begins again when its node is lost.

On a cluster that outlives the command, so does the actor: Ctrl-C leaves the runs there, and the same command finds
them.
"""

import asyncio
import contextlib
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.errors import SetupError, Stopped
from evenly.sweep import parcels, ray_cluster
from evenly.sweep.local import log_of, stoppable
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status, leave_or_cancel
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, skip_outcome

RETRIES = 5  # of a task whose node or process was lost, and of the actor that holds the plan
LOOK = 5.0  # seconds from one line on progress to the next, at most
PAUSE = 0.2  # seconds between two looks for an actor
SAVING = 60.0  # seconds that cancelled jobs have to save where they stand
LOGS = "sweep"  # in the folder of a node that does not see the runs


@dataclass(frozen=True)
class Setting:
    """What every task is told: `home` is the folder of runs where all nodes see it."""

    home: str | None
    logs: str
    threads: int
    devices: int
    folder: str
    environment: Mapping[str, str]


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan as tasks of the Ray cluster that `where` names, or of one on this machine."""
    with stoppable(), ray_cluster.connect(where) as (ray, stays):
        home = str(runs.resolve()) if ray_cluster.is_shared(ray, where, runs) else None
        resources = ray_cluster.resources(ray, where)
        given = {name: value for name, value in os.environ.items() if name.startswith("EVENLY_")}
        setting = Setting(home, str(logs.resolve()), where.threads or 1, where.devices, os.getcwd(), given)
        for attempt in range(RETRIES + 1):
            left = Plan(_without_needs(job, status) for job in plan.values() if job.name not in status.outcomes)
            holder = _holder(ray, plan, left, setting, resources, runs, stays=stays)
            try:
                _follow(ray, holder, plan, runs=runs, logs=logs, status=status)
                ray.kill(holder)
                return
            except ray.exceptions.RayActorError:
                if attempt == RETRIES:
                    raise SetupError(
                        f"--on {where}: the cluster lost the actor that holds the plan {RETRIES} times. What is done "
                        "is kept, and the same command goes on."
                    ) from None
            except (KeyboardInterrupt, Stopped) as error:
                if not stays:
                    _cancel(ray, holder)
                elif isinstance(error, KeyboardInterrupt):
                    leave_or_cancel("Ray", lambda holder=holder: _cancel(ray, holder))  # type: ignore[misc]
                raise


def _follow(ray: Any, holder: Any, plan: Plan, *, runs: Path, logs: Path, status: Status) -> None:
    """Hear what begins and ends, and fetch what was made, until every job has ended."""
    ray.get(holder.start.remote())
    heard = 0
    while len(status.outcomes) < len(plan):
        news = ray.get(holder.news.remote(heard))
        heard += len(news)
        for event in news:
            if event.name in status.outcomes:
                continue  # heard before
            if event.outcome is None:
                status.begin(plan[event.name])
            else:
                if event.made:
                    _unpack(ray.get(event.made[0]), runs, plan[event.name], log_of(logs, plan[event.name]))
                status.end(event.outcome)
        status.tick()


def _unpack(made: tuple[bytes, bytes], runs: Path, job: Job, log: str) -> None:
    content, printed = made
    parcels.unpack(content, runs)
    parcels.remember(runs, job, content)
    if printed:
        Path(log).write_bytes(printed)


def _without_needs(job: Job, status: Status) -> Job:
    """A job without those of its needs that are done; an actor that was lost is followed by one with what is left."""
    return Job(job.name, job.call, job.arguments, tuple(name for name in job.needs if name not in status.outcomes))


@dataclass(frozen=True)
class Event:
    """A job began, or ended; `made` refers to the runs it made, where they have to travel."""

    name: str
    outcome: Outcome | None = None
    made: tuple[Any, ...] = ()


class Holder:
    """The actor: it submits each job when what it needs is done, and remembers what began and ended."""

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
        """Begin, unless it has."""
        self._all = self._all or [asyncio.create_task(self._carry_out(job)) for job in self._plan.values()]

    async def news(self, after: int) -> list[Event]:
        """What happened since `after` events; it waits a little for the first."""
        if len(self._events) <= after:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK)
        return self._events[after:]

    async def began(self, name: str) -> None:
        """A task says that it begins."""
        self._happened(Event(name))

    async def is_over(self) -> bool:
        """Whether every job has ended."""
        return len(self._outcomes) == len(self._plan)

    async def cancel(self) -> None:
        """Begin nothing more, and have what runs save where it stands."""
        self._cancelled = True
        for name, reference in self._references.items():
            if name not in self._outcomes:
                self._ray.cancel(reference)
        await asyncio.wait(self._all, timeout=SAVING)

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
        self._happened(Event(job.name, outcome, (self._made[job.name],) if travels else ()))

    def _happened(self, event: Event) -> None:
        self._events.append(event)
        self._changed.set()
        self._changed = asyncio.Event()


def _task(job: Job, setting: Setting, holder: Any, *needed: tuple[bytes, bytes]) -> tuple[Outcome, tuple[bytes, bytes]]:
    """One job on a node of the cluster: how it ended, and the runs it made and its log where no folder is shared."""
    os.environ.update(setting.environment)
    with contextlib.suppress(OSError):  # data may be named by a path from where the command was given
        os.chdir(setting.folder)
    holder.began.remote(job.name)
    how: dict[str, Any] = {"threads": setting.threads, "devices": setting.devices}
    if setting.home is not None:
        return do(job, runs=setting.home, log=log_of(setting.logs, job), **how), (b"", b"")
    with tempfile.TemporaryDirectory(prefix="evenly-") as folder:
        for content, _ in needed:
            parcels.unpack(content, Path(folder))
        log = log_of(Path(folder) / LOGS, job)
        outcome = do(job, runs=folder, log=log, **how)
        return outcome, (parcels.pack(Path(folder)), Path(log).read_bytes())


def _holder(
    ray: Any, plan: Plan, left: Plan, setting: Setting, resources: Mapping[str, Any], runs: Path, *, stays: bool
) -> Any:
    """The actor that an earlier command left with this plan, or a new one."""
    name = f"{plan.digest}-{uuid.uuid5(uuid.NAMESPACE_URL, f'{socket.gethostname()}{runs.resolve()}').hex}"
    if (there := _left_there(ray, name, setting)) is not None:
        return there
    known: dict[str, bytes] = {}
    if setting.home is None:
        found = ((job, parcels.known(runs, job)) for job in left.values())
        known = {job.name: content for job, content in found if content}
    life = {"name": name, "namespace": ray_cluster.NAMESPACE, "lifetime": "detached"} if stays else {}
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    here = strategy(ray.get_runtime_context().get_node_id(), soft=True)
    # For an actor that asks for nothing Ray picks any node, which may not know this one yet: hence a byte of memory.
    actor = ray.remote(num_cpus=0, memory=1, max_concurrency=1000, scheduling_strategy=here, **life)(Holder)
    return actor.remote(left, setting, resources, known)


def _left_there(ray: Any, name: str, setting: Setting) -> Any:
    """The actor of this name that can still be heard, if any; one that cannot is removed."""
    while True:
        try:
            there = ray.get_actor(name, namespace=ray_cluster.NAMESPACE)
        except ValueError:
            return None
        with contextlib.suppress(ray.exceptions.RayActorError):
            # What is over was told to nobody. On a shared folder its jobs are found done, if they still are.
            if not ray.get(there.is_over.remote()) or setting.home is None:
                return there
            ray.kill(there)
        time.sleep(PAUSE)  # the cluster takes a while to see that an actor is lost, and to free its name


def _cancel(ray: Any, holder: Any) -> None:
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(holder.cancel.remote())
        ray.kill(holder)
