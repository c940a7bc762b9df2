"""A page that follows a training as it goes: served to this machine alone, and nothing but the page and its news."""

import errno
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evenly.errors import EvenlyError, SetupError, UsageError
from evenly.report.run_page import RunPage

HOST, PORT, NEWS = "127.0.0.1", 8765, "/news.json"


class Server(ThreadingHTTPServer):
    """Serves what `page()` gives at the moment of asking, on 127.0.0.1; `port` 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, page: Callable[[], RunPage], *, port: int = PORT) -> None:
        if not 0 <= port <= 65535:
            raise UsageError(f"--port {port}: expected 1 to 65535, or 0 for any that is free.")
        self.page, self.turn = page, threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise SetupError(f"port {port} is in use. Give another, or --port 0 for any that is free.") from error
            raise SetupError(f"cannot listen on port {port}: {error.strerror}. Give --port 0.") from error

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "evenly", ""

    def do_GET(self) -> None:
        """The page, its news, or nothing."""
        port = self.server.server_address[1]
        # A site elsewhere could point a name of its own at this machine: only our own names are answered.
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            return self._answer(403, "text/plain", f"Open {self.server.address} itself.")
        makers: dict[str, tuple[str, Callable[[RunPage], str]]] = {
            "/": ("text/html", lambda page: page.html(live=NEWS)),
            NEWS: ("application/json", lambda page: json.dumps(page.news(), allow_nan=False)),
        }
        if self.path not in makers:
            return self._answer(404, "text/plain", "There is only the page: /")
        kind, make = makers[self.path]
        try:
            with self.server.turn:  # one reading of the records at a time
                text = make(self.server.page())
        except EvenlyError as error:
            return self._answer(503, "text/plain", str(error))
        except Exception as error:  # whatever it is, whoever looks at the page is told, and the next asking may do
            what = f"{type(error).__name__}: {error}"
            return self._answer(500, "text/plain", f"The page could not be made ({what}). A record may be damaged.")
        return self._answer(200, kind, text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of every request."""

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        with suppress(ConnectionError):  # a page that was closed while it was made
            self.end_headers()
            self.wfile.write(body)
