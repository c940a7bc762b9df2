"""Training on the pretended device gives the CPU's bits, resumes to the same bits, and hardly ever waits."""

import functools
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import pretended
import pytest
import torch
from pretended.counting import Count
from safetensors.torch import load_file

from evenly import device as devices
from evenly import memory, rng, rules
from evenly.data import Labelled
from evenly.data import augment as augmenting
from evenly.data import batches as batching
from evenly.data.targeted import Targeted
from evenly.errors import UsageError
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe
from evenly.records import Run
from evenly.training import placement
from evenly.training.build import build_parts, load_data
from evenly.training.deferred import READ_EVERY
from evenly.training.distributed import World
from evenly.training.divergence import Diverged
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.placement import place
from evenly.training.train import train

SMALL = Recipe(data=Data("digit-dominoes"), model=Model("mlp", {"width": 32, "dropout": 0.3}), epochs=1, batch_size=96)
PICTURES = replace(SMALL, model=Model("convnet"), augment=("pad-crop:2", "mirror"), batch_size=16)
RULES = list(rules.RULES)


def looped(recipe: Recipe, path: Path, device: str = "cuda:0", **given: Any) -> Loop:
    world = World.join(device)
    return Loop(build_parts(recipe, world=world, splits=load_data(recipe), **given), Run(path), Interruption())


def weights(recipe: Recipe, path: Path, device: str) -> dict[str, list[float]]:
    kept = load_file(train(recipe, runs=path, device=device).path / "weights.safetensors")
    return {name: tensor.flatten().tolist() for name, tensor in kept.items()}


def test_training_ends_with_the_bits_of_the_cpu(tmp_path: Path) -> None:
    assert weights(SMALL, tmp_path / "a", "cuda:1") == weights(SMALL, tmp_path / "b", "cpu")


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_ends_where_it_does_on_the_cpu_to_rounding(rule: str, tmp_path: Path) -> None:
    recipe = replace(SMALL, ascent=Ascent(rule, 0.05))
    there, here = (train(recipe, runs=tmp_path / where, device=where).path for where in ("cuda:1", "cpu"))
    a, b = (load_file(path / "weights.safetensors") for path in (there, here))
    assert all(torch.allclose(a[name], b[name], rtol=1e-4, atol=1e-5) for name in b)


#: Every transform that a recipe can name, as `test_no_augmentation_is_left_out` makes sure.
AUGMENTATIONS = [
    "pad-crop:2", "mirror", "resize:20", "resized-crop:20", "trivial", "noise:0.1", "erase", "normalise:standard",
]  # fmt: skip


def test_no_augmentation_is_left_out() -> None:
    assert {word.partition(":")[0] for word in AUGMENTATIONS} == {*augmenting._FORMS, "normalise"}


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_every_augmentation_gives_the_pixels_of_the_cpu(augment: str, tmp_path: Path) -> None:
    recipe = replace(PICTURES, augment=(augment,))
    loops = [looped(recipe, tmp_path, device) for device in ("cuda:0", "cpu")]
    for there, here in islice(zip(*(loop.parts.batches.epoch(0) for loop in loops), strict=True), 20):
        assert there.inputs.is_cuda
        assert torch.equal(there.inputs.cpu(), here.inputs)


def test_metrics_of_a_run_are_those_of_the_cpu(tmp_path: Path) -> None:
    there, here = (train(PICTURES, runs=tmp_path / device, device=device).metrics() for device in ("cuda", "cpu"))
    assert there == here


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_dropout_draws_from_the_generator_of_the_device_used_and_of_no_other(device: str, tmp_path: Path) -> None:
    other = rng.default_generator("cuda:1" if device == "cuda:0" else "cuda:0").manual_seed(7).get_state()
    before = rng.default_generator(device).manual_seed(7).get_state()
    first = weights(SMALL, tmp_path / "first", device)
    rng.default_generator(device).manual_seed(8)
    assert weights(SMALL, tmp_path / "second", device) == first
    rng.default_generator(device).set_state(before)
    train(SMALL, runs=tmp_path / "third", device=device)
    assert torch.equal(rng.default_generator(device).get_state(), before)
    index = 1 if device == "cuda:0" else 0
    assert torch.equal(rng.default_generator(f"cuda:{index}").get_state(), other)


