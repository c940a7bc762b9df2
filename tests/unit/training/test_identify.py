"""A result is of what stands in front of it: its settings, its data, and all else that it was given."""

import json
import logging
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.cli import main
from evenly.data import Labelled, Splits, load
from evenly.errors import DataError, UsageError
from evenly.recipe import Data, Model, Recipe, Until, to_mapping
from evenly.records import Run
from evenly.training.identify import identify
from evenly.training.train import train
from evenly.training.trained_model import load_trained
from evenly.training.useful import train_useful
from evenly.typed import yaml_text

TINY = Model("mlp", {"width": 4})


def written(path: Path, *, labels: int = 0) -> Path:
    """A small .npz whose inputs are always the same, and whose labels are drawn anew for each number."""
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    y = np.random.default_rng(labels).permutation(np.arange(60) % 2)
    np.savez(path, x=x[:40], y=y[:40], x_test=x[40:], y_test=y[40:])
    return path


def small(path: Path | str, **more: object) -> Recipe:
    return Recipe(data=Data(str(path)), model=TINY, epochs=2, batch_size=20, **more)


def test_changed_labels_are_a_new_run_and_the_old_one_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evenly")
    recipe = small(written(tmp_path / "d.npz"))
    first = train(recipe, runs=tmp_path / "runs", device="cpu")
    assert train(recipe, runs=tmp_path / "runs", device="cpu").id == first.id
    assert "is new" not in caplog.text
    written(tmp_path / "d.npz", labels=1)
    second = train(recipe, runs=tmp_path / "runs", device="cpu")
    assert second.id != first.id
    assert first.summary()["train.loss"] != second.summary()["train.loss"]
    assert f"run {second.id} is new: run {first.id} had the same request" in caplog.text
    assert "its data were different (labels of train; labels of test)" in caplog.text
    assert train(recipe, runs=tmp_path / "runs", device="cpu").id == second.id
    written(tmp_path / "d.npz")
    assert train(recipe, runs=tmp_path / "runs", device="cpu").id == first.id


def test_two_projects_with_data_of_one_name_share_a_folder_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for project in (0, 1):
        (tmp_path / str(project)).mkdir()
        monkeypatch.chdir(written(tmp_path / str(project) / "d.npz", labels=project).parent)
        found.append(train(small("d.npz"), runs=tmp_path / "runs", device="cpu").id)
    assert len(set(found)) == 2


def test_splits_given_in_python_are_part_of_the_run(tmp_path: Path) -> None:
    one, other = load("parity", dim=5), load("parity", dim=5, seed=1)
    recipe = Recipe(data=Data("parity", {"dim": 5}), model=TINY, epochs=1, batch_size=50)
    renamed = Splits("by another name", dict(one))
    runs = [train(recipe, runs=tmp_path, splits=splits, device="cpu").id for splits in (one, other, one, renamed)]
    assert runs[0] == runs[2] == runs[3] != runs[1]


@pytest.mark.parametrize("what", ["indices", "weights", "enough"])
def test_what_train_is_given_beside_the_recipe_is_part_of_the_run(what: str) -> None:
    data = load("parity", dim=5)
    values = {
        "indices": [torch.arange(50), torch.arange(49)],
        "weights": [torch.ones(100), torch.full((100,), 2.0)],
        "enough": [lambda history: len(history) == 1, lambda history: False],
    }[what]
    plain = identify(Recipe(), data).id
    made = [identify(Recipe(), data, **{what: value}).id for value in values]
    assert len({plain, *made}) == 3
    assert identify(Recipe(), data, **{what: values[0]}).id == made[0]


def after(epochs: int) -> Any:
    return lambda history: len(history) >= epochs


class Patience:
    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def __call__(self, history: list[Any]) -> bool:
        return self.is_over(history)

    def is_over(self, history: list[Any], most: int = 5) -> bool:
        return len(history) >= min(self.epochs, most)


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (lambda history: len(history) == 1000, lambda history: len(history) == 2000),
        (after(1), after(2)),
        (Patience(1), Patience(2)),
        (Patience(1).is_over, Patience(2).is_over),
        (partial(Patience.is_over, Patience(9), most=3), partial(Patience.is_over, Patience(9), most=4)),
    ],
    ids=["constants", "closures", "objects", "methods", "partial"],
)
def test_stopping_rules_that_differ_in_a_number_are_told_apart(rule: Any, other: Any) -> None:
    data = load("parity", dim=5)
    assert identify(Recipe(), data, enough=rule).id != identify(Recipe(), data, enough=other).id


