"""Two texts of one computation have one normal form, two computations have two: pair by pair, scope by scope."""

import ast

import pytest

from evenly.papers.identity.normal_form import NormalForm
from evenly.papers.identity.source import Bound, Module


def form(text: str) -> object:
    """The form of the one function in a text; names from outside stand for themselves."""
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return NormalForm(lambda name, call: ["outside", name]).function(node)


SAME = {
    "locals": ("def f(x):\n a = x\n b = a\n return b", "def f(x):\n c = x\n d = c\n return d"),
    "comprehension": (
        "def f(x): return [i * j for i in x for j in i if j]",
        "def f(x): return [a * b for a in x for b in a if b]",
    ),
    "shadowed in a comprehension": ("def f(x): return [x for x in x]", "def f(x): return [y for y in x]"),
    "dict comprehension": ("def f(x): return {k: v for k, v in x}", "def f(x): return {a: b for a, b in x}"),
    "closure": ("def f(x):\n def g(y): return x + y\n return g", "def f(x):\n def h(y): return x + y\n return h"),
    "nonlocal": (
        "def f():\n n = 0\n def g():\n  nonlocal n\n  n += 1\n return g",
        "def f():\n m = 0\n def h():\n  nonlocal m\n  m += 1\n return h",
    ),
    "except and with": (
        "def f(x):\n with x as y:\n  try: y()\n  except E as e: print(e)",
        "def f(x):\n with x as z:\n  try: z()\n  except E as w: print(w)",
    ),
    "walrus": ("def f(x): return (n := x) + n", "def f(x): return (m := x) + m"),
    "walrus in a comprehension": ("def f(x): return [y := i for i in x], y", "def f(x): return [z := i for i in x], z"),
    "match": (
        "def f(x):\n match x:\n  case [a, *b]: return a, b\n  case {'k': v, **r}: return v, r",
        "def f(x):\n match x:\n  case [c, *d]: return c, d\n  case {'k': w, **s}: return w, s",
    ),
    "annotations": ("def f(x: int) -> int:\n y: int = x\n return y", "def f(x):\n y = x\n return y"),
    "a bare annotation": ("def f(x):\n y: int\n y = x\n return y", "def f(x):\n y = x\n return y"),
    "docstring": ('def f(x):\n "What it does."\n return x', "def f(x): return x"),
    "order of keywords": ("def f(x): return g(a=1, b=x)", "def f(x): return g(b=x, a=1)"),
    "an import inside": (
        "def f(x):\n import math\n return math.sqrt(x)",
        "def f(x):\n import math as m\n return m.sqrt(x)",
    ),
    "quotes and brackets": ("def f(x): return ('a' + (x))", 'def f(x): return "a" + x'),
    "a class inside": ("def f():\n class A:\n  n = 1\n return A", "def f():\n class B:\n  n = 1\n return B"),
}
DIFFERENT = {
    "another variable": ("def f(x, y):\n a = x\n b = y\n return a", "def f(x, y):\n a = x\n b = y\n return b"),
    "order of statements": ("def f(x):\n g(x)\n h(x)", "def f(x):\n h(x)\n g(x)"),
    "number": ("def f(x): return x * 2", "def f(x): return x * 3"),
    "whole number or not": ("def f(x): return x // 2", "def f(x): return x // 2.0"),
    "operator": ("def f(x): return x < 1", "def f(x): return x <= 1"),
    "attribute": ("def f(x): return x.min()", "def f(x): return x.max()"),
    "keyword": ("def f(x): return g(x, dim=0)", "def f(x): return g(x, axis=0)"),
    "parameter": ("def f(x): return x", "def f(y): return y"),
    "keyword only": ("def f(x, y): return x", "def f(x, *, y): return x"),
    "default of an inner function": (
        "def f():\n def g(a=1): return a\n return g()",
        "def f():\n def g(a=2): return a\n return g()",
    ),
    "outer or inner": (
        "def f(x):\n def g(y): return x\n return g",
        "def f(x):\n def g(y): return y\n return g",
    ),
    "shadowed or not": ("def f(x): return [x for y in x]", "def f(x): return [y for y in x]"),
    "text": ("def f(x): return x['a']", "def f(x): return x['b']"),
    "format": ("def f(x): return f'{x:.2f}'", "def f(x): return f'{x:.3f}'"),
    "field of a class": ("def f():\n class A:\n  n = 1\n return A().n", "def f():\n class A:\n  m = 1\n return A().n"),
    "decorator": ("@a\ndef f(x): return x", "@b\ndef f(x): return x"),
    "global or local": ("def f():\n n = 1\n return n", "def f():\n global n\n n = 1\n return n"),
    "a class's name is not seen in its methods": (
        "def f(n):\n class A:\n  n = 1\n  def g(self): return n\n return A",
        "def f(n):\n class A:\n  n = 1\n  m = n\n return A",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_texts_of_one_computation_have_one_form(name: str):
    one, other = SAME[name]
    assert form(one) == form(other)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_computations_have_different_forms(name: str):
    one, other = DIFFERENT[name]
    assert form(one) != form(other)


def test_the_names_that_statements_bind_are_those_that_python_binds():
    text = (
        "import a.b, c as d\nfrom e import f as g\nh, (i, *j) = 1, (2, 3)\nk: int = 1\nfor l in (): pass\n"
        "with open('') as m: pass\ntry: pass\nexcept E as n: pass\ndef o(): p = 1\nclass q: r = 1\n"
        "s = [t for t in (u := ())]\nv = lambda w: w\nif x: y = 1\nelse: z = 1\ndel k\n"
    )
    bound = Bound.by(ast.parse(text).body)
    assert bound.names == set("hijklmnoqsuvyz")
    assert bound.imports == {"a": "a", "d": "c", "g": "e:f"}
    module = Module(
        "m", "if True:\n    A = 1\nelse:\n    A = 2\ntry:\n    import b\nexcept ImportError:\n    b = None\n"
    )
    assert len(module.definitions["A"]) == 2
    assert module.imports == {"b": "b"}
