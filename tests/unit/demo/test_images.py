"""The demo's second half: real runs, whose numbers are those of their folders."""

from pathlib import Path
from typing import Any

import pytest

from evenly.demo.images import Images, image_story
from evenly.records import Run

SMALL = Images(seeds=2, epochs=6, width=64)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("story")


@pytest.fixture(scope="module")
def story(runs: Path) -> dict[str, Any]:
    return image_story(SMALL, runs=runs, device="cpu")


def test_every_seed_has_the_method_and_its_controls(story: dict[str, Any]) -> None:
    made = [(row["method"], row["seed"]) for row in story["rows"]]
    assert sorted(made) == sorted((m, s) for m in ("plain", "useful", "random") for s in (0, 1))


def test_errors_are_those_the_runs_recorded(story: dict[str, Any], runs: Path) -> None:
    for row in story["rows"]:
        summary = Run.open(row["run"], runs).summary()
        assert row["error.test"] == summary["test.error"]
        assert row["error.balanced"] == summary["balanced.error"]
    # The upper digit says nothing there, and the network leans on it.
    assert all(row["error.balanced"] > 0.3 > 0.1 > row["error.test"] for row in story["rows"])


def test_most_hard_images_are_those_without_the_upper_digit(story: dict[str, Any]) -> None:
    for row in story["separations"]:
        assert row["recall"] > 0.9
        assert row["precision"] > 0.6


def test_pictures_are_the_easiest_of_the_easy_and_the_hardest_of_the_hard(story: dict[str, Any]) -> None:
    for label in {example["label"] for example in story["examples"]}:
        easy, hard = (
            [e["loss"] for e in story["examples"] if e["label"] == label and e["hard"] == part]
            for part in (False, True)
        )
        assert easy == sorted(easy)
        assert hard == sorted(hard, reverse=True)
        assert max(easy) < min(hard)
    blank = [not any(map(any, e["pixels"][:8])) for e in story["examples"]]
    assert blank == [e["lacking"] for e in story["examples"]]


def test_finished_runs_are_used_again(story: dict[str, Any], runs: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("done")}
    assert image_story(SMALL, runs=runs, device="cpu") == story
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("done")} == before
