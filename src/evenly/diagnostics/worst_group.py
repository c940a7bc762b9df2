"""The error of the worst group, which an average hides in a model that relies on an attribute."""

from dataclasses import dataclass

from torch import nn

from evenly.curvature import soundness
from evenly.curvature.chunks import as_chunks, outputs_of
from evenly.curvature.losses import predicted_classes
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
                name = f"group {value}" if label is None else f"{data.classes[label]}, {attribute}={value}"
                num, error = int(members.sum()), float(wrong_N[members].double().mean())
                groups.append(Group(name, error, wilson(error, num), num))
    return sorted(groups, key=lambda group: -group.error)


def measure_worst_group(subject: Subject) -> Numbers:
    """The worst group's error on the test data, of every attribute that divides the classes."""
    options = dict(subject.options)
    split, chosen = options.pop("split", None), options.pop("attribute", None)
    data = subject.split("test") if split is None else subject.splits[split]  # a misspelt name is refused there
    names = [chosen] if chosen else [n for n in ("group", *data.attributes) if n in data.attributes]
    names = [n for n in dict.fromkeys(names) if len(set(data.attribute(n).tolist())) > 1]
    if "group" in names and not chosen:
        names = ["group"]
    if not names:
        raise DataError(
            f"{data.name} {data.split} has no attribute with several values: the worst group needs one, such as a "
            "column 'group' of the manifest."
        )
    groups = [g for name in names for g in group_errors(subject.model, data, attribute=name, **options)]
    worst = max(groups, key=lambda group: group.error)
    return {
        "worst_group_error": worst.error,
        "worst_group": worst.name,
        "worst_group_interval": list(worst.interval),
        "group_mean_error": sum(g.error for g in groups) / len(groups),
        "groups": [{"name": g.name, "error": g.error, "interval": list(g.interval), "examples": g.num} for g in groups],
    }