def test_splits_changed_in_place_are_another_run(tmp_path: Path) -> None:
    data = load("parity", dim=5)
    recipe = Recipe(data=Data("parity", {"dim": 5}), model=TINY, epochs=1, batch_size=50)
    found = [train(recipe, runs=tmp_path, splits=data, device="cpu").id]
    for tensor in (data.train.labels, data.train.inputs, data["test"].attributes["x0"]):
        tensor.copy_(tensor.flip(0))
        found.append(train(recipe, runs=tmp_path, splits=data, device="cpu").id)
        tensor.copy_(tensor.flip(0))
    assert len(set(found)) == 4
    assert train(recipe, runs=tmp_path, splits=data, device="cpu").id == found[0]


def test_images_written_to_during_training_end_it_and_the_run_is_not_done(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / "d" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 10 * number).save(tmp_path / "d" / "ab"[number % 2] / f"{number}.bmp")
    recipe = replace(small(tmp_path / "d"), data=Data(str(tmp_path / "d"), {"held_out": 0}), batch_size=4)

    def rewrite(history: list[Any]) -> bool:
        Image.new("L", (4, 4), 99).save(tmp_path / "d" / "a" / "0.bmp")
        return False

    with pytest.raises(DataError, match=r"0\.bmp: was written to while a command was reading the data"):
        train(recipe, runs=tmp_path / "runs", device="cpu", enough=rewrite)
    [folder] = [path for path in (tmp_path / "runs").iterdir() if (path / "recipe.yaml").exists()]
    assert Run(folder).state == "failed"


def test_first_weights_and_model_code_are_part_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = load("parity", dim=5)
    code, weights = tmp_path / "mine.py", tmp_path / "first.safetensors"
    code.write_text("raise RuntimeError('run')")  # looked at, and never run
    weights.write_bytes(b"one")
    recipe = Recipe(model=Model("mine:network", weights=str(weights)))
    first = identify(recipe, data)
    assert set(first.given) == {"first weights", "model code"}
    weights.write_bytes(b"two")
    second = identify(recipe, data)
    code.write_text("raise RuntimeError('again')")
    assert len({first.id, second.id, identify(recipe, data).id}) == 3
    assert identify(Recipe(model=Model("torch.nn:Linear")), data).given == {}


def variants(data: Labelled) -> dict[str, Labelled]:
    """The examples with one thing changed at a time."""
    return {
        "inputs": replace(data, inputs=data.inputs + torch.eye(len(data))[:, : data.inputs.shape[1]]),
        "labels": replace(data, labels=1 - data.labels),
        "classes": replace(data, classes=("no", "yes")),
        "attributes": replace(data, attributes={**data.attributes, "x0": 1 - data.attributes["x0"]}),
        "attribute names": replace(data, attributes={"x0": data.attributes["x0"], "x2": data.attributes["x1"]}),
        "attribute values": replace(data, values={"x0": ("left", "right")}),
        "dtype": replace(data, inputs=data.inputs.double()),
        "order": data.subset(torch.arange(len(data)).flip(0)),
    }


def test_a_fingerprint_covers_inputs_labels_names_attributes_and_order() -> None:
    data = load("parity", dim=5).train
    found = {name: part.fingerprint for name, part in variants(data).items()}
    assert len({data.fingerprint, *found.values()}) == len(found) + 1
    for name in ("labels", "classes", "attributes"):
        changed = variants(data)[name].digests
        assert [part for part, digest in data.digests.items() if changed[part] != digest] == [name]


def test_groups_of_the_test_split_alone_make_another_run() -> None:
    data = load("parity", dim=5)
    other = data | {"test": variants(data["test"])["attributes"]}
    assert identify(Recipe(), data).id != identify(Recipe(), other).id


def test_pixels_of_equal_size_on_disk_are_told_apart(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / "d" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 10 * number).save(tmp_path / "d" / "ab"[number % 2] / f"{number}.bmp")
    before = load(tmp_path / "d").fingerprint
    file = tmp_path / "d" / "a" / "0.bmp"
    size = file.stat().st_size
    Image.new("L", (4, 4), 99).save(file)
    assert file.stat().st_size == size
    assert load(tmp_path / "d").fingerprint != before


