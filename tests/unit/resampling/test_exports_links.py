"""Links for every class in a folder of its own, whole or not there."""

from pathlib import Path

import pytest
import torch

from evenly.errors import SetupError
from evenly.resampling import exports, separate

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
