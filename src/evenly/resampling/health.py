"""A check of a separation before anything is upsampled: are clusters distinct, are labels wrong, is it reproducible?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from evenly.errors import DataError, UsageError
from evenly.resampling.agreement import Agreement
from evenly.resampling.distinctness import Distinctness, distinctness
from evenly.resampling.label_noise import LabelNoise, label_noise, on_noise
from evenly.resampling.outputs import Array, On, Outputs, check_outputs
from evenly.resampling.remarks import CLUSTERLESS, classes_to_judge, on_clusters
from evenly.resampling.separation import Separation
from evenly.resampling.silhouette import SAMPLE
from evenly.resampling.suspects import NOBODY, Suspects, suspects
from evenly.rng import generator

LITTLE_OVERLAP = 0.5  # Jaccard index: below it, separations differ on most hard examples


@dataclass(frozen=True, eq=False)
class Health:
    """The result of the check, as data and in sentences.

    `distinctness` covers every class with enough examples, by label, if clusters were made; `indistinct` are the labels
    of the classes whose clusters are halves of one cloud. `suspects` look mislabelled (none if features were clustered,
    which predict no class), and `noise` is the estimated share of wrong labels. `agreements` compare with the other
    separations in the order given. `sentences` say what deserves attention; there are none if nothing does.
    """

    distinctness: dict[int, Distinctness]
    indistinct: tuple[int, ...]
    suspects: Suspects
    noise: LabelNoise | None
    agreements: tuple[Agreement, ...]
    sentences: tuple[str, ...]


def health(
    separation: Separation,
    logits: Array,
    *,
    others: Sequence[Separation] = (),
    sure: float = 0.9,
    sample: int = SAMPLE,
) -> Health:
    """Check a separation together with the outputs it was made from.

    `others` are separations of the same data: from the epoch before, from other seeds. Suspects can be left at one
    copy: `separation.subset(data, once=health.suspects.rows)`.

    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> labels = torch.arange(200) % 2
    >>> logits = torch.randn(200, 2, generator=rng) + 4 * torch.nn.functional.one_hot(labels, 2)
    >>> from evenly.resampling import separate
    >>> health(separate(logits, labels, max_accuracy=1), logits).indistinct
    (0, 1)
    """
    if not isinstance(separation, Separation):
        raise UsageError(
            f"health checks a separation, not a {type(separation).__name__}: "
            "health(evenly.separate(logits, labels), logits)."
        )
    if len(logits) != len(separation):
        raise DataError(
            f"{len(logits):,} rows of outputs for a separation of {len(separation):,}: give those it was made from."
        )
    on = separation.on if separation.on in get_args(On) else "logits"  # unknown for a CSV file
    outputs = check_outputs(logits, separation.labels, losses=separation.losses, on=on)
    by_label = dict(separation.distinctness) or _distinctness(separation, outputs, sample=sample)
    indistinct = tuple(label for label, facts in by_label.items() if not facts.distinct)
    # Features predict no class, so they cannot show that a label is wrong.
    suspected = suspects(logits, separation.labels, losses=separation.losses, sure=sure) if outputs.predict else NOBODY
    noise = label_noise(logits, separation.labels) if outputs.predict else None
    agreements = tuple(separation.agreement(other) for other in others)
    already_said = any(CLUSTERLESS in remark for remark in separation.remarks)
    sentences = (
        *separation.remarks,
        *(() if already_said else on_clusters(separation.name, by_label)),
        *(on_noise(noise, hard_share=separation.share, method=separation.method) if noise is not None else ()),
        *_on_suspects(separation, suspected),
        *_on_agreement(agreements),
    )
    return Health(by_label, indistinct, suspected, noise, agreements, sentences)


def _distinctness(separation: Separation, outputs: Outputs, *, sample: int) -> dict[int, Distinctness]:
    """The distinctness of a separation that does not carry it because it was read from a file."""
    by_label: dict[int, Distinctness] = {}
    # Other methods than k-means make no clusters.
    if separation.method != "k-means":
        return by_label
    known = {split.label: split.silhouette for split in separation.splits}
    scratch, looked_at = outputs.scratch(), classes_to_judge(outputs.labels)
    for label, members_K in outputs.by_class():
        if label not in looked_at:
            continue
        x_KD = outputs.points(outputs.read(members_K, scratch), scratch)
        silhouette = known.get(label, math.nan)
        facts = distinctness(
            x_KD,
            separation.hard[members_K].to(x_KD.device),
            known=silhouette if math.isfinite(silhouette) else None,
            sample=sample,
            rng=generator(0, "distinct", label),
        )
        if facts is not None:
            by_label[label] = facts
    return by_label


def _on_suspects(separation: Separation, suspected: Suspects) -> list[str]:
    if not len(suspected):
        return []
    among = int(separation.hard[suspected.rows].sum())
    shown = ", ".join(
        f"{int(separation.index[row])} (labelled {separation.name(int(separation.labels[row]))}, predicted "
        f"{separation.name(int(said))} at {float(sure):.0%})"
        for row, said, sure in zip(
            suspected.rows[:3].tolist(), suspected.predicted.tolist(), suspected.probability.tolist(), strict=False
        )
    )
    return [
        f"{len(suspected):,} examples look mislabelled, {among:,} of the {separation.num_hard:,} that would be "
        f"repeated: {shown}. Look at them; `evenly useful --drop-suspect`, or once=health.suspects.rows, leaves them "
        "at one copy."
    ]


def _on_agreement(agreements: Sequence[Agreement]) -> list[str]:
    low = [agreement for agreement in agreements if agreement.jaccard < LITTLE_OVERLAP]
    if not low:
        return []
    worst = min(agreement.jaccard for agreement in low)
    return [
        f"the hard examples are not the same from separation to separation: {len(low)} of {len(agreements)} others "
        f"share less than half of them (the least {worst:.0%}). Separate later before trusting it."
    ]
