"""Chang & Khanna (2025): a unified stability analysis of SAM and SGD."""

from evenly.papers.claim import Paper

PAPER = Paper(
    key="chang2025",
    name="Chang & Khanna (2025)",
    title="A Unified Stability Analysis of SAM vs SGD: Role of Data Coherence and Emergence of Simplicity Bias",
    authors="Wei-Kai Chang, Rajiv Khanna",
    bibtex="""@misc{chang2025stability,
  title  = {A Unified Stability Analysis of {SAM} vs {SGD}: Role of Data Coherence and Emergence of Simplicity Bias},
  author = {Chang, Wei-Kai and Khanna, Rajiv},
  year   = {2025}
}""",
)
