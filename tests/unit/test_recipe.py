"""Recipes: what is refused and how, what survives a round trip, and what names a run."""

import copy
import hashlib
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evenly.errors import UsageError
from evenly.recipe import (
    Ascent,
    Data,
    Model,
    Optimizer,
    Recipe,
    Schedule,
    digest,
    dump,
    from_mapping,
    from_record,
    load,
    override,
    settings,
    to_mapping,
)
from evenly.typed import Settings, identity_settings, mappings, setting, yaml_text

patient = hypothesis_settings(deadline=None)  # a busy machine is not a wrong result
words = st.text(min_size=1, max_size=12)
option_names = words.filter(lambda name: "." not in name)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | words
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(option_names, inner, max_size=3), max_leaves=8
)
options = st.dictionaries(option_names, plain, max_size=3)
positive = st.floats(1e-8, 1e3)
recipes = st.builds(
    Recipe,
    data=st.builds(Data, name=words, options=options, validation=st.floats(0, 0.99)),
    augment=st.lists(words, max_size=3),
    model=st.builds(Model, name=words, options=options),
    optimizer=st.builds(Optimizer, lr=positive, weight_decay=positive),
    ascent=st.builds(Ascent, rule=st.sampled_from(["none", "sam", "friendly"]), rho=positive),
    schedule=st.builds(Schedule, kind=st.sampled_from(["constant", "cosine"]), factor=st.floats(0.01, 1)),
    epochs=st.integers(1, 1000),
    seed=st.integers(0, 2**63),
    precision=st.sampled_from(["fp32", "bf16"]),
    clip_norm=st.none() | positive,
)


@patient
@given(recipes, st.booleans())
def test_a_recipe_survives_the_trip_through_a_mapping(recipe: Recipe, defaults: bool) -> None:
    assert from_mapping(Recipe, to_mapping(recipe, defaults=defaults)) == recipe


@patient
@given(recipes, st.booleans())
@example(Recipe(model=Model("\x85\u2028 no")), True)
@example(Recipe(model=Model("1e-3"), data=Data("0o17", {"~": "2001-01-01"})), True)
def test_a_recipe_survives_the_trip_through_yaml_text(recipe: Recipe, defaults: bool) -> None:
    text = yaml_text.render(to_mapping(recipe, defaults=defaults))
    again = from_mapping(Recipe, yaml_text.parse(text, source="text"))
    assert again == recipe
    assert digest(again) == digest(recipe)


@patient
@given(recipes)
def test_a_recipe_is_hashable_picklable_and_equal_to_its_copy(recipe: Recipe) -> None:
    for twin in (pickle.loads(pickle.dumps(recipe)), copy.deepcopy(recipe), replace(recipe)):
        assert twin == recipe
        assert hash(twin) == hash(recipe)


def test_nothing_in_a_recipe_can_be_changed() -> None:
    given = {"sizes": [1, 2]}
    recipe = Recipe(data=Data("patches", given))
    given["sizes"].append(3)
    assert recipe.data.options["sizes"] == (1, 2)
    with pytest.raises(FrozenInstanceError):
        recipe.epochs = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        recipe.data.options["sizes"] = 1  # type: ignore[index]


def test_defaults_are_those_of_the_useful_paper() -> None:
    recipe = Recipe()
    assert (recipe.batch_size, recipe.epochs) == (128, 200)
    assert (recipe.optimizer.lr, recipe.optimizer.momentum, recipe.optimizer.weight_decay) == (0.1, 0.9, 5e-4)
    assert (recipe.schedule.kind, recipe.schedule.milestones, recipe.schedule.factor) == ("step", (0.5, 0.75), 0.1)
    assert (recipe.ascent.rule, recipe.ascent.rho, recipe.ascent.radius) == ("none", 0.1, 0.0)


def test_every_setting_is_documented_and_its_default_is_accepted() -> None:
    rows = list(settings(Recipe))
    assert len(rows) == len({row.path for row in rows}) > 20
    for row in rows:
        assert row.doc.endswith("."), row.path
    assert {row.path for row in rows} >= {"optimizer.lr", "data.options", "epochs"}


def test_numpy_numbers_become_pythons_own() -> None:
    recipe = Recipe(epochs=np.int64(3), data=Data(options={"beta": np.float32(0.5)}))
    assert type(recipe.epochs) is int
    assert type(recipe.data.options["beta"]) is float
    assert load_text(yaml_text.render(to_mapping(recipe))) == recipe


