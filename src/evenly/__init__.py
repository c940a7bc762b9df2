"""Networks learn the easy features first and lean on them; `evenly` shows it and cures it."""

from typing import TYPE_CHECKING

from evenly.lazy import attach
from evenly.rules import RULES

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from evenly.data import Labelled as Labelled
    from evenly.data import Splits as Splits
    from evenly.data import load as load
    from evenly.diagnostics import Dynamics as Dynamics
    from evenly.diagnostics.measure import measure as measure
    from evenly.optim import ASAM as ASAM
    from evenly.optim import GSAM as GSAM
    from evenly.optim import LSAM as LSAM
    from evenly.optim import MSAM as MSAM
    from evenly.optim import SAM as SAM
    from evenly.optim import USAM as USAM
    from evenly.optim import WSAM as WSAM
    from evenly.optim import FriendlySAM as FriendlySAM
    from evenly.optim import LookSAM as LookSAM
    from evenly.optim import RandomPerturbation as RandomPerturbation
    from evenly.optim import VaSSO as VaSSO
    from evenly.resampling import Separation as Separation
    from evenly.resampling import separate as separate
    from evenly.resampling.health import health as health
    from evenly.resampling.model_outputs import outputs as outputs
    from evenly.training.prediction import load_run as load_run

# Names are looked up on first use, so that `import evenly` and `evenly --help` do not wait for torch.
__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Labelled": "evenly.data",
        "Splits": "evenly.data",
        "load": "evenly.data",
        "Dynamics": "evenly.diagnostics",
        "measure": "evenly.diagnostics",
        **{known.kind: "evenly.optim" for known in RULES.values()},
        "Separation": "evenly.resampling",
        "outputs": "evenly.resampling.model_outputs",
        "health": "evenly.resampling.health",
        "separate": "evenly.resampling",
        "load_run": "evenly.training.prediction",
    },
)
