"""The atlas on digit-dominoes with a small convolutional network."""

from evenly.papers.atlas.tasks import Minority, Task, experiment

_MINORITIES: tuple[tuple[Minority, float], ...] = (("lacking", 0.2), ("conflicting", 0.05), ("noisy", 0.1))

TASKS = tuple(
    Task("digit-dominoes", minority, share, 800, model="convnet", network={}, prefix="convnet-")
    for minority, share in _MINORITIES
)
EXPERIMENTS = tuple(experiment(task, scale="full", minutes=3.1, value=2.0) for task in TASKS)
