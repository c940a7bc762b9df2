"""The SAM family by name: the class of each rule and its default radius, for Python, recipes and the command line.

A rule is one file in `evenly/optim/rules/`, called by its name here, and one line below. Everything that lists rules
(`evenly`, recipes, `--optimizer`, ensembles, the contract suite, the table in docs/sam.md) reads this list; nothing
here imports torch.
"""

from typing import NamedTuple

from evenly.errors import UsageError, did_you_mean


class Entry(NamedTuple):
    """The class of a rule, and the default radius of its authors (σ for random perturbations)."""

    kind: str
    rho: float


RULES = {
    "sam": Entry("SAM", 0.05),
    "asam": Entry("ASAM", 0.5),
    "lsam": Entry("LSAM", 0.05),
    "usam": Entry("USAM", 0.05),
    "gsam": Entry("GSAM", 0.05),
    "wsam": Entry("WSAM", 0.05),
    "looksam": Entry("LookSAM", 0.05),
    "friendlysam": Entry("FriendlySAM", 0.05),
    "vasso": Entry("VaSSO", 0.05),
    "msam": Entry("MSAM", 0.3),
    "random": Entry("RandomPerturbation", 0.01),
}
#: Names in recipes of version 0.1.
FORMER_NAMES = {"unnormalised": "usam", "look": "looksam", "friendly": "friendlysam", "momentum": "msam"}


def rule_name(name: str) -> str:
    """The current name of a rule; an unknown name is refused.

    >>> rule_name("look"), rule_name("SAM")
    ('looksam', 'sam')
    >>> rule_name("asma")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no rule 'asma'. Did you mean 'asam'?
    """
    name = FORMER_NAMES.get(name.lower(), name.lower())
    if name not in RULES:
        raise UsageError(f"there is no rule {name!r}. {did_you_mean(name, RULES)}")
    return name


def module_of(name: str) -> str:
    """The module that holds a rule.

    >>> module_of("gsam")
    'evenly.optim.rules.gsam'
    """
    return f"evenly.optim.rules.{name}"
