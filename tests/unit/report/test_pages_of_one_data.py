"""A page pairs runs of the same data, and finds them by their identity."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.recipe import Data, Recipe, Resampling, Until, identity_settings, to_mapping
from evenly.records import Run
from evenly.records.identity import Identity
from evenly.report.run_page.related import find
from evenly.report.run_page.verdict import outcomes

PLAIN = Recipe(data=Data("d.npz"), epochs=3)


def made(root: Path, recipe: Recipe, error: float, *, data: str, drawn: str | None = None, **more: Any) -> Run:
    facts = {"name": "d.npz", "fingerprint": data, "drawn_from": drawn, "splits": {}}
    identity = Identity(identity_settings(recipe), to_mapping(recipe, defaults=False), facts)
    with Run.create(root, to_mapping(recipe), identity.id, identity=identity) as run:
        run.log(epoch=3, **{"test.error": error})
        run.finish({"epoch": 3, "test.error": error, **more})
    return run


def pair(root: Path, data: str, seed: int = 0, drawn: str | None = None, gain: float = 0.1) -> tuple[Run, Run, Run]:
    """Plain training, the method, and the method's early run."""
    plain = replace(PLAIN, seed=seed)
    early = made(root, replace(plain, until=Until("epoch", 1), seed=seed + 100), 0.5, data=data, drawn=drawn)
    second = replace(plain, resampling=Resampling("useful", early=early.id))
    original = made(root, plain, 0.3, data=data, drawn=drawn)
    return original, made(root, second, 0.3 - gain, data=data, drawn=drawn, hard_share=0.4), early


def ids(which: list[Path]) -> set[str]:
    return {member.id for member in find(which).members}


def test_siblings_are_of_the_same_data(tmp_path: Path) -> None:
    one, other = pair(tmp_path, "1f"), pair(tmp_path, "2e")
    assert ids([one[1].path]) == {one[0].id, one[1].id}
    assert ids([other[0].path]) == {other[0].id, other[1].id}
    assert ids([one[2].path]) == {one[0].id, one[1].id}  # an early run stands for what was made from it


def test_a_page_of_a_whole_folder_pairs_within_the_same_data(tmp_path: Path) -> None:
    pair(tmp_path, "1f", gain=0.1)
    pair(tmp_path, "2e", gain=-0.1)
    found = [outcome for outcome in outcomes(find([tmp_path])) if outcome.label.startswith("useful")]
    assert sorted(round(outcome.difference.mean, 3) for outcome in found if outcome.difference) == [-0.1, 0.1]
    assert all("data=" in outcome.label for outcome in found)


def test_plain_training_on_other_data_is_no_baseline(tmp_path: Path) -> None:
    original, _, _ = pair(tmp_path / "a", "1f")
    _, useful, _ = pair(tmp_path / "b", "2e")
    (lonely,) = [o for o in outcomes(find([original.path, useful.path])) if o.label.startswith("original (data=1f")]
    assert lonely.difference is None
    alone = [m for m in find([original.path, useful.path]).members if m.method == "useful"]
    assert len({member.data for member in alone}) == 2


def test_seeds_that_draw_their_own_data_are_siblings_unless_one_seed_drew_two(tmp_path: Path) -> None:
    first, second = pair(tmp_path, "1f", drawn="toy()"), pair(tmp_path, "2e", seed=1, drawn="toy()")
    both = {run.id for runs in (first, second) for run in runs[:2]}
    assert ids([first[1].path]) == both
    later = made(tmp_path, replace(PLAIN, seed=1), 0.2, data="3d", drawn="toy()")  # by changed code
    page = find([second[1].path])
    assert {member.id for member in page.members} == both
    assert any(later.id in remark and "its seed drew other data" in remark for remark in page.remarks)
    of_one = [member for member in find([first[1].path]).members if member.seed == 1]
    assert len({member.fingerprint for member in of_one}) == 1


def test_a_setting_added_later_does_not_part_siblings(tmp_path: Path) -> None:
    one, other = pair(tmp_path, "1f")[:2]
    text = (one.path / "recipe.yaml").read_text()
    assert "channels_last: false\n" in text
    # As a version without the setting would have written it.
    (one.path / "recipe.yaml").write_text(text.replace("channels_last: false\n", ""))
    assert ids([other.path]) == {one.id, other.id}
