"""`get` from a name to checked data on disk, over a real server on the loopback interface."""

import hashlib
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evenly.data.fetch.get import get
from evenly.data.fetch.publication import Archive, File, Images, Layout, Source
from evenly.errors import DataError

TRAIN, TEST = b"train" * 1000, b"test" * 1000


class Site(ThreadingHTTPServer):
    """A folder, served; `asked` lists the paths that were asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        assert isinstance(self.server, Site)
        self.server.asked.append(self.path)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The publisher's folder with one archive, `small.tar.gz`, and one plain file."""
    folder = tmp_path / "shop"
    inner = folder / "inner"
    inner.mkdir(parents=True)
    (inner / "train.bin").write_bytes(TRAIN)
    (inner / "test.bin").write_bytes(TEST)
    with tarfile.open(folder / "small.tar.gz", "w:gz") as tar:
        tar.add(inner, "inner")
    (folder / "names.txt").write_text("cat\ndog\n")
    return folder


@pytest.fixture
def site(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(shop)
    threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield site
    site.shutdown()
    site.server_close()


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def small(shop: Path, url: str) -> Source:
    archive, names = (shop / "small.tar.gz").read_bytes(), (shop / "names.txt").read_bytes()
    return Source(
        "small",
        "Small",
        "https://example.org/small",
        "none",
        (
            Archive("small.tar.gz", "small", (f"{url}/small.tar.gz",), len(archive), md5(archive), top="inner"),
            Archive("names.txt", "small", (f"{url}/names.txt",), md5=md5(names), packed=False),
        ),
        (
            Layout(
                "small",
                (
                    File("train.bin", len(TRAIN), md5(TRAIN)),
                    File("test.bin", len(TEST), md5(TEST)),
                    File("names.txt", None, md5(names)),
                ),
            ),
        ),
    )


def by_hand() -> Source:
    return Source(
        "shapes",
        "Shapes",
        "https://example.org/shapes",
        "none",
        (Archive("shapes.zip", "SHAPES", top="kfold"),),
        (Layout("SHAPES", images=(Images("photo", 2),)),),
        by_hand="Download shapes.zip from the drive page",
    )


def test_archives_are_fetched_unpacked_checked_and_removed(shop: Path, site: Site, tmp_path: Path) -> None:
    root = tmp_path / "data"
    got = get(small(shop, site.url), root=root)
    assert (got.already, got.folder) == (False, root / "small")
    assert (root / "small" / "train.bin").read_bytes() == TRAIN
    assert sorted(path.name for path in root.rglob("*")) == ["names.txt", "small", "test.bin", "train.bin"]
    assert str(got) == f"small is in {root / 'small'}, and right."


def test_second_call_asks_nobody_and_says_so(shop: Path, site: Site, tmp_path: Path) -> None:
    root = tmp_path / "data"
    get(small(shop, site.url), root=root)
    site.asked.clear()
    again = get(small(shop, site.url), root=root)
    assert again.already
    assert "already" in str(again)
    assert site.asked == []


def test_only_what_is_damaged_is_fetched_again(shop: Path, site: Site, tmp_path: Path) -> None:
    root = tmp_path / "data"
    get(small(shop, site.url), root=root)
    site.asked.clear()
    (root / "small" / "names.txt").write_text("damaged")
    (root / "small" / "mine.txt").write_text("kept")
    assert not get(small(shop, site.url), root=root).already
    assert site.asked == ["/names.txt"]
    (root / "small" / "test.bin").write_bytes(b"damaged")
    get(small(shop, site.url), root=root)
    assert site.asked == ["/names.txt", "/small.tar.gz"]
    assert (root / "small" / "mine.txt").read_text() == "kept"


def test_what_a_kill_after_unpacking_leaves_is_swept_by_the_next_call(shop: Path, site: Site, tmp_path: Path) -> None:
    root = tmp_path / "data"
    get(small(shop, site.url), root=root, keep_archives=True)
    (root / ".small.tar.gz.passing").touch()
    (root / ".small.unpacking" / "inner").mkdir(parents=True)
    assert get(small(shop, site.url), root=root).already
    assert sorted(path.name for path in root.iterdir()) == ["small"]


def test_an_archive_that_the_user_keeps_beside_right_data_stays(shop: Path, site: Site, tmp_path: Path) -> None:
    root = tmp_path / "data"
    get(small(shop, site.url), root=root, keep_archives=True)
    assert get(small(shop, site.url), root=root).already
    assert sorted(path.name for path in root.iterdir()) == ["small", "small.tar.gz"]


def test_mirror_is_asked_before_the_publisher(shop: Path, site: Site, tmp_path: Path) -> None:
    published = small(shop, "http://publisher.invalid")
    get(published, root=tmp_path / "data", mirror=site.url + "/")
    assert sorted(site.asked) == ["/names.txt", "/small.tar.gz"]


def test_archives_stay_when_asked_to(shop: Path, site: Site, tmp_path: Path) -> None:
    get(small(shop, site.url), root=tmp_path / "data", keep_archives=True)
    assert (tmp_path / "data" / "small.tar.gz").exists()


def test_corrupt_archive_leaves_nothing(shop: Path, site: Site, tmp_path: Path) -> None:
    published = small(shop, site.url)
    content = bytearray((shop / "small.tar.gz").read_bytes())
    content[40] ^= 1
    (shop / "small.tar.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"md5 .*, expected"):
        get(published, root=tmp_path / "data")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def test_archive_that_lacks_a_file_is_reported_with_the_file(shop: Path, site: Site, tmp_path: Path) -> None:
    with tarfile.open(shop / "small.tar.gz", "w:gz") as tar:
        tar.add(shop / "inner" / "train.bin", "inner/train.bin")
    with pytest.raises(DataError, match=r"not as published(?s:.*)test\.bin: missing"):
        get(small(shop, site.url), root=tmp_path / "data")


def test_set_fetched_by_hand_ends_with_instructions(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        get(by_hand(), root=tmp_path)
    assert caught.value.exit_code == 3
    assert "Download shapes.zip from the drive page" in str(caught.value)
    assert f"Put shapes.zip into {tmp_path}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_archive_laid_there_by_hand_is_unpacked_and_stays(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "shapes.zip", "w") as file:
        file.writestr("kfold/photo/dog/1.png", "?")
        file.writestr("kfold/photo/cat/1.png", "?")
    got = get(by_hand(), root=tmp_path)
    assert [str(check.found) for check in got.checks] == ["2 images"]
    assert (tmp_path / "SHAPES" / "photo" / "dog" / "1.png").exists()
    assert (tmp_path / "shapes.zip").exists()
    assert get(by_hand(), root=tmp_path).already


def test_wrong_archive_laid_there_by_hand_is_named_with_both_digests(tmp_path: Path) -> None:
    published = by_hand()
    archive = Archive("shapes.zip", "SHAPES", md5="0" * 32, top="kfold")
    (tmp_path / "shapes.zip").write_bytes(b"something else")
    with pytest.raises(DataError, match=f"md5 {md5(b'something else')}, expected {'0' * 32}"):
        get(Source(**{**vars(published), "archives": (archive,)}), root=tmp_path)
    assert not (tmp_path / "SHAPES").exists()