def test_a_comparison_never_mixes_seeds_of_changed_data(tmp_path: Path) -> None:
    recipe = replace(small(written(tmp_path / "d.npz")), epochs=3)
    how = {"until": Until("epoch", 1), "runs": tmp_path / "runs", "device": "cpu"}
    before = train_useful(recipe, seeds=[0], **how)
    written(tmp_path / "d.npz", labels=1)
    after = train_useful(recipe, seeds=[0, 1], **how)
    assert not {row.run for row in before} & {row.run for row in after}
    assert len({json.dumps(Run(tmp_path / "runs" / row.run).identity["data"]) for row in after}) == 1


def test_a_measurement_on_other_data_than_the_run_saw_is_refused(tmp_path: Path) -> None:
    run = train(small(written(tmp_path / "d.npz")), runs=tmp_path / "runs", device="cpu")
    load_trained(run)
    written(tmp_path / "d.npz", labels=1)
    with pytest.raises(DataError, match=rf"d.npz is not what run {run.id} was trained on.*labels of train"):
        load_trained(run)


def test_a_run_of_0_1_is_read_but_never_taken_for_an_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "evenly")
    recipe = small("parity")
    recipe = replace(recipe, data=Data("parity", {"dim": 5}))
    made = train(recipe, runs=tmp_path, device="cpu")
    # What 0.1 left: named by a hash of what is not default, without identity, its weights without a seal.
    from safetensors.torch import load_file, save_file

    from evenly.typed.mappings import digest

    old = tmp_path / digest(to_mapping(recipe, defaults=False), digits=12)
    shutil.move(made.path, old)
    (old / "identity.json").unlink()
    save_file(load_file(old / "weights.safetensors"), old / "plain.safetensors")
    (old / "plain.safetensors").replace(old / "weights.safetensors")
    again = train(recipe, runs=tmp_path, device="cpu")
    assert again.path != old
    assert f"run {old.name} was made by evenly 0.1" in caplog.text
    assert load_trained(Run(old)).epoch == 2


@pytest.mark.parametrize("state", ["done", "stopped"])
@pytest.mark.parametrize("change", ["removed", "added", "changed"])
def test_a_recipe_edited_by_hand_is_refused_with_what_differs(change: str, state: str, tmp_path: Path) -> None:
    recipe = replace(small("parity"), data=Data("parity", {"dim": 5}))
    run = train(recipe, runs=tmp_path, device="cpu")
    if state == "stopped":
        (run.path / "done").unlink()
    mapping = yaml_text.read(run.path / "recipe.yaml")
    edited, told = {
        "removed": ({k: v for k, v in mapping.items() if k != "batch_size"}, r"batch_size: not there → 20"),
        "added": (mapping | {"warp": 9}, r"warp: 9 → not there"),
        "changed": (mapping | {"batch_size": 21}, r"batch_size: 21 → 20"),
    }[change]
    (run.path / "recipe.yaml").write_text(yaml_text.render(edited))
    with pytest.raises(UsageError, match=rf"was made with another recipe \({told}\)"):
        train(recipe, runs=tmp_path, device="cpu")


def test_nothing_is_computed_from_a_recipe_edited_after_training(tmp_path: Path, capsys: Any) -> None:
    run = train(small(written(tmp_path / "d.npz")), runs=tmp_path / "runs", device="cpu")
    recipe = run.path / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("momentum: 0.9", "momentum: 0.0"))
    for words in (
        ["measure", str(run.path), "rank"],
        ["stability", "threshold", "--run", str(run.path)],
        ["advise", str(run.path)],
        ["train", str(tmp_path / "d.npz"), "--from", str(run.path), "--runs", str(tmp_path / "other")],
        ["export", str(run.path), "--as", "hub", "--out", str(tmp_path / "hub")],
    ):
        assert main(words) == 3, words
        assert "recipe.yaml has other settings than run" in capsys.readouterr().err


def test_training_starts_from_the_named_runs_own_weights_or_not_at_all(tmp_path: Path, capsys: Any) -> None:
    one, other = (
        train(small(written(tmp_path / "d.npz"), seed=seed), runs=tmp_path / "runs", device="cpu") for seed in (0, 1)
    )
    shutil.copy(other.path / "weights.safetensors", one.path / "weights.safetensors")
    words = ["train", str(tmp_path / "d.npz"), "--epochs", "1", "--runs", str(tmp_path / "other")]
    assert main([*words, "--from", str(one.path)]) == 3
    assert f"was written by run {other.id}, not by run {one.id}" in capsys.readouterr().err


