"""Image files that are both trained on and held out.

Shapes: N files.
"""

from collections.abc import Sequence

import numpy as np

from evenly.data.formats.class_folders import quote_names
from evenly.data.formats.image_files import ImageFiles
from evenly.data.formats.listing import members
from evenly.data.formats.same_files import file_numbers
from evenly.data.labelled import Labelled


def remarks_on_shared(whole: Labelled, split_of: Sequence[str]) -> tuple[str, ...]:
    """A sentence on files of `train` that another split lists too, by the same path or by links.

    `split_of` counts all that were listed, also broken images that were left out.
    """
    inside = {split: in_N[whole.index] for split, in_N in members(split_of).items()}
    if "train" not in inside or len(inside) == 1 or not isinstance(whole.inputs, ImageFiles):
        return ()
    file_N = file_numbers(whole.inputs)
    if file_N is None:
        return ()
    trained_N = np.isin(file_N.numpy(), file_N[inside["train"]].numpy()) & ~inside["train"].numpy()
    if not (num := int(trained_N.sum())):
        return ()
    names = whole.inputs.names.select(np.flatnonzero(trained_N).tolist())
    which = " and ".join(repr(split) for split, in_N in inside.items() if bool((in_N.numpy() & trained_N).any()))
    files, their = ("1 file", "its") if num == 1 else (f"{num:,} files", "their")
    return (
        f"{files} of {which} {'is' if num == 1 else 'are'} trained on too ({quote_names(names)}): {their} error "
        "is that of examples which were learned. List each file in one split.",
    )
