"""`unpack` on honest, damaged and hostile archives: what is refused leaves nothing behind."""

import gzip
import io
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from evenly.data.fetch.unpack import unpack
from evenly.errors import DataError, SetupError

FILES = {"top/a.txt": b"alpha", "top/deep/b.bin": bytes(range(256)) * 40, "README": b"beside"}


def tar_of(path: Path, files: dict[str, bytes], *more: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in more:
            tar.addfile(info)
    return path


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("name", "make"), [("x.tar", tar_of), ("x.tar.gz", tar_of), ("x.tgz", tar_of), ("x.zip", zip_of)]
)
def test_inner_folder_becomes_the_folder(tmp_path: Path, name: str, make: Callable[..., Path]) -> None:
    archive = make(tmp_path / name, FILES)
    unpack(archive, tmp_path / "deep" / "out", top="top")
    assert tree(tmp_path / "deep") == {"out/a.txt": FILES["top/a.txt"], "out/deep/b.bin": FILES["top/deep/b.bin"]}


def test_archive_without_inner_folder_fills_the_folder(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "x.tar.gz", {"./train/a": b"1"}, special("./", tarfile.DIRTYPE))
    unpack(archive, tmp_path / "out")
    assert tree(tmp_path / "out") == {"train/a": b"1"}


def test_gz_becomes_one_file_without_the_ending(tmp_path: Path) -> None:
    (tmp_path / "labels.gz").write_bytes(gzip.compress(b"12345"))
    unpack(tmp_path / "labels.gz", tmp_path / "out")
    assert tree(tmp_path / "out") == {"labels": b"12345"}


def test_folders_get_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    unpack(tar_of(tmp_path / "x.tar", FILES), tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_existing_folder_keeps_its_other_files_and_gets_the_new_ones(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_bytes(b"damaged")
    (out / "mine.txt").write_bytes(b"kept")
    unpack(tar_of(tmp_path / "x.tar", FILES), out, top="top")
    assert tree(out) == {"a.txt": b"alpha", "deep/b.bin": FILES["top/deep/b.bin"], "mine.txt": b"kept"}


def test_what_a_killed_run_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".out.unpacking").mkdir()
    (tmp_path / ".out.unpacking" / "half").write_bytes(b"h")
    unpack(tar_of(tmp_path / "x.tar", FILES), tmp_path / "out", top="top")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "x.tar"]
    assert "half" not in tree(tmp_path / "out")


HOSTILE = {
    "climbs": lambda p: tar_of(p / "x.tar", {"good": b"1", "../evil": b"2"}),
    "climbs from within": lambda p: tar_of(p / "x.tar.gz", {"good/../../evil": b"2"}),
    "absolute": lambda p: tar_of(p / "x.tar", {str(p / "evil"): b"2"}),
    "link out": lambda p: tar_of(p / "x.tar", {}, special("evil", tarfile.SYMTYPE, "/etc/passwd")),
    "link to a folder out": lambda p: tar_of(p / "x.tar", {"good": b"1"}, special("evil", tarfile.SYMTYPE, "..")),
    "hard link out": lambda p: tar_of(p / "x.tar", {}, special("evil", tarfile.LNKTYPE, "../x.tar")),
    "device": lambda p: tar_of(p / "x.tar", {}, special("evil", tarfile.CHRTYPE)),
    "pipe": lambda p: tar_of(p / "x.tar", {}, special("evil", tarfile.FIFOTYPE)),
    "zip climbs": lambda p: zip_of(p / "x.zip", {"good": b"1", "../evil": b"2"}),
    "zip absolute": lambda p: zip_of(p / "x.zip", {str(p / "evil"): b"2"}),
    "zip drive": lambda p: zip_of(p / "x.zip", {"C:/evil": b"2"}),
    "zip backslashes": lambda p: zip_of(p / "x.zip", {"..\\evil": b"2"}),
    "twice": lambda p: tar_of(p / "x.tar", {"evil": b"1"}, special("evil", tarfile.REGTYPE)),
    "file under a file": lambda p: tar_of(p / "x.tar", {"a": b"1", "a/evil": b"2"}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_member_is_named_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    archive = HOSTILE[case](inner)
    with pytest.raises(DataError, match="evil") as caught:
        unpack(archive, inner / "out")
    assert caught.value.exit_code == 3
    assert str(archive) in str(caught.value)
    assert [p.name for p in inner.iterdir()] == [archive.name]
    assert [p.name for p in tmp_path.iterdir()] == ["inner"]


def test_file_written_through_a_link_member_goes_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = tmp_path / "x.tar"
    with tarfile.open(archive, "w") as tar:
        tar.addfile(special("door", tarfile.SYMTYPE, str(outside)))
        info = tarfile.TarInfo("door/evil")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"!"))
    with pytest.raises(DataError, match="'door' is a link"):
        unpack(archive, tmp_path / "out")
    assert tree(outside) == {}
    assert not (tmp_path / "out").exists()


