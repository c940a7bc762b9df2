"""The atlas on digit-dominoes with multilayer perceptrons: three kinds of minority, four shares, two sizes."""

from evenly.papers.atlas.tasks import Minority, Task, experiment

_SHARES: dict[Minority, tuple[float, ...]] = {
    "lacking": (0.05, 0.1, 0.2, 0.4),
    "conflicting": (0.02, 0.05, 0.1, 0.2),
    "noisy": (0.02, 0.05, 0.1, 0.2),
}
# Fewer examples make the hard feature harder to learn.
_SIZES = {"": 800, "-few": 400}

TASKS = tuple(
    Task("digit-dominoes", minority, share, size, suffix=suffix)
    for minority, shares in _SHARES.items()
    for share in shares
    for suffix, size in _SIZES.items()
)
EXPERIMENTS = tuple(
    experiment(task, scale="small", minutes=3.0 if task.size == 800 else 1.5, value=2.0) for task in TASKS
)
