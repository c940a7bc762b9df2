"""Sharpness-aware gradients: SAM and its family, with LSAM in one pass.

`rules` has a file for each rule, `ascent` the displacement ε, `step` the passes of one call, `displaced_gradient` the
class that users call, and `optimizer` a wrapper for frameworks that pass closures.
"""

from typing import TYPE_CHECKING

from evenly.lazy import attach
from evenly.rules import RULES, module_of

if TYPE_CHECKING:
    from evenly.optim.displaced_gradient import DisplacedGradient as DisplacedGradient
    from evenly.optim.optimizer import SharpnessAware as SharpnessAware
    from evenly.optim.rules.asam import ASAM as ASAM
    from evenly.optim.rules.friendlysam import FriendlySAM as FriendlySAM
    from evenly.optim.rules.gsam import GSAM as GSAM
    from evenly.optim.rules.looksam import LookSAM as LookSAM
    from evenly.optim.rules.lsam import LSAM as LSAM
    from evenly.optim.rules.msam import MSAM as MSAM
    from evenly.optim.rules.random import RandomPerturbation as RandomPerturbation
    from evenly.optim.rules.sam import SAM as SAM
    from evenly.optim.rules.usam import USAM as USAM
    from evenly.optim.rules.vasso import VaSSO as VaSSO
    from evenly.optim.rules.wsam import WSAM as WSAM
    from evenly.optim.select import NORMALISATION as NORMALISATION

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        **{known.kind: module_of(name) for name, known in RULES.items()},
        "DisplacedGradient": "evenly.optim.displaced_gradient",
        "NORMALISATION": "evenly.optim.select",
        "SharpnessAware": "evenly.optim.optimizer",
    },
)
