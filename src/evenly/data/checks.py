"""Checks of a data set before any training starts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from evenly.data.contents import digests
from evenly.data.formats.class_folders import quote_names
from evenly.data.formats.image_decoding import describe_broken
from evenly.data.formats.image_files import ImageFiles, misfits
from evenly.data.labelled import Labelled
from evenly.data.own.table_rows import Rows
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.names import Names

_CHUNK = 4096
_SLACK = 0.01  # of numbers in [0, 1] after arithmetic
_LARGE = 10.0  # root mean square of inputs: networks are initialised for about 1


def problems(splits: Splits) -> list[str]:
    """A sentence for everything about `splits` that would make training or its measurements meaningless.

    Empty splits; one single class; a class with one training example or with none; inputs that are not finite
    numbers; inputs that are all the same; image files of several sizes. Of inputs on disk, sixteen spread over
    the split are read.

    >>> import torch
    >>> lone = Labelled(torch.eye(3), torch.tensor([0, 0, 1]), ("cat", "dog"))
    >>> problems(Splits("pets", {"train": lone}))
    ["class 'dog' has one training example: it cannot be split into easy and hard, and is kept once. Add examples, ..."]
    """
    findings = _findings(splits, read=True)
    return [*findings.fatal, *findings.remarks]


def check(splits: Splits) -> list[str]:
    """Raise one `DataError` that lists what makes training on `splits` meaningless; return what only weakens it.

    Empty splits, a single class, a class that only other splits have, inputs that are not finite, and image files that
    do not decode or differ in size are fatal. The other `problems` are returned as remarks. Of inputs on disk, only
    image files that are new or have changed are read.

    >>> import torch
    >>> check(Splits("pets", {"train": Labelled(torch.eye(3), torch.tensor([0, 0, 1]), ("cat", "dog"))}))
    ["class 'dog' has one training example: it cannot be split into easy and hard, and is kept once. Add examples, ..."]
    >>> check(Splits("pets", {"train": Labelled(torch.eye(2), torch.tensor([0, 0]), ("cat",))}))
    Traceback (most recent call last):
    evenly.errors.DataError: pets: the data have one class, 'cat': there is nothing to tell apart. ...
    """
    fatal, remarks = _findings(splits, read=False)
    if len(fatal) == 1:
        raise DataError(f"{splits.name}: {fatal[0]}")
    if fatal:
        raise DataError(f"{splits.name} has {len(fatal)} problems:\n" + "\n".join(f"- {line}" for line in fatal))
    _check_files(splits)
    return remarks


def _check_files(splits: Splits) -> None:
    """Refuse image files that cannot be used, those of all splits of a folder at once."""
    by_root: dict[Path, list[ImageFiles]] = {}
    for part in splits.values():
        if isinstance(part.inputs, ImageFiles):
            by_root.setdefault(part.inputs.root, []).append(part.inputs)
    for files in by_root.values():
        replace(files[0], names=Names([name for each in files for name in each.names])).contents()


def duplicates(splits: Splits) -> list[str]:
    """Sentences on image files with the same content: under two classes, or in training and another split.

    In the first case a label is wrong; in the second an error is measured on training examples.
    """
    seen: dict[str, tuple[str, int, str]] = {}
    two_classes: list[str] = []
    leaked: list[str] = []
    for split, part in splits.items():
        if not isinstance(part.inputs, ImageFiles):
            continue
        files = part.inputs
        content = digests(files.root, files.names)  # unchecked: what is wrong with single files is told elsewhere
        for name, digest, label in zip(files.names, content, part.labels.tolist(), strict=True):
            first = seen.setdefault(digest, (split, label, name))
            if first[1] != label:
                two_classes.append(f"{name} is {first[2]}")
            elif first[0] != split and first[0] == "train":
                leaked.append(f"{name} is {first[2]}")
    sentences = []
    if two_classes:
        sentences.append(
            f"{len(two_classes):,} image {'file has' if len(two_classes) == 1 else 'files have'} the same content as "
            f"one of another class: {quote_names(two_classes)}. Keep each under its own class."
        )
    if leaked:
        sentences.append(
            f"{len(leaked):,} image {'file' if len(leaked) == 1 else 'files'} outside of the training split "
            f"{'has' if len(leaked) == 1 else 'have'} the same content as a training image: {quote_names(leaked)}. "
            "Their error would be that of examples which were learned: keep one of each."
        )
    return sentences


def on_scale(part: Labelled) -> str | None:
    """A sentence if the inputs are numbers far larger than networks are initialised for; None of pixels in bytes.

    >>> import torch
    >>> on_scale(Labelled(torch.full((2, 3), 800.0), torch.tensor([0, 1]), ("cat", "dog")))
    'The inputs are numbers of about ±800, and networks expect about ±1: scale them, --set augment=[normalise].'
    """
    if not len(part):
        return None
    squares, num = 0.0, 0
    for _, values in _chunks(part):
        if not values.is_floating_point():
            return None  # bytes are divided by 255
        squares, num = squares + float(values.double().square().sum()), num + values.numel()
    size = math.sqrt(squares / max(num, 1))
    if not _LARGE < size < math.inf:
        return None
    return (
        f"The inputs are numbers of about ±{size:.3g}, and networks expect about ±1: scale them, --set "
        "augment=[normalise]."
    )


class _Findings(NamedTuple):
    fatal: list[str]
    remarks: list[str]


def _findings(splits: Splits, *, read: bool) -> _Findings:
    findings = _Findings([], [])
    for name, part in splits.items():
        if not len(part):
            meaning = "there is nothing to learn from. Add" if name == "train" else "nothing can be measured on it. Add"
            findings.fatal.append(f"the split {name!r} is empty: {meaning} examples{_or_drop(name)}.")
    if len(splits.train):
        _look_at_classes(splits, findings)
    for name, part in splits.items():
        if len(part) and (read or not part.lazy) and not _look_at_sizes(name, part, findings):
            _look_at_inputs(name, part, findings)
    _look_at_scales(splits, findings)
    return findings


def _or_drop(split: str) -> str:
    return "" if split == "train" else ", or leave the split out"


def _look_at_classes(splits: Splits, findings: _Findings) -> None:
    counts = {split: part.labels.bincount(minlength=splits.num_classes).cpu() for split, part in splits.items()}
    anywhere = torch.stack(list(counts.values())).sum(0)
    if int((anywhere > 0).sum()) == 1:
        only = splits.classes[int(anywhere.argmax())]
        findings.fatal.append(
            f"the data have one class, {only!r}: there is nothing to tell apart. Add examples of another class."
        )
    for label, name in enumerate(splits.classes):
        elsewhere = [split for split, count in counts.items() if split != "train" and count[label]]
        if not counts["train"][label] and elsewhere:
            findings.fatal.append(
                f"class {name!r} has no training example, only in {' and '.join(map(repr, elsewhere))}. "
                "Add examples, or remove the class."
            )
    lone = _names(splits, counts["train"] == 1)
    if lone:
        one, they = ("has", "it cannot") if len(lone) == 1 else ("have", "they cannot")
        each, kept = ("", "is kept once") if len(lone) == 1 else (" each", "are kept once")
        findings.remarks.append(
            f"{_class(lone)} {one} one training example{each}: {they} be split into easy and hard, and {kept}. "
            f"Add examples, or remove the {'class' if len(lone) == 1 else 'classes'}."
        )
    unused = _names(splits, anywhere == 0)
    if unused:
        findings.remarks.append(
            f"{_class(unused)} {'has' if len(unused) == 1 else 'have'} no training example nor any other. "
            f"Add examples, or remove the {'class' if len(unused) == 1 else 'classes'}."
        )


def _names(splits: Splits, mask_C: Tensor) -> list[str]:
    return [name for name, chosen in zip(splits.classes, mask_C.tolist(), strict=True) if chosen]


def _class(names: Sequence[str]) -> str:
    return f"{'class' if len(names) == 1 else 'classes'} {quote_names(names)}"


def _look_at_sizes(name: str, part: Labelled, findings: _Findings) -> bool:
    """Whether image files or rows differ in size, so that they cannot be stacked, or cannot be read."""
    if isinstance(part.inputs, Rows):
        sentences = part.inputs.problems()
        findings.fatal.extend(f"{name!r}: {sentence}" for sentence in sentences)
        return bool(sentences)
    odd = misfits(part.inputs) if isinstance(part.inputs, ImageFiles) else []
    if odd:
        height, width = part.shape[1:]
        findings.fatal.append(
            f"{len(odd):,} of {len(part):,} images of {name!r} are not {height}×{width} as the first is: "
            f"{describe_broken(odd)}. Give a size to resize all images to: --set size={max(height, width)}."
        )
    return bool(odd)


def _look_at_inputs(name: str, part: Labelled, findings: _Findings) -> None:
    one = part.gather([0])
    constant, not_finite, first = len(part) > 1, 0, 0
    for positions, values in _chunks(part):
        constant = constant and bool((values == one).all())
        if values.is_floating_point():
            finite = values.isfinite()
            if not bool(finite.all()):
                wrong = (~finite).flatten(1).any(1)
                if not not_finite:
                    first = int(positions[int(wrong.nonzero()[0])])
                not_finite += int(wrong.sum())
        elif not constant:
            break  # bytes are always finite
    if not_finite:
        inputs = "1 input" if not_finite == 1 else f"{not_finite:,} inputs"
        verb = "holds" if not_finite == 1 else "hold"
        which = f"{'' if not_finite == 1 else 'the first is '}example {int(part.index[first])}"
        findings.fatal.append(f"{inputs} of {name!r} {verb} NaN or infinity ({which}). Remove or replace these values.")
    if constant:
        findings.remarks.append(
            f"all inputs of {name!r} are the same: nothing can be learned from them. Was it read correctly?"
        )


def _look_at_scales(splits: Splits, findings: _Findings) -> None:
    """Bytes are divided by 255 and other numbers are not, so that they must lie in [0, 1] where a split holds bytes."""
    inputs = {name: part.inputs for name, part in splits.items() if isinstance(part.inputs, Tensor) and len(part)}
    in_bytes = next((name for name, values in inputs.items() if values.dtype == torch.uint8), None)
    for name, values in inputs.items():
        if in_bytes is None or values.dtype == torch.uint8 or not values.numel():
            continue
        low, high = (float(end) for end in values.aminmax())
        if not -_SLACK <= low <= high <= 1 + _SLACK:
            findings.fatal.append(
                f"the inputs of {in_bytes!r} are bytes, which are divided by 255, and those of {name!r} numbers from "
                f"{low:g} to {high:g}, which are not. Give both as bytes (uint8), or both as numbers."
            )


def _chunks(part: Labelled) -> Iterator[tuple[Sequence[int], Tensor]]:
    """Positions, and the inputs there."""
    num = len(part)
    if isinstance(part.inputs, Tensor):
        for start, values in zip(range(0, num, _CHUNK), torch.split(part.inputs, _CHUNK), strict=True):
            yield range(start, start + len(values)), values  # views, not copies
    else:
        # Spread over the whole split, so that the classes of a sorted listing all have a chance to be seen.
        positions = sorted({round(k * (num - 1) / 15) for k in range(16)})
        yield positions, part.gather(positions)
