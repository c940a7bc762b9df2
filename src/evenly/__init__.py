"""Networks learn the easy features first and lean on them; `evenly` shows it and cures it."""

from typing import TYPE_CHECKING

from evenly.lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evenly.data import Labelled as Labelled
    from evenly.data import Splits as Splits
    from evenly.data import load as load

# Names are looked up on first use, so that `import evenly` and `evenly --help` do not wait for torch.
__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Labelled": "evenly.data",
        "Splits": "evenly.data",
        "load": "evenly.data",
    },
)
