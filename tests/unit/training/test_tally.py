"""Statistics of training: every example once, where it is first seen, and easy and hard ones apart."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Until, digest, dump, to_mapping
from evenly.records import Run
from evenly.training.build import build_parts, load_data
from evenly.training.distributed import World
from evenly.training.early import early_recipe
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.selection import second_recipe
from evenly.training.separations import separation_of
from evenly.training.tally import Tally
from evenly.training.train import train

SMALL = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 32, "dropout": 0.0}),
    epochs=3,
    batch_size=96,
    optimizer=Optimizer(lr=0.05),
)
NAMES = [f"train.{cluster}.{what}" for cluster in ("easy", "hard") for what in ("loss", "error")]


def second_stage(runs: Path, recipe: Recipe = SMALL, method: str = "useful") -> Recipe:
    """The recipe of a second stage whose first is done."""
    first = early_recipe(recipe, Until("epoch", 1))
    return second_recipe(recipe, train(first, runs=runs, device="cpu").id, method)


def test_clusters_are_summed_apart_and_together_make_the_whole() -> None:
    hard = torch.tensor([False, True, True, False])
    tally = Tally(hard)
    tally.begin(torch.tensor([2, 3, 0]))
    outputs = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    tally.see(torch.arange(3), torch.tensor([1.0, 2.0, 6.0]), outputs, torch.tensor([1, 1, 1]))
    found = tally.metrics(tally.sums_G3)
    assert found == {
        "train.loss": 3.0,
        "train.error": pytest.approx(2 / 3),
        "train.easy.loss": 4.0,
        "train.easy.error": 0.5,
        "train.hard.loss": 1.0,
        "train.hard.error": 1.0,
    }


def test_a_cluster_without_examples_is_left_out() -> None:
    tally = Tally(torch.tensor([False]))
    tally.begin(torch.tensor([0]))
    tally.see(torch.arange(1), torch.ones(1), torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert set(tally.metrics(tally.sums_G3)) == {"train.loss", "train.error", "train.easy.loss", "train.easy.error"}


@pytest.mark.parametrize("hard", [None, torch.arange(10) % 3 == 0])
def test_of_a_part_seen_before_only_the_rest_is_counted(hard: torch.Tensor | None) -> None:
    """Two groups of five whose ascents see three each: what is first seen is counted, with the loss it then had."""
    tally, position = Tally(hard), torch.arange(10).flip(0)
    tally.begin(position)
    labels, outputs = torch.arange(10) % 2, torch.tensor([[0.0, 1.0]]).repeat(10, 1)
    loss, later = torch.arange(10.0), torch.arange(10.0) + 100
    for part, seen in [((0, 3), loss), ((0, 5), later), ((5, 8), loss), ((5, 10), later)]:
        at = slice(*part)
        tally.see(torch.arange(10)[at], seen[at], outputs[at], labels[at])
    counted = torch.where(torch.arange(10) % 5 < 3, loss, later).double()
    rows = torch.stack([counted, (labels == 0).double(), torch.ones(10).double()], dim=1)
    groups = [position >= 0] if hard is None else [~hard[position], hard[position]]
    torch.testing.assert_close(tally.sums_G3, torch.stack([rows[group].sum(0) for group in groups]))


def first_loss(tmp_path: Path, name: str, rho: float = 0.05, **options: object) -> float:
    """The training loss of a run whose weights hardly move: that of the initial weights on every example."""
    optimizer = Optimizer(lr=1e-12, momentum=0, weight_decay=0)
    ascent = Ascent("sam", rho, options) if options else Ascent("none")
    recipe = Recipe(
        data=SMALL.data, model=SMALL.model, optimizer=optimizer, ascent=ascent, epochs=1, batch_size=96, drop_last=True
    )
    return float(train(recipe, runs=tmp_path / name, device="cpu").metrics()[-1]["train.loss"])


def test_groups_of_sam_are_all_counted_and_so_is_what_its_ascent_leaves_out(tmp_path: Path) -> None:
    plain = first_loss(tmp_path, "plain")
    assert first_loss(tmp_path, "groups", m=24) == pytest.approx(plain, rel=1e-6)
    # What the ascent leaves out is seen at the displaced weights: near enough to be the same.
    assert first_loss(tmp_path, "part", rho=1e-7, fraction=0.5) == pytest.approx(plain, rel=1e-6)
    assert first_loss(tmp_path, "parts", rho=1e-7, fraction=0.5, m=24) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("random", {"m": 24}),
        *((name, {}) for name in ("none", "random", "gsam")),
        *((name, {"fraction": 0.5}) for name in ("sam", "lsam", "gsam")),
        *((name, {"fraction": 0.3, "m": 24}) for name in ("sam", "gsam")),
        ("sam", {"every": 2, "fraction": 0.5}),
    ],
)
def test_an_epoch_counts_every_example_of_every_batch_once(
    name: str, options: dict[str, object], tmp_path: Path
) -> None:
    recipe = replace(SMALL, ascent=Ascent(name, 0.05, options), drop_last="m" in options)
    parts = build_parts(recipe, world=World(), splits=load_data(recipe))
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        loop = Loop(parts, run, Interruption())
        num = 0
        for batch in parts.batches.epoch(0):
            loop.take(batch)
            num += len(batch.labels)
            assert float(loop.tally.sums_G3[:, 2].sum()) == num
    assert num == (862 // 96 * 96 if recipe.drop_last else 862)


@pytest.mark.parametrize("method", ["useful", "upweight", "random"])
def test_a_second_stage_logs_easy_and_hard_apart(method: str, tmp_path: Path) -> None:
    run = train(second_stage(tmp_path, method=method), runs=tmp_path, device="cpu")
    for row in run.metrics():
        assert set(NAMES) <= set(row)
        # The whole is the mean of the parts, weighted by how often each is shown.
        share = (row["train.loss"] - row["train.easy.loss"]) / (row["train.hard.loss"] - row["train.easy.loss"])
        twice = 1 if method == "upweight" else 2
        hard = run.summary()["hard_share"]
        assert share == pytest.approx(twice * hard / (1 + (twice - 1) * hard), abs=1e-6)
    if method != "random":
        assert run.metrics()[-1]["train.hard.loss"] > run.metrics()[-1]["train.easy.loss"]


def test_a_first_stage_and_a_plain_run_know_no_clusters(tmp_path: Path) -> None:
    assert not set(NAMES) & set(train(SMALL, runs=tmp_path, device="cpu").metrics()[0])


class Enough(Exception):
    """Stops a run where a test wants it stopped."""


def test_a_second_stage_that_stops_within_an_epoch_ends_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = second_stage(tmp_path / "a")
    whole = train(recipe, runs=tmp_path / "a", device="cpu")
    recipe = second_stage(tmp_path / "b")
    real, taken = Loop.take, []

    def stopping(self: Loop, batch: object) -> None:
        if len(taken) == 5:
            raise Enough
        taken.append(batch)
        real(self, batch)

    monkeypatch.setattr(Loop, "take", stopping)
    with pytest.raises(Enough):
        train(recipe, runs=tmp_path / "b", device="cpu", pace=0)
    monkeypatch.setattr(Loop, "take", real)
    again = train(recipe, runs=tmp_path / "b", device="cpu")
    assert again.metrics() == whole.metrics()


def test_two_processes_count_as_one_does(tmp_path: Path) -> None:
    recipe = second_stage(tmp_path)
    first = separation_of(Run.open(str(recipe.resampling.early), tmp_path), load_data(SMALL).train)
    assert 0 < first.num_hard < len(first)
    dump(recipe, tmp_path / "second.yaml")
    launch = ["torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    launch += ["--rdzv-endpoint", "localhost:0", "-m"]
    words = ["evenly", "train", "--config", str(tmp_path / "second.yaml"), "--device", "cpu", "--json"]
    two = subprocess.run(
        [sys.executable, "-m", *launch, *words, "--runs", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert two.returncode == 0, two.stderr[-3000:]
    folder = Path(json.loads(two.stdout)["folder"])
    found = Run(folder).metrics()
    folder.rename(tmp_path / "moved")
    expected = train(recipe, runs=tmp_path, device="cpu").metrics()
    for name in NAMES:
        assert found[-1][name] == pytest.approx(expected[-1][name], rel=1e-3)


def test_sums_do_not_depend_on_when_they_are_looked_at_or_put_back() -> None:
    """A checkpoint reads the sums in the middle of an epoch: to the last bit, that must not show."""
    generator = torch.Generator().manual_seed(0)
    hard = torch.rand(700, generator=generator) < 0.3
    steps = [
        (torch.randint(700, (33,), generator=generator), torch.rand(33, generator=generator).exp()) for _ in range(29)
    ]
    outputs, labels = torch.randn(33, 5, generator=generator), torch.randint(5, (33,), generator=generator)
    found = []
    for stops in [(), (3, 4, 11, 20)]:
        tally = Tally(hard)
        for number, (position, loss) in enumerate(steps):
            tally.begin(position)
            tally.see(None, loss, outputs.roll(number, 0), labels)
            tally.settle()
            if number in stops:
                sums, tally = tally.sums_G3, Tally(hard)
                tally.reset(sums)
        found.append(tally.sums_G3)
    assert torch.equal(*found)
    assert found[0][:, 2].sum() == 29 * 33
    wrong = sum(int((outputs.roll(number, 0).argmax(1) != labels).sum()) for number in range(29))
    assert found[0][:, 1].sum() == wrong


def test_a_loss_that_is_not_finite_shows_in_the_step_it_is_seen_in() -> None:
    tally = Tally()
    for loss, finite in [(1.0, True), (float("inf"), False)]:
        tally.begin(torch.arange(1))
        tally.see(None, torch.tensor([loss]), torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))
        assert math.isfinite(tally.settle()) is finite