def load_text(text: str) -> Recipe:
    return from_mapping(Recipe, yaml_text.parse(text, source="text"))


# What is refused


REFUSED: list[tuple[dict[Any, Any], str]] = [
    ({"lr": 0.1}, "unknown setting 'lr'. Did you mean 'optimizer.lr'?"),
    ({"optimizer": {"rho": 0.1}}, "unknown setting 'optimizer.rho'. Did you mean 'ascent.rho'?"),
    ({"optimizer": {"momentun": 0.9}}, "unknown setting 'optimizer.momentun'. Did you mean 'optimizer.momentum'?"),
    ({"optim": {}}, "unknown setting 'optim'. Did you mean 'optimizer'?"),
    ({"milestone": [0.5]}, "unknown setting 'milestone'. Did you mean 'schedule.milestones'?"),
    ({"name": "x"}, "Did you mean 'data.name' or 'model.name' or 'optimizer.name'?"),
    ({"data": {"beta_d": 0.4}}, "An option of its own goes to 'data.options.beta_d'."),
    ({"zzz": 1}, "unknown setting 'zzz'. Known: data, augment, model, optimizer"),
    ({3: 1}, "unknown setting '3'."),
    ({"optimizer": {"lr": -0.1}}, "optimizer.lr: expected a number above 0, not -0.1. For example: optimizer.lr=0.1"),
    ({"optimizer": {"lr": 0}}, "optimizer.lr: expected a number above 0, not 0."),
    ({"optimizer": {"lr": math.nan}}, "optimizer.lr: expected a number above 0, not nan."),
    ({"optimizer": {"lr": math.inf}}, "optimizer.lr: expected a number above 0, not inf."),
    ({"optimizer": {"lr": "1e-3"}}, "optimizer.lr: expected a number above 0, not '1e-3'."),
    ({"optimizer": {"momentum": 1}}, "optimizer.momentum: expected a number of at least 0 and below 1, not 1."),
    ({"optimizer": {"nesterov": 1}}, "optimizer.nesterov: expected true or false, not 1."),
    ({"optimizer": {"nesterov": True, "momentum": 0}}, "optimizer.nesterov: it needs optimizer.momentum above 0"),
    (
        {"optimizer": None},
        "optimizer: expected settings (name, lr, momentum, nesterov, weight_decay, decay, options), not null.",
    ),
    ({"epochs": 0}, "epochs: expected a whole number of at least 1, not 0. For example: epochs=200"),
    ({"epochs": 1.5}, "epochs: expected a whole number of at least 1, not 1.5."),
    ({"epochs": "10"}, "epochs: expected a whole number of at least 1, not '10'."),
    ({"epochs": 10**400}, "epochs: expected a whole number of at least 1, not 1000"),
    ({"optimizer": {"lr": 10**400}}, "optimizer.lr: expected a number above 0, not 1000"),
    ({"epochs": True}, "epochs: expected a whole number of at least 1, not true."),
    ({"batch_size": 0}, "batch_size: expected a whole number of at least 1, not 0."),
    ({"seed": -1}, "seed: expected a whole number of at least 0, not -1."),
    ({"label_smoothing": 1}, "label_smoothing: expected a number of at least 0 and below 1, not 1."),
    ({"data": {"validation": 1.0}}, "data.validation: expected a number of at least 0 and below 1, not 1.0."),
    ({"data": {"name": 3}}, "data.name: expected text, not 3."),
    ({"data": {"options": [1]}}, "data.options: expected a mapping of options, not [1]."),
    ({"data": {"options": {"a": [0, {1}]}}}, "data.options.a[1]: expected a number, text,"),
    ({"data": {"options": {"a": {"b": math.nan}}}}, "data.options.a.b: expected a finite number, not nan."),
    ({"data": {"options": {"a.b": 1}}}, "data.options: the name of an option is text without dots, not 'a.b'."),
    ({"ascent": {"rho": -1}}, "ascent.rho: expected a number of at least 0 and of at most 1,000,000 or null, not -1."),
    ({"ascent": {"rule": "sma"}}, "ascent.rule: there is no rule 'sma'. Did you mean 'sam'?"),
    ({"ascent": {"rule": None}}, "ascent.rule: expected text, not null."),
    ({"precision": "fp64"}, "precision: expected one of fp32, bf16, fp16, not 'fp64'."),
    ({"augment": "crop"}, "augment: expected a list, each text, not 'crop'. For example: augment=[crop]"),
    ({"schedule": {"milestones": [0.5, 1]}}, "schedule.milestones: expected a list, each a number above 0 and below 1"),
    ({"schedule": {"milestones": [0.7, 0.5]}}, "expected a rising list, not [0.7, 0.5]."),
    ({"epochs": 5, "schedule": {"warmup_epochs": 5}}, "schedule.warmup_epochs: expected fewer than the 5 epochs"),
    ({"clip_norm": 0}, "clip_norm: expected a number above 0 or null, not 0."),
]


