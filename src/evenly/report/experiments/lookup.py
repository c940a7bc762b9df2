"""Find the experiments that the user names by IDs, run folders or folders of runs."""

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly import progress
from evenly.errors import DataError, SetupError, UsageError
from evenly.records import Run, comparison
from evenly.records.run import RECIPE, RESERVED
from evenly.report.experiments.experiment import Experiment, of_comparison, of_run
from evenly.report.experiments.run_records import DAMAGE

MOST = 12  # experiments with their own sections; the index lists all
Stored = Mapping[str, Any] | str  # a comparison, or why it cannot be read


class Folder:
    """A folder of runs: its comparisons, and the runs that belong to none of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.comparisons: dict[str, Stored] = {}
        for file in comparison_files(path):
            try:
                self.comparisons[file.stem] = comparison.read(path, file.stem)
            except (DataError, SetupError, OSError) as error:
                self.comparisons[file.stem] = str(error)

    def comparisons_of(self, run: str) -> list[str]:
        """The comparisons that a run belongs to, as a member or as an early run."""
        return [name for name, record in self.comparisons.items() if run in members(record)]

    def loose(self) -> list[str]:
        """The names of the runs that belong to no comparison, the latest change first.

        While a comparison runs, a run in training counts as part of it: its ID is stored only when it is done.
        """
        busy = any(
            not isinstance(record, str) and record.get("state") == "running" for record in self.comparisons.values()
        )
        known = {run for record in self.comparisons.values() for run in members(record)}
        with os.scandir(self.path) as entries:
            stamped = [
                (entry.stat().st_mtime, entry.name)
                for entry in entries
                if entry.name not in known
                and not entry.name.startswith(".")
                and entry.name != comparison.FOLDER
                and entry.is_dir()
                and _is_run(entry.path)
            ]
        names = [name for _, name in sorted(stamped, reverse=True)]
        return [name for name in names if not busy or Run(self.path / name).state != "running"]

    def experiment(self, name: str, *, named_runs: frozenset[str] = frozenset()) -> Experiment:
        """The experiment of a comparison; an unreadable one consists of a remark."""
        record = self.comparisons[name]
        if isinstance(record, str):
            return Experiment(name, f"Comparison {name}", [], None, remarks=[record])
        try:
            return of_comparison(record, self.path, name=name, named_runs=named_runs)
        except DAMAGE as error:
            return Experiment(name, f"Comparison {name}", [], None, remarks=[f"It cannot be read: {error}."])


def _is_run(folder: str) -> bool:
    """Whether a folder has anything that a run has, even half-written; nearly all have a recipe."""
    return any(os.path.exists(f"{folder}/{name}") for name in (RECIPE, *RESERVED))


def members(record: Stored) -> set[str]:
    """The IDs of all runs of a comparison, early runs included; none where it cannot be read."""
    return set() if isinstance(record, str) else comparison.run_ids(record)


def comparison_files(runs: Path) -> list[Path]:
    """The files of the comparisons in a folder of runs, the newest first."""
    files = [path for path in (runs / comparison.FOLDER).glob("*.json") if not path.name.startswith(".")]
    return sorted(files, key=lambda path: (_changed(path), path.name), reverse=True)


def _changed(path: Path) -> int:
    """When a file was changed last, in nanoseconds; 0 for a link to nowhere, which is reported when it is read."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def find(
    which: Sequence[str | os.PathLike[str]], root: str | os.PathLike[str] = "runs"
) -> tuple[list[Experiment], int]:
    """The experiments, the newest first, and the number of further ones.

    Each of `which` is a run's ID, its beginning, its folder, a comparison's ID or file, or a folder of runs.
    """
    if not which:
        raise UsageError(
            "which run? Give its ID, or the folder of all runs: evenly report runs --out page.html. `evenly runs` "
            "lists them."
        )
    folders: dict[Path, Folder] = {}
    wanted: dict[tuple[Path, str], set[str]] = {}  # comparisons by folder and name, and the runs that were named
    alone: dict[Path, bool] = {}  # runs without a comparison, and whether they were named
    for word in which:
        path = Path(word)
        stored = _comparison(path, Path(root))
        if stored is not None:
            wanted.setdefault((stored.parent.parent, stored.stem), set())
            folders.setdefault(stored.parent.parent, Folder(stored.parent.parent))
            continue
        if holds_runs(path):
            folder = folders.setdefault(path, Folder(path))
            wanted |= {(path, name): wanted.get((path, name), set()) for name in folder.comparisons}
            alone |= {path / name: alone.get(path / name, False) for name in folder.loose()}
            continue
        _refuse_empty(path, root)
        run = Run.open(word, root)
        parent = run.path.parent
        folder = folders.setdefault(parent, Folder(parent))
        for name in folder.comparisons_of(run.path.name):
            wanted.setdefault((parent, name), set()).add(run.id)
        if not folder.comparisons_of(run.path.name):
            alone[run.path] = True
    return _experiments(folders, wanted, alone)


def _experiments(
    folders: Mapping[Path, Folder], wanted: Mapping[tuple[Path, str], set[str]], alone: Mapping[Path, bool]
) -> tuple[list[Experiment], int]:
    experiments: list[Experiment] = []
    left = len(wanted) + len(alone) - MOST
    files = {key: key[0] / comparison.FOLDER / f"{key[1]}.json" for key in wanted}
    latest = set(sorted([*files.values(), *alone], key=lambda path: (alone.get(path, False), _changed(path)))[-MOST:])
    for path, name in progress.track([key for key in wanted if files[key] in latest], "reading comparisons"):
        experiments.append(folders[path].experiment(name, named_runs=frozenset(wanted[path, name])))
    for path in [path for path in alone if path in latest]:
        try:
            experiments.append(of_run(Run(path)))
        except (DataError, SetupError) as error:
            if alone[path]:  # the user named it
                raise
            experiments.append(
                Experiment(path.name, f"Run {path.name}", [], None, remarks=[f"Left out {path.name}: {error}"])
            )
    return experiments, max(left, 0)


def _comparison(path: Path, root: Path) -> Path | None:
    """The file of the comparison that a word names: its path, its ID or the beginning of its ID."""
    if path.suffix == ".json" and path.parent.name == comparison.FOLDER and path.is_file():
        return path
    if os.path.exists(path) or os.sep in os.fspath(path):
        return None
    files = [file for file in comparison_files(root) if file.stem.startswith(path.name)]
    return files[0] if len(files) == 1 else None


def holds_runs(path: Path) -> bool:
    """Whether a path is a folder of runs rather than a run."""
    if not os.path.isdir(path) or os.path.isfile(path / RECIPE):
        return False
    return any(not run.parent.name.startswith(".") for run in path.glob(f"*/{RECIPE}")) or any(
        (path / comparison.FOLDER).glob("*.json")
    )


def _refuse_empty(path: Path, root: str | os.PathLike[str]) -> None:
    """Refuse a folder without any run, unless its name is also the beginning of an ID."""
    ours = any(os.path.exists(path / name) for name in RESERVED)
    if os.path.isdir(path) and not ours and not any(Path(root).glob(f"{glob.escape(path.name)}*/{RECIPE}")):
        raise UsageError(
            f"the folder {path} holds no runs. Give one that does, or make some: evenly train --runs {path}"
        )
