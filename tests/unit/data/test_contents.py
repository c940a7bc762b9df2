"""Digests of files are remembered, and never of what a file was before."""

import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from evenly.data import contents
from evenly.errors import DataError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path / "cache"))
    contents._parse.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three hundred files that are as old as files usually are."""
    (tmp_path / "data").mkdir()
    for number in range(300):
        (tmp_path / "data" / f"{number}.bin").write_bytes(bytes([number % 256]) * 10)
    return tmp_path / "data"


NAMES = [f"{number}.bin" for number in range(300)]


def later(monkeypatch: pytest.MonkeyPatch, seconds: float = 10.0) -> None:
    """The clock of the machine goes on, the files stay as they are."""
    now = time.time_ns
    monkeypatch.setattr(contents.time, "time_ns", lambda: now() + int(seconds * 1e9))


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()
    for name in ("open", "stat"):
        original = getattr(os, name)

        def counting(*given: object, _name: str = name, _original: object = original, **more: object) -> object:
            calls[_name] += 1
            return _original(*given, **more)  # type: ignore[operator]

        monkeypatch.setattr(contents.os, name, counting)
    return calls


def test_digests_are_those_of_the_bytes(cache: Path, folder: Path) -> None:
    for name, digest in zip(NAMES, contents.digests(folder, NAMES), strict=True):
        assert digest == hashlib.blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()


def test_a_second_look_costs_a_stat_for_each_file_and_opens_none(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    first = contents.digests(folder, NAMES)
    calls = counted(monkeypatch)
    assert contents.digests(folder, NAMES) == first
    assert calls["open"] == 0
    assert calls["stat"] <= len(NAMES) + 2


def test_a_file_named_by_its_absolute_path_is_found_again(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    (folder.parent / "lists").mkdir()
    named = [os.fspath(folder / name) for name in NAMES]
    first = contents.digests(folder.parent / "lists", named)
    assert contents.digests(folder.parent / "lists", named) == first == contents.digests(folder, NAMES)


def test_files_are_checked_once_for_each_thing_and_read_once(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    looked: list[tuple[str, int]] = []

    def look(what: str) -> None:
        check = lambda paths: looked.append((what, len(paths)))  # noqa: E731
        contents.file_states(folder, NAMES, check=check, checked=what)

    contents.digests(folder, NAMES)
    calls = counted(monkeypatch)
    for what in ("8×8", "8×8", contents.DECODES, "9×9", "9×9"):
        look(what)
    assert looked == [("8×8", 300), ("9×9", 300)]
    assert calls["open"] == 2  # the memory is written twice, and no file of data is read again


def test_one_changed_file_is_read_again_and_no_other(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    first = contents.digests(folder, NAMES)
    (folder / "7.bin").write_bytes(b"x" * 10)
    calls = counted(monkeypatch)
    second = contents.digests(folder, NAMES)
    assert [a != b for a, b in zip(first, second, strict=True)] == [name == "7.bin" for name in NAMES]
    assert calls["open"] <= 3  # the file, and what is remembered


def test_a_change_that_keeps_size_and_modification_time_is_found(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    first = contents.digests(folder, NAMES)
    before = (folder / "7.bin").stat()
    (folder / "7.bin").write_bytes(b"x" * 10)
    os.utime(folder / "7.bin", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents.digests(folder, NAMES) != first


def test_what_changed_within_a_tick_of_the_clock_is_not_remembered(cache: Path, folder: Path) -> None:
    # The files are new: another change may leave every time stamp as it is, so none of them is remembered.
    contents.digests(folder, NAMES[:3])
    assert not contents._read_memory(contents._memory_of(folder))


@pytest.mark.parametrize("damage", [b"", b"x", b"[" * 100_000, b"\xff\xfe", b'{"0.bin": [1]}'])
def test_a_damaged_memory_is_forgotten(
    damage: bytes, cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch)
    first = contents.digests(folder, NAMES)
    (memory,) = cache.rglob("*.json")
    whole = memory.read_bytes()
    for content in (
        damage,
        contents._checksum(damage).encode() + b"\n" + damage,
        whole[:-40],
        whole.replace(b"9", b"8"),
    ):
        memory.write_bytes(content)
        contents._parse.cache_clear()
        assert contents.digests(folder, NAMES) == first


def test_a_cache_that_cannot_be_written_only_costs_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    monkeypatch.setenv("EVENLY_CACHE", "/proc/nowhere")
    assert contents.digests(folder, NAMES) == contents.digests(folder, NAMES)


def test_several_writers_at_once_leave_a_memory_that_is_right(cache: Path, folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from evenly.data import contents\n"
        "contents.time = type('later', (), {'time_ns': staticmethod(lambda: time.time_ns() + 10**10)})\n"
        "names = [f'{n}.bin' for n in range(int(sys.argv[2]), 300, 3)]\n"
        "for _ in range(5): contents.digests(Path(sys.argv[1]), names)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(start)]) for start in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [Path(path).suffix for path in cache.rglob("*") if path.is_file()] == [".json"]
    for name, digest in zip(NAMES, contents.digests(folder, NAMES), strict=True):
        assert digest == hashlib.blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()


def test_what_is_no_file_is_refused_and_keeps_nobody_waiting(cache: Path, folder: Path) -> None:
    os.mkfifo(folder / "pipe.bin")
    with pytest.raises(DataError, match=r"pipe.bin: is not a regular file"):
        contents.digests(folder, ["pipe.bin"])
    with pytest.raises(DataError, match=r"gone.bin: no such file"):
        contents.digests(folder, ["gone.bin"])
