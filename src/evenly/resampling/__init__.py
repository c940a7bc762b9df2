"""USEFUL: find the examples that a network does not learn early, and show them more often.

`separate` splits each class, `moment` says when, `multiset` and `exports` carry the result into any trainer,
`baselines` are the controls, and `health` checks a separation before anything is upsampled.
"""

from typing import TYPE_CHECKING

from evenly.lazy import attach

if TYPE_CHECKING:
    from evenly.resampling.agreement import Agreement as Agreement
    from evenly.resampling.partition import separate as separate
    from evenly.resampling.separation import Separation as Separation
    from evenly.resampling.separation import SeparationWarning as SeparationWarning
    from evenly.resampling.storage import load as load
    from evenly.resampling.storage import save as save

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Agreement": "evenly.resampling.agreement",
        "Separation": "evenly.resampling.separation",
        "SeparationWarning": "evenly.resampling.separation",
        "load": "evenly.resampling.storage",
        "save": "evenly.resampling.storage",
        "separate": "evenly.resampling.partition",
    },
)
