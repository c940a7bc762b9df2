"""The toy's algebra against the instruments that work on one network at a time, and against plain loops."""

from functools import partial

import pytest
import torch

from evenly.diagnostics import importance
from evenly.optim import ascent
from evenly.papers.springer2024.phantom_ratios import watched
from evenly.papers.springer2024.spiral_probing import probed
from evenly.papers.springer2024.toys import Grown, Toy, phantom_importance

SIZES = {"num_train": 30, "num_test": 60, "width": 12}


@pytest.fixture
def grown() -> Grown:
    toys = [Toy(seed, chi, rho=rho) for seed in (0, 1) for chi, rho in ((270.0, 0.0), (360.0, 0.5))]
    made = Grown(toys, **SIZES)
    list(made.epochs([3]))
    return made


def test_phantom_heads_are_those_of_the_instrument(grown):
    v_KB2 = grown.phantoms(grown.seen())
    for place, toy in enumerate(grown.toys):
        found = importance(
            grown.ensemble.member(place),
            grown.data[place].train,
            rho=toy.rho,
            rule=partial(ascent.sam, rho=toy.rho),
            only=["head"],
            group=5,
            track=["head.weight"],
        )
        torch.testing.assert_close(v_KB2[place], found.phantoms["head.weight"][:, 0], rtol=1e-4, atol=1e-5)


def test_real_and_phantom_importance_are_those_of_the_instrument(grown):
    seen = grown.seen()
    phantom_KN = phantom_importance(seen, grown.phantoms(seen), group=5)
    for place, toy in enumerate(grown.toys):
        model, train = grown.ensemble.member(place), grown.data[place].train
        found = importance(model, train, rho=toy.rho, only=["head"], group=5)
        torch.testing.assert_close(seen.importance[place], found.real, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(phantom_KN[place], found.phantom, rtol=1e-4, atol=1e-6)


def test_the_phantom_raises_the_loss_of_every_batch_for_a_small_step(grown):
    seen = grown.seen()
    for place in (1, 3):
        v_B2 = grown.phantoms(seen)[place]
        small_B2 = seen.v[place] + 1e-2 * (v_B2 - seen.v[place])
        for batch, v_2 in enumerate(small_B2):
            own = slice(5 * batch, 5 * batch + 5)
            margin = seen.sign[place, own] * (seen.phi[place, own] @ seen.v[place])
            there = seen.sign[place, own] * (seen.phi[place, own] @ v_2)
            loss = torch.nn.functional.softplus(-margin).sum(), torch.nn.functional.softplus(-there).sum()
            assert loss[1] > loss[0]


def test_probing_errors_are_counted_as_a_plain_loop_counts_them(grown):
    found = probed(grown)
    for place in range(len(grown.toys)):
        model, part = grown.ensemble.member(place), grown.data[place]["balanced"]
        with torch.no_grad():
            phi = model.features(part.inputs)
        for column, name in ((1, "hard"), (0, "easy")):
            classes = part.attribute(name)
            wrong = sum((p.item() > 0) != bool(c) for p, c in zip(phi[:, column], classes, strict=True))
            assert found[name][place] == pytest.approx(100 * wrong / len(part))


def test_toys_of_one_seed_begin_alike_and_see_the_same_points():
    made = Grown([Toy(3, 360.0), Toy(3, 360.0, rho=1.0), Toy(4, 360.0)], **SIZES)
    weights = made.ensemble.parameters()["phi.0.weight"]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert made.data[0] is made.data[1]


def test_every_epoch_of_training_is_watched_from_the_beginning():
    made = Grown([Toy(0, 360.0, rho=0.5)], **SIZES)
    v_TKB2, real_TK2 = watched(made, 2)
    assert v_TKB2.shape == (3, 1, 6, 2)
    assert real_TK2[0].tolist() == [[1.0, 1.0]]
    away = torch.linalg.vector_norm(v_TKB2 - real_TK2[:, :, None], dim=3)
    torch.testing.assert_close(away, torch.full_like(away, 0.5))
