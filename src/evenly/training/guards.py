"""Warnings before upsampling: classes without distinct clusters, and labels that may be wrong."""

from evenly.records import Run
from evenly.resampling import Separation
from evenly.resampling.label_noise import label_noise, on_noise
from evenly.training.early import load_outputs


def cautions(early: Run, separation: Separation, *, factor: int | None) -> tuple[str, ...]:
    """The remarks of a separation, and a sentence on wrong labels where `factor` would repeat too many of them.

    `factor` is the largest by which a method repeats examples that may be mislabelled; None if no method does.
    """
    if factor is None:
        return separation.remarks
    noise = label_noise(load_outputs(early)["logits"], separation.labels)
    return (*separation.remarks, *on_noise(noise, hard_share=separation.share, factor=factor))
