"""One run's folder: everything that is known of a run, and the only way to write to it."""

import csv
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from evenly import atomic
from evenly.errors import DataError, SetupError, Stopped, UsageError, did_you_mean
from evenly.records import lines, plain
from evenly.records.lock import Lock, held
from evenly.typed import yaml_text

State = Literal["new", "running", "stopped", "failed", "done"]
RECIPE, ENVIRONMENT, METRICS, CHECKPOINTS = "recipe.yaml", "environment.json", "metrics.jsonl", "checkpoints"
FAILED, DONE, LOCK = "failed", "done", "lock"
RESERVED = {RECIPE, ENVIRONMENT, METRICS, CHECKPOINTS, FAILED, DONE, LOCK}


class Run:
    """A run's folder. Reading needs nothing; the first write takes the lock, which `close` gives back.

    As a context it also says how the run ended: `Stopped` and Ctrl-C leave it to be continued, any other
    error is recorded as its failure.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> with Run.create(root, {"epochs": 1}, "c0ffee") as run:
    ...     run.log(epoch=1, loss=float("nan"))
    ...     run.finish({"test_error": 0.25})
    >>> run = Run.open("c0f", root)
    >>> run.state, run.recipe, run.metrics(), run.summary()
    ('done', {'epochs': 1}, [{'epoch': 1, 'loss': nan}], {'test_error': 0.25})
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: Lock | None = None

    @classmethod
    def create(
        cls,
        root: str | os.PathLike[str],
        recipe: Mapping[str, Any],
        digest: str,
        *,
        environment: Mapping[str, Any] | None = None,
    ) -> "Run":
        """The run of this recipe in `root`: a new folder, or the one that is there, to be continued or found done.

        A run that is not done is locked for this process, and `environment` is added to its stamps.
        """
        if not digest or not digest.isalnum():
            raise UsageError(f"the digest of a recipe is letters and digits, not {digest!r}. Use evenly.recipe.digest.")
        run = cls(Path(root) / digest)
        if run.state == "done":
            run._match(recipe)
            return run
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"cannot make {run.path}: {error.strerror}. Choose a writable folder for runs.") from error
        run._hold()
        if (run.path / RECIPE).exists():
            run._match(recipe)
        elif foreign := sorted(p.name for p in run.path.iterdir() if p.name != LOCK and not p.name.endswith(".part")):
            raise DataError(f"{run.path} holds {foreign[0]} but no {RECIPE}: it is not a run of ours. Move it away.")
        else:
            atomic.write_text(run.path / RECIPE, yaml_text.render(recipe))
        if (run.path / DONE).exists():  # another process ended it while this one waited for the lock
            run.close()
            return run
        (run.path / FAILED).unlink(missing_ok=True)
        if environment is not None:
            run._write(ENVIRONMENT, [*run.stamps(), environment])
        return run

    @classmethod
    def open(cls, which: str | os.PathLike[str], root: str | os.PathLike[str] = "runs") -> "Run":
        """The run in folder `which`, or the one in `root` whose ID begins with `which`."""
        path, root = Path(which), Path(root)
        if (path / RECIPE).is_file():
            return cls(path)
        if path.is_dir() and path.name != os.fspath(which):
            raise UsageError(f"{path} is not a run's folder: it has no {RECIPE}. `evenly runs` lists those that are.")
        known = sorted(p.parent.name for p in root.glob(f"*/{RECIPE}"))
        matches = [name for name in known if name.startswith(os.fspath(which))]
        if len(matches) == 1 or os.fspath(which) in matches:
            return cls(root / (matches[0] if len(matches) == 1 else which))
        if matches:
            raise UsageError(f"{which!r} begins the ID of {len(matches)} runs: {', '.join(matches)}. Give more of it.")
        hint = did_you_mean(os.fspath(which), known) if known else "There are none: `evenly train` makes one."
        raise UsageError(f"there is no run {os.fspath(which)!r} in {root}. {hint}")

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.state}>"

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, Exception) and not isinstance(error, Stopped) and self._lock is not None:
                self.fail(f"{type(error).__name__}: {error}")
        finally:
            self.close()

    @functools.cached_property
    def id(self) -> str:
        """The digest of the recipe, which names the folder."""
        return self.path.resolve().name

    @functools.cached_property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe, as a plain mapping."""
        try:
            return yaml_text.read(self.path / RECIPE)
        except UsageError as error:
            raise DataError(str(error)) from error

    @property
    def state(self) -> State:
        """What the files tell: `done`, `running` (a live process holds the lock), `failed`, `stopped`, or `new`."""
        if (self.path / DONE).exists():
            return "done"
        if held(self.path / LOCK):
            return "running"
        if (self.path / FAILED).exists():
            return "failed"
        begun = (self.path / METRICS).exists() or any((self.path / CHECKPOINTS).glob("*"))
        return "stopped" if begun else "new"

    def log(self, /, **metrics: Any) -> None:
        """Append one line of metrics; it survives the death of this process."""
        self._continue("log to")
        lines.append(self.path / METRICS, metrics)

    def metrics(self) -> list[dict[str, Any]]:
        """Every line that was logged, in order; a last line that a crash tore is left out."""
        return lines.read(self.path / METRICS)

    def truncate_metrics(self, keep: int | Callable[[dict[str, Any]], bool]) -> None:
        """Keep the first `keep` lines, or the lines for which `keep(line)` holds: what a checkpoint had seen."""
        self._continue("truncate")
        lines.keep(self.path / METRICS, keep)

    def file(self, name: str) -> Path:
        """Where the artefact `name` lies in the folder, and never outside it."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or parts[0] in RESERVED - {CHECKPOINTS}:
            raise UsageError(
                f"{name!r} cannot name an artefact: give a name inside the run's folder, "
                f"other than {', '.join(sorted(RESERVED))}."
            )
        return self.path.joinpath(*parts)

    def write_json(self, name: str, value: Any) -> Path:
        """Write an artefact as JSON, whole or not at all."""
        self._hold()
        return self._write(str(self.file(name).relative_to(self.path)), value)

    def read_json(self, name: str) -> Any:
        """What `write_json` wrote."""
        return self._read(str(self.file(name).relative_to(self.path)))

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write an artefact as CSV, one row per mapping, all with the same names in the order of the first."""
        columns = list(rows[0]) if rows else []
        for number, row in enumerate(rows, 1):
            if set(row) != set(columns):
                odd = sorted(set(row) ^ set(columns))
                raise UsageError(f"{name}, row {number}: every row needs the columns of the first, unlike {odd}.")
        self._hold()
        path = self.file(name)
        with atomic.replacing(path, "w") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if columns:
                writer.writeheader()
            writer.writerows(rows)
        return path

    def stamps(self) -> list[dict[str, Any]]:
        """The environment of every sitting, the first first."""
        return list(self._read(ENVIRONMENT)) if (self.path / ENVIRONMENT).exists() else []

    def summary(self) -> dict[str, Any]:
        """What `finish` was given; empty while the run is not done."""
        return dict(self._read(DONE)) if (self.path / DONE).exists() else {}

    def failure(self) -> str | None:
        """Why the run failed, if it did and was not continued since."""
        return str(self._read(FAILED)["reason"]) if (self.path / FAILED).exists() else None

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the run as done, with what it comes to, and give back the lock."""
        self._continue("finish")
        self._write(DONE, summary)
        self.close()

    def fail(self, reason: str) -> None:
        """Record why the run cannot go on, and give back the lock; the next `create` tries again."""
        self._continue("fail")
        self._write(FAILED, {"reason": reason})
        self.close()

    def close(self) -> None:
        """Give back the lock; the next write takes it again."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _hold(self) -> None:
        if self._lock is None:
            if not self.path.is_dir():
                raise UsageError(f"{self.path} does not exist. `Run.create` makes a run's folder.")
            self._lock = Lock(self.path / LOCK)
            lines.mend(self.path / METRICS)

    def _continue(self, verb: str) -> None:
        self._hold()
        if (self.path / DONE).exists():
            self.close()
            raise UsageError(f"cannot {verb} run {self.id}: it is done. To run it again, remove {self.path}.")

    def _match(self, recipe: Mapping[str, Any]) -> None:
        """Refuse to continue under the same name what was another recipe: an edited file, or a changed default."""
        was, wanted = flat(self.recipe), flat(yaml_text.parse(yaml_text.render(recipe), source="recipe"))
        both = [name for name in was if name in wanted]
        changed = [f"{name}: {was[name]!r} → {wanted[name]!r}" for name in both if was[name] != wanted[name]]
        if changed:
            self.close()
            raise UsageError(
                f"{self.path} was made with another recipe ({'; '.join(changed)}). "
                "Use another folder for runs, or move that one away."
            )

    def _write(self, name: str, value: Any) -> Path:
        atomic.write_json(self.path / name, plain.encode(value, path=name))
        return self.path / name

    def _read(self, name: str) -> Any:
        path = self.path / name
        try:
            return plain.decode(json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise DataError(f"run {self.id} has no {name}. {did_you_mean(name, self._artefacts())}") from None
        except ValueError as error:
            raise DataError(f"{path} is not JSON: {error}. Something else changed it: remove it and repeat.") from error

    def _artefacts(self) -> list[str]:
        return [p.relative_to(self.path).as_posix() for p in self.path.rglob("*.json")]


def flat(mapping: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    """A tree of settings by dotted path.

    >>> flat({"optimizer": {"lr": 0.1}, "data": {"options": {}}})
    {'optimizer.lr': 0.1, 'data.options': {}}
    """
    rows: dict[str, Any] = {}
    for name, value in mapping.items():
        rows |= flat(value, f"{under}{name}.") if isinstance(value, Mapping) and value else {under + name: value}
    return rows
