"""Sharpness-aware gradients: SAM and its family, LSAM in one pass, Springer's interventions."""

from evenly.optim.face import SharpnessAware
from evenly.optim.family import ASAM, GSAM, MSAM, SAM, USAM, FriendlySAM, LookSAM, RandomPerturbation
from evenly.optim.interventions import Intervention
from evenly.optim.last_layer import LSAM
from evenly.optim.select import NORMALISATION

__all__ = [
    "ASAM",
    "GSAM",
    "LSAM",
    "MSAM",
    "NORMALISATION",
    "SAM",
    "USAM",
    "FriendlySAM",
    "Intervention",
    "LookSAM",
    "RandomPerturbation",
    "SharpnessAware",
]
