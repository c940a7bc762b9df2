"""What a figure or table of a paper is to us: claims declared before they are run, and the work that decides them.

An experiment is data. The work itself is named, as `module:function`, and imported when it runs: the catalogue can
be read, listed and checked without torch.
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
#: What a row is about: a claim of the paper, tested as the paper has it; the same in a stand-in; a remark of ours; a
#: cell of our atlas.
KINDS = ("paper", "stand-in", "remark", "atlas")
Kind = Literal["paper", "stand-in", "remark", "atlas"]
ScaleName = Literal["smoke", "small", "full"]


@dataclass(frozen=True)
class Scale:
    """One size of an experiment: `settings` go to its plan.

    `levels` says whether numbers can be held against the paper's (the same network, data and length) or only their
    order can; `minutes` is the time on two cores. A `stand_in` has other data, another network or another regime than
    the paper's: what is seen there does not judge the paper.

    `value` says how much it would be worth to know the verdict, for a campaign that chooses what to run next: 0 leaves
    the experiment out of it. `wanted` is the number of seeds at which it is known well enough.
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
    """Where the work of an experiment finds data and leaves its runs."""

    runs: Path
    data_root: str | None = None


@dataclass(frozen=True)
class Found:
    """What one piece of work found: a number for every seed under each quantity, and what is drawn, as plain JSON."""

    values: Mapping[str, Mapping[int, float]]
    series: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A piece of work that can be done on its own and is kept when it is done.

    `work` is a function `f(context, **arguments) -> Found` under `evenly.papers`, or its name as `module:function`
    where importing that module would import torch; the arguments are plain JSON. Equal parts of two experiments are
    done once.
    """

    name: str
    work: Callable[..., "Found"] | str
    arguments: Mapping[str, Any]

    @property
    def address(self) -> str:
        """The name by which another process finds the work."""
        return address_of(self.work)

    @property
    def identity(self) -> Identity:
        """What it computes, whatever its seeds: its code, and its arguments with defaults filled in."""
        code = of_this_package().of(self.address)
        return Identity(digest([code.digest, _without_seeds(self.resolved)]), code.outside)

    @property
    def digest(self) -> str:
        """Twelve hex digits that name the work with its seeds, not the experiment it is for.

        What is kept under it was computed by these functions, also outside of papers: those count by name here.
        """
        return digest([self.identity.digest, self.resolved, sorted(self.identity.outside)])

    @property
    def resolved(self) -> dict[str, Any]:
        """The arguments with the defaults of the work, and recipes among them with every setting."""
        filled = of_this_package().arguments(self.address, self.arguments)
        return {name: _resolve(name, value) for name, value in filled.items()}

    def function(self) -> Callable[..., Found]:
        """The function that does it, checked to take the arguments."""
        function: Callable[..., Found] = resolve(self.work)
        try:
            inspect.signature(function).bind(None, **self.arguments)
        except TypeError as error:
            raise UsageError(f"part {self.name!r}: {self.address} {error}.") from error
        return function


@dataclass(frozen=True)
class Measured:
    """All that the parts of an experiment found: quantities by seed, and what is drawn by the name of its part.

    `origins` says of every seed which revision of the code measured it, on which processor and when: it may be older
    than the one that judges it, and on another machine.
    """

    values: Mapping[str, Mapping[int, float]]
    series: Mapping[str, Mapping[str, Any]]
    origins: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a theorem of a paper, as a thing that can be run and judged.

    Parameters
    ----------
    key
        `paper/what`, such as `nguyen2024/fig2`.
    title, claim
        What the paper shows, and the claim in one sentence.
    plan
        `plan(seeds, **settings) -> list[Part]`: the work at one scale. It must not import torch.
    charts
        `f(measured) -> list[Chart]`: the figure in the paper's form. By default a mark for
        each quantity that the claims name (`papers.charts`).
    errata
        What is wrong or left open in the paper, as part of the row.
    derived
        `f(values) -> more values`, for what takes all seeds together, such as a choice by their mean. Of two values of
        one name its own counts.
    primary
        The name of the claim that is the sentence of the paper; the verdict of a row is this claim's, and the others
        are details. By default the first.
    remark
        It is a remark or a correction of ours on the paper, and no claim of the paper's.
    atlas
        It is a task of our atlas of cures: its claims are questions.
    """

    key: str
    title: str
    claim: str
    plan: Callable[..., list[Part]]
    claims: tuple[Claim, ...]
    scales: Mapping[str, Scale]
    charts: Callable[[Measured], list[Any]] | str = ""
    errata: tuple[str, ...] = ()
    derived: Callable[[Mapping[str, Mapping[int, float]]], Mapping[str, Mapping[int, float]]] | str = ""
    primary: str = ""
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
        if self.primary_claim.corrects != self.remark:
            whose = "a statement of ours, since this is a remark" if self.remark else "the sentence of the paper"
            raise UsageError(f"{self.key}: the primary claim is {whose}, and not {self.primary_claim.name!r}.")

    @property
    def primary_claim(self) -> Claim:
        """The claim whose verdict is the row's."""
        own = [claim for claim in self.claims if claim.corrects == self.remark]
        found = next((claim for claim in self.claims if claim.name == self.primary), own[0] if own else None)
        if found is None or (self.primary and found.name != self.primary):
            raise UsageError(f"{self.key}: there is no claim {self.primary!r} to be the primary one.")
        return found

    def kind(self, scale: str) -> Kind:
        """What a row at this scale is about."""
        if self.remark or self.atlas:
            return "remark" if self.remark else "atlas"
        return "stand-in" if self.scales[scale].stand_in or scale == "smoke" else "paper"

    @property
    def stem(self) -> str:
        """The key as a file name."""
        return self.key.replace("/", "-")

    def parts(self, scale: str, seeds: Sequence[int] | None = None) -> list[Part]:
        """The work at one scale, for the declared seeds or others."""
        if scale not in self.scales:
            raise UsageError(f"{self.key} has no scale {scale!r}: it has {', '.join(self.scales)}.")
        size = self.scales[scale]
        parts = self.plan(tuple(seeds or size.seeds), **size.settings)
        if len({part.name for part in parts}) < len(parts):
            raise UsageError(f"{self.key} at {scale}: two parts have one name.")
        return parts

    def identity(self, scale: str, seeds: Sequence[int] | None = None) -> Identity:
        """What a row measures: what its parts compute, and what is derived from them.

        Seeds are no part of it: a row with more of them is the same row, grown. Neither are the claims: the numbers of
        a row can be judged again when these are declared differently.
        """
        work = {part.identity for part in self.parts(scale, seeds)}
        if self.derived:
            work.add(of_this_package().of(address_of(self.derived)))
        outside = frozenset().union(*(each.outside for each in work))
        return Identity(digest(sorted({each.digest for each in work})), outside)

    def digest(self, scale: str, seeds: Sequence[int] | None = None) -> str:
        """Twelve hex digits of what the row measures."""
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


# Arguments of this name are settings, and count with all their defaults.
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
