"""The spectral density of the Hessian as `measure` reports it: a curve and its tail."""

from evenly.curvature import density, hessian
from evenly.diagnostics.subject import Numbers, Subject
from evenly.models.observation import observing

TAIL = 0.1  # share of the largest eigenvalue: eigenvalues above it are outliers


def measure_density(subject: Subject) -> Numbers:
    """The spectral density of the Hessian on a grid, and its tail."""
    options = dict(subject.options)
    with observing(subject.model):
        operator = hessian(subject.model, subject.part, loss=options.pop("loss", None), chunk=options.pop("chunk", 250))
        spectrum = density(operator, rng=subject.rng, **{"probes": 4, "steps": 40, **options})
    grid_X, values_X, width = spectrum.grid()
    above = TAIL * float(spectrum.nodes.max())
    return {
        "density": {"grid": grid_X.tolist(), "values": values_X.tolist(), "width": width},
        "tail": {
            "above": above,
            "share": spectrum.share_above(above),
            "trace": spectrum.trace_above(above),
            "negative": spectrum.trace - spectrum.trace_above(0.0),  # the contribution of negative eigenvalues
        },
    }
