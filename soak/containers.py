"""Damage to what a container says of its content: arrays, archives, tensors, pictures."""

import io
import json
import random
import struct
import tarfile
import zipfile
import zlib
from typing import Any

from soak.mutations import BYTES, Mutation
from soak.structures import change_json, change_value

_DESCRIPTIONS = (
    "|O", "<f8", "<f2", "<U3", "<U4294967295", "|S0", "<M8[ns]", "|V8", "<c16", "|b1", ">i2", "<u8", "garbage",
)  # fmt: skip
_SHAPES = (
    "()", "(0,)", "(-1,)", "(10000000000,)", "(1000000, 1000000)", "(0, 99)", "(2, 2)", "(1,)", "(1e3,)", "5",
    "('a',)", "(9223372036854775807, 4)",
)  # fmt: skip
_HEADERS = (
    "{}", "[]", "x", "{'descr': '<f4'}", "(" * 3000,
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
)  # fmt: skip


def change_array(data: bytes, rng: random.Random) -> bytes:
    """An `.npy` with another header: kind, order, shape, or no Python at all."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return rng.choice(BYTES)(data, rng)
    size = struct.unpack("<H", data[8:10])[0]
    header, body = data[10 : 10 + size].decode("latin1"), data[10 + size :]
    kind = rng.randrange(6)
    if kind == 0:
        header = _between(header, "'descr': ", ", 'fort", repr(rng.choice(_DESCRIPTIONS)))
    elif kind == 1:
        header = _between(header, "'shape': ", ", }", rng.choice(_SHAPES))
    elif kind == 2:
        header = _between(header, "'fortran_order': ", ", 'shape", rng.choice(("True", "1", "'no'", "None")))
    elif kind == 3:
        header = rng.choice(_HEADERS)
    elif kind == 4:
        body = body[: rng.randrange(len(body) + 1)]
    else:
        return data[:6] + bytes([rng.randrange(256), rng.randrange(256)]) + data[8:]
    packed = header.rstrip("\n").encode("latin1") + b"\n"
    return data[:8] + struct.pack("<H", len(packed) % 65536) + packed + body


def change_archive(data: bytes, rng: random.Random) -> bytes:
    """A `.zip` (or `.npz`) with one member changed, renamed, doubled or lost, or described wrongly."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(info.filename, file.read(info)) for info in file.infolist()]
    except (zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError, zlib.error, EOFError, OSError):
        return rng.choice(BYTES)(data, rng)
    at = rng.randrange(len(members))
    name, content = members[at]
    kind = rng.randrange(8)
    if kind < 4:
        members[at] = name, rng.choice((change_array, *BYTES))(content, rng)
    elif kind == 4:
        members[at] = rng.choice(("../x", "/x", "x", "inputs", f"{name}.npy", "é.npy", "classes.npy")), content
    elif kind == 5:
        members.append((name, rng.choice((content, b"", content[:10]))))
    elif kind == 6:
        del members[at]
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w", method) as file:
        for each, body in members:
            with _doubled_names_are_meant():
                file.writestr(each, body)
    packed = bytearray(out.getvalue())
    if kind == 7:  # fields of a member's header: version, flags (encrypted), method, checksum, sizes
        where = packed.find(rng.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")))
        packed[min(where + 4 + rng.randrange(24), len(packed) - 1)] ^= 1 << rng.randrange(8)
    return bytes(packed)


def change_tar(data: bytes, rng: random.Random) -> bytes:
    """A tar archive with one member of another name, kind, size or target."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = [(member, getattr(tar.extractfile(member), "read", bytes)()) for member in tar]
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError):
        return rng.choice(BYTES)(data, rng)
    if not members:
        return rng.choice(BYTES)(data, rng)
    member, content = rng.choice(members)
    kind = rng.randrange(6)
    if kind == 0:
        member.name = rng.choice(
            ("../../x", "/tmp/soak-was-here", "inner", "inner/..", "a/" * 2000, ".", "inner/train.bin")
        )
    elif kind == 1:
        member.type = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE))
        member.linkname = rng.choice(("../../..", "/etc/passwd", member.name, "", "nowhere"))
    elif kind == 2:
        members.append((member, content))
    elif kind == 3:
        members.remove((member, content))
    elif kind == 4:
        member.mode = rng.choice((0, 0o7777, 0o4755))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=rng.choice(("w:", "w:gz", "w:xz", "w:bz2"))) as tar:
        for each, body in members:
            each.size = len(body) if each.isreg() else 0
            tar.addfile(each, io.BytesIO(body) if each.isreg() else None)
    return out.getvalue() if kind != 5 else rng.choice(BYTES)(out.getvalue(), rng)


def change_tensors(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file with another header: shapes, kinds, offsets, names, or what is kept as text in it."""
    if len(data) < 8 or (size := struct.unpack("<Q", data[:8])[0]) > len(data) - 8:
        return rng.choice(BYTES)(data, rng)
    if rng.random() < 0.15:
        return struct.pack("<Q", rng.choice((0, 1, size - 1, size + 8, 2**63, 2**64 - 1, len(data)))) + data[8:]
    try:
        header = json.loads(data[8 : 8 + size])
    except ValueError:
        return rng.choice(BYTES)(data, rng)
    notes = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(notes, dict) and notes and rng.random() < 0.6:
        name = rng.choice(list(notes))
        try:
            notes[name] = change_json(notes[name].encode(), rng).decode("utf-8", "replace").strip()
        except AttributeError:
            notes[name] = "x"
    else:
        header = change_value(header, rng)
    body = data[8 + size :]
    if rng.random() < 0.2:
        body = rng.choice(BYTES)(body, rng)
    return _sealed(header, body) if rng.random() < 0.7 else _tensors(header, body)


def _tensors(header: Any, body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def _sealed(header: Any, body: bytes) -> bytes:
    """With the right checksum, as malice would have it: what lies behind the check is read too."""
    try:
        from evenly.records import seal

        header["__metadata__"][seal.CHECKSUM] = "0" * len(header["__metadata__"][seal.CHECKSUM])
        out = io.BytesIO()
        seal.write(out, _tensors(header, body))
        return out.getvalue()
    except (ImportError, LookupError, TypeError, AttributeError, ValueError):  # no seal, or no place left for one
        return _tensors(header, body)


def change_picture(data: bytes, rng: random.Random) -> bytes:
    """A PNG of another size or kind, its checksum right; other pictures by their bytes alone."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 33 or rng.random() < 0.4:
        return rng.choice(BYTES)(data, rng)
    width, _, *rest = struct.unpack(">2I5B", data[16:29])
    sizes = (0, 1, 7, 13_000, 65_535, 2**31 - 1, 2**32 - 1, width)
    rest[rng.randrange(5)] = rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))
    header = b"IHDR" + struct.pack(">2I5B", rng.choice(sizes), rng.choice(sizes), *rest)
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


def change_counts(data: bytes, rng: random.Random) -> bytes:
    """A binary header of big-endian whole numbers, as idx has it, with one of them changed."""
    at = 4 * rng.randrange(4)
    number = rng.choice((0, 1, 41, 255, 60_000, 2**31 - 1, 2**32 - 1, 2049, 2050, 2051, 3000))
    return data[:at] + struct.pack(">I", number) + data[at + 4 :]


ARRAY: tuple[Mutation, ...] = (change_array,) * 8 + BYTES
ARCHIVE: tuple[Mutation, ...] = (change_archive,) * 12 + BYTES
TAR: tuple[Mutation, ...] = (change_tar,) * 10 + BYTES
TENSORS: tuple[Mutation, ...] = (change_tensors,) * 12 + BYTES
PICTURE: tuple[Mutation, ...] = (change_picture,) * 6 + BYTES
COUNTS: tuple[Mutation, ...] = (change_counts,) * 4 + BYTES


def _between(text: str, start: str, end: str, new: str) -> str:
    left, found, rest = text.partition(start)
    _, ended, right = rest.partition(end)
    return f"{left}{start}{new}{end}{right}" if found and ended else text


def _doubled_names_are_meant() -> "object":
    import warnings

    return warnings.catch_warnings(action="ignore")
