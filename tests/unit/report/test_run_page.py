"""The page of a run says what its records say, and no more."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evenly.errors import DataError, UsageError
from evenly.intervals import paired
from evenly.recipe import Data, Recipe, Until, digest, to_mapping
from evenly.records import Run
from evenly.report.blocks import Gallery, Plot, Table
from evenly.report.run_page import RunPage, run_page

Made = dict[tuple[str, int], Run]
Maker = Callable[..., Made]


def tables(page: RunPage, section: str) -> list[Table]:
    return [b for s in page.sections if s.id == section for b in s.blocks if isinstance(b, Table)]


def titles(page: RunPage) -> list[str]:
    return [b.chart.title for s in page.sections for b in s.blocks if isinstance(b, Plot)]


def test_one_run_finds_its_siblings_and_tells_the_paired_difference(comparison: Maker) -> None:
    made = comparison()
    page = run_page([made["useful", 1].path])
    expected = paired([0.08, 0.10, 0.09], [0.10, 0.12, 0.11])
    assert "2.00 points lower than plain training" in page.verdict
    assert f"{expected.n} paired seeds" in page.verdict
    rows = {row[0]: row for row in tables(page, "comparison")[0].rows}
    assert list(rows) == ["original", "useful", "random"]
    # 1,400 gradients and the early run's 200, over 10 epochs of 100 examples.
    assert rows["useful"][6] == "1.60×"
    assert rows["original"][6] == "1.00×"
    assert rows["useful"][3].startswith("−2.00 ± ")
    assert page.command == (
        "evenly useful photos --epochs 10 --controls original,random --seeds 0,1,2 --at-epoch 2"
    )  # fmt: skip


def test_the_folder_of_runs_or_the_early_run_lead_to_the_same_page(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    whole, early = run_page([tmp_path / "runs"]), run_page([made["early", 0].path])
    assert whole.verdict == early.verdict == run_page([made["useful", 0].path]).verdict
    assert [s.id for s in whole.sections] == ["comparison", "examples", "separation", "curves", "run"]


def test_a_gain_no_larger_than_the_control_is_called_so(comparison: Maker) -> None:
    errors = {"original": (0.10, 0.12, 0.11), "useful": (0.08, 0.10, 0.09), "random": (0.09, 0.09, 0.09)}
    made = comparison(errors=errors)
    assert "not clearly lower than its control `random`" in run_page([made["useful", 0].path]).verdict


def test_controls_are_found_though_their_labels_say_how_they_were_set(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    for seed in range(3):  # once more with another factor, whose control is far better
        for method, error in (("useful", 0.05), ("random", 0.01)):
            recipe = made[method, seed].recipe
            again = recipe | {"resampling": recipe["resampling"] | {"factor": 5}}
            with Run.create(tmp_path / "runs", again, f"{method}5{seed}") as run:
                run.log(epoch=10, **{"test.error": error + seed / 1000})
                run.finish({"test.error": error + seed / 1000, "hard_share": 0.4})
    twice, often = made["useful", 0].path, tmp_path / "runs" / "useful50"
    page = run_page([twice, often])
    labels = {row[0] for row in tables(page, "comparison")[0].rows}  # type: ignore[index]
    assert {"random (resampling.factor=2)", "random (resampling.factor=5)"} <= labels
    assert ", and lower than as many examples of any kind" in page.verdict
    assert "its control `random` does better still: +4.00" in run_page([often, twice]).verdict


def test_an_interval_with_zero_in_it_is_called_chance_and_one_seed_says_nothing(
    comparison: Maker, tmp_path: Path
) -> None:
    made = comparison(errors={"original": (0.10, 0.12, 0.11), "useful": (0.08, 0.14, 0.11)})
    assert "includes zero" in run_page([made["useful", 0].path]).verdict
    for (_, seed), run in made.items():
        if seed:
            run.path.rename(tmp_path / run.id)
    assert "says nothing yet" in run_page([made["useful", 0].path]).verdict


def test_runs_of_another_recipe_are_not_compared(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    other = Recipe(data=Data("photos"), epochs=99)
    with Run.create(tmp_path / "runs", to_mapping(other), digest(other)) as run:
        run.log(epoch=1, **{"test.error": 0.5})
        run.finish({"test.error": 0.5})
    assert digest(other) not in str(tables(run_page([made["useful", 0].path]), "run")[0].rows)


def test_given_together_runs_of_two_recipes_are_named_by_what_differs(tmp_path: Path) -> None:
    for lr in (0.1, 0.2):
        recipe = Recipe(epochs=3, optimizer=type(Recipe().optimizer)(lr=lr))
        with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
            run.log(epoch=3, **{"test.error": lr})
            run.finish({"test.error": lr})
    rows = tables(run_page([tmp_path]), "comparison")[0].rows
    assert [row[0] for row in rows] == ["original (optimizer.lr=0.1)", "original (optimizer.lr=0.2)"]  # type: ignore[index]


def test_the_control_with_as_many_steps_is_found_by_its_epochs(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    longer = Recipe(data=Data("photos"), epochs=14, seed=0)  # 10 epochs and 40 % of hard examples
    with Run.create(tmp_path / "runs", to_mapping(longer), digest(longer)) as run:
        run.log(epoch=14, **{"test.error": 0.1})
        run.finish({"test.error": 0.1, "gradients": 1400, "examples_seen": 1400, "training_examples": 100})
    page = run_page([made["useful", 0].path])
    steps = next(row for row in tables(page, "comparison")[0].rows if row[0] == "steps")  # type: ignore[index]
    assert steps[6] == "1.40×"  # type: ignore[index]
    assert "original,random,steps" in page.command


def test_measurements_make_the_sections_of_features_and_geometry(
    comparison: Maker, measured: Callable[[Run], None]
) -> None:
    made = comparison()
    path = made["useful", 0].path
    before = run_page([path])
    assert not {"features", "geometry"} & {s.id for s in before.sections}
    measured(made["useful", 0])
    after = run_page([path])
    assert [s.id for s in after.sections] == [
        "comparison", "examples", "separation", "curves", "features", "geometry", "run"
    ]  # fmt: skip
    expected = {"Probing errors", "Reliance on attributes", "Importance of the examples (Lorenz)",
                "Spectrum of the Hessian",
                "Importance at the weights", "Where the learning rate stands", "Rank of the features"}  # fmt: skip
    assert expected <= set(titles(after))
    coherence = tables(after, "geometry")[1]
    assert coherence.columns[1] == "coherence σ"
    assert coherence.rows[0][:2] == ["SGD", 2.0]  # type: ignore[index]


def test_a_section_asked_for_without_data_names_the_command_that_makes_it(comparison: Maker) -> None:
    made = comparison()
    path = made["useful", 0].path
    with pytest.raises(DataError, match=f"evenly measure {path} sharpness"):
        run_page([path], wanted=["geometry"])
    with pytest.raises(UsageError, match="Did you mean 'geometry'"):
        run_page([path], wanted=["geomtry"])
    assert [s.id for s in run_page([path], wanted=["curves"]).sections] == ["curves"]


def test_pictures_are_the_easiest_and_hardest_with_suspects_marked(comparison: Maker) -> None:
    made = comparison(names=("cat", "<script>dog</script>"))
    page = run_page([made["useful", 0].path])
    gallery = next(b for s in page.sections if s.id == "examples" for b in s.blocks if isinstance(b, Gallery))
    shelf = gallery.shelves[1]
    assert [p.caption for p in shelf.rows["easiest"]] == ["loss 0.1", "loss 0.2"]
    assert [p.caption for p in shelf.rows["hardest"]] == ["loss 4, taken for cat", "loss 2"]
    assert [p.suspect for p in shelf.rows["hardest"]] == [True, False]
    assert all(p.source.startswith("data:image/png;base64,") for row in shelf.rows.values() for p in row)
    assert "<script>dog" not in page.html()


def test_text_stands_where_pictures_are_not(comparison: Maker) -> None:
    html = run_page([comparison(pictures=False)["useful", 0].path]).html()
    assert "<blockquote>review 0</blockquote>" in html


def test_groups_are_drawn_from_the_errors_of_each(tmp_path: Path) -> None:
    recipe = Recipe(epochs=1)
    with Run.create(tmp_path, to_mapping(recipe), digest(recipe)) as run:
        run.log(epoch=1, **{"test.error": 0.2})
        run.finish({"test.error": 0.2, "test.error.place.on land": 0.1, "test.error.place.at sea. far": 0.3})
    page = run_page([run.path])
    chart = next(b.chart for s in page.sections if s.id == "groups" for b in s.blocks if isinstance(b, Plot))
    assert (chart.layers[0].x, chart.layers[0].y) == (("on land", "at sea. far"), (10.0, 30.0))  # type: ignore[union-attr]


def test_a_run_in_progress_shows_what_is_known(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.log(epoch=1, **{"train.loss": 1.0, "test.error": 0.5})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "train.lo')  # torn
    page = run_page([run.path])
    run.close()
    assert "is running after epoch 1 of 5" in page.verdict
    assert ("test error now", "50.00 %") in page.facts
    assert [s.id for s in page.sections] == ["curves", "run"]
    assert page.news()["over"] is False
    assert page.command == "evenly train digits --epochs 5"


def test_a_run_that_has_only_begun_or_failed_renders(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.close()
    assert "has not begun" in run_page([run.path]).verdict
    run.fail("loss became NaN")
    page = run_page([run.path])
    assert "failed" in page.verdict
    assert "loss became NaN" in page.html()


@pytest.mark.parametrize("name", ["separation.json", "examples.npz", "measurements/epoch-0010.json", "stability.json"])
def test_a_damaged_record_is_named_and_the_rest_is_shown(
    name: str, comparison: Maker, measured: Callable[[Run], None]
) -> None:
    made = comparison()
    run = made["useful", 0]
    measured(run)
    run.file(name).write_bytes(b'{"half": ')
    page = run_page([run.path])
    assert any(Path(name).name in remark for remark in page.remarks)
    assert Path(name).name in page.html()
    assert "comparison" in {s.id for s in page.sections}


def test_arrays_that_would_need_unpickling_are_left_out(comparison: Maker) -> None:
    import numpy as np

    run = comparison()["useful", 0]
    np.savez(run.file("examples.npz"), label=np.array([{"a": 1}], dtype=object))
    assert any("examples.npz" in remark for remark in run_page([run.path]).remarks)


def test_a_sibling_that_cannot_be_read_is_left_out_and_the_given_run_is_an_error(comparison: Maker) -> None:
    made = comparison()
    (made["random", 0].path / "recipe.yaml").write_text(": : not yaml [")
    rows = {row[0]: row for row in tables(run_page([made["useful", 0].path]), "comparison")[0].rows}  # type: ignore[index]
    assert rows["random"][1] == "1, 2"
    with pytest.raises((DataError, UsageError), match=r"recipe\.yaml"):
        run_page([made["random", 0].path])


def test_a_damaged_summary_names_its_file(comparison: Maker) -> None:
    made = comparison()
    (made["useful", 0].path / "done").write_text("{")
    with pytest.raises(DataError, match="done is not JSON"):
        run_page([made["useful", 0].path])


def test_an_early_run_elsewhere_leaves_the_cost_unknown(comparison: Maker, tmp_path: Path) -> None:
    made = comparison()
    for seed in range(3):
        made["early", seed].path.rename(tmp_path / f"away{seed}")
    page = run_page([made["useful", 0].path])
    assert "is not in its folder" in " ".join(page.remarks)
    row = next(row for row in tables(page, "comparison")[0].rows if row[0] == "useful")  # type: ignore[index]
    assert row[6] is None  # type: ignore[index]


def test_many_classes_stay_below_ten_megabytes_and_one_without_hard_examples_renders(comparison: Maker) -> None:
    made = comparison(names=[f"class {i}" for i in range(1000)], errors={"original": (0.1,), "useful": (0.1,)})
    page = run_page([made["useful", 0].path])
    assert len(page.html()) < 10_000_000
    gallery = next(b for s in page.sections for b in s.blocks if isinstance(b, Gallery))
    assert len(gallery.shelves) == 1000


def test_one_class_without_hard_examples_renders(comparison: Maker) -> None:
    made = comparison(names=["only"], hard=0, errors={"useful": (0.1,)})
    page = run_page([made["useful", 0].path])
    assert "nothing to compare it with" in page.verdict
    assert "Of 7 examples 0 (0%) are hard" in page.html()


def test_no_such_run_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run 'nope'"):
        run_page(["nope"], runs=tmp_path)
    with pytest.raises(UsageError, match="which run"):
        run_page([])


def test_a_folder_without_runs_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    for word in ("empty", "empty/", tmp_path / "empty"):
        with pytest.raises(UsageError, match=r"the folder .*empty holds no runs"):
            run_page([word])


def test_the_separation_and_the_pictures_say_whose_they_are(comparison: Maker) -> None:
    made = comparison()
    run = made["useful", 1]
    page = run_page([run.path])
    whose = f"run {run.id} (useful, seed 1)"
    told = next(b for s in page.sections if s.id == "separation" for b in s.blocks)
    assert told.text.startswith(f"Shown is {whose}: separated by k-means")  # type: ignore[union-attr]
    pictures = next(b for s in page.sections for b in s.blocks if isinstance(b, Gallery))
    assert whose in pictures.caption
    assert "threshold of its own" in tables(page, "separation")[0].caption


@pytest.mark.parametrize(
    ("errors", "warned"),
    [((0.50, 0.49, 0.51), True), ((0.47, 0.44, 0.52), True), ((0.30, 0.10, 0.20), False), ((0.499,), True)],
)
def test_plain_training_at_chance_is_said_before_anything_else(
    errors: tuple[float, ...], warned: bool, comparison: Maker
) -> None:
    made = comparison(errors={"original": errors, "useful": tuple(error / 2 for error in errors)})
    page = run_page([made["useful", 0].path])
    assert page.verdict.startswith("Plain training is at chance") == warned
    assert any(remark.startswith("Plain training is at chance") for remark in page.remarks) == warned
    if warned:
        assert "among 2 classes gives 50.0 %" in page.verdict


def test_an_early_run_by_itself_is_not_called_plain_training(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5, until=Until("epoch", 2))
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.log(epoch=1, **{"test.error": 0.5})
    page = run_page([run.path])
    run.close()
    assert page.title.startswith("early run on digits")
    assert "(early run, seed 0) is running" in page.verdict
    assert "original" not in page.verdict + page.html().split("<main")[1].split("</main>")[0]


def test_losses_under_pictures_have_the_digits_that_tell_them_apart(comparison: Maker) -> None:
    import numpy as np

    run = comparison(errors={"useful": (0.1,)})["useful", 0]
    with np.load(run.file("examples.npz")) as file:
        arrays = dict(file)
    arrays["loss"] = np.tile([1.101, 1.102, 1.103, 1.104], 2)
    np.savez(run.file("examples.npz"), **arrays)
    pictures = next(b for s in run_page([run.path]).sections for b in s.blocks if isinstance(b, Gallery))
    captions = [picture.caption.split(",")[0] for row in pictures.shelves[0].rows.values() for picture in row]
    assert sorted(captions) == ["loss 1.101", "loss 1.102", "loss 1.103", "loss 1.104"]
