"""A row is of what it computes: names, places, words and layout may change, numbers and formulas may not.

Everything here is done to a copy of the package, file by file, as a person would edit it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import evenly
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Part
from evenly.papers.identity.behaviour import Behaviour, Identity
from evenly.papers.identity.source import Sources

SOURCE = Path(evenly.__file__).parent
CLAIMS = SOURCE.parents[1] / "claims"
WORKS = sorted({part.address for each in CATALOGUE.values() for scale in each.scales for part in each.parts(scale)})
# Of all work what is near to what is edited here, and something far from it.
NEAR = [work for work in WORKS if "nguyen" in work] + ["springer2024.appendix_d:closed_forms"]
DYNAMICS = "papers/nguyen2024/two_layer_dynamics.py"
CURVES = "nguyen2024.two_layer_dynamics:alignment_curves"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy") / "evenly"
    return Path(shutil.copytree(SOURCE, root, ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def copy(pristine: Path) -> Iterator[Path]:
    """A copy of the package that may be edited: afterwards it is as it was."""
    texts = {path: path.read_text() for path in pristine.rglob("*.py")}
    yield pristine
    for path in {*texts, *pristine.rglob("*.py")}:
        if path not in texts:
            path.unlink()
        elif not path.exists() or path.read_text() != texts[path]:
            path.write_text(texts[path])


def edit(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text()
    assert old in text, f"{file} does not hold {old!r}"
    path.write_text(text.replace(old, new))


def everything(root: Path, works: list[str] = NEAR) -> dict[str, tuple[str, dict]]:
    """What each piece of work computes, with its defaults."""
    behaviour = Behaviour(root)
    return {work: (behaviour.of(work).digest, behaviour.arguments(work, {})) for work in works}


def renamed_everywhere(root: Path, old: str, new: str) -> None:
    for path in root.rglob("*.py"):
        text = path.read_text()
        if old in text:
            path.write_text(re.sub(rf"\b{old}\b", new, text))


Edit = Callable[[Path], None]
HARMLESS: dict[str, Edit] = {
    "a constant renamed": lambda root: renamed_everywhere(root, "LEARNED", "LEARNT"),
    "an inner function renamed": lambda root: renamed_everywhere(root, "_takeoff", "_first_step"),
    "a local variable renamed": lambda root: (
        edit(root, DYNAMICS, "ensemble", "cohort")
        or edit(root, DYNAMICS, "evenly.training.cohort", "evenly.training.ensemble")
    ),
    "a closure's name renamed": lambda root: edit(root, DYNAMICS, "look", "glance"),
    "a docstring": lambda root: edit(root, DYNAMICS, "The share of wrong predictions", "How many are wrong"),
    "a comment": lambda root: edit(root, DYNAMICS, "LEARNED = 0.5  # of", "LEARNED = 0.5  # a part of"),
    "an annotation": lambda root: edit(
        root, DYNAMICS, "values: dict[str, dict[int, float]]", "values: dict[str, object]"
    ),
    "a signature's annotation": lambda root: edit(root, DYNAMICS, "rho: float = 0.02,", "rho: object = 0.02,"),
    "layout": lambda root: edit(
        root, DYNAMICS, "    gap = easy - hard", "    gap = (\n            easy - hard\n        )"
    ),
    "an unrelated function": lambda root: (
        (root / DYNAMICS).write_text((root / DYNAMICS).read_text() + "\n\ndef unrelated() -> int:\n    return 3\n")
        and None
    ),
    "a function moved to another module": lambda root: moved(root),
    "a module renamed": lambda root: (
        (root / "papers/train_and_measure.py").rename(root / "papers/lessons.py")
        and renamed_everywhere(root, "papers.train_and_measure", "papers.lessons")
    ),
    "an import under another name": lambda root: (
        edit(root, DYNAMICS, "import key", "import key as derived") or edit(root, DYNAMICS, "key(seed", "derived(seed")
    ),
    "a chart": lambda root: edit(root, "papers/nguyen2024/fig2.py", "stride = -(-len", "stride = 1 + (-len"),
}
HARMFUL: dict[str, Edit] = {
    "a constant": lambda root: edit(root, DYNAMICS, "LEARNED = 0.5", "LEARNED = 0.6"),
    "an operator": lambda root: edit(root, DYNAMICS, "easy_TS >= level", "easy_TS > level"),
    "a number inside a function": lambda root: edit(root, DYNAMICS, "min(250, horizon)", "min(200, horizon)"),
    "two variables swapped": lambda root: edit(root, DYNAMICS, "gap = easy - hard", "gap = hard - easy"),
    "another method": lambda root: edit(root, DYNAMICS, ".mean(1)", ".sum(1)"),
    "another function of a library": lambda root: edit(root, DYNAMICS, "torch.where", "torch.minimum"),
    "text that is compared": lambda root: edit(root, DYNAMICS, 'RULES = ("gd", "sam")', 'RULES = ("gd", "asam")'),
    "a default inside": lambda root: edit(root, DYNAMICS, 'first: str = "init"', 'first: str = "other"'),
    "a keyword left out": lambda root: edit(
        root, DYNAMICS, ", lr=lr, rho=rho)\n    values", ", lr=lr, rho=lr)\n    values"
    ),
    "a default of the work": lambda root: edit(root, DYNAMICS, "rho: float = 0.02", "rho: float = 0.2"),
}


def moved(root: Path) -> None:
    """`quartile_band` into a module of its own."""
    path = root / DYNAMICS
    text = path.read_text()
    start = text.index("def quartile_band(")
    header = "from collections.abc import Sequence\nfrom statistics import quantiles\n\n\n"
    (root / "papers/nguyen2024/bands.py").write_text(header + text[start:])
    path.write_text(
        text[:start].replace(
            "from statistics import quantiles", "from evenly.papers.nguyen2024.bands import quartile_band"
        )
    )
    for other in (root / "papers").rglob("*.py"):
        told = other.read_text()
        if other != path and "dynamics import" in told and "quartile_band" in told:
            pytest.fail(f"{other} imports quartile_band too: move it there as well")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_change_a_number_leaves_every_row_as_it_is(name: str, copy: Path):
    before = everything(copy)
    HARMLESS[name](copy)
    assert everything(copy) == before


@pytest.mark.parametrize("name", HARMFUL)
def test_what_changes_a_number_makes_the_rows_that_run_through_it_stale_and_no_others(name: str, copy: Path):
    before = everything(copy)
    HARMFUL[name](copy)
    after = everything(copy)
    changed = {work for work in NEAR if after[work] != before[work]}
    assert CURVES in changed
    assert not [work for work in changed if not work.startswith("nguyen2024")]


def listed(root: Path) -> dict[tuple[str, str], str]:
    """The states that `evenly reproduce --list` of that copy prints."""
    words = [sys.executable, "-m", "evenly", "reproduce", "--list", "--json", "--ledger", str(CLAIMS)]
    env = os.environ | {"PYTHONPATH": str(root.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return {(line["key"], line["scale"]): line["state"] for line in json.loads(done.stdout)}


def test_a_changed_default_is_named_by_the_list_and_a_renamed_function_is_not(copy: Path):
    assert "stale" not in listed(copy).values()
    renamed_everywhere(copy, "alignment_curves", "trained_together")
    renamed_everywhere(copy, "Ensemble", "Cohort")  # outside of papers
    assert "stale" not in listed(copy).values()
    edit(copy, DYNAMICS, "rho: float = 0.02", "rho: float = 0.2")
    states = listed(copy)
    # Figure 6 runs through it too, by way of another function.
    assert {key for key, state in states.items() if state == "stale"} == {
        ("nguyen2024/fig2", "full"),
        ("nguyen2024/fig6", "full"),
    }


def test_a_changed_default_of_a_recipe_is_named_by_the_list(copy: Path):
    edit(copy, "recipe.py", 'momentum: float = setting(0.9, "Momentum."', 'momentum: float = setting(0.8, "Momentum."')
    states = listed(copy)
    assert states["nguyen2024/table1", "small"] == "stale"
    assert states["nguyen2024/fig2", "full"] == "done"


PACKAGE = {
    "__init__.py": "",
    "outside.py": "RATE = 0.1\ndef soften(x, *, by=RATE, deep=3, extra=None): return x\n"
    "class Tool:\n    def __init__(self, size=2): pass\n    def use(self, x, times=4): return x\n",
    "papers/__init__.py": "",
    "papers/experiment.py": "class PartResult: pass\n",
    "papers/work.py": "from evenly.outside import Tool, soften\nfrom evenly.papers.experiment import PartResult\n"
    "def work(context, *, a, b=2):\n    tool = Tool()\n    return PartResult(soften(tool.use(a)), even(b))\n"
    "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)\n"
    "class Shape:\n    side: int = 2\n    def area(self): return self.side * Shape().side\n"
    "def shaped(context, *, many=3): return [Shape().area() for _ in range(many)]\n"
    "def told(context): return run('work:shaped')\ndef run(name): return name\n"
    "def lazily(context):\n    from evenly.papers import work as here\n"
    "    return here.even(3), (lambda y, z=1: y + z)(2)\n",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    root = tmp_path / "evenly"
    for name, text in PACKAGE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("outside.py", "RATE = 0.1", "RATE = 0.2", "work"),  # a default by way of a constant
        ("outside.py", "deep=3", "deep=4", "work"),
        ("outside.py", "times=4", "times=5", "work"),  # of a method
        ("outside.py", "size=2", "size=3", "work"),  # of a constructor
        ("outside.py", "extra=None", "extra=None, more=False", ""),
        ("outside.py", "return x\n", "return 2 * x\n", ""),  # the limit: formulas outside of papers
        ("papers/work.py", "n != 0", "n > 0", "work lazily"),  # in a circle
        ("papers/work.py", "side: int = 2", "side: int = 3", "shaped told"),
        ("papers/work.py", "many=3", "many=4", "shaped told"),
        ("papers/work.py", "z=1", "z=2", "lazily"),
        ("papers/work.py", "lambda y, z=1: y + z", "lambda a, z=1: a - z", "lazily"),
        ("papers/work.py", "here.even(3)", "here.odd(3)", "lazily"),
        ("papers/experiment.py", "class PartResult: pass", "class PartResult:\n    more = 1", ""),
    ],
)
def test_what_a_piece_of_work_reaches_decides_and_nothing_else(small: Path, file: str, old: str, new: str, stale: str):
    works = [f"work:{name}" for name in ("work", "shaped", "told", "lazily")]
    before = everything(small, works)
    edit(small, file, old, new)
    after = everything(small, works)
    assert {work for work in works if before[work] != after[work]} == {f"work:{name}" for name in stale.split()}


def test_a_function_outside_that_was_renamed_is_the_same_and_one_that_was_replaced_is_not(small: Path):
    before = Behaviour(small).of("work:work")
    assert before.outside == {"evenly.outside.soften", "evenly.outside.Tool"}
    renamed_everywhere(small, "soften", "smooth")
    now = Behaviour(small)
    assert now.same(before, now.of("work:work"))
    edit(small, "outside.py", "def smooth", "def soften(x, *, by=RATE, deep=3): return 0\ndef smooth")
    now = Behaviour(small)
    assert not now.same(before, now.of("work:work")), "the old one is still there, and another stands in its place"
    assert not now.same(Identity("0" * 12, before.outside), now.of("work:work"))


def test_arguments_that_spell_a_default_out_are_the_same_work():
    short = Part("short", CURVES, {"seeds": [0], "name": "x", "beta_hard": 0.2})
    spelled = Part("spelled", CURVES, {**short.arguments, "rho": 0.02, "bias": True})
    other = Part("other", CURVES, {**short.arguments, "rho": 0.03})
    assert short.digest == spelled.digest != other.digest


def test_a_part_with_other_seeds_is_kept_apart_and_is_the_same_work():
    one, two = (Part("x", CURVES, {"seeds": seeds, "name": "x", "beta_hard": 0.2}) for seeds in ([0], [1, 2]))
    assert one.digest != two.digest
    assert one.identity == two.identity


def test_a_row_with_more_seeds_has_the_same_identity():
    for key, experiment in CATALOGUE.items():
        assert experiment.identity("smoke") == experiment.identity("smoke", [101, 102, 103]), key


def test_nothing_reached_in_papers_is_missing():
    behaviour = Behaviour(SOURCE)
    for work in WORKS:
        assert all(map(behaviour.exists, behaviour.of(work).outside))
    assert Sources(SOURCE).find("evenly.diagnostics:features").name == "features"


OTHERS = [found for name in ("python3.11", "python3.12", "python3.13") if (found := shutil.which(name))]
BARE = """
import json, pathlib, sys, types
root = pathlib.Path(sys.argv[1])
for name, path in (("evenly", root), ("evenly.papers", root / "papers")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(path)]
from evenly.papers.identity.behaviour import Behaviour
print(json.dumps([Behaviour(root).of(work).digest for work in sys.argv[2:]]))
"""


@pytest.mark.parametrize("python", OTHERS)
def test_every_version_of_python_gives_the_same_digests(python: str):
    done = subprocess.run([python, "-c", BARE, str(SOURCE), *WORKS[:8]], capture_output=True, text=True)
    if done.returncode and "No module" not in done.stderr and "Traceback" not in done.stderr:
        pytest.skip(f"{python} does not start here")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [Behaviour(SOURCE).of(work).digest for work in WORKS[:8]]
