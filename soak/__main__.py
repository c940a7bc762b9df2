"""`python -m soak`: kill, fuzz and flood for some minutes, then print the table; exit code 1 if anything was wrong."""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from soak import batches, cases, fuzz, kills, small, tally
from soak.crew import crew
from soak.flood import flood
from soak.processes import ROOT, preload
from soak.publisher import Publisher, publish
from soak.readers import Reader, readers
from soak.scenarios import Scenario, scenarios

DOCS = ROOT / "docs" / "reliability.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, about (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a fixed number of fixed trials, two minutes on two cores")
    parser.add_argument("--seed", type=int, help="what is drawn; given again, the same (default: another each time)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="at once (default: the cores)")
    parser.add_argument("--only", default="", help="kills, fuzz or flood alone, or the name of one row of the table")
    parser.add_argument("--cases", type=Path, default=cases.FOLDER, help="where failing inputs are kept")
    parser.add_argument("--replay", action="store_true", help="try the kept inputs again, and print JSON")
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into {DOCS.relative_to(ROOT)}")
    asked = parser.parse_args()
    if sys.platform != "linux":
        print("soak: limits and processes are watched through /proc, which Linux alone has. Nothing was done.")
        return 0 if asked.quick else 4
    preload()
    base = Path(tempfile.mkdtemp(prefix="evenly-soak-"))
    publisher = Publisher(base / "site")
    try:
        publish(publisher.address)
        template = small.build(base / "small")
        if asked.replay:
            return _replay(template, base, asked.cases)
        return Soak(asked, template, base, publisher.address).run()
    finally:
        publisher.close()
        shutil.rmtree(base, ignore_errors=True)


class Soak:
    """One soak: what was asked for, what it works on, and the tally."""

    def __init__(self, asked: argparse.Namespace, template: Path, base: Path, site: str) -> None:
        self.asked, self.template, self.base, self.site = asked, template, base, site
        self.quick, self.workers = asked.quick, asked.workers
        self.seed = asked.seed if asked.seed is not None else 0 if asked.quick else int(time.time())
        self.tally = tally.Tally()
        self.begun = self.said = time.monotonic()

    def run(self) -> int:
        """All parts, then the table."""
        seconds = 60 * self.asked.minutes
        try:
            if self._wanted("flood", "live view"):
                self._flood()
            if any(self._wanted("kills", each.name) for each in scenarios(self.template)):
                self._kill(self.begun + seconds * 0.35)
            if any(self._wanted("fuzz", each.name) for each in readers()):
                self._fuzz(self.begun + seconds)
        except KeyboardInterrupt:
            print("\nsoak: stopped; this is what was done until then", file=sys.stderr)
        except RuntimeError as error:
            print(f"\nsoak: {error}\nThis is what was done until then.", file=sys.stderr)
            self.tally.row("the soak itself").other += 1
        minutes = (time.monotonic() - self.begun) / 60
        text = f"Seed {self.seed}, {minutes:.0f} minutes, {self.workers} workers.\n\n{self.tally.markdown()}"
        print(f"\n{text}")
        for sentence, examples in sorted(self.tally.faults.items(), key=lambda item: -len(item[1])):
            print(f"{len(examples):6,} × {sentence}, such as: {examples[0]}")
        if self.asked.write_docs:
            tally.write_docs(DOCS, text)
        return 1 if self.tally.total.wrong else 0

    def _wanted(self, part: str, name: str) -> bool:
        return self.asked.only in ("", part, name)

    def _kill(self, until: float) -> None:
        todo = [each for each in scenarios(self.template) if self._wanted("kills", each.name)]

        def work(worker: int) -> Iterator[kills.Trial]:
            return self._trials(todo[worker :: self.workers], worker, until)

        for trial in crew(min(self.workers, len(todo)), work):
            row = self.tally.row(trial.scenario)
            row.kills += trial.kills
            row.differences += bool(trial.differences)
            row.tracebacks += len(trial.tracebacks)
            row.hangs += trial.hangs
            row.stray += len(trial.strays)
            for kind, found in (("differs", trial.differences), ("leaves", trial.strays), ("", trial.tracebacks)):
                for sentence in found:
                    self.tally.fault(f"{trial.scenario} {kind}: {_shortened(sentence)}", trial.what)
            self._progress()

    def _trials(self, todo: list[Scenario], worker: int, until: float) -> Iterator[kills.Trial]:
        folder = self.base / f"kills-{worker}"
        known = [kills.undisturbed(each, self.template, folder) for each in todo]
        # Each draws for itself: what is killed when does not depend on how many workers there are.
        draws = [random.Random(f"{self.seed}/{each.name}") for each in todo]
        plans = [kills.plan(each, rng) for each, rng in zip(known, draws, strict=True)]
        if self.quick:  # no moments by the clock, which are never the same
            plans = [islice((kill for kill in plan if kill.number and not kill.real), 5) for plan in plans]
        while True:
            for one, plan, rng in zip(known, plans, draws, strict=True):
                kill = next(plan, None)
                if kill is None or (time.monotonic() > until and not self.quick):
                    return
                again = next(plan, None) if rng.random() < 0.1 else None
                yield kills.attempt(one, kill, self.template, folder, site=self.site, again=again)

    def _fuzz(self, until: float) -> None:
        todo = [each for each in readers() if self._wanted("fuzz", each.name)]

        def check(worker: int) -> Iterator[tuple[str, int]]:
            for each in todo[worker :: self.workers]:
                yield each.name, fuzz.check_seeds(each, self.template, self.base / f"seeds-{worker}")

        usual = dict(crew(self.workers, check))

        def work(worker: int) -> Iterator[tuple[str, fuzz.Fault | None]]:
            return self._inputs(todo, usual, worker, until)

        for name, fault in crew(self.workers, work):
            row = self.tally.row(name)
            row.inputs += 1
            if fault is not None:
                row.tracebacks += fault.kind == "traceback"
                row.hangs += fault.kind == "hang"
                row.other += fault.kind not in ("traceback", "hang")
                kept = cases.keep(fault, self.template, self.asked.cases)
                self.tally.fault(f"{name}: {fault.kind}, {fault.where}", kept.name if kept else " ".join(fault.words))
            self._progress()

    def _inputs(
        self, todo: list[Reader], usual: dict[str, int], worker: int, until: float
    ) -> Iterator[tuple[str, fuzz.Fault | None]]:
        candidates = {each.name: each.candidates(self.template) for each in todo}
        weighted = [each for each in todo for _ in range(each.weight)]

        def trial(number: int) -> fuzz.Trial:
            reader = weighted[number % len(weighted)]
            rng = random.Random(f"{self.seed}/{reader.name}/{number}")
            given = fuzz.draw(reader, self.template, candidates[reader.name], rng)
            return fuzz.Trial(reader, given, rng.choice(reader.commands), usual[reader.name])

        numbers: Iterator[int] = count(worker, self.workers)
        if self.quick:
            numbers = iter(range(worker, 12 * len(weighted), self.workers))
        place = self.base / f"input-{worker}"
        while (self.quick or time.monotonic() < until) and (some := list(islice(numbers, batches.SIZE))):
            trials = [trial(number) for number in some]
            for each, fault in zip(trials, batches.judge(trials, self.template, place), strict=True):
                yield each.reader.name, fault

    def _flood(self) -> None:
        run = small.run_with(self.template, "done")
        bad = 200 if self.quick else 2000
        found = flood(self.template, f"runs/{run.name}", random.Random(f"{self.seed}/flood"), bad=bad)
        row = self.tally.row("live view")
        row.inputs, row.other = found.connections, len(found.wrong)
        for sentence in found.wrong:
            self.tally.fault("live view", sentence)
        self._progress()

    def _progress(self) -> None:
        if (now := time.monotonic()) - self.said < 2:
            return
        self.said = now
        total, spent = self.tally.total, int(now - self.begun)
        line = f"soak: {spent // 60}:{spent % 60:02} · {total.kills:,} kills · {total.inputs:,} inputs"
        line += f" · {total.wrong:,} wrong"
        print(f"\r{line}  " if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr)


def _replay(template: Path, base: Path, folder: Path) -> int:
    """Give every kept input to every command of its reader, and print what is wrong as JSON, by the case's name."""
    known = {each.name: each for each in readers()}
    paths = sorted(folder.glob("*.json"))

    def work(worker: int) -> Iterator[tuple[str, list[str]]]:
        for path in paths[worker::2]:
            given = cases.load(path, template)
            reader = known[given.reader]
            place = base / f"case-{worker}"
            usual = fuzz.check_seeds(reader, template, place)
            trials = [fuzz.Trial(reader, given, command, usual) for command in reader.commands]
            faults = [fault for trial in trials if (fault := trial.judge(template, place)) is not None]
            yield path.name, [f"evenly {' '.join(fault.words)}: {fault.kind}\n{fault.said}" for fault in faults]

    print(json.dumps(dict(crew(2, work)), indent=1))
    return 0


def _shortened(sentence: str) -> str:
    """The last line, without the random part of a temporary file's name."""
    import re

    return re.sub(r"\.\w{8}\.part$", ".….part", sentence.strip().splitlines()[-1])[-300:]


sys.exit(main())
