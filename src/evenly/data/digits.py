"""Real images that need no download: the 8×8 handwritten digits that ship with scikit-learn."""

import torch

from evenly.data.held_out import held_out, where
from evenly.data.labelled import Labelled, Splits


def digits() -> Splits:
    """1,797 images of the ten digits (Alpaydin & Kaynak, 1998), a fixed fifth of each class held out for testing.

    The collection has no published split in this form; ours is a fixed shuffle, the same on every machine.
    The 17 grey levels are spread over 0..255.

    >>> splits = digits()
    >>> splits.train
    <digits train: 1,438 examples of 1×8×8, 10 classes>
    >>> len(splits["test"]), splits["test"].labels.bincount().tolist()
    (359, [36, 36, 35, 37, 36, 36, 36, 36, 35, 36])
    """
    from sklearn.datasets import load_digits

    bundle = load_digits()
    pixels = torch.from_numpy(bundle.images).mul(255 / 16).round().to(torch.uint8)[:, None]
    whole = Labelled(pixels, torch.from_numpy(bundle.target).long(), tuple(map(str, range(10))))
    test = held_out(whole.labels, share=0.2, key="digits")
    return Splits("digits", {"train": whole.subset(where(~test)), "test": whole.subset(where(test))})
