"""Every data set behind one type: `load(name_or_path)` gives `Splits` of `Labelled` examples."""

from typing import TYPE_CHECKING

from evenly.lazy import attach

if TYPE_CHECKING:
    from evenly.data.augment import Augmentation as Augmentation
    from evenly.data.batches import Batches as Batches
    from evenly.data.catalogue import load as load
    from evenly.data.labelled import Labelled as Labelled
    from evenly.data.splits import Splits as Splits

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Augmentation": "evenly.data.augment",
        "Batches": "evenly.data.batches",
        "Labelled": "evenly.data.labelled",
        "Splits": "evenly.data.splits",
        "load": "evenly.data.catalogue",
    },
)
