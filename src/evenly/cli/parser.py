"""An argument parser whose help begins with examples and whose errors suggest a correction."""

import argparse
import copy
import re
import sys
import textwrap
from typing import Any, NoReturn

from evenly.errors import UsageError, did_you_mean


class Parser(argparse.ArgumentParser):
    """`argparse` with examples first, no abbreviated options, and a suggestion for every unknown word.

    >>> parser = Parser(prog="evenly", examples="  evenly data list")
    >>> print(parser.format_help().splitlines()[0:2])
    ['examples:', '  evenly data list']
    """

    def __init__(self, *args: Any, examples: str = "", **keywords: Any) -> None:
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **{"allow_abbrev": False} | keywords)
        self.examples = examples
        self._words: list[str] = []
        self._is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but with options between positionals; `measure 3f2a --examples 50 rank` is as clear.

        The words are remembered: an error should name a mistyped option rather than a missing one.
        """
        self._words = list(sys.argv[1:] if args is None else args)
        before = copy.copy(namespace)
        parsed, extras = super().parse_known_args(args, namespace)
        has_verbs = any(isinstance(action, argparse._SubParsersAction) for action in self._actions)
        if not extras or has_verbs or self._is_mixing:
            return parsed, extras
        self._is_mixing = True  # argparse reads the options first, and then the positionals, by this method
        try:
            return self.parse_known_intermixed_args(args, before)
        finally:
            self._is_mixing = False

    def calls(self, run: Any, *, examples: str) -> None:
        """Make this verb call `run` with its arguments, and show `examples` in its help."""
        self.set_defaults(run=run)
        self.examples = examples

    def format_help(self) -> str:
        """The examples, then argparse's own help."""
        body = super().format_help()
        examples = textwrap.indent(textwrap.dedent(self.examples.strip("\n")).rstrip(), "  ")
        return f"examples:\n{examples}\n\n{body}" if examples else body

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Like argparse, but with the help written out: `evenly.cli.main` knows what to do if the reader has gone."""
        print(end="", flush=True)
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        """One line that says what is wrong and what to do; exit code 2."""
        said_by = self._verb() if message.startswith("unrecognized arguments") else self
        self.exit(2, f"{said_by.prog}: {said_by._suggestion(message)}\nSee `{said_by.prog} --help`.\n")

    def _verb(self) -> "Parser":
        """The parser of the verb that the words name: unknown options are reported by the outermost one."""
        choices = {
            word: parser
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for word, parser in action.choices.items()
        }
        named = next((choices[word] for word in self._words if word in choices), None)
        return self if named is None else named._verb()

    def _suggestion(self, message: str) -> str:
        if "arguments are required" in message and (strange := self._strange()):
            message = f"unrecognized arguments: {strange}"
        if choice := re.search(r"invalid choice: '?([^' ]+)'? \(choose from (.+)\)", message):
            known = [word.strip(" '") for word in choice[2].split(",")]
            return f"there is no {choice[1]!r}. {did_you_mean(choice[1], known)}"
        if kind := re.search(r"argument (\S+): invalid (int|float) value: (.+)", message):
            return f"{kind[1]} {kind[3]}: expected {'a whole number' if kind[2] == 'int' else 'a number'}."
        if unknown := re.search(r"unrecognized arguments: (\S+)", message):
            options = [option for action in self._all_actions() for option in action.option_strings]
            word = unknown[1].split("=")[0]
            return f"{message}. {did_you_mean(word, options)}" if word.startswith("-") else message
        return message

    def _strange(self) -> str | None:
        """The first word that looks like an option and is none."""
        known = {option for action in self._actions for option in action.option_strings}
        return next(
            (word for word in self._words if re.match("--?[a-z]", word) and word.split("=")[0] not in known), None
        )

    def _all_actions(self) -> list[argparse.Action]:
        """Unknown options are reported by the outermost parser, but belong to one of the inner ones."""
        actions: list[argparse.Action] = []
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    actions += inner._all_actions()
            else:
                actions.append(action)
        return actions


def verb(verbs: Any, name: str, run: Any, *, help: str, examples: str) -> Parser:
    """Add the inner verb `name`, which calls `run` with its arguments."""
    parser: Parser = verbs.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.calls(run, examples=examples)
    return parser


def add_json(parser: Parser, *, default: Any = False) -> None:
    """`--json`: the same result for programs."""
    parser.add_argument("--json", action="store_true", default=default, help="print the result as JSON")


def add_root(parser: Parser) -> None:
    """`--data-root`: the folder of published data."""
    parser.add_argument("--data-root", metavar="DIR", help="the folder of published data (default: EVENLY_DATA)")


def add_trust(parser: Parser, what: str) -> None:
    """`--trust-code`: run a model that a file names as `module:function` (`cli.main` reads it)."""
    parser.add_argument("--trust-code", action="store_true", help=f"run code that {what} names (module:function)")


def assignments(texts: list[str]) -> dict[str, Any]:
    """The options of `--set`, each `name=value` with the value in YAML; `data.options.name`, as in recipes, works too.

    >>> assignments(["chi=450", "noise_on=hard"])
    {'chi': 450, 'noise_on': 'hard'}
    """
    from evenly.typed import yaml_text

    given = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("data.options.")
        if not (name and equals and value):
            raise UsageError(f"--set {text!r}: expected name=value. For example: --set chi=450")
        given[name] = yaml_text.parse(value, source=f"--set {name}")
    return given


def expand_data_options(changes: list[str], data: str | None) -> list[str]:
    """`--set` of a recipe with the options of its data set spelled out: `size=32` becomes `data.options.size=32`.

    >>> expand_data_options(["dim=7", "epochs=3"], "parity")
    ['data.options.dim=7', 'epochs=3']
    """
    from evenly.data.catalogue import options_of
    from evenly.recipe import Recipe, settings

    paths = [row.path for row in settings(Recipe)]
    own, leaves = {path.partition(".")[0] for path in paths}, {path.rpartition(".")[2] for path in paths}
    names = [change.partition("=")[0].strip() for change in changes]
    if data is None or all("." in name or name in own for name in names):
        return changes
    known = {*options_of(data), "held_out"}
    for name in names:
        if name and "." not in name and name not in own | leaves | known:
            near = did_you_mean(name, known | leaves)
            if near.startswith("Did you mean"):
                raise UsageError(f"--set {name}: {data} has no such option, and a recipe no such setting. {near}")
            raise UsageError(
                f"--set {name}: {data} has no option {name}; it has {', '.join(sorted(known))}. The settings of a "
                f"recipe are listed by `evenly train {data} --dry-run`."
            )
    return [
        f"data.options.{change.strip()}" if name in known - own and "=" in change else change
        for name, change in zip(names, changes, strict=True)
    ]
