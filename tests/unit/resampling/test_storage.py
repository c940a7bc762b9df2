"""Separations that go to disk and come back."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.errors import DataError, UsageError
from evenly.resampling import Separation, separate
from evenly.resampling.storage import load, save


@pytest.fixture
def separation() -> Separation:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(90) % 3
    logits = torch.randn(90, 3, generator=rng) + 2 * torch.nn.functional.one_hot(labels, 3)
    return replace(
        separate(logits, labels, classes=["cat", "dög", "newt"], index=torch.randperm(90, generator=rng)),
        remarks=("a remark",),
    )


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_everything_comes_back(separation: Separation, tmp_path: Path, suffix: str) -> None:
    save(separation, tmp_path / f"s.{suffix}")
    again = load(tmp_path / f"s.{suffix}")
    for name in ("hard", "labels", "losses", "index"):
        before, after = getattr(separation, name), getattr(again, name)
        assert torch.equal(before, after)
        assert before.dtype == after.dtype
    for name in ("method", "on", "accuracy", "classes", "remarks", "fingerprint"):
        assert getattr(again, name) == getattr(separation, name)
    for before, after in zip(separation.splits, again.splits, strict=True):
        for name in ("label", "num_easy", "num_hard", "loss_easy", "loss_hard", "inertia", "silhouette"):
            assert getattr(after, name) == getattr(before, name)
        assert torch.equal(after.mean_easy, before.mean_easy)
        assert torch.equal(after.mean_hard, before.mean_hard)


def test_csv_brings_back_every_example(separation: Separation, tmp_path: Path) -> None:
    save(separation, tmp_path / "s.csv")
    again = load(tmp_path / "s.csv")
    for name in ("hard", "labels", "losses", "index"):
        assert torch.equal(getattr(separation, name), getattr(again, name))
    assert again.fingerprint == separation.fingerprint
    assert [s.num_hard for s in again.splits] == [s.num_hard for s in separation.splits]
    assert again.splits[1].loss_hard == pytest.approx(separation.splits[1].loss_hard, rel=1e-5)
    assert np.isnan(again.splits[0].silhouette)
    assert (tmp_path / "s.csv").read_text().startswith("index,label,hard,loss\n")


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_what_is_unknown_stays_unknown(tmp_path: Path, suffix: str) -> None:
    with pytest.warns(UserWarning, match="class 1"):
        found = separate(torch.eye(3)[:, :2], [0, 0, 1], losses=[0.0, 1.0, 2.0], on="features")
    save(found, tmp_path / f"s.{suffix}")
    again = load(tmp_path / f"s.{suffix}")
    assert np.isnan(again.accuracy)
    assert np.isnan(again.splits[1].loss_hard)
    assert bool(again.splits[1].mean_hard.isnan().all())
    assert "NaN" not in (tmp_path / f"s.{suffix}").read_bytes().decode("latin-1")


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.filterwarnings("ignore::evenly.resampling.SeparationWarning")
def test_a_class_of_which_nothing_was_clustered_can_be_saved(tmp_path: Path, suffix: str) -> None:
    rng = torch.Generator().manual_seed(0)
    logits, labels = 3 * torch.randn(90, 3, generator=rng), torch.arange(90) % 3
    logits[labels == 1, 1] = -9.0  # no example of class 1 is predicted correctly
    made = separate(logits, labels, among="right")
    save(made, tmp_path / f"made{suffix}")
    again = load(tmp_path / f"made{suffix}")
    assert torch.equal(again.hard, made.hard)
    assert [(split.label, split.num_easy, split.num_hard) for split in again.splits] == [
        (split.label, split.num_easy, split.num_hard) for split in made.splits
    ]
    assert torch.equal(again.splits[0].mean_easy, made.splits[0].mean_easy)
    assert bool(again.splits[1].mean_easy.isnan().all())


def test_the_state_is_small(tmp_path: Path) -> None:
    logits = torch.randn(20_000, 100, generator=torch.Generator().manual_seed(0))
    found = separate(logits, torch.arange(20_000) % 100, silhouette_sample=0)
    save(found, tmp_path / "s.npz")
    assert (tmp_path / "s.npz").stat().st_size < logits.nbytes / 30


@pytest.mark.parametrize("suffix", ["npz", "json", "csv"])
def test_damaged_files_are_data_errors(separation: Separation, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    with pytest.raises(DataError, match="no such file"):
        load(path)
    save(separation, path)
    whole = path.read_bytes()
    for content in (b"", b"rubbish", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"Separate again|lacks the column|is empty|fields"):
            load(path)


def test_a_changed_file_does_not_match_its_fingerprint(separation: Separation, tmp_path: Path) -> None:
    save(separation, tmp_path / "s.json")
    content = json.loads((tmp_path / "s.json").read_text())
    content["examples"]["labels"][0] = 2 - content["examples"]["labels"][0]
    content["examples"]["labels"][1] = 0
    (tmp_path / "s.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="do not match its own fingerprint"):
        load(tmp_path / "s.json")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", facts=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match=r"'facts' is an array of Python objects.*it was not opened"):
        load(tmp_path / "s.npz")
    (tmp_path / "t.npz").write_bytes(pickle.dumps({"hard": 1}))
    with pytest.raises(DataError, match="Separate again"):
        load(tmp_path / "t.npz")


def test_other_suffixes_are_refused(separation: Separation, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.npz, \.json or \.csv"):
        save(separation, tmp_path / "s.pt")
    with pytest.raises(UsageError, match=r"\.npz, \.json or \.csv"):
        load(tmp_path / "s.pt")


def test_a_loss_of_minus_zero_is_written_as_zero(separation: Separation, tmp_path: Path) -> None:
    save(replace(separation, losses=torch.full_like(separation.losses, -0.0)), tmp_path / "s.csv")
    assert {line.split(",")[3] for line in (tmp_path / "s.csv").read_text().split()[1:]} == {"0"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes", ["cat", 7]),
        ("remarks", [None]),
        ("method", 3),
        ("accuracy", "high"),
        ("classes", ["cat"]),
        ("splits", [{"label": 99}]),
    ],
)
def test_facts_of_another_kind_are_refused(separation: Separation, tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "s.json"
    save(separation, path)
    content = json.loads(path.read_text())
    content[name] = [content["splits"][0] | value[0]] if name == "splits" else value
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"s\.json: .*Separate again"):
        load(path)
