"""The three papers: every figure and table as one command, with a verdict by a fixed rule.

`nguyen2024/table5` is declared in `nguyen2024/table5.py`: its claims, its plan of work and its chart. `measurement`
runs the work, `verdict` judges it, and `ledger` keeps the row. Nothing here imports torch before an experiment runs.
"""

from evenly.papers.catalogue import CATALOGUE as CATALOGUE
from evenly.papers.catalogue import PAPERS as PAPERS
from evenly.papers.catalogue import find as find
