"""Inputs that broke something once: kept as small files, and tried again by the tests for ever after."""

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path

from soak.fuzz import Fault, Input

FOLDER = Path(__file__).with_name("cases")
_MOST = 64 * 1024  # bytes, packed


def keep(fault: Fault, template: Path, folder: Path = FOLDER) -> Path | None:
    """Write the input of `fault` to a file; one for each reader, damaged file and place, and none that is large."""
    given = fault.input
    packed = base64.b85encode(zlib.compress(given.content, 9)).decode()
    if len(packed) > _MOST:
        return None
    content = {
        "reader": given.reader,
        "file": _by_role(given.file, template),
        "found": f"{fault.kind}: {fault.where}",
        **({"special": given.special} if given.special else {}),
        **({"text": given.text} if given.text else {}),
        **({"content": packed} if given.content else {}),
    }
    key = hashlib.sha256(f"{given.reader}/{content['file']}/{fault.kind}/{fault.where}".encode()).hexdigest()[:10]
    path = folder / f"{re.sub('[^a-z0-9]+', '-', given.reader.lower()).strip('-')}-{key}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")
    return path


def load(path: Path, template: Path) -> Input:
    """The input that was kept, at its place in `template`, where runs may have other names by now."""
    kept = json.loads(path.read_text())
    content = zlib.decompress(base64.b85decode(kept["content"])) if "content" in kept else b""
    file = kept["file"]
    for role, place in roles(template).items():
        file = file.replace(role, place)
    return Input(kept["reader"], file, content, kept.get("special", ""), kept.get("text", ""))


def roles(template: Path) -> dict[str, str]:
    """The folders whose names are digests, by what they are for."""
    found: dict[str, str] = {}
    for path in sorted((template / "runs").iterdir()):
        if path.is_dir():
            found.setdefault("{done}" if (path / "done").exists() else "{stopped}", f"runs/{path.name}")
    for path in sorted((template / "useful").iterdir()):
        if path.is_dir():
            found.setdefault(_role_in_useful(path), f"useful/{path.name}")
    for path in sorted((template / "pictures").iterdir()):
        if (path / "done").exists():
            found.setdefault("{network}", f"pictures/{path.name}")
    for path in sorted((template / "work" / "parts").iterdir()):
        if path.is_dir():
            found.setdefault("{part}", f"work/parts/{path.name}")
    return found


def _role_in_useful(path: Path) -> str:
    if (path / "outputs.safetensors").exists():
        return "{early}"
    if (path / "separation.json").exists():
        return "{" + json.loads((path / "separation.json").read_text())["method"] + "}"
    return "{original}"


def _by_role(file: str, template: Path) -> str:
    for role, place in roles(template).items():
        if file.startswith(f"{place}/"):
            return role + file.removeprefix(place)
    return file
