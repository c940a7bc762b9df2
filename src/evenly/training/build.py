"""Build the model, optimizer and batches of a recipe, and refuse every mistake that shows before the first step."""

import logging
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenly import consent, memory, models
from evenly.data import Splits, load
from evenly.data.augment import Augmentation
from evenly.data.batches import Batches
from evenly.data.checks import check
from evenly.data.crops import Resize
from evenly.data.splits import require_splits
from evenly.errors import DataError, UsageError
from evenly.models.seeding import single_precision
from evenly.models.shapes import shape_text
from evenly.recipe import Recipe
from evenly.rng import generator
from evenly.training.build_optimizer import build_ascent, build_optimizer
from evenly.training.distributed import World
from evenly.training.objective import Objective
from evenly.training.placement import check_accumulation, default_workers, place
from evenly.training.targets import targeted_augmentation
from evenly.training.trial import check_lone_examples, check_loss

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """The objects that train a recipe. `forward` is the model as the loop calls it: wrapped, compiled."""

    recipe: Recipe
    splits: Splits
    model: nn.Module
    forward: nn.Module
    optimizer: torch.optim.Optimizer
    ascent: Any
    scaler: torch.amp.GradScaler | None
    objective: Objective
    augment: Augmentation
    batches: Batches
    hard_N: Tensor | None
    world: World

    @property
    def memory_format(self) -> torch.memory_format:
        """How images lie in memory."""
        return torch.channels_last if self.recipe.channels_last else torch.contiguous_format


@single_precision()
def build_parts(
    recipe: Recipe,
    *,
    world: World,
    splits: Splits,
    indices: Tensor | None = None,
    weights: Tensor | None = None,
    hard: Tensor | None = None,
    workers: int | None = None,
) -> Parts:
    """Make the parts of a recipe for its data.

    `indices` is a multiset of positions in the training set, `weights` a factor for the loss of every training
    example, and `hard` whether a separation calls it hard: training statistics then cover easy and hard examples
    separately. `workers` is the number of processes that decode files; by default it suits the machine.
    """
    train = splits.train
    if workers is None:
        workers = default_workers(train, world.device)
    if workers < 0:
        raise UsageError(f"--workers {workers}: give 0 or more processes.")
    if recipe.batch_size > (num := len(train) if indices is None else len(indices)):
        raise UsageError(
            f"batch_size={recipe.batch_size} is more than the {num} training examples: give {num} or less, such as "
            f"--batch-size {fitting_batch_size(num, processes=world.size)}."
        )
    _check_groups(recipe, num, world)
    check_accumulation(recipe, world)
    augment = Augmentation.parse(recipe.augment, data=train)
    shape = augmented_shape(train.shape, augment)
    _check_batch(recipe, shape, world)
    _check_shapes(splits, augment)
    model = _build_model(recipe, shape, splits.num_classes)
    objective = Objective(recipe.loss, recipe.label_smoothing, recipe.logit_penalty)
    model = model.to(world.device)
    if recipe.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    check_loss(objective, model, shape, recipe, world)
    check_lone_examples(recipe, model, shape, num=num, world=world)
    forward = world.wrap(model, sharded=recipe.sharded)
    # In half precision, gradients below 6e-8 vanish, so the loss is scaled up.
    scaler = torch.amp.GradScaler(world.device.type) if recipe.precision == "fp16" else None
    if recipe.compile:
        forward = torch.compile(forward)  # type: ignore[assignment]  # stays a module
    return Parts(
        recipe=recipe,
        splits=splits,
        model=model,
        forward=forward,
        optimizer=build_optimizer(recipe, model),
        ascent=build_ascent(recipe, forward, world, scaler=scaler),
        scaler=scaler,
        objective=objective,
        augment=augment,
        batches=Batches(
            place(train, world.device),
            batch_size=recipe.batch_size,
            seed=recipe.seed,
            indices=indices,
            augment=augment,
            targeted=targeted_augmentation(recipe, hard, train),
            weights=weights,
            device=world.device,
            drop_last=recipe.drop_last,
            workers=workers,
            share=(world.rank, world.size),
        ),
        hard_N=hard,
        world=world,
    )


