"""The example that tells the whole story runs, is one page, and shows what it says."""

import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_page.py"


def test_the_one_page_example_shows_bias_separation_and_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("one_page", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    picture = tmp_path / "curves.png"
    seen = module.main(num_seeds=2, picture=str(picture))

    assert seen["separations"] == [(1.0, 1.0), (1.0, 1.0)]
    rises = {
        method: [a - b for a, b in zip(own, seen["difficult"]["GD"], strict=True)]
        for method, own in seen["difficult"].items()
    }
    assert min(rises["USEFUL"]) > 0.05 > max(rises["random"])
    ratio = {method: seen["difficult"][method][1] / seen["easy"][method][1] for method in module.METHODS}
    assert ratio["SAM"] > 1.5 * ratio["GD"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert all(re.search(rf"^{method}\s+\d", printed, flags=re.MULTILINE) for method in module.METHODS)


def test_it_is_one_page_that_needs_the_public_library_only() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 150
    assert not re.search(r"(import|\.)\s*_[a-z]", text)
