"""Data: batches against a DataLoader, loading against reading, the command line against its library."""

import os
import random
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from benchmarks.harness import Missing, benchmark, interleaved
from evenly.data import Labelled, load
from evenly.data.augment import Augmentation
from evenly.data.batches import Batches

NUM_IMAGES = 10_240  # 80 batches of 128: long enough that starting up and winding down do not count


def cifar10_root() -> Path:
    root = os.environ.get("EVENLY_DATA")
    if root is None or not (Path(root) / "cifar-10-batches-bin").is_dir():
        raise Missing("Set EVENLY_DATA to the folder that holds cifar-10-batches-bin (`evenly data get cifar10`).")
    return Path(root)


def race(data: Labelled, peer: Dataset) -> Iterator[float]:
    """An epoch of ours in one process of one thread, then one of a DataLoader with two workers already running."""
    torch.set_num_threads(1)
    ours = Batches(data, batch_size=128, seed=0, augment=Augmentation.parse(["pad-crop:4", "mirror"]))
    loader = DataLoader(
        peer, batch_size=128, shuffle=True, num_workers=2, persistent_workers=True, generator=torch.Generator()
    )
    yield from interleaved(lambda: consume(ours.epoch(0)), lambda: consume(loader))


def consume(batches) -> None:
    seen = sum(len(batch[0]) for batch in batches)
    assert seen == NUM_IMAGES


class PlainPyTorch(Dataset):
    """Per-image transforms as one writes them by hand on tensors: the fastest peer without batching."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        x = functional.pad(self.images[i], (4, 4, 4, 4))
        top, left = random.randrange(9), random.randrange(9)
        x = x[:, top : top + 32, left : left + 32]
        if random.random() < 0.5:
            x = x.flip(-1)
        return x.float() / 255, int(self.labels[i])


class TorchvisionOnPillow(Dataset):
    """The same by torchvision's transforms on Pillow images, as its CIFAR10 class hands them out."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        guard = Path(__file__).parents[1] / "tests" / "numerics" / "torchvision_guard.py"
        if runpy.run_path(str(guard))["torchvision"]() is None:
            raise Missing("Install torchvision.")
        from torchvision.transforms import Compose, RandomCrop, RandomHorizontalFlip, ToTensor

        self.images, self.labels = images.permute(0, 2, 3, 1).contiguous().numpy(), labels.tolist()
        self.transform = Compose([RandomCrop(32, padding=4), RandomHorizontalFlip(), ToTensor()])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.images[i])), self.labels[i]


@benchmark(
    "data-batches",
    claim="CIFAR-10 batches of 128 with pad-crop and mirror, one process, against a DataLoader with two workers and "
    "torchvision's per-image transforms: images per second",
    at_least=10,
)
def batches_against_torchvision() -> Iterator[float]:
    data = load("cifar10", root=cifar10_root())["train"].subset(range(NUM_IMAGES))
    yield from race(data, TorchvisionOnPillow(data.inputs, data.labels))


@benchmark(
    "data-batches-plain",
    claim="CIFAR-10 batches of 128 with pad-crop and mirror, one process, against the leanest hand-written per-image "
    "transforms on tensors: images per second",
    at_least=3,
)
def batches_against_plain_pytorch() -> Iterator[float]:
    data = load("cifar10", root=cifar10_root())["train"].subset(range(NUM_IMAGES))
    yield from race(data, PlainPyTorch(data.inputs, data.labels))


@benchmark(
    "data-load",
    claim="loading CIFAR-10 from disk to tensors against reading the bytes from a warm cache: time",
    at_most=3,
    repeats=15,
)
def load_against_read() -> Iterator[float]:
    root = cifar10_root()
    files = sorted((root / "cifar-10-batches-bin").glob("*.bin"))
    yield from interleaved(lambda: load("cifar10", root=root), lambda: [file.read_bytes() for file in files])


# VmHWM and not ru_maxrss, which a child inherits from the process that started it.
PEAK = """
import sys
from evenly.data import load
import evenly.data.formats.cifar
def kilobytes(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))
before = kilobytes("VmRSS")
splits = load("cifar10", root=sys.argv[1])
print((kilobytes("VmHWM") - before) * 1024 / sum(part.inputs.nbytes for part in splits.values()))
"""


@benchmark(
    "data-load-memory",
    claim="resident memory added at the peak of loading CIFAR-10 against the size of its images",
    at_most=2,
    repeats=3,
)
def peak_memory_of_loading() -> Iterator[float]:
    root = cifar10_root()
    if not Path("/proc/self/status").exists():
        raise Missing("Resident memory is read from /proc, which this system has not got.")
    while True:
        command = [sys.executable, "-c", PEAK, str(root)]
        yield float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# Not `ru_maxrss`: it counts the memory of the process that started this one.
MANIFEST = """
import sys
from evenly.data import load
assert sum(map(len, load(sys.argv[1]).values())) == 1_000_000
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
print(peak * 1024 / 400e6)
"""


@benchmark(
    "data-manifest-memory",
    claim="resident memory at the peak of loading a manifest of a million rows (path, label, split and an attribute), "
    "Python and torch included, against 400 MB",
    at_most=1,
    repeats=3,
)
def peak_memory_of_a_manifest() -> Iterator[float]:
    if not Path("/proc/self/status").exists():
        raise Missing("Resident memory is read from /proc, which this system has not got.")
    with tempfile.TemporaryDirectory() as folder:
        names = [f"images/class_{number % 100:03d}/image_{number:06d}.png" for number in range(1000)]
        for name in names:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(Path(folder) / name)
        path = Path(folder) / "list.csv"
        with path.open("w") as file:
            file.write("path,label,split,camera\n")
            for number in range(1_000_000):
                split = "train" if number // 100 % 10 else "test"  # some of every class
                file.write(f"{names[number % 1000]},class {number % 100},{split},{number % 7}\n")
        while True:
            command = [sys.executable, "-c", MANIFEST, str(path)]
            yield float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@benchmark(
    "cli-help",
    claim="`evenly --help` against a bare Python that imports argparse, the library of its command line: time",
    at_most=3,
    repeats=15,
)
def help_against_library_import() -> Iterator[float]:
    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    yield from interleaved(lambda: run("-m", "evenly", "--help"), lambda: run("-c", "import argparse"))