def test_missing_weights_of_a_done_run_are_an_error_with_a_remedy_that_works(tmp_path: Path, capsys: Any) -> None:
    recipe = small(written(tmp_path / "d.npz"))
    run = train(recipe, runs=tmp_path / "runs", device="cpu")
    (run.path / "weights.safetensors").unlink()
    for words in (["measure", str(run.path), "rank"], ["train", str(tmp_path / "d.npz"), "--from", str(run.path)]):
        assert main(words) == 3
        assert f"remove {run.path} and train again" in capsys.readouterr().err
    shutil.rmtree(run.path)
    load_trained(train(recipe, runs=tmp_path / "runs", device="cpu"))


def test_a_folder_with_another_runs_identity_or_none_is_refused(tmp_path: Path) -> None:
    recipe = replace(small("parity"), data=Data("parity", {"dim": 5}))
    run = train(recipe, runs=tmp_path, device="cpu")
    other = train(replace(recipe, data=Data("parity", {"dim": 5}, seed=3)), runs=tmp_path, device="cpu")
    shutil.copy(other.path / "recipe.yaml", run.path / "copy.yaml")
    mine = (run.path / "identity.json").read_bytes()
    (run.path / "identity.json").write_bytes((other.path / "identity.json").read_bytes())
    with pytest.raises(DataError, match="holds a different run than its name says"):
        train(recipe, runs=tmp_path, device="cpu")
    (run.path / "identity.json").unlink()
    with pytest.raises(DataError, match=r"has no identity.json: it is not known which data it belongs to"):
        train(recipe, runs=tmp_path, device="cpu")
    (run.path / "identity.json").write_bytes(mine[:-9])
    with pytest.raises(DataError, match=r"identity.json is not JSON"):
        train(recipe, runs=tmp_path, device="cpu")


def test_a_renamed_run_is_still_read(tmp_path: Path) -> None:
    run = train(replace(small("parity"), data=Data("parity", {"dim": 5})), runs=tmp_path, device="cpu")
    shutil.move(run.path, tmp_path / "mine")
    assert load_trained(Run.open("mine", tmp_path)).epoch == 2


def test_splits_say_what_they_were_drawn_from_whatever_the_seed() -> None:
    one, other = (load("parity", dim=5, seed=seed, validation=0.2) for seed in (0, 1))
    assert one.identity()["drawn_from"] == other.identity()["drawn_from"] == "parity(dim=5) validation=0.2"
    assert one.fingerprint != other.fingerprint
    assert load("digits").identity()["drawn_from"] is None
    assert Splits("mine", dict(one)).identity()["drawn_from"] is None


@pytest.mark.parametrize("start", [train, train_useful])
def test_a_dict_of_data_sets_is_refused_in_words(start: Any, tmp_path: Path) -> None:
    sets = {"train": torch.utils.data.TensorDataset(torch.zeros(4, 3), torch.arange(4) % 2)}
    with pytest.raises(UsageError, match=r"splits= is a dict, not evenly.Splits.*foreign"):
        start(Recipe(model=TINY, epochs=4), splits=sets, runs=tmp_path)


def test_the_code_of_the_program_itself_is_part_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(program), raising=False)  # a worker has none
    found = []
    for code in ("def net(): return one", "def net(): return two", "def net(): return one"):
        program.write_text(code)
        found.append(identify(Recipe(model=Model("__main__:net")), load("parity", dim=5)).id)
    assert found[0] == found[2] != found[1]


def test_a_network_of_a_notebook_is_asked_for_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(UsageError, match=r"'__main__:net' is in no file.*networks\.py, named networks:net"):
        identify(Recipe(model=Model("__main__:net")), load("parity", dim=5))


def test_indices_and_weights_are_identified_in_any_form() -> None:
    data = load("parity", dim=5)
    forms = ([0, 1, 2], np.array([0, 1, 2]), torch.tensor([0, 1, 2]), np.array([2, 1, 0])[::-1])
    assert len({identify(Recipe(), data, indices=each).id for each in forms}) == 1
