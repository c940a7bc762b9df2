"""`launch`: carry out a plan somewhere, with one bar for all of it, and say what came of every job."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.errors import EvenlyError, SetupError, Stopped
from evenly.progress import Bar
from evenly.sweep import local
from evenly.sweep.plan import Job, Plan
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, last_lines

FOLDER = "sweep"  # in a folder of runs: the logs and the state of plans
HERE = Where()
FOLLOWED = 1.0  # seconds from one writing of the state to the next


class JobsFailed(EvenlyError):
    """Some jobs of a plan failed; the others are done."""

    exit_code = 1


def launch(plan: Plan, where: Where = HERE, *, runs: str | Path = "runs", what: str = "runs") -> dict[str, Any]:
    """Carry out a plan and give what every job returned, by name.

    Jobs that are done are found done, those that were stopped go on; a job that fails ends only what needs it, and
    all failures are told together at the end. The results are the same wherever a plan is carried out, bit for bit at
    an equal number of threads per job on equal machines.

    >>> import tempfile
    >>> jobs = [Job(f"seed {n}", "evenly.sweep.worker:nothing", {"n": n}) for n in range(3)]
    >>> launch(Plan(jobs), Where(at_once=1), runs=tempfile.mkdtemp())
    {'seed 0': {'n': 0}, 'seed 1': {'n': 1}, 'seed 2': {'n': 2}}
    """
    runs = Path(runs)
    if not plan:
        return {}
    if where.engine == "local" and where.devices == 1 and (where.at_once == 1 or len(plan) == 1):
        return _here(plan, where, runs)
    folder = runs / FOLDER / plan.digest
    following = Following(plan, where, folder, what)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"cannot make {folder}: {error.strerror}. Choose a writable folder for runs.") from error
    with following:
        told: dict[str, Any] = {"runs": runs, "logs": folder, "begun": following.begun, "told": following.told}
        if where.engine == "local":
            local.run(plan, where, **told)
        elif where.engine == "ray":
            from evenly.sweep import on_ray

            on_ray.run(plan, where, **told)
        else:
            from evenly.sweep import on_slurm

            on_slurm.run(plan, where, **told)
    return following.results()


def _here(plan: Plan, where: Where, runs: Path) -> dict[str, Any]:
    """One job after the other in this process: its own bars are seen, and its errors are its own."""
    from evenly.sweep.worker import _called

    return {job.name: _called(job, str(runs), where.threads) for layer in plan.layers() for job in layer}


class Following:
    """What is known of a plan while it is carried out: one bar for a person, and a file for `evenly runs --watch`."""

    def __init__(self, plan: Plan, where: Where, folder: Path, what: str) -> None:
        self.plan, self.where, self.folder = plan, where, folder
        self.outcomes: dict[str, Outcome] = {}
        self.running: dict[str, float] = {}
        self.started = time.time()
        self._written = 0.0
        self._bar = Bar(f"{what} on {where}", total=len(plan), unit="runs")

    def __enter__(self) -> "Following":
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)
        self._write(now=True)

    def begun(self, job: Job) -> None:
        """A job has begun."""
        self.running[job.name] = time.time()
        self._bar.note(running=len(self.running))
        self._write()

    def told(self, outcome: Outcome) -> None:
        """A job has ended."""
        self.running.pop(outcome.name, None)
        self.outcomes[outcome.name] = outcome
        self._bar.advance()
        self._bar.note(running=len(self.running))
        self._write()

    def results(self) -> dict[str, Any]:
        """What every job returned; an error that names each that failed, its host and its log."""
        stopped = [each for each in self.outcomes.values() if each.state == "stopped"]
        failed = [each for each in self.outcomes.values() if each.state in ("failed", "lost")]
        if failed:
            raise JobsFailed(_failures(failed, self.outcomes))
        if stopped or len(self.outcomes) < len(self.plan):
            done = sum(each.state == "done" for each in self.outcomes.values())
            raise Stopped(f"{done} of {len(self.plan)} runs are done. The same command goes on with the others.")
        return {name: self.outcomes[name].result for name in self.plan}

    def _write(self, *, now: bool = False) -> None:
        if not now and time.time() - self._written < FOLLOWED:
            return
        self._written = time.time()
        state: Mapping[str, Any] = {
            "on": str(self.where),
            "jobs": len(self.plan),
            "started": self.started,
            "now": self._written,
            "running": self.running,
            "ended": {name: [each.state, round(each.seconds, 1), each.host] for name, each in self.outcomes.items()},
        }
        atomic.write_json(self.folder / "state.json", state)


def _failures(failed: list[Outcome], all_of_them: Mapping[str, Outcome]) -> str:
    done = sum(each.state == "done" for each in all_of_them.values())
    lines = [f"{len(failed)} of {len(all_of_them)} runs failed, {done} are done:"]
    for each in failed:
        lines.append(f"  {each.name} on {each.host or 'an unknown host'}: {each.error}")
        lines.append(f"    its log: {each.log}")
        if ending := last_lines(each.log):
            lines += [f"    | {line}" for line in ending.splitlines()[-3:]]
    waiting = [each.name for each in all_of_them.values() if each.state == "skipped"]
    if waiting:
        lines.append(f"  not begun, since they need one of these: {', '.join(waiting)}")
    return "\n".join(lines) + "\nThe same command tries them again and keeps what is done."
