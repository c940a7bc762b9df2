"""A look at a separation before anything is upsampled: are the clusters distinct, are labels wrong, does it last?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch

from evenly.errors import DataError
from evenly.resampling.agreement import Agreement
from evenly.resampling.distinctness import Distinctness, distinctness
from evenly.resampling.outputs import Array, On, checked
from evenly.resampling.separation import Separation
from evenly.resampling.suspects import NOBODY, Suspects, suspects
from evenly.rng import generator

LITTLE_OVERLAP = 0.5  # Jaccard: below it more hard examples differ than agree


@dataclass(frozen=True, eq=False)
class Health:
    """What was found: facts as data, and the same in sentences.

    `distinctness` is that of every class with enough examples, by label, where clusters were made; `indistinct` are the
    labels of those whose clusters are halves of one cloud; `suspects` look mislabelled (none where features were
    clustered, which say no class); `agreements` compare with the other separations in the order given. `sentences` say
    what deserves attention; none of them means none does.
    """

    distinctness: dict[int, Distinctness]
    indistinct: tuple[int, ...]
    suspects: Suspects
    agreements: tuple[Agreement, ...]
    sentences: tuple[str, ...]


def health(
    separation: Separation,
    logits: Array,
    *,
    others: Sequence[Separation] = (),
    sure: float = 0.9,
    sample: int = 256,
    rng: torch.Generator | None = None,
) -> Health:
    """Look at a separation together with the outputs it was made from.

    `others` are separations of the same data: from the epoch before, from other seeds. Suspects can be left at one
    copy: `separation.subset(data, once=health.suspects.rows)`.

    >>> rng = torch.Generator().manual_seed(0)
    >>> labels = torch.arange(200) % 2
    >>> logits = torch.randn(200, 2, generator=rng) + 4 * torch.nn.functional.one_hot(labels, 2)
    >>> from evenly.resampling import separate
    >>> health(separate(logits, labels, max_accuracy=1), logits).indistinct
    (0, 1)
    """
    if len(logits) != len(separation):
        raise DataError(
            f"{len(logits):,} rows of outputs for a separation of {len(separation):,}: give those it was made from."
        )
    on = separation.on if separation.on in get_args(On) else "logits"  # a CSV file does not say
    outputs = checked(logits, separation.labels, losses=separation.losses, on=on)
    if rng is None:
        rng = generator(0, "health")
    found: dict[int, Distinctness] = {}
    room = outputs.room()
    # Whether clusters are distinct is asked of clusters: other rules make none.
    for label, members_K in outputs.by_class() if separation.method == "k-means" else ():
        facts = distinctness(outputs.points(outputs.read(members_K, room), room), sample=sample, rng=rng)
        if facts is not None:
            found[label] = facts
    indistinct = tuple(label for label, facts in found.items() if not facts.distinct)
    # Features say no class, and so not that a label is wrong.
    suspected = suspects(logits, separation.labels, losses=separation.losses, sure=sure) if outputs.predict else NOBODY
    agreements = tuple(separation.agreement(other) for other in others)
    sentences = (
        *separation.remarks,
        *_on_clusters(separation, found, indistinct),
        *_on_suspects(separation, suspected),
        *_on_agreement(agreements),
    )
    return Health(found, indistinct, suspected, agreements, sentences)


def _on_clusters(separation: Separation, found: dict[int, Distinctness], indistinct: Sequence[int]) -> list[str]:
    if not indistinct:
        return []
    worst = sorted(indistinct, key=lambda label: found[label].silhouette)
    names = ", ".join(
        f"{separation.name(label)} (silhouette {found[label].silhouette:.2f}, a single cloud reaches "
        f"{max(found[label].clouds):.2f})"
        for label in worst[:5]
    )
    more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
    return [
        f"{len(indistinct)} of {len(found)} classes do not fall into two clusters: what is called hard there is one "
        f"end of a single cloud, not a group of its own: {names}{more}. See whether it lasts in the next epoch or "
        "with another seed."
    ]


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
