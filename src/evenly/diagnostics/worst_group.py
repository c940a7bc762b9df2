"""The error of the worst group: what an average hides of a model that leans on an attribute."""

from dataclasses import dataclass
from math import sqrt

from torch import Tensor, nn

from evenly.curvature import soundness
from evenly.curvature.chunks import chunked, outputs_of
from evenly.curvature.observing import observing
from evenly.data.labelled import Labelled
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError

Z95 = 1.959963984540054


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
        soundness.check(model, chunked(data, model=model, size=chunk)[0][0])
        outputs = outputs_of(model, data, chunk=chunk)[0]
    flat = outputs.reshape(len(outputs), -1).cpu()
    answers_N = flat.argmax(1) if flat.shape[1] > 1 else (flat[:, 0] > 0).long()
    wrong_N = answers_N != data.labels.cpu()
    groups = []
    for label in [None] if attribute == "group" else sorted(set(data.labels.tolist())):
        for value in sorted(set(values_N.tolist())):
            members = values_N == value
            if label is not None:
                members &= data.labels.cpu() == label
            if bool(members.any()):
                name = f"group {value}" if label is None else f"{data.classes[label]}, {attribute}={value}"
                groups.append(_group(name, wrong_N[members]))
    return sorted(groups, key=lambda group: -group.error)


def measure_worst_group(subject: Subject) -> Numbers:
    """The worst group's error on the test data, of every attribute that divides the classes."""
    data = subject.split(subject.options.get("split", "test"))
    chosen = subject.options.get("attribute")
    names = [chosen] if chosen else [n for n in ("group", *data.attributes) if n in data.attributes]
    names = [n for n in dict.fromkeys(names) if len(set(data.attribute(n).tolist())) > 1]
    if "group" in names and not chosen:
        names = ["group"]
    if not names:
        raise DataError(
            f"{data.name} {data.split} has no attribute with several values: the worst group needs one, such as a "
            "column 'group' of the manifest."
        )
    groups = [g for name in names for g in group_errors(subject.model, data, attribute=name)]
    worst = max(groups, key=lambda group: group.error)
    return {
        "worst_group_error": worst.error,
        "worst_group": worst.name,
        "worst_group_interval": list(worst.interval),
        "group_mean_error": sum(g.error for g in groups) / len(groups),
        "groups": [{"name": g.name, "error": g.error, "interval": list(g.interval), "examples": g.num} for g in groups],
    }


def _group(name: str, wrong: Tensor) -> Group:
    num, share = len(wrong), float(wrong.double().mean())
    middle = (share + Z95**2 / (2 * num)) / (1 + Z95**2 / num)
    half = Z95 / (1 + Z95**2 / num) * sqrt(share * (1 - share) / num + Z95**2 / (4 * num**2))
    return Group(name, share, (max(0.0, middle - half), min(1.0, middle + half)), num)
