"""Running benchmarks, keeping their ratios, and drawing the table from what was kept."""

import datetime
import itertools
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.atomic import write_json, write_text

FOLDER = Path(__file__).parent
REGISTRY: dict[str, "Benchmark"] = {}


class Missing(Exception):
    """Something a benchmark needs is not there; the message says how to get it."""


@dataclass(frozen=True)
class Benchmark:
    """A claim about a ratio, and the generator that measures it."""

    name: str
    claim: str
    ratios: Callable[[], Iterator[float]]
    at_most: float | None
    at_least: float | None
    repeats: int

    @property
    def target(self) -> str:
        return f"≤ {self.at_most:g}×" if self.at_most is not None else f"≥ {self.at_least:g}×"

    def met(self, ratio: float) -> bool:
        """Whether a ratio meets the target, judged as the table prints it: with two decimals."""
        shown = round(ratio, 2)
        return shown <= self.at_most if self.at_most is not None else shown >= (self.at_least or 0)

    def run(self) -> dict[str, Any]:
        """The ratios of `repeats` turns with what they say, ready to be kept."""
        source = self.ratios()
        try:
            ratios = list(itertools.islice(source, self.repeats))
        finally:
            source.close()
        if self.at_least is not None:
            ratios = [1 / ratio for ratio in ratios]
        low, middle, high = quartiles(ratios)
        return {
            "name": self.name,
            "claim": self.claim,
            "target": self.target,
            "median": middle,
            "quartiles": [low, high],
            "n": len(ratios),
            "met": self.met(middle),
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "ratios": ratios,
        }


def benchmark(
    name: str, *, claim: str, at_most: float | None = None, at_least: float | None = None, repeats: int = 9
) -> Callable[[Callable[[], Iterator[float]]], Callable[[], Iterator[float]]]:
    """Register a generator of ratios under `name`, with the claim it shall bear out."""
    if (at_most is None) == (at_least is None):
        raise ValueError(f"{name}: give either at_most or at_least")

    def register(ratios: Callable[[], Iterator[float]]) -> Callable[[], Iterator[float]]:
        if name in REGISTRY:
            raise ValueError(f"two benchmarks are called {name}")
        REGISTRY[name] = Benchmark(name, claim, ratios, at_most, at_least, repeats)
        return ratios

    return register


def interleaved(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[float]:
    """time(ours)/time(peer), again and again, in the order A B, B A, A B, … so that drift falls on both alike.

    `clock=time.process_time` counts processor time: on a busy machine its ratios scatter less.
    """
    for _ in range(warm_up):
        ours(), peer()
    for turn in itertools.count():
        if turn % 2 == 0:
            a = seconds(ours, clock)
            b = seconds(peer, clock)
        else:
            b = seconds(peer, clock)
            a = seconds(ours, clock)
        yield a / b


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def quartiles(ratios: list[float]) -> tuple[float, float, float]:
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def machine() -> str:
    """The machine in words that say what matters for a ratio and nothing of whose it is."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    device = "CUDA GPU" if torch.cuda.is_available() else "no GPU"
    version = torch.__version__.partition("+")[0]
    return f"{cores} {platform.machine()} cores, {device}, Python {platform.python_version()}, torch {version}"


def run(names: list[str], *, folder: Path = FOLDER) -> bool:
    """Run the named benchmarks, keep their ratios and draw the table; whether every target that ran was met."""
    all_met = True
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 4:
        print(
            f"the machine is busy (load {load:.1f} on {cores} cores): one process against several loses by it, "
            "and ratios will scatter. Repeat when it is quiet.",
            file=sys.stderr,
        )
    for name in names:
        print(f"{name}: {REGISTRY[name].claim} …", file=sys.stderr, flush=True)
        try:
            kept = REGISTRY[name].run()
        except Missing as missing:
            print(f"{name}: not run. {missing}", file=sys.stderr, flush=True)
            continue
        write_json(folder / "results" / f"{name}.json", kept)
        write_text(folder / "RESULTS.md", table(folder))
        print(f"{name}: {_ratio(kept)}, target {kept['target']}: {_verdict(kept)}", flush=True)
        all_met &= kept["met"]
    return all_met


def table(folder: Path = FOLDER) -> str:
    """RESULTS.md, drawn from the kept results alone."""
    kept = [json.loads(path.read_text()) for path in sorted((folder / "results").glob("*.json"))]
    machines = list(dict.fromkeys(row["machine"] for row in kept))
    lines = [
        "# Results",
        "",
        "Medians of ratios [quartiles] over n repetitions; both sides of a ratio ran alternately in one process.",
        "Written by `make bench`; every ratio is kept in `results/`.",
        "",
        "| benchmark | claim | target | measured | n | target met | date | machine |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in kept:
        cells = [row["name"], row["claim"], row["target"], _ratio(row), str(row["n"]), _verdict(row), row["date"]]
        lines.append("| " + " | ".join([*cells, _letter(machines.index(row["machine"]))]) + " |")
    lines += ["", *(f"- Machine {_letter(number)}: {words}." for number, words in enumerate(machines))]
    return "\n".join(lines) + "\n"


def _ratio(kept: dict[str, Any]) -> str:
    low, high = kept["quartiles"]
    return f"{kept['median']:.2f}× [{low:.2f}, {high:.2f}]"


def _verdict(kept: dict[str, Any]) -> str:
    return "yes" if kept["met"] else "**no**"


def _letter(number: int) -> str:
    return chr(ord("A") + number)
