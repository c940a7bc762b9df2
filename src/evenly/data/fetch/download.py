"""Download a file: complete and correct, or not at all. An interrupted download resumes where it stopped."""

import http.client
import json
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPResponse
from io import FileIO
from pathlib import Path
from urllib.parse import urlsplit

from evenly import __version__
from evenly.atomic import write_json
from evenly.data.fetch.disk import require_space, write_whole, writing
from evenly.data.fetch.verify import digest
from evenly.errors import DataError, EvenlyError, SetupError, UsageError
from evenly.progress import Bar

_CHUNK = 1 << 18
_WORTHWHILE = 1 << 20  # a connection that delivered this much resets the number of attempts
_LONGEST_PAUSE = 30.0
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


def fetch(
    urls: str | Sequence[str],
    target: str | os.PathLike[str],
    *,
    md5: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    attempts: int = 5,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> Path:
    """Download the file from one of `urls` to `target` and check it; a correct target is left alone.

    Bytes are collected in `<target>.part`, which survives Ctrl-C and dropped connections: the same call continues
    it, as long as the server still has the same file (`If-Range`). A dropped connection or a passing server
    error is tried again, up to `attempts` times in a row without real progress, after `pause`, 2·`pause`, …
    seconds. The file takes its name only when size and digest are right. Proxies are those of the environment.

    >>> fetch("ftp://example.org/a.gz", "a.gz")
    Traceback (most recent call last):
    evenly.errors.UsageError: cannot fetch 'ftp://example.org/a.gz': only http and https addresses are fetched.
    """
    addresses = [urls] if isinstance(urls, str) else list(urls)
    for url in addresses:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"cannot fetch {url!r}: only http and https addresses are fetched.")
    if not addresses:
        raise UsageError(f"cannot fetch {target}: no address was given.")
    download = _Download(Path(target), {"md5": md5, "sha256": sha256}, size, attempts, timeout, pause)
    if download.target.is_file() and not download.complaint(download.target):
        return download.target
    failures: list[EvenlyError] = []
    for url in addresses:
        try:
            download.run(url)
            return download.target
        except (DataError, _Unreachable) as failure:
            failures.append(failure)
    message = "\n".join(map(str, failures))
    if all(isinstance(failure, _Unreachable) for failure in failures):
        by_hand = f"Or fetch {addresses[0]} by hand, put it at {download.target}, and repeat the command."
        raise SetupError(f"{message}\n{by_hand}") from failures[0]
    raise DataError(message) from failures[0]


class _Unreachable(SetupError):
    """No answer from a server, or answers that broke off too often."""


