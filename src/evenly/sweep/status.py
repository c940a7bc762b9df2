"""The progress of a plan: a bar for the user, and a file for other processes.

On a terminal it is a bar, elsewhere a line every half minute:
`12 of 40 runs done, 3 running, about 2 h left: SAM, seed 3`.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.errors import DataError, EvenlyError, SetupError, Stopped
from evenly.progress import Bar, duration, tell
from evenly.records import json_text
from evenly.sweep.plan import Job, Plan
from evenly.sweep.where import Where
from evenly.sweep.worker import AT_ONCE, Outcome, last_lines

FOLDER = "sweep"  # in a folder of runs: the logs and the state of plans
STATE = "state.json"
STALE_AFTER = 90.0  # seconds after which a state file is stale; a command pauses for half a minute at most
COLLECTING = 0.02  # the cost of a job that collects what others made
WRITE_EVERY = 1.0  # seconds between two writes of the state file
Listener = Callable[[Job, Outcome | None], None]


class JobsFailed(EvenlyError):
    """Some jobs of a plan failed; the others are done."""

    exit_code = 1
    comparison: Any = None  # the comparison that the jobs belong to, if any, with the results of those that are done


class Status:
    """Tracks jobs as they start and end, shows progress, writes `folder/state.json`, and collects the results.

    `listener(job, None)` is called when a job begins, `listener(job, outcome)` when it has ended.
    """

    def __init__(
        self, plan: Plan, where: Where, folder: Path | None, what: str, listener: Listener | None = None
    ) -> None:
        self.plan, self.where, self.folder, self.listener = plan, where, folder, listener
        self.outcomes: dict[str, Outcome] = {}
        self._states: Counter[str] = Counter()  # how many outcomes there are of each
        self.running: dict[str, float] = {}
        self.started = time.time()
        self._written = 0.0
        self._seconds, self._cost = 0.0, 0.0  # of the jobs that took time
        self._cost_left = sum(job.cost for job in plan.values())
        self._bar = Bar(what, total=len(plan), unit="runs")

    def __enter__(self) -> "Status":
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SetupError(
                    f"cannot make {self.folder}: {error.strerror}. Choose a writable folder for runs."
                ) from error
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)
        self._write(now=True)

    def begin(self, job: Job) -> None:
        """Mark a job as running; called again if the engine restarts a lost job."""
        again = job.name in self.running
        self.running[job.name] = time.time()
        if self.listener is not None and not again:
            self.listener(job, None)
        self.tick()

    def end(self, outcome: Outcome) -> None:
        """Record the outcome of a job that has ended or was skipped."""
        self.running.pop(outcome.name, None)
        self._cost_left -= self.plan[outcome.name].cost if outcome.name not in self.outcomes else 0.0
        if outcome.name in self.outcomes:
            self._states[self.outcomes[outcome.name].state] -= 1
        self._states[outcome.state] += 1
        self.outcomes[outcome.name] = outcome
        # A job that was done before took no time, and one that only collects says nothing about training: neither
        # must decide the estimate for the others.
        if outcome.state == "done" and outcome.seconds > AT_ONCE and self.plan[outcome.name].cost > COLLECTING:
            self._seconds += outcome.seconds
            self._cost += self.plan[outcome.name].cost
        if self.listener is not None:
            self.listener(self.plan[outcome.name], outcome)
        self._bar.advance()
        self.tick()

    def tick(self) -> None:
        """Refresh the progress display."""
        self._bar.describe(self.sentence())
        self._write()

    def sentence(self) -> str:
        """The progress in one line."""
        ended, total = len(self.outcomes), len(self.plan)
        words = [f"{self._states['done']} of {total} runs done"]
        others = ("failed", "skipped", "stopped", "lost")
        words += [f"{self._states[state]} {state}" for state in others if self._states[state]]
        if len(self.running) > 1:
            words.append(f"{len(self.running)} running")
        if self._cost and ended < total:
            late = self._is_overdue()
            words.append("longer than expected" if late else f"about {duration(self._seconds_left())} left")
        now = f": {next(iter(self.running))}" if self.running else ""
        return f"{', '.join(words)}{now}"

    def _seconds_left(self) -> float:
        """The time of the jobs that have not ended, by the pace so far, or by a slower one that a running job shows."""
        training = self._training()
        pace = max(self._seconds / self._cost, *(e / self.plan[name].cost for name, e in training.items()), 0.0)
        return max(0.0, pace * self._cost_left - sum(training.values())) / max(1, len(self.running))

    def _is_overdue(self) -> bool:
        """Whether all that is left is running, and has run for longer than the pace of the other jobs explains."""
        training, pace = self._training(), self._seconds / self._cost
        num_waiting = len(self.plan) - len(self.outcomes) - len(self.running)
        waiting = self._cost_left - sum(self.plan[name].cost for name in self.running)
        only_collecting = waiting <= COLLECTING * num_waiting + 1e-9
        late = [seconds > pace * self.plan[name].cost for name, seconds in training.items()]
        return only_collecting and bool(late) and all(late)

    def _training(self) -> dict[str, float]:
        """The seconds that each running job has taken, without those that only collect."""
        now = time.time()
        return {name: now - begun for name, begun in self.running.items() if self.plan[name].cost > COLLECTING}

    def results(self) -> dict[str, Any]:
        """The result of every job by name; raises an error that lists the failed jobs with their hosts and logs."""
        failed = [each for each in self.outcomes.values() if each.state in ("failed", "lost")]
        if failed:
            error = JobsFailed(_failures(failed, self.outcomes))
            codes = {each.exit_code for each in failed}
            error.exit_code = codes.pop() if len(codes) == 1 else 1
            raise error
        if any(each.state == "stopped" for each in self.outcomes.values()) or len(self.outcomes) < len(self.plan):
            done = sum(each.state == "done" for each in self.outcomes.values())
            raise Stopped(f"{done} of {len(self.plan)} runs are done. The same command continues with the others.")
        return {name: self.outcomes[name].result for name in self.plan}

    def _write(self, *, now: bool = False) -> None:
        if self.folder is None or (not now and time.time() - self._written < WRITE_EVERY):
            return
        self._written = time.time()
        state: Mapping[str, Any] = {
            "on": str(self.where),
            "jobs": len(self.plan),
            "started": self.started,
            "now": self._written,
            "over": now,
            "says": self.sentence(),
            "running": self.running,
            "ended": {name: [each.state, round(each.seconds, 1), each.host] for name, each in self.outcomes.items()},
        }
        atomic.write_json(self.folder / STATE, state)


def under_way(runs: str | Path) -> list[str]:
    """A progress line for each plan running in a folder of runs.

    A command that was killed stops updating its state file, which is ignored once it is stale.
    """
    lines = []
    for path in sorted((Path(runs) / FOLDER).glob(f"*/{STATE}")):
        try:
            state = json_text.read(path)
            if not state["over"] and time.time() - state["now"] < STALE_AFTER:
                lines.append(f"{state['says']} (on {state['on']})")
        except (DataError, OSError, KeyError, TypeError):
            continue  # removed meanwhile, or not written by evenly
    return lines


def leave_or_cancel(where: str, cancel: Callable[[], object]) -> None:
    """After Ctrl-C: leave the runs to the cluster, unless Ctrl-C comes once more within three seconds."""
    try:
        tell(f"The runs continue in {where}; the same command waits for them. Ctrl-C again cancels them.")
        time.sleep(3)
    except KeyboardInterrupt:
        cancel()
        tell("Cancelled. What is done is kept, and the same command continues.")


def _failures(failed: list[Outcome], outcomes: Mapping[str, Outcome]) -> str:
    done = sum(each.state == "done" for each in outcomes.values())
    lines = [f"{len(failed)} of {len(outcomes)} runs failed, {done} {'is' if done == 1 else 'are'} done:"]
    by_reason: dict[str, list[Outcome]] = {}
    for each in failed:
        by_reason.setdefault(each.error, []).append(each)
    for reason, alike in by_reason.items():
        first = alike[0]
        names = first.name if len(alike) == 1 else f"{first.name} and {len(alike) - 1} more"
        lines.append(f"  {names}{f' on {first.host}' if first.host else ''}: {reason}")
        if first.log:
            lines.append(f"    log: {first.log}")
            lines += [f"    | {line}" for line in last_lines(first.log).splitlines()[-3:]]
    if waiting := [each.name for each in outcomes.values() if each.state == "skipped"]:
        lines.append(f"  not begun, since they need one of these: {', '.join(waiting)}")
    return "\n".join(lines) + "\nThe same command tries them again and keeps what is done."
