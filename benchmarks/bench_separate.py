"""Separation: against scikit-learn's KMeans class by class, and from a file too large to read."""

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans

from benchmarks.harness import Missing, benchmark, interleaved, seconds
from evenly.resampling import separate

NUM = 50_000
ROWS, COLUMNS = 1_280, 1_000  # a class of an ImageNet-sized training set, in single precision


def early_logits(num: int, num_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits as of early training: 70% of each class raised at their class, the others hardly, and elsewhere."""
    rng = torch.Generator().manual_seed(0)
    labels = torch.randint(num_classes, (num,), generator=rng)
    easy = torch.rand(num, generator=rng) < 0.7
    logits = 1.5 * torch.randn(num, num_classes, generator=rng)
    logits[torch.arange(num), labels] += torch.where(easy, 4.0, 0.5)
    other = torch.randint(num_classes, (num,), generator=rng)
    logits[torch.arange(num), other] += torch.where(easy, 0.0, 2.0)
    return logits, labels


def race(num_classes: int) -> Iterator[float]:
    """All of `separate`, losses, silhouettes and statistics included, against the bare clustering of scikit-learn."""
    logits, labels = early_logits(NUM, num_classes)
    inertias: dict[str, float] = {}

    def ours() -> None:
        inertias["ours"] = separate(logits, labels, restarts=10, max_accuracy=1).inertia

    def peer() -> None:
        rows, classes = logits.numpy(), labels.numpy()
        inertias["peer"] = sum(
            KMeans(2, n_init=10, random_state=0).fit(rows[classes == label]).inertia_ for label in range(num_classes)
        )

    for ratio in interleaved(ours, peer):
        assert inertias["ours"] <= 1.001 * inertias["peer"], inertias
        yield ratio


@benchmark(
    "separate-10",
    claim="separating 50,000 × 10 outputs in 10 classes, 10 restarts, against scikit-learn's KMeans class by class at "
    "equal inertia (within 0.1%): speed",
    at_least=4,
)
def ten_classes() -> Iterator[float]:
    yield from race(10)


@benchmark(
    "separate-100",
    claim="separating 50,000 × 100 outputs in 100 classes against scikit-learn's KMeans class by class: speed",
    at_least=4,
)
def hundred_classes() -> Iterator[float]:
    yield from race(100)


@benchmark(
    "separate-classes",
    claim="separating 20,000 examples with 64 features in 1,000 classes against the same in 100: processor time",
    at_most=1.2,
)
def thousand_classes() -> Iterator[float]:
    rng = torch.Generator().manual_seed(0)
    x, losses = torch.randn(20_000, 64, generator=rng), torch.rand(20_000, generator=rng)
    x[:, 0] += 4 * (losses > 0.7)

    def split(num_classes: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            separate(x, torch.arange(20_000) % num_classes, losses=losses, on="features", max_accuracy=1)

    yield from interleaved(lambda: split(1_000), lambda: split(100), clock=time.process_time)


def written(folder: str, num_classes: int) -> Path:
    """Outputs of that many ImageNet-sized classes in a file, the classes in turn as a shuffled data set has them."""
    path = Path(folder) / f"{num_classes}.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(num_classes * ROWS, COLUMNS))
    draw = np.random.default_rng(0)
    for start in range(0, len(rows), 16_000):
        part = draw.standard_normal((min(16_000, len(rows) - start), COLUMNS), dtype=np.float32)
        labels = (start + np.arange(len(part))) % num_classes
        part[np.arange(len(part)), labels] += np.where(draw.random(len(part)) < 0.6, 8, 1)
        rows[start : start + len(part)] = part
    rows.flush()
    return path


def from_file(path: Path) -> None:
    rows = np.load(path, mmap_mode="r")
    separate(rows, torch.arange(len(rows)) % (len(rows) // ROWS))


@benchmark(
    "separate-linear",
    claim="separating 100 ImageNet-sized classes (1,280 × 1,000) from a memory-mapped file against 25 of them: time",
    at_most=4.4,
    repeats=5,
)
def four_times_as_many() -> Iterator[float]:
    with tempfile.TemporaryDirectory() as folder:
        few, many = written(folder, 25), written(folder, 100)
        for ratio in interleaved(lambda: from_file(many), lambda: from_file(few)):
            print(
                f"separate-linear: {seconds(lambda: from_file(few)) / (25 * ROWS) * 1e6:.0f} s a million",
                file=sys.stderr,
            )
            yield ratio


# Resident memory that belongs to no file, watched from a thread: a file's pages are the system's to take back.
PEAK = """
import sys, threading, time
import numpy, torch
from evenly.resampling import separate
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
def watch():
    while not done.is_set():
        peak.append(max(peak.pop(), resident()))
        time.sleep(0.001)
torch.set_num_threads(1)
rows = numpy.load(sys.argv[1], mmap_mode="r")
labels = torch.arange(len(rows)) % (len(rows) // int(sys.argv[2]))
separate(torch.randn(64, rows.shape[1]), torch.arange(64) % 2, max_accuracy=1)
before, done = resident(), threading.Event()
peak = [before]
watcher = threading.Thread(target=watch)
watcher.start()
found = separate(rows, labels)
done.set()
watcher.join()
result = sum(t.nbytes for t in (found.hard, found.losses, found.index))
result += sum(s.mean_easy.nbytes + s.mean_hard.nbytes for s in found.splits)
print((peak[0] - before - result) / (int(sys.argv[2]) * rows.shape[1] * 4))
"""


@benchmark(
    "separate-memory",
    claim="memory at the peak of separating 50 ImageNet-sized classes from a memory-mapped file, beyond the result, "
    "against the outputs of one class",
    at_most=3,
    repeats=5,
)
def peak_memory() -> Iterator[float]:
    if not Path("/proc/self/status").exists():
        raise Missing("Resident memory is read from /proc, which this system has not got.")
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, 50)
        while True:
            command = [sys.executable, "-c", PEAK, str(path), str(ROWS)]
            yield float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