@pytest.mark.parametrize(("mapping", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_cannot_be_meant_is_refused_by_path_and_value(mapping: dict[Any, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_mapping(Recipe, mapping)
    assert message in str(caught.value)


def test_settings_made_in_python_are_checked_the_same_way() -> None:
    with pytest.raises(UsageError, match=r"optimizer\.lr: expected a number above 0, not -1"):
        Optimizer(lr=-1)
    with pytest.raises(UsageError, match=r"recipe\.epochs: expected a whole number"):
        replace(Recipe(), epochs=0)


# --set


def test_changes_are_applied_in_order_and_checked_together() -> None:
    recipe = override(
        Recipe(schedule=Schedule(warmup_epochs=5)),
        [
            "epochs=3",
            "schedule.warmup_epochs=1",
            "optimizer.lr=1",
            "optimizer.lr=5e-2",
            "augment=[crop, mirror]",
            "clip_norm=null",
            "data.options.noise.sigma=1e-1",
            "data.name='7'",
        ],
    )
    assert recipe == Recipe(
        schedule=Schedule(warmup_epochs=1.0),
        epochs=3,
        optimizer=Optimizer(lr=0.05),
        augment=("crop", "mirror"),
        data=Data("7", {"noise": {"sigma": 0.1}}),
    )


def test_a_change_leaves_the_old_recipe_and_its_other_options_alone() -> None:
    old = Recipe(data=Data(options={"a": 1}))
    assert override(old, ["data.options.b=2"]).data.options == {"a": 1, "b": 2}
    assert old == Recipe(data=Data(options={"a": 1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", "--set '': expected path=value."),
        ("optimizer.lr", "--set 'optimizer.lr': expected path=value. For example: --set optimizer.lr=0.05"),
        ("=1", "--set '=1': expected path=value."),
        ("optimizer.lr= ", "--set 'optimizer.lr= ': expected path=value."),
        ("lr=1", "unknown setting 'lr'. Did you mean 'optimizer.lr'?"),
        ("optimizr.lr=1", "unknown setting 'optimizr'. Did you mean 'optimizer'?"),
        ("optimizer={lr: 1}", "--set optimizer: this is a group of settings. Set one of them: optimizer.name,"),
        ("optimizer.lr.x=1", "--set optimizer.lr.x: 'optimizer.lr' is one setting, with none inside."),
        ("optimizer.lr=fast", "optimizer.lr: expected a number above 0, not 'fast'."),
        ("augment=[crop", "--set augment: "),
    ],
)
def test_a_change_that_cannot_be_meant_is_refused(change: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        override(Recipe(), [change])
    assert message in str(caught.value)


# Digest


def test_digests_are_frozen() -> None:
    # They are a part of every run's identity: a change here orphans every run that exists.
    assert digest(Recipe()) == "a75cbc9eb567"
    changed = Recipe(
        data=Data("patches", {"beta_d": 0.4, "n": 10}), ascent=Ascent("sam", 0.05), augment=("crop",), seed=1
    )
    assert digest(changed) == "170bed0892f5"


def test_the_digest_of_a_recipe_is_the_hash_of_every_setting_defaults_included() -> None:
    @dataclass(frozen=True)
    class Small(Settings):
        optimizer: Optimizer = Optimizer(lr=0.05)  # noqa: RUF009  # frozen
        epochs: int = setting(3, "Passes.")

    text = (
        '{"epochs":3,"optimizer":{"decay":"all","lr":0.05,"momentum":0.9,"name":"sgd","nesterov":false,"options":{},'
        '"weight_decay":0.0005}}'
    )
    assert digest(Small()) == hashlib.blake2b(text.encode(), digest_size=6).hexdigest()  # type: ignore[arg-type]
    assert digest(Recipe()) == mappings.digest(identity_settings(Recipe()), digits=12)


def test_a_changed_default_changes_the_digest_of_what_was_asked_for_in_the_same_words() -> None:
    @dataclass(frozen=True)
    class Slower(Recipe):
        optimizer: Optimizer = Optimizer(lr=0.03)  # noqa: RUF009  # frozen

    words = {"epochs": 3}
    assert digest(from_mapping(Slower, words)) != digest(from_mapping(Recipe, words))
    assert digest(from_mapping(Slower, words | {"optimizer": {"lr": 0.1}})) == digest(from_mapping(Recipe, words))


def test_key_order_defaults_and_number_types_do_not_change_the_digest() -> None:
    texts = [
        "optimizer: {lr: 1, momentum: 0.5}\nepochs: 3\ndata: {options: {a: 1, b: 2.0}}",
        "data: {options: {b: 2, a: 1.0}}\nepochs: 3.0\nseed: 0\noptimizer: {momentum: 5e-1, lr: 1.0}",
    ]
    first, second = map(load_text, texts)
    assert first == second
    assert digest(first) == digest(second)


def test_a_setting_added_later_leaves_old_digests_alone() -> None:
    @dataclass(frozen=True)
    class Averaging(Settings):
        decay: float = setting(0.0, "A whole group of settings that is new.", absent=0)

    @dataclass(frozen=True)
    class Later(Recipe):
        swa: bool = setting(True, "A setting of a later version, which other than before is on.", absent=False)
        ema: Averaging = Averaging()

    old = {"epochs": 3, "optimizer": {"lr": 0.5}}
    without = old | {"swa": False}
    assert digest(from_mapping(Later, without)) == digest(from_mapping(Recipe, old))
    assert digest(from_mapping(Later, old)) != digest(from_mapping(Recipe, old))
    assert digest(from_mapping(Later, without | {"ema": {"decay": 0.9}})) != digest(from_mapping(Recipe, old))


@patient
@given(recipes, recipes)
def test_different_recipes_have_different_digests(first: Recipe, second: Recipe) -> None:
    assert len(digest(first)) == 12
    assert digest(first) != digest(second) or first == second
    assert digest(first) != digest(replace(first, seed=first.seed + 1))


def test_the_digest_does_not_depend_on_the_process() -> None:
    code = "from evenly.recipe import *; print(digest(Recipe(data=Data(options={'b': 1, 'a': [2]}))))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {(digest(Recipe(data=Data(options={"a": [2], "b": 1}))) + "\n").encode()}


def test_recipes_do_not_import_torch() -> None:
    code = "import sys, evenly.recipe; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_label_smoothing_is_refused_where_the_loss_would_ignore_it_but_still_read_from_records() -> None:
    with pytest.raises(UsageError, match=r"label_smoothing=0\.2 has no meaning for loss=squared"):
        Recipe(loss="squared", label_smoothing=0.2)
    record = to_mapping(Recipe(loss="squared")) | {"label_smoothing": 0.2}
    read = from_record(record)
    assert (read.loss, read.label_smoothing) == ("squared", 0.2)
    assert to_mapping(read) == record
    with pytest.raises(UsageError, match="label_smoothing"):
        from_record(record | {"label_smoothing": "much"})


def test_a_radius_is_refused_where_no_rule_would_take_it_but_still_read_from_records(tmp_path: Path) -> None:
    for changes in (["ascent.rho=0.7"], ["ascent.rho=0.7", "ascent.rule=none"]):
        with pytest.raises(UsageError, match=r"ascent.rho=0\.7 is the radius of SAM.*Set ascent.rule=sam too"):
            override(Recipe(), changes)
    assert override(Recipe(), ["ascent.rho=0.7", "ascent.rule=sam"]).ascent.rho == 0.7
    assert override(Recipe(ascent=Ascent("asam", 2.0)), ["ascent.rule=none"]) == Recipe()
    (tmp_path / "radius.yaml").write_text("ascent: {rho: 0.7}")
    with pytest.raises(UsageError, match=r"radius.yaml: ascent.rho=0\.7 is the radius of SAM"):
        load(tmp_path / "radius.yaml")
    dump(Recipe(), tmp_path / "plain.yaml")  # with every setting spelled out
    assert load(tmp_path / "plain.yaml") == Recipe()
    mapping = to_mapping(Recipe())
    assert from_record(mapping | {"ascent": mapping["ascent"] | {"rho": 0.7}}) == Recipe()
