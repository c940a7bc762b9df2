"""Kill a command, give it again, and compare what is left with what an undisturbed one leaves, bit for bit."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from soak import switch
from soak.processes import Outcome, fork, start
from soak.scenarios import Scenario, Snapshot, differences, snapshot
from soak.switch import Moment

_EVERY = 25  # every so many trials is done by real processes, not forks


@dataclass(frozen=True)
class Undisturbed:
    """What a command leaves when nothing happens to it: its files, its writing calls, its time."""

    scenario: Scenario
    files: Snapshot
    calls: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True)
class Trial:
    """One kill (or two, where the repeated command is killed as well), and what was wrong afterwards."""

    scenario: str
    what: str
    kills: int
    differences: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    tracebacks: tuple[str, ...] = ()
    hangs: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.differences or self.strays or self.tracebacks or self.hangs)


@dataclass(frozen=True)
class Kill:
    """When to kill: at a writing call, or (`number` 0) at a share of the undisturbed time."""

    number: int = 0
    moment: Moment = "before"
    share: float = 0.0
    real: bool = False

    def __str__(self) -> str:
        when = f"{self.moment} writing call {self.number}" if self.number else f"at {self.share:.0%} of its time"
        return f"killed {when}{' (a real process)' if self.real else ''}"


def undisturbed(scenario: Scenario, template: Path, folder: Path) -> Undisturbed:
    """Do it twice: the second must leave what the first left, or comparing would mean nothing."""
    left = []
    for _ in range(2):
        place = _place(folder)
        scenario.prepare(template, place)
        log = place.parent / "calls"
        ended = fork(scenario.words, folder=place, prepare=partial(switch.install, number=0, moment="before", log=log))
        if ended.code not in scenario.good:
            raise RuntimeError(f"evenly {' '.join(scenario.words)} ended with {ended.code}:\n{ended.stderr}")
        calls = tuple(log.read_text().split())
        left.append(Undisturbed(scenario, snapshot(place), calls, ended.seconds, ended.stdout))
        shutil.rmtree(place.parent)
    wrong, strays = differences(left[0].files, left[1].files)
    if wrong or strays:
        raise RuntimeError(f"{scenario.name}: two undisturbed commands leave different files: {wrong + strays}")
    return min(left, key=lambda each: each.seconds)


def _place(folder: Path) -> Path:
    """Where every trial of a worker is done: runs remember where their data lie, and must remember the same."""
    return folder / "trial" / "w"


def plan(known: Undisturbed, rng: random.Random) -> Iterator[Kill]:
    """Every writing call before, halfway where that can be, and after; between them random moments; without end."""
    while True:
        placed = [
            Kill(number, moment)
            for number, name in enumerate(known.calls, 1)
            for moment in (("before", "halfway", "after") if name in ("write", "pwrite") else ("before", "after"))
        ]
        rng.shuffle(placed)
        for count, kill in enumerate(placed):
            yield kill
            if count % 2:
                yield Kill(share=rng.random())
            if count % _EVERY == _EVERY - 1:
                yield Kill(kill.number, kill.moment, real=True)


def attempt(known: Undisturbed, kill: Kill, template: Path, folder: Path, *, site: str, again: Kill | None) -> Trial:
    """Kill the command as `kill` says (then its repetition as `again` says), repeat it, and compare."""
    scenario, place = known.scenario, _place(folder)
    shutil.rmtree(place.parent, ignore_errors=True)
    scenario.prepare(template, place)
    kills = 0
    ends: list[Outcome] = []
    for each in (kill, again) if again else (kill,):
        ends.append(_killed(known, each, place, site))
        kills += ends[-1].code == -9
    ends.append(_repeated(known, kill, place, site))
    wrong, strays = differences(known.files, snapshot(place))
    if ends[-1].code not in scenario.good:
        wrong.insert(0, f"repeated, the command ended with {ends[-1].code}: {ends[-1].stderr.strip()[-300:]}")
    bugs = tuple(end.stderr.strip()[-2000:] for end in ends if end.traceback and end.code != -9)
    hangs = sum(end.hung for end in ends)
    shutil.rmtree(place.parent)
    return Trial(
        scenario.name, f"{kill}, then {again}" if again else str(kill), kills, tuple(wrong), tuple(strays), bugs, hangs
    )


def _killed(known: Undisturbed, kill: Kill, place: Path, site: str) -> Outcome:
    words = known.scenario.words
    late = None if kill.number else 0.002 + kill.share * known.seconds
    if kill.real:
        environment = {"SOAK_SITE": site} | ({"SOAK_KILL": f"{kill.number}:{kill.moment}"} if kill.number else {})
        return start(words, folder=place, environment=environment, kill_after=late)
    if late is not None:
        return fork(words, folder=place, kill_after=late)
    return fork(words, folder=place, prepare=partial(switch.install, number=kill.number, moment=kill.moment))


def _repeated(known: Undisturbed, kill: Kill, place: Path, site: str) -> Outcome:
    if kill.real:
        return start(known.scenario.words, folder=place, environment={"SOAK_SITE": site})
    return fork(known.scenario.words, folder=place)
