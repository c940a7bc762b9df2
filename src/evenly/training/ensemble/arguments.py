"""The arguments of an ensemble, checked and expanded to one value per member before anything is trained.

Shapes: K members, N examples.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenly.data.fingerprints import fingerprint
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.training.ensemble.rules import DISPLACING, INTERVENTIONS, RULES

Numbers = float | Sequence[float] | Tensor | np.ndarray


def per_member(name: str, value: Any, num: int) -> list[Any]:
    """One value for every member; a single value is used for all.

    >>> per_member("lr", 0.1, 2)
    [0.1, 0.1]
    >>> per_member("lr", [0.1, 0.2], 3)
    Traceback (most recent call last):
    evenly.errors.UsageError: lr has 2 values for 3 members: give one for each, or a single one for all.
    """
    if isinstance(value, Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str | Labelled) or not isinstance(value, Sequence):
        return [value] * num
    if len(value) != num:
        raise UsageError(
            f"{name} has {len(value)} values for {num} members: give one for each, or a single one for all."
        )
    return list(value)


def numbers(name: str, value: Numbers, num: int, *, below: float = math.inf) -> list[float]:
    """Finite numbers from 0 to below `below`, one for every member; an error names the first that is not.

    >>> numbers("rho", [0.1, -0.1], 2)
    Traceback (most recent call last):
    evenly.errors.UsageError: rho = -0.1 of member 1: give a finite number, 0 or more.
    """
    values = per_member(name, value, num)
    for member, x in enumerate(values):
        if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) or not 0 <= x < below:
            limit = "" if math.isinf(below) else f" and less than {below:g}"
            raise UsageError(f"{name} = {x!r} of member {member}: give a finite number, 0 or more{limit}.")
    return [float(x) for x in values]


def seed_numbers(seeds: int | Sequence[int], num: int) -> list[int]:
    """A whole number for every member."""
    values = per_member("seeds", seeds, num)
    for member, seed in enumerate(values):
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise UsageError(
                f"seeds: {seed!r} of member {member} is not a whole number. For example: seeds=range({num})"
            )
    return values


def rule_names(rule: str | Sequence[str], rho: list[float], *, head_shape: tuple[int, ...] | None) -> list[str]:
    """The rule of every member; a displacing rule with ρ = 0 becomes a plain step, `sgd`.

    >>> rule_names("sam", [0.0, 0.1], head_shape=None)
    ['sgd', 'sam']
    """
    names: list[str] = per_member("rule", rule, len(rho))
    for member, name in enumerate(names):
        if name not in RULES:
            raise UsageError(f"rule = {name!r} of member {member} is not known. {did_you_mean(str(name), RULES)}")
        if name not in DISPLACING and rho[member] != 0:
            raise UsageError(
                f"member {member} has rule {name!r} and rho = {rho[member]:g}, which the rule has no use for: "
                "give rho=0 there, or a rule that displaces, such as 'sam'."
            )
        if name == "lsam" and head_shape is None:
            raise UsageError(
                f"member {member}: lsam displaces a linear head, and this network has none with parameters: "
                "use 'sam', or a model of evenly.models whose head is nn.Linear."
            )
        if name in INTERVENTIONS and (head_shape is None or head_shape[1] != 2):
            raise UsageError(
                f"member {member}: {name!r} puts v* for the head's two weights, and this network has no "
                "nn.Linear(2, …) head over the features (easy, hard): use 'disentangled'."
            )
    return ["sgd" if name in DISPLACING and r == 0 else name for name, r in zip(names, rho, strict=True)]


def star(easy: Numbers, hard: Numbers | None, rules: list[str]) -> list[list[float]]:
    """v* = (easy, hard) of every member; `hard` must be given where a rule intervenes."""
    if hard is None:
        for member, rule in enumerate(rules):
            if rule in INTERVENTIONS:
                raise UsageError(f"member {member}: {rule!r} needs v*_hard, for example hard=2.0.")
        hard = 0.0
    pairs = zip(per_member("easy", easy, len(rules)), per_member("hard", hard, len(rules)), strict=True)
    return [[float(a), float(b)] for a, b in pairs]


def data_sets(data: Labelled | Sequence[Labelled], num: int) -> tuple[list[Labelled], list[int]]:
    """The distinct data sets, and which of them each member uses; lengths and shapes must agree."""
    sets: list[Labelled] = per_member("data", data, num)
    for member, each in enumerate(sets):
        if not isinstance(each, Labelled):
            raise UsageError(f"data of member {member} is a {type(each).__name__}, not Labelled: splits['train'], say.")
        first = sets[0]
        if len(each) != len(first):
            raise DataError(
                f"data of member {member} has {len(each)} examples, that of member 0 {len(first)}: give data sets of "
                "one length, or one data set with weights= that say how often each example counts."
            )
        if each.shape != first.shape or each.num_classes != first.num_classes:
            raise DataError(
                f"data of member {member} is {each}, that of member 0 {first}: inputs must have one shape and as many "
                "classes."
            )
    if not len(sets[0]):
        raise DataError("the data have no examples.")
    distinct = list({id(each): each for each in sets}.values())
    places = {id(each): place for place, each in enumerate(distinct)}
    return distinct, [places[id(each)] for each in sets]


def example_weights(weights: Tensor | Sequence[Any] | None, num: int, num_examples: int) -> Tensor | None:
    """How often each example counts, K × N; one row applies to all members."""
    if weights is None:
        return None
    weights_KN = torch.as_tensor(weights) if not isinstance(weights, list | tuple) else _rows(weights)
    if weights_KN.shape not in ((num_examples,), (num, num_examples)):
        raise UsageError(
            f"weights are {tuple(weights_KN.shape)}: give one for each of {num_examples} examples, or one row of them "
            f"for each of {num} members."
        )
    if not bool((weights_KN.isfinite() & (weights_KN >= 0)).all()) or bool((weights_KN.sum(-1) == 0).any()):
        raise UsageError("weights say how often an example counts: finite, 0 or more, and not all 0.")
    return weights_KN.expand(num, num_examples)


def example_copies(
    copies: Tensor | Sequence[Any] | None, num: int, num_examples: int, *, batch_size: int | None
) -> Tensor | None:
    """How often each example is shown in an epoch, K × N whole numbers."""
    copies_KN = _per_example("copies", copies, num, num_examples, batch_size)
    if copies_KN is None:
        return None
    if copies_KN.is_floating_point() or bool((copies_KN < 0).any()) or bool((copies_KN.sum(-1) == 0).any()):
        raise UsageError("copies say how often an example is shown: whole numbers, 0 or more, and not all 0.")
    return copies_KN.long()


def example_noise(
    noise: Tensor | Sequence[Any] | None, num: int, num_examples: int, *, batch_size: int | None
) -> Tensor | None:
    """The σ of the noise on each example, K × N."""
    noise_KN = _per_example("noise", noise, num, num_examples, batch_size)
    if noise_KN is not None and not bool((noise_KN.isfinite() & (noise_KN >= 0)).all()):
        raise UsageError("noise is the σ on each example: finite, 0 or more.")
    return noise_KN


def fingerprint_of(values_KN: Tensor | None) -> str | None:
    """What tells these numbers of examples from others in a saved state; None for none.

    >>> fingerprint_of(torch.ones(1, 2)) == fingerprint_of(torch.ones(1, 2, dtype=torch.int64)), fingerprint_of(None)
    (True, None)
    """
    return None if values_KN is None else fingerprint([values_KN.double()])


def _per_example(
    name: str, values: Tensor | Sequence[Any] | None, num: int, num_examples: int, batch_size: int | None
) -> Tensor | None:
    if values is None:
        return None
    if batch_size is None:
        raise UsageError(f"{name} need a batch_size: full batches are the same at every step.")
    values_KN = torch.as_tensor(values) if not isinstance(values, list | tuple) else _rows(values)
    if values_KN.shape not in ((num_examples,), (num, num_examples)):
        raise UsageError(
            f"{name} are {tuple(values_KN.shape)}: give one for each of {num_examples} examples, or one row of them "
            f"for each of {num} members."
        )
    return values_KN.expand(num, num_examples)


def whole_batch_size(size: Any, num_examples: int) -> int | None:
    """A batch size that the data allow; None is the full batch."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= num_examples):
        raise UsageError(
            f"batch_size = {size!r}: give a whole number from 1 to the {num_examples} examples, or None for all."
        )
    return size


def _rows(weights: Sequence[Any]) -> Tensor:
    lengths = {len(row) if hasattr(row, "__len__") else 1 for row in weights}
    if len(lengths) > 1:
        raise UsageError(f"weights have rows of different lengths: {sorted(lengths)}.")
    return torch.stack([torch.as_tensor(row) for row in weights])
