"""The commands that are killed, and what is left of them that must be the same as if they had not been."""

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak import publisher, small

Snapshot = dict[str, str]  # of every file, by its path: a digest of what must not change
# What tells when and how long; a checksum of a row covers that, and what it covers is compared itself.
_TIMES = re.compile(
    r"^(time|when|date|created|updated|written|seconds|minutes|hours|.*_seconds|.*_minutes|pid|checksum)$"
)
_PASSING = {"lock", "environment.json"}  # the names of files that tell how often a run was begun, and by whom


@dataclass(frozen=True)
class Scenario:
    """A command, and the parts of the small workspace it needs."""

    name: str
    words: tuple[str, ...]
    needs: tuple[str, ...] = ("d.npz",)
    good: tuple[int, ...] = (0, 5)  # how it may end; a smoke run may well find that a claim does not hold

    def prepare(self, template: Path, folder: Path) -> None:
        """A workspace as it is before the command."""
        folder.mkdir(parents=True)
        for need in self.needs:
            source, target = template / need, folder / need
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy2(source, target)


def scenarios(template: Path) -> list[Scenario]:
    """Every command that writes, small enough that a trial takes about a second."""
    done = f"runs/{small.run_with(template, 'done').name}"
    network = f"pictures/{small.run_with(template, 'done', of='pictures').name}"
    hard = f"useful/{small.run_with(template, 'separation.csv', of='useful').name}"
    tiny = tuple(small.TINY)
    train = ("train", "d.npz", *tiny, "--epochs", "3", "--pace", "0", "--json")
    useful = ("useful", "d.npz", *tiny, "--epochs", "2", "--at-epoch", "1", "--pace", "0", "--json")
    smoke = ("--scale", "smoke", "--on", "local:1", "--runs", "work", "--ledger", "claims")
    return [
        Scenario("train", (*train, "--set", "keep_epochs=[1]", "--set", "record_examples=true")),
        Scenario("train sam", (*train, "--optimizer", "sam", "--set", "augment=[]")),
        Scenario("train images", ("train", "list.csv", *tiny, "--epochs", "2", "--pace", "0"), ("list.csv", "photos")),
        Scenario("useful", (*useful, "--seeds", "0,1", "--controls", "original,random")),
        Scenario(
            "separate", ("separate", "d.npz", *tiny, "--epochs", "2", "--at-epoch", "1", "--pace", "0", "--force")
        ),
        Scenario("reproduce", ("reproduce", small.EXPERIMENT, *smoke), ()),
        Scenario("report", ("report", done, "--out", "page.html", "--force"), ("runs", "d.npz")),
        Scenario(
            "report claims", ("report", "--claims", "--ledger", "claims", "--out", "site", "--force"), ("claims",)
        ),
        Scenario("export rows", ("export", hard, "--as", "csv", "--out", "up.csv", "--force"), ("useful", "d.npz")),
        Scenario(
            "export positions", ("export", hard, "--as", "indices", "--out", "up.npy", "--force"), ("useful", "d.npz")
        ),
        Scenario(
            "export network", ("export", network, "--as", "torchscript", "--out", "n.pt", "--force"), ("pictures",)
        ),
        Scenario("export hub", ("export", network, "--as", "hub", "--out", "hub", "--force"), ("pictures",)),
        Scenario("predict", ("predict", network, "photos", "--out", "p.csv", "--force"), ("pictures", "photos")),
        Scenario("measure", ("measure", network, "rank"), ("pictures", "list.csv", "photos")),
        # Given again, it may find the run gone.
        Scenario("runs rm", ("runs", "rm", done, "--yes"), ("runs",), good=(0, 2)),
        Scenario("data show", ("data", "show", "photos", "--out", "sheet.png", "--force"), ("photos",)),
        Scenario("data get", ("data", "get", publisher.FETCHED), ()),
    ]


def snapshot(folder: Path) -> Snapshot:
    """A digest of every file in `folder` without the times it tells, and a mark for every folder."""
    found: Snapshot = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() and not path.is_symlink():
            found[name] = "folder"
        elif path.name in _PASSING:
            found[name] = "passing"
        elif path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        else:
            found[name] = hashlib.sha256(_timeless(path)).hexdigest()
    return found


def _timeless(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".html":
        return _HTML_TIMES.sub(b"", content)
    if path.suffix == ".safetensors":
        return _ordered(content)
    if path.suffix == ".pt":
        return _traced(path)
    readers: dict[str, Callable[[bytes], Any]] = {
        ".json": json.loads,
        ".jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
        "": json.loads,
    }
    if path.suffix not in readers:
        return content
    try:
        return json.dumps(_without_times(readers[path.suffix](content)), sort_keys=True).encode()
    except ValueError:
        return content


def _traced(path: Path) -> bytes:
    """TorchScript without its notes on who called the tracing, which is the soak at one line or another."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [
                name for name in sorted(archive.namelist()) if not name.endswith((".debug_pkl", "serialization_id"))
            ]
            return b"".join(name.encode() + archive.read(name) for name in names)
    except zipfile.BadZipFile:
        return path.read_bytes()


def _ordered(content: bytes) -> bytes:
    """Tensors with their header sorted: safetensors writes notes in a random order, and a checksum covers them."""
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
    except ValueError:
        return content
    notes = header.get("__metadata__", {})
    header["__metadata__"] = {name: value for name, value in notes.items() if "checksum" not in name}
    return json.dumps(header, sort_keys=True).encode() + content[8 + size :]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if not _TIMES.match(name.rpartition(".")[2])}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


# Pages tell when and how often a run was begun, and how long it took.
_HTML_TIMES = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([+]\d\d:\d\d| UTC)?|\d+(\.\d+)? (seconds|minutes|s|min)\b"
)


def differences(expected: Snapshot, found: Snapshot) -> tuple[list[str], list[str]]:
    """Files that are missing or of other content, and files that an undisturbed command does not leave."""
    wrong = [
        f"{name} is {'missing' if name not in found else 'other'}"
        for name in expected
        if found.get(name) != expected[name]
    ]
    return wrong, sorted(set(found) - set(expected))
