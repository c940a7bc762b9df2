"""Data sets by name."""

from pathlib import Path

import pytest

from evenly.data import load
from evenly.errors import UsageError


def test_an_empty_word_is_not_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no data set ''"):
        load("")
