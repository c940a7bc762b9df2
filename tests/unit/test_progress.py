"""Progress where nobody watches a bar: a line now and then, and none for what is quick."""

import pytest

from evenly import progress


def test_without_a_terminal_a_line_says_every_half_minute_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Bar("training c0ffee", total=100) as bar:
        for step in range(100):
            now = float(step + 1)
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0] == "training c0ffee: 30%, about 1.2 min left"
    assert lines[2] == "training c0ffee: 90%, about 10.0 s left"


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track(range(1000), "counting")) == list(range(1000))
    assert capsys.readouterr().err == ""
