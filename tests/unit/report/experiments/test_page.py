"""The page of experiments says what its records say, and no more."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import DataError, UsageError
from evenly.recipe import Data, Recipe, Resampling, Until, digest, to_mapping
from evenly.records import Run
from evenly.report.blocks import Badge, Gallery, Listing, Plot, Switch, Table, iterate_blocks
from evenly.report.experiments import Page, page_of

Made = dict[tuple[str, int], Run]
Maker = Callable[..., Made]
ID = "c0ffee00"


def tables(page: Page, section: str) -> list[Table]:
    return [b for s in page.sections if s.id == section for b in s.blocks if isinstance(b, Table)]


def titles(page: Page) -> list[str]:
    return [block.chart.title for _, block in iterate_blocks(page.sections) if isinstance(block, Plot)]


def galleries(page: Page) -> list[Gallery]:
    return [block for _, block in iterate_blocks(page.sections) if isinstance(block, Gallery)]


def change(root: Path, **changes: Any) -> None:
    path = root / "comparisons" / f"{ID}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("which", ["folder", "comparison", "member", "early run"])
def test_folder_comparison_member_and_early_run_lead_to_one_page(which: str, comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    words = {"folder": tmp_path / "runs", "comparison": ID[:4], "member": made["random", 1].path}
    page = page_of([words.get(which, made["early", 0].path)], runs=tmp_path / "runs")
    assert page.title == "USEFUL on photos: mlp, SGD"
    assert page.lead.badge == "helped"
    assert page.lead.finding == "USEFUL lowers the error on test by 2.00 points."
    assert page.lead.next_command == "evenly compare photos --seeds 0-9"
    assert "about 7 seeds would settle it" in page.lead.advice
    assert ("error %, plain", "11.00 [8.52, 13.48]") in page.lead.facts
    assert page.chapters == []


def test_a_comparison_without_plain_training_tells_its_error_once(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    stored = json.loads((tmp_path / "runs" / "comparisons" / f"{ID}.json").read_text())
    useful = [method for method in stored["methods"] if method["name"] == "useful"]
    change(tmp_path / "runs", methods=useful, baseline="useful")
    facts = [name for name, _ in page_of([ID], runs=tmp_path / "runs").lead.facts]
    assert facts.count("error %, USEFUL") == 1


def test_the_table_has_the_numbers_of_the_stored_comparison(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    rows = {row[0]: row for row in tables(page_of([tmp_path / "runs"]), "comparison")[0].rows}  # type: ignore[index]
    assert list(rows) == ["plain", "USEFUL", "random"]
    assert rows["USEFUL"][1:4] == ["0, 1, 2", "9.00 [6.52, 11.48]", "−2.00 [−2.00, −2.00]"]  # type: ignore[index]
    assert rows["USEFUL"][6:] == ["1.60×", "helped"]  # type: ignore[index]


def test_nothing_of_one_experiment_is_in_the_chart_of_another(comparison: Maker, tmp_path: Path) -> None:
    """A digits run once stood as `original (…)` in the charts of `USEFUL on photos`."""
    comparison()
    other = Recipe(data=Data("digits"), epochs=4)
    early = Recipe(data=Data("photos"), epochs=10, seed=77, until=Until("epoch", 2))
    for recipe in (other, early):
        with Run.create(tmp_path / "runs", to_mapping(recipe), digest(recipe)) as run:
            run.log(epoch=1, **{"test.error": 0.77})
            if recipe is other:
                run.finish({"test.error": 0.77})
    page = page_of([tmp_path / "runs"])
    assert page.title.startswith("Experiments in ")
    assert [chapter.title for chapter in page.chapters] == [
        "USEFUL on photos: mlp, SGD", *sorted(c.title for c in page.chapters[1:])
    ]  # fmt: skip
    assert len(page.chapters) == 3
    first = [block for _, block in iterate_blocks(page.chapters[0].sections) if isinstance(block, Plot)]
    assert all("77" not in str(getattr(layer, "y", "")) for block in first for layer in block.chart.layers)
    curves = next(block.chart for block in first if block.chart.title == "Test error")
    assert [layer.name for layer in curves.layers] == ["plain", "USEFUL", "random"]
    html = page.html()
    assert html.count('class="chapter"') == 3
    index = tables(page, "index")
    assert len(index[0].rows) == 1
    assert {row[1] for row in index[1].rows} == {"done", "stopped"}  # type: ignore[index]


def test_two_comparisons_are_two_chapters_newest_first(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    comparison(data="scans")  # its record replaces the first, whose copy follows
    folder = tmp_path / "runs" / "comparisons"
    shutil.copy(folder / f"{ID}.json", folder / "b2.json")
    change(tmp_path / "runs", data="later", created=1.9e9)
    page = page_of([tmp_path / "runs"])
    assert [chapter.title.split()[2] for chapter in page.chapters[:2]] == ["later:", "scans:"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"format": 9}', '{"format": 1, "methods": [{"name": 3}]}'])
def test_a_damaged_or_foreign_comparison_is_named_and_the_rest_stands(
    text: str, comparison: Maker, tmp_path: Path
) -> None:
    comparison()
    (tmp_path / "runs" / "comparisons" / "bad.json").write_text(text)
    page = page_of([tmp_path / "runs"])
    assert {chapter.title for chapter in page.chapters} == {"Comparison bad", "USEFUL on photos: mlp, SGD"}
    assert any("bad.json" in remark for remark in page.remarks)
    assert "bad.json" in page.html()


def test_a_run_whose_folder_is_gone_is_named_and_the_others_stand(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    shutil.rmtree(made["random", 0].path)
    page = page_of([tmp_path / "runs"])
    assert any(f"run {made['random', 0].id} (random, seed 0)" in remark for remark in page.remarks)
    assert "comparison" in {section.id for section in page.sections}


def test_a_collapsed_run_is_named(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text())
    record["methods"][1]["runs"]["2"]["collapsed"] = "it predicts one class"
    path.write_text(json.dumps(record))
    assert "USEFUL, seed 2: it predicts one class" in page_of([path]).html()


def test_a_comparison_that_runs_says_which_run_of_how_many_and_goes_on(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"state": "running"}
    waiting = Recipe(data=Data("photos"), epochs=10, seed=3, resampling=Resampling("useful", early="e"))
    record["methods"][1]["runs"]["3"] = {"run": digest(waiting), "state": "planned"}
    record["methods"][2]["runs"]["3"] = {"run": None, "state": "planned"}
    path.write_text(json.dumps(record))
    page = page_of([path])
    assert page.state == "12 of 14 runs done"
    assert not page.over
    with Run.create(tmp_path / "runs", to_mapping(waiting), digest(waiting)) as run:
        run.log(epoch=4, **{"test.error": 0.5})
        page = page_of([path])
        assert page.state == "run 13 of 14, USEFUL, seed 3, epoch 4 of 10"
        assert page.lead.badge == "running"
        assert not page.over
        run.finish({"test.error": 0.1})
    assert made["useful", 0].state == "done"
    path.write_text(json.dumps(record | {"state": "done"}))
    assert page_of([path]).over


def test_a_run_that_its_comparison_does_not_name_yet_is_no_experiment_of_its_own(
    comparison: Maker, tmp_path: Path
) -> None:
    comparison()
    change(tmp_path / "runs", state="running")
    recipe = Recipe(epochs=14)
    with Run.create(tmp_path / "runs", to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.5})
        assert page_of([tmp_path / "runs"]).chapters == []
    assert len(page_of([tmp_path / "runs"]).chapters) == 2, "stopped, and of no comparison"


def test_the_time_left_is_that_of_the_runs_done(comparison: Maker, tmp_path: Path) -> None:
    made = comparison(errors={"plain": (0.1,), "useful": (0.1,)})
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"state": "running"}
    record["methods"][1]["runs"] |= {str(seed): {"run": None, "state": "planned"} for seed in (1, 2, 3)}
    path.write_text(json.dumps(record))
    for method in ("plain", "useful"):
        done = made[method, 0].path / "done"
        done.write_text(json.dumps(json.loads(done.read_text()) | {"seconds": 120.0}))
    assert page_of([path]).state == "3 of 6 runs done, about 6 min left"


def test_more_experiments_than_fit_are_in_the_index(tmp_path: Path) -> None:
    for seed in range(15):
        recipe = Recipe(epochs=1, seed=seed)
        with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
            run.finish({"test.error": 0.25})
    page = page_of([tmp_path])
    assert len(page.chapters) == 12
    assert len(tables(page, "index")[0].rows) == 15
    assert page.lead.finding.startswith("15 experiments. The latest 12 are shown below the index. ")


def test_badges_of_the_chapters_are_not_counted_as_those_of_all(tmp_path: Path) -> None:
    for seed in range(15):
        recipe = Recipe(epochs=1, seed=seed)
        with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
            run.log(epoch=1, **{"test.error": 0.5})
    assert page_of([tmp_path]).lead.finding.startswith("15 experiments. Of the latest 12: 12 stopped. ")


def test_a_run_alone_is_told_as_one_and_led_to_a_comparison(tmp_path: Path) -> None:
    recipe = Recipe(epochs=2)
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=2, **{"test.error": 0.25})
        run.finish({"test.error": 0.25})
    page = page_of([run.path])
    assert "Plain reaches 25.00% error on test with seed 0. It is a single run" in page.lead.finding
    assert page.lead.command == "evenly train digits --epochs 2 --lr 0.1 --set schedule.kind=step"
    assert page.lead.next_command == "evenly useful digits --epochs 2 --lr 0.1 --set schedule.kind=step --seeds 0-4"


def test_predictions_give_a_confusion_matrix_and_what_changed(comparison: Maker, tmp_path: Path) -> None:
    comparison(errors={"plain": (0.3, 0.3), "useful": (0.1, 0.2)})
    page = page_of([tmp_path / "runs"])
    assert {"Confusion matrix, plain", "Confusion matrix, USEFUL"} <= set(titles(page))
    rows = tables(page, "predictions")[0].rows
    assert rows == [["USEFUL", 0, 2, 0, 1], ["USEFUL", 1, 1, 0, 2]]


def test_each_seed_has_its_own_gallery(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    page = page_of([tmp_path / "runs"])
    switch = next(b for s in page.sections if s.id == "examples" for b in s.blocks)
    assert isinstance(switch, Switch)
    assert list(switch.choices) == ["0", "1", "2"]


def test_measurements_make_the_sections_of_features_and_geometry(
    comparison: Maker, measured: Callable[[Run], None]
) -> None:
    made = comparison()
    path = made["useful", 0].path
    assert not {"features", "geometry"} & {s.id for s in page_of([path]).sections}
    measured(made["useful", 0])
    after = page_of([path])
    assert [s.id for s in after.sections] == [
        "comparison", "predictions", "examples", "separation", "curves", "features", "geometry", "run"
    ]  # fmt: skip
    expected = {"Probing errors", "Importance of the examples (Lorenz): USEFUL, seed 0", "Rank of the features",
                "Spectrum of the Hessian: USEFUL, seed 0", "Where the learning rate stands"}  # fmt: skip
    assert expected <= set(titles(after))
    coherence = tables(after, "geometry")[1]
    assert coherence.rows[0][:2] == ["SGD", 2.0]  # type: ignore[index]


def test_a_section_asked_for_without_data_names_the_command_that_makes_it(comparison: Maker) -> None:
    path = comparison()["useful", 0].path
    with pytest.raises(DataError, match=f"evenly measure {path} sharpness"):
        page_of([path], wanted=["geometry"])
    with pytest.raises(UsageError, match="Did you mean 'geometry'"):
        page_of([path], wanted=["geomtry"])
    assert [s.id for s in page_of([path], wanted=["curves"]).sections] == ["curves"]


def test_pictures_are_the_easiest_and_hardest_with_suspects_marked(comparison: Maker) -> None:
    made = comparison(names=("cat", "<script>dog</script>"))
    page = page_of([made["useful", 0].path])
    shelf = galleries(page)[0].shelves[1]
    assert [p.caption for p in shelf.rows["easiest"]] == ["loss 0.10", "loss 0.20"]
    assert [p.caption for p in shelf.rows["hardest"]] == ["loss 4.00, taken for cat", "loss 2.00"]
    assert [p.suspect for p in shelf.rows["hardest"]] == [True, False]
    assert all(p.source.startswith("data:image/png;base64,") for row in shelf.rows.values() for p in row)
    assert "<script>dog" not in page.html()


def test_text_stands_where_pictures_are_not(comparison: Maker) -> None:
    html = page_of([comparison(pictures=False)["useful", 0].path]).html()
    assert "<blockquote>review 0</blockquote>" in html


def test_groups_are_drawn_from_the_errors_of_each(tmp_path: Path) -> None:
    recipe = Recipe(epochs=1)
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.2})
        run.finish({"test.error": 0.2, "test.error.place.on land": 0.1, "test.error.place.at sea. far": 0.3})
    page = page_of([run.path])
    chart = next(b.chart for s in page.sections if s.id == "groups" for b in s.blocks if isinstance(b, Plot))
    assert (chart.layers[0].x, chart.layers[0].y) == (("on land", "at sea. far"), (10.0, 30.0))  # type: ignore[union-attr]


def test_attributes_whose_names_have_dots_have_a_chart_each(tmp_path: Path) -> None:
    recipe = Recipe(epochs=1)
    errors = {"test.error.hair.colour.dark": 0.1, "test.error.hair.style.long": 0.3}
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.2})
        run.finish({"test.error": 0.2, "test.worst.hair.colour": 0.1, "test.worst.hair.style": 0.3, **errors})
    drawn = [title for title in titles(page_of([run.path])) if "hair" in title]
    assert len(drawn) == 2
    assert "hair.colour" in drawn[0]
    assert "hair.style" in drawn[1]


def test_the_latest_experiments_are_shown_whether_comparisons_or_runs(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    record = json.loads((tmp_path / "runs" / "comparisons" / f"{ID}.json").read_text())
    for number in range(14):
        path = tmp_path / "runs" / "comparisons" / f"c0ffee{number + 10}.json"
        path.write_text(json.dumps(record | {"id": path.stem}))
        os.utime(path, (1e9 + number, 1e9 + number))
    recipe = Recipe(epochs=1, seed=99)
    with Run.create(tmp_path / "runs", to_mapping(recipe), digest(recipe)) as run:
        run.finish({"test.error": 0.2})
    page = page_of([tmp_path / "runs"])
    assert "The latest 12 are shown below the index." in page.lead.finding
    assert any(run.id in chapter.id for chapter in page.chapters)
    assert not any("c0ffee10" in chapter.id for chapter in page.chapters)


def test_every_folder_has_its_index(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        for seed in range(2):
            recipe = Recipe(epochs=1, seed=seed)
            with Run.create(tmp_path / folder, to_mapping(recipe), f"{folder}{seed}") as run:
                run.finish({"test.error": 0.2})
    page = page_of([tmp_path / "one", tmp_path / "two"])
    assert [(s.id, s.title) for s in page.sections] == [
        ("index", f"Index of {tmp_path / 'one'}"),
        ("index-2", f"Index of {tmp_path / 'two'}"),
    ]
    assert all(f"{folder}{seed}" in page.html() for folder in ("one", "two") for seed in range(2))


def test_a_folder_that_holds_nothing_but_a_removed_run_has_no_page(tmp_path: Path) -> None:
    (tmp_path / ".a1.removed").mkdir()
    (tmp_path / ".a1.removed" / "recipe.yaml").write_text("seed: 0\n")
    with pytest.raises(UsageError, match="holds no runs"):
        page_of([tmp_path])


def test_a_run_in_progress_shows_what_is_known(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.log(epoch=1, **{"train.loss": 1.0, "test.error": 0.5})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "train.lo')  # torn
    page = page_of([run.path])
    run.close()
    assert "is running after epoch 1 of 5" in page.lead.finding
    assert ("test error now", "50.00%") in page.lead.facts
    assert [s.id for s in page.sections] == ["curves", "run"]
    assert page.update()["over"] is False
    assert page.lead.command == "evenly train digits --epochs 5 --lr 0.1 --set schedule.kind=step"


@pytest.mark.parametrize(
    ("summary", "badge", "told", "advised"),
    [
        ({"test.error": 0.25}, "", "Plain reaches 25.00% error on test with seed 0.", True),
        (
            {"test.error": 0.5, "collapsed": "learned nothing: error 50.0%, guessing gives 50.0%. Try --lr 0.01."},
            "learned nothing", "learned nothing: error 50.0%, guessing gives 50.0%. Try --lr 0.01.", False,
        ),
        ({"test.error": float("nan")}, "", "is done, and recorded no number as its error on test.", True),
        ({}, "", "is done after epoch 1 of 5: it recorded no result.", False),
    ],
)  # fmt: skip
def test_the_page_of_a_single_run_says_what_came_of_it(
    summary: dict[str, Any], badge: str, told: str, advised: bool, tmp_path: Path
) -> None:
    recipe = Recipe(epochs=5)
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.5})
        run.finish(summary)
    lead = page_of([run.path]).lead
    assert lead.badge == badge
    assert told in lead.finding
    assert bool(lead.next_command) is advised


def test_a_run_of_one_epoch_is_not_told_to_separate_early(tmp_path: Path) -> None:
    recipe = Recipe(epochs=1)
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.5})
        run.finish({"test.error": 0.5})
    assert page_of([run.path]).lead.next_command == ""


def test_the_name_of_a_method_keeps_its_capitals(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5, resampling=Resampling("useful", early="e"))
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.5})
    assert page_of([run.path]).lead.finding.startswith(f"Run {run.id} (USEFUL, seed 0) ")


def test_a_run_that_has_only_begun_or_failed_renders(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.close()
    page = page_of([run.path])
    assert "has not begun" in page.lead.finding
    assert (page.state, page.over) == ("new", False)  # a live page waits for it
    run.fail("loss became NaN")
    page = page_of([run.path])
    assert page.lead.badge == "failed"
    assert "loss became NaN" in page.html()


def test_no_such_run_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run 'nope'"):
        page_of(["nope"], runs=tmp_path)
    with pytest.raises(UsageError, match="which run"):
        page_of([])


def test_a_folder_without_runs_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    for word in ("empty", "empty/", tmp_path / "empty"):
        with pytest.raises(UsageError, match=r"the folder .*empty holds no runs"):
            page_of([word])


def test_a_page_weighs_little_beside_its_pictures(comparison: Maker, measured: Callable[[Run], None]) -> None:
    made = comparison()
    measured(made["useful", 0])
    assert len(page_of([made["useful", 0].path]).html()) < 400_000, "1.5 MB is the limit, for much larger runs"
    many = comparison(
        data="many", names=[f"class {i}" for i in range(1000)], errors={"plain": (0.1,), "useful": (0.1,)}
    )
    page = page_of([many["useful", 0].path])
    pictures = sum(len(p.source) for g in galleries(page) for s in g.shelves for row in s.rows.values() for p in row)
    assert len(galleries(page)[0].shelves) == 1000
    assert len(page.html()) - pictures < 4_000_000  # 4,000 pictures with captions and alternative texts


def test_an_early_run_by_itself_is_not_called_plain(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5, until=Until("epoch", 2))
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.log(epoch=1, **{"test.error": 0.5})
    page = page_of([run.path])
    run.close()
    assert page.title.startswith("early run on digits")
    assert "(early run, seed 0) is running" in page.lead.finding


def test_a_command_in_a_record_is_quoted_anew_or_left_out(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    change(tmp_path / "runs", command="rm -rf ~", recommendation={"badge": "hurt", "next": "evenly train $(touch x)"})
    lead = page_of([tmp_path / "runs"]).lead
    assert lead.command == ""
    assert lead.next_command == "evenly train '$(touch' 'x)'"


def test_a_comparison_that_is_running_asks_for_nothing_yet(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    change(tmp_path / "runs", state="running")
    lead = page_of([tmp_path / "runs"]).lead
    assert (lead.badge, lead.advice, lead.next_command) == ("running", "", "")


def test_another_setting_is_not_called_more_seeds(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    stored = json.loads((tmp_path / "runs" / "comparisons" / f"{ID}.json").read_text())
    advice = {"badge": "too few seeds", "next": f"{stored['command']} --seeds 0-9 --lr 0.01"}
    change(tmp_path / "runs", recommendation=advice)
    assert page_of([tmp_path / "runs"]).lead.advice == "try this first:"


def test_two_seeds_are_told_to_be_too_few_and_not_how_many_settle_it(comparison: Maker, tmp_path: Path) -> None:
    comparison(errors={"plain": (0.1, 0.2), "useful": (0.1, 0.1)})
    assert page_of([tmp_path / "runs"]).lead.advice == "more seeds tell a gain from chance; five are usual."


def test_settings_are_told_in_words_and_the_environment_is_folded_away(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text())
    record["methods"][1]["settings"] = {"resampling.method": "useful", "resampling.factor": 8, "ascent.rho": 0.05}
    path.write_text(json.dumps(record))
    page = page_of([tmp_path / "runs"])
    assert tables(page, "comparison")[0].rows[1][0] == "USEFUL (factor 8, rho 0.05)"  # type: ignore[index]
    run = next(section for section in page.sections if section.id == "run")
    assert [block.title.split(" of ")[0] for block in run.blocks if isinstance(block, Listing)] == [
        "Environment",
        "Recipe",
    ]


def test_a_run_without_a_separation_still_names_its_classes(comparison: Maker, tmp_path: Path) -> None:
    made = comparison(errors={"plain": (0.1,)})
    made["plain", 0].write_json("model.json", {"classes": ["cat", "dog"]})
    made["plain", 0].close()
    page = page_of([tmp_path / "runs"])
    chart = next(
        block.chart
        for _, block in iterate_blocks(page.sections)
        if isinstance(block, Plot) and "Conf" in block.chart.title
    )
    assert chart.layers[0].x == ("cat", "dog")  # type: ignore[union-attr]


def test_news_carry_the_words_and_numbers_of_every_chart(comparison: Maker, tmp_path: Path) -> None:
    comparison(names=("cat", "<dog>"))
    news = page_of([tmp_path / "runs"]).update()
    assert list(news["captions"]) == list(news["plots"])
    assert all(each["csv"].startswith("data:text/csv") for each in news["captions"].values())
    assert all(each["label"].endswith("Arrow keys read the values.") for each in news["captions"].values())
    assert not any("<dog>" in each["text"] for each in news["captions"].values())


def test_progress_counts_the_early_runs_that_are_still_to_come(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"state": "running", "num_runs": 16}
    record["methods"][1]["runs"]["3"] = {"run": None, "state": "running"}
    path.write_text(json.dumps(record))
    assert "run 13 of 16, USEFUL, seed 3" in page_of([tmp_path / "runs"]).lead.finding


def test_early_runs_count_before_any_run_of_their_seed_has_begun(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"state": "running", "num_runs": 12}
    for method in record["methods"]:
        method |= {"error": None, "difference": None, "runs": {s: {"run": None, "state": "planned"} for s in "012"}}
    path.write_text(json.dumps(record))
    assert page_of([path]).state.startswith("3 of 12 runs done")


def test_the_page_of_a_command_follows_the_first_early_run_before_any_method_has_begun(
    comparison: Maker, tmp_path: Path
) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text())
    for method in record["methods"]:
        method |= {"error": None, "difference": None, "runs": {s: {"run": None, "state": "planned"} for s in "012"}}
    waiting = {"state": "running", "num_runs": 12, "early": {}, "recommendation": {"badge": "too few seeds"}}
    path.write_text(json.dumps(record | waiting))
    page = page_of([ID], runs=tmp_path / "runs")
    assert page.lead.badge == "running"
    assert page.lead.finding == "Training: run 1 of 12, early run, seed 0."
    assert page.state == "run 1 of 12, early run, seed 0"
    assert all(section.blocks for section in page.sections)


@pytest.mark.parametrize("num", [0, 12])
def test_a_comparison_that_was_stopped_says_so_and_how_to_continue(num: int, comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"state": "stopped", "num_runs": 16}
    if not num:
        record |= {"early": {}, "recommendation": None}
        for method in record["methods"]:
            method |= {"error": None, "difference": None, "runs": {s: {"run": None, "state": "planned"} for s in "012"}}
    path.write_text(json.dumps(record))
    page = page_of([ID], runs=tmp_path / "runs")
    assert page.lead.badge == "stopped"
    assert page.lead.finding.startswith(f"Stopped with {num} of 16 runs done.")
    assert (page.lead.advice, page.lead.next_command) == ("this continues it:", record["command"])
    assert record["command"] in page.html()
    if not num:  # its runs are loose, so that there is an index
        (row,) = tables(page_of([tmp_path / "runs"]), "index")[0].rows
        assert row[1] == Badge("stopped")  # type: ignore[index]


def test_no_advice_is_given_before_the_end(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    change(tmp_path / "runs", state="running")
    assert "lowers the error" not in page_of([tmp_path / "runs"]).lead.finding


def test_a_method_that_helped_is_followed_by_the_command_that_exports_it(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text()) | {"recommendation": {"badge": "helped", "sentence": "Use USEFUL."}}
    record["methods"][1]["difference"]["seeds_to_settle"] = None
    path.write_text(json.dumps(record))
    lead = page_of([tmp_path / "runs"]).lead
    assert lead.next_command == f"evenly export {made['useful', 0].path} --as csv"
    assert "training set" in lead.advice


def test_the_first_screen_is_about_the_recommended_method(comparison: Maker, tmp_path: Path) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text())
    plain, useful, other = record["methods"]
    record |= {"methods": [plain, other | {"name": "sam"}, useful], "recommendation": {"method": "useful"}}
    path.write_text(json.dumps(record))
    assert "error %, USEFUL" in dict(page_of([tmp_path / "runs"]).lead.facts)


def test_two_experiments_of_one_title_are_told_apart_and_a_loose_run_is_named(
    comparison: Maker, tmp_path: Path
) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    record = json.loads(path.read_text())
    (path.parent / "beefbeefbeef.json").write_text(json.dumps(record | {"id": "beefbeefbeef"}))
    alone = Recipe(data=Data("photos"), epochs=10, seed=77)
    Run.create(tmp_path / "runs", to_mapping(alone), digest(alone)).log(epoch=1, **{"test.error": 0.5})
    page = page_of([tmp_path / "runs"])
    titles = [chapter.title for chapter in page.chapters]
    assert len(set(titles)) == 3
    assert any(title.endswith("(beef)") for title in titles)
    loose = tables(page, "index")[1].rows[0]
    assert loose[3] == "plain on photos: mlp, SGD"  # type: ignore[index]


def test_what_a_control_repeats_is_not_drawn_as_easy_and_hard(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    for method in ("useful", "random"):
        with (made[method, 0].path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"epoch": 11, "train.easy.error": 0.1, "train.hard.error": 0.2}) + "\n")
    drawn = [title for title in titles(page_of([tmp_path / "runs"])) if title.endswith(", seed 0")]
    assert drawn == ["Easy and hard examples of USEFUL, seed 0"]


@pytest.mark.parametrize(("num", "switched"), [(2, True), (5, False)])
def test_a_page_of_many_experiments_stays_small_with_one_seed_of_each(
    num: int, switched: bool, comparison: Maker, tmp_path: Path
) -> None:
    comparison()
    path = tmp_path / "runs" / "comparisons" / f"{ID}.json"
    for number in range(num - 1):
        copied = json.loads(path.read_text()) | {"id": f"c{number}"}
        (path.parent / f"c{number}.json").write_text(json.dumps(copied))
    page = page_of([tmp_path / "runs"])
    examples = [part for chapter in page.chapters for part in chapter.sections if part.id.endswith("-examples")]
    assert len(examples) == num
    assert all(isinstance(part.blocks[0], Switch) == switched for part in examples)
    assert ("one seed each" in page.lead.finding) != switched
