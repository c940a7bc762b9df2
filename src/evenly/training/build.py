"""Build the model, optimizer and batches of a recipe, and refuse every mistake that shows before the first step."""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from evenly import consent, models
from evenly.data import Splits, load
from evenly.data.augment import Augmentation
from evenly.data.batches import Batches
from evenly.data.checks import check
from evenly.data.splits import require_splits
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.models.seeding import single_precision
from evenly.models.shapes import shape_text
from evenly.optim.cost import rule_class
from evenly.recipe import Optimizer, Recipe
from evenly.rng import generator
from evenly.rules import RULES
from evenly.training.distributed import World
from evenly.training.objective import Objective
from evenly.training.placement import check_accumulation, default_workers, place
from evenly.training.targets import targeted_augmentation
from evenly.training.trial import check_lone_examples, check_loss

_log = logging.getLogger(__name__)
# LBFGS evaluates the loss many times a step and SparseAdam needs sparse gradients; the loop supports neither.
_OTHER_LOOPS = {"Optimizer", "LBFGS", "SparseAdam"}


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
    _check_shapes(splits, augment)
    # Recipes from files were checked when they were read, so the user has named this code.
    consent.remember(recipe.model.name, recipe.model.options)
    model = models.build_with(
        recipe.model.options,
        recipe.model.name,
        input_shape=shape,
        num_classes=splits.num_classes,
        rng=generator(recipe.seed, "init"),
        weights=recipe.model.weights,
    )
    models.check(model, shape, splits.num_classes, name=recipe.model.name, training=True)
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


def optimizer_class(name: str) -> type[torch.optim.Optimizer]:
    """The optimizer of `torch.optim` with this name, in any case."""
    known = {
        other.lower(): kind
        for other, kind in vars(torch.optim).items()
        if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and other not in _OTHER_LOOPS
    }
    if name.lower() not in known:
        raise UsageError(f"there is no optimizer {name!r}. {did_you_mean(name.lower(), [*known, *RULES])}")
    return known[name.lower()]


def default_lr(name: str) -> float:
    """The default learning rate of an optimizer: torch's, but the recipe's for SGD.

    >>> default_lr("sgd"), default_lr("adamw")
    (0.1, 0.001)
    """
    if name.lower() == "sgd":
        return Optimizer().lr
    return float(inspect.signature(optimizer_class(name)).parameters["lr"].default)


def build_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of any `torch.optim` name, with the settings it takes.

    >>> build_optimizer(Recipe(), nn.Linear(2, 2)).defaults["momentum"]
    0.9
    """
    chosen = recipe.optimizer
    kind = optimizer_class(chosen.name)
    takes = inspect.signature(kind).parameters
    if "weight_decay" not in takes and chosen.weight_decay:
        raise UsageError(f"optimizer.weight_decay={chosen.weight_decay:g}: {chosen.name} has none. Set it to 0.")
    if "nesterov" not in takes and chosen.nesterov:
        raise UsageError(f"optimizer.nesterov=true: {chosen.name} has no such momentum. Set it to false.")
    if "momentum" not in takes and chosen.momentum not in (0.0, Optimizer().momentum):
        raise UsageError(f"optimizer.momentum={chosen.momentum:g}: {chosen.name} has no such setting. Leave it out.")
    named = ("lr", "weight_decay", "momentum", "nesterov")
    given: dict[str, Any] = {name: getattr(chosen, name) for name in named if name in takes}
    for option in chosen.options:
        if option not in takes:
            raise UsageError(f"optimizer.options: {chosen.name} has no {option!r}. {did_you_mean(option, takes)}")
    options = _tuples(chosen.options)
    if "fused" in takes and not options.keys() & _WAYS and _can_fuse(model):
        options["fused"] = True
    try:
        return kind(_groups(model, chosen.decay, chosen.weight_decay), **given, **options)
    except (TypeError, ValueError) as error:
        raise UsageError(f"optimizer: {chosen.name} refuses its settings: {error}.") from error


#: Torch's implementations of an update, which exclude one another.
_WAYS = {"fused", "foreach", "differentiable"}


def _can_fuse(model: nn.Module) -> bool:
    """Whether torch can update all parameters in one pass over memory, twice as fast as operator by operator.

    >>> _can_fuse(nn.Linear(2, 2)), _can_fuse(nn.EmbeddingBag(9, 2, sparse=True))
    (True, False)
    """
    plain = all(type(p) is nn.Parameter and p.is_floating_point() for p in model.parameters())
    devices = {p.device.type for p in model.parameters()}
    return plain and devices <= {"cpu", "cuda"} and not any(getattr(m, "sparse", False) for m in model.modules())


def build_ascent(recipe: Recipe, model: nn.Module, world: World, *, scaler: Any = None) -> Any:
    """The SAM rule of the recipe, or None for ordinary training.

    Seed, momentum and weight decay come from the recipe. The whole batch shares one displacement, over any number of
    processes, unless the options say otherwise.
    """
    chosen = recipe.ascent
    if chosen.rule == "none":
        return None
    kind = rule_class(chosen.rule)
    takes = inspect.signature(kind).parameters
    adam = "betas" in inspect.signature(optimizer_class(recipe.optimizer.name)).parameters
    betas = recipe.optimizer.options.get("betas", (0.9, 0.999))
    shared = {
        "seed": recipe.seed,
        "momentum": betas[0] if adam else recipe.optimizer.momentum,
        "weight_decay": 0.0 if adam else recipe.optimizer.weight_decay,
    }
    own = {field.name for field in fields(kind.rule_type)}
    given: dict[str, Any] = {name: value for name, value in shared.items() if name in own}
    given["rho" if "rho" in takes else "sigma"] = chosen.radius
    if world.size > 1:
        given["m"] = "all"
    if scaler is not None:
        given["scaler"] = scaler
    try:
        return kind(model, **(given | _tuples(chosen.options)))
    except TypeError as error:
        raise UsageError(f"ascent.options: {chosen.rule} refuses {dict(chosen.options)}: {error}.") from error


def augmented_shape(shape: tuple[int, ...], augment: Augmentation) -> tuple[int, ...]:
    """The shape of an input after augmentation, which may crop it to another size.

    >>> augmented_shape((3, 96, 96), Augmentation.parse(["resized-crop:64"]))
    (3, 64, 64)
    """
    if not augment.transforms:
        return shape
    blank = torch.zeros((1, *shape), dtype=torch.uint8)
    return tuple(augment.evaluation(blank, seed=0, epoch=0, index=torch.zeros(1, dtype=torch.int64)).shape[1:])


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


def _groups(model: nn.Module, decay: str, weight_decay: float) -> Any:
    """All parameters in one group; or biases and normalisation in a second one without weight decay."""
    params = [p for p in model.parameters() if p.requires_grad]
    if decay == "all" or not weight_decay:
        return params
    return [
        {"params": [p for p in params if p.ndim > 1]},
        {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
    ]


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


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the lists of recipes into the tuples that torch expects (`betas`)."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
