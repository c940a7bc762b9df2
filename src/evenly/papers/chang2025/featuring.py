"""The work of table 2: train a network, and read the rank of its features and the coherence of its last layer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenly.diagnostics.features import features, last_linear
from evenly.diagnostics.measurement_data import even_part
from evenly.diagnostics.rank import feature_rank
from evenly.papers.experiment import Context, Found
from evenly.recipe import Recipe
from evenly.rng import generator
from evenly.stability.coherence_matrix import coherence
from evenly.stability.networks import network_problem
from evenly.training.train import train
from evenly.training.trained_model import load_trained
from evenly.typed import from_mapping

SHARE = 0.999


def featured(context: Context, *, recipe: Mapping[str, Any], seed: int, name: str, examples: int, pairs: int) -> Found:
    """`NAME.rank` on `examples` training examples, `NAME.coherence` on `pairs` of them, and the errors in percent."""
    run = train(replace(from_mapping(Recipe, recipe), seed=seed), runs=context.runs, data_root=context.data_root)
    there = load_trained(run, data_root=context.data_root)
    part = even_part(there.splits.train, examples, generator(seed, "rank"))
    few = even_part(there.splits.train, pairs, generator(seed, "pairs"))
    head = last_linear(there.model)
    problem = network_problem(there.model, few, loss="cross-entropy", only=[head])
    summary = run.summary()
    numbers = {
        "rank": float(feature_rank(features(there.model, part), share=SHARE)),
        "coherence": float(coherence(problem).sigma or 0.0),
        "error": 100 * float(summary["test.error"]),
        "train_error": 100 * float(run.metrics()[-1]["train.error"]),
    }
    return Found({f"{name}.{what}": {seed: number} for what, number in numbers.items()}, {"run": run.id})
