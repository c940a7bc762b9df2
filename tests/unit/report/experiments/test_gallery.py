"""Pictures on a page: exact where there is room for it, small where there are many."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from evenly.report.experiments import gallery as module
from evenly.report.experiments.gallery import data_uri, gallery, hard_examples_csv


def decoded(source: str) -> tuple[str, np.ndarray]:
    kind, _, data = source.partition(";base64,")
    return kind.removeprefix("data:image/"), np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 28, 1), (1, 1, 1), (5, 300, 3)])
def test_an_exact_picture_has_the_very_pixels(shape: tuple[int, ...]) -> None:
    picture = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    kind, pixels = decoded(data_uri(picture, exact=True))
    assert kind == "png"
    np.testing.assert_array_equal(pixels, picture[..., 0] if shape[-1] == 1 else picture)


def test_a_compressed_picture_looks_the_same() -> None:
    across = np.linspace(0, 255, 64).astype(np.uint8)
    picture = np.stack([across[:, None] + 0 * across, 0 * across[:, None] + across, np.full((64, 64), 90)], axis=-1)
    kind, pixels = decoded(data_uri(picture.astype(np.uint8)))
    assert kind == "jpeg"
    assert np.abs(pixels.astype(int) - picture).mean() < 4


def test_few_pictures_are_exact_and_many_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    num = 40
    arrays = {
        "index": np.arange(num), "label": np.arange(num) % 2, "predicted": np.zeros(num, int),
        "loss": np.linspace(0, 1, num), "hard": np.zeros(num, bool), "suspect": np.zeros(num, bool),
        "pictures": np.random.default_rng(0).integers(256, size=(num, 3, 16, 16), dtype=np.uint8),
    }  # fmt: skip
    for limit, kind in [(1_000_000, "png"), (1000, "jpeg")]:
        monkeypatch.setattr(module, "EXACT_BYTES", limit)
        made = gallery(arrays, {0: "cat", 1: "dog"})
        assert made is not None
        assert {decoded(p.source)[0] for shelf in made.shelves for row in shelf.rows.values() for p in row} == {kind}
    _, pixels = decoded(gallery_source(arrays, monkeypatch))
    np.testing.assert_array_equal(pixels, arrays["pictures"][0].transpose(1, 2, 0))


def gallery_source(arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> str:
    """The easiest picture of the first class."""
    monkeypatch.setattr(module, "EXACT_BYTES", 1_000_000)
    made = gallery(arrays, {0: "cat", 1: "dog"})
    assert made is not None
    return made.shelves[0].rows["easiest"][0].source


def test_an_enlarged_picture_says_why_it_is_hard() -> None:
    arrays = {
        "index": np.array([4, 5]), "label": np.array([0, 0]), "predicted": np.array([0, 1]), "hard": np.array([0, 1]),
        "loss": np.array([0.1, 2.0]), "suspect": np.array([0, 0]), "probability": np.array([0.9, 0.86]),
        "nearest": np.array([5, 41]), "nearest_label": np.array([0, 1]), "files": np.array(["cat/a.png", "cat/b.png"]),
        "pictures": np.zeros((2, 1, 4, 4), np.uint8),
    }  # fmt: skip
    made = gallery(arrays, {0: "cat", 1: "dog"}, late={5: (0, 0.99)})
    assert made is not None
    (hardest,) = made.shelves[0].rows["hardest"]
    assert hardest.caption == "loss 2.00, taken for dog (0.86)"
    assert hardest.details == {
        "index": "5", "file": "cat/b.png", "label": "cat", "early network": "dog (0.86)",
        "trained network": "cat (0.99)", "early loss": "2 nats, called hard",
        "nearest easy example": "number 41, a dog",
    }  # fmt: skip


def test_the_csv_lists_the_hard_examples_hardest_first() -> None:
    kept = {
        "index": np.array([9]),
        "predicted": np.array([1]),
        "suspect": np.array([True]),
        "files": np.array(["b.png"]),
    }
    rows = "index,label,hard,loss\n3,0,1,2.5\n4,0,0,0.1\n9,0,1,4.5\n"
    lines = hard_examples_csv(kept, {0: "cat", 1: "dog"}, rows).splitlines()
    assert lines[1:] == ["9,cat,4.5,yes,dog,b.png", "3,cat,2.5,,,"]
