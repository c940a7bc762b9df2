"""Published image data sets that are trees of files: CINIC-10 and Tiny-ImageNet."""

from collections import Counter
from pathlib import Path

from evenly.data.formats.class_folders import class_folders, quote_names, require_files
from evenly.data.formats.listing import Listing, by_split
from evenly.data.formats.locate import locate
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.regular import read_text


def cinic10(*, root: Path, skip_broken: bool = False) -> Splits:
    """CINIC-10 (Darlow et al., 2018): 90,000 images in each of train, validation and test, 3×32×32, 10 classes.

    The attribute `source` says whether an image came from CIFAR-10 or from ImageNet. Files are decoded when they
    are asked for; `Labelled.in_memory` decodes them once and for all.

    >>> cinic10(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: CINIC-10 was not found. Looked for nowhere/CINIC-10, nowhere/cinic-10 or ...
    """
    folder = locate("CINIC-10", root, ["CINIC-10", "cinic-10", "cinic10"])
    names: list[str] = []
    labels: list[int] = []
    split_of: list[str] = []
    classes: tuple[str, ...] = ()
    for split, below in {"train": "train", "validation": "valid", "test": "test"}.items():
        files = class_folders(locate(f"{below}, a folder of CINIC-10,", folder, [below]))
        classes = classes or tuple(files)
        if tuple(files) != classes:
            differing = sorted(set(classes) ^ set(files))
            raise DataError(
                f"{folder}: train and {below} have different classes ({quote_names(differing)}): unpack it again."
            )
        for label, inside in enumerate(files.values()):
            names += [f"{below}/{name}" for name in inside]
            labels += [label] * len(inside)
            split_of += [split] * len(inside)
    source = [0 if Path(name).name.startswith("cifar10-") else 1 for name in names]
    listing = Listing(folder, names, labels, classes, {"source": source}, {"source": ("CIFAR-10", "ImageNet")})
    return by_split("cinic10", listing.to_labelled(size=None, skip_broken=skip_broken), split_of)


def tiny_imagenet(*, root: Path, skip_broken: bool = False) -> Splits:
    """Tiny-ImageNet: 100,000 + 10,000 images of 3×64×64 in 200 classes.

    The split `test` is the published *validation* set: the labels of the published test set were never released.
    Classes carry the first word of their WordNet entry, with its number where two share a word.

    >>> tiny_imagenet(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: Tiny-ImageNet was not found. Looked for nowhere/tiny-imagenet-200.
    """
    folder = locate("Tiny-ImageNet", root, ["tiny-imagenet-200"])
    numbers = _lines(folder, "wnids.txt")
    label_of = {number: label for label, number in enumerate(numbers)}
    files = class_folders(locate("train, a folder of Tiny-ImageNet,", folder, ["train"]))
    if set(files) != set(numbers):
        differing = sorted(set(files) ^ set(numbers))
        raise DataError(
            f"{folder}: wnids.txt and the folders of train differ: {quote_names(differing)}. Unpack it again."
        )
    names = [f"train/{name}" for number in numbers for name in files[number]]
    labels = [label_of[number] for number in numbers for _ in files[number]]
    num_train = len(names)
    for line in _lines(folder, "val/val_annotations.txt"):
        name, number = [*line.split("\t"), ""][:2]
        if number not in label_of:
            raise DataError(
                f"{folder}/val/val_annotations.txt: {line!r} does not name one of the classes of wnids.txt."
            )
        names.append(f"val/images/{name}")
        labels.append(label_of[number])
    require_files(folder / "val/val_annotations.txt", folder, names[num_train:])
    whole = Listing(folder, names, labels, _class_names(folder, numbers)).to_labelled(
        size=None, skip_broken=skip_broken
    )
    return by_split("tiny-imagenet", whole, ["train"] * num_train + ["test"] * (len(names) - num_train))


def _class_names(folder: Path, numbers: list[str]) -> tuple[str, ...]:
    entries = dict(line.split("\t", 1) for line in _lines(folder, "words.txt") if "\t" in line)
    first = [entries.get(number, number).split(",")[0].strip() for number in numbers]
    uses = Counter(first)
    return tuple(f"{word} ({n})" if uses[word] > 1 else word for word, n in zip(first, numbers, strict=True))


def _lines(folder: Path, name: str) -> list[str]:
    path = locate(f"{name}, a file of Tiny-ImageNet,", folder, [name])
    return [line for line in read_text(path).splitlines() if line.strip()]
