"""The atlas: which cure of simplicity bias helps where, in a declared grid of tasks whose truth is known."""

from evenly.papers.claim import Paper

PAPER = Paper(
    key="atlas",
    name="The atlas",
    title="Which cure, when: cures of simplicity bias on tasks with the truth known",
    authors="evenly",
    bibtex="""@misc{evenly,
  title  = {evenly: see and cure simplicity bias},
  author = {{The evenly authors}},
  note   = {The atlas of cures}
}""",
)
