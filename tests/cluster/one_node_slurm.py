"""A real Slurm cluster of one node on this machine, for the tests: Debian's slurm-wlm and munge, started as root."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
CONFIGURATION = """\
ClusterName=here
SlurmctldHost={host}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait=2
NodeName={host} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no cluster can be started here; nothing where one can."""
    if os.geteuid() != 0:
        return "starting Slurm needs root"
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    absent = [name for name in NEEDED if shutil.which(name, path=path) is None]
    return f"Slurm is not installed (Debian: slurm-wlm, munge): no {', '.join(absent)}" if absent else ""


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start the cluster in a folder; give the environment in which its commands find it."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    folder.chmod(0o755)
    text = CONFIGURATION.format(host=socket.gethostname().partition(".")[0], folder=folder, ports=_free_ports())
    (folder / "slurm.conf").write_text(text)
    environment = os.environ | {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "PATH": os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]),
    }
    started = [_munged(folder)]
    try:
        for daemon in ("slurmctld", "slurmd"):
            with (folder / f"{daemon}.out").open("wb") as log:
                started.append(subprocess.Popen([daemon, "-D"], env=environment, stdout=log, stderr=log))
        _until_idle(environment)
        yield environment
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in reversed(started):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def _munged(folder: Path) -> "subprocess.Popen[bytes]":
    command = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket"]
    command += [
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munged.seed",
    ]
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    process = subprocess.Popen(
        command, env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not (folder / "munge.socket").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


def _until_idle(environment: dict[str, str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        command = ["sinfo", "--noheader", "--format=%T"]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    raise RuntimeError("the one-node cluster did not come up")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("", 0)), two.bind(("", 0))
        return one.getsockname()[1], two.getsockname()[1]
