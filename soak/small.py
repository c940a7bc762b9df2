"""The small things that the soak works on: data of every format, runs, a ledger; real, and made by evenly itself."""

import gzip
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soak import publisher
from soak.processes import fork

TINY = ["--model", "mlp", "--set", "model.options.width=8", "--batch-size", "8", "--device", "cpu"]
EXPERIMENT = "chang2025/table1"


def build(folder: Path) -> Path:
    """The data and everything that commands make of them, in `folder`; it is copied for every trial."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    _arrays(folder, rng)
    _pictures(folder, rng)
    _published(folder / "root", rng)
    _by_hand(folder / "root")
    (folder / "recipe.yaml").write_text(
        "data: {name: d.npz}\nmodel: {name: mlp, options: {width: 8}}\nepochs: 4\nbatch_size: 8\n"
        "optimizer: {name: sgd, lr: 0.1}\nascent: {rule: sam, rho: 0.05}\n"
    )
    train = ["train", "d.npz", *TINY, "--epochs", "3", "--set", "keep_epochs=[1]", "--set", "record_examples=true"]
    _make(folder, [*train, "--pace", "0"])
    # A run that was stopped has a checkpoint to go on from; one that is done has none.
    half = fork([*train, "--seed", "1", "--pace", "0"], folder=folder, prepare=_stop_before_the_end)
    if half.code != -9:
        raise RuntimeError(f"the run that was to be stopped ended with {half.code}:\n{half.stderr}")
    useful = ["useful", "d.npz", *TINY, "--epochs", "2", "--at-epoch", "1", "--seeds", "0", "--runs", "useful"]
    _make(folder, useful)
    _make(folder, ["train", "list.csv", *TINY, "--epochs", "1", "--runs", "pictures", "--pace", "0"])
    network = f"pictures/{run_with(folder, 'done', of='pictures').name}"
    _make(folder, ["export", network, "--as", "hub", "--out", "exported"])
    for suffix in ("csv", "json", "npz"):
        _make(folder, ["separate", "--from-logits", "logits.npz", "--out", f"separation.{suffix}"])
    _make(
        folder,
        ["reproduce", EXPERIMENT, "--scale", "smoke", "--on", "local:1", "--runs", "work", "--ledger", "claims"],
    )
    return folder


def run_with(folder: Path, name: str, *, of: str = "runs") -> Path:
    """The first run under `of` that has a file called `name`."""
    return next(path for path in sorted((folder / of).iterdir()) if (path / name).exists())


def _make(folder: Path, words: Sequence[str]) -> None:
    made = fork(words, folder=folder)
    if made.code not in (0, 5):
        raise RuntimeError(f"evenly {' '.join(words)} ended with {made.code}:\n{made.stderr}")


def _stop_before_the_end() -> None:
    """SIGKILL when the run would be called done."""
    import os
    import signal

    from evenly.records import Run

    def stop(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    Run.finish = stop  # type: ignore[method-assign]


def _arrays(folder: Path, rng: np.random.Generator) -> None:
    num = 48
    labels = np.arange(num) % 3
    inputs = (rng.normal(size=(num, 4)) + labels[:, None]).astype(np.float32)
    content = {"inputs": inputs[:32], "labels": labels[:32], "inputs_test": inputs[32:], "labels_test": labels[32:]}
    content["attribute_place"] = np.arange(32) % 2
    content["attribute_place_test"] = np.arange(16) % 2
    np.savez(folder / "d.npz", **content)
    logits = rng.normal(size=(60, 3)) + 3 * np.eye(3)[np.arange(60) % 3] * (np.arange(60) % 4 > 0)[:, None]
    gradients = rng.normal(size=(12, 5))
    np.save(folder / "gram.npy", gradients @ gradients.T)
    np.savez(folder / "logits.npz", logits=logits.astype(np.float32), labels=np.arange(60) % 3)


def _pictures(folder: Path, rng: np.random.Generator) -> None:
    from PIL import Image

    rows = ["path,label,split,repeat,place"]
    for number, name in enumerate(("cat", "dog") * 6):
        suffix = ("png", "jpg", "bmp", "gif")[number % 4]
        path = folder / "photos" / name / f"{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(path)
        split = "test" if number >= 8 else "train"
        rows.append(
            f"photos/{name}/{number}.{suffix},{name},{split},{1 + (number == 3)},{'in' if number % 3 else 'out'}"
        )
    (folder / "list.csv").write_text("\n".join(rows) + "\n")
    (folder / "list.tsv").write_text("\n".join(rows).replace(",", "\t") + "\n")
    _parquet(folder / "list.parquet", rows)


def _parquet(path: Path, rows: Sequence[str]) -> None:
    from pyarrow import parquet, table

    names, *cells = (row.split(",") for row in rows)
    parquet.write_table(table({name: [row[i] for row in cells] for i, name in enumerate(names)}), path)


def _published(root: Path, rng: np.random.Generator) -> None:
    idx, cifar = root / "FashionMNIST" / "raw", root / "cifar-10-batches-bin"
    idx.mkdir(parents=True)
    cifar.mkdir(parents=True)
    for part, num in (("train", 40), ("t10k", 20)):
        pixels, labels = rng.bytes(num * 784), bytes(i % 10 for i in range(num))
        (idx / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, num, 28, 28) + pixels)
        (idx / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, num) + labels)
    packed = idx / "t10k-labels-idx1-ubyte"
    (idx / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(packed.read_bytes(), mtime=0))
    packed.unlink()
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        records = (bytes([i % 10]) + rng.bytes(3072) for i in range(10))
        (cifar / f"{name}.bin").write_bytes(b"".join(records))
    _pickled(root.parent / "python_root" / "cifar-10-batches-py", rng)


def _pickled(folder: Path, rng: np.random.Generator) -> None:
    import pickle

    folder.mkdir(parents=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        content = {b"data": rng.integers(0, 256, (10, 3072), np.uint8), b"labels": list(range(10))}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def _by_hand(folder: Path) -> None:
    """The archives of the small publisher, to be unpacked by `evenly data get`."""
    publisher.archive(folder / "hand.tar")
    with zipfile.ZipFile(folder / "hand.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in publisher.contents().items():
            file.writestr(f"inner/{name}", content)
    with tarfile.open(folder / "hand.tar") as tar, tarfile.open(folder / "hand.tar.gz", "w:gz") as packed:
        for member in tar:
            packed.addfile(member, tar.extractfile(member))
