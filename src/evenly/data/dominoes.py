"""Two images stacked, an easy one on a hard one: perfectly correlated in training, independent where we probe.

Shah et al. (2020) and Springer et al. (2024), appendix B. Images are N×C×H×W.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

from evenly.data.digits import digits
from evenly.data.formats.cifar import cifar10
from evenly.data.formats.idx import fashion_mnist, mnist
from evenly.data.held_out import where
from evenly.data.labelled import Labelled
from evenly.data.planted import Shares, spawn_generator
from evenly.data.splits import Splits
from evenly.data.stacking import Pools, blank_easy


def cifar_mnist(
    *,
    root: Path,
    rng: torch.Generator,
    alpha: float | None = None,
    conflict: float = 0.0,
    noise: float = 0.0,
    size: int | None = None,
) -> Splits:
    """MNIST 0/1 on CIFAR-10 airplane/automobile, 3×64×32 pixels; the digit is the easy feature.

    A tenth of the training images is held out: stacked by class as `validation`, independently as `probe`. With
    `alpha`, `conflict`, `noise` or `size` (`evenly.data.planted.Shares`) the digit of some examples is missing or that
    of the other class, in `train`, `validation` and `test`; some training labels are wrong; training examples are
    fewer. Then the split `groups` holds every test image three times: with an agreeing, with a contradicting and
    without a digit. `conflict=0.05` is the usual correlation of 95 %.
    """
    return _dominoes(
        "cifar-mnist",
        easy=mnist(root=root),
        hard=cifar10(root=root),
        shares=Shares(alpha, conflict, noise, size, num_classes=2),
        rng=rng,
    )


def fmnist_mnist(
    *,
    root: Path,
    rng: torch.Generator,
    alpha: float | None = None,
    conflict: float = 0.0,
    noise: float = 0.0,
    size: int | None = None,
) -> Splits:
    """The first five classes of MNIST on the first five of Fashion-MNIST, 3×64×32 pixels; the digit is easy.

    A tenth of the training images is held out: stacked by class as `validation`, independently as `probe`. The options
    are those of `cifar_mnist`.
    """
    return _dominoes(
        "fmnist-mnist",
        easy=mnist(root=root),
        hard=fashion_mnist(root=root),
        shares=Shares(alpha, conflict, noise, size, num_classes=5),
        rng=rng,
    )


def digit_dominoes(
    *,
    rng: torch.Generator,
    alpha: float = 0.8,
    conflict: float = 0.0,
    noise: float = 0.0,
    size: int | None = None,
) -> Splits:
    """A digit 0 or 1 (easy) on a digit from 2 to 9 that is even or odd (hard), 1×16×8 pixels, no download.

    The upper digit is there with probability `alpha`, else its place is blank: such an example can be classified by the
    hard feature only, as in `patches`. `alpha=1` is the perfect correlation of `cifar-mnist`. The attribute
    `easy_present` says which have it; `probe` and `balanced` all have it. `conflict`, `noise` and `size` are those of
    `cifar_mnist`, and bring the split `groups`; with `size=862`, all there are, it is added to unchanged data.

    >>> splits = digit_dominoes(rng=torch.Generator().manual_seed(0))
    >>> list(splits), splits.train.shape
    (['train', 'validation', 'test', 'probe', 'balanced'], (1, 16, 8))
    """
    shares = Shares(alpha, conflict, noise, size)
    whole = digits()

    def part(split: str, *, easy: bool) -> Labelled:
        labelled = whole[split]
        chosen = labelled.subset(where((labelled.labels < 2) == easy))
        return replace(chosen, labels=chosen.labels % 2, classes=("0", "1") if easy else ("even", "odd"))

    easy, hard = (Splits(kind, {s: part(s, easy=kind == "easy") for s in whole}) for kind in ("easy", "hard"))
    pools = Pools.of("digit-dominoes", easy=easy, hard=hard, held_out_share=0.25)
    made = pools.stack(rng)
    u = {split: torch.rand(len(part), generator=rng) for split, part in made.items()}
    if shares.is_planted:
        return pools.plant(made, shares, u, rng=spawn_generator(rng, "planted"))
    parts = {
        split: blank_easy(part, u[split] < (1 if split in ("probe", "balanced") else alpha))
        for split, part in made.items()
    }
    return Splits(made.name, parts)


def _dominoes(name: str, *, easy: Splits, hard: Splits, shares: Shares, rng: torch.Generator) -> Splits:
    """The first classes of two published data sets, each image made 3×32×32."""

    def prepare(part: Labelled) -> Labelled:
        chosen = part.subset(where(part.labels < shares.num_classes))
        whole = _square(chosen.gather(range(len(chosen))))
        return replace(chosen, inputs=whole, classes=part.classes[: shares.num_classes])

    easy, hard = (Splits(name, {s: prepare(p) for s, p in splits.items()}) for splits in (easy, hard))
    pools = Pools.of(name, easy=easy, hard=hard, held_out_share=0.1)
    made = pools.stack(rng)
    if not shares.is_planted and shares.agreeing_share == 1:
        return made
    extra = spawn_generator(rng, "planted")
    u = {split: torch.rand(len(part), generator=extra) for split, part in made.items()}
    return pools.plant(made, shares, u, rng=extra)


def _square(x_NCHW: Tensor, side: int = 32) -> Tensor:
    """Zero-padded to side × side, grey repeated to three channels."""
    rows, columns = side - x_NCHW.shape[2], side - x_NCHW.shape[3]
    padded = pad(x_NCHW, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
    return padded.expand(-1, 3, -1, -1)
