"""Records that someone or something changed: what they would have shown is named and left out, the rest is shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenly.errors import DataError
from evenly.records import Run
from evenly.report.blocks import Gallery, iterate_blocks
from evenly.report.experiments import Page, page_of

Maker = Callable[..., dict[tuple[str, int], Run]]


def without(name: str) -> Callable[[dict[str, Any]], None]:
    def take(row: dict[str, Any]) -> None:
        del row[name]

    return take


def setting(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.update(values)


def at(*path: str | int, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def inner(record: Any) -> None:
        for step in path:
            record = record[step]
        change(record)

    return inner


DAMAGES = {
    "a suspect without label": ("separation.json", "separation", at("suspects", 0, change=without("label"))),
    "a share that is text": ("separation.json", "separation", setting(share="a third")),
    "classes that are text": ("separation.json", "separation", setting(classes="cat, dog")),
    "a class without counts": ("separation.json", "separation", at("classes", 0, change=without("easy"))),
    "a view of two lengths": ("separation.json", "separation", at("view", change=setting(x=[0.0]))),
    "a curve of text": ("separation.json", "separation", setting(early_curve=["a"])),
    "no criteria": ("stability.json", "geometry", at("methods", "SGD", change=without("criteria"))),
    "methods that are a list": ("stability.json", "geometry", setting(methods=[1])),
    "a learning rate of text": ("stability.json", "geometry", setting(lr="fast")),
    "a density of text": ("measurements/epoch-0010.json", "geometry", setting(density="thin")),
    "a density with text in it": (
        "measurements/epoch-0010.json", "geometry", at("density", change=setting(values=["x", 1.0, None])),
    ),
    "a map of numbers": ("measurements/epoch-0010.json", "features", setting(importance_map=3)),
}  # fmt: skip


@pytest.fixture
def damaged(comparison: Maker, measured: Callable[[Run], None]) -> Callable[..., tuple[Run, Page]]:
    def made(name: str, change: Callable[[dict[str, Any]], None]) -> tuple[Run, Page]:
        run = comparison()["useful", 0]
        measured(run)
        record = run.read_json(name)
        change(record)
        run.write_json(name, record)
        run.close()
        return run, page_of([run.path])

    return made


@pytest.mark.parametrize("which", DAMAGES)
def test_a_section_of_a_damaged_record_is_left_out_and_its_file_named(which: str, damaged: Callable[..., Any]) -> None:
    name, section, change = DAMAGES[which]
    run, page = damaged(name, change)
    everything = ["comparison", "predictions", "examples", "separation", "curves", "features", "geometry", "run"]
    assert [s.id for s in page.sections] == [other for other in everything if other != section]
    remark = next(remark for remark in page.remarks if f"Left out the section '{section}'" in remark)
    assert name.split("/")[0] in remark
    assert "Left out the section" in page.html()
    assert page.update()["sections"] == [s.id for s in page.sections]
    with pytest.raises(DataError, match="Left out the section"):
        page_of([run.path], wanted=[section])


def test_a_class_without_a_label_costs_only_its_name(damaged: Callable[..., Any]) -> None:
    _, page = damaged("separation.json", at("classes", 0, change=without("label")))
    assert {"examples", "separation"} <= {s.id for s in page.sections}
    assert "Example 4 of class dog" in page.html()
    assert "Example 0 of class 0" in page.html()


def test_an_epoch_that_is_text_leaves_out_its_file(damaged: Callable[..., Any]) -> None:
    _, page = damaged("measurements/epoch-0010.json", setting(epoch="last"))
    assert "features" not in {s.id for s in page.sections}
    assert any("epoch-0010.json: its epoch is 'last'" in remark for remark in page.remarks)


@pytest.mark.parametrize(
    "changes",
    [{"pictures": np.zeros((8, 3), np.uint8)}, {"pictures": np.zeros((8, 1, 8, 8))[:, :, :0]},
     {"loss": np.array(["x"] * 8)}, {"label": np.array(["a"] * 8)}, {"label": np.zeros(())}],
    ids=["flat pictures", "empty pictures", "losses of text", "labels of text", "a single number"],
)  # fmt: skip
def test_arrays_of_another_shape_are_left_out(changes: dict[str, Any], comparison: Maker) -> None:
    run = comparison(errors={"useful": (0.1,)})["useful", 0]
    path = run.file("examples.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | changes))
    page = page_of([run.path])
    assert "examples" not in {s.id for s in page.sections}
    assert any(f"{run.id}/examples.npz" in remark for remark in page.remarks)


@pytest.mark.parametrize("text", ["{", '"x"', "[1]", "3", '[{"libraries": "torch"}]'])
def test_an_environment_of_another_shape_does_not_cost_the_page(text: str, comparison: Maker) -> None:
    run = comparison()["useful", 0]
    (run.path / "environment.json").write_text(text)
    assert "comparison" in {s.id for s in page_of([run.path]).sections}


@pytest.mark.parametrize(("name", "value"), [("test.error", "low"), ("hard_share", [1]), ("gradients", "many")])
def test_a_summary_with_text_for_a_number_costs_that_run_and_names_both(
    name: str, value: Any, comparison: Maker
) -> None:
    import json

    run = comparison()["useful", 0]
    (run.path / "done").write_text(json.dumps(run.summary() | {name: value}))
    remarks = " ".join(page_of([run.path]).remarks)
    assert f"Left out run {run.id} (USEFUL, seed 0)" in remarks
    assert f"done: {name} is {value!r}, expected a number" in remarks


@pytest.mark.parametrize("line", ["seed: one", "epochs: many", "resampling: none", "data: digits"])
def test_a_recipe_of_another_shape_is_an_error_or_a_page_but_never_a_crash(line: str, comparison: Maker) -> None:
    run = comparison()["plain", 0]
    (run.path / "recipe.yaml").write_text(line + "\n")
    try:
        assert page_of([run.path]).html()
    except DataError as error:
        assert "recipe.yaml" in str(error)  # noqa: PT017 - either is right, a traceback is not


def test_pictures_are_made_once_and_again_when_their_file_changes(comparison: Maker) -> None:
    run = comparison(errors={"useful": (0.1,)})["useful", 0]

    def shown() -> Any:
        return next(block for _, block in iterate_blocks(page_of([run.path]).sections) if isinstance(block, Gallery))

    first = shown()
    assert shown() is first
    with np.load(run.file("examples.npz")) as file:
        arrays = dict(file)
    np.savez(run.file("examples.npz"), **(arrays | {"pictures": 255 - arrays["pictures"]}))
    assert shown() is not first
    assert shown() != first


def test_news_hold_no_pictures(comparison: Maker) -> None:
    page = page_of([comparison()["useful", 0].path])
    assert "examples" in page.update()["sections"]
    assert "data:image" not in str(page.update())
    assert "data:image" in page.html()


@pytest.mark.parametrize("name", ["metrics.jsonl", "done"])
def test_one_bad_line_of_a_sibling_costs_that_run_alone(name: str, comparison: Maker) -> None:
    made = comparison()
    bad = made["random", 0]
    with (bad.path / name).open("a") as file:
        file.write("not json\n")
    page = page_of([made["useful", 0].path])
    assert any(f"Left out run {bad.id} (random, seed 0)" in remark and name in remark for remark in page.remarks)
    curves: Any = next(b for s in page.sections if s.id == "curves" for b in s.blocks)
    assert [layer.name for layer in curves.chart.layers] == ["plain", "USEFUL", "random"]
    assert any(bad.id in remark for remark in page_of([bad.path.parent]).remarks), "nor a folder that holds it"


def test_predictions_of_another_shape_are_named_and_left_out(comparison: Maker) -> None:
    run = comparison()["useful", 0]
    np.savez(run.file("predictions.npz"), **{"test.label": np.arange(3), "test.predicted": np.arange(2)})
    page = page_of([run.path])
    assert any("predictions.npz" in remark for remark in page.remarks)
    assert "predictions" in {s.id for s in page.sections}, "the other runs have theirs"


def test_a_damaged_record_is_remarked_on_once_and_named_once(comparison: Maker) -> None:
    run = comparison()["useful", 0]
    run.file("separation.json").write_text("{bad")
    remarks = [remark for remark in page_of([run.path]).remarks if "separation.json" in remark]
    assert len(remarks) == 1
    assert remarks[0].count("separation.json") == 1


def test_a_damaged_environment_is_named_though_it_is_of_the_early_run(comparison: Maker) -> None:
    made = comparison()
    (made["early", 0].path / "environment.json").write_text("{bad")
    remarks = page_of([made["useful", 0].path]).remarks
    assert any(f"{made['early', 0].id}/environment.json" in remark for remark in remarks)


def test_damaged_pictures_are_not_followed_by_advice_to_load_them_unsafely(comparison: Maker) -> None:
    run = comparison()["useful", 0]
    for damage in (b"x" * 100, run.file("examples.npz").read_bytes()[:400]):
        run.file("examples.npz").write_bytes(damage)
        remark = next(remark for remark in page_of([run.path]).remarks if "examples.npz" in remark)
        assert "is not an .npz file, or is truncated" in remark
        assert "train again" in remark
        assert "pickle" not in remark
