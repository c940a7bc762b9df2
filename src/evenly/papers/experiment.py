"""An experiment: a figure or table of a paper as claims, declared before they are run, and the work that decides them.

An experiment is data. It names its work as `module:function`, which is imported when it runs: the catalogue can be
read, listed and checked without torch.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from evenly.errors import UsageError
from evenly.papers.claim import Claim
from evenly.papers.identity.behaviour import Identity, digest, of_this_package
from evenly.recipe import Recipe, Until
from evenly.typed import Settings, from_mapping, identity_settings

SCALES = ("smoke", "small", "full")
#: The kind of a row: a claim of the paper, tested in its own setting; the same in a stand-in; our own remark; a task
#: of our atlas.
KINDS = ("paper", "stand-in", "remark", "atlas")
Kind = Literal["paper", "stand-in", "remark", "atlas"]
ScaleName = Literal["smoke", "small", "full"]


@dataclass(frozen=True)
class Scale:
    """One size of an experiment: `settings` go to its plan.

    `levels` says whether numbers can be compared with the paper's (the same network, data and length) or only their
    order; `minutes` is the time on two cores. A `stand_in` has other data, another network or another regime than the
    paper, so its result does not judge the paper.

    `value` is the worth of the verdict, for a campaign that chooses what to run next: 0 excludes the experiment.
    `wanted` is the number of seeds that suffice.
    """

    seeds: tuple[int, ...]
    minutes: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    levels: bool = False
    stand_in: bool = False
    value: float = 0.0
    wanted: int = 0


@dataclass(frozen=True)
class Context:
    """The folders of an experiment's data and runs."""

    runs: Path
    data_root: str | None = None


