"""Links for every class in a folder of its own, whole or not there; manifests that say what is wrong with them."""

from pathlib import Path

import pytest
import torch

from evenly.errors import SetupError
from evenly.resampling import exports, separate
from evenly.resampling.baselines import upper_share
from evenly.resampling.health import health

LOGITS = torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 4.0], [1.0, 0.0]])


def files_in(folder: Path) -> list[Path]:
    folder.mkdir()
    files = [folder / f"{number}.png" for number in range(4)]
    for file in files:
        file.touch()
    return files


@pytest.mark.parametrize("classes", [("a/b", "a_b"), ("Cat", "cat"), (".x", "_x")])
def test_classes_whose_names_become_one_keep_folders_of_their_own(classes: tuple[str, str], tmp_path: Path) -> None:
    found = separate(LOGITS, [0, 0, 1, 1], classes=classes)
    exports.write_links(found, tmp_path / "out", files=files_in(tmp_path / "in"))
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len({name.casefold() for name in folders}) == 2
    assert [len(list((tmp_path / "out" / name).iterdir())) for name in folders] == [3, 3]


def test_links_that_break_off_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, real = files_in(tmp_path / "in"), Path.symlink_to

    def third_fails(self: Path, target: Path) -> None:
        if self.name.startswith("2-"):
            raise OSError(28, "No space left on device")
        real(self, target)

    monkeypatch.setattr(Path, "symlink_to", third_fails)
    with pytest.raises(SetupError, match="No space left"):
        exports.write_links(separate(LOGITS, [0, 0, 1, 1]), tmp_path / "out", files=files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.29, 0.55, 0.57, 0.58])
def test_a_share_that_is_a_whole_number_of_examples_is_that_number(share: float) -> None:
    assert int(upper_share(torch.arange(100.0), share).sum()) == round(100 * share)


def test_features_are_not_read_as_predictions() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 2
    # As logits, the feature of example 0 would say class 1 with certainty, and its loss is far off.
    features = torch.randn(60, 2, generator=rng)
    features[0] = torch.tensor([0.0, 30.0])
    losses = torch.full((60,), 0.1) + 0.01 * torch.rand(60, generator=rng)
    losses[0] = 9.0
    found = {on: separate(features, labels, losses=losses, on=on, max_accuracy=1) for on in ("features", "logits")}
    assert health(found["logits"], features).suspects.rows.tolist() == [0]
    of_features = health(found["features"], features)
    assert len(of_features.suspects) == 0
    assert set(of_features.distinctness) == {0, 1}
