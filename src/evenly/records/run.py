"""A run's folder: everything known about the run, and the only way to write to it."""

import contextlib
import csv
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from evenly.errors import DataError, SetupError, Stopped, UsageError, did_you_mean
from evenly.records import identity as identities
from evenly.records import index, json_text, lines
from evenly.records.folder import LOCK as LOCK
from evenly.records.folder import METRICS as METRICS
from evenly.records.folder import Folder
from evenly.records.identity import IDENTITY, Identity
from evenly.records.lock import is_locked
from evenly.typed import yaml_text
from evenly.typed.mappings import changed_settings, flatten

State = Literal["new", "running", "stopped", "failed", "done"]
RECIPE, ENVIRONMENT, CHECKPOINTS = "recipe.yaml", "environment.json", "checkpoints"
FAILED, DONE = "failed", "done"
RESERVED = {RECIPE, IDENTITY, ENVIRONMENT, METRICS, CHECKPOINTS, FAILED, DONE, LOCK}


class Run:
    """A run's folder. Reading needs no lock; the first write takes it, and `close` releases it.

    As a context manager it also records how the run ended: `Stopped` and Ctrl-C leave it to be resumed, any other error
    is recorded as its failure.

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
        self._folder = Folder(self.path)

    @classmethod
    def create(
        cls,
        root: str | os.PathLike[str],
        recipe: Mapping[str, Any],
        digest: str,
        *,
        identity: Identity | None = None,
        environment: Mapping[str, Any] | None = None,
    ) -> "Run":
        """The run of this recipe in `root`: a new folder, or the existing one, to be resumed or already done.

        A run that is not done is locked for this process, and `environment` is added to its stamps. A folder that was
        made with another recipe or `identity` is refused.
        """
        if not digest or not digest.isalnum():
            raise UsageError(f"a run's ID must consist of letters and digits, not {digest!r}. Use `Identity.id`.")
        run = cls(Path(root) / digest)
        if run.state == "done":
            run.check(recipe, identity)
            return run
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"cannot make {run.path}: {error.strerror}. Choose a writable folder for runs.") from error
        run._folder.hold()
        if (run.path / RECIPE).exists():
            try:
                run.check(recipe, identity)
            except BaseException:
                run.close()
                raise
        elif foreign := sorted(p.name for p in run.path.iterdir() if p.name not in (LOCK, IDENTITY)):
            run.close()
            raise DataError(f"{run.path} holds {foreign[0]} but no {RECIPE}: it is not a run of ours. Move it away.")
        else:
            if identity is not None:
                run._folder.write(IDENTITY, identity.record())
            with run._folder.replacing(RECIPE, "w") as file:  # last, since a folder with a recipe counts as a run
                file.write(yaml_text.render(recipe))
            if identity is not None:
                index.note(Path(root), run.path.name, index.entry_of(identity.record()))
        if (run.path / DONE).exists():  # another process ended it while this one waited for the lock
            run.close()
            return run
        (run.path / FAILED).unlink(missing_ok=True)
        if environment is not None:
            run._folder.write(ENVIRONMENT, [*run.stamps(), environment])
        return run

    @classmethod
    def open(cls, which: str | os.PathLike[str], root: str | os.PathLike[str] = "runs") -> "Run":
        """The run in folder `which`, or the one in `root` whose ID begins with `which`; `runs/3f2a` names its root."""
        path, root = Path(which), Path(root)
        # The functions of os.path, which take a name that cannot be, as one of 300 letters, for one that is not there.
        if os.path.isfile(path / RECIPE):
            return cls(path)
        if not os.path.exists(path) and os.path.isdir(path.parent) and path.name != os.fspath(which):
            which, root = path.name, path.parent
        if os.path.isdir(path) and path.name != os.fspath(which):
            raise UsageError(f"{path} is not a run's folder: it has no {RECIPE}. `evenly runs` lists those that are.")
        named = [name for name in _list_names(root) if name.startswith(os.fspath(which))]
        matches = [name for name in named if os.path.exists(root / name / RECIPE)]
        if len(matches) == 1 or os.fspath(which) in matches:
            return cls(root / (matches[0] if len(matches) == 1 else which))
        if matches:
            raise UsageError(f"{which!r} begins the ID of {len(matches)} runs: {', '.join(matches)}. Give more of it.")
        if os.path.isfile(root / "comparisons" / f"{os.fspath(which)}.json"):
            raise UsageError(
                f"{os.fspath(which)} is a comparison, not a run. `evenly runs` lists the runs, newest first, each with "
                "its method and seed; `evenly report` shows the comparison."
            )
        known = [name for name in _list_names(root) if os.path.exists(root / name / RECIPE)]
        hint = did_you_mean(os.fspath(which), known) if known else "There are none: `evenly train` makes one."
        raise UsageError(f"there is no run {os.fspath(which)!r} in {root}. {hint}")

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.state}>"

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, Exception) and not isinstance(error, Stopped) and self._folder.is_held:
                self.fail(f"{type(error).__name__}: {error}")
        finally:
            self.close()

    @functools.cached_property
    def id(self) -> str:
        """The run's ID, which is the name of its folder (`Identity.id`)."""
        return self.path.resolve().name

    @functools.cached_property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe, as a plain mapping."""
        try:
            return yaml_text.read(self.path / RECIPE)
        except UsageError as error:
            raise DataError(str(error)) from error

    @functools.cached_property
    def identity(self) -> dict[str, Any] | None:
        """The run's identity, as `Identity.record` writes it; None for a run of evenly 0.1, which stored none."""
        return identities.read(self.path)

    @property
    def state(self) -> State:
        """The state by its files: `done`, `running` (a live process holds the lock), `failed`, `stopped`, or `new`."""
        if (self.path / DONE).exists():
            return "done"
        if is_locked(self.path / LOCK):
            return "running"
        if (self.path / FAILED).exists():
            return "failed"
        begun = (self.path / METRICS).exists() or any((self.path / CHECKPOINTS).glob("*"))
        return "stopped" if begun else "new"

    def log(self, /, **metrics: Any) -> None:
        """Append one line of metrics; it survives the death of this process."""
        self._continue("log to")
        with self._folder.writing():
            lines.append(self.path / METRICS, metrics)

    def metrics(self) -> list[dict[str, Any]]:
        """Every line that was logged, in order, without a last line that a crash cut off."""
        return lines.read(self.path / METRICS)

    def truncate_metrics(self, keep: int | Callable[[dict[str, Any]], bool]) -> None:
        """Keep the first `keep` lines, or the lines for which `keep(line)` holds: those up to a checkpoint."""
        self._continue("truncate")
        with self._folder.writing():
            lines.keep(self.path / METRICS, keep)

    def file(self, name: str) -> Path:
        """The path of the artefact `name`, which is always inside the folder."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or parts[0] in RESERVED - {CHECKPOINTS}:
            raise UsageError(
                f"{name!r} cannot name an artefact: give a name inside the run's folder, "
                f"other than {', '.join(sorted(RESERVED))}."
            )
        return self.path.joinpath(*parts)

    @contextlib.contextmanager
    def replacing(self, name: str, mode: str = "wb") -> Iterator[IO[Any]]:
        """Open an artefact to be written, whole or not at all, and only while the run's folder is in place."""
        with self._folder.replacing(str(self.file(name).relative_to(self.path)), mode) as file:
            yield file

    def write_json(self, name: str, value: Any) -> Path:
        """Write an artefact as JSON, whole or not at all."""
        return self._folder.write(str(self.file(name).relative_to(self.path)), value)

    def read_json(self, name: str) -> Any:
        """Read what `write_json` wrote."""
        return self._read(str(self.file(name).relative_to(self.path)))

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write an artefact as CSV, one row per mapping, all with the same names in the order of the first."""
        columns = list(rows[0]) if rows else []
        for number, row in enumerate(rows, 1):
            if set(row) != set(columns):
                odd = sorted(set(row) ^ set(columns))
                raise UsageError(f"{name}, row {number}: every row needs the columns of the first, unlike {odd}.")
        with self.replacing(name, "w") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if columns:
                writer.writeheader()
            writer.writerows(rows)
        return self.file(name)

    def stamps(self) -> list[dict[str, Any]]:
        """The environment of every session, in order."""
        stamps = self._read(ENVIRONMENT) if (self.path / ENVIRONMENT).exists() else []
        if not isinstance(stamps, list) or not all(isinstance(stamp, dict) for stamp in stamps):
            raise DataError(f"{self.path / ENVIRONMENT} is damaged: expected a list of JSON objects. {_REMEDY}")
        return stamps

    def summary(self) -> dict[str, Any]:
        """The summary given to `finish`; empty while the run is not done."""
        return self._read_object(DONE)

    def failure(self) -> str | None:
        """Why the run failed, if it did and was not resumed since."""
        record = self._read_object(FAILED)
        return str(record.get("reason", "no reason was recorded")) if (self.path / FAILED).exists() else None

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the run as done, with its summary, and release the lock."""
        self._continue("finish")
        self._folder.write(DONE, summary)
        self.close()

    def fail(self, reason: str) -> None:
        """Record why the run failed, and release the lock; the next `create` tries again."""
        self._continue("fail")
        self._folder.write(FAILED, {"reason": reason})
        self.close()

    def close(self) -> None:
        """Release the lock; the next write takes it again."""
        self._folder.release()

    def check(self, recipe: Mapping[str, Any], identity: Identity | None = None) -> None:
        """Refuse a folder made with another recipe: an edited file, a changed default, somebody else's run."""
        wanted = yaml_text.parse(yaml_text.render(recipe), source="recipe")
        # A setting that older versions lacked may be missing, if its value reproduces their behaviour.
        optional = flatten(wanted).keys() - flatten(identity.settings).keys() if identity is not None else frozenset()
        changed = [line for name, line in changed_settings(self.recipe, wanted).items() if name not in optional]
        if changed:
            raise UsageError(
                f"{self.path} was made with another recipe ({'; '.join(changed)}). "
                "Use another folder for runs, or move that one away."
            )
        if identity is not None:
            identity.check(self.path)

    def _continue(self, verb: str) -> None:
        self._folder.hold()
        if (self.path / DONE).exists():
            self.close()
            raise UsageError(f"cannot {verb} run {self.id}: it is done. To run it again, remove {self.path}.")

    def _read_object(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; empty if there is no file."""
        try:
            content = json_text.read(self.path / name)
        except FileNotFoundError:
            return {}
        if not isinstance(content, dict):
            raise DataError(f"{self.path / name} is damaged: expected a JSON object, found {content!r:.40}. {_REMEDY}")
        return content

    def _read(self, name: str) -> Any:
        try:
            return json_text.read(self.path / name)
        except FileNotFoundError:
            raise DataError(f"run {self.id} has no {name}. {did_you_mean(name, self._artefacts())}") from None

    def _artefacts(self) -> list[str]:
        return [p.relative_to(self.path).as_posix() for p in self.path.rglob("*.json")]


_REMEDY = "Restore it, or remove the run's folder and repeat the command that made it."


def _list_names(root: Path) -> list[str]:
    try:
        return sorted(os.listdir(root))
    except OSError:
        return []