def test_zip_link_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("evil")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="'evil' is a link"):
        unpack(tmp_path / "x.zip", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz", "bomb.gz"])
def test_archive_that_grows_without_measure_is_stopped(tmp_path: Path, name: str) -> None:
    zeros = bytes(4 << 20)
    archive = tmp_path / name
    if name == "bomb.gz":
        archive.write_bytes(gzip.compress(zeros))
    else:
        (zip_of if name.endswith("zip") else tar_of)(archive, {"zeros": zeros})
    with pytest.raises(DataError, match="has grown beyond"):
        unpack(archive, tmp_path / "out", growth=10)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_bomb_of_empty_files_is_stopped(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "x.tar.gz", dict.fromkeys(map(str, range(3000)), b""))
    with pytest.raises(DataError, match="has grown beyond"):
        unpack(archive, tmp_path / "out", growth=1)
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar.gz"]


@pytest.mark.parametrize(("name", "make"), [("x.tar.gz", tar_of), ("x.zip", zip_of), ("x.tar", tar_of)])
def test_truncated_archive_is_called_damaged_and_leaves_nothing(
    tmp_path: Path, name: str, make: Callable[..., Path]
) -> None:
    archive = make(tmp_path / name, FILES)
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 3] if name != "x.tar" else whole[:1500])
    with pytest.raises(DataError, match="is damaged"):
        unpack(archive, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("at", [1024 + 8, 1024 + 150])
def test_tar_with_a_flipped_bit_is_not_cut_short_in_silence(tmp_path: Path, at: int) -> None:
    archive = tar_of(tmp_path / "x.tar", FILES)
    content = bytearray(archive.read_bytes())
    content[at] ^= 1  # in the header of the second member
    archive.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_flipped_bit_in_a_tar_gz_is_found_by_its_checksum(tmp_path: Path) -> None:
    tar_of(tmp_path / "x.tar", FILES)
    packed = bytearray(gzip.compress((tmp_path / "x.tar").read_bytes(), compresslevel=0))
    packed[packed.index(b"alpha")] ^= 1
    (tmp_path / "x.tar.gz").write_bytes(packed)
    with pytest.raises(DataError, match="is damaged"):
        unpack(tmp_path / "x.tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_flipped_bit_in_a_zip_is_found(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "x.zip", {"a": b"x" * 1000})
    content = bytearray(archive.read_bytes())
    content[36] ^= 1  # inside the compressed bytes
    archive.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_wrong_archive_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder 'kfold', only README, top"):
        unpack(tar_of(tmp_path / "x.tar", FILES), tmp_path / "out", top="kfold")
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar"]


@pytest.mark.parametrize(("name", "message"), [("x.rar", "known are"), ("none.zip", "there is no archive")])
def test_unknown_kinds_and_missing_archives_are_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "x.rar").write_bytes(b"Rar!")
    with pytest.raises(DataError, match=message):
        unpack(tmp_path / name, tmp_path / "out")


def test_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SetupError, match="cannot write"):
        unpack(tar_of(tmp_path / "x.tar", FILES), tmp_path / "taken" / "out")


def test_disk_that_takes_no_more_is_said_so_and_nothing_stays(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "x.tar", FILES)
    code = (
        "import resource, sys\nfrom evenly.data.fetch.unpack import unpack\nfrom evenly.errors import SetupError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"try: unpack({str(archive)!r}, {str(tmp_path / 'out')!r})\n"
        "except SetupError as error: print(error); sys.exit(error.exit_code)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 4, ended.stderr
    assert "b.bin: File too large" in ended.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar"]
