"""The SAM family by name: the class of each rule and its default radius, for Python, recipes and the command line.

A rule is one file in `evenly/optim/rules/`, called by its name here, and one line below. Everything that lists rules
(`evenly`, recipes, `--optimizer`, ensembles, the contract suite, the table in docs/sam.md) reads this list; nothing
here imports torch.
"""

from typing import NamedTuple

from evenly.errors import UsageError, did_you_mean


class Known(NamedTuple):
    """The class of a rule, and the radius that its authors begin with (σ for random perturbations)."""

    kind: str
    rho: float


RULES = {
    "sam": Known("SAM", 0.05),
    "asam": Known("ASAM", 0.5),
    "lsam": Known("LSAM", 0.05),
    "usam": Known("USAM", 0.05),
    "gsam": Known("GSAM", 0.05),
    "wsam": Known("WSAM", 0.05),
    "looksam": Known("LookSAM", 0.05),
    "friendlysam": Known("FriendlySAM", 0.05),
    "vasso": Known("VaSSO", 0.05),
    "msam": Known("MSAM", 0.3),
    "random": Known("RandomPerturbation", 0.01),
}
#: Names that recipes of version 0.1 have.
FORMER = {"unnormalised": "usam", "look": "looksam", "friendly": "friendlysam", "momentum": "msam"}


def rule_name(name: str) -> str:
    """The present name of a rule; one that does not exist is refused.

    >>> rule_name("look"), rule_name("SAM")
    ('looksam', 'sam')
    >>> rule_name("asma")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no rule 'asma'. Did you mean 'asam'?
    """
    name = FORMER.get(name.lower(), name.lower())
    if name not in RULES:
        raise UsageError(f"there is no rule {name!r}. {did_you_mean(name, RULES)}")
    return name


def module_of(name: str) -> str:
    """The module that holds a rule.

    >>> module_of("gsam")
    'evenly.optim.rules.gsam'
    """
    return f"evenly.optim.rules.{name}"
