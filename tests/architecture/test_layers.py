"""Imports point downward, rooms of one layer do not import each other, and files stay short.

The layers are those of docs/architecture.md.
"""

import ast
import itertools
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import evenly

SOURCE = Path(evenly.__file__).parent
DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"
LAYERS = [
    line.split(" | ")
    for line in DOCUMENT.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0].splitlines()
]
HEIGHT = {room: len(LAYERS) - level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(SOURCE.rglob("*.py"))


def module(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every evenly module a file imports, also inside functions and for type checking."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "evenly"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module and node.module.split(".")[0] == "evenly":
                known = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
                names |= known or {node.module}
    return names


MODULES = {module(path) for path in FILES}


def room(name: str) -> str | None:
    """The room (top-level module or package) a dotted name lies in; None for the package itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward_and_never_sideways(path: Path) -> None:
    here = room(module(path))
    if here in (None, "__main__"):
        return  # the package itself and `python -m evenly` may import any room
    assert here in HEIGHT, f"{here} is in no layer: add it to docs/architecture.md"
    for name in imported(path):
        there = room(name)
        if there is None or there == here:
            continue
        assert HEIGHT[there] < HEIGHT[here], f"{module(path)} imports {name}, which is not below it"


def test_there_are_no_import_cycles() -> None:
    # A package's `__init__` re-exports lazily, so an edge to the package itself is no edge to its modules.
    edges = {module(path): imported(path) & MODULES for path in FILES if path.name != "__init__.py"}
    state: dict[str, str] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != "open", f"cycle: {' → '.join((*trail, name))}"
        if state.get(name) == "done":
            return
        state[name] = "open"
        for target in edges.get(name, ()):
            visit(target, (*trail, name))
        state[name] = "done"

    for name in edges:
        visit(name, ())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_names_say_what_a_file_is(path: Path) -> None:
    vague = {"utils", "util", "misc", "common", "helpers", "helper", "base", "manager"}
    assert not vague & set(path.relative_to(SOURCE).with_suffix("").parts)


TORCH_FREE = sorted(
    {name for name in MODULES if room(name) in ("records", "recipe", "environment", "report", "errors", "cli", "rules")}
    | {"evenly", "evenly.data", "evenly.data.catalogue", "evenly.data.fetch.sources"}
    | {"evenly.models", "evenly.models.catalogue", "evenly.optim"}
)


def test_records_report_and_the_command_line_never_import_torch() -> None:
    code = f"import sys, importlib\nfor name in {TORCH_FREE!r}: importlib.import_module(name)\n"
    code += "loaded = [m for m in ('torch', 'sklearn', 'matplotlib') if m in sys.modules]\n"
    code += "sys.exit(f'imported: {loaded}' if loaded else 0)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_layers_are_the_rooms_that_exist() -> None:
    rooms = {room(name) for name in MODULES} - {None, "__main__"}
    assert {name for layer in LAYERS for name in layer} == rooms
    assert sum(map(len, LAYERS)) == len(rooms), "a room is in two layers"


def test_every_room_is_as_low_as_its_imports_allow() -> None:
    below: dict[str, set[str]] = {name: set() for name in HEIGHT}
    for path in FILES:
        here = room(module(path))
        if here in below:
            below[here] |= {there for name in imported(path) if (there := room(name)) not in (None, here)}
    for layer, lower in itertools.pairwise(LAYERS):
        assert any(below[name] & set(lower) for name in layer), f"{layer} imports nothing from the layer below it"


MIRRORED = ("optim", "diagnostics", "stability", "models", "typed", "records")


@pytest.mark.parametrize("room", MIRRORED)
def test_unit_tests_are_named_after_the_modules_they_test(room: str) -> None:
    folder = Path(__file__).parents[1] / "unit" / room
    modules = {path.stem for path in (SOURCE / room).rglob("*.py")}
    assert [path.name for path in folder.glob("test_*.py") if path.stem.removeprefix("test_") not in modules] == []


LONG = 300


@pytest.mark.filterwarnings("always")
def test_long_files_are_pointed_out() -> None:
    for path in FILES:
        length = len(path.read_text(encoding="utf-8").splitlines())
        if length > LONG:
            warnings.warn(f"{path.relative_to(SOURCE)} has {length} lines: does it hold one idea?", stacklevel=1)
