"""Tasks of a Ray cluster: each job is one task, and what it needs are its arguments: Ray orders and retries them.

Where all nodes see the folder of runs, jobs write to it, and a job whose node is lost goes on elsewhere from its last
checkpoint. Where they do not, a job works in a folder of its own node, and the runs it made travel back through Ray's
object store; it then begins again when its node is lost.
"""

import contextlib
import importlib.util
import io
import logging
import os
import socket
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenly.errors import SetupError, UsageError
from evenly.sweep.local import log_of
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, skipped

RETRIES = 5  # of a task whose node or process was lost
PATIENCE = 5.0  # seconds for a cluster to answer at all
LOOK = 5.0  # seconds from one line on progress to the next, at most
LOGS = "sweep"  # in the folder of a node that does not see the runs


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan as tasks of the Ray cluster that `where` names, or of one on this machine."""
    with _connected(where) as ray:
        _check_room(ray, where)
        home = str(runs.resolve()) if _is_shared(ray, runs) else None
        remote = ray.remote(num_cpus=_cpus(where), num_gpus=where.gpus * where.devices, max_retries=RETRIES)(_task)
        references: dict[str, Any] = {}
        for layer in plan.layers():
            for job in layer:
                needed = [references[name] for name in job.needs]
                log = log_of(logs.resolve(), job)
                task = remote.options(name=job.name)
                references[job.name] = task.remote(job, home, log, where.threads or 1, where.devices, *needed)
                status.begin(job)
        names = {reference: name for name, reference in references.items()}
        while names:
            over, _ = ray.wait(list(names), num_returns=1, timeout=LOOK)
            status.tick()
            for reference in over:
                job = plan[names.pop(reference)]
                status.end(_receive(ray, job, reference, runs, log_of(logs, job)))


def _task(job: Job, home: str | None, log: str, threads: int, devices: int, *needed: "Parcel") -> "Parcel":
    """One job on a node of the cluster."""
    for each in needed:
        if each.outcome.state != "done":
            return Parcel(skipped(job, each.outcome.name))
    if home is not None:
        return Parcel(do(job, runs=home, log=log, threads=threads, devices=devices))
    with tempfile.TemporaryDirectory(prefix="evenly-") as folder:
        for each in needed:
            unpack(each.runs, Path(folder))
        before = set(os.listdir(folder))
        own = str(Path(folder) / LOGS / Path(log).name)
        outcome = do(job, runs=folder, log=own, threads=threads, devices=devices)
        return Parcel(outcome, pack(Path(folder), set(os.listdir(folder)) - before - {LOGS}), Path(own).read_bytes())


class Parcel:
    """What a task sends back: how its job ended, and the runs it made and its log where no folder is shared."""

    def __init__(self, outcome: Outcome, runs: bytes = b"", log: bytes = b"") -> None:
        self.outcome, self.runs, self.log = outcome, runs, log


def pack(folder: Path, names: set[str]) -> bytes:
    """Run folders as one archive in memory."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in sorted(names):
            archive.add(folder / name, arcname=name)
    return made.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Lay out what `pack` packed, run by run: a run that is there already stays as it is."""
    if not content:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".arriving-") as arriving:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(arriving, filter="data")
        for path in Path(arriving).iterdir():
            with contextlib.suppress(OSError):  # there already, by another command
                path.rename(folder / path.name)


def _receive(ray: Any, job: Job, reference: Any, runs: Path, log: str) -> Outcome:
    try:
        parcel: Parcel = ray.get(reference)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        return Outcome(job.name, "lost", error=f"Ray gave up after {RETRIES} tries: {reason}", log=log)
    unpack(parcel.runs, runs)
    if parcel.log:
        Path(log).write_bytes(parcel.log)
    return parcel.outcome


def check(where: Where) -> None:
    """Raise unless Ray is installed, and something answers at the address, where one is given."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError('--on ray needs Ray: pip install "evenly[ray]"')
    if address := where.address or os.environ.get("RAY_ADDRESS"):
        _check_answers(where, address)


@contextlib.contextmanager
def _connected(where: Where) -> Iterator[Any]:
    """Ray, connected to the cluster, with its own log kept out of the terminal; what was connected stays so."""
    if importlib.util.find_spec("ray") is None:
        check(where)
    import ray

    if ray.is_initialized():
        yield ray
        return
    check(where)
    address = where.address or os.environ.get("RAY_ADDRESS")
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise _unreachable(where, str(error).strip().splitlines()[0]) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(where: Where, address: str) -> None:
    """Whether anything listens at the address: Ray itself would try for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--on {where}: expected HOST:PORT, such as --on ray:127.0.0.1:6379")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise _unreachable(where, error.strerror or str(error)) from error


def _unreachable(where: Where, reason: str) -> SetupError:
    return SetupError(
        f"--on {where}: no Ray cluster answers there ({reason}). Start one with `ray start --head` and give its "
        "address, as --on ray:HOST:6379; or leave the address out, for one on this machine: --on ray"
    )


def _cpus(where: Where) -> int:
    return (where.threads or 1) * where.devices


def _check_room(ray: Any, where: Where) -> None:
    """A job that no node could ever hold is an error now: Ray would wait for such a node for ever."""
    wanted = {"CPU": float(_cpus(where)), "GPU": float(where.gpus * where.devices)}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(kind, 0.0) >= number for kind, number in wanted.items()) for node in nodes):
        largest = {kind: max((node.get(kind, 0.0) for node in nodes), default=0.0) for kind in wanted}
        raise SetupError(
            f"--on {where}: a run needs {wanted['CPU']:g} cores and {wanted['GPU']:g} GPUs on one node, and the "
            f"largest node has {largest['CPU']:g} and {largest['GPU']:g}. Give less with --threads-per-run, --gpus or "
            "--devices-per-run."
        )


def _is_shared(ray: Any, runs: Path) -> bool:
    """Whether every node sees the folder of runs: each is asked for a file that was written just now."""
    runs.mkdir(parents=True, exist_ok=True)
    token = runs.resolve() / f".shared-{uuid.uuid4().hex}"
    token.touch()
    try:
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        look = ray.remote(num_cpus=0)(os.path.exists)
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        asked = [look.options(scheduling_strategy=strategy(each, soft=False)).remote(str(token)) for each in nodes]
        return all(ray.get(asked))
    finally:
        token.unlink(missing_ok=True)
