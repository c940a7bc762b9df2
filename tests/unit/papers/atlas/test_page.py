"""The atlas as a site: every cell of the rows is a square that leads to its place on the page of its task."""

import re
from pathlib import Path

import pytest
from tests.unit.papers.atlas.test_cells import row

from evenly.errors import UsageError
from evenly.papers.atlas.advice import FEATURES
from evenly.papers.atlas.cells import cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.page import write_atlas
from evenly.papers.atlas.task_list import TASKS

KEYS = ("atlas/lacking-20", "atlas/conflicting-5", "atlas/noisy-10")
EFFECTS = ({"useful8+noise": -14.0}, {"jtt": -8.0, "label-smoothing": 4.0}, {"useful8": 20.0})


def whole_row(key: str, effects: dict[str, float]) -> dict:
    task = TASKS[key]
    return row(key, effects, features=dict.fromkeys(FEATURES, 0.1 * task.share)) | {
        "title": f"Atlas: {task.sentence}",
        "scale": "small",
        "seeds": list(range(20, 30)),
        "figure": None,
        "parts": {"seeds 20–24": "abc"},
        "origins": {"20": {"revision": "abc"}},
        "command": f"evenly reproduce {key} --scale small",
        "date": "2026-11-16",
        "minutes": 3.0,
    }


ROWS = [whole_row(key, effects) for key, effects in zip(KEYS, EFFECTS, strict=True)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("atlas")
    write_atlas(out, ROWS, TASKS)
    return out


def test_every_cell_is_a_square_that_opens_the_cure_on_the_page_of_its_task(site: Path):
    index = (site / "index.html").read_text()
    links = re.findall(r'<td class="([^"]*)"><a href="([^"#]+)#([^"]+)" title="([^"]+)"', index)
    assert len(links) == len(cells(ROWS)) == 3 * 3 * (len(CURES) - 1)
    for _, page, place, _ in links:
        assert f'id="{place}"' in (site / page).read_text()


def test_squares_say_what_the_cells_say(site: Path):
    index = (site / "index.html").read_text()
    tones = {
        (page, place, words.rpartition(", ")[2]): tone
        for tone, page, place, words in re.findall(
            r'<td class="([^"]*)"><a href="([^"#]+)#([^"]+)" title="([^"]+)"', index
        )
    }
    assert tones["atlas-lacking-20.html", "useful8-noise", "helps"] == "good sure"
    assert tones["atlas-noisy-10.html", "useful8", "harms"] == "bad sure"
    assert tones["atlas-conflicting-5.html", "label-smoothing", "harms"] == "bad sure"


def test_what_was_not_measured_is_listed_as_such(site: Path):
    index = (site / "index.html").read_text()
    assert "3 of 30 declared tasks" in index
    assert "atlas/fmnist-lacking-20" in index.split("Not measured")[-1]


def test_columns_go_from_perceptrons_by_share_to_networks_and_data(tmp_path: Path):
    """Whatever the order of the rows, and with the tasks that are still to be measured."""
    keys = ("fmnist-lacking-20", "convnet-lacking-20", "lacking-40", "lacking-10", "lacking-5")
    write_atlas(tmp_path, [whole_row(f"atlas/{key}", {}) for key in keys], TASKS)
    index = (tmp_path / "index.html").read_text()
    [first, *_] = re.findall(r'<tr><th scope="row">USEFUL ×2</th>(.*?)</tr>', index, re.DOTALL)
    assert re.findall(r'href="atlas-([\w-]+)\.html', first) == [*reversed(keys)]
    heads = re.findall(r'<th scope="colgroup" colspan="\d+">([^<]*)</th>', index.split("</thead>")[1])
    assert heads[-5:] == ["800", "800", "800", "800 conv", "5k fmn"]
    assert "conv: convnet; fmn: fmnist-mnist." in index


def test_every_task_names_the_command_that_repeats_it(site: Path):
    index = (site / "index.html").read_text()
    assert all(f'<code class="number">{row["command"]}</code>' in index for row in ROWS)
    lead = index.split("Repeats this:")[1].split("</code>")[0]
    assert lead.endswith(">evenly reproduce atlas"), "one scale alone does not repeat every task"


def test_the_cost_of_equal_steps_is_not_told_as_that_of_a_comparison(site: Path):
    page = re.sub(r"<[^>]+>", "", (site / "atlas-lacking-20.html").read_text())
    useful = page.split("plain,useful:8 does the like")
    assert useful[0].endswith(
        "With as many steps as plain training, this costs 1.10× its gradients. evenly compare DATA --methods "
    )
    assert useful[1].startswith(" on your data, with as many epochs, so that copies cost more there.")
    assert "plain,reweight:8 does the like on your data, with as many epochs. The last" in page
    assert "With as many epochs as plain training, this costs 1.00× its gradients." in page, "the smaller batch"
    assert "for as many steps with a cure as without" in (site / "index.html").read_text()


def test_a_page_of_a_task_shows_every_seed_and_what_could_be_seen(site: Path):
    page = (site / "atlas-lacking-20.html").read_text()
    value = ROWS[0]["quantities"]["useful8+noise.balanced"]["23"]
    assert f"{value:.4g}" in page
    assert "could be seen" in page
    assert "plain,useful:8+noise:0.2" in page


def test_an_atlas_is_not_written_over_another(site: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="--force"):
        write_atlas(site, ROWS, TASKS)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        write_atlas(tmp_path / "file", ROWS, TASKS)
