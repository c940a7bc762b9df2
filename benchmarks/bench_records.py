"""Records: what the checksums of a run's files cost where they are read."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.harness import benchmark, interleaved
from evenly import load_run
from evenly.recipe import Data, Model, Recipe
from evenly.records import seal
from evenly.training.train import train


@benchmark(
    "records-checksum",
    claim="checking the identity and the checksum of the weights of a PreAct ResNet-18 (45 MB), against `load_run`, "
    "which checks them and loads the network: time",
    at_most=0.05,
    repeats=25,
)
def checksum() -> Iterator[float]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe(data=Data("digits"), model=Model("preact-resnet18"), epochs=1, batch_size=512)
        run = train(recipe, runs=folder, device="cpu", pace=0)
        weights = Path(run.path) / "weights.safetensors"
        key = str((run.identity or {})["id"])
        yield from interleaved(lambda: seal.check(weights, run=key, remedy=""), lambda: load_run(run.path))
