"""A JSONL file that grows by whole lines only, even if its writer is killed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenly.atomic import CLOEXEC, NOFOLLOW, replacing, unwritable_error
from evenly.errors import DataError, SetupError
from evenly.files.regular import open_regular
from evenly.records import json_text

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Every complete line; a last line without a newline was cut off by a crash and is left out."""
    return [_row(path, number, text) for number, text in enumerate(_complete_lines(path), 1)]


def append(path: Path, values: Mapping[str, Any]) -> None:
    """Append one line in a single write; a line that does not fit on the disk is removed again. Links are not followed.

    The file is opened for each line: that takes microseconds, leaves nothing open across a fork, and hands the line to
    the operating system, so that a killed process loses none.
    """
    text = json_text.line(values, path=path.stem)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | CLOEXEC | NOFOLLOW, 0o666)
        try:
            size = os.fstat(handle).st_size
            try:
                written = os.write(handle, text)
                while written < len(text):
                    written += os.write(handle, text[written:])
            except OSError:
                os.ftruncate(handle, size)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise unwritable_error(path, error) from error


def drop_torn_line(path: Path) -> None:
    """Remove an incomplete last line, so that the next one starts on a line of its own."""
    if not path.exists():
        return
    try:
        with open(path, "r+b", opener=lambda name, flags: os.open(name, flags | NOFOLLOW)) as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror or error}. Make it writable.") from error


def keep(path: Path, wanted: int | Callable[[Row], bool]) -> None:
    """Keep the first `wanted` lines, or those for which `wanted(row)` holds, byte for byte."""
    lines = _complete_lines(path)
    if callable(wanted):
        kept = [text for number, text in enumerate(lines, 1) if wanted(_row(path, number, text))]
    elif 0 <= wanted <= len(lines):
        kept = lines[:wanted]
    else:
        raise DataError(
            f"{path} has {len(lines)} lines, {wanted} should be kept: some are lost. Remove the folder and begin again."
        )
    with replacing(path, parents=False) as file:
        file.writelines(text + b"\n" for text in kept)


def _complete_lines(path: Path) -> list[bytes]:
    if not os.path.lexists(path):
        return []
    with open_regular(path) as file:  # opening a named pipe would wait for a writer
        return file.read().split(b"\n")[:-1]


def _row(path: Path, number: int, text: bytes) -> Row:
    try:
        row = json_text.parse(text, source=f"{path}, line {number}")
    except DataError:
        row = None
    if not isinstance(row, dict):
        content = repr(text[:60].decode(errors="replace")) if text else "an empty line"
        raise DataError(
            f"{path}, line {number}: expected a JSON object, found {content}. "
            "The file was changed by something else: remove that line, or the run's folder to begin again."
        )
    return row
