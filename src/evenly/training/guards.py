"""What to know before anything is upsampled: whether clusters are clusters, and whether labels are wrong."""

from evenly.recipe import Recipe
from evenly.records import Run
from evenly.resampling import Separation
from evenly.resampling.label_noise import label_noise, on_noise
from evenly.training.early import load_outputs


def cautions(early: Run, separation: Separation, recipe: Recipe, *, factor: int) -> tuple[str, ...]:
    """The remarks of a separation, and a sentence on wrong labels where the factor would repeat too many of them."""
    if recipe.resampling.among == "right":  # against wrong labels something is done already
        return separation.remarks
    noise = label_noise(load_outputs(early)["logits"], separation.labels)
    return (*separation.remarks, *on_noise(noise, hard_share=separation.share, factor=factor))
