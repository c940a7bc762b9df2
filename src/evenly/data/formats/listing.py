"""A list of image files with their labels and attributes, on its way to becoming `Labelled`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from evenly.data.formats.image_decoding import Broken, describe_broken, scan
from evenly.data.formats.image_files import ImageFiles, Size, open_images
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import DataError

_ORDER = {"train": 0, "validation": 1, "test": 2, "target_train": 3, "target_test": 4}


@dataclass(frozen=True, eq=False)
class Listing:
    """Image files under `root`, a label for each, named attributes, and the split each belongs to."""

    root: Path
    names: Sequence[str]
    labels: Sequence[int] | Tensor
    classes: tuple[str, ...]
    attributes: Mapping[str, Sequence[int] | Tensor] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_labelled(self, *, size: Size | None, skip_broken: bool) -> Labelled:
        """All files as one `Labelled`, numbered as listed; with `skip_broken`, without those that do not decode.

        The numbers of the others do not change when a broken file is left out.
        """
        broken = scan([self.root / name for name in self.names]) if skip_broken else []
        gone = {path for path, _ in broken}
        kept = [i for i, name in enumerate(self.names) if self.root / name not in gone] if gone else None
        if broken and not kept:
            path, reason = broken[0]
            raise DataError(
                f"{self.root}: none of the {len(broken):,} images decodes. The first, {path.name}: {reason}."
            )
        whole = Labelled(
            open_images(
                self.root,
                self.names if kept is None else [self.names[i] for i in kept],
                size=size,
                dropped=broken,
                scanned=skip_broken,
            ),
            self._column(self.labels, kept),
            self.classes,
            attributes={name: self._column(values, kept) for name, values in self.attributes.items()},
            values=self.values,
        )
        return whole if kept is None else replace(whole, index=torch.tensor(kept))

    def _column(self, values: Sequence[int] | Tensor, kept: list[int] | None) -> Tensor:
        column = torch.as_tensor(values, dtype=torch.int64)
        return column if kept is None else column[torch.tensor(kept)]


def by_split(name: str, whole: Labelled, split_of: Sequence[str]) -> Splits:
    """`whole` cut by the split each example was listed under (`split_of` counts all listed, also the dropped).

    >>> whole = Labelled(torch.zeros(3, 2), torch.tensor([0, 1, 0]), ("a", "b"))
    >>> {s: part.index.tolist() for s, part in by_split("x", whole, ["test", "train", "train"]).items()}
    {'train': [1, 2], 'test': [0]}
    """
    parts = {split: whole.subset(in_N[whole.index].nonzero().flatten()) for split, in_N in members(split_of).items()}
    return Splits(name, parts, remarks=remarks_on(whole))


def members(split_of: Sequence[str]) -> dict[str, Tensor]:
    """For every split, in their usual order, whether each row was listed under it.

    >>> {split: inside.tolist() for split, inside in members(["test", "train"]).items()}
    {'train': [False, True], 'test': [True, False]}
    """
    splits = sorted(set(split_of), key=lambda s: (_ORDER.get(s, 5), s))
    number = {split: place for place, split in enumerate(splits)}
    split_N = torch.frombuffer(bytearray(map(number.__getitem__, split_of)), dtype=torch.uint8)
    return {split: split_N == place for split, place in number.items()}


def remarks_on(whole: Labelled) -> tuple[str, ...]:
    """Remarks on the files that were left out."""
    files = whole.inputs
    return left_out_remark(files.dropped, root=files.root) if isinstance(files, ImageFiles) else ()


def list_dropped(splits: Splits) -> list[Broken]:
    """The broken image files that `skip_broken=True` left out of `splits`, each once.

    >>> list_dropped(Splits("x", {"train": Labelled(torch.zeros(1, 2), torch.tensor([0]), ("a",))}))
    []
    """
    by_path = {}
    for part in splits.values():
        if isinstance(part.inputs, ImageFiles):
            by_path.update({broken.path: broken for broken in part.inputs.dropped})
    return list(by_path.values())


def left_out_remark(broken: Sequence[Broken], *, root: Path) -> tuple[str, ...]:
    """The remark about broken images that were left out, if there are any.

    >>> left_out_remark([Broken(Path("pets/cat/1.png"), "image file is truncated")], root=Path("pets"))
    ('1 broken image was left out: cat/1.png (image file is truncated).',)
    """
    if not broken:
        return ()
    count = "1 broken image was" if len(broken) == 1 else f"{len(broken):,} broken images were"
    return (f"{count} left out: {describe_broken(broken, root=root)}.",)


def number_groups(labels: Sequence[int], attribute: Sequence[int], *, num_values: int) -> Tensor:
    """Number the combinations of label and attribute: group = num_values · label + attribute.

    >>> number_groups([0, 1, 1], [1, 0, 1], num_values=2).tolist()
    [1, 2, 3]
    """
    return torch.tensor(labels) * num_values + torch.tensor(attribute)
