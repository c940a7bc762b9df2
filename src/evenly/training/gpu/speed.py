"""Whether a device is kept busy: waits per step, steps per second beside a bare step, and memory."""

import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from evenly import device as devices
from evenly import models, rng
from evenly.data import Labelled, Splits
from evenly.errors import SetupError
from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.records import Run
from evenly.training.build import build_parts
from evenly.training.distributed import World
from evenly.training.evaluate import autocast
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.out_of_memory import explain_out_of_memory

STEPS, WARM = 50, 10
RECIPE = Recipe(data=Data("gpu"), model=Model("resnet18"), augment=("pad-crop:4", "mirror"), batch_size=128)


def waits(device: torch.device) -> tuple[str, bool]:
    """How often 50 steps wait, as `torch.cuda.set_sync_debug_mode` counts; once per rule is right."""
    if device.type != "cuda":
        return f"not known: torch tells it of cuda only, not of {device.type}", True
    waits_by_rule = {}
    for rule in ("none", "sam"):
        with _steps(_fast(device, Ascent(rule, 0.05)), device) as take:
            take(WARM)
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                try:
                    take(STEPS)
                finally:
                    torch.cuda.set_sync_debug_mode("default")
        waits_by_rule[rule] = sum("synchroniz" in str(warning.message) for warning in heard)
    return f"SGD {waits_by_rule['none']}, SAM {waits_by_rule['sam']} in {STEPS} steps", max(waits_by_rule.values()) <= 2


def steps_per_second(device: torch.device) -> tuple[str, bool]:
    """Steps of evenly, SGD and SAM, beside a bare step of the same network and precision."""
    bare = _bare(device)
    rates = {}
    for name, rule in (("SGD", "none"), ("SAM", "sam")):
        with _steps(_fast(device, Ascent(rule, 0.05)), device) as take:
            take(WARM)
            rates[name] = _per_second(take, device)
    words = ", ".join(f"{name} {value:.1f}" for name, value in rates.items())
    # Compilation and augmentation are part of the difference: this row only informs, and never fails.
    return f"{words}; bare {bare[0]} step {bare[1]:.1f}", True


def peak_memory(device: torch.device) -> tuple[str, bool]:
    """The peak memory of steps, and whether a batch that cannot fit gives a helpful error."""
    module = torch.get_device_module(device)
    if not hasattr(module, "max_memory_allocated"):
        return f"not known: torch does not tell it of {device.type}", True
    module.reset_peak_memory_stats(device)
    with _steps(_fast(device, Ascent("sam", 0.05)), device) as take:
        take(2)
        peak = module.max_memory_allocated(device)
    try:
        with explain_out_of_memory(RECIPE, device):
            torch.empty(1 << 60, dtype=torch.uint8, device=device)
    except SetupError:
        return f"{peak / 1e6:.0f} MB for ResNet-18, batch {RECIPE.batch_size}, SAM; running out is a sentence", True
    return "memory beyond any device was given", False


def _fast(device: torch.device, ascent: Ascent) -> Recipe:
    half = "fp32" if device.type != "cuda" else "bf16" if devices.has_bfloat16(device) else "fp16"
    return replace(RECIPE, ascent=ascent, precision=half, channels_last=device.type == "cuda")  # type: ignore[arg-type]  # one of its words


@contextlib.contextmanager
def _steps(recipe: Recipe, device: torch.device) -> Iterator[Callable[[int], None]]:
    """Within the context, a function that takes the given number of steps of a run."""
    world = World(device=device)
    with tempfile.TemporaryDirectory() as scratch, rng.fork_generators([device]), devices.repeatable(False, device):
        loop = Loop(build_parts(recipe, world=world, splits=_pictures()), Run(Path(scratch)), Interruption())
        batches = _endless(loop)

        def take(num: int) -> None:
            for batch in islice(batches, num):
                loop.take(batch)

        yield take


def _endless(loop: Loop) -> Iterator[Any]:
    for epoch in range(1 << 30):
        yield from loop.parts.batches.epoch(epoch)


def _pictures() -> Splits:
    """Random pictures: their content does not affect the timing."""
    draw = rng.generator(0, "gpu", "pictures")
    images = torch.randint(256, (8 * RECIPE.batch_size, 3, 32, 32), generator=draw, dtype=torch.uint8)
    labels = torch.randint(10, (len(images),), generator=draw)
    classes = tuple(str(label) for label in range(10))
    train, test = (Labelled(x, y, classes) for x, y in ((images, labels), (images[:10], labels[:10])))
    return Splits("gpu", {"train": train, "test": test})


def _bare(device: torch.device) -> tuple[str, float]:
    """A step written by hand, compiled where torch can: an upper bound for the loop."""
    recipe = _fast(device, Ascent())
    built = models.build(recipe.model.name, input_shape=(3, 32, 32), num_classes=10, rng=rng.generator(0, "gpu"))
    model = built.to(device)
    layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(memory_format=layout)  # type: ignore[call-overload]  # missing in torch's stubs
    x = torch.rand(recipe.batch_size, 3, 32, 32, device=device).contiguous(memory_format=layout)
    y = torch.zeros(recipe.batch_size, dtype=torch.int64, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, foreach=True)

    def stepper(forward: Any) -> Callable[[int], None]:
        def take(num: int) -> None:
            for _ in range(num):
                optimizer.zero_grad()
                with autocast(device, recipe.precision):
                    loss = functional.cross_entropy(forward(x), y)
                loss.backward()  # type: ignore[no-untyped-call]  # torch's own
                optimizer.step()

        return take

    for kind, forward in (("compiled", torch.compile(model)), ("eager", model)):
        try:
            take = stepper(forward)
            take(WARM)
        except Exception:  # no compiler here, or none for this device
            continue
        return kind, _per_second(take, device)
    raise RuntimeError("a plain step of torch fails on this device")


def _per_second(take: Callable[[int], None], device: torch.device) -> float:
    world = World(device=device)
    rates = []
    for _ in range(3):
        world.finish()
        start = time.perf_counter()
        take(STEPS)
        world.finish()
        rates.append(STEPS / (time.perf_counter() - start))
    return max(rates)
