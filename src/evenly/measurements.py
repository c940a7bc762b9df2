"""The measurements of `evenly measure`, listed without torch for the command line, the page and the documentation.

A diagnostic is one file in `evenly.diagnostics`, with a function from a `Subject` to plain numbers, and one entry here.
`measure(...)`, `--help`, the page's tables, docs/instruments.md and the contract suite find it by that entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Measurement:
    """A measurement's function, `where` (`module:function` in `evenly.diagnostics`), and how it is presented.

    `numbers` maps the keys in the page's table to their titles. `bars` does so for the keys that the page draws side by
    side, all in one `unit`, with whiskers of twice KEY_error where that is measured (`log`: marks on a logarithmic
    axis); a measurement with its own figure needs none. A `quick` measurement is made by default, provided that
    `possible`, a `module:function` of the data's `Splits`, allows it. `takes` names the shared settings that it depends
    on, `rho`, `layer` or `loss` (that of the training, an option of the measurement). `source` is the paper.
    """

    where: str
    help: str
    section: Literal["features", "geometry"]
    numbers: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    possible: str = ""
    takes: tuple[str, ...] = ()
    source: str = ""
    title: str = ""
    bars: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    log: bool = False


MEASUREMENTS: Mapping[str, Measurement] = {
    "sharpness": Measurement(
        "sharpness:measure_sharpness",
        "largest eigenvalues of the Hessian, its trace, L1 norm of the weights",
        "geometry",
        {
            "lambda_max": "largest eigenvalue λ₁",
            "lambda_ratio_5": "λ₁/λ₅",
            "trace": "trace",
            "l1": "L1 norm of the weights",
        },
        quick=True,
        takes=("loss",),
        source="Nguyen et al., table 1, fig. 5",
    ),
    "density": Measurement(
        "spectral_density:measure_density",
        "the whole spectrum of the Hessian as a curve, with its tail",
        "geometry",
        takes=("loss",),
        source="Ghorbani et al.",
    ),
    "rise": Measurement(
        "worst_rise:measure_rise",
        "worst rise of the loss within --rho",
        "geometry",
        {"worst_rise": "worst rise of the loss nearby"},
        quick=True,
        takes=("rho", "loss"),
        source="Foret et al.",
        title="Worst rise of the loss nearby",
        bars={"worst_rise": "found", "worst_rise_first_order": "first order, ρ‖∇L‖"},
        unit="rise of the loss within ρ",
    ),
    "adaptive_sharpness": Measurement(
        "worst_rise:measure_adaptive_sharpness",
        "worst rise within --rho of each weight's own size",
        "geometry",
        {"adaptive_sharpness": "adaptive sharpness"},
        takes=("rho", "loss"),
        source="Kwon et al.",
        title="Adaptive sharpness",
        bars={"adaptive_sharpness": "found", "adaptive_sharpness_first_order": "first order"},
        unit="rise within ρ of each weight's size",
    ),
    "m_sharpness": Measurement(
        "m_sharpness:measure_m_sharpness",
        "mean rise of small groups of examples at SAM's own step",
        "geometry",
        {"m_sharpness": "m-sharpness"},
        takes=("rho", "loss"),
        source="Foret et al.",
        title="m-sharpness",
        bars={"m_sharpness": "mean of the groups"},
        unit="rise of a group's loss at SAM's step",
    ),
    "sam_edge": Measurement(
        "sam_edge:measure_sam_edge",
        "SAM's edge of stability for SGD and the gradient's norm, beside λ₁",
        "geometry",
        {"sam_edge": "SAM's edge of λ₁", "lambda_max_over_edge": "λ₁ over SAM's edge"},
        takes=("rho", "loss"),
        source="Long & Bartlett",
        title="Largest eigenvalue and SAM's edge",
        bars={"sam_edge_lambda_max": "λ₁", "sam_edge": "SAM's edge", "sam_edge_descent": "edge without SAM"},
        unit="eigenvalue",
        log=True,
    ),
    "learning_coefficient": Measurement(
        "learning_coefficient:measure_learning_coefficient",
        "local learning coefficient by Langevin sampling",
        "geometry",
        {"learning_coefficient": "local learning coefficient"},
        takes=("loss",),
        source="Lau et al.",
        title="Local learning coefficient",
        bars={"learning_coefficient": "mean of the chains"},
        unit="effective parameters, halved",
    ),
    "fisher": Measurement(
        "fisher:measure_fisher",
        "trace and largest eigenvalue of the Fisher matrix, true and empirical",
        "geometry",
        {"fisher_trace": "trace of the Fisher matrix", "empirical_fisher_trace": "trace of the empirical one"},
        takes=("loss",),
        source="Kunstner et al.",
        title="Fisher information",
        bars={
            "fisher_trace": "trace",
            "empirical_fisher_trace": "trace, empirical",
            "fisher_lambda_max": "largest eigenvalue",
            "empirical_fisher_lambda_max": "largest, empirical",
        },
        unit="Fisher information",
    ),
    "importance": Measurement(
        "importance_map:measure_importance",
        "how evenly examples drive the gradient, at the weights and SAM's",
        "features",
        {"gini": "Gini of the importance", "phantom_gini": "Gini at SAM's displaced weights"},
        quick=True,
        takes=("rho", "layer", "loss"),
        source="Springer et al., section 6",
    ),
    "rank": Measurement(
        "rank:measure_rank",
        "rank of the features",
        "features",
        {"feature_rank": "rank of the features"},
        quick=True,
        takes=("layer",),
        source="Chang & Khanna",
    ),
    "probing": Measurement(
        "probing_error:measure_probing",
        "error of linear probes for the easy and the hard feature",
        "features",
        quick=True,
        possible="probing_error:can_probe",
        takes=("layer",),
        source="Springer et al., section 3",
    ),
    "layer_probes": Measurement(
        "layer_probes:measure_layer_probes",
        "the same at every layer: where a feature is lost",
        "features",
        source="Alain & Bengio",
    ),
    "reliance": Measurement(
        "reliance:measure_reliance",
        "accuracy lost when an attribute no longer tells the label",
        "features",
        quick=True,
        possible="reliance:can_measure_reliance",
    ),
    "worst_group": Measurement(
        "worst_group:measure_worst_group",
        "error of the worst group of label and attribute",
        "features",
        {"worst_group_error": "error of the worst group", "group_mean_error": "mean error of the groups"},
        source="Sagawa et al.",
    ),
}


def titles(section: Literal["features", "geometry"]) -> dict[str, str]:
    """The keys and titles of the numbers in the table of a section of the page.

    >>> list(titles("features"))[:2]
    ['gini', 'phantom_gini']
    """
    return {
        key: title
        for entry in MEASUREMENTS.values()
        if entry.section == section
        for key, title in entry.numbers.items()
    }
