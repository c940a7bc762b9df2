"""Springer, Nagarajan & Raghunathan (2024): SAM enhances feature quality via balanced learning."""

from evenly.papers.claim import Paper
from evenly.papers.experiment import Experiment
from evenly.papers.springer2024 import (
    appendix_d,
    domain_tables,
    importance_figures,
    mechanism_figures,
    picture_figures,
    picture_tables,
    probing_figures,
)

PAPER = Paper(
    key="springer2024",
    name="Springer et al. (2024)",
    title="Sharpness-Aware Minimization Enhances Feature Quality via Balanced Learning",
    authors="Jacob Mitchell Springer, Vaishnavh Nagarajan, Aditi Raghunathan",
    bibtex="""@inproceedings{springer2024balanced,
  title     = {Sharpness-Aware Minimization Enhances Feature Quality via Balanced Learning},
  author    = {Springer, Jacob Mitchell and Nagarajan, Vaishnavh and Raghunathan, Aditi},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}""",
)
EXPERIMENTS: tuple[Experiment, ...] = (
    *probing_figures.EXPERIMENTS,
    *mechanism_figures.EXPERIMENTS,
    *importance_figures.EXPERIMENTS,
    *appendix_d.EXPERIMENTS,
    *picture_tables.EXPERIMENTS,
    *domain_tables.EXPERIMENTS,
    *picture_figures.EXPERIMENTS,
)
