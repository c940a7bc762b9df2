"""The three papers: every figure and table as one command, with a verdict by a fixed rule.

Nothing here imports torch before an experiment runs.
"""

from evenly.papers.catalogue import CATALOGUE as CATALOGUE
from evenly.papers.catalogue import PAPERS as PAPERS
from evenly.papers.catalogue import find as find
