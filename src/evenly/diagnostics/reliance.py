"""The accuracy a model loses when an attribute of its inputs becomes independent of the label.

Shapes: N examples, V values of the attribute, L labels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly.curvature import soundness
from evenly.curvature.chunks import as_chunks, outputs_of
from evenly.curvature.losses import predicted_classes
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError, UsageError
from evenly.models.observation import observing

# Maps inputs and the inputs of donors to inputs with the donors' attribute.
Swap = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Reliance:
    """Accuracy on the data, accuracy with the attribute randomised, and the difference: all shares of 1."""

    attribute: str
    accuracy: float
    randomised: float
    reliance: float


def reliance(
    model: nn.Module,
    data: Labelled,
    *,
    attribute: str,
    balanced: Labelled | None = None,
    swap: Swap | None = None,
    rng: torch.Generator | None = None,
    chunk: int = 500,
) -> Reliance:
    """Accuracy minus the accuracy when the named attribute is independent of the label.

    By weights: the accuracy of each combination of label and value counts as P(label)·P(value). Both shares are those
    of `data`, so that a model that ignores its inputs has reliance 0; the accuracies are those on `balanced` examples
    (by default on `data` too), where every combination must occur. With `swap(inputs, donors)`, by intervention
    instead: each input takes the attribute of another example drawn by `rng` (for stacked images the upper half), and
    keeps its label.

    >>> tag = torch.tensor([0, 0, 1, 1, 1, 0])  # right for four of six
    >>> data = Labelled(tag[:, None].float(), torch.tensor([0, 0, 0, 1, 1, 1]), ("a", "b"), {"tag": tag})
    >>> answers_the_tag = nn.Linear(1, 1)
    >>> _ = nn.init.constant_(answers_the_tag.weight, 2.0), nn.init.constant_(answers_the_tag.bias, -1.0)
    >>> result = reliance(answers_the_tag, data, attribute="tag")
    >>> round(result.accuracy, 3), round(result.randomised, 3)
    (0.667, 0.5)
    """
    reference = data if balanced is None else balanced
    values_N = reference.attribute(attribute)
    if swap is not None and balanced is not None:
        raise UsageError("give balanced= or swap=, not both: each is a way to make the attribute independent.")
    if len(set(values_N.tolist())) < 2:
        raise DataError(
            f"attribute {attribute!r} has one value, {int(values_N[0])}, in {reference.name} {reference.split}."
        )
    if swap is not None and rng is None:
        raise UsageError("swap draws the other examples at random: give rng=torch.Generator().manual_seed(0).")
    with observing(model):
        soundness.check(model, as_chunks(data, model=model, size=chunk)[0][0])
        correct_N = _correct(outputs_of(model, data, chunk=chunk)[0], data.labels)
        if swap is not None and rng is not None:
            others = data.subset(torch.randperm(len(data), generator=rng))
            own, donated = (as_chunks(each, model=model, size=chunk) for each in (data, others))
            with torch.no_grad():
                outputs = [model(swap(x, donors)) for (x, _), (donors, _) in zip(own, donated, strict=True)]
            randomised = float(_correct(torch.cat(outputs), data.labels).mean())
        elif balanced is not None:
            there_N = _correct(outputs_of(model, balanced, chunk=chunk)[0], balanced.labels)
            randomised = _independent_accuracy(there_N, balanced, attribute, shares_of=data)
        else:
            randomised = _independent_accuracy(correct_N, data, attribute, shares_of=data)
    accuracy = float(correct_N.mean())
    return Reliance(attribute, accuracy, randomised, accuracy - randomised)


def measure_reliance(subject: Subject) -> Numbers:
    """The accuracy lost when an attribute becomes independent of the label."""
    options = dict(subject.options)
    natural, balanced = natural_and_balanced(subject.splits)
    reference = natural if balanced is None else balanced
    names = options.pop("attributes", None) or [n for n in crossed_attributes(reference) if n in natural.attributes]
    if not names:
        raise DataError(
            f"{reference.name} {reference.split} has no attribute that occurs with every class in each value: reliance "
            "needs a split 'balanced' with such an attribute, or evenly.diagnostics.reliance with swap=."
        )
    return {
        f"reliance_{name}": reliance(subject.model, natural, attribute=name, balanced=balanced, **options).reliance
        for name in names
    }


def can_measure_reliance(splits: Splits) -> bool:
    """Whether an attribute of the natural examples occurs with every class where `measure_reliance` looks."""
    natural, balanced = natural_and_balanced(splits)
    return bool(set(crossed_attributes(natural if balanced is None else balanced)) & set(natural.attributes))


def natural_and_balanced(splits: Splits) -> tuple[Labelled, Labelled | None]:
    """The test examples (of data without a test split the training ones), and the `balanced` ones if there are any.

    Both sides of the difference are about examples that were not trained on: training accuracy would add the gap.
    """
    natural = splits["test" if "test" in splits else "train"]
    if "balanced" not in splits:
        return natural, None
    return natural, splits["balanced"]


def crossed_attributes(data: Labelled) -> list[str]:
    """The attributes with several values, each of which occurs with every label."""
    labels = data.labels.tolist()
    crossed = []
    for name, values in data.attributes.items():
        pairs, num = set(zip(labels, values.tolist(), strict=True)), len(set(values.tolist()))
        if num > 1 and len(pairs) == len(set(labels)) * num:
            crossed.append(name)
    return crossed


def _correct(outputs: Tensor, labels_N: Tensor) -> Tensor:
    """1 for each example that is classified correctly, else 0."""
    return (predicted_classes(outputs).cpu() == labels_N.cpu()).double()


def _independent_accuracy(correct_N: Tensor, data: Labelled, attribute: str, *, shares_of: Labelled) -> float:
    """Σ P(label)·P(value)·accuracy(label, value), with the shares of one set and the accuracies on another."""
    values_N, natural_N = data.attribute(attribute), shares_of.attribute(attribute)
    total = 0.0
    for label in sorted(set(shares_of.labels.tolist())):
        for value in sorted(set(natural_N.tolist())):
            members = (data.labels == label) & (values_N == value)
            if not members.any():
                raise DataError(
                    f"{data.name} {data.split} has no example of class {shares_of.classes[label]!r} with {attribute} = "
                    f"{value}, so that its accuracy is unknown. Use a split with every combination ('balanced'), "
                    "or give swap=."
                )
            weight = float((shares_of.labels == label).double().mean() * (natural_N == value).double().mean())
            total += weight * float(correct_N[members].mean())
    return total
