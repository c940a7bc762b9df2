"""Damage to bytes, whatever they mean: what disks, transfers, editors and malice do to files."""

import random
import re
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]
NUMBERS = (
    "0", "-1", "-0", "1", "2", "255", "256", "65536", "2147483648", "9223372036854775807", "18446744073709551615",
    "1000000000000", "1e30", "1e400", "-1e400", "1e-400", "0.5", "nan", "NaN", "inf", "-Infinity", "0x10", "1_0",
    "007", "١٢", "½",
)  # fmt: skip
WORDS = (
    "", " ", "null", "true", "None", "../../precious", "/etc/passwd", "\x00", "\ufeff", "éé", "\U0001f600", "x" * 5000,
    "-", "{}", "[]", "%s%n", "os:system", "~", ".", "a/b", "C:\\x", "<script>", "=1+1",
)  # fmt: skip
DEEP = 100_000


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    """One to eight bits."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    """The beginning alone; now and then nothing at all."""
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.9 else b""


def cut_out(data: bytes, rng: random.Random) -> bytes:
    """A piece is missing."""
    start, size = _piece(data, rng)
    return data[:start] + data[start + size :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    """A piece is there two or a hundred times."""
    start, size = _piece(data, rng)
    return data[: start + size] + data[start : start + size] * rng.choice((1, 1, 100)) + data[start + size :]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    """A piece is zeros, ones or noise."""
    start, size = _piece(data, rng)
    filling = rng.choice((b"\x00" * size, b"\xff" * size, rng.randbytes(size)))
    return data[:start] + filling + data[start + size :]


def insert(data: bytes, rng: random.Random) -> bytes:
    """Something was put in."""
    at = rng.randrange(len(data) + 1)
    strange = (
        b"\x00",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\xff\xfe",
        b'"',
        b"'",
        b",",
        b"[" * DEEP,
        b"{" * 100,
        b"\xed\xa0\x80",
    )
    what = rng.choice((*strange, rng.randbytes(rng.choice((1, 7, 300))), rng.choice(WORDS).encode()))
    return data[:at] + what + data[at:]


def change_number(data: bytes, rng: random.Random) -> bytes:
    """A number as text is another number."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][+-]?\d+)?", data))
    if not found:
        return flip_bits(data, rng)
    hit = rng.choice(found)
    return data[: hit.start()] + rng.choice(NUMBERS).encode() + data[hit.end() :]


def change_lines(data: bytes, rng: random.Random) -> bytes:
    """As another editor saves it: a byte-order mark, other ends of lines, lines lost, doubled, swapped."""
    lines = data.split(b"\n")
    kind = rng.randrange(6)
    if kind == 0:
        return b"\xef\xbb\xbf" + data
    if kind == 1:
        return b"\r\n".join(lines)
    if kind == 2:
        return b"\r".join(lines)
    if kind == 3:
        return data.decode("utf-8", "replace").encode("utf-16")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], (lines[other] if kind == 4 else lines[one])
    return b"\n".join(lines)


def replace_all(data: bytes, rng: random.Random) -> bytes:
    """Something else entirely."""
    return rng.choice(
        (
            b"[" * DEEP,
            b'{"a":' * DEEP,
            b"[]",
            b"{}",
            b"[1]",
            b"null",
            b"5",
            b'""',
            b"\x00" * 1000,
            b"<!DOCTYPE html><html></html>",
            b"PK\x03\x04" + data[:50],
            b"\x93NUMPY" + data[:50],
            rng.randbytes(200),
            b"\n" * 1000,
            b"a: &a [*a, *a]\n",
        )
    )


BYTES: tuple[Mutation, ...] = (flip_bits, flip_bits, truncate, cut_out, repeat, overwrite, insert, replace_all)
TEXT: tuple[Mutation, ...] = (*BYTES, change_number, change_number, change_number, change_lines, change_lines)


def _piece(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, rng.randrange(min(len(data) - start, rng.choice((4, 64, 4096))) + 1)