@pytest.mark.parametrize(
    ("rule", "precision"),
    [*((rule, "fp32") for rule in ("none", *RULES)), *product(("none", "sam", "gsam", "vasso"), ("bf16", "fp16"))],
)
def test_a_step_waits_for_the_device_once_in_fifty_steps_and_copies_nothing_that_blocks(
    rule: str, precision: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_AT_ONCE", 1)  # as large images would have it: every batch is gathered by itself
    half = precision != "fp32"
    recipe = replace(PICTURES, ascent=Ascent(rule, 0.05), precision=precision, channels_last=half)
    # A scale that does not overflow: until a rule has learned something it is asked whether that is finite.
    monkeypatch.setattr(torch.amp, "GradScaler", functools.partial(torch.amp.GradScaler, init_scale=256.0))
    loop = looped(recipe, tmp_path)
    batches = loop.parts.batches.epoch(0)
    loop.take(next(batches)), loop.take(next(batches))
    with Count() as count:
        for batch in islice(batches, READ_EVERY - 1):
            loop.take(batch)
    assert sum(count.waits.values()) <= 1, count.waits
    assert not count.blocking, count.blocking


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_a_copy_that_does_not_wait_is_of_pinned_memory(
    augment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_PINNING", frozenset())  # as on Apple's GPUs
    recipe = replace(PICTURES, augment=(augment,))
    augmenting._constants.cache_clear()
    with pretended.with_late_copies():
        assert not torch.equal(torch.ones(3).to("cuda:0", non_blocking=True).cpu(), torch.ones(3))
        there, here = (looped(recipe, tmp_path, device).parts.batches.epoch(0) for device in ("cuda:0", "cpu"))
        for a, b in islice(zip(there, here, strict=True), 3):
            assert torch.equal(a.inputs.cpu(), b.inputs)
            assert torch.equal(a.labels.cpu(), b.labels)


def test_augmentation_of_some_examples_never_waits_and_gives_the_pixels_of_the_cpu(tmp_path: Path) -> None:
    data = load_data(PICTURES).train
    hard = torch.arange(len(data)) % 3 == 0
    target = Targeted(augmenting.Augmentation.parse(["noise:0.2", "erase"]), hard)
    made = [
        batching.Batches(place(data, torch.device(where)), batch_size=16, seed=0, targeted=target, device=where)
        for where in ("cuda:0", "cpu")
    ]
    there, here = (batches.epoch(0) for batches in made)
    with Count() as count:
        found = [batch.inputs for batch in islice(there, 12)]
    assert not count.waits, count.waits
    assert not count.blocking, count.blocking
    assert all(torch.equal(a.cpu(), b.inputs) for a, b in zip(found, here, strict=False))


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_augmentation_never_waits(augment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_AT_ONCE", 1)
    loop = looped(replace(PICTURES, augment=(augment,)), tmp_path)
    batches = loop.parts.batches.epoch(0)
    next(batches)
    with Count() as count:
        list(islice(batches, 12))
    assert not count.waits, count.waits
    assert not count.blocking, count.blocking


def test_a_step_whose_loss_is_not_finite_is_named_though_it_is_read_late(tmp_path: Path) -> None:
    loop = looped(replace(PICTURES, augment=()), tmp_path)

    def go_on() -> None:
        for number, batch in enumerate(loop.parts.batches.epoch(0), 1):
            if number == 8:
                batch.inputs.fill_(float("nan"))
            loop.take(batch)

    with pytest.raises(Diverged, match=r"the loss is nan at step 8 "):
        go_on()


def test_a_default_run_works_on_a_device_without_float64(tmp_path: Path) -> None:
    from evenly import device

    device._has_float64.cache_clear()
    try:
        with pretended.without_float64():
            there = train(PICTURES, runs=tmp_path / "a", device="cuda")
            sam = train(replace(SMALL, ascent=Ascent("sam", 0.05)), runs=tmp_path / "a", device="cuda")
    finally:
        device._has_float64.cache_clear()
    here = train(PICTURES, runs=tmp_path / "b", device="cpu")
    assert there.metrics() == here.metrics()
    expected = train(replace(SMALL, ascent=Ascent("sam", 0.05)), runs=tmp_path / "b", device="cpu").metrics()
    assert sam.metrics()[-1] == pytest.approx(expected[-1], rel=1e-4)


def test_displacing_and_restoring_are_a_launch_each(tmp_path: Path) -> None:
    plain, sam = (looped(replace(PICTURES, ascent=Ascent(rule, 0.05)), tmp_path) for rule in ("none", "sam"))
    counts = []
    for loop in (plain, sam):
        batches = loop.parts.batches.epoch(0)
        loop.take(next(batches))
        batch = next(batches)
        with Count() as count:
            loop.take(batch)
        counts.append(count.kernels)
    once, twice = counts
    kept = [t.data_ptr() for t in sam.parts.ascent.aside]
    sam.take(batch)
    assert [t.data_ptr() for t in sam.parts.ascent.aside] == kept  # the memory is not asked for again
    assert twice["_foreach_copy_"] <= 2, twice
    assert twice["clone"] == once["clone"], twice
    assert twice["_foreach_add_"] <= 1, twice


def test_the_record_names_the_device_that_was_used(tmp_path: Path) -> None:
    run = train(replace(SMALL, optimizer=Optimizer(lr=0.05)), runs=tmp_path, device="cuda:1")
    used = run.stamps()[-1]["device"]
    assert (used["kind"], used["name"], used["tf32_convolutions"]) == ("cuda:1", "Pretended GPU", True)


def test_data_that_do_not_fit_the_device_are_sent_batch_by_batch_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [batch.inputs.cpu() for batch in islice(looped(PICTURES, tmp_path).parts.batches.epoch(0), 5)]
    monkeypatch.setattr(memory, "budget", lambda _: 1000)
    monkeypatch.setattr(batching, "_AT_ONCE", 1)
    parts = looped(PICTURES, tmp_path).parts
    assert parts.batches.data.labels.is_cpu
    epoch = parts.batches.epoch(0)
    with Count() as first:
        found = [next(epoch).inputs]
    batch_bytes = found[0].numel()  # of uint8
    assert sum(first.beside.values()) == 2 * batch_bytes  # the next one is on its way already
    with Count() as count:
        found += [batch.inputs for batch in islice(epoch, 4)]
    assert not count.blocking, count.blocking
    assert not count.waits, count.waits
    assert sum(count.beside.values()) == 4 * batch_bytes, count.beside
    assert all(torch.equal(a.cpu(), b) for a, b in zip(found, expected, strict=True))


def test_weights_of_examples_go_to_the_device_once_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_AT_ONCE", 1)
    recipe = replace(PICTURES, augment=())
    weights = 1 + torch.arange(len(load_data(recipe).train)) % 2.0
    there, here = (looped(recipe, tmp_path, device, weights=weights) for device in ("cuda:0", "cpu"))
    batches = there.parts.batches.epoch(0)
    there.take(next(batches))
    with Count() as count:
        for batch in islice(batches, 10):
            there.take(batch)
    assert not count.sent, count.sent
    for batch in islice(here.parts.batches.epoch(0), 11):
        here.take(batch)
    pairs = zip(there.parts.model.parameters(), here.parts.model.parameters(), strict=True)
    assert all(torch.equal(a.cpu(), b) for a, b in pairs)


def test_evaluation_sends_the_images_of_a_split_once(tmp_path: Path) -> None:
    loop = looped(PICTURES, tmp_path)
    first = loop.outputs("test")
    with Count() as count:
        assert torch.equal(loop.outputs("test"), first)
        loop.outputs("train")
    rows = len(loop.parts.splits["test"]) + len(loop.parts.splits.train)
    assert not count.beside, count.beside
    assert sum(count.sent.values()) <= 32 * rows, count.sent  # positions and such, but no image of 128 bytes


@pytest.fixture
def folder(tmp_path: Path) -> str:
    from PIL import Image

    for number in range(24):
        place = tmp_path / "images" / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number * 10, 0, 255 - number * 10)).save(place)
    return str(tmp_path / "images")


def test_files_are_decoded_by_the_cores_that_are_left_while_a_gpu_computes(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_data(replace(SMALL, data=Data(folder))).train

    def chosen(device: str, cores: int, data: Labelled = data) -> int:
        monkeypatch.setattr(placement, "usable_cores", lambda: cores)
        return placement.default_workers(data, torch.device(device))

    assert [chosen("cuda:0", cores) for cores in (1, 3, 64)] == [0, 2, 8]
    assert chosen("cpu", 64) == 0
    assert chosen("cuda:0", 64, load_data(SMALL).train) == 0  # in memory already
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert chosen("cuda:0", 16) == 3
    monkeypatch.setattr(placement.multiprocessing, "get_start_method", lambda: "spawn")
    assert chosen("cuda:0", 64) == 0  # this is a script, which a new process would run again


def test_decoded_files_are_sent_ahead_by_workers_to_the_bits_of_the_cpu(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(SMALL, data=Data(folder), model=Model("mlp"), batch_size=4)
    monkeypatch.setattr(placement, "usable_cores", lambda: 3)
    monkeypatch.setattr(torch._utils, "cpu_count", lambda: 3)  # torch warns of more workers than there are cores
    there, here = (looped(recipe, tmp_path, device).parts.batches for device in ("cuda:0", "cpu"))
    for a, b in zip(there.epoch(0), here.epoch(0), strict=True):
        assert torch.equal(a.inputs.cpu(), b.inputs)


def test_a_run_goes_on_on_another_device_only_if_that_is_allowed(tmp_path: Path) -> None:
    def stop(_: Any) -> bool:
        raise KeyboardInterrupt

    recipe = replace(SMALL, epochs=2)
    given = {"runs": tmp_path, "enough": stop, "pace": 0.0}
    with pytest.raises(KeyboardInterrupt):
        train(recipe, device="cuda:1", **given)
    with pytest.raises(UsageError, match=r"device was cuda \(Pretended GPU\) and is cpu.*--allow device"):
        train(recipe, device="cpu", **given)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, device="cuda:0", **given)  # of the same kind
    with pytest.raises(KeyboardInterrupt):
        train(recipe, device="cpu", allow=["device"], **given)
