"""What the help of each verb says."""

import argparse
import re
from collections.abc import Iterator

import pytest

from evenly.cli import VERBS, parser
from evenly.cli.parser import Parser
from evenly.recipe import Recipe

TRAINING = ("train", "compare", "useful", "separate", "advise")


def parsers(outer: Parser) -> Iterator[Parser]:
    """A parser and those of its verbs."""
    yield outer
    for action in outer._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


EVERY = {each.prog: each for verb in VERBS for each in parsers(parser(verb)) if each.prog.startswith(f"evenly {verb}")}


@pytest.mark.parametrize("prog", EVERY)
def test_the_examples_of_a_verb_are_its_own_and_stand_below_their_title(prog: str) -> None:
    first, *lines = EVERY[prog].format_help().split("\n\n")[0].splitlines()
    assert first == "examples:"
    assert lines
    assert all(re.match(rf"  (torchrun .* -m )?{prog}( |$)", line) for line in lines), lines


@pytest.mark.parametrize("verb", TRAINING)
def test_the_help_of_a_verb_that_trains_states_the_defaults_of_a_recipe(verb: str) -> None:
    text = " ".join(EVERY[f"evenly {verb}"].format_help().split())
    assert f"passes over the training examples (default: {Recipe().epochs})" in text
    assert f"examples in a step (default: {Recipe().batch_size}" in text


def test_advise_says_that_it_takes_a_finished_run() -> None:
    assert "DATA a data set, the path of your own, or a finished run" in " ".join(
        EVERY["evenly advise"].format_help().split()
    )