class _Download:
    """A download in progress: the part on disk, and its origin."""

    def __init__(
        self,
        target: Path,
        digests: dict[str, str | None],
        size: int | None,
        attempts: int,
        timeout: float,
        pause: float,
    ) -> None:
        self.target, self.size, self.attempts, self.timeout, self.pause = target, size, attempts, timeout, pause
        self.digests = {algorithm: value.lower() for algorithm, value in digests.items() if value}
        self.part = target.with_name(target.name + ".part")
        self.origin = target.with_name(target.name + ".part.json")  # the address and version of the part

    def run(self, url: str) -> None:
        """Fetch from `url`, check, and rename the file."""
        continued = self.have() > 0
        self.gather(url)
        complaint = self.complaint(self.part)
        if complaint and continued:  # the old part may have come from another file: start again
            self.discard()
            self.gather(url)
            complaint = self.complaint(self.part)
        if complaint:
            self.discard()
            raise DataError(f"{url}: {complaint}. It was deleted; repeat the command, or use another mirror.")
        # First: if killed after the rename, the file is never requested again, and the note would stay forever.
        self.origin.unlink(missing_ok=True)
        with writing(self.target):
            os.replace(self.part, self.target)

    def gather(self, url: str) -> None:
        """Fill the part, in as many requests as it takes."""
        failed = 0
        while not self.full():
            before = self.have()
            try:
                if self.request(url):
                    return
                reason = "the connection closed too early"
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _PASSING:
                    raise DataError(
                        f"{url}: the server answered {error.code} {error.reason}. Is the address still right?"
                    ) from error
                reason = f"the server answered {error.code} {error.reason}"
            except (OSError, http.client.HTTPException) as error:
                cause = error.reason if isinstance(error, urllib.error.URLError) else error
                reason = str(cause) or type(cause).__name__
                if isinstance(cause, ssl.SSLCertVerificationError):
                    raise _Unreachable(f"{url}: its certificate is not trusted ({reason}).") from error
                if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
                    raise _Unreachable(f"{url}: {reason}. Is there a connection?") from error  # waiting is no help
            failed = 1 if self.have() - before >= _WORTHWHILE else failed + 1
            if failed >= self.attempts:
                kept = f" {self.have()} bytes are kept: the same command continues." if self.have() else ""
                raise _Unreachable(f"{url}: {reason}, {failed} times in a row. Is there a connection?{kept}")
            time.sleep(min(self.pause * 2 ** (failed - 1), _LONGEST_PAUSE))

    def request(self, url: str) -> bool:
        """Make one request for the missing bytes; return whether the part is then complete."""
        offset = self.have()
        try:
            response = _open(url, self.resume_headers(url, offset), self.timeout)
        except urllib.error.HTTPError as error:
            if error.code != 416:
                raise
            error.close()
            if _total(error.headers.get("Content-Range")) == offset:
                return True
            self.discard()
            return False
        with response:
            start, total = _extent(response)
            if start not in (0, offset):
                self.discard()
                return False
            if self.size is not None and total is not None and total != self.size:
                raise DataError(f"{url}: the server has {total} bytes, expected {self.size}: another version?")
            require_space(self.part, (total or 0) - start)
            with writing(self.part):
                self.part.parent.mkdir(parents=True, exist_ok=True)
                # Before the bytes, so that a part never has the origin of another one.
                write_json(self.origin, {"url": url, "version": _version(response)})
                file = open(self.part, "r+b" if start else "wb", buffering=0)  # noqa: SIM115 (closed below, in the with)
            with file, Bar(f"fetching {self.target.name}", total=total, unit="bytes", done=start) as bar:
                file.seek(start)
                received = start + self.receive(response, file, bar, self.size)
        return received == total if total is not None else True

    def receive(self, response: HTTPResponse, file: FileIO, bar: Bar, limit: int | None) -> int:
        """Append the body to the part; return the number of bytes."""
        received = 0
        while chunk := response.read1(_CHUNK):
            received += len(chunk)
            with writing(self.part):
                write_whole(file, chunk)
            bar.advance(len(chunk))
            if limit is not None and file.tell() > limit:
                break  # more than announced: the size check reports it
        with writing(self.part):  # on the disk before the rename, as in evenly.atomic
            os.fsync(file.fileno())
        return received

    def resume_headers(self, url: str, offset: int) -> dict[str, str]:
        """The headers that ask for what is missing, or none where the part cannot be continued from `url`."""
        if not offset:
            return {}
        try:
            origin = json.loads(self.origin.read_text())
        except (OSError, ValueError):
            origin = {}
        if origin.get("url") == url and origin.get("version"):
            return {"Range": f"bytes={offset}-", "If-Range": origin["version"]}
        # From another mirror, or of an unknown version: safe only if a digest will be checked.
        return {"Range": f"bytes={offset}-"} if self.digests else {}

    def complaint(self, path: Path) -> str:
        """What is wrong with the file at `path`; empty if nothing is."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"{path.name} has {size} bytes, expected {self.size}"
        for algorithm, expected in self.digests.items():
            with Bar(f"checking {self.target.name}", total=size, unit="bytes") as bar:
                actual = digest(path, algorithm, bar=bar)
            if actual != expected:
                return f"{path.name} has {algorithm} {actual}, expected {expected}"
        return ""

    def have(self) -> int:
        """How many bytes the part holds."""
        return self.part.stat().st_size if self.part.exists() else 0

    def full(self) -> bool:
        """Whether the part is complete; a longer one does not belong to this file."""
        if self.size is None or self.have() < self.size:
            return False
        if self.have() > self.size:
            self.discard()
        return self.have() == self.size

    def discard(self) -> None:
        """Delete the part."""
        self.part.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)


def _open(url: str, headers: dict[str, str], timeout: float) -> HTTPResponse:
    # An opener of our own: it follows redirects to http and https only, never to ftp or file.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    agent = {"User-Agent": f"evenly/{__version__}", "Accept-Encoding": "identity"}
    response = opener.open(urllib.request.Request(url, headers=agent | headers), timeout=timeout)
    assert isinstance(response, HTTPResponse)
    return response


def _extent(response: HTTPResponse) -> tuple[int, int | None]:
    """Where the body starts in the file, and the length of the file, if the server says so."""
    if response.status == 206:
        ranged = response.headers.get("Content-Range") or ""
        start = re.match(r"bytes (\d+)-", ranged)
        return (int(start[1]) if start else -1), _total(ranged)
    length = response.headers.get("Content-Length")
    return 0, int(length) if length is not None and length.isdigit() else None


def _total(content_range: str | None) -> int | None:
    match = re.search(r"/(\d+)$", content_range or "")
    return int(match[1]) if match else None


def _version(response: HTTPResponse) -> str | None:
    """An identifier of this version of the file; a weak tag is none (RFC 9110, 13.1.5)."""
    tag = response.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return response.headers.get("Last-Modified")
