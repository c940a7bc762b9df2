"""The Fisher information of a network, true and empirical: how much the examples say about the weights."""

from evenly.curvature import fisher, lanczos
from evenly.diagnostics.subject import Numbers, Subject
from evenly.diagnostics.trace import deflated_trace
from evenly.models.observation import observing


def measure_fisher(subject: Subject) -> Numbers:
    """Trace (with its error) and largest eigenvalue of the Fisher matrix, and of the empirical one."""
    numbers: Numbers = {}
    with observing(subject.model):
        for name, labels in (("fisher", "model"), ("empirical_fisher", "data")):
            operator = fisher(subject.model, subject.part, **{"labels": labels, **subject.options})
            trace, error = deflated_trace(operator, rng=subject.rng)
            top = lanczos(operator, k=1, rng=subject.rng)
            numbers |= {
                f"{name}_trace": trace,
                f"{name}_trace_error": error,
                f"{name}_lambda_max": float(top.values[0]),
            }
    return numbers
