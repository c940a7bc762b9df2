"""Probing errors of the toy, against plain loops and thresholds whose answer is known."""

from pathlib import Path

import pytest
import torch

from evenly.papers.experiment import Context
from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy
from evenly.papers.springer2024.spiral_probing_error import (
    errors_by_radius,
    fitted_threshold_error,
    probing_errors,
)

SIZES = {"num_train": 20, "num_test": 40, "width": 8}


def test_probing_errors_are_counted_as_a_plain_loop_counts_them():
    toys = [Toy(seed, chi, rho=rho) for seed in (0, 1) for chi, rho in ((270.0, 0.0), (360.0, 0.5))]
    networks = SpiralNetworks(toys, **SIZES).train(3)
    errors = probing_errors(networks)
    for place in range(len(toys)):
        model, part = networks.ensemble.member(place), networks.data[place]["balanced"]
        with torch.no_grad():
            phi = model.features(part.inputs)
        for column, name in ((1, "hard"), (0, "easy")):
            classes = part.attribute(name)
            wrong = sum((p.item() > 0) != bool(c) for p, c in zip(phi[:, column], classes, strict=True))
            assert errors[name][place] == pytest.approx(100 * wrong / len(part))


def test_levels_of_noise_are_kept_and_averaged():
    values = errors_by_radius(
        Context(Path("unused")),
        seeds=[0, 1],
        prefix="label.hard",
        chi=360.0,
        rhos=[0.0, 1.0],
        epochs=1,
        levels=[0.1, 0.4],
        kind="label",
        noise_on="hard",
        sizes=SIZES,
    ).values
    for seed in (0, 1):
        each = [values[f"label.hard.level={level}.rho=1.hard"][seed] for level in (0.1, 0.4)]
        assert values["label.hard.rho=1.hard"][seed] == pytest.approx(sum(each) / 2)
        assert values["label.hard.gain"][seed] == pytest.approx(
            values["label.hard.rho=0.hard"][seed] - values["label.hard.rho=1.hard"][seed]
        )


def test_a_fitted_threshold_reads_what_zero_misreads():
    phi = torch.linspace(-1, 1, 200)
    sign = torch.where(phi > 0.5, 1.0, -1.0)
    mixed = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    assert fitted_threshold_error(phi[mixed], sign[mixed], seed=0) < 0.1
    assert (phi * sign <= 0).float().mean() > 0.2