@dataclass(frozen=True)
class PartResult:
    """The result of a part: a number per seed for each quantity, and series to draw, as plain JSON."""

    values: Mapping[str, Mapping[int, float]]
    series: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A piece of work that runs independently and whose result is stored.

    `work` is a function `f(context, **arguments) -> PartResult` under `evenly.papers`, or its name as `module:function`
    where importing that module would import torch; the arguments are plain JSON. Equal parts of two experiments
    run once.
    """

    name: str
    work: Callable[..., "PartResult"] | str
    arguments: Mapping[str, Any]

    @property
    def address(self) -> str:
        """The name by which another process finds the work."""
        return address_of(self.work)

    @property
    def identity(self) -> Identity:
        """The identity of its computation, apart from seeds: its code, and its arguments with defaults filled in."""
        code = of_this_package().of(self.address)
        return Identity(digest([code.digest, _without_seeds(self.resolved)]), code.outside)

    @property
    def digest(self) -> str:
        """Twelve hex digits that name the work with its seeds, independently of the experiment.

        Results stored under it were computed by these functions; those outside of papers count by name.
        """
        return digest([self.identity.digest, self.resolved, sorted(self.identity.outside)])

    @property
    def resolved(self) -> dict[str, Any]:
        """The arguments with the defaults of the work, and recipes among them with every setting."""
        filled = of_this_package().arguments(self.address, self.arguments)
        return {name: _resolve(name, value) for name, value in filled.items()}

    def function(self) -> Callable[..., PartResult]:
        """The function that does the work, checked to accept the arguments."""
        function: Callable[..., PartResult] = resolve(self.work)
        try:
            inspect.signature(function).bind(None, **self.arguments)
        except TypeError as error:
            raise UsageError(f"part {self.name!r}: {self.address} {error}.") from error
        return function


@dataclass(frozen=True)
class Measured:
    """The results of all parts of an experiment: quantities by seed, and series to draw by the name of their part.

    `origins` says for every seed which revision of the code measured it, on which processor and when: it may be an
    older revision than the one that judges it, on another machine.
    """

    values: Mapping[str, Mapping[int, float]]
    series: Mapping[str, Mapping[str, Any]]
    origins: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a theorem of a paper that can be run and judged.

    Parameters
    ----------
    key
        `paper/what`, such as `nguyen2024/fig2`.
    title, claim
        The subject of the figure, and its claim in one sentence.
    plan
        `plan(seeds, **settings) -> list[Part]`: the work at one scale. It must not import torch.
    charts
        The figure in the paper's form: `papers.charts.Panel`s for quantities side by side, or for anything else a
        function `f(measured) -> list[Chart]`. By default a mark for each quantity that the claims name.
    errata
        Remarks: what is wrong or left open in the paper, what was seen before the row was run; part of the row.
    derived
        `f(values) -> more values`, for quantities that need all seeds, such as a choice by their mean. They override
        measured ones of the same name.
    primary
        The names of the claims that the sentence `claim` makes: the verdict of the row is the worst of theirs, and all
        other claims are details. By default the first.
    remark
        Whether it is our remark on the paper or correction, rather than a claim of the paper.
    atlas
        Whether it is a task of our atlas of cures, whose claims are questions.
    """

    key: str
    title: str
    claim: str
    plan: Callable[..., list[Part]]
    claims: tuple[Claim, ...]
    scales: Mapping[str, Scale]
    charts: Callable[[Measured], list[Any]] | Sequence[Any] = ()
    errata: tuple[str, ...] = ()
    derived: Callable[[Mapping[str, Mapping[int, float]]], Mapping[str, Mapping[int, float]]] | str = ""
    primary: str | tuple[str, ...] = ""
    remark: bool = False
    atlas: bool = False

    def __post_init__(self) -> None:
        if self.key.count("/") != 1:
            raise UsageError(f"experiment {self.key!r}: a key is paper/what, such as nguyen2024/fig2.")
        for name, scale in self.scales.items():
            if name not in SCALES:
                raise UsageError(f"{self.key}: there is no scale {name!r}, only {', '.join(SCALES)}.")
            try:
                inspect.signature(self.plan).bind(scale.seeds, **scale.settings)
            except TypeError as error:
                raise UsageError(f"{self.key} at {name}: {error}.") from error
        if "smoke" not in self.scales:
            raise UsageError(f"{self.key}: declare a smoke scale, of seconds: it is how the experiment is tested.")
        names = [claim.name for claim in self.claims]
        if len(set(names)) < len(names):
            raise UsageError(f"{self.key}: two claims have one name.")
        if wrong := [claim for claim in self.primary_claims if claim.corrects != self.remark]:
            whose = "correct the paper, as this is a remark" if self.remark else "be the paper's own"
            raise UsageError(f"{self.key}: a primary claim must {whose}, and {wrong[0].name!r} does not.")

    @property
    def primary_claims(self) -> tuple[Claim, ...]:
        """The claims that decide the verdict of the row."""
        names = (self.primary,) if isinstance(self.primary, str) else self.primary
        if names == ("",):
            names = tuple(claim.name for claim in self.claims if claim.corrects == self.remark)[:1]
        by_name = {claim.name: claim for claim in self.claims}
        if not names or (missing := [name for name in names if name not in by_name]):
            raise UsageError(f"{self.key}: there is no claim {missing[0] if names else ''!r} to be a primary one.")
        return tuple(by_name[name] for name in names)

    def kind(self, scale: str) -> Kind:
        """The kind of a row at this scale."""
        if self.remark or self.atlas:
            return "remark" if self.remark else "atlas"
        return "stand-in" if self.scales[scale].stand_in or scale == "smoke" else "paper"

    @property
    def stem(self) -> str:
        """The key as a file name."""
        return self.key.replace("/", "-")

    def parts(self, scale: str, seeds: Sequence[int] | None = None) -> list[Part]:
        """The parts at one scale, for the declared seeds or others, whose order makes no difference."""
        if scale not in self.scales:
            raise UsageError(f"{self.key} has no scale {scale!r}: it has {', '.join(self.scales)}.")
        size = self.scales[scale]
        parts = self.plan(tuple(sorted(seeds or size.seeds)), **size.settings)
        if len({part.name for part in parts}) < len(parts):
            raise UsageError(f"{self.key} at {scale}: two parts have one name.")
        return parts

    def identity(self, scale: str, seeds: Sequence[int] | None = None) -> Identity:
        """The identity of a row: the computations of its parts, and what is derived from them.

        Seeds do not belong to it: a row with more seeds is the same row, grown. Nor do the claims: the numbers of a row
        can be judged again when the claims change.
        """
        work = {part.identity for part in self.parts(scale, seeds)}
        if self.derived:
            work.add(of_this_package().of(address_of(self.derived)))
        outside = frozenset().union(*(each.outside for each in work))
        return Identity(digest(sorted({each.digest for each in work})), outside)

    def digest(self, scale: str, seeds: Sequence[int] | None = None) -> str:
        """Twelve hex digits of the row's identity."""
        return self.identity(scale, seeds).digest


def address_of(function: Callable[..., Any] | str) -> str:
    """A function under `evenly.papers` as `module:function`, by which another process finds it.

    >>> from evenly.papers.verdict import judge
    >>> address_of(judge)
    'verdict:judge'
    """
    if isinstance(function, str):
        return function
    return f"{function.__module__.removeprefix('evenly.papers.')}:{function.__qualname__}"


def resolve(name: Callable[..., Any] | str) -> Any:
    """The function that `module:function` under `evenly.papers` names, or the one that is given.

    >>> resolve("verdict:judge").__name__
    'judge'
    """
    if not isinstance(name, str):
        return name
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(f"evenly.papers.{module}"), function)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{name!r} names nothing under evenly.papers: {error}.") from error


# Arguments of this name are recipes, and count with all their defaults.
_SETTINGS: Mapping[str, type[Settings]] = {"recipe": Recipe, "until": Until}


def _resolve(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if name in _SETTINGS:
            return identity_settings(from_mapping(_SETTINGS[name], value))
        return {inner: _resolve(inner, each) for inner, each in value.items()}
    return [_resolve("", each) for each in value] if isinstance(value, list | tuple) else value


def _without_seeds(value: Any) -> Any:
    if isinstance(value, Mapping):
        # A recipe's own seed is overruled by its part's; the seed of its data is not.
        kept = {name: each for name, each in value.items() if name not in ("seed", "seeds")}
        return {name: each if name in _SETTINGS else _without_seeds(each) for name, each in kept.items()}
    return [_without_seeds(each) for each in value] if isinstance(value, list) else value
