"""Many runs: two at once against one after the other, what a run costs beside its work, and how that grows."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.bench_data import cifar10_root
from benchmarks.bench_train import figure_7_recipe
from benchmarks.harness import Missing, benchmark
from evenly import records
from evenly.recipe import Data, Model, Recipe, to_mapping
from evenly.sweep import Job, Plan, Where, launch
from evenly.training.comparison import Design, compare

NOTHING = "evenly.sweep.worker:do_nothing"
LOCAL_BUDGET, RAY_BUDGET = 0.050, 0.100  # seconds beside the work that a run may cost
MANY = 200


def trivial(num: int, *, start: int = 0) -> Plan:
    """A plan of runs that do nothing."""
    return Plan([Job(f"run {n}", NOTHING, {"n": n}) for n in range(start, start + num)])


class Clock:
    """When each job of a plan ended, in seconds since the first did: what starting the processes takes is not in it."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def hear(self, job: Job, outcome: object) -> None:
        if outcome is not None:
            self.ends.append(time.perf_counter())

    def each(self, skip: int) -> float:
        """Seconds from one end to the next, after the first `skip`."""
        return (self.ends[-1] - self.ends[skip]) / (len(self.ends) - 1 - skip)


def seconds_a_run(where: Where, num: int = MANY, *, skip: int = 10) -> float:
    """What a run that does nothing takes from its turn to its end, once the processes are there."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as runs:
        launch(trivial(num), where, runs=runs, listener=clock.hear)
    return clock.each(skip) * (where.at_once or 1)


@benchmark(
    "sweep-two",
    claim="ten seeds of a small comparison (plain and SAM, digit-dominoes, a perceptron) by --on local:2 on two cores, "
    "one thread each, against --on local:1: speed",
    at_least=1.8,
    repeats=3,
)
def two_at_once() -> Iterator[float]:
    """Processes are started for each comparison: a comparison of minutes, as people have them, pays for that once."""
    recipe = Recipe(data=Data("digit-dominoes"), model=Model("mlp"), epochs=200, evaluate_every=200)
    yield from at_once_against_in_turn(Design(recipe, ("plain", "sam"), tuple(range(10))))


def at_once_against_in_turn(design: Design) -> Iterator[float]:
    """What a comparison takes with two runs at once, over one after the other."""
    while True:
        taken = []
        for at_once in (2, 1):
            with tempfile.TemporaryDirectory() as runs:
                start = time.perf_counter()
                compare(design, runs=runs, where=Where(at_once=at_once, threads=1), device="cpu")
                taken.append(time.perf_counter() - start)
        yield taken[0] / taken[1]


@benchmark(
    "sweep-fig7",
    claim="training two seeds of Nguyen's figure 7, three epochs each, by --on local:2 on two cores, one thread each, "
    "against --on local:1, by the runs' own clocks (a run of 200 epochs starts a process once): speed",
    at_least=1.8,
    repeats=3,
)
def two_of_figure_7() -> Iterator[float]:
    cifar10_root()
    design = Design(figure_7_recipe(epochs=3), ("plain",), (0, 1))
    while True:
        at_once, in_turn = (training_seconds(design, at_once=number) for number in (2, 1))
        yield max(at_once) / sum(in_turn)


def training_seconds(design: Design, *, at_once: int) -> list[float]:
    """The seconds that each run of a comparison trained for."""
    with tempfile.TemporaryDirectory() as runs:
        compare(design, runs=runs, where=Where(at_once=at_once, threads=1), device="cpu")
        return [run.summary()["seconds"] for run in records.runs(runs)]


@benchmark(
    "sweep-local",
    claim="what a run that does nothing costs by --on local:2, after start-up, against 50 ms",
    at_most=1,
    repeats=5,
)
def local_overhead() -> Iterator[float]:
    """From the turn of a run to its end, with its log, the bar and the state on disk."""
    while True:
        yield seconds_a_run(Where(at_once=2, threads=1)) / LOCAL_BUDGET


@benchmark(
    "sweep-ray",
    claim="what a run that does nothing costs by --on ray on two cores, after start-up, against 100 ms",
    at_most=1,
    repeats=3,
)
def ray_overhead() -> Iterator[float]:
    """One cluster for all turns, as a person's stands already."""
    try:
        import ray
    except ImportError:
        raise Missing('pip install "evenly[ray]"') from None
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        while True:
            yield 2 * seconds_a_run(Where("ray", threads=1)) / RAY_BUDGET
    finally:
        ray.shutdown()


@benchmark(
    "sweep-linear",
    claim="planning, carrying out and collecting 1,000 runs that do nothing, in this process, against ten times 100",
    at_most=1.2,
    repeats=5,
)
def linear() -> Iterator[float]:
    """In this process, where nothing hides what plan, bar and records cost."""
    taken = dict.fromkeys((100, 1000), 0.0)
    while True:
        for num in taken:
            start = time.perf_counter()
            for turn in range(1000 // num):
                with tempfile.TemporaryDirectory() as runs:
                    launch(trivial(num, start=turn * num), Where(at_once=1), runs=runs)
            taken[num] = time.perf_counter() - start
        yield taken[1000] / taken[100]


def growth(sizes: tuple[int, ...] = (100, 1000, 10_000)) -> list[dict[str, float]]:
    """What docs/scale.md prints: seconds to plan, to write records, to find them done and to list them, by size."""
    from evenly.records import Run

    rows = []
    for num in sizes:
        row: dict[str, float] = {"runs": num}
        with tempfile.TemporaryDirectory() as folder:
            runs = Path(folder)
            row["plan"] = _seconds(lambda num=num: trivial(num))
            row["launch here"] = _seconds(lambda num=num, runs=runs: launch(trivial(num), runs=runs))

            def write(num: int = num, runs: Path = runs) -> None:
                for n in range(num):
                    recipe = to_mapping(Recipe(seed=n))
                    with Run.create(runs, recipe, f"{n:012x}") as run:
                        run.log(**{"epoch": 1, "test.error": 0.5})
                        run.finish({"epoch": 1, "test.error": 0.5})

            row["write records"] = _seconds(write)
            row["find done"] = _seconds(lambda num=num, runs=runs: [Run(runs / f"{n:012x}").state for n in range(num)])
            row["collect"] = _seconds(lambda runs=runs: [run.summary() for run in records.runs(runs)])
        rows.append(row)
    return rows


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()  # the processor's: other programs do not lengthen it
    work()
    return time.process_time() - start


if __name__ == "__main__":
    for row in growth():
        print("  ".join(f"{name} {value:.3g}" for name, value in row.items()))
