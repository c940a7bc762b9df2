"""What the cures of the atlas do to the training set, on a small task with the truth known."""

from pathlib import Path

import pytest
import torch

from evenly.data import load
from evenly.papers.atlas import training
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
    hard_N = study[1][0].chosen("hard")
    lacks_N = study[0].tasks[0].train.attributes["easy_present"] == 0
    assert float(lacks_N[hard_N].double().mean()) > float(lacks_N.double().mean()) + 0.3


def test_copies_weights_and_noise_go_to_the_chosen(study: tuple):
    hard_N = study[1][0].chosen("hard")
    copies, weights, noise = rows(study, "useful8+noise")
    assert torch.equal(copies, torch.where(hard_N, 8, 1))
    assert torch.equal(noise > 0, hard_N)
    assert bool((weights == 1).all())
    copies, weights, noise = rows(study, "reweight")
    assert bool((copies == 1).all())
    assert torch.equal(weights, torch.where(hard_N, 8.0, 1.0).double())
    assert bool((rows(study, "noise-all")[2] == 0.2).all())


def test_random_ones_are_as_many_and_others(study: tuple):
    hard_N, random_N = study[1][0].chosen("hard"), study[1][0].chosen("random")
    assert int(hard_N.sum()) == int(random_N.sum())
    assert not torch.equal(hard_N, random_N)


def test_jtt_takes_the_wrong_ones_and_right_none_of_them(study: tuple):
    wrong_N, right_N = study[1][0].chosen("wrong"), study[1][0].chosen("right")
    assert not bool((wrong_N & right_N).any())


def test_every_cure_is_measured_for_every_seed_and_repeats(tmp_path: Path):
    given = {
        "data": "digit-dominoes", "options": OPTIONS, "model": "mlp", "network": NETWORK, "group": "lacks", "lr": 0.05,
        "epochs": 3, "cures": list(CURES), "seeds": [0, 1],
    }  # fmt: skip
    result = train_cures(Context(tmp_path), **given)
    for cure in CURES:
        for error in ("test", "balanced", "worst", "cost"):
            assert result.values[f"{cure}.{error}"].keys() == {0, 1}
    again = train_cures(Context(tmp_path), **{**given, "cures": ["plain", "useful8+noise"], "seeds": [1]})
    assert again.values["useful8+noise.balanced"][1] == pytest.approx(
        result.values["useful8+noise.balanced"][1], abs=0.5
    )
    assert result.values["sam.cost"][0] == 2.0


def test_balance_shows_every_cluster_about_as_often(study: tuple):
    """The smaller cluster of each class is shown more often, at most eight times, the larger one once."""
    copies, weights, _ = rows(study, "balance")
    separation = study[1][0].separation
    for split in separation.splits:
        own_N = separation.labels == split.label
        smaller_N = own_N & (separation.hard if split.num_hard < split.num_easy else ~separation.hard)
        assert bool((copies[own_N & ~smaller_N] <= copies[smaller_N].min()).all())
    assert int(copies.min()) == 1
    assert int(copies.max()) <= 8
    assert bool((weights == 1).all())


def test_the_worst_group_is_the_worst_of_four_counted_by_hand(study: tuple):
    made, tasks = study[0], study[0].tasks
    found = training._errors(made.plain, tasks, "lacks")["worst"]
    part = tasks[1]["groups"]
    outputs_NC = made.plain.outputs(torch.stack([training._inputs(task["groups"]) for task in tasks]))[1]
    groups: dict[tuple, list[bool]] = {}
    for row in range(len(part)):
        present, agrees = (int(part.attributes[name][row]) for name in ("easy_present", "easy_agrees"))
        if agrees or not present:
            said = int(outputs_NC[row, 0] > 0) if outputs_NC.shape[1] == 1 else int(outputs_NC[row].argmax())
            groups.setdefault((int(part.labels[row]), agrees), []).append(said != int(part.labels[row]))
    assert len(groups) == 4
    assert found[1] == pytest.approx(max(sum(each) / len(each) for each in groups.values()))


def test_outputs_do_not_depend_on_how_many_are_looked_at_together(study: tuple, monkeypatch: pytest.MonkeyPatch):
    parts = [task["groups"] for task in study[0].tasks]
    whole = training._answers(study[0].plain, parts)[0]
    monkeypatch.setattr(training, "AT_ONCE", 7 * len(parts) * parts[0].inputs[0].numel())
    assert torch.allclose(training._answers(study[0].plain, parts)[0], whole, atol=1e-6)


def test_features_see_the_planted_minority_and_the_twin_agrees(study: tuple):
    made, early = study
    features = early[0].features(made.train_twins()[0])
    assert 0.1 < features["hard_share"] < 0.5
    assert features["hard_error_later"] <= features["hard_error"]
    assert features["agreement"] > 0.3
    assert early[0].features(early[0])["agreement"] == 1.0
