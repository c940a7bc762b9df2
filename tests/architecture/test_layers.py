"""The house stands: imports point downward, siblings are strangers, files hold one idea."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evenly

SOURCE = Path(evenly.__file__).parent
LAYERS = [
    ["cli"],
    ["papers", "integrations", "demo"],
    ["training", "report"],
    ["diagnostics", "stability", "resampling"],
    ["curvature"],
    ["data", "models", "optim", "sweep"],
    ["tree", "rng", "recipe", "records", "environment", "intervals", "measurements"],
    ["typed", "consent", "rules"],
    ["files"],
    ["atomic", "cache", "progress", "lazy", "device", "memory"],
    ["errors"],
]
HEIGHT = {room: len(LAYERS) - level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(SOURCE.rglob("*.py"))


def module(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every evenly module a file imports, also inside functions and for type checking."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "evenly"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module and node.module.split(".")[0] == "evenly":
                known = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
                found |= known or {node.module}
    return found


MODULES = {module(path) for path in FILES}


def room(name: str) -> str | None:
    """The room (top-level module or package) a dotted name lies in; None for the package itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward_and_siblings_are_strangers(path: Path) -> None:
    here = room(module(path))
    if here in (None, "__main__"):
        return  # the package's own face and `python -m evenly` may name any room
    assert here in HEIGHT, f"{here} is in no layer: add it to LAYERS"
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
