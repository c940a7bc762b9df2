"""The report: a whole page against no more than reading what it is drawn from."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import evenly
from benchmarks.bench_data import cifar10_root
from benchmarks.harness import benchmark, interleaved
from evenly import atomic
from evenly.data import Splits, load
from evenly.recipe import Data, Model, Recipe, Resampling, Until, digest, to_mapping
from evenly.records import Run, comparison, runs
from evenly.report.experiments import page_of
from evenly.report.experiments.index import index_section
from evenly.report.experiments.lookup import Folder
from evenly.report.experiments.run_records import Reader, _arrays, _examples
from evenly.training.identify import identify

# Sixteen pictures a class: eight of the easiest, eight of the hardest.
CLASSES, EACH, SEEDS, EPOCHS, POINTS = 10, 8, 3, 30, 2000


def written(root: Path) -> Path:
    """A comparison as `evenly useful cifar10` leaves it: three seeds, two controls, real pictures."""
    data = load("cifar10", root=cifar10_root())
    train = data.train
    rows = np.concatenate([np.flatnonzero(train.labels.numpy() == label)[: 2 * EACH] for label in range(CLASSES)])
    labels = train.labels.numpy()[rows]
    rng = np.random.default_rng(0)
    arrays = {
        "index": rows,
        "label": labels,
        "predicted": rng.integers(CLASSES, size=len(rows)),
        "loss": rng.exponential(size=len(rows)).astype(np.float32),
        "hard": rng.random(len(rows)) < 0.4,
        "suspect": rng.random(len(rows)) < 0.05,
        "pictures": train.gather(rows.tolist()).numpy(),
    }
    view = {"x": rng.normal(size=POINTS).round(3).tolist(), "y": rng.normal(size=POINTS).round(3).tolist(),
            "label": rng.integers(CLASSES, size=POINTS).tolist(), "hard": (rng.random(POINTS) < 0.4).tolist(),
            "index": list(range(POINTS))}  # fmt: skip
    classes = [{"label": i, "name": name, "easy": 3000, "hard": 2000, "loss_easy": 0.2, "loss_hard": 1.4,
                "silhouette": 0.4, "distinct": True} for i, name in enumerate(train.classes)]  # fmt: skip
    separation = {"method": "k-means", "epoch": 3, "accuracy": 0.7, "share": 0.4, "remarks": [], "classes": classes,
                  "suspects": [], "num_suspects": 0, "view": view, "chosen_epoch": 3,
                  "early_curve": [{"epoch": e, "error": 0.9 / (e + 1)} for e in range(4)]}  # fmt: skip
    names = {"none": "plain", "useful": "useful", "random": "random"}
    cells: dict[str, dict[str, dict[str, object]]] = {name: {} for name in names.values()}
    firsts: dict[str, dict[str, object]] = {}
    for seed in range(SEEDS):
        early = Recipe(
            data=Data("cifar10", seed=seed), model=Model("convnet"), seed=1000 + seed, until=Until("epoch", 3)
        )
        first = keep(root, early, 3, data)
        firsts[str(seed)] = {"run": first.id, "epoch": 3, "rule_fired": True}
        for method in ("none", "useful", "random"):
            chosen = Resampling(method, early=first.id) if method != "none" else Resampling()  # type: ignore[arg-type]
            run = keep(
                root, Recipe(data=Data("cifar10"), model=Model("convnet"), seed=seed, resampling=chosen), EPOCHS, data
            )
            cells[names[method]][str(seed)] = {"run": run.id, "state": "done", "error": 0.1, "worst": 0.2}
            if method != "none":
                run.write_json("separation.json", separation)
                with atomic.replacing(run.file("examples.npz")) as file:
                    np.savez_compressed(file, **arrays)
                run.close()
    number = {"mean": 0.1, "low": 0.09, "high": 0.11, "n": SEEDS}
    methods = [
        {"name": name, "settings": {}, "cost": 1.0, "runs": own, "error": number, "difference": None}
        for name, own in cells.items()
    ]
    stored = {"id": "c0ffee", "state": "done", "data": "cifar10", "split": "test", "seeds": list(range(SEEDS)),
              "baseline": "plain", "early": firsts, "methods": methods, "model": "convnet"}  # fmt: skip
    comparison.write(root, stored)
    return root


def keep(root: Path, recipe: Recipe, epochs: int, data: Splits) -> Run:
    parts = ("train.loss", "train.error", "train.easy.error", "train.hard.error", "test.error", "test.worst.class")
    identity = identify(recipe, data)
    with Run.create(
        root, to_mapping(recipe), identity.id, identity=identity, environment={"evenly": evenly.__version__}
    ) as run:
        for epoch in range(1, epochs + 1):
            run.log(epoch=epoch, **dict.fromkeys(parts, 0.5 / epoch))
        run.finish({"test.error": 0.1, "gradients": 1, "examples_seen": 1, "training_examples": 1})
    return run


def only_read(root: Path) -> None:
    """All records of the comparison, and the separation and the pictures of every seed that is shown."""
    reader = Reader()
    assert comparison.comparisons(root)
    for run in runs(root):
        _ = run.state, run.recipe, run.metrics(), run.summary(), run.stamps()
    for path in sorted(root.glob("*/examples.npz"))[:SEEDS]:
        assert reader.json(Run(path.parent), "separation.json")
        assert len(_arrays(path)["pictures"]) == 2 * EACH * CLASSES


@benchmark(
    "report-cifar10",
    claim="the page of a CIFAR-10 comparison (3 seeds, 2 controls, 10 classes × 16 thumbnails), from run folders to a "
    "written file, against only reading its records and pictures",
    at_most=3,
)
def whole_page() -> Iterator[float]:
    with tempfile.TemporaryDirectory() as folder:
        root = written(Path(folder) / "runs")
        out = Path(folder) / "page.html"

        def ours() -> None:
            _examples.cache_clear()  # a live page keeps its pictures; a page that is written once has none to keep
            page_of([root]).write(out)

        yield from interleaved(ours, lambda: only_read(root))


@benchmark(
    "report-index",
    claim="the index of a folder of 1,000 runs, against only reading their summaries",
    at_most=1.5,
)
def index_of_many_runs() -> Iterator[float]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for seed in range(1000):
            recipe = Recipe(epochs=1, seed=seed)
            with Run.create(root, to_mapping(recipe), digest(recipe)) as run:
                run.finish({"test.error": 0.1})

        def summaries() -> None:
            assert len([Run(path).summary() for path in sorted(root.iterdir())]) == 1000

        yield from interleaved(lambda: index_section(Folder(root), {}), summaries)
