"""Nguyen et al. (2024): USEFUL, changing the training data distribution to reduce simplicity bias."""

from evenly.papers.claim import Paper
from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.figures import EXPERIMENTS as _FIGURES
from evenly.papers.nguyen2024.spurious_dominoes import EXPERIMENTS as _SPURIOUS_DOMINOES
from evenly.papers.nguyen2024.tables import EXPERIMENTS as _TABLES
from evenly.papers.nguyen2024.theorems import EXPERIMENTS as _THEOREMS
from evenly.papers.nguyen2024.toys import EXPERIMENTS as _TOYS
from evenly.papers.nguyen2024.waterbirds import EXPERIMENTS as _WATERBIRDS

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
EXPERIMENTS: tuple[Experiment, ...] = (*_TOYS, *_THEOREMS, *_FIGURES, *_WATERBIRDS, *_SPURIOUS_DOMINOES, *_TABLES)
