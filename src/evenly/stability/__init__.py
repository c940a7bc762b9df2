"""Linear stability: the learning rates and batch sizes at which SGD, noisy SGD and SAM stay at a minimum."""

from typing import TYPE_CHECKING

from evenly.lazy import attach

if TYPE_CHECKING:
    from evenly.stability.almost_sure import almost_sure_threshold as almost_sure_threshold
    from evenly.stability.coherence_matrix import Coherence as Coherence
    from evenly.stability.coherence_matrix import coherence as coherence
    from evenly.stability.coherence_matrix import coherence_of_hessians as coherence_of_hessians
    from evenly.stability.criteria import all_criteria as all_criteria
    from evenly.stability.lyapunov import lyapunov_exponent as lyapunov_exponent
    from evenly.stability.lyapunov import lyapunov_spectrum as lyapunov_spectrum
    from evenly.stability.maps import overlapping_set as overlapping_set
    from evenly.stability.maps import stability_map as stability_map
    from evenly.stability.mean_square import mean_square_radius as mean_square_radius
    from evenly.stability.mean_square import mean_square_threshold as mean_square_threshold
    from evenly.stability.method import Method as Method
    from evenly.stability.networks import nearness as nearness
    from evenly.stability.networks import network_problem as network_problem
    from evenly.stability.networks import network_report as network_report
    from evenly.stability.networks import per_example_hessians as per_example_hessians
    from evenly.stability.optimizer import LinearOptimizer as LinearOptimizer
    from evenly.stability.problem import Problem as Problem
    from evenly.stability.recipe_method import method_of as method_of
    from evenly.stability.run_thresholds import run_report as run_report
    from evenly.stability.simulation import simulate as simulate
    from evenly.stability.solutions import feature_solution as feature_solution
    from evenly.stability.solutions import memorising_solution as memorising_solution
    from evenly.stability.stationary import stationary_covariance as stationary_covariance
    from evenly.stability.stationary import two_cycle as two_cycle
    from evenly.stability.tables import solutions_table as solutions_table
    from evenly.stability.tables import threshold_report as threshold_report

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Coherence": "evenly.stability.coherence_matrix",
        "LinearOptimizer": "evenly.stability.optimizer",
        "Method": "evenly.stability.method",
        "Problem": "evenly.stability.problem",
        "all_criteria": "evenly.stability.criteria",
        "almost_sure_threshold": "evenly.stability.almost_sure",
        "coherence": "evenly.stability.coherence_matrix",
        "coherence_of_hessians": "evenly.stability.coherence_matrix",
        "feature_solution": "evenly.stability.solutions",
        "lyapunov_exponent": "evenly.stability.lyapunov",
        "lyapunov_spectrum": "evenly.stability.lyapunov",
        "mean_square_radius": "evenly.stability.mean_square",
        "mean_square_threshold": "evenly.stability.mean_square",
        "memorising_solution": "evenly.stability.solutions",
        "method_of": "evenly.stability.recipe_method",
        "nearness": "evenly.stability.networks",
        "network_problem": "evenly.stability.networks",
        "network_report": "evenly.stability.networks",
        "overlapping_set": "evenly.stability.maps",
        "per_example_hessians": "evenly.stability.networks",
        "run_report": "evenly.stability.run_thresholds",
        "simulate": "evenly.stability.simulation",
        "solutions_table": "evenly.stability.tables",
        "stability_map": "evenly.stability.maps",
        "stationary_covariance": "evenly.stability.stationary",
        "threshold_report": "evenly.stability.tables",
        "two_cycle": "evenly.stability.stationary",
    },
)
