"""Files of every format, damaged by a seeded generator: each reader gives data or an error in words, and nothing else.

By hand, many more: `python tests/fuzz/test_readers.py 10000` tries so many inputs with every reader.
"""

import gzip
import io
import pickle
import random
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.cli.separate import _from_file
from evenly.data.fetch.unpack import unpack
from evenly.data.formats.cifar import read_binary, read_pickles
from evenly.data.formats.groups import celeba, waterbirds
from evenly.data.formats.idx import read_idx
from evenly.data.formats.image_decoding import decode, scan
from evenly.data.formats.stl10 import stl10
from evenly.data.own.arrays import arrays
from evenly.data.own.manifests import manifest
from evenly.errors import EvenlyError
from evenly.files.numpy_files import read_npy
from evenly.models.weights import read as read_weights
from evenly.resampling import load, save, separate

ROUNDS = 25
Read = Callable[[Path], object]
Specimens = dict[str, tuple[str, bytes, Read]]
NUMBERS = (b"0", b"-1", b"1e30", b"nan", b"1_0", b"007", b"1000000000000", b"18446744073709551615", "١".encode())


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one to three kinds of damage."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0:
            del data[at:]
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, rng.randbytes(8)))
        elif kind == 3:
            del data[at : at + rng.randrange(1, 64)]
        elif kind == 4:
            data[at:at] = data[max(at - 40, 0) : at] * rng.choice((1, 50))
        elif kind == 5:
            data[at:at] = rng.choice(NUMBERS)
        elif data:  # headers, at both ends, are where lies are told
            end = min(len(data), 120)
            place = rng.randrange(end)
            data[place if rng.random() < 0.5 else len(data) - 1 - place] = rng.randrange(256)
    return bytes(data)


