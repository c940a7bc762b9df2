"""Unpack untrusted archives: nothing is written outside the folder, and nothing half-written remains."""

import contextlib
import gzip
import io
import os
import re
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from evenly.data.fetch.disk import write_whole, writing
from evenly.errors import DataError, EvenlyError, SetupError
from evenly.files.regular import open_regular
from evenly.progress import Bar

# Published image archives grow by less than tenfold; an archive that grows more than this is no data set.
LARGEST_GROWTH = 100
_SLACK = 1 << 20  # small archives may grow by more
_PER_MEMBER = 512  # a name counts too, or empty files could make a bomb
_CHUNK = 1 << 20
_DRIVE = re.compile("[A-Za-z]:")
_LONGEST_READ = 1 << 24  # names and comments in a tar are read at once, and should be short


@dataclass(frozen=True)
class _Member:
    """A file or folder in an archive; `reached` says how far into the archive reading has come."""

    name: str
    refused: str
    is_folder: bool
    reached: Callable[[], int]
    open: Callable[[], IO[bytes] | gzip.GzipFile]


def unpack(
    archive: str | os.PathLike[str], folder: str | os.PathLike[str], *, top: str = "", growth: int = LARGEST_GROWTH
) -> Path:
    """Unpack a `.tar`, `.tar.gz`, `.tgz`, `.zip` or `.gz` so that its inner folder `top` becomes `folder`.

    Unpacking happens in a hidden folder beside it, which is renamed to `folder` at the end; if `folder` exists, each
    unpacked file replaces its namesake and all others stay. Absolute names, `..`, links, devices, duplicate names and
    archives that grow more than `growth`-fold are refused, with the name of the member.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(Path(place, "a.zip"), "w") as file:
    ...         file.writestr("inner/b.txt", "c")
    ...     Path(unpack(Path(place, "a.zip"), Path(place, "out"), top="inner"), "b.txt").read_text()
    'c'
    """
    archive, folder = Path(archive), Path(folder)
    members = _opener(archive)
    work = working_folder(folder)
    with writing(folder):
        shutil.rmtree(work, ignore_errors=True)  # what a killed run has left
        work.mkdir(parents=True)
    try:
        size = archive.stat().st_size
        with (
            _damage(archive),
            members(archive) as each,
            Bar(f"unpacking {archive.name}", total=size, unit="bytes") as bar,
        ):
            _write_all(each, work, archive, size * growth + _SLACK, bar)
        unpacked = work / top
        if not unpacked.is_dir():
            inside = ", ".join(sorted(path.name for path in work.iterdir())) or "nothing"
            raise DataError(f"{archive} holds no folder {top!r}, only {inside}. Is it the right archive?")
        with writing(folder):
            _settle(unpacked, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def working_folder(folder: Path) -> Path:
    """The hidden folder beside `folder` in which archives are unpacked; a killed command leaves it behind."""
    return folder.with_name(f".{folder.name}.unpacking")


def _write_all(members: Iterator[_Member], work: Path, archive: Path, limit: int, bar: Bar) -> None:
    written = shown = 0

    def count(more: int) -> None:
        nonlocal written
        written += more
        if written > limit:
            raise DataError(
                f"{archive}: at {member.name!r} it has grown beyond {limit} bytes, more than a data set does. "
                "Nothing was unpacked. Delete it and fetch it from its publisher."
            )

    for member in members:
        path = work / _safe_name(member, archive)
        count(_PER_MEMBER)
        if member.is_folder:
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)
            continue
        with member.open() as source, _exclusive(path, member, archive) as target:
            while chunk := source.read(_CHUNK):
                count(len(chunk))
                with writing(path):
                    write_whole(target, chunk)
                bar.advance(member.reached() - shown)
                shown = member.reached()


def _safe_name(member: _Member, archive: Path) -> PurePosixPath:
    """The member's name, where it stays inside the folder it is unpacked to."""
    name = PurePosixPath(member.name)
    if member.refused:
        why = member.refused
    elif name.is_absolute() or "\\" in member.name or _DRIVE.match(member.name):
        why = "has a name that is absolute or of another system"
    elif ".." in name.parts:
        why = "would be written outside of the folder"
    elif "\0" in member.name or (not name.parts and not member.is_folder):
        why = "has no proper name"
    else:
        return name
    raise DataError(
        f"{archive}: member {member.name!r} {why}. Nothing was unpacked. Delete it and fetch it from its publisher."
    )


