"""What the cures of the atlas do to the training set, on a small task with the truth known."""

from pathlib import Path

import pytest
import torch

from evenly.data import load
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.training import _Study, train_cures
from evenly.papers.experiment import Context

OPTIONS = {"alpha": 0.8, "size": 200}
NETWORK = {"dropout": 0.0, "width": 32}


@pytest.fixture(scope="module")
def study() -> tuple:
    tasks = [load("digit-dominoes", seed=seed, **OPTIONS) for seed in (0, 1)]
    made = _Study(tasks, [0, 1], model="mlp", network=NETWORK, lr=0.05, epochs=12)
    return made, made.train_plain()


def rows(study: tuple, cure: str, place: int = 0) -> tuple:
    return study[0]._rows(CURES[cure], place, study[1])


def test_the_hard_ones_lack_the_easy_feature(study: tuple):
    hard_N = study[1].chosen(0, "hard")
    lacks_N = study[0].tasks[0].train.attributes["easy_present"] == 0
    assert float(lacks_N[hard_N].double().mean()) > float(lacks_N.double().mean()) + 0.3


def test_copies_weights_and_noise_go_to_the_chosen(study: tuple):
    hard_N = study[1].chosen(0, "hard")
    copies, weights, noise = rows(study, "useful8+noise")
    assert torch.equal(copies, torch.where(hard_N, 8, 1))
    assert torch.equal(noise > 0, hard_N)
    assert bool((weights == 1).all())
    copies, weights, noise = rows(study, "reweight")
    assert bool((copies == 1).all())
    assert torch.equal(weights, torch.where(hard_N, 8.0, 1.0).double())
    assert bool((rows(study, "noise-all")[2] == 0.2).all())


def test_random_ones_are_as_many_and_others(study: tuple):
    hard_N, random_N = study[1].chosen(0, "hard"), study[1].chosen(0, "random")
    assert int(hard_N.sum()) == int(random_N.sum())
    assert not torch.equal(hard_N, random_N)


def test_jtt_takes_the_wrong_ones_and_right_none_of_them(study: tuple):
    wrong_N, right_N = study[1].chosen(0, "wrong"), study[1].chosen(0, "right")
    assert not bool((wrong_N & right_N).any())


def test_every_cure_is_measured_for_every_seed_and_repeats(tmp_path: Path):
    given = {
        "data": "digit-dominoes", "options": OPTIONS, "model": "mlp", "network": NETWORK, "group": "lacks", "lr": 0.05,
        "epochs": 3, "cures": list(CURES), "seeds": [0, 1],
    }  # fmt: skip
    result = train_cures(Context(tmp_path), **given)
    for cure in CURES:
        for error in ("test", "balanced", "minority", "cost"):
            assert result.values[f"{cure}.{error}"].keys() == {0, 1}
    again = train_cures(Context(tmp_path), **{**given, "cures": ["plain", "useful8+noise"], "seeds": [1]})
    assert again.values["useful8+noise.balanced"][1] == pytest.approx(
        result.values["useful8+noise.balanced"][1], abs=0.5
    )
    assert result.values["sam.cost"][0] == 2.0
