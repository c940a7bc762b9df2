"""Springer, Nagarajan & Raghunathan (2024): SAM enhances feature quality via balanced learning.

A module per figure, table and appendix; beside them `toy` (the settings of the toy), `spiral_networks` (training it),
`spiral_probing_error`, `toy_importance`, `image_importance` and `image_training` (what several of them compute).
"""

from evenly.papers.claim import Paper

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
