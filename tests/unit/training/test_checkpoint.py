"""Checkpoints, weights and outputs are of their run, and as it wrote them; anything else is refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from evenly.errors import DataError, SetupError, UsageError
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Until
from evenly.records import Run, seal
from evenly.training import checkpoint
from evenly.training.early import early_recipe, load_outputs
from evenly.training.loop import LAST, Loop
from evenly.training.train import train
from evenly.training.trained_model import load_trained

SMALL = Recipe(
    data=Data("parity", {"dim": 5}),
    model=Model("mlp", {"width": 4, "depth": 1}),
    optimizer=Optimizer("adamw", lr=0.01, options={"betas": [0.9, 0.95]}),
    ascent=Ascent("gsam"),
    epochs=3,
    batch_size=50,
)


class Enough(Exception):
    """Stops a run where a test wants it stopped."""


def stopped(recipe: Recipe, runs: Path) -> Run:
    """A run with a checkpoint, stopped after its first epoch."""

    def stop(loop: Loop, history: list[object]) -> bool:
        if history:
            raise Enough
        return False

    before = set(runs.glob("*"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_is_enough", stop)
        with pytest.raises(Enough):
            train(recipe, runs=runs, device="cpu", pace=0)
    (folder,) = set(runs.glob("*")) - before
    return Run(folder)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return stopped(SMALL, tmp_path)


def flipped(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_of_another_run_is_refused(run: Run, tmp_path: Path) -> None:
    other = stopped(Recipe(**{**vars(SMALL), "seed": 1}), tmp_path)
    shutil.copy(other.path / LAST, run.path / LAST)
    with pytest.raises(DataError, match=rf"was written by run {other.id}, not by run {run.id}. Remove it: the same"):
        train(SMALL, runs=tmp_path, device="cpu")
    (run.path / LAST).unlink()  # as it says
    assert train(SMALL, runs=tmp_path, device="cpu").state == "done"


def test_a_flipped_bit_anywhere_is_found(run: Run, tmp_path: Path) -> None:
    path = run.path / LAST
    whole = path.read_bytes()
    for place in [*range(0, 200, 7), *range(200, len(whole), len(whole) // 60)]:
        flipped(path, place)
        with pytest.raises(DataError, match=r"last.safetensors"):
            checkpoint.load(run, LAST)
        path.write_bytes(whole)
    for size in (0, 4, 8, 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"last.safetensors"):
            checkpoint.load(run, LAST)
    flipped_in_training = len(whole) - 9
    path.write_bytes(whole)
    flipped(path, flipped_in_training)
    with pytest.raises(DataError, match=r"is damaged or truncated \(its checksum does not match its content\). Remove"):
        train(SMALL, runs=tmp_path, device="cpu")


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree of mappings and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def reached(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def without(tree: Any, path: tuple[Any, ...], *values: Any) -> Any:
    """The tree with what stands at a place dropped, or replaced by a value."""
    key, *rest = path
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if rest:
        copy[key] = without(copy[key], tuple(rest), *values)
    elif values:
        copy[key] = values[0]
    else:
        del copy[key]
    return copy


def test_every_missing_or_replaced_piece_of_a_checkpoint_is_refused_before_it_is_used(run: Run, tmp_path: Path) -> None:
    state = checkpoint.load(run, LAST)
    found = list(places(state))
    assert len(found) > 40
    assert {path[0] for path in found} >= {"epoch", "step", "model", "optimizer", "ascent", "sums", "lines", "world"}
    for path in found:
        for values in ((), ("x",), (None,), (10**9,), (torch.zeros(7),)):
            if values == (None,) and reached(state, path) is None:
                continue
            changed = without(state, path, *values)
            checkpoint.save(run, LAST, changed)
            with pytest.raises(DataError, match=r"content is missing or changed. Remove it"):
                checkpoint.refuse_incomplete(run.path / LAST, checkpoint.load(run, LAST))
    run.close()


@pytest.mark.parametrize("gone", ["epoch", "step", "model", "optimizer", "ascent", "sums", "lines", "world", "seconds"])
def test_a_checkpoint_of_another_version_that_lacks_something_is_refused(gone: str, run: Run, tmp_path: Path) -> None:
    state = {name: value for name, value in checkpoint.load(run, LAST).items() if name not in (gone, "contents")}
    checkpoint.save(run, LAST, checkpoint.with_contents(state))  # consistent in itself
    run.close()
    with pytest.raises(DataError, match=r"does not fit its run.*Remove it"):
        train(SMALL, runs=tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [("epoch", "x"), ("step", 7), ("batch", -1), ("lines", 3), ("sums", torch.zeros(5)), ("model", {})],
)
def test_a_checkpoint_that_stands_nowhere_in_training_is_refused(
    name: str, value: Any, run: Run, tmp_path: Path
) -> None:
    state = {k: v for k, v in checkpoint.load(run, LAST).items() if k != "contents"}
    checkpoint.save(run, LAST, checkpoint.with_contents(state | {name: value}))
    run.close()
    with pytest.raises(DataError, match=r"does not fit its run"):
        train(SMALL, runs=tmp_path, device="cpu")


def test_the_checkpoint_of_a_run_that_was_killed_at_its_very_end_does_not_stay(run: Run, tmp_path: Path) -> None:
    left = (run.path / LAST).read_bytes()
    train(SMALL, runs=tmp_path, device="cpu")
    (run.path / LAST).write_bytes(left)
    train(SMALL, runs=tmp_path, device="cpu")
    assert not (run.path / LAST).exists()


def test_weights_and_outputs_of_other_runs_or_damaged_ones_are_refused(tmp_path: Path) -> None:
    plain = Recipe(**{**vars(SMALL), "keep_epochs": (1,)})
    first, other = (train(Recipe(**{**vars(plain), "seed": s}), runs=tmp_path, device="cpu") for s in (0, 1))
    early, twin = (
        train(early_recipe(Recipe(**{**vars(SMALL), "seed": s}), Until("epoch", 1)), runs=tmp_path, device="cpu")
        for s in (0, 1)
    )
    readers = {
        "weights.safetensors": (first, other, lambda: load_trained(first)),
        "checkpoints/epoch-0001.safetensors": (first, other, lambda: load_trained(first, epoch=1)),
        "outputs.safetensors": (early, twin, lambda: load_outputs(early)),
    }
    for name, (run, stranger, read) in readers.items():
        path, whole = run.path / name, (run.path / name).read_bytes()
        read()
        flipped(path, len(whole) - 5)
        with pytest.raises(DataError, match=rf"{path.name} is damaged .*train it again"):
            read()
        shutil.copy(stranger.path / name, path)
        with pytest.raises(DataError, match=rf"was written by run {stranger.id}, not by run {run.id}"):
            read()
        path.write_bytes(whole)


def test_sealed_weights_are_plain_safetensors_to_others(tmp_path: Path) -> None:
    run = train(SMALL, runs=tmp_path, device="cpu")
    path = run.path / "weights.safetensors"
    with safe_open(path, framework="pt") as file:
        said = file.metadata()
    assert said["format"] == "pt"
    assert said["evenly_run"] == run.id
    assert set(load_file(path)) == {name for name, _ in load_trained(run).model.named_parameters()}


def test_tensors_of_every_type_and_shape_are_read_by_safetensors_itself(tmp_path: Path) -> None:
    numbers = torch.arange(-6, 6).reshape(3, 4)
    tensors = {str(kind): numbers.to(kind) for kind in checkpoint._KINDS if not kind.is_complex}
    tensors |= {
        "conjugate": torch.complex(numbers.float(), numbers.flip(0).float()).conj(),
        "transposed": numbers.float().T,
        "part": numbers[1:2, ::2],
        "no axis": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
    }
    tensors["tied"] = tensors["transposed"]
    run = Run.create(tmp_path, {}, "c0ffee")
    checkpoint.save_weights(run, "weights.safetensors", tensors)
    for read in (load_file(run.path / "weights.safetensors"), checkpoint.load_weights(run, "weights.safetensors")):
        assert read.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert (read[name].dtype, read[name].shape) == (tensor.dtype, tensor.shape)
            as_bytes = [t.resolve_conj().contiguous().reshape(-1).view(torch.uint8) for t in (read[name], tensor)]
            assert torch.equal(*as_bytes), name


def test_numbers_that_safetensors_cannot_hold_are_refused_by_name(tmp_path: Path) -> None:
    run = Run.create(tmp_path, {}, "c0ffee")
    with pytest.raises(UsageError, match=r"w holds numbers of type torch.complex128, which safetensors files cannot"):
        checkpoint.save_weights(run, "weights.safetensors", {"w": torch.ones(2, dtype=torch.complex128)})
    assert not (run.path / "weights.safetensors").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit counts what is allocated on Linux only")
def test_saving_needs_no_second_copy_of_the_state(tmp_path: Path) -> None:
    """Five copies of 85 networks, 2.3 GB each, once made the kernel end their training."""
    code = (
        "import resource, sys, torch\n"
        "from evenly.records import Run\n"
        "from evenly.training import checkpoint\n"
        "run = Run.create(sys.argv[1], {}, 'c0ffee')\n"
        "checkpoint.save(run, 'first', {'w': torch.ones(1)})\n"
        "state = {str(i): torch.full((8, 2**20), float(i)) for i in range(8)}\n"  # 8 times 32 MiB
        "used = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmData'))\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + 2**26, -1))\n"
        "checkpoint.save(run, 'second', state)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
    (run,) = tmp_path.iterdir()
    state = checkpoint.load(Run(run), "second")
    assert all(torch.equal(state[str(i)], torch.full((8, 2**20), float(i))) for i in range(8))


@pytest.mark.parametrize("size", [0, 1, 8, 4096 * 2, 4096 * 2 + 3, 3 * 4096 * 8 + 5])
def test_the_checksum_finds_any_single_changed_byte_whatever_the_size(size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {"y": ("F32", [3], 12), "x": ("U8", [size], size)}
    with path.open("w+b") as file:
        seal.write(file, tensors, [bytes(range(12)), bytes(i % 256 for i in range(size))], **seal.metadata("a1"))
    assert seal.check(path, run="a1", remedy="")["evenly_run"] == "a1"
    whole = path.read_bytes()
    for place in [*range(8, len(whole), max(1, len(whole) // 97)), len(whole) - 1]:
        flipped(path, place)
        with pytest.raises(DataError):
            seal.check(path, run="a1", remedy="")
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b"{}", b'{"__metadata__": 5}', b'{"__metadata__": {"a": 1}}', b"[1]"]
)
def test_a_strange_header_is_damage_and_no_traceback(header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(DataError, match=r"x.safetensors is damaged"):
        seal.check(path, run="a1", remedy="")


@pytest.mark.parametrize("deed", ["moved", "deleted", "replaced"])
def test_a_folder_that_disappears_while_it_trains_is_an_error_and_is_not_built_again(deed: str, tmp_path: Path) -> None:
    def away(loop: Loop, history: list[object]) -> bool:
        if len(history) == 2 and loop.run.path.exists():
            if deed == "deleted":
                shutil.rmtree(loop.run.path)
            else:
                shutil.move(loop.run.path, tmp_path / "elsewhere")
            if deed == "replaced":
                shutil.copytree(tmp_path / "elsewhere", loop.run.path)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_is_enough", away)
        with pytest.raises(SetupError, match=r"was moved, renamed or deleted while it was written.*Move it back"):
            train(SMALL, runs=tmp_path / "runs", device="cpu", pace=0)
    left = list((tmp_path / "runs").iterdir())
    assert left == [] if deed != "replaced" else len(left) == 1
    if deed == "deleted":
        return
    kept = Run(tmp_path / "elsewhere")
    assert len(kept.metrics()) == 2
    assert not (kept.path / "failed").exists()
    shutil.rmtree(tmp_path / "runs")
    shutil.move(kept.path, tmp_path / "runs" / json.loads((kept.path / "identity.json").read_text())["id"])
    assert train(SMALL, runs=tmp_path / "runs", device="cpu").summary()["epoch"] == 3  # moved back, it goes on


def test_equal_contents_are_equal_bytes_whatever_the_process(tmp_path: Path):
    """The words of a safetensors header come in an order that is another one in every process."""
    code = (
        "import sys, torch; from evenly.records import Run; from evenly.training.checkpoint import save_weights\n"
        "run = Run.create(sys.argv[1], {}, 'c0ffee')\n"
        "save_weights(run, 'weights.safetensors', {'w': torch.ones(3), 'b': torch.zeros(2)})"
    )
    written = set()
    for number in range(4):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / str(number))], check=True)
        written.add((tmp_path / str(number) / "c0ffee" / "weights.safetensors").read_bytes())
    assert len(written) == 1
