"""Damage a file, have it read, and judge: an answer or a sentence with its exit code, never a traceback or a hang."""

import contextlib
import os
import random
import re
import resource
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soak.mutations import NUMBERS, TEXT, WORDS, flip_bits
from soak.processes import Outcome, call, fork, limit
from soak.readers import Reader

ENDS = (0, 2, 3, 4, 5)
SPECIALS = ("fifo", "folder", "loop", "dangling", "missing")
_MB = 1 << 20
_ADDRESS_SPACE = 1536 * _MB  # beyond what is mapped before: enough to be seen, and this machine lives on
_SLACK = 200 * _MB
_CPU, WALL = 20, 60.0  # seconds


@dataclass(frozen=True)
class Input:
    """One damaged file or word: `content` in the place of `file`, or what `special` says stands there."""

    reader: str
    file: str
    content: bytes
    special: str = ""
    text: str = ""

    def put(self, folder: Path) -> None:
        """Put it where the commands will find it."""
        if not self.file:
            return
        path = folder / self.file
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not self.special:
            path.write_bytes(self.content)
        elif self.special == "fifo":
            os.mkfifo(path)
        elif self.special == "folder":
            path.mkdir()
        elif self.special == "loop":
            path.symlink_to(path.name)
        elif self.special == "dangling":
            path.symlink_to("nowhere")


@dataclass(frozen=True)
class Fault:
    """What went wrong with an input: the kind, and where, so that a thousand of the same are one."""

    input: Input
    words: tuple[str, ...]
    kind: str  # traceback, hang, memory, exit or escape
    where: str
    said: str = field(repr=False)


def draw(reader: Reader, template: Path, candidates: Sequence[str], rng: random.Random) -> Input:
    """A damaged input for `reader`; the same for the same state of `rng`."""
    if reader.texts:
        text = _damaged_text(rng.choice(reader.texts), rng)
        return Input(reader.name, "", b"", text=text)
    # First a kind of file, then one of the kind: three hundred pictures are no more interesting than one recipe.
    names = sorted({Path(each).name for each in candidates})
    name = rng.choice(names)
    file = rng.choice([each for each in candidates if Path(each).name == name])
    if rng.random() < 0.04:
        return Input(reader.name, file, b"", special=rng.choice(SPECIALS))
    content = (template / file).read_bytes()
    for _ in range(rng.choice((1, 1, 1, 2))):
        try:
            content = rng.choice(reader.mutations(file))(content, rng)
        except Exception:  # damaged once already, it may have no meaning left to damage: then by its bytes
            content = flip_bits(content, rng)
    return Input(reader.name, file, content)


@dataclass(frozen=True)
class Trial:
    """One input for one command that reads such files; `usual` bytes are needed anyway."""

    reader: Reader
    given: Input
    command: Sequence[str]
    usual: int

    @property
    def words(self) -> list[str]:
        """The command with its blanks filled in."""
        return self.reader.words(self.command, file=self.given.file, text=self.given.text)

    def judge(self, template: Path, place: Path) -> Fault | None:
        """What is wrong when a process does this and nothing else."""
        return self._carry_out(
            template,
            place,
            lambda words, folder: fork(words, folder=folder, prepare=prepare, seconds=WALL, memory=_ADDRESS_SPACE),
        )

    def judge_here(self, template: Path, place: Path) -> Fault | None:
        """What seems to be wrong when this process does it; it dies of some faults."""
        return self._carry_out(
            template, place, lambda words, folder: call(words, folder=folder, seconds=_CPU, memory=_ADDRESS_SPACE)
        )

    def _carry_out(self, template: Path, place: Path, run: Callable[[Sequence[str], Path], Outcome]) -> Fault | None:
        shutil.rmtree(place, ignore_errors=True)
        self.reader.workspace(template, place / "w")
        self.given.put(place / "w")
        ended = run(self.words, place / "w")
        allowed = self.usual + 2 * len(self.given.content) + _SLACK
        strangers = {path.name for path in place.iterdir()} - {"w", "w.home"}
        kind = _kind(ended, allowed, bool(strangers))
        _remove(place)
        return Fault(self.given, tuple(self.words), kind, _where(ended), ended.stderr[-3000:]) if kind else None


def check_seeds(reader: Reader, template: Path, place: Path) -> int:
    """Have every command read what is not damaged: it must work; the memory at the peak is what is usual."""
    usual = 0
    files = reader.candidates(template) or [""]
    texts = reader.texts or ("",)
    for command in reader.commands:
        shutil.rmtree(place, ignore_errors=True)
        reader.workspace(template, place / "w")
        words = reader.words(command, file=files[0], text=texts[0])
        ended = fork(words, folder=place / "w", prepare=prepare)
        if ended.code not in reader.good or ended.traceback:
            raise RuntimeError(f"undamaged, evenly {' '.join(words)} ended with {ended.code}:\n{ended.stderr}")
        usual = max(usual, ended.memory)
    _remove(place)
    return usual


def _kind(ended: Outcome, allowed: int, strangers: bool) -> str:
    if ended.hung or ended.code == -signal.SIGXCPU:
        return "hang"
    if "MemoryError" in ended.stderr or ended.memory > allowed:
        return "memory"
    if ended.traceback:
        return "traceback"
    if strangers:
        return "escape"
    return "" if ended.code in ENDS else "exit"


def _where(ended: Outcome) -> str:
    """The exception and the last place in evenly that it went through."""
    frames = re.findall(r'File "[^"]*?/evenly/([^"]+)", line \d+, in (\S+)', ended.stderr)
    last = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    errors = re.findall(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Warning|BadZipFile|Exit))\b", ended.stderr, re.MULTILINE)
    return f"{errors[-1] if errors else ended.code} in {last}"


def prepare() -> None:
    """Less time, and no waiting for the disk, which is not what is tried here."""
    limit(resource.RLIMIT_CPU, _CPU)
    os.fsync = lambda _: None  # type: ignore[assignment]


def _remove(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o755)
    shutil.rmtree(place, ignore_errors=True)


def _damaged_text(text: str, rng: random.Random) -> str:
    separator = "=" if "=" in text else " "
    name, _, value = text.partition(separator)
    kind = rng.random()
    if kind < 0.5:
        value = rng.choice(
            (
                *NUMBERS,
                *WORDS,
                "[1, 2",
                "{a: 1}",
                "[[]]",
                "{}",
                "'",
                '"',
                "!!python/name:os.system",
                "&a [*a]",
                "- 1",
                "2026-01-01",
            )
        )
    elif kind < 0.7:
        name = rng.choice((name + ".x", "." + name, name + "s", name.split(".")[0], "", "x.y.z", name * 300))
    else:
        value = rng.choice(TEXT)(value.encode(), rng).decode("utf-8", "replace")
    # The operating system itself lets no NUL into a command, and no more than 128 KB in a word.
    return f"{name}{separator}{value}".replace("\x00", "\ufffd")[:100_000]
