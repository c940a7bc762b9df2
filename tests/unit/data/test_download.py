"""`fetch` against a real server on the loopback interface that misbehaves in the ways real ones do."""

import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evenly.data.fetch.download import fetch
from evenly.errors import DataError, SetupError, UsageError

BODY = random.Random(0).randbytes(300_000)
MD5 = hashlib.md5(BODY).hexdigest()
SHA256 = hashlib.sha256(BODY).hexdigest()


class Server:
    """A server with one file at every path; `behave` decides about each request by its number, from 0."""

    def __init__(self) -> None:
        self.body, self.etag = BODY, '"first"'
        self.seen: list[dict[str, str]] = []
        self.behave: Callable[[int, Handler], None] = lambda number, handler: handler.serve()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.owner = self  # type: ignore[attr-defined]
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/file.bin"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for headers in self.seen]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Server = self.server.owner  # type: ignore[attr-defined]
        server.seen.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
        self.close_connection = True
        server.behave(len(server.seen) - 1, self)

    def serve(self, *, upto: int | None = None, ranges: bool = True, length: bool = True) -> None:
        """The file as a good server sends it, but the connection breaks after `upto` bytes of the body."""
        server: Server = self.server.owner  # type: ignore[attr-defined]
        start, body = 0, server.body
        same = self.headers.get("If-Range") in (None, server.etag)
        if ranges and same and (wanted := self.headers.get("Range")):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                return self.answer(416, {"Content-Range": f"bytes */{len(body)}", "Content-Length": "0"})
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if length:
            self.send_header("Content-Length", str(len(body) - start))
        self.send_header("ETag", server.etag)
        self.end_headers()
        self.wfile.write(body[start:][:upto])
        return None

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_arrives_whole_and_alone(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.bin"
    assert fetch(server.url, target, md5=MD5, sha256=SHA256, size=len(BODY)) == target
    assert target.read_bytes() == BODY
    assert left(target.parent) == ["file.bin"]
    assert server.seen[0]["user-agent"].startswith("evenly/")


def test_dropped_connections_continue_from_the_last_byte(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(upto=100_000 if number < 2 else None)
    fetch(server.url, tmp_path / "file.bin", md5=MD5, pause=0.001)
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]
    assert left(tmp_path) == ["file.bin"]


def test_a_kill_as_the_file_gets_its_name_leaves_nothing_beside_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def killed(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).name == "file.bin":
            raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        fetch(server.url, tmp_path / "file.bin", md5=MD5, size=len(BODY))
    assert left(tmp_path) == ["file.bin"]


def test_server_that_never_finishes_is_given_up_after_bounded_attempts(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(upto=10)
    with pytest.raises(SetupError, match=r"(?s)3 times in a row.*30 bytes are kept.*by hand") as caught:
        fetch(server.url, tmp_path / "file.bin", md5=MD5, attempts=3, pause=0.001)
    assert len(server.seen) == 3
    assert str(tmp_path / "file.bin") in str(caught.value)
    assert server.url in str(caught.value)


def test_real_progress_earns_new_attempts(server: Server, tmp_path: Path) -> None:
    server.body = random.Random(1).randbytes(5 << 20)
    server.behave = lambda number, handler: handler.serve(upto=1 << 20)
    fetch(server.url, tmp_path / "file.bin", size=5 << 20, attempts=2, pause=0.001)
    assert (tmp_path / "file.bin").read_bytes() == server.body
    assert len(server.seen) == 5


def test_second_call_continues_what_the_first_left(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(upto=120_000 if number == 0 else None)
    with pytest.raises(SetupError):
        fetch(server.url, tmp_path / "file.bin", md5=MD5, attempts=1)
    assert (tmp_path / "file.bin.part").read_bytes() == BODY[:120_000]
    fetch(server.url, tmp_path / "file.bin", md5=MD5)
    assert server.seen[1]["range"] == "bytes=120000-"
    assert server.seen[1]["if-range"] == '"first"'
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert left(tmp_path) == ["file.bin"]


def stop_midway(server: Server, target: Path, *, at: int, how: signal.Signals) -> int:
    """Fetch in another process, end it with a signal when `at` bytes are on disk, and return its exit code."""
    finished = threading.Event()

    def stall(number: int, handler: Handler) -> None:
        if number:
            return handler.serve()
        handler.serve(upto=at)
        handler.wfile.flush()
        finished.wait(60)

    server.behave = stall
    code = (
        # Shells start background jobs with SIGINT ignored, and children inherit it.
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from evenly.data.fetch.download import fetch\n"
        f"try: fetch({server.url!r}, {str(target)!r}, md5={MD5!r})\nexcept KeyboardInterrupt: sys.exit(130)"
    )
    part = target.with_name(target.name + ".part")
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size == at):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(how)
    finished.set()
    return process.returncode


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_stopped_process_leaves_a_part_that_the_next_one_continues(
    server: Server, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    target = tmp_path / "file.bin"
    assert stop_midway(server, target, at=150_000, how=how) == code
    assert (tmp_path / "file.bin.part").read_bytes() == BODY[:150_000]
    assert not target.exists()
    fetch(server.url, target, md5=MD5)
    assert server.ranges == [None, "bytes=150000-"]
    assert target.read_bytes() == BODY
    assert left(tmp_path) == ["file.bin"]


def test_server_without_ranges_starts_over_and_is_right(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(upto=100_000 if number == 0 else None, ranges=False)
    fetch(server.url, tmp_path / "file.bin", md5=MD5, pause=0.001)
    assert server.ranges == [None, "bytes=100000-"]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_answer_from_another_place_than_asked_is_not_appended(server: Server, tmp_path: Path) -> None:
    def misplaced(number: int, handler: Handler) -> None:
        if number == 1:
            headers = {"Content-Range": f"bytes 7-{len(BODY) - 1}/{len(BODY)}", "Content-Length": str(len(BODY) - 7)}
            handler.answer(206, headers)
            handler.wfile.write(BODY[7:])
        else:
            handler.serve(upto=100_000 if number == 0 else None)

    server.behave = misplaced
    fetch(server.url, tmp_path / "file.bin", pause=0.001)
    assert server.ranges == [None, "bytes=100000-", None]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_file_that_changed_on_the_server_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(upto=100_000 if number == 0 else None)
    with pytest.raises(SetupError):
        fetch(server.url, tmp_path / "file.bin", attempts=1)
    server.body, server.etag = BODY[::-1], '"second"'
    fetch(server.url, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY[::-1]


def test_stale_part_without_origin_is_found_out_by_the_digest(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"of something else")
    fetch(server.url, tmp_path / "file.bin", md5=MD5)
    assert server.ranges == ["bytes=17-", None]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_part_of_unknown_origin_is_not_continued_without_a_digest(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"of something else")
    fetch(server.url, tmp_path / "file.bin")
    assert server.ranges == [None]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_part_that_is_already_whole_is_only_checked(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY)
    fetch(server.url, tmp_path / "file.bin", md5=MD5, size=len(BODY))
    assert server.seen == []
    (tmp_path / "file.bin").rename(tmp_path / "file.bin.part")
    fetch(server.url, tmp_path / "file.bin", md5=MD5)  # size unknown: the server says 416
    assert server.ranges == [f"bytes={len(BODY)}-"]
    assert left(tmp_path) == ["file.bin"]


def test_part_longer_than_the_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY + b"!")
    fetch(server.url, tmp_path / "file.bin", md5=MD5, size=len(BODY))
    assert server.ranges == [None]
    (tmp_path / "file.bin").unlink()
    (tmp_path / "file.bin.part").write_bytes(BODY + b"!")
    fetch(server.url, tmp_path / "file.bin", md5=MD5, pause=0.001)
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_right_target_is_not_fetched_again_and_a_wrong_one_is_replaced(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "file.bin"
    target.write_bytes(BODY)
    fetch(server.url, target, md5=MD5)
    assert server.seen == []
    target.write_bytes(b"damaged")
    fetch(server.url, target, md5=MD5)
    assert target.read_bytes() == BODY


@pytest.mark.parametrize("digest", [{"md5": MD5}, {"sha256": SHA256}])
def test_corrupt_bytes_are_named_with_both_digests_and_deleted(
    server: Server, tmp_path: Path, digest: dict[str, str]
) -> None:
    server.body = BODY[:-1] + bytes([BODY[-1] ^ 1])
    (algorithm, expected) = next(iter(digest.items()))
    found = hashlib.new(algorithm, server.body).hexdigest()
    with pytest.raises(DataError, match=f"{algorithm} {found}, expected {expected}") as caught:
        fetch(server.url, tmp_path / "file.bin", **digest)
    assert caught.value.exit_code == 3
    assert left(tmp_path) == []
    assert len(server.seen) == 1


def test_wrong_length_is_refused_before_the_bytes(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"the server has {len(BODY)} bytes, expected 7"):
        fetch(server.url, tmp_path / "file.bin", size=7)
    assert left(tmp_path) == []


def test_endless_body_of_unknown_length_stops_at_the_announced_size(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.serve(length=False)
    with pytest.raises(DataError, match=r"expected 1000\."):
        fetch(server.url, tmp_path / "file.bin", size=1000)
    assert left(tmp_path) == []


def test_missing_file_is_named_with_address_and_status_and_not_retried(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.answer(404, {"Content-Length": "0"})
    with pytest.raises(DataError, match=f"{server.url}: the server answered 404 Not Found"):
        fetch(server.url, tmp_path / "file.bin")
    assert len(server.seen) == 1
    assert left(tmp_path) == []


def test_passing_server_error_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.behave = lambda n, handler: (
        handler.answer(500 + 3 * n, {"Content-Length": "0"}) if n < 2 else handler.serve()
    )
    fetch(server.url, tmp_path / "file.bin", md5=MD5, pause=0.001)
    assert len(server.seen) == 3
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_next_mirror_is_asked_and_continues_the_part_of_the_first(server: Server, tmp_path: Path) -> None:
    def two_mirrors(number: int, handler: Handler) -> None:
        handler.serve(upto=50_000) if handler.path == "/file.bin" else handler.serve()

    server.behave = two_mirrors
    other = server.url.replace("file.bin", "other.bin")
    fetch([server.url, other], tmp_path / "file.bin", md5=MD5, attempts=1)
    assert [(seen["path"], seen.get("range")) for seen in server.seen] == [
        ("/file.bin", None),
        ("/other.bin", "bytes=50000-"),
    ]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_all_mirrors_are_named_when_none_has_the_file(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.answer(403, {"Content-Length": "0"})
    other = server.url.replace("file.bin", "other.bin")
    with pytest.raises(DataError) as caught:
        fetch([server.url, other], tmp_path / "file.bin")
    assert f"{server.url}: the server answered 403" in str(caught.value)
    assert f"{other}: the server answered 403" in str(caught.value)


def test_redirects_are_followed_with_the_range(server: Server, tmp_path: Path) -> None:
    def redirect(number: int, handler: Handler) -> None:
        if handler.path == "/file.bin":
            handler.answer(302, {"Location": "/elsewhere", "Content-Length": "0"})
        else:
            handler.serve(upto=100_000 if number == 1 else None)

    server.behave = redirect
    fetch(server.url, tmp_path / "file.bin", md5=MD5, pause=0.001)
    assert [seen["path"] for seen in server.seen] == ["/file.bin", "/elsewhere"] * 2
    assert server.ranges[3] == "bytes=100000-"
    assert (tmp_path / "file.bin").read_bytes() == BODY


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_redirect_away_from_the_web_is_refused(server: Server, tmp_path: Path, location: str) -> None:
    server.behave = lambda number, handler: handler.answer(302, {"Location": location, "Content-Length": "0"})
    with pytest.raises((DataError, SetupError)):
        fetch(server.url, tmp_path / "file.bin", attempts=1)
    assert left(tmp_path) == []


def test_silent_server_times_out_and_is_tried_again(server: Server, tmp_path: Path) -> None:
    finished = threading.Event()

    def slow(number: int, handler: Handler) -> None:
        if number:
            return handler.serve()
        handler.serve(upto=1000)
        handler.wfile.flush()
        finished.wait(60)

    server.behave = slow
    fetch(server.url, tmp_path / "file.bin", md5=MD5, timeout=1.0, pause=0.001)
    finished.set()
    assert server.ranges == [None, "bytes=1000-"]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_no_network_says_how_to_fetch_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"  # bound but not listening: refused
        with pytest.raises(SetupError, match="refused") as caught:
            fetch(url, tmp_path / "file.bin", attempts=2, pause=0.001)
    assert caught.value.exit_code == 4
    assert f"fetch {url} by hand, put it at {tmp_path / 'file.bin'}" in str(caught.value)


def test_unknown_host_is_a_matter_of_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(SetupError, match=r"http://data\.invalid/a: .*Is there a connection"):
        fetch("http://data.invalid/a", tmp_path / "a", attempts=2, pause=0.001)
    assert left(tmp_path) == []


def test_file_larger_than_the_disk_is_refused_before_it_starts(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, handler: handler.answer(200, {"Content-Length": str(10**18)})
    with pytest.raises(SetupError, match=f"{10**18} more bytes are needed"):
        fetch(server.url, tmp_path / "file.bin")
    assert left(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_full_disk_is_told_apart_from_the_network(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").symlink_to("/dev/full")
    with pytest.raises(SetupError, match=r"cannot write .*file\.bin\.part: No space left.*Free some space"):
        fetch(server.url, tmp_path / "file.bin", md5=MD5)
    assert len(server.seen) == 1


def test_target_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(SetupError, match="cannot write"):
        fetch(server.url, tmp_path / "taken" / "file.bin")


def test_proxy_of_the_environment_is_used(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/file.bin"))
    fetch("http://data.invalid/file.bin", tmp_path / "file.bin", md5=MD5)
    assert server.seen[0]["path"] == "http://data.invalid/file.bin"
    assert (tmp_path / "file.bin").read_bytes() == BODY


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.org/a", "a.gz"])
def test_addresses_that_are_not_of_the_web_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="only http and https"):
        fetch(url, tmp_path / "a")
