"""Curvature of a network on data: products, eigenvalues, densities, Fisher, per-example gradients and their Gram."""

# Imported eagerly: functions share the names of their modules, so a lazy look-up would return the module.
from evenly.curvature.density import Density as Density
from evenly.curvature.density import density as density
from evenly.curvature.fisher import fisher as fisher
from evenly.curvature.gauss_newton import gauss_newton as gauss_newton
from evenly.curvature.gram import block_gram as block_gram
from evenly.curvature.gram import gram as gram
from evenly.curvature.hessian import hessian as hessian
from evenly.curvature.lanczos import Eigenpairs as Eigenpairs
from evenly.curvature.lanczos import lanczos as lanczos
from evenly.curvature.operator import Operator as Operator
from evenly.curvature.per_example import per_example_gradients as per_example_gradients
from evenly.models.observation import observing as observing
