"""A trained run is used without its training data, from any folder, and says what training itself would have said."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import evenly
from evenly.data import load
from evenly.errors import DataError, EvenlyError, UsageError
from evenly.recipe import Data, Model, Optimizer, Recipe
from evenly.records import Run
from evenly.training.train import train
from evenly.training.trained_model import load_trained

CLASSES = ["b, 2", "cat's & co", "№ 1"]


def photos(root: Path, *, num: int = 12, size: tuple[int, int] = (10, 8)) -> Path:
    """Class folders of noise, each class in another colour."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for i in range(num):
            pixels = rng.integers(0, 120, (size[1], size[0], 3), dtype=np.uint8)
            pixels[..., number] += 120
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """A run on a folder given by a relative path, whose images are then moved away."""
    photos(home / "photos")
    here = os.getcwd()
    os.chdir(home)
    try:
        recipe = Recipe(
            data=Data("photos", {"size": 8}),
            model=Model("mlp", {"width": 32}),
            optimizer=Optimizer(lr=0.02),
            augment=("resize:6", "normalise"),
            epochs=8,
            batch_size=12,
        )
        done = train(recipe, runs="runs", device="cpu")
        trained = load_trained(done)
        logits = trained.model(trained.splits.train.gather(range(6)))
        torch.save(logits.detach(), home / "logits.pt")
    finally:
        os.chdir(here)
    shutil.move(home / "photos", home / "away")
    return Run(home / "runs" / done.id)


def test_a_run_knows_its_classes_and_predicts_from_files_without_its_data(run: Run, home: Path) -> None:
    trained = evenly.load_run(run.path)
    assert repr(trained).startswith(f"<network of run {run.id}: ")
    assert len(repr(trained)) < 120
    assert trained.classes == tuple(CLASSES)
    found = trained.predict(home / "away")
    truth = [Path(name).parent.name for name in found.names]
    assert len(found) == 36
    assert sum(a == b for a, b in zip(found.labels, truth, strict=True)) > 30
    one = trained.predict(str(home / "away" / CLASSES[2] / "0.png"))
    assert one[0].label == CLASSES[2]
    assert repr(one).startswith(str(home / "away" / CLASSES[2] / "0.png") + ": № 1 (")


def test_predictions_are_those_of_the_pipeline_that_trained(run: Run, home: Path) -> None:
    trained = evenly.load_run(run.path)
    kept = json.loads((run.path / "model.json").read_text())
    files = [home / "away" / name / f"{i}.png" for name in CLASSES for i in range(12)]
    expected = torch.load(home / "logits.pt", weights_only=True)
    train_split = load(home / "away", size=8).train
    names = [train_split.inputs.root / train_split.inputs.names[i] for i in range(6)]  # type: ignore[union-attr]
    ready = trained.preprocess(names)
    assert ready.shape == (6, 3, 6, 6)
    torch.testing.assert_close(trained.logits(ready), expected)
    # A second oracle: Pillow's and torch's own resizing, and the recorded mean and deviation.
    picture = torch.from_numpy(np.array(Image.open(files[0]).resize((8, 8), Image.Resampling.BILINEAR))).permute(
        2, 0, 1
    )
    small = torch.nn.functional.interpolate(picture[None].float(), size=(6, 6), mode="bilinear", antialias=True)
    mean, std = (torch.tensor(kept["inputs"]["normalise"][name]).view(3, 1, 1) for name in ("mean", "std"))
    assert (trained.preprocess(files[0]) - (small[0] / 255 - mean) / std).abs().max() < 0.02


def test_arrays_tensors_pictures_and_lists_are_taken_as_they_come(run: Run, home: Path) -> None:
    trained = evenly.load_run(run.path)
    file = home / "away" / CLASSES[0] / "1.png"
    picture = Image.open(file).convert("RGB").resize((8, 8), Image.Resampling.BILINEAR)
    channels_last = np.array(picture)
    expected = trained.predict(file).probabilities
    batch = np.stack([channels_last, channels_last])
    channels_first = torch.from_numpy(channels_last).permute(2, 0, 1)
    for given in (channels_last, channels_first, picture, [picture], [str(file)], batch, (file, picture)):
        found = trained.predict(given).probabilities
        torch.testing.assert_close(found, expected.expand(len(found), -1), msg=str(type(given)))
    small = trained.preprocess(picture) * torch.tensor(trained.preprocess.normalise.std).view(3, 1, 1)  # type: ignore[union-attr]
    small = small + torch.tensor(trained.preprocess.normalise.mean).view(3, 1, 1)  # type: ignore[union-attr]
    torch.testing.assert_close(trained.predict(small.clamp(0, 1)).probabilities, expected)


def test_a_range_of_predictions_is_predictions_again(run: Run) -> None:
    trained = evenly.load_run(run)
    found = trained.predict(torch.rand(5, *trained.preprocess.model_shape))
    part = found[1:4]
    assert list(part) == [found[1], found[2], found[3]]
    assert part.labels == found.labels[1:4]
    assert list(found[5:]) == []


