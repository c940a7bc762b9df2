"""The toy of sections 5 and 6 in numbers: spirals, disentangled networks trained side by side, their phantom heads.

Shapes: K toys, N examples, B batches of them, 2 features (easy, hard).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from evenly.data import Splits, load
from evenly.models import build
from evenly.rng import generator
from evenly.training.ensemble import Ensemble

LR = 0.01


@dataclass(frozen=True)
class Toy:
    """One run: its seed, the spiral's rotation, the rule it is trained by, and the noise of its data."""

    seed: int
    chi: float
    rule: str = "lsam"
    rho: float = 0.0
    hard: float = 1.0
    noise: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What the heads of all toys read: the features of every example (K × N × 2), classes ±1 (K × N), v (K × 2)."""

    phi: Tensor
    sign: Tensor
    v: Tensor

    @property
    def contributions(self) -> Tensor:
        """y·v_easy·Φ_easy and y·v_hard·Φ_hard, K × N × 2."""
        return self.sign[..., None] * self.v[:, None] * self.phi

    @property
    def importance(self) -> Tensor:
        """λ = σ(−y f), K × N (eq. 6)."""
        return torch.sigmoid(-self.contributions.sum(2))


class Grown:
    """Toys that are trained as one ensemble; everything but the settings of each is the same."""

    def __init__(
        self,
        toys: Sequence[Toy],
        *,
        batch_size: int = 5,
        num_train: int = 300,
        num_test: int = 2000,
        width: int = 100,
    ) -> None:
        self.toys, self.batch_size = list(toys), batch_size
        kept: dict[str, Splits] = {}
        self.data: list[Splits] = []
        for toy in self.toys:
            key = repr((toy.seed, toy.chi, sorted(toy.noise.items())))
            if key not in kept:
                options = {"num_train": num_train, "num_test": num_test, "chi": toy.chi, **toy.noise}
                kept[key] = load("spirals", seed=toy.seed, **options)
            self.data.append(kept[key])
        # Toys of one seed begin with the same weights and see the same order: what differs is the rule.
        models = [
            build("disentangled", input_shape=(4,), num_classes=2, rng=generator(toy.seed, "init"), width=width)
            for toy in self.toys
        ]
        self.ensemble = Ensemble(
            models,
            [splits.train for splits in self.data],
            lr=LR,
            rule=[toy.rule for toy in self.toys],
            rho=[toy.rho for toy in self.toys],
            hard=[toy.hard for toy in self.toys],
            batch_size=batch_size,
            seeds=[toy.seed for toy in self.toys],
        )

    def epochs(self, numbers: Iterable[int]) -> Iterator[int]:
        """Train to each of these epochs in turn."""
        for number in numbers:
            self.ensemble.run(number * self.ensemble.steps_per_epoch - self.ensemble.step)
            yield number

    def seen(self, split: str = "train", *, attribute: str = "hard") -> Seen:
        """The features of every toy on a split of its own data, and the class of one attribute."""
        parts = [splits[split] for splits in self.data]
        phi_KN2 = self.ensemble.features(torch.stack([part.gather(range(len(part))) for part in parts]))
        class_KN = torch.stack([part.attribute(attribute) for part in parts])
        return Seen(phi_KN2, (2 * class_KN - 1).to(phi_KN2), self.ensemble.parameters()["head.weight"][:, 0])

    def phantoms(self, seen: Seen) -> Tensor:
        """ṽ of every toy for every batch of the split, K × B × 2."""
        return phantom_heads(seen, rho=[toy.rho for toy in self.toys], group=self.batch_size)


def phantom_heads(seen: Seen, *, rho: Sequence[float], group: int) -> Tensor:
    """ṽ = v + ρ ∇_v L/‖∇_v L‖ for every `group` examples in the order of the data (eq. 5), K × B × 2.

    >>> seen = Seen(torch.tensor([[[3.0, 4.0]]]), torch.ones(1, 1), torch.ones(1, 2))
    >>> phantom_heads(seen, rho=[0.5], group=1)  # away from Φ/‖Φ‖
    tensor([[[0.7000, 0.6000]]])
    """
    slope_KN2 = -(seen.importance * seen.sign)[..., None] * seen.phi
    g_KB2 = torch.stack([part.mean(1) for part in torch.split(slope_KN2, group, dim=1)], dim=1)
    length_KB1 = torch.linalg.vector_norm(g_KB2, dim=2, keepdim=True)
    unit_KB2 = torch.where(length_KB1 > 0, g_KB2 / length_KB1, 0.0)
    return seen.v[:, None] + torch.tensor(rho, dtype=seen.v.dtype)[:, None, None] * unit_KB2


def phantom_importance(seen: Seen, v_KB2: Tensor, *, group: int) -> Tensor:
    """λ̃: the importance of every example with the phantom head of its own batch, K × N."""
    each_KN2 = v_KB2.repeat_interleave(group, dim=1)[:, : seen.phi.shape[1]]
    return torch.sigmoid(-(seen.sign[..., None] * each_KN2 * seen.phi).sum(2))
