"""What `evenly measure` can measure: one line each, without torch, for the command line, the page and the documents.

A diagnostic is one file in `evenly.diagnostics` with a function of a `Subject` that returns plain numbers, and one line
here; `--help`, `measure(...)`, the contract suite and the page's tables find it by that line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Measurement:
    """A measurement's function (`module:function` in `evenly.diagnostics`), and how people see it.

    `numbers` are the keys that a table of the page shows, with their titles; `quick` says whether it is made unless
    others are asked for (and the data allow it).
    """

    where: str
    help: str
    section: Literal["features", "geometry"]
    numbers: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False


MEASUREMENTS: Mapping[str, Measurement] = {
    "sharpness": Measurement(
        "instruments:measure_sharpness",
        "largest eigenvalues of the Hessian, its trace, L1 norm of the weights",
        "geometry",
        {
            "lambda_max": "largest eigenvalue λ₁",
            "lambda_ratio_5": "λ₁/λ₅",
            "trace": "trace",
            "l1": "L1 norm of the weights",
        },
        quick=True,
    ),
    "density": Measurement(
        "instruments:measure_density", "the whole spectrum of the Hessian as a curve, with its tail", "geometry"
    ),
    "rise": Measurement(
        "instruments:measure_rise",
        "worst rise of the loss within --rho",
        "geometry",
        {"worst_rise": "worst rise of the loss nearby"},
        quick=True,
    ),
    "adaptive_sharpness": Measurement(
        "adaptive_sharpness:measure_adaptive_sharpness",
        "worst rise within --rho of each weight's own size",
        "geometry",
        {"adaptive_sharpness": "adaptive sharpness"},
    ),
    "m_sharpness": Measurement(
        "m_sharpness:measure_m_sharpness",
        "mean rise of small groups of examples at SAM's own step",
        "geometry",
        {"m_sharpness": "m-sharpness"},
    ),
    "sam_edge": Measurement(
        "sam_edge:measure_sam_edge",
        "SAM's edge of stability for the gradient's norm, beside λ₁",
        "geometry",
        {"sam_edge": "SAM's edge of λ₁", "lambda_max_over_edge": "λ₁ over SAM's edge"},
    ),
    "learning_coefficient": Measurement(
        "learning_coefficient:measure_learning_coefficient",
        "local learning coefficient by Langevin sampling",
        "geometry",
        {"learning_coefficient": "local learning coefficient"},
    ),
    "importance": Measurement(
        "instruments:measure_importance",
        "how evenly examples drive the gradient, at the weights and SAM's",
        "features",
        {"gini": "Gini of the importance", "phantom_gini": "Gini at SAM's displaced weights"},
        quick=True,
    ),
    "rank": Measurement(
        "instruments:measure_rank",
        "rank of the features",
        "features",
        {"feature_rank": "rank of the features"},
        quick=True,
    ),
    "probing": Measurement(
        "instruments:measure_probing",
        "error of linear probes for the easy and the hard feature",
        "features",
        quick=True,
    ),
    "layer_probes": Measurement(
        "layer_probes:measure_layer_probes", "the same at every layer: where a feature is lost", "features"
    ),
    "reliance": Measurement(
        "instruments:measure_reliance",
        "accuracy lost when an attribute no longer tells the label",
        "features",
        quick=True,
    ),
    "worst_group": Measurement(
        "worst_group:measure_worst_group",
        "error of the worst group of label and attribute",
        "features",
        {"worst_group_error": "error of the worst group", "group_mean_error": "mean error of the groups"},
    ),
}


def titles(section: Literal["features", "geometry"]) -> dict[str, str]:
    """The numbers that a section of the page shows in its table, with their titles.

    >>> list(titles("features"))[:2]
    ['gini', 'phantom_gini']
    """
    return {
        key: title
        for entry in MEASUREMENTS.values()
        if entry.section == section
        for key, title in entry.numbers.items()
    }
