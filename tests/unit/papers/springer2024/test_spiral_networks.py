"""Networks trained side by side, against the instruments that work on one network at a time."""

from functools import partial

import pytest
import torch

from evenly.diagnostics import importance
from evenly.optim import ascent
from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy, phantom_importance

SIZES = {"num_train": 30, "num_test": 60, "width": 12}


@pytest.fixture
def networks() -> SpiralNetworks:
    toys = [Toy(seed, chi, rho=rho) for seed in (0, 1) for chi, rho in ((270.0, 0.0), (360.0, 0.5))]
    return SpiralNetworks(toys, **SIZES).train(3)


def test_phantom_heads_are_those_of_the_instrument(networks):
    v_KB2 = networks.phantoms(networks.readout())
    for place, toy in enumerate(networks.toys):
        found = importance(
            networks.ensemble.member(place),
            networks.data[place].train,
            rho=toy.rho,
            rule=partial(ascent.sam, rho=toy.rho),
            only=["head"],
            group=5,
            track=["head.weight"],
        )
        torch.testing.assert_close(v_KB2[place], found.phantoms["head.weight"][:, 0], rtol=1e-4, atol=1e-5)


def test_real_and_phantom_importance_are_those_of_the_instrument(networks):
    readout = networks.readout()
    phantom_KN = phantom_importance(readout, networks.phantoms(readout), group=5)
    for place, toy in enumerate(networks.toys):
        model, train = networks.ensemble.member(place), networks.data[place].train
        found = importance(model, train, rho=toy.rho, only=["head"], group=5)
        torch.testing.assert_close(readout.importance[place], found.real, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(phantom_KN[place], found.phantom, rtol=1e-4, atol=1e-6)


def test_the_phantom_raises_the_loss_of_every_batch_for_a_small_step(networks):
    readout = networks.readout()
    for place in (1, 3):
        v_B2 = networks.phantoms(readout)[place]
        small_B2 = readout.v[place] + 1e-2 * (v_B2 - readout.v[place])
        for batch, v_2 in enumerate(small_B2):
            own = slice(5 * batch, 5 * batch + 5)
            margin = readout.sign[place, own] * (readout.phi[place, own] @ readout.v[place])
            there = readout.sign[place, own] * (readout.phi[place, own] @ v_2)
            loss = torch.nn.functional.softplus(-margin).sum(), torch.nn.functional.softplus(-there).sum()
            assert loss[1] > loss[0]


def test_toys_of_one_seed_begin_alike_and_see_the_same_points():
    made = SpiralNetworks([Toy(3, 360.0), Toy(3, 360.0, rho=1.0), Toy(4, 360.0)], **SIZES)
    weights = made.ensemble.parameters()["phi.0.weight"]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert made.data[0] is made.data[1]


def test_the_history_of_phantoms_has_every_epoch_from_the_beginning():
    made = SpiralNetworks([Toy(0, 360.0, rho=0.5)], **SIZES)
    v_TKB2, real_TK2 = made.phantom_history(2)
    assert v_TKB2.shape == (3, 1, 6, 2)
    assert real_TK2[0].tolist() == [[1.0, 1.0]]
    away = torch.linalg.vector_norm(v_TKB2 - real_TK2[:, :, None], dim=3)
    torch.testing.assert_close(away, torch.full_like(away, 0.5))
