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
            bar.note(loss=0.5)
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0] == "training c0ffee: 30%, about 70 s left  loss 0.5"
    assert lines[2] == "training c0ffee: 90%, about 10 s left  loss 0.5"


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track(range(1000), "counting")) == list(range(1000))
    assert capsys.readouterr().err == ""


def test_what_has_no_known_end_says_how_much_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Bar("reading", total=None) as bar:
        now = 31.0
        bar.advance(5000)
    assert capsys.readouterr().err == "reading: 5,000 after 31 s\n"
