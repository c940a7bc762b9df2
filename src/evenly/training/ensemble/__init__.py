"""Many small runs as one: seeds × ρ × data × learning rates in a single ensemble."""

from evenly.training.ensemble.ensemble import Ensemble
from evenly.training.ensemble.recorded import Recorded

__all__ = ["Ensemble", "Recorded"]
