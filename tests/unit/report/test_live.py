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
from evenly.report.live import Server
from evenly.report.run_page import RunPage, run_page


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    recipe = Recipe(epochs=5)
    made = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    made.log(epoch=1, **{"test.error": 0.5})
    yield made
    made.close()


@pytest.fixture
def server(run: Run) -> Iterator[Server]:
    with Server(lambda: run_page([run.path]), port=0) as made:
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
        return json.loads(fetched(server, "/news.json")[1])["plots"]["curves-0"]["data"][0]["x"]

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
    def broken() -> RunPage:
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
            Server(lambda: run_page([run.path]), port=port)
    with pytest.raises(UsageError, match="--port 70000"):
        Server(lambda: run_page([run.path]), port=70000)
