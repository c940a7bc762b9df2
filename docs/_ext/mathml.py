"""Mathematics as MathML, which browsers draw themselves: no script, no font and no request."""

from typing import Any

from latex2mathml.converter import convert


def inline(self: Any, node: Any) -> None:
    """A formula in a line."""
    self.body.append(convert(node.astext()))
    raise _skip()


def block(self: Any, node: Any) -> None:
    """A formula on a line of its own."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise _skip()


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