def picture(kind: str, **options: Any) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (9, 12, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def written(save_to: Callable[[Path], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save_to(path)
        return path.read_bytes()


def packed(name: str, kind: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(name, kind, fileobj=file) as tar:
        for member in ("a/1.txt", "a/" + "long" * 40 + ".txt"):
            info = tarfile.TarInfo(member)
            info.size = 700
            tar.addfile(info, io.BytesIO(bytes(700)))
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.txt", bytes(700))
        archive.writestr("a/é.txt", b"text")
    return file.getvalue()


def parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"path": ["a.png"] * 3, "label": ["cat", "dog", "cat"], "score": [0.5, None, 2.0]})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


def beside_a_picture(read: Read) -> Read:
    def both(path: Path) -> object:
        (path.parent / "a.png").write_bytes(picture("PNG"))
        return read(path)

    return both


def of_waterbirds(path: Path) -> object:
    folder = path.parent / "waterbirds_v1.0"
    folder.mkdir(exist_ok=True)
    (folder / "a.png").write_bytes(picture("PNG"))
    (folder / "metadata.csv").write_bytes(path.read_bytes())
    return waterbirds(root=path.parent)


def of_celeba(path: Path) -> object:
    folder = path.parent / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True, exist_ok=True)
    (folder / "img_align_celeba" / "a.png").write_bytes(picture("PNG"))
    (folder / "list_attr_celeba.txt").write_bytes(path.read_bytes())
    (folder / "list_eval_partition.txt").write_text("a.png 0\n")
    return celeba(root=path.parent)


def of_stl10(path: Path) -> object:
    folder = path.parent / "stl10_binary"
    folder.mkdir(exist_ok=True)
    for split in ("train", "test"):
        (folder / f"{split}_X.bin").write_bytes(bytes(2 * 3 * 96 * 96))
        (folder / f"{split}_y.bin").write_bytes(path.read_bytes())
    return stl10(root=path.parent)


def as_indices(path: Path) -> object:
    found = load(path)
    return found.indices(2), found.summary(), [found.name(int(label)) for label in found.labels[:3]]


def specimens() -> Specimens:
    """For every format the name of a file, its undamaged bytes, and what reads it."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)).astype(np.float32), np.array([0, 1, 0, 1, 0, 1])
    logits = np.array([[4, 0], [0, 4], [5, 0], [0, 5], [0.2, 0.3], [0.4, 0.1]], np.float32)
    separation = separate(torch.from_numpy(logits), y.tolist(), classes=("cat", "dog"), max_accuracy=1)
    pickled = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [3, 4]}, protocol=2)
    idx = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + bytes(range(24))
    rows = b"path,label,split,repeat,place\na.png,cat,train,2,7\na.png,dog,train,1,8\na.png,dog,test,1,x\n"
    state = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}
    from safetensors.torch import save as tensors

    found: Specimens = {
        "stored npz": ("d.npz", written(lambda p: np.savez(p, x=x, y=y, names=np.array(["a", "b"])), "d.npz"), arrays),
        "compressed npz": ("d.npz", written(lambda p: np.savez_compressed(p, x=x, y=y), "d.npz"), arrays),
        "logits": (
            "l.npz",
            written(lambda p: np.savez(p, logits=logits, labels=y), "l.npz"),
            lambda path: _from_file(path, {"method": "random"}),
        ),
        "matrix": ("g.npy", written(lambda p: np.save(p, x), "g.npy"), read_npy),
        "csv manifest": ("m.csv", rows, beside_a_picture(manifest)),
        "tsv manifest": ("m.tsv", rows.replace(b",", b"\t"), beside_a_picture(manifest)),
        "parquet manifest": ("m.parquet", parquet(), beside_a_picture(manifest)),
        "idx": ("images", idx, read_idx),
        "packed idx": ("images.gz", gzip.compress(idx), read_idx),
        "binary cifar": ("b.bin", bytes(2 * 3073), lambda path: read_binary([path], num_labels=1)),
        "pickled cifar": ("b", pickled, lambda path: read_pickles([path], keys=["labels"])),
        "waterbirds": ("m", b"img_id,img_filename,y,split,place\n1,a.png,0,0,1\n2,a.png,1,0,0\n", of_waterbirds),
        "celeba": ("m", b"1\nBlond_Hair Male\na.png -1 1\n", of_celeba),
        "stl10": ("y", bytes([1, 10]), of_stl10),
        "tar": ("a.tar", packed("a.tar", "w"), lambda path: unpack(path, path.parent / "out")),
        "packed tar": ("a.tar.gz", packed("a.tar.gz", "w:gz"), lambda path: unpack(path, path.parent / "out")),
        "zip": ("a.zip", zipped(), lambda path: unpack(path, path.parent / "out")),
        "gzip": ("a.gz", gzip.compress(bytes(3000)), lambda path: unpack(path, path.parent / "out")),
        "safetensors": ("w.safetensors", tensors(state), read_weights),
        "torch weights": ("w.pth", written(lambda p: torch.save(state, p), "w.pth"), read_weights),
    }
    for suffix in ("npz", "json", "csv"):
        name = f"s.{suffix}"
        found[f"separation {suffix}"] = (name, written(lambda p: save(separation, p), name), as_indices)
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"):
        found[kind] = (f"a.{kind.lower()}", picture(kind), lambda path: (scan([path]), decode(path)))
    return found


def try_one(name: str, seed: int, folder: Path, known: Specimens) -> None:
    file, content, read = known[name]
    path = folder / file
    path.write_bytes(mutated(content, random.Random(f"{name} {seed}")))
    try:
        read(path)
    except EvenlyError:
        return
    except Exception as error:
        raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error


NAMES = (
    "stored npz", "compressed npz", "logits", "matrix", "csv manifest", "tsv manifest",
    "parquet manifest", "idx", "packed idx", "binary cifar", "pickled cifar", "waterbirds", "celeba", "stl10", "tar",
    "packed tar", "zip", "gzip", "safetensors", "torch weights", "separation npz", "separation json", "separation csv",
    "PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM",
)  # fmt: skip


@pytest.fixture(scope="module")
def known() -> Specimens:
    return specimens()


@pytest.mark.filterwarnings("ignore")  # of Pillow and numpy about what they read; errors are what matters here
@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_errors_in_words(name: str, known: Specimens, tmp_path: Path) -> None:
    file, content, read = known[name]
    (tmp_path / file).write_bytes(content)
    read(tmp_path / file)  # undamaged, it is read
    for seed in range(ROUNDS):
        try_one(name, seed, tmp_path, known)


def test_every_format_is_tried(known: Specimens) -> None:
    assert set(NAMES) == set(known)


def main(rounds: int) -> None:
    """Try many, count what goes wrong by kind, and the memory at the peak."""
    import collections
    import resource
    import warnings

    warnings.simplefilter("ignore")
    everything, faults = specimens(), collections.Counter[str]()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            for seed in range(rounds):
                try:
                    try_one(name, seed, Path(folder), everything)
                except AssertionError as error:
                    cause = error.__cause__ or error
                    if not faults[key := f"{name}: {type(cause).__name__}: {str(cause)[:90]}"]:
                        print(error, flush=True)
                    faults[key] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{rounds * len(NAMES):,} inputs, {sum(faults.values())} faults of {len(faults)} kinds, {base} to {peak} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]))
