"""`evenly cite`: BibTeX of the papers, and of the software."""

from evenly.cli.parser import Parser

EXAMPLES = """
  evenly cite nguyen2024
  evenly cite springer2024/fig2
"""


def fill(parser: Parser) -> None:
    """The arguments of `evenly cite`."""
    parser.calls(cite, examples=EXAMPLES)
    parser.add_argument("key", metavar="KEY", nargs="?", help="a paper or an experiment (default: every paper)")


def cite(*, key: str | None) -> None:
    """Print what to cite."""
    from evenly.papers.catalogue import PAPERS, find, paper

    if key is not None and "/" in key:
        find(key)  # refuses an experiment that is not there
    chosen = PAPERS.values() if key is None else [paper(key)]
    print("\n\n".join(each.bibtex for each in chosen))
