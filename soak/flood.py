"""Bad clients of the live view: many that say nothing, many that say what they should not; it must go on answering."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soak.processes import _import_path, surroundings

HALF_OPEN = 500
_THREADS = 100  # more than these for clients that say nothing are a leak
_PATIENCE = 60.0  # seconds until an answer must be there, on a machine that does other things too


@dataclass(frozen=True)
class Flood:
    """How many connections were made, and what was wrong."""

    connections: int
    wrong: tuple[str, ...]


def flood(folder: Path, run: str, rng: random.Random, *, bad: int) -> Flood:
    """Serve `run` and send it 500 half-open connections, then `bad` bad requests, asking in between how it does."""
    wrong: list[str] = []
    with _served(folder, run) as (process, port):
        if _status(_ask(port)) != 200:
            return Flood(1, ("the live view did not answer before the flood",))
        with ExitStack() as stack:
            for _ in range(HALF_OPEN):
                with suppress(OSError):
                    silent = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                    silent.sendall(b"GET / HT")
            wrong += _still_answers(port, f"during {HALF_OPEN} half-open connections")
            if (threads := _threads(process.pid)) > _THREADS:
                wrong.append(f"{HALF_OPEN} half-open connections keep {threads} threads")
        for number in range(bad):
            request, refused = _bad_request(port, rng)
            status = _status(_ask(port, request))
            if refused and status == 200:
                wrong.append(f"answered {request[:80]!r}")
            if status == 500:
                wrong.append(f"fell over at {request[:80]!r}")
            if number % 100 == 99:
                wrong += _still_answers(port, f"after {number + 1} bad requests")
        wrong += _still_answers(port, "after the flood")
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            wrong.append("did not end at Ctrl-C")
        else:
            if "Traceback" in said or process.returncode not in (0, 130):
                wrong.append(f"ended with {process.returncode}: {said[-500:]}")
    return Flood(HALF_OPEN + bad, tuple(dict.fromkeys(wrong)))


def _bad_request(port: int, rng: random.Random) -> tuple[bytes, bool]:
    """A request, and whether it must be refused."""
    own = f"Host: 127.0.0.1:{port}\r\n".encode()
    return rng.choice(
        (
            (b"GET / HTTP/1.1\r\n" + own + b"Host: evil.example\r\n\r\n", True),
            (b"GET / HTTP/1.1\r\nHost: evil.example\r\n" + own + b"\r\n", True),
            (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", True),
            (b"GET / HTTP/1.1\r\n\r\n", True),
            (b"GET /../../etc/passwd HTTP/1.1\r\n" + own + b"\r\n", True),
            (b"GET /%00 HTTP/1.1\r\n" + own + b"\r\n", True),
            (b"POST / HTTP/1.1\r\n" + own + b"Content-Length: -1\r\n\r\n", True),
            (b"PUT /news.json HTTP/1.1\r\n" + own + b"Content-Length: 99999999999\r\n\r\nx", True),
            (b"GET / HTTP/9.9\r\n" + own + b"\r\n", True),
            (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + own + b"\r\n", True),
            (b"GET / HTTP/1.1\r\n" + own + b"".join(b"X-%d: y\r\n" % i for i in range(300)) + b"\r\n", True),
            (b"GET / HTTP/1.1\r\n" + own + b"X: " + b"y" * 70_000 + b"\r\n\r\n", True),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(100), True),
            (rng.randbytes(rng.randrange(1, 400)) + b"\r\n\r\n", True),
            (b"\r\n" * 50, True),
            (b"GET /\r\n\r\n", True),
            (b"GET / HTTP/1.1\r\n" + own + b" folded\r\n\r\n", False),
            (b"HEAD / HTTP/1.1\r\n" + own + b"\r\n", False),
        )
    )


def _still_answers(port: int, when: str) -> list[str]:
    begun = time.monotonic()
    while time.monotonic() - begun < _PATIENCE:
        if _status(_ask(port, timeout=_PATIENCE)) == 200:
            return []
        time.sleep(0.2)
    return [f"no answer {when}"]


def _ask(port: int, request: bytes | None = None, *, timeout: float = 3.0) -> bytes:
    asked = request or f"GET /news.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(asked)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(200)
    return b""


def _status(answer: bytes) -> int:
    found = re.match(rb"HTTP/\d\.\d (\d{3})", answer)
    if found:
        return int(found[1])
    # HTTP/0.9 has no status: the page itself must not come, a refusal may.
    return 200 if b"<html" in answer and b"Error response" not in answer else 0


def _threads(process: int) -> int:
    found = re.search(r"Threads:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) if found else 0


@contextmanager
def _served(folder: Path, run: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "soak.child", "report", "--serve", run, "--port", "0"],
        cwd=folder,
        env={**os.environ, **surroundings(folder), "PYTHONPATH": _import_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                yield process, int(found[1])
                break
        else:
            raise RuntimeError(f"the live view did not start (exit code {process.wait()})")
    finally:
        process.kill()
        process.wait()
