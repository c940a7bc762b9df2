"""Numbers in the cells of a table, as people write them: ASCII digits, and nothing that only Python would read.

`int` and `float` also take `1_0` for 10 and digits of every script; a table that says so means a name.
"""

import re

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))(?:\.0+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE
)


def whole_number(cell: str) -> int | None:
    """A whole number of 64 bits, written as 7 or, as tables with gaps have it, as 7.0; None for all else.

    >>> [whole_number(cell) for cell in ("7", "-7.0", "007", "1_0", "٧", "-0", "7.5", "18446744073709551615")]
    [7, -7, None, None, None, None, None, None]
    """
    match = _WHOLE.fullmatch(cell)
    if match is None or match[1] == "-0":
        return None
    number = int(match[1])
    return number if -(2**63) <= number < 2**63 else None


def is_number(cell: str) -> bool:
    """Whether a cell is a number in the usual notation, `nan` and `inf` among them.

    >>> [is_number(cell) for cell in ("007", "-.5", "1e30", "NaN", "1_0", "٧", "cat")]
    [True, True, True, True, False, False, False]
    """
    return _NUMBER.fullmatch(cell) is not None


def is_integer(cell: str) -> bool:
    """Whether a cell is written as a whole number, of any size, also as 007 or +7.

    >>> [is_integer(cell) for cell in ("007", "+7", "7.0", "1_0")]
    [True, True, False, False]
    """
    return _INTEGER.fullmatch(cell) is not None


def number(cell: str) -> float | None:
    """A finite number in the usual notation, or None.

    >>> [number(cell) for cell in ("0.5", "1e400", "nan", "1_0")]
    [0.5, None, None, None]
    """
    value = float(cell) if is_number(cell) else float("nan")
    return value if value - value == 0 else None
