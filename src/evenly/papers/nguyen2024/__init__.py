"""Nguyen et al. (2024): USEFUL, changing the training data distribution to reduce simplicity bias.

A module for each figure, table and theorem, named after it. Several share `recipes` (how networks are trained on
images), `comparisons` (claims, parts and charts of those), `two_layer_dynamics` (training on the toy data),
`feature_growth` and `one_step_gradients` (the theorems).
"""

from evenly.papers.claim import Paper

PAPER = Paper(
    key="nguyen2024",
    name="Nguyen et al. (2024)",
    title="Changing the Training Data Distribution to Reduce Simplicity Bias Improves In-distribution Generalization",
    authors="Dang Nguyen, Paymon Haddad, Eric Gan, Baharan Mirzasoleiman",
    bibtex="""@inproceedings{nguyen2024useful,
  title     = {Changing the Training Data Distribution to Reduce Simplicity Bias
               Improves In-distribution Generalization},
  author    = {Nguyen, Dang and Haddad, Paymon and Gan, Eric and Mirzasoleiman, Baharan},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}""",
)
