"""The names of measured quantities, such as `chi=360.rho=2.hard`: the same in claims, work and charts."""


def at(what: str = "", /, **where: float | str) -> str:
    """The name of a quantity under its settings.

    >>> at("hard", chi=360, rho=0.5)
    'chi=360.rho=0.5.hard'
    """
    parts = [f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}" for name, value in where.items()]
    return ".".join([*parts, what] if what else parts)