def _build_model(recipe: Recipe, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """The recipe's network for inputs of this shape, on the CPU, its weights drawn from the seed or from a file."""
    # Recipes from files were checked when they were read, so the user has named this code.
    consent.remember(recipe.model.name, recipe.model.options)
    model = models.build_with(
        recipe.model.options,
        recipe.model.name,
        input_shape=shape,
        num_classes=num_classes,
        rng=generator(recipe.seed, "init"),
        weights=recipe.model.weights,
    )
    models.check(model, shape, num_classes, name=recipe.model.name, training=True)
    return model


def fitting_batch_size(num: int, *, processes: int = 1) -> int:
    """A batch size for a few steps an epoch of `num` examples, with at least one example for every process.

    >>> fitting_batch_size(64), fitting_batch_size(3), fitting_batch_size(3, processes=2)
    (16, 1, 2)
    """
    usual = max(1 << max(0, (num // 4).bit_length() - 1), processes)
    return min(usual, num)


def load_data(recipe: Recipe, *, data_root: str | None = None, remark: bool = True) -> Splits:
    """Load and check the data that a recipe names: refuse data that cannot be trained on, warn about odd data.

    Without `remark` nothing is said about odd data, for callers after whom the same data are loaded again.

    >>> load_data(Recipe()).name
    'digits'
    """
    chosen = recipe.data
    seed = recipe.seed if chosen.seed is None else chosen.seed
    splits = load(chosen.name, root=data_root, seed=seed, validation=chosen.validation or None, **chosen.options)
    remarks = (*splits.remarks, *check(splits))
    for sentence in remarks if remark else ():
        _log.warning(sentence)
    return splits


def check_given(splits: Splits) -> list[str]:
    """Refuse data given in Python that cannot be trained on, as `load_data` does those it loads; return remarks.

    >>> check_given("digits")
    Traceback (most recent call last):
    evenly.errors.UsageError: splits= is a str, not evenly.Splits. ...
    """
    return check(require_splits(splits))


def augmented_shape(shape: tuple[int, ...], augment: Augmentation) -> tuple[int, ...]:
    """The shape of an input after augmentation, which may crop it to another size.

    >>> augmented_shape((3, 96, 96), Augmentation.parse(["resized-crop:64"]))
    (3, 64, 64)
    """
    if not augment.transforms:
        return shape
    for transform in augment.evaluation.transforms:
        _check_size(transform, shape)
    blank = torch.zeros((1, *shape), dtype=torch.uint8)
    return tuple(augment.evaluation(blank, seed=0, epoch=0, index=torch.zeros(1, dtype=torch.int64)).shape[1:])


def _check_size(transform: Any, shape: tuple[int, ...]) -> None:
    """Refuse to resize images to a size of which memory does not hold a single one."""
    if isinstance(transform, Resize) and len(shape) == 3:
        size = transform.size
        height, width = (size, size) if isinstance(size, int) else size
        what = f"An image of {shape_text((shape[0], height, width))} (resize:{height}{f'x{width}' * (width != height)})"
        memory.require(4 * shape[0] * height * width, what, "Give a smaller size.")


def _check_batch(recipe: Recipe, shape: tuple[int, ...], world: World) -> None:
    """Refuse batches of which memory does not hold the inputs alone."""
    num = -(-recipe.batch_size // world.size)
    memory.require(
        4 * num * math.prod(shape),
        f"batch_size={recipe.batch_size} inputs of {shape_text(shape)}",
        "Give a smaller --batch-size, or smaller inputs.",
        device=world.device,
        verb="need",
    )


def _check_shapes(splits: Splits, augment: Augmentation) -> None:
    """Refuse splits whose inputs reach the network in other shapes than those of the training examples."""
    train = splits.train.shape
    for name, part in splits.items():
        if not len(part) or part.shape == train:
            continue
        found, wanted = augmented_shape(part.shape, augment), augmented_shape(train, augment)
        if found != wanted:
            raise DataError(
                f"{splits.name}: inputs of {name!r} have shape {shape_text(found)} and those of 'train' "
                f"{shape_text(wanted)}, and one network takes both. Bring them to one shape (the resize or crop of "
                "`augment` does so for images), or leave the split out."
            )


def _check_groups(recipe: Recipe, num: int, world: World) -> None:
    """Refuse an `m` that does not divide the batch or the short last batch, before training reaches it."""
    m = recipe.ascent.options.get("m")
    short = 0 if recipe.drop_last else num % recipe.batch_size
    for size in (recipe.batch_size, short):
        # One group may span all processes; the rule itself refuses an `m` that is not a number of examples.
        divides = size == m or not isinstance(m, int) or m < 1 or not (size % world.size or (size // world.size) % m)
        if not divides:
            remedy = "set drop_last=true" if size == short else f"give a divisor of {size // world.size}"
            raise UsageError(f"ascent.options.m={m} does not divide a batch of {size}: {remedy}.")
