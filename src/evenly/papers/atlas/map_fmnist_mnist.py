"""The atlas on 5,000 examples of fmnist-mnist with multilayer perceptrons."""

from evenly.papers.atlas.tasks import Minority, Task, experiment

_MINORITIES: tuple[tuple[Minority, float], ...] = (("lacking", 0.2), ("conflicting", 0.05), ("noisy", 0.1))

TASKS = tuple(Task("fmnist-mnist", minority, share, 5000, prefix="fmnist-") for minority, share in _MINORITIES)
EXPERIMENTS = tuple(experiment(task, scale="full", minutes=45.0, data=("fmnist-mnist",), value=2.0) for task in TASKS)
