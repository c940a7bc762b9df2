"""The error of the worst group, which an average hides in a model that relies on an attribute."""

from dataclasses import dataclass

from torch import nn

from evenly.curvature import soundness
from evenly.curvature.chunks import as_chunks, outputs_of
from evenly.curvature.losses import predicted_classes
from evenly.data.groupings import groupings, name_of_value
from evenly.data.labelled import Labelled
from evenly.diagnostics.probe import wilson
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError
from evenly.models.observation import observing


@dataclass(frozen=True)
class Group:
    """One group's error (a share of 1) with Wilson's 95 % interval."""

    name: str
    error: float
    interval: tuple[float, float]
    num: int


def group_errors(model: nn.Module, data: Labelled, *, attribute: str, chunk: int = 500) -> list[Group]:
    """The 0–1 error of every combination of label and attribute that occurs, the worst first (Sagawa et al., 2020).

    An attribute called `group` is taken as it is: its values are the groups.

    >>> import torch
    >>> tag = torch.tensor([0, 0, 1, 1])
    >>> data = Labelled(tag[:, None].float(), torch.tensor([0, 1, 0, 1]), ("a", "b"), {"tag": tag})
    >>> answers_the_tag = nn.Linear(1, 1)
    >>> _ = nn.init.constant_(answers_the_tag.weight, 2.0), nn.init.constant_(answers_the_tag.bias, -1.0)
    >>> [(g.name, g.error) for g in group_errors(answers_the_tag, data, attribute="tag")][:2]
    [('a, tag=1', 1.0), ('b, tag=0', 1.0)]
    """
    values_N = data.attribute(attribute).cpu()
    with observing(model):
        soundness.check(model, as_chunks(data, model=model, size=chunk)[0][0])
        outputs = outputs_of(model, data, chunk=chunk)[0]
    wrong_N = predicted_classes(outputs).cpu() != data.labels.cpu()
    groups = []
    for label in [None] if attribute == "group" else sorted(set(data.labels.tolist())):
        for value in sorted(set(values_N.tolist())):
            members = values_N == value
            if label is not None:
                members &= data.labels.cpu() == label
            if bool(members.any()):
                word = name_of_value(data, attribute, value)
                name = f"group {word}" if label is None else f"{data.classes[label]}, {attribute}={word}"
                num, error = int(members.sum()), float(wrong_N[members].double().mean())
                groups.append(Group(name, error, wilson(error, num), num))
    return sorted(groups, key=lambda group: -group.error)


def _has_groups(data: Labelled) -> bool:
    return len(set(data.attributes.get("group", data.labels[:0]).tolist())) > 1


def measure_worst_group(subject: Subject) -> Numbers:
    """The worst group's error on the test data, of every attribute that divides the classes."""
    return _worst_group(subject, **subject.options)


def _worst_group(
    subject: Subject, *, split: str | None = None, attribute: str | None = None, chunk: int = 500
) -> Numbers:
    data = subject.split("test") if split is None else subject.splits[split]  # a misspelt name is refused there
    if attribute:
        names = [attribute] if len(set(data.attribute(attribute).tolist())) > 1 else []
    else:
        names = ["group"] if _has_groups(data) else groupings(data)
    if not names:
        raise DataError(
            f"{data.name} {data.split} has no attribute with several values that is not the label itself: the worst "
            "group needs one, such as a column 'group' of the manifest."
        )
    groups = [g for name in names for g in group_errors(subject.model, data, attribute=name, chunk=chunk)]
    worst = max(groups, key=lambda group: group.error)
    return {
        "worst_group_error": worst.error,
        "worst_group": worst.name,
        "worst_group_interval": list(worst.interval),
        "group_mean_error": sum(g.error for g in groups) / len(groups),
        "groups": [{"name": g.name, "error": g.error, "interval": list(g.interval), "examples": g.num} for g in groups],
    }
