"""Figure 6: two features of the same strength, both in every example: the gap of eq. 11, and what symmetry says of it.

With β_e = β_d = α = 1 nothing tells the features apart: swapping their names is a symmetry of data, weights and
training, under which (G_e − G_d) − (S_e − S_d) changes its sign. Its mean over seeds is zero.
"""

from collections.abc import Sequence
from typing import Any

from evenly.papers.experiment import Context, Found
from evenly.papers.nguyen2024.dynamics import followed


def gap(context: Context, *, seeds: Sequence[int], name: str, **settings: Any) -> Found:
    """`NAME.gap`: (G_e − G_d) − (S_e − S_d), its mean from 250 iterations on; `.size` without its sign.

    `NAME.favoured` calls that feature easy with which the first weights are aligned more: the proof of theorem 3.4
    assumes that the easy one is ahead.
    """
    found = followed(context, seeds=seeds, name=name, beta_easy=1.0, beta_hard=1.0, alpha=1.0, **settings)
    values = dict(found.values)
    ours = {s: values[f"{name}.gd.gap.late"][s] - values[f"{name}.sam.gap.late"][s] for s in seeds}
    ahead = {s: values[f"{name}.gd.easy.start"][s] >= values[f"{name}.gd.hard.start"][s] for s in seeds}
    values[f"{name}.gap"] = ours
    values[f"{name}.size"] = {s: abs(number) for s, number in ours.items()}
    values[f"{name}.favoured"] = {s: number if ahead[s] else -number for s, number in ours.items()}
    return Found(values, found.series)
