"""Networks learn the easy features first and lean on them; `evenly` shows it and cures it."""

from typing import TYPE_CHECKING

from evenly.lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evenly.data import Labelled as Labelled
    from evenly.data import Splits as Splits
    from evenly.data import load as load
    from evenly.diagnostics import Dynamics as Dynamics
    from evenly.diagnostics.measuring import measure as measure
    from evenly.optim import ASAM as ASAM
    from evenly.optim import GSAM as GSAM
    from evenly.optim import LSAM as LSAM
    from evenly.optim import MSAM as MSAM
    from evenly.optim import SAM as SAM
    from evenly.optim import USAM as USAM
    from evenly.optim import FriendlySAM as FriendlySAM
    from evenly.optim import LookSAM as LookSAM
    from evenly.optim import RandomPerturbation as RandomPerturbation
    from evenly.resampling import Separation as Separation
    from evenly.resampling import separate as separate
    from evenly.resampling.health import health as health

# Names are looked up on first use, so that `import evenly` and `evenly --help` do not wait for torch.
__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Labelled": "evenly.data",
        "Splits": "evenly.data",
        "load": "evenly.data",
        "Dynamics": "evenly.diagnostics",
        "measure": "evenly.diagnostics",
        "ASAM": "evenly.optim",
        "GSAM": "evenly.optim",
        "LSAM": "evenly.optim",
        "MSAM": "evenly.optim",
        "SAM": "evenly.optim",
        "USAM": "evenly.optim",
        "FriendlySAM": "evenly.optim",
        "LookSAM": "evenly.optim",
        "RandomPerturbation": "evenly.optim",
        "Separation": "evenly.resampling",
        "health": "evenly.resampling.health",
        "separate": "evenly.resampling",
    },
)
