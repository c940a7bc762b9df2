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


def test_the_time_left_of_what_is_resumed_follows_from_what_is_done_since(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Bar("training c0ffee", total=1000, done=500) as bar:
        for step in range(30):
            now = float(step + 1)
            bar.advance()
    assert capsys.readouterr().err.splitlines() == ["training c0ffee: 53%, about 7.8 min left"]


def test_many_short_bars_say_as_much_as_a_long_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    for _ in range(10):
        with progress.Bar("training 5 networks", total=10) as bar:
            for _ in range(10):
                now += 1.0
                bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["training 5 networks: 100%"] * 3, "after 30, 60 and 90 seconds"
    now += 1000.0
    with progress.Bar("something else", total=2) as bar:
        now += 10.0
        bar.advance()
    assert capsys.readouterr().err == "", "the time without any bar does not count"


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track(range(1000), "counting")) == list(range(1000))
    assert capsys.readouterr().err == ""


def test_a_bar_inside_of_another_one_is_shown_once_it_takes_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress, "can_show_bar", lambda: True)
    with progress.Bar("2 of 12 runs done: USEFUL, seed 1", total=12, unit="runs"), progress.Bar("x", total=9) as inner:
        inner.advance()
        assert [task.visible for task in progress._shown.tasks] == [True, False]
        now = 1.5
        inner.note(loss=0.25, error=0.1234)
        assert [task.visible for task in progress._shown.tasks] == [True, True]
        assert progress._shown.tasks[1].description == "x  loss 0.25  error 12.34%"
        assert progress._shown.tasks[1].completed == 1
        columns = [type(column).__name__ for column in progress._shown.columns]
        assert columns == ["TextColumn", "BarColumn"], "the time left is told once, in words"


def test_text_is_broken_between_words_and_commands_stay_whole() -> None:
    command = "  evenly useful photos --model convnet --epochs 12 --set data.validation=0.2 --runs /a/long/path/of/runs"
    said = progress.wrap_text(f"{'Eleven words ' * 11}\n{command}", width=80).splitlines()
    assert said[-1] == command
    assert max(map(len, said[:-1])) <= 80
    assert " ".join(said[:-1]) == ("Eleven words " * 11).strip()


def test_what_a_stranger_wrote_cannot_move_the_cursor_or_turn_the_text_around() -> None:
    assert progress.wrap_text("a\x1b[2J\x9b1m\u202eb\ud800\n\tc\N{NO-BREAK SPACE}é") == (
        r"a\x1b[2J\x9b1m\u202eb\ud800" + "\n\tc\N{NO-BREAK SPACE}é"
    )
