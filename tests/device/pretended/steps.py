"""`python -m pretended.steps RULE`: operations and waits of a step of ResNet-18, and of bare passes written by hand.

`python -m pretended.steps crop`: what the host makes of a batch of resized crops, and what dense weights would take.
"""

import json
import sys
import tempfile
from itertools import islice
from pathlib import Path

import torch
from torch.nn import functional

import pretended  # noqa: F401  # before torch
from evenly.data import Labelled, Splits
from evenly.data.augment import Augmentation, Draws
from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.records import Run
from evenly.training.build import build_parts
from evenly.training.deferred import READ_EVERY
from evenly.training.distributed import World
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from pretended.counting import Count, HostBytes

NETWORK = Model("resnet18", {})


def data(num: int = 2 * (READ_EVERY + 2)) -> Splits:
    """Random pictures, two to a batch."""
    rng = torch.Generator().manual_seed(0)
    images = torch.randint(256, (num, 3, 8, 8), generator=rng, dtype=torch.uint8)
    part = Labelled(images, torch.randint(10, (num,), generator=rng), tuple("0123456789"))
    return Splits("random", {"train": part, "test": part})


def counts(rule: str) -> dict[str, float]:
    """Operations of a step, those of its passes alone with one optimizer step, and waits in fifty steps."""
    recipe = Recipe(data=Data("random"), model=NETWORK, batch_size=2, augment=(), ascent=Ascent(rule, 0.05))
    with tempfile.TemporaryDirectory() as scratch:
        parts = build_parts(recipe, world=World(device=torch.device("cuda:0")), splits=data())
        loop = Loop(parts, Run(Path(scratch)), Interruption())
        batches = parts.batches.epoch(0)
        loop.take(next(batches))
        with Count() as whole:
            for batch in islice(batches, READ_EVERY - 1):
                loop.take(batch)
        x, y = batch.inputs, batch.labels
        with Count() as bare:
            for _ in range(1 if rule == "none" else 2):
                parts.optimizer.zero_grad()
                functional.cross_entropy(parts.model(x), y).backward()
            parts.optimizer.step()
    return {
        "operations": whole.kernels.total() / (READ_EVERY - 1),
        "bare": bare.kernels.total(),
        "waits": whole.waits.total(),
    }


def crop_counts(num: int = 128, full: int = 256, size: int = 224) -> dict[str, float]:
    """Bytes that the host makes to crop and resize a batch on the device; and those of weights for all pixels.

    Dense weights, as the host would make them in float64: a triangle over each of `size` outputs has a height at each
    of `full` pixels, for every image, across and down; they are rounded and sent in float32.
    """
    images = torch.zeros(num, 3, full, full, dtype=torch.uint8, device="cuda:0")
    crop, index = Augmentation.parse([f"resized-crop:{size}"]), torch.arange(num)
    with HostBytes() as host:
        crop.transform(images, Draws(0, 0, index))
    heights = 2 * num * size * full
    return {"made": host.made, "dense": heights * (8 + 4)}


if __name__ == "__main__":
    print(json.dumps(crop_counts() if sys.argv[1] == "crop" else counts(sys.argv[1])))
