"""Training: the whole loop against its bare arithmetic, and against a plain PyTorch loop."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from benchmarks.bench_data import PlainPyTorch, cifar10_root
from benchmarks.harness import benchmark, interleaved
from evenly.data import Splits, load
from evenly.papers.nguyen2024.recipes import Case
from evenly.papers.nguyen2024.recipes import recipe as full_recipe
from evenly.recipe import Model, Recipe, Resampling, digest, from_mapping, to_mapping
from evenly.records import Run
from evenly.training.build import Parts, build_parts
from evenly.training.distributed import World
from evenly.training.evaluate import outputs
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop

BATCH = 128


def bfloat16() -> str:
    """Whether this processor computes in bfloat16 or imitates it: the claim is about machines of the first kind."""
    able = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "on a CPU with bfloat16 instructions" if able else "on a CPU without bfloat16 instructions"


BFLOAT16 = bfloat16()


def parts(model: str, num: int, *, epochs: int = 1, **settings: object) -> Parts:
    """A recipe on the first images of CIFAR-10, ready to train."""
    data = load("cifar10", root=cifar10_root()).train.subset(range(num))
    recipe = Recipe(
        model=Model(model),
        epochs=epochs,
        batch_size=BATCH,
        augment=("pad-crop:4", "mirror"),
        drop_last=True,
        **settings,
    )
    return build_parts(recipe, world=World(), splits=Splits("cifar10", {"train": data}))


def whole_loop(made: Parts, *, pace: float = 1e9) -> Callable[[], None]:
    """A run of ours: data, augmentation, bookkeeping, checkpoints every `pace` seconds, final weights, the records."""

    def whole() -> None:
        with (
            tempfile.TemporaryDirectory() as runs,
            Run.create(runs, to_mapping(made.recipe), digest(made.recipe)) as run,
        ):
            Loop(made, run, Interruption(), pace=pace).train()

    return whole


def bare(made: Parts, optimizer: torch.optim.Optimizer | None = None) -> Callable[[], None]:
    """The same number of forward passes, backward passes and steps, on a batch that is there already."""
    batch = next(iter(made.batches.epoch(0)))
    model = made.model
    optimizer = optimizer or plain_sgd(made)

    def steps() -> None:
        model.train()
        for _ in range(made.recipe.epochs * len(made.batches)):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(batch.inputs), batch.labels).backward()
            optimizer.step()

    return steps


def plain_sgd(made: Parts) -> torch.optim.Optimizer:
    """The recipe's optimizer as torch gives it to those who ask for nothing more."""
    return torch.optim.SGD(made.model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def plain_loop(made: Parts) -> Callable[[], None]:
    """The loop that people write: a DataLoader with two workers and per-image transforms, fp32."""
    train = made.splits.train
    loader = DataLoader(
        PlainPyTorch(train.inputs, train.labels),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
        generator=torch.Generator(),
    )
    model = made.model
    optimizer = plain_sgd(made)

    def epoch() -> None:
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()

    return epoch


def against(peer: Callable[[Parts], Callable[[], None]], model: str, num: int) -> Iterator[float]:
    torch.set_num_threads(2)
    made = parts(model, num)
    yield from interleaved(whole_loop(made), peer(made))


def overhead(model: str, num: int, *, own_step: bool = False) -> Iterator[float]:
    """The whole loop with a checkpoint every two seconds, thirty times as often as by default, and final weights."""
    torch.set_num_threads(2)
    made = parts(model, num)
    yield from interleaved(whole_loop(made, pace=2.0), bare(made, made.optimizer if own_step else None))


# Runs of some seconds: what a run costs once, whatever its length, is then well below a hundredth of it.
@benchmark(
    "train-overhead-mlp",
    claim="the whole loop, including data, records and checkpoints, against bare forward and backward passes and a "
    "default step of torch.optim.SGD, mlp: time",
    at_most=1.15,
    repeats=15,
)
def overhead_mlp() -> Iterator[float]:
    yield from overhead("mlp", 49_920)


@benchmark(
    "train-overhead-convnet",
    claim="the whole loop against bare passes and a default step of torch.optim.SGD, convnet: time",
    at_most=1.05,
    repeats=15,
)
def overhead_convnet() -> Iterator[float]:
    yield from overhead("convnet", 25_600)


@benchmark(
    "train-overhead-mlp-fused",
    claim="the whole loop against bare passes and the fused update that the loop itself chooses, mlp: time",
    at_most=1.15,
    repeats=15,
)
def overhead_mlp_fused() -> Iterator[float]:
    yield from overhead("mlp", 49_920, own_step=True)


@benchmark(
    "train-overhead-convnet-fused",
    claim="the whole loop against bare passes and the fused update that the loop itself chooses, convnet: time",
    at_most=1.05,
    repeats=15,
)
def overhead_convnet_fused() -> Iterator[float]:
    yield from overhead("convnet", 25_600, own_step=True)


@benchmark(
    "train-fig7",
    claim="an epoch of Nguyen's figure 7 as its row is run (3-layer perceptron, CIFAR-10, evaluation included), on one "
    "core, against bare forward, backward and a step of torch.optim.SGD as it comes: time",
    at_most=1.15,
    repeats=9,
)
def figure_7() -> Iterator[float]:
    torch.set_num_threads(1)
    settings = figure_7_recipe(epochs=1)
    made = build_parts(settings, world=World(), splits=load("cifar10", root=cifar10_root()))
    yield from interleaved(whole_loop(made, pace=60.0), bare(made))


def figure_7_recipe(*, epochs: int) -> Recipe:
    """The recipe of the row nguyen2024/fig7 at full scale, for fewer epochs."""
    return from_mapping(Recipe, {**full_recipe(Case("sgd", model="mlp"), "full"), "epochs": epochs})


@benchmark(
    "train-targeted-augmentation",
    claim="training mlp with pixel noise on a fifth of the examples against the same training without it: time",
    at_most=1.05,
    repeats=15,
)
def targeted_augmentation() -> Iterator[float]:
    torch.set_num_threads(2)
    data = load("cifar10", root=cifar10_root()).train.subset(range(10_240))
    both = []
    for words in (("noise:0.2",), ()):
        chosen = Resampling(method="useful", early="0" * 12, augment=words)
        recipe = Recipe(model=Model("mlp"), epochs=1, batch_size=BATCH, augment=("mirror",), resampling=chosen)
        hard_N = torch.arange(len(data)) % 5 == 0
        both.append(build_parts(recipe, world=World(), splits=Splits("cifar10", {"train": data}), hard=hard_N))
    yield from interleaved(whole_loop(both[0]), whole_loop(both[1]))


@benchmark(
    "train-plain-mlp",
    claim="training mlp against a plain loop with a DataLoader of two workers and per-image transforms: images/s",
    at_least=1.3,
)
def plain_mlp() -> Iterator[float]:
    yield from against(plain_loop, "mlp", 10_240)


@benchmark(
    "train-plain-convnet",
    claim="training convnet against a plain loop with a DataLoader of two workers and per-image transforms: images/s",
    at_least=1.3,
)
def plain_convnet() -> Iterator[float]:
    yield from against(plain_loop, "convnet", 5_120)


@benchmark(
    "train-plain-resnet",
    claim="training PreAct ResNet-18 in bfloat16 with channels last against a plain float32 loop, "
    f"{BFLOAT16}: images per second",
    at_least=1.5,
    repeats=3,
)
def plain_resnet() -> Iterator[float]:
    yield from resnet(precision="bf16", channels_last=True)


@benchmark(
    "train-plain-resnet-fp32",
    claim="training PreAct ResNet-18 in float32 with channels last against a plain loop: images per second",
    at_least=1.0,
    repeats=3,
)
def plain_resnet_fp32() -> Iterator[float]:
    yield from resnet(channels_last=True)


def resnet(**settings: object) -> Iterator[float]:
    torch.set_num_threads(2)
    yield from interleaved(
        whole_loop(parts("preact-resnet18", 512, **settings)), plain_loop(parts("preact-resnet18", 512))
    )


@benchmark(
    "train-outputs",
    claim="collecting the outputs of every example for a separation against bare forward passes in eval mode: time",
    at_most=1.1,
)
def collecting_outputs() -> Iterator[float]:
    torch.set_num_threads(2)
    made = parts("convnet", 5_120)
    train, model = made.splits.train, made.model.eval()
    ready = [train.inputs[start : start + 512].float() / 255 for start in range(0, len(train), 512)]

    @torch.no_grad()
    def forward() -> None:
        for x in ready:
            model(x)

    yield from interleaved(lambda: outputs(model, train), forward)


@benchmark(
    "train-memory", claim="peak resident memory of an epoch against the plain loop's, convnet", at_most=1.2, repeats=3
)
def memory() -> Iterator[float]:
    while True:
        yield peak("whole_loop") / peak("plain_loop")


def peak(which: str) -> float:
    """The peak of a process of its own, its workers not counted."""
    code = (
        "import sys, torch; from pathlib import Path; import benchmarks.bench_train as b\n"
        "torch.set_num_threads(2)\n"
        f"b.{which}(b.parts('convnet', 5120))()\n"
        "print(next(l.split()[1] for l in Path('/proc/self/status').read_text().splitlines() if 'VmHWM' in l))"
    )
    cwd = Path(__file__).parents[1]
    return float(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=cwd).stdout
    )
