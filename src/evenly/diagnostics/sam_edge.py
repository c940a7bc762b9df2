"""SAM's edge of stability, which depends on the norm of the gradient (Long & Bartlett, 2023)."""

import math

from evenly import tree
from evenly.curvature import hessian, lanczos
from evenly.curvature.chunks import as_chunks
from evenly.curvature.losses import loss_and_gradient, mean_loss_of
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


def sam_edge(
    gradient_norm: float,
    *,
    lr: float,
    rho: float,
    momentum: float = 0.0,
    nesterov: bool = False,
    dampening: float = 0.0,
) -> float:
    """The λ₁ at which full-batch SAM is at its edge of stability (Long & Bartlett, 2023, section 2).

        (‖g‖/2ρ)(√(1 + 8ρ/(η‖g‖)) − 1), the positive root of ηλ(1 + ρλ/‖g‖) = 2.

    For ρ → 0 it is gradient descent's 2/η; as the gradient shrinks, SAM's edge falls far below that. Momentum β, as in
    `torch.optim.SGD`, replaces 2 by 2(1 + β)/(1 − τ) with dampening τ, and by 2(1 + β)/(1 + 2β) if it is Nesterov's.

    >>> round(sam_edge(1.0, lr=1.0, rho=1.0), 9)
    1.0
    >>> round(sam_edge(1.0, lr=0.1, rho=1e-9), 5)
    20.0
    >>> round(sam_edge(1.0, lr=0.1, rho=0.0, momentum=0.9), 5)
    38.0
    """
    for name, value in (("gradient_norm", gradient_norm), ("lr", lr), ("rho", rho)):
        if not (0 <= value < math.inf if name == "rho" else 0 < value < math.inf):
            raise UsageError(f"{name} = {value}: give a positive, finite number.")
    for name, value in (("momentum", momentum), ("dampening", dampening)):
        if not 0 <= value < 1:
            raise UsageError(f"{name} = {value}: give a number from 0 up to, not including, 1.")
    if nesterov and (dampening or not momentum):
        raise UsageError("nesterov needs momentum above 0 and no dampening, as in torch.optim.SGD.")
    kept = 1 + 2 * momentum if nesterov else 1 - dampening if momentum else 1.0
    limit = 2 * (1 + momentum) / (kept * lr)  # 2/η without momentum
    if rho == 0:
        return limit
    # Multiplied by the conjugate, so that small ρ cancels nothing.
    return 2 * limit / (1 + math.sqrt(1 + 4 * limit * rho / gradient_norm))


def measure_sam_edge(subject: Subject) -> Numbers:
    """The edge at the network's gradient norm, together with its λ₁."""
    settings = {"rho": subject.rho, "lr": subject.lr, **subject.options}
    if settings["lr"] is None:
        raise UsageError('sam_edge needs the learning rate: give lr=, or options={"sam_edge": {"lr": 0.1}}.')
    loss = settings.pop("loss", None)
    params = list(trainable_parameters(subject.model).values())
    with observing(subject.model):
        chunks = as_chunks(subject.part, model=subject.model)
        mean = mean_loss_of(subject.model, chunks, loss)
        _, gradient = loss_and_gradient(subject.model, params, chunks, mean)
        top = lanczos(hessian(subject.model, subject.part, loss=loss), k=1, rng=subject.rng)
    norm, lambda_max = float(tree.norm(gradient)), float(top.values[0])
    edge = sam_edge(max(norm, 1e-300), **settings)
    return {
        "sam_edge": edge,
        "sam_edge_descent": sam_edge(1.0, **{**settings, "rho": 0.0}),
        "sam_edge_lambda_max": lambda_max,
        "sam_edge_gradient_norm": norm,
        "sam_edge_lr": settings["lr"],
        "sam_edge_rho": settings["rho"],
        "sam_edge_momentum": settings.get("momentum", 0.0),
        "lambda_max_over_edge": lambda_max / edge,
    }
