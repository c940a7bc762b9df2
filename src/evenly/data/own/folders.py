"""Your own images: a folder per class, with or without a folder per split above."""

from pathlib import Path

from evenly.data.formats.class_folders import class_folders, has_images, quote_names, remarks_on_unread, sub_folders
from evenly.data.formats.image_files import Size
from evenly.data.formats.listing import Listing, by_split
from evenly.data.formats.locate import Missing
from evenly.data.own.inner_folders import remarks_on_levels
from evenly.data.own.shared_files import remarks_on_shared
from evenly.data.splits import Splits
from evenly.errors import DataError

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}


def folder(path: Path, *, size: Size | None = None, skip_broken: bool = False) -> Splits:
    """Images in `path/<class>/`, or in `path/{train,val,test}/<class>/`, decoded when they are asked for.

    A folder is taken to hold splits when it has a folder `train` that holds folders and no images of its own;
    so a class may be called train. Class folders may be nested. `size` is height and width, or one number for
    both; without it all images must be of one size. `skip_broken` leaves out files that do not decode; they are
    listed by `evenly.data.formats.listing.list_dropped`.

    >>> import tempfile
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp()) / "pets"
    >>> for kind in ("cat", "dog"):
    ...     (root / kind).mkdir(parents=True)
    ...     Image.new("RGB", (8, 8)).save(root / kind / "1.png")
    >>> folder(root).train
    <pets train: 2 lazy examples of 3×8×8, 2 classes>
    """
    path = Path(path)
    if not path.is_dir():
        raise Missing("A folder of class folders", [path])
    split_folders = _split_folders(path)
    files_by_split = {split: class_folders(path / below) for split, below in split_folders.items()}
    classes = tuple(files_by_split["train"])
    levels = remarks_on_levels(path / split_folders["train"], classes, split_words=tuple(SPLIT_NAMES))
    names: list[str] = []
    labels: list[int] = []
    split_of: list[str] = []
    for split, files_by_class in files_by_split.items():
        strange = [name for name in files_by_class if name not in classes]
        if strange:
            raise DataError(
                f"{path / split_folders[split]}: class {quote_names(strange)} has no training example: there is no "
                f"such folder in {path / split_folders['train']}. Add training images, or remove the class."
            )
        for name, files in files_by_class.items():
            names += [Path(split_folders[split], file).as_posix() for file in files]
            labels += [classes.index(name)] * len(files)
            split_of += [split] * len(files)
    whole = Listing(path, names, labels, classes).to_labelled(size=size, skip_broken=skip_broken)
    splits = by_split(path.resolve().name, whole, split_of)
    shared = remarks_on_shared(whole, split_of)
    unread = [remark for below in split_folders.values() for remark in remarks_on_unread(path / below)]
    splits.remarks = (*splits.remarks, *levels, *shared, *unread)
    return splits


def _split_folders(path: Path) -> dict[str, str]:
    """For every split, the folder below `path` that holds its classes; '' where `path` itself does."""
    names = sub_folders(path)
    train = next((name for name in names if SPLIT_NAMES.get(name.lower()) == "train"), None)
    if train is None or not sub_folders(path / train) or has_images(path / train):
        return {"train": ""}
    unknown = [name for name in names if name.lower() not in SPLIT_NAMES]
    if unknown:
        raise DataError(
            f"{path}: {quote_names(unknown)} beside {train!r} is not a split. Expected train, val or validation, and "
            "test; move it elsewhere, or give a CSV manifest with a column `split`."
        )
    splits: dict[str, str] = {}
    for name in names:
        split = SPLIT_NAMES[name.lower()]
        if split in splits:
            raise DataError(f"{path}: both {splits[split]!r} and {name!r} would be the split {split}. Keep one.")
        splits[split] = name
    return splits
