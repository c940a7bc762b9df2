"""Disentangled networks on the spirals of section 5, trained side by side, and their phantom heads.

Shapes: K networks, T epochs, N examples, B batches of them, 2 features (easy, hard).
"""

from collections.abc import Mapping, Sequence
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
    """One network: its seed, the spiral's rotation, the rule that trains it, and the noise of its data."""

    seed: int
    chi: float
    rule: str = "lsam"
    rho: float = 0.0
    hard: float = 1.0
    noise: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Readout:
    """What the heads of all networks read: features of every example (K × N × 2), classes ±1 (K × N), v (K × 2)."""

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


class SpiralNetworks:
    """Networks that are trained as one ensemble; everything but the settings of each toy is the same."""

    def __init__(
        self, toys: Sequence[Toy], *, batch_size: int = 5, num_train: int = 300, num_test: int = 2000, width: int = 100
    ) -> None:
        self.toys, self.batch_size = list(toys), batch_size
        cache: dict[str, Splits] = {}
        self.data: list[Splits] = []
        for toy in self.toys:
            key = repr((toy.seed, toy.chi, sorted(toy.noise.items())))
            if key not in cache:
                options = {"num_train": num_train, "num_test": num_test, "chi": toy.chi, **toy.noise}
                cache[key] = load("spirals", seed=toy.seed, **options)
            self.data.append(cache[key])
        # Networks of one seed begin with the same weights and see the same order: what differs is the rule.
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

    def train(self, epoch: int) -> "SpiralNetworks":
        """Train until the end of this epoch."""
        self.ensemble.run(epoch * self.ensemble.steps_per_epoch - self.ensemble.step)
        return self

    def readout(self, split: str = "train", *, attribute: str = "hard") -> Readout:
        """The features of every network on a split of its own data, and the class of one attribute."""
        parts = [splits[split] for splits in self.data]
        phi_KN2 = self.ensemble.features(torch.stack([part.gather(range(len(part))) for part in parts]))
        class_KN = torch.stack([part.attribute(attribute) for part in parts])
        return Readout(phi_KN2, (2 * class_KN - 1).to(phi_KN2), self.ensemble.parameters()["head.weight"][:, 0])

    def phantoms(self, readout: Readout) -> Tensor:
        """ṽ of every network for every batch of the split, K × B × 2."""
        return phantom_heads(readout, rho=[toy.rho for toy in self.toys], group=self.batch_size)

    def phantom_history(self, epochs: int) -> tuple[Tensor, Tensor]:
        """Train; ṽ of every batch after every epoch, T × K × B × 2, and v, T × K × 2; the beginning is epoch 0."""
        phantoms, real = [], []
        for epoch in range(epochs + 1):
            readout = self.train(epoch).readout()
            phantoms.append(self.phantoms(readout))
            real.append(readout.v)
        return torch.stack(phantoms), torch.stack(real)


def phantom_heads(readout: Readout, *, rho: Sequence[float], group: int) -> Tensor:
    """ṽ = v + ρ ∇_v L/‖∇_v L‖ for every `group` examples in the order of the data (eq. 5), K × B × 2.

    >>> readout = Readout(torch.tensor([[[3.0, 4.0]]]), torch.ones(1, 1), torch.ones(1, 2))
    >>> phantom_heads(readout, rho=[0.5], group=1)  # away from Φ/‖Φ‖
    tensor([[[0.7000, 0.6000]]])
    """
    slope_KN2 = -(readout.importance * readout.sign)[..., None] * readout.phi
    g_KB2 = torch.stack([part.mean(1) for part in torch.split(slope_KN2, group, dim=1)], dim=1)
    length_KB1 = torch.linalg.vector_norm(g_KB2, dim=2, keepdim=True)
    unit_KB2 = torch.where(length_KB1 > 0, g_KB2 / length_KB1, 0.0)
    return readout.v[:, None] + torch.tensor(rho, dtype=readout.v.dtype)[:, None, None] * unit_KB2


def phantom_importance(readout: Readout, v_KB2: Tensor, *, group: int) -> Tensor:
    """λ̃: the importance of every example with the phantom head of its own batch, K × N."""
    each_KN2 = v_KB2.repeat_interleave(group, dim=1)[:, : readout.phi.shape[1]]
    return torch.sigmoid(-(readout.sign[..., None] * each_KN2 * readout.phi).sum(2))
