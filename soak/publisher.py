"""A publisher of small archives on the loopback interface, in the place of the real one of MNIST and PACS."""

import hashlib
import os
import signal
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

_FILES = {"train.bin": 200_000, "test.bin": 50_000}
# Names that are borrowed: of the set that is fetched, and of those whose archives people fetch by hand.
FETCHED, BY_HAND = "mnist", {"tar": "pacs", "zip": "vlcs", "gz": "office-home"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def contents() -> dict[str, bytes]:
    """What the published data set consists of, the same each time."""
    rng = np.random.default_rng(0)
    return {name: rng.bytes(size) for name, size in _FILES.items()}


def archive(path: Path) -> None:
    """Write the published archive; the same bytes each time, so that its checksum is known in every process."""
    import io

    with tarfile.open(path, "w:") as tar:
        for name, content in contents().items():
            member = tarfile.TarInfo(f"inner/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def publish(address: str) -> None:
    """Have this process believe that MNIST is the small archive at `address`, and PACS one that is fetched by hand."""
    import tempfile

    from evenly.data.fetch import sources
    from evenly.data.fetch.publication import Archive, File, Layout, Source

    with tempfile.TemporaryDirectory() as folder:
        archive(Path(folder) / "small.tar")
        packed = (Path(folder) / "small.tar").read_bytes()
    files = tuple(File(name, len(body), hashlib.md5(body).hexdigest()) for name, body in contents().items())
    named = Archive(
        "small.tar", "small", (f"{address}/small.tar",), len(packed), hashlib.md5(packed).hexdigest(), top="inner"
    )
    known = {**sources.SOURCES, FETCHED: Source(FETCHED, "Small", address, "none", (named,), (Layout("small", files),))}
    for suffix, name in BY_HAND.items():
        plain = Archive(f"hand.{'tar.gz' if suffix == 'gz' else suffix}", f"hand-{suffix}", top="inner")
        layout = Layout(f"hand-{suffix}", files)
        known[name] = Source(name, name, address, "none", (plain,), (layout,), by_hand="Download it.")
    setattr(sources, "SOURCES", known)  # noqa: B010  # it is Final


class Publisher:
    """A process that serves the archive until `close`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        archive(folder / "small.tar")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        self.process = os.fork()
        if self.process == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                server.serve_forever(poll_interval=0.05)
            finally:
                os._exit(0)
        server.socket.close()

    def close(self) -> None:
        """End the process."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
