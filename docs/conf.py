"""How the documentation is built: Markdown pages, and a reference made from docstrings."""

import re
import sys
from pathlib import Path

import evenly

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "evenly"
author = "the evenly authors"
version = release = evenly.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "claims", "mathml"]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_title = "evenly"
html_static_path = ["_static"]
html_css_files = ["evenly.css"]
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0063a0", "color-brand-content": "#0063a0"},
    "dark_css_variables": {"color-brand-primary": "#6cb8ee", "color-brand-content": "#6cb8ee"},
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 3

napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
# Single backticks in docstrings are code, as in Markdown.
default_role = "code"

# The outside world is not asked while the documentation is built: only links within it are checked.
linkcheck_ignore = [r"https?://.*"]
nitpick_ignore_regex = [(r"py:.*", r".*")]


def escape_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value in our docstrings, not a substitution of reStructuredText."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            parts = re.split(r"(`[^`]*`)", line)
            lines[number] = "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in parts)


def keep_first_lines(app, what, name, obj, options, lines):
    """Napoleon takes what stands before a colon in an attribute's first line for its type."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-docstring", keep_first_lines, priority=100)