def test_inputs_that_do_not_fit_are_refused_with_what_is_expected(run: Run) -> None:
    trained = evenly.load_run(run.path)
    with pytest.raises(UsageError, match=r"shape 3×9×9, and the network takes 3×6×6"):
        trained.predict(torch.zeros(2, 3, 9, 9))
    with pytest.raises(UsageError, match=r"range from 0 to 255.*divide by 255"):
        trained.predict(torch.tensor([0.0, 255.0]).repeat(54).reshape(1, 3, 6, 6))
    wrong = torch.zeros(5, 3, 6, 6)
    wrong[3, 0, 0, 0] = torch.nan
    with pytest.raises(DataError, match="input 3 holds NaN"):
        trained.predict(wrong)
    with pytest.raises(DataError, match="does not exist"):
        trained.predict("no/such/file.jpg")
    for nothing in (None, {"cat.jpg"}, np.array(["cat.jpg"])):
        with pytest.raises(UsageError, match=r"is not a valid input: give image files"):
            trained.predict(nothing)


def test_the_folder_of_runs_and_the_beginning_of_an_id_name_a_run(run: Run) -> None:
    assert evenly.load_run(run.path.parent / run.id[:6]).run.path == run.path  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="there is no run 'zz' in "):
        evenly.load_run(run.path.parent / "zz")


def test_broken_files_are_an_error_or_left_out_and_listed(run: Run, home: Path, tmp_path: Path) -> None:
    shutil.copy(home / "away" / CLASSES[0] / "0.png", tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    trained = evenly.load_run(run.path)
    with pytest.raises(DataError, match=r"bad.jpg: does not decode"):
        trained.predict(tmp_path)
    found = trained.predict(tmp_path, skip_broken=True)
    assert [Path(name).name for name in found.names] == ["good.png"]
    assert [(path.name, reason[:15]) for path, reason in found.skipped] == [("bad.jpg", "does not decode")]


def test_the_data_of_a_run_are_found_from_another_folder(home: Path, run: Run, tmp_path: Path) -> None:
    kept = json.loads((run.path / "model.json").read_text())
    assert kept["data"]["path"] == str(home / "photos")
    shutil.move(home / "away", home / "photos")
    try:
        assert load_trained(run).splits.name == "photos"
    finally:
        shutil.move(home / "photos", home / "away")


def test_a_run_without_a_record_of_its_model_needs_its_data_and_says_so(run: Run, home: Path, tmp_path: Path) -> None:
    old = Path(shutil.copytree(run.path, tmp_path / run.id))
    (old / "model.json").unlink()
    with pytest.raises(DataError, match="did not keep the names of its classes"):
        evenly.load_run(old)


def test_a_damaged_record_is_one_error_that_names_the_file(run: Run, tmp_path: Path) -> None:
    old = Path(shutil.copytree(run.path, tmp_path / run.id))
    for text in ("{}", "[1]", '{"format": 7}', '{"format": 1, "model": 3}'):
        (old / "model.json").write_text(text)
        with pytest.raises(DataError, match=r"model.json"):
            evenly.load_run(old)


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        (["weights.safetensors"], "is done, but its weights.safetensors is missing. Restore it"),
        (["weights.safetensors", "done"], "is stopped and has kept no weights yet"),
        (["done", "metrics.jsonl"], "has kept no weights yet"),  # nothing says of which epoch they are
    ],
)
def test_a_run_whose_weights_cannot_be_used_says_why(run: Run, tmp_path: Path, lost: list[str], error: str) -> None:
    shutil.copytree(run.path, tmp_path / run.id)
    for name in lost:
        (tmp_path / run.id / name).unlink()
    with pytest.raises(EvenlyError, match=error):
        evenly.load_run(tmp_path / run.id)


def test_a_network_of_one_logit_gives_two_probabilities(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), model=Model("relu2"), epochs=1, batch_size=50)
    trained = evenly.load_run(train(recipe, runs=tmp_path, device="cpu").path)
    found = trained.predict(torch.ones(4, 5)).probabilities
    assert found.shape == (4, 2)
    torch.testing.assert_close(found.sum(1), torch.ones(4))
    with pytest.raises(UsageError, match="not images"):
        trained.predict(Image.new("RGB", (4, 4)))


def test_the_record_of_a_network_on_other_data_is_refused(run: Run, tmp_path: Path) -> None:
    moved = tmp_path / run.id
    shutil.copytree(run.path, moved)
    record = json.loads((moved / "model.json").read_text())
    record["classes"].reverse()
    record["data"]["fingerprint"] = "0" * 16
    (moved / "model.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"model\.json is of other data than run"):
        evenly.load_run(moved)


def test_a_run_is_loaded_as_training_returns_it_and_predicts_rows_of_a_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    made = train(
        Recipe(data=Data("parity", {"dim": 5}), model=Model("mlp", {"width": 4}), epochs=1, batch_size=50),
        runs=tmp_path,
        device="cpu",
    )
    trained = evenly.load_run(made)
    assert trained.run.id == made.id
    rows = np.random.default_rng(0).normal(size=(4, *trained.preprocess.shape))
    expected = trained.predict(rows).probabilities
    assert torch.equal(trained.predict(pandas.DataFrame(rows)).probabilities, expected)
    with pytest.raises(UsageError, match="a DataFrame is not a valid input"):
        trained.predict(pandas.DataFrame({"word": ["a", "b"]}))
    for given in (rows, list(rows)):
        with pytest.raises(UsageError, match="batch_size=0"):
            trained.predict(given, batch_size=0)
