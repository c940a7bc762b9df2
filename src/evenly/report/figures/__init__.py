"""A chart for every measurement, from the plain numbers in a run's records; never imports torch.

Each function returns a `Chart`, or None if the records lack its numbers.
"""

from evenly.report.figures.diagnostics import layer_probes as layer_probes
from evenly.report.figures.diagnostics import mode_connectivity as mode_connectivity
from evenly.report.figures.diagnostics import numbers as numbers
from evenly.report.figures.diagnostics import worst_groups as worst_groups
from evenly.report.figures.features import feature_rank as feature_rank
from evenly.report.figures.features import importance_map as importance_map
from evenly.report.figures.features import lorenz as lorenz
from evenly.report.figures.features import probing as probing
from evenly.report.figures.features import reliance as reliance
from evenly.report.figures.geometry import over_training as over_training
from evenly.report.figures.geometry import spectrum as spectrum
from evenly.report.figures.geometry import stability_position as stability_position
from evenly.report.figures.separation import cluster_losses as cluster_losses
from evenly.report.figures.separation import cluster_sizes as cluster_sizes
from evenly.report.figures.separation import moment as moment
from evenly.report.figures.separation import separation_view as separation_view
from evenly.report.figures.training import cluster_curves as cluster_curves
from evenly.report.figures.training import error_by_method as error_by_method
from evenly.report.figures.training import group_errors as group_errors
from evenly.report.figures.training import training_curves as training_curves
