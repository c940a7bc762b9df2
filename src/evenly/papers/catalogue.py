"""Every experiment by its key."""

from collections.abc import Mapping

from evenly.errors import UsageError, did_you_mean
from evenly.papers.chang2025stability import EXPERIMENTS as _CHANG
from evenly.papers.chang2025stability import PAPER as _CHANG_2025
from evenly.papers.experiment import Experiment, Paper
from evenly.papers.nguyen2024useful import EXPERIMENTS as _NGUYEN
from evenly.papers.nguyen2024useful import PAPER as _NGUYEN_2024
from evenly.papers.springer2024balanced import EXPERIMENTS as _SPRINGER
from evenly.papers.springer2024balanced import PAPER as _SPRINGER_2024

PAPERS: Mapping[str, Paper] = {paper.key: paper for paper in (_NGUYEN_2024, _SPRINGER_2024, _CHANG_2025)}
CATALOGUE: Mapping[str, Experiment] = {each.key: each for each in (*_NGUYEN, *_SPRINGER, *_CHANG)}


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
