"""A live page is for this machine alone, and grows with the records."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenly.errors import SetupError, UsageError
from evenly.recipe import Recipe, digest, to_mapping
from evenly.records import Run
from evenly.report.experiments import Page, page_of
from evenly.report.live import MOST_CONNECTIONS, Server


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    recipe = Recipe(epochs=5)
    made = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    made.log(epoch=1, **{"test.error": 0.5})
    yield made
    made.close()


@pytest.fixture
def server(run: Run) -> Iterator[Server]:
    with Server(lambda: page_of([run.path]), port=0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def fetched(server: Server, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(server.address.rstrip("/") + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_news_grow_with_the_records(server: Server, run: Run) -> None:
    def epochs() -> list[int]:
        return json.loads(fetched(server, "/news.json")[1])["plots"]["curves-0"]["layers"][0]["x"]

    assert epochs() == [1]
    run.log(epoch=2, **{"test.error": 0.4})
    assert epochs() == [1, 2]


def test_the_end_of_the_run_is_told(server: Server, run: Run) -> None:
    run.finish({"test.error": 0.4})
    news = json.loads(fetched(server, "/news.json")[1])
    assert (news["state"], news["over"]) == ("done", True)


def test_nothing_but_the_page_is_served(server: Server) -> None:
    code, page = fetched(server, "/")
    assert code == 200
    assert "connect-src 'self'" in page
    for path in ("/recipe.yaml", "/../recipe.yaml", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/?x"):
        assert fetched(server, path)[0] == 404, path


def test_only_this_machine_under_its_own_name_is_answered(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert fetched(server, "/", Host="evil.example")[0] == 403


def test_damaged_records_are_an_answer_and_not_the_end(server: Server, run: Run) -> None:
    metrics = run.path / "metrics.jsonl"
    whole = metrics.read_bytes()
    metrics.write_bytes(b"nonsense\n")
    code, text = fetched(server, "/news.json")
    assert code == 503
    assert "metrics.jsonl, line 1" in text
    metrics.write_bytes(whole)
    assert fetched(server, "/news.json")[0] == 200


def test_whatever_goes_wrong_is_an_answer_in_a_sentence(run: Run) -> None:
    def broken() -> Page:
        raise KeyError("label")

    with Server(broken, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            code, text = fetched(server, "/")
        finally:
            server.shutdown()
            thread.join()
    assert code == 500
    assert text == "The page could not be made (KeyError: 'label'). A record may be damaged."


def test_a_port_in_use_is_named_with_the_way_out(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} is in use.*--port 0"):
            Server(lambda: page_of([run.path]), port=port)
    with pytest.raises(UsageError, match="--port 70000"):
        Server(lambda: page_of([run.path]), port=70000)


def raw(server: Server, request: bytes) -> bytes:
    with socket.create_connection(server.server_address, timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["GET / HTTP/1.1", "Host: 127.0.0.1:{port}", "Host: evil.example"], 400),
        (["GET / HTTP/1.1", "Host: evil.example", "Host: 127.0.0.1:{port}"], 400),
        (["GET / HTTP/1.1"], 400),
        (["GET http://127.0.0.1:{port}/ HTTP/1.1", "Host: 127.0.0.1:{port}"], 404),
        (["GET http://evil.example/ HTTP/1.1", "Host: 127.0.0.1:{port}"], 404),
        (["GET /../../etc/passwd HTTP/1.1", "Host: 127.0.0.1:{port}"], 404),
        (["GET / HTTP/1.1", "Host: 127.0.0.1:{port}", "X: " + "x" * 70_000], 431),
        (["GET / HTTP/1.1", "Host: 127.0.0.1:{port}", *[f"X{i}: x" for i in range(200)]], 431),
        (["GET /" + "x" * 70_000 + " HTTP/1.1", "Host: 127.0.0.1:{port}"], 414),
        (["POST / HTTP/1.1", "Host: 127.0.0.1:{port}"], 501),
        (["DELETE /recipe.yaml HTTP/1.1", "Host: 127.0.0.1:{port}"], 501),
        (["\x16\x03\x01 nonsense"], 400),
        (["GET / HTTP/1.1", "Host: 127.0.0.1:{port}"], 200),
    ],
)
def test_requests_that_browsers_do_not_make_are_refused(server: Server, lines: list[str], code: int) -> None:
    port = server.server_address[1]
    request = "\r\n".join(line.replace("{port}", str(port)) for line in lines) + "\r\n\r\n"
    answer = raw(server, request.encode("latin1"))
    assert f" {code} ".encode() in answer.split(b"\r\n")[0] or f"Error code: {code}".encode() in answer


def test_half_open_connections_keep_few_threads_and_nobody_out(server: Server) -> None:
    before = threading.active_count()
    crowd = []
    try:
        for number in range(120):
            crowd.append(socket.create_connection(server.server_address, timeout=10))
            if number % 2:
                crowd[-1].sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert fetched(server, "/news.json")[0] == 200
        assert threading.active_count() - before <= MOST_CONNECTIONS + 1
    finally:
        for connection in crowd:
            connection.close()
    assert fetched(server, "/news.json")[0] == 200


def test_a_request_that_drips_is_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.report.live.SECONDS_TO_ASK", 0.3)
    with socket.create_connection(server.server_address, timeout=10) as connection:
        ended = False
        for _ in range(100):
            try:
                connection.sendall(b"G")
                connection.settimeout(0.05)
                ended = connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
            break
        assert ended
