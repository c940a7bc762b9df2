"""A local server for a page that follows training: it serves the page and its updates, nothing else."""

import errno
import io
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evenly.errors import EvenlyError, SetupError, UsageError
from evenly.report.experiments import Page

HOST, PORT, NEWS = "127.0.0.1", 8765, "/news.json"
MOST_CONNECTIONS = 32
SECONDS_TO_ASK, SECONDS_TO_ANSWER = 5.0, 30.0


class Server(ThreadingHTTPServer):
    """Serves the current result of `page()` on 127.0.0.1; `port` 0 takes any free one.

    At most `MOST_CONNECTIONS` are open at a time. A new one then replaces the oldest that has not sent a request, so
    that half-open connections block nobody.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, page: Callable[[], Page], *, port: int = PORT) -> None:
        if not 0 <= port <= 65535:
            raise UsageError(f"--port {port}: expected 1 to 65535, or 0 for any that is free.")
        self.page, self.turn = page, threading.Lock()
        self._silent: dict[socket.socket, None] = {}  # connections without a request so far, the oldest first
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise SetupError(f"port {port} is in use. Give another, or --port 0 for any that is free.") from error
            raise SetupError(f"cannot listen on port {port}: {error.strerror}. Give --port 0.") from error

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread, if there is room or an idle one can be closed."""
        with self._guard:
            if len(self._connections) >= MOST_CONNECTIONS:
                waiting = next(iter(self._silent), request)
                self._silent.pop(waiting, None)
                self._connections.discard(waiting)
                with suppress(OSError):
                    waiting.shutdown(socket.SHUT_RDWR)  # its thread sees the end and closes it
                if waiting is request:
                    return self.shutdown_request(request)
            self._connections.add(request)
            self._silent[request] = None
        return super().process_request(request, client_address)

    def mark_busy(self, request: Any) -> None:
        """Mark a connection as being answered, so that it is no longer closed for others."""
        with self._guard:
            self._silent.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        # Single, atomic operations on a dict and a set; the lock is not needed, and `process_request` already holds it.
        self._silent.pop(request, None)
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection; anything else is a bug, and shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Asked(io.RawIOBase):
    """The request of a connection, which must arrive within `SECONDS_TO_ASK`, however slowly it trickles in."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.until = connection, time.monotonic() + SECONDS_TO_ASK

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self.until - time.monotonic()
        if rest <= 0:
            raise TimeoutError("the request took too long")
        self.connection.settimeout(rest)
        return self.connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "evenly", ""

    def setup(self) -> None:
        """Read with a time limit."""
        super().setup()
        self.rfile = io.BufferedReader(_Asked(self.connection))

    def do_GET(self) -> None:
        """The page, its updates, or nothing."""
        self.server.mark_busy(self.request)
        self.connection.settimeout(SECONDS_TO_ANSWER)
        port = self.server.server_address[1]
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            return self._answer(400, "text/plain", f"Name one host, and open {self.server.address} itself.")
        # Another site could point its own host name at this machine, so only local names are answered.
        if hosts[0] not in (f"{HOST}:{port}", f"localhost:{port}"):
            return self._answer(403, "text/plain", f"Open {self.server.address} itself.")
        makers: dict[str, tuple[str, Callable[[Page], str]]] = {
            "/": ("text/html", lambda page: page.html(live=NEWS)),
            NEWS: ("application/json", lambda page: json.dumps(page.update(), allow_nan=False)),
        }
        if self.path not in makers:
            return self._answer(404, "text/plain", "There is only the page: /")
        kind, make = makers[self.path]
        try:
            with self.server.turn:  # one reader of the records at a time
                text = make(self.server.page())
        except EvenlyError as error:
            return self._answer(503, "text/plain", str(error))
        except Exception as error:  # any error is shown on the page, and the next request may succeed
            what = f"{type(error).__name__}: {error}"
            return self._answer(500, "text/plain", f"The page could not be made ({what}). A record may be damaged.")
        return self._answer(200, kind, text)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        with suppress(OSError):  # the browser closed the page while it was made, or did not read it
            self.end_headers()
            self.wfile.write(body)
