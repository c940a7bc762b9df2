"""`verify` on files that are right, damaged, missing, and on real published ones where they are at hand."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evenly.data.fetch.publication import File, Images, Layout, Source
from evenly.data.fetch.sources import SOURCES
from evenly.data.fetch.verify import digest, present_layout, verify
from evenly.errors import UsageError

BODY = b"published bytes"
MD5 = hashlib.md5(BODY).hexdigest()
BINARY = Layout("binary", (File("a.bin", len(BODY), MD5), File("b.txt")))
PICKLED = Layout("pickled", (File("a", None, MD5),))
SET = Source("small", "Small", "https://example.org", "none", (), (BINARY, PICKLED))


def lay_out(root: Path) -> Path:
    (root / "binary").mkdir()
    (root / "binary" / "a.bin").write_bytes(BODY)
    (root / "binary" / "b.txt").write_text("names")
    return root / "binary"


def states(root: Path, published: Source = SET) -> dict[str, str]:
    return {check.path.name: check.state for check in verify(published, root=root)}


def test_right_files_are_ok(tmp_path: Path) -> None:
    lay_out(tmp_path)
    assert states(tmp_path) == {"a.bin": "ok", "b.txt": "ok"}


def test_missing_file_is_named_with_what_was_expected(tmp_path: Path) -> None:
    (lay_out(tmp_path) / "a.bin").unlink()
    missing = verify(SET, root=tmp_path)[0]
    assert (missing.path, missing.state) == (tmp_path / "binary" / "a.bin", "missing")
    assert str(missing) == f"{missing.path}: missing, expected 15 bytes and md5 {MD5}, found nothing"


def test_truncated_file_is_named_with_expected_and_found_sizes(tmp_path: Path) -> None:
    (lay_out(tmp_path) / "a.bin").write_bytes(BODY[:-1])
    wrong = verify(SET, root=tmp_path)[0]
    assert (wrong.state, wrong.found) == ("wrong", "14 bytes")
    assert wrong.expected.startswith("15 bytes")


def test_one_flipped_bit_is_found_by_the_digest(tmp_path: Path) -> None:
    damaged = bytes([BODY[0] ^ 1]) + BODY[1:]
    (lay_out(tmp_path) / "a.bin").write_bytes(damaged)
    wrong = verify(SET, root=tmp_path)[0]
    assert wrong.state == "wrong"
    assert MD5 in wrong.expected
    assert hashlib.md5(damaged).hexdigest() in wrong.found


def test_empty_file_is_wrong_even_where_nothing_is_published(tmp_path: Path) -> None:
    (lay_out(tmp_path) / "b.txt").write_text("")
    assert states(tmp_path) == {"a.bin": "ok", "b.txt": "wrong"}


def test_folder_in_the_place_of_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "binary" / "a.bin").mkdir(parents=True)
    assert verify(SET, root=tmp_path)[0].found == "a folder"


def test_layout_that_is_there_is_the_one_checked(tmp_path: Path) -> None:
    assert present_layout(SET, root=tmp_path) is BINARY
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "a").write_bytes(BODY)
    assert states(tmp_path) == {"a": "ok"}
    lay_out(tmp_path)
    assert states(tmp_path) == {"a.bin": "ok", "b.txt": "ok"}


def test_images_are_counted_through_sub_folders_and_nothing_else_is(tmp_path: Path) -> None:
    published = replace(SET, layouts=(Layout("set", images=(Images("train", 3),)),))
    assert states(tmp_path, published) == {"train": "missing"}
    for name in ("train/x/1.png", "train/x/2.JPEG", "train/notes.txt", "train/._1.png", "train/.DS_Store"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"?")
    wrong = verify(published, root=tmp_path)[0]
    assert (wrong.state, wrong.expected, wrong.found) == ("wrong", "3 images", "2 images")
    (tmp_path / "set" / "train" / "y.jpg").write_bytes(b"?")
    assert states(tmp_path, published) == {"train": "ok"}


def test_digest_of_many_chunks_matches_hashlib(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_001
    (tmp_path / "a").write_bytes(content)
    assert digest(tmp_path / "a", "sha256") == hashlib.sha256(content).hexdigest()


def test_unknown_name_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean 'mnist'"):
        verify("mnst", root=tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "pacs"])
def test_real_files_are_as_published(name: str, published: Callable[[str], Path]) -> None:
    root = published(SOURCES[name].folder)
    checks = verify(name, root=root)
    assert [str(check) for check in checks if check.state != "ok"] == []
    assert len(checks) >= 4


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_unzipped_real_files_are_known_too(name: str, published: Callable[[str], Path], tmp_path: Path) -> None:
    from evenly.data.fetch.unpack import unpack

    folder = SOURCES[name].folder
    for archive in (published(folder) / folder).glob("t10k-*.gz"):
        unpack(archive, tmp_path / folder)
    found = {check.path.name: check.state for check in verify(name, root=tmp_path)}
    assert found["t10k-images-idx3-ubyte"] == found["t10k-labels-idx1-ubyte"] == "ok"
    assert found["train-images-idx3-ubyte"] == "missing"
