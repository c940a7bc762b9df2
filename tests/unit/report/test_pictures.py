"""Pictures on a page: exact where there is room for it, small where there are many."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from evenly.report.run_page import pictures
from evenly.report.run_page.pictures import data_uri, gallery


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
        monkeypatch.setattr(pictures, "EXACT_BYTES", limit)
        made = gallery(arrays, {0: "cat", 1: "dog"})
        assert made is not None
        assert {decoded(p.source)[0] for shelf in made.shelves for row in shelf.rows.values() for p in row} == {kind}
    _, pixels = decoded(gallery_source(arrays, monkeypatch))
    np.testing.assert_array_equal(pixels, arrays["pictures"][0].transpose(1, 2, 0))


def gallery_source(arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> str:
    """The easiest picture of the first class."""
    monkeypatch.setattr(pictures, "EXACT_BYTES", 1_000_000)
    made = gallery(arrays, {0: "cat", 1: "dog"})
    assert made is not None
    return made.shelves[0].rows["easiest"][0].source
