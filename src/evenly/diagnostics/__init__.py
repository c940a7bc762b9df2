"""Instruments for what a network has learned; each returns plain data and leaves the model as it found it."""

# Not lazily: functions here bear the names of their modules, and a lazy look-up would find the module.
from evenly.diagnostics.alignment import Alignment as Alignment
from evenly.diagnostics.alignment import alignment as alignment
from evenly.diagnostics.dynamics import Dynamics as Dynamics
from evenly.diagnostics.features import features as features
from evenly.diagnostics.importance import Importance as Importance
from evenly.diagnostics.importance import importance as importance
from evenly.diagnostics.importance import importance_weights as importance_weights
from evenly.diagnostics.inequality import MedianMap as MedianMap
from evenly.diagnostics.inequality import gini as gini
from evenly.diagnostics.inequality import lorenz as lorenz
from evenly.diagnostics.inequality import median_map as median_map
from evenly.diagnostics.learning_order import Learned as Learned
from evenly.diagnostics.learning_order import learning_order as learning_order
from evenly.diagnostics.measuring import measure as measure
from evenly.diagnostics.phantom import Reweighting as Reweighting
from evenly.diagnostics.phantom import reweighting as reweighting
from evenly.diagnostics.probe import Probe as Probe
from evenly.diagnostics.probe import fit_probe as fit_probe
from evenly.diagnostics.probing_error import probing_error as probing_error
from evenly.diagnostics.probing_error import probing_errors as probing_errors
from evenly.diagnostics.rank import feature_rank as feature_rank
from evenly.diagnostics.reliance import Reliance as Reliance
from evenly.diagnostics.reliance import reliance as reliance
from evenly.diagnostics.sharpness import Rise as Rise
from evenly.diagnostics.sharpness import Sharpness as Sharpness
from evenly.diagnostics.sharpness import l1_norm as l1_norm
from evenly.diagnostics.sharpness import sharpness as sharpness
from evenly.diagnostics.sharpness import worst_rise as worst_rise
