"""Run folders as `evenly useful` leaves them, written by hand so that every number in them is known."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import atomic
from evenly.intervals import Interval, interval, paired_difference
from evenly.recipe import Data, Recipe, Resampling, Until, digest, to_mapping
from evenly.records import Run

ERRORS = {"plain": (0.10, 0.12, 0.11), "useful": (0.08, 0.10, 0.09), "random": (0.10, 0.11, 0.11)}
GRADIENTS = {"plain": 1000, "useful": 1400, "random": 1400}
EARLY_GRADIENTS, EXAMPLES, EPOCHS = 200, 100, 10
ID = "c0ffee00"


def write_comparison(
    root: Path,
    *,
    names: Sequence[str] = ("cat", "dog"),
    errors: Mapping[str, Sequence[float]] = ERRORS,
    hard: int = 3,
    pictures: bool = True,
    data: str = "photos",
) -> dict[tuple[str, int], Run]:
    """Runs of every method and seed, their early runs and the stored comparison, whose ID is `ID`.

    The separation has `hard` hard examples in each class.
    """
    made: dict[tuple[str, int], Run] = {}
    for seed in range(len(next(iter(errors.values())))):
        plain = Recipe(data=Data(data), epochs=EPOCHS, seed=seed)
        early = Recipe(data=Data(data, seed=seed), epochs=EPOCHS, seed=1000 + seed, until=Until("epoch", 2))
        made["early", seed] = finished(root, early, {"gradients": EARLY_GRADIENTS}, epochs=2)
        for method, values in errors.items():
            chosen = Resampling(method=method, early=digest(early)) if method != "plain" else Resampling()
            recipe = Recipe(data=Data(data), epochs=EPOCHS, seed=seed, resampling=chosen)
            summary = {
                "test.error": values[seed],
                "test.worst.class": values[seed] * 2,
                "gradients": GRADIENTS[method],
                "examples_seen": GRADIENTS[method],
                "training_examples": EXAMPLES,
                "hard_share": 0.4 if method != "plain" else 0.0,
            }
            run = finished(root, recipe if method != "plain" else plain, summary)
            leave_predictions(run, wrong=round(10 * values[seed]))
            if method == "useful":
                leave_evidence(run, names, hard=hard, pictures=pictures)
            made[method, seed] = run
    store(root, made, errors, data=data)
    return made


def store(root: Path, made: Mapping[tuple[str, int], Run], errors: Mapping[str, Sequence[float]], *, data: str) -> Path:
    """The comparison of the runs as `evenly useful` stores it."""

    def stored(found: Interval) -> dict[str, Any]:
        return {"mean": found.mean, "n": found.n} | {
            end: None if math.isnan(getattr(found, end)) else getattr(found, end) for end in ("low", "high")
        }

    methods = []
    for method, values in errors.items():
        cells = {
            str(seed): {"run": made[method, seed].id, "state": "done", "error": value, "worst": 2 * value,
                        "worst_group": None, "hard_share": 0.4 if method != "plain" else None, "gradients": 1,
                        "collapsed": None}
            for seed, value in enumerate(values)
        }  # fmt: skip
        difference = None
        if method != "plain" and "plain" in errors:
            found = paired_difference(values, errors["plain"])
            verdict = ("helped" if found.mean < 0 else "hurt") if found.excludes_zero else "no difference"
            difference = {"to": "plain", **stored(found), "verdict": verdict, "seeds_to_settle": 7}
        methods.append(
            {"name": method, "settings": {}, "cost": 1.6 if method != "plain" else 1.0, "runs": cells,
             "error": stored(interval(values)), "difference": difference}
        )  # fmt: skip
    seeds = list(range(len(next(iter(errors.values())))))
    record = {
        "format": 1, "id": ID, "created": 1.8e9, "updated": 1.8e9,
        "command": f"evenly useful {data} --epochs 10 --seeds 0-2", "state": "done", "data": data,
        "data_fingerprint": "d", "model": "mlp", "optimizer": "sgd", "split": "test", "epochs": EPOCHS,
        "seeds": seeds, "baseline": "plain", "methods": methods,
        "early": {str(seed): {"run": made["early", seed].id, "epoch": 2, "rule_fired": True} for seed in seeds},
        "recommendation": {"badge": "helped", "sentence": "USEFUL lowers the error on test by 2.00 points.",
                           "next": f"evenly compare {data} --seeds 0-9"},
    }  # fmt: skip
    path = root / "comparisons" / f"{ID}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, allow_nan=False))
    return path


def leave_predictions(run: Run, *, wrong: int) -> None:
    """What the trained network says of ten test examples, the first `wrong` of which it gets wrong."""
    labels = np.arange(10) % 2
    arrays = {
        "test.index": np.arange(10), "test.label": labels, "test.probability": np.full(10, 0.75, np.float16),
        "test.predicted": np.where(np.arange(10) < wrong, 1 - labels, labels),
    }  # fmt: skip
    with atomic.replacing(run.file("predictions.npz")) as file:
        np.savez(file, **arrays)


def finished(root: Path, recipe: Recipe, summary: Mapping[str, Any], *, epochs: int = EPOCHS) -> Run:
    """A run that is done; its error falls to the last."""
    stamp = {"evenly": "0.1.0", "python": "CPython 3.11", "libraries": {"torch": "2.13.0"}, "data": f"d{recipe.seed}"}
    with Run.create(root, to_mapping(recipe), digest(recipe), environment=stamp) as run:
        for epoch in range(1, epochs + 1):
            last = summary.get("test.error", 0.1)
            run.log(
                **{
                    "epoch": epoch,
                    "train.loss": 2.0 / epoch,
                    "train.error": 0.5 / epoch,
                    "test.error": last + 0.3 * (1 - epoch / epochs),
                    "train.easy.error": 0.2 / epoch,
                    "train.hard.error": 0.8 / epoch,
                }
            )
        run.finish({**summary, "epoch": epochs})
    return run


def leave_evidence(run: Run, names: Sequence[str], *, hard: int, pictures: bool) -> None:
    """What a separation leaves: two easy and two hard pictures of each class, the last of them a suspect."""
    classes = [
        {"label": label, "name": name, "easy": 7, "hard": hard, "loss_easy": 0.1, "loss_hard": 1.5 if hard else None,
         "silhouette": 0.5 if hard else None, "distinct": bool(hard)}
        for label, name in enumerate(names)
    ]  # fmt: skip
    num = len(names)
    view = {"x": [0.0, 1.0], "y": [0.0, 1.0], "label": [0, num - 1], "hard": [False, bool(hard)], "index": [0, 1]}
    run.write_json(
        "separation.json",
        {
            "method": "k-means", "early": "e", "epoch": 2, "accuracy": 0.75, "share": hard / (7 + hard),
            "remarks": [], "classes": classes, "num_suspects": 1,
            "suspects": [{"index": 3, "label": 0, "predicted": num - 1, "loss": 4.0}],
            "view": view, "chosen_epoch": 2,
            "early_curve": [{"epoch": 0, "error": 0.5}, {"epoch": 1, "error": 0.3}, {"epoch": 2, "error": 0.25}],
        },
    )  # fmt: skip
    labels = np.repeat(np.arange(num), 4)
    arrays = {
        "index": np.arange(4 * num), "label": labels, "predicted": np.where(np.arange(4 * num) % 4 == 3, 0, labels),
        "loss": np.tile([0.1, 0.2, 2.0, 4.0], num).astype(np.float32), "hard": np.tile([0, 0, hard > 0, hard > 0], num),
        "suspect": np.tile([False, False, False, hard > 0], num),
    }  # fmt: skip
    if pictures:
        arrays["pictures"] = np.arange(4 * num * 64, dtype=np.int64).astype(np.uint8).reshape(4 * num, 1, 8, 8)
    else:
        arrays["text"] = np.array([f"review {i}" for i in range(4 * num)])
    with atomic.replacing(run.file("examples.npz")) as file:
        np.savez(file, **arrays)
    run.close()


MEASURED = {
    "epoch": EPOCHS, "lambda_max": 12.0, "lambda_ratio_5": 3.0, "eigenvalues": [12.0, 9.0, 6.0, 5.0, 4.0],
    "trace": 40.0, "l1": 900.0, "gini": 0.7, "phantom_gini": 0.6, "feature_rank": 8, "feature_rank_share": 0.99,
    "easy": 0.01, "hard": 0.2, "easy_interval": [0.0, 0.02], "hard_interval": [0.1, 0.3], "reliance_easy": 0.4,
    "density": {"grid": [0.0, 5.0, 10.0], "values": [1.0, 0.2, 0.01]},
    "lorenz": {"share": [0.0, 0.5, 1.0], "real": [0.0, 0.1, 1.0], "phantom": [0.0, 0.2, 1.0]},
    "importance_map": {"x_edges": [0, 1, 2], "y_edges": [0, 1, 2], "real": [[0.5, None], [0.1, 0.2]],
                       "phantom": [[0.4, None], [0.2, 0.2]], "counts": [[3, 0], [2, 2]]},
}  # fmt: skip
STABILITY = {
    "lr": 0.1,
    "notes": ["Judged at the initial learning rate."],
    "methods": {
        "SGD": {
            "sigma": 2.0,
            "stands": "stable: lr is 0.2 of the exact threshold",
            "criteria": [{"name": "exact, mean square", "eta": 0.5, "says": "both"}],
        }
    },
}


@pytest.fixture
def comparison(tmp_path: Path) -> Callable[..., dict[tuple[str, int], Run]]:
    """`comparison(...)` writes the runs of one comparison into `tmp_path / "runs"`."""
    return lambda **how: write_comparison(tmp_path / "runs", **how)


@pytest.fixture
def measured() -> Callable[[Run], None]:
    """`measured(run)` leaves measurements and a stability report beside a run."""

    def leave(run: Run) -> None:
        run.write_json(f"measurements/epoch-{EPOCHS:04d}.json", MEASURED)
        run.write_json("stability.json", STABILITY)
        run.close()

    return leave
