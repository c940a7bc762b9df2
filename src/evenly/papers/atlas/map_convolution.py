"""The atlas on digit-dominoes with a small convolutional network."""

from evenly.papers.atlas.tasks import Minority, Task, experiment

_TASKS: tuple[tuple[Minority, float], ...] = (("lacking", 0.2), ("conflicting", 0.05), ("noisy", 0.1))

EXPERIMENTS = tuple(
    experiment(
        Task("digit-dominoes", minority, share, 800, model="convnet", network={}, prefix="convnet-"),
        scale="full",
        minutes=60.0,
        value=2.0,
    )
    for minority, share in _TASKS
)