@contextlib.contextmanager
def _exclusive(path: Path, member: _Member, archive: Path) -> Iterator[io.FileIO]:
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            target = open(path, "xb", buffering=0)  # noqa: SIM115 (closed below, in the with)
        except (FileExistsError, NotADirectoryError) as error:
            raise DataError(f"{archive}: member {member.name!r} occurs twice. Nothing was unpacked.") from error
    with target:
        yield target


def _opener(archive: Path) -> Callable[[Path], contextlib.AbstractContextManager[Iterator[_Member]]]:
    if not archive.exists():
        raise DataError(f"there is no archive {archive}. Fetch it first.")
    for endings, members in (((".tar", ".tar.gz", ".tgz"), _tar), ((".zip",), _zip), ((".gz",), _gzip)):
        if archive.name.lower().endswith(endings):
            return members
    raise DataError(f"cannot unpack {archive}: known are .tar, .tar.gz, .tgz, .zip and .gz.")


class _Remembering(io.BufferedIOBase):
    """A file that remembers the last bytes read, since `tarfile` takes a broken header for the end of the archive."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self.file, self.last = file, b""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"a header in it promises {size} bytes")
        self.last = self.file.read(size)
        return self.last

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


@contextlib.contextmanager
def _tar(archive: Path) -> Iterator[Iterator[_Member]]:
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(open_regular(archive))
        plain = raw if archive.name.lower().endswith(".tar") else stack.enter_context(gzip.open(raw))
        file = _Remembering(plain)
        tar = stack.enter_context(tarfile.open(fileobj=file, mode="r:"))

        def members() -> Iterator[_Member]:
            for member in tar:
                refused = ""
                if member.issym() or member.islnk():
                    refused = f"is a link to {member.linkname!r}, which a data set does not need"
                elif not (member.isfile() or member.isdir()):
                    refused = "is neither a file nor a folder"

                def content(member: tarfile.TarInfo = member) -> IO[bytes]:
                    opened = tar.extractfile(member)
                    assert opened is not None, "only files are opened"
                    return opened

                yield _Member(member.name, refused, member.isdir(), raw.tell, content)
            if file.last != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("it breaks off, or a header in it is wrong")
            file.read(_CHUNK)  # the padding, after which gzip compares its checksum

        yield members()


@contextlib.contextmanager
def _zip(archive: Path) -> Iterator[Iterator[_Member]]:
    with open_regular(archive) as raw, zipfile.ZipFile(raw) as file:

        def members() -> Iterator[_Member]:
            for info in file.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the archive was not made on Unix
                refused = ""
                if kind == stat.S_IFLNK:
                    refused = "is a link, which a data set does not need"
                elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    refused = "is neither a file nor a folder"
                elif info.flag_bits & 1:
                    refused = "is encrypted"
                elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    refused = "is compressed in a way that data sets are not"  # some need gigabytes to unpack a byte

                def content(info: zipfile.ZipInfo = info) -> IO[bytes]:
                    return file.open(info)

                def reached(info: zipfile.ZipInfo = info) -> int:
                    return info.header_offset + info.compress_size

                # orig_filename: ZipFile sanitises odd names, which must be refused instead.
                yield _Member(info.orig_filename, refused, info.is_dir(), reached, content)

        yield members()


@contextlib.contextmanager
def _gzip(archive: Path) -> Iterator[Iterator[_Member]]:
    with open_regular(archive) as raw:

        def content() -> gzip.GzipFile:
            return gzip.GzipFile(fileobj=raw)

        yield iter([_Member(archive.name[: -len(".gz")], "", False, raw.tell, content)])


def _settle(unpacked: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(unpacked, folder)
        return
    for parent, _, files in os.walk(unpacked):
        place = folder / Path(parent).relative_to(unpacked)
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            os.replace(Path(parent, file), place / file)


@contextlib.contextmanager
def _damage(archive: Path) -> Iterator[None]:
    try:
        yield
    except (EvenlyError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno is not None:  # the disk's fault, not the archive's
            raise SetupError(f"cannot unpack {archive}: {error.strerror}. Check the disk and repeat.") from error
        raise DataError(f"{archive} is damaged ({error}). Delete it and fetch it again.") from error
    except Exception as error:  # damaged bytes can raise anything: zlib.error, struct.error, UnicodeDecodeError, …
        what = str(error) or type(error).__name__
        raise DataError(f"{archive} is damaged ({what}). Delete it and fetch it again.") from error
