"""Queries to a Ray cluster: whether it answers, the resources of its nodes, and whether they share the runs folder."""

import contextlib
import importlib.util
import logging
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evenly
from evenly.errors import SetupError, UsageError
from evenly.sweep.where import Where

PATIENCE = 5.0  # seconds to wait for a cluster to answer
NAMESPACE = "evenly"


def check(where: Where) -> None:
    """Raise unless Ray is installed and, if an address is given, something answers there."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError('--on ray needs Ray: pip install "evenly[ray]"')
    if address := where.address or os.environ.get("RAY_ADDRESS"):
        _check_answers(where, address)


@contextlib.contextmanager
def connect(where: Where) -> Iterator[tuple[Any, bool]]:
    """Ray, connected, and whether the cluster outlives this process; an existing connection is kept open."""
    if importlib.util.find_spec("ray") is None:
        check(where)
    import ray

    if ray.is_initialized():
        yield ray, True
        return
    check(where)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "namespace": NAMESPACE}
    address = where.address or os.environ.get("RAY_ADDRESS")
    stays = True
    try:
        try:
            ray.init(address=address or "auto", **quiet)
        except ConnectionError:
            if address:
                raise
            stays = False
            ray.init(address="local", include_dashboard=False, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise _unreachable(where, str(error).strip().splitlines()[0]) from error
    try:
        yield ray, stays
    finally:
        ray.shutdown()


def _check_answers(where: Where, address: str) -> None:
    """Raise unless something listens at the address: Ray itself would try for minutes."""
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


def resources(ray: Any, where: Where) -> dict[str, Any]:
    """The resources that a task requests; by default one GPU per process if the cluster has any.

    A job that fits on no node is an error now, because Ray would wait for such a node for ever.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    each = where.gpus if where.gpus is not None else int(any(node.get("GPU", 0) for node in nodes))
    wanted = {
        "CPU": float((where.threads or 1) * where.devices),
        "GPU": float(each * where.devices),
        "memory": 1e9 * (where.memory or 0),
    }
    if not any(all(node.get(kind, 0.0) >= number for kind, number in wanted.items()) for node in nodes):
        largest = {kind: max((node.get(kind, 0.0) for node in nodes), default=0.0) for kind in wanted}
        memory = f", {where.memory:g} GB" if where.memory else ""
        has = f", {largest['memory'] / 1e9:.1f} GB" if where.memory else ""
        raise SetupError(
            f"--on {where}: a run needs {wanted['CPU']:g} cores{memory} and {wanted['GPU']:g} GPUs on one node, and "
            f"the largest node has {largest['CPU']:g}{has} and {largest['GPU']:g}. Give less with --threads-per-run, "
            "--gpus, --memory or --devices-per-run."
        )
    options: dict[str, Any] = {"num_cpus": wanted["CPU"], "num_gpus": wanted["GPU"]}
    return options | ({"memory": int(wanted["memory"])} if where.memory else {})


def is_shared(ray: Any, where: Where, runs: Path) -> bool:
    """Whether all nodes share the folder of runs, checked with a file that was just written.

    Lost nodes do not count, although the cluster may still list them.
    """
    runs.mkdir(parents=True, exist_ok=True)
    token = runs.resolve() / f".shared-{uuid.uuid4().hex}"
    token.touch()
    try:
        answers = _answers(ray, str(token))
    except (ray.exceptions.RayError, ImportError) as error:
        raise SetupError(
            f"--on {where}: the nodes of the cluster cannot import evenly ({str(error).strip().splitlines()[-1]}). "
            "Install it on each node from the same source as here."
        ) from error
    finally:
        token.unlink(missing_ok=True)
    if not answers:
        raise _unreachable(where, "every node went away")
    for host, _, version in answers:
        if version != evenly.__version__:
            raise SetupError(
                f"--on {where}: node {host} has evenly {version}, and this is {evenly.__version__}. Results are the "
                f"same only with the same version: install {evenly.__version__} there."
            )
    return all(sees for _, sees, _ in answers)


def _answers(ray: Any, path: str) -> list[tuple[str, bool, str]]:
    """The answer of each reachable node to `_look`."""
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    look = ray.remote(num_cpus=0)(_look)
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    pending = [look.options(scheduling_strategy=strategy(node, soft=False)).remote(path) for node in nodes]
    answers = []
    for each in pending:
        with contextlib.suppress(ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):
            answers.append(ray.get(each))
    return answers


def _look(path: str) -> tuple[str, bool, str]:
    """The name of a node, whether a file exists there, and its version of evenly."""
    return socket.gethostname(), os.path.exists(path), evenly.__version__
