"""Every experiment by its key, found by file name: `papers/nguyen2024/fig2.py` declares nguyen2024/fig2.

A module named after a figure, table, theorem, section or appendix, or a map of the atlas, has `EXPERIMENT`, or
`EXPERIMENTS` if it covers several data sets. Importing these modules must not import torch.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from evenly.errors import UsageError, did_you_mean
from evenly.papers import atlas, chang2025, nguyen2024, springer2024
from evenly.papers.claim import Paper
from evenly.papers.experiment import Experiment

_PACKAGES = (nguyen2024, springer2024, chang2025, atlas)
_NAMED_AFTER_THE_PAPER = re.compile(r"(fig|table|theorem|section|mistake)\d|appendix_|map_")


def _experiments(package: ModuleType) -> Iterator[Experiment]:
    for name in sorted((module.name for module in iter_modules(package.__path__)), key=_in_reading_order):
        if _NAMED_AFTER_THE_PAPER.match(name):
            module = import_module(f"{package.__name__}.{name}")
            yield from getattr(module, "EXPERIMENTS", None) or (module.EXPERIMENT,)


def _in_reading_order(name: str) -> list[tuple[int, str]]:
    """A sort key by number: fig2 before fig10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


PAPERS: Mapping[str, Paper] = {package.PAPER.key: package.PAPER for package in _PACKAGES}
CATALOGUE: Mapping[str, Experiment] = {each.key: each for package in _PACKAGES for each in _experiments(package)}


def find(key: str) -> Experiment:
    """The experiment of that key.

    >>> find("nguyen2024/fgi2")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no experiment 'nguyen2024/fgi2'. Did you mean 'nguyen2024/fig2'...
    """
    if key not in CATALOGUE:
        hint = did_you_mean(key, CATALOGUE)
        raise UsageError(f"there is no experiment {key!r}. {hint} `evenly reproduce --list` shows all.")
    return CATALOGUE[key]


def paper(key: str) -> Paper:
    """The paper of that key, or of an experiment's.

    >>> paper("springer2024/fig2").key
    'springer2024'
    """
    name = key.partition("/")[0]
    if name not in PAPERS:
        raise UsageError(f"there is no paper {name!r}. {did_you_mean(name, PAPERS)}")
    return PAPERS[name]
