"""From a name to data on disk: fetch, check, unpack, check again."""

import contextlib
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from evenly.data.fetch.disk import writing
from evenly.data.fetch.download import fetch
from evenly.data.fetch.publication import Archive, Source
from evenly.data.fetch.sources import source
from evenly.data.fetch.unpack import unpack, working_folder
from evenly.data.fetch.verify import FileCheck, digest, present_layout, verify
from evenly.errors import DataError


@dataclass(frozen=True)
class FetchResult:
    """The result of `get`: where the data are, how they were checked, and whether they were there before."""

    name: str
    folder: Path
    already: bool
    checks: tuple[FileCheck, ...]

    def __str__(self) -> str:
        if self.already:
            return f"{self.name} is already in {self.folder}, and right."
        return f"{self.name} is in {self.folder}, and right."


def get(
    name: str | Source,
    *,
    root: str | os.PathLike[str],
    mirror: str | None = None,
    keep_archives: bool = False,
    attempts: int = 5,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> FetchResult:
    """Fetch the published data set `name` into the data root and check it; correct files are left alone.

    `mirror` is an address with files of the same names, tried before the publisher's. For data sets that must be
    downloaded by hand, this prints instructions until their archives are in the data root, and then unpacks them. After
    an interruption, the same call resumes.

    >>> import tempfile
    >>> get("vlcs", root=tempfile.mkdtemp())
    Traceback (most recent call last):
    evenly.errors.DataError: VLCS is fetched by hand from its publisher: ...
    """
    published = name if isinstance(name, Source) else source(name)
    root = Path(root)
    checks = verify(published, root=root)
    if all(check.state == "ok" for check in checks):
        _sweep(published, root)
        return FetchResult(published.name, root / present_layout(published, root=root).folder, True, tuple(checks))
    # From here on the preferred layout is filled and checked, whatever part of another one exists.
    if present_layout(published, root=root) is not published.layouts[0]:
        checks = verify(replace(published, layouts=published.layouts[:1]), root=root)
    published = replace(published, layouts=published.layouts[:1])
    needed = {_brings(published.archives, check.path, root) for check in checks if check.state != "ok"}
    for archive in published.archives:
        if archive not in needed:
            continue
        place = (root if archive.packed else root / archive.into) / archive.name
        if archive.urls:
            mirrored = (f"{mirror.rstrip('/')}/{archive.name}",) if mirror else ()
            fetch(
                mirrored + archive.urls,
                place,
                md5=archive.md5,
                sha256=archive.sha256,
                size=archive.size,
                attempts=attempts,
                timeout=timeout,
                pause=pause,
            )
        else:
            _check_by_hand(published, archive, place, root)
        if archive.packed and archive.urls and not keep_archives:
            with writing(place):
                _mark(place).touch()
            try:
                unpack(place, root / archive.into, top=archive.top)
                place.unlink()
            finally:
                _mark(place).unlink(missing_ok=True)
        elif archive.packed:
            unpack(place, root / archive.into, top=archive.top)
    checks = verify(published, root=root)
    if faults := [str(check) for check in checks if check.state != "ok"]:
        raise DataError(
            f"{published.title} was unpacked but is not as published:\n  "
            + "\n  ".join(faults)
            + f"\nRemove {root / published.folder} and repeat the command."
        )
    return FetchResult(published.name, root / published.folder, False, tuple(checks))


def _mark(place: Path) -> Path:
    """The marker file of an archive at `place` that was fetched here, to be deleted once it is unpacked."""
    return place.with_name(f".{place.name}.passing")


def _sweep(published: Source, root: Path) -> None:
    """Remove leftovers of a command that was killed after the data were in place."""
    with contextlib.suppress(OSError):  # read-only data are fine
        for archive in published.archives:
            if archive.packed:
                shutil.rmtree(working_folder(root / archive.into), ignore_errors=True)
            if (mark := _mark(root / archive.name)).exists():
                (root / archive.name).unlink(missing_ok=True)
                mark.unlink()


def _brings(archives: tuple[Archive, ...], path: Path, root: Path) -> Archive | None:
    """The archive that provides `path`: the file itself in preference to an archive that fills its folder."""
    itself = [a for a in archives if not a.packed and path == root / a.into / a.name]
    holders = [a for a in archives if a.packed and path.is_relative_to(root / a.into)]
    return next(iter(itself + holders), None)


def _check_by_hand(published: Source, archive: Archive, place: Path, root: Path) -> None:
    if not place.is_file():
        raise DataError(published.instructions(root))
    for algorithm, expected in (("md5", archive.md5), ("sha256", archive.sha256)):
        if expected and (found := digest(place, algorithm)) != expected:
            raise DataError(
                f"{place} has {algorithm} {found}, expected {expected}. Delete it.\n{published.instructions(root)}"
            )
