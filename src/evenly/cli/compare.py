"""`evenly compare`: which method helps on your data, with paired seeds, intervals, costs and one recommendation."""

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenly.cli.comparison_arguments import add_comparison, design
from evenly.cli.comparison_output import print_words, say_default_epochs, say_networks, say_where, show, show_forecast
from evenly.cli.output import print_json
from evenly.cli.parser import Parser
from evenly.cli.train import add_recipe, leads
from evenly.errors import EvenlyError, UsageError

if TYPE_CHECKING:
    from evenly.sweep import Where
    from evenly.training.comparison import Design

EXAMPLES = """
  evenly compare digit-dominoes --model mlp --epochs 30 --methods plain,sam,useful --seeds 0-4
  evenly compare photos/ --model convnet --methods plain,useful:8+noise,logit-penalty,batch
  evenly compare cifar10 --model convnet --seeds 0-9 --on local:4
  evenly compare cifar10 --model preact-resnet18 --on slurm:gpu --time 4:00:00 --gpus 1
"""
METHODS = "plain,sam,useful,sam+useful,random,steps"


def fill(parser: Parser) -> None:
    """The arguments of `evenly compare`."""
    parser.calls(compare, examples=EXAMPLES)
    add_recipe(parser, seed=False)
    parser.add_argument(
        "--methods",
        default=METHODS,
        metavar="M,M",
        help="methods, each word[:value], combined by + (default: %(default)s); `evenly compare --methods help` lists "
        "the words",
    )
    parser.add_argument("--seeds", default="0-4", metavar="A-B", help="seeds, as 0-4 or 0,3,7 (default: %(default)s)")
    add_comparison(parser)


def compare(*, methods: str, seeds: str, runs: str, dry_run: bool, json: bool, **given: Any) -> None:
    """Compare methods and recommend one."""
    if methods == "help":
        print_words()
        return
    names = tuple(word.strip() for word in methods.split(",") if word.strip())
    if len(names) == 1:
        from evenly.recipe import Recipe
        from evenly.training.design import Design

        Design(Recipe(), names).check()  # a method that cannot be meant is the error
        both = "plain,sam" if names[0] in ("plain", "original") else f"plain,{names[0]}"
        raise UsageError(f"--methods {methods}: there is nothing to compare it with. Give --methods {both}.")
    made, where, how = design(given, verb="compare", methods=names, seeds=seeds, runs=runs, dry_run=dry_run)
    if dry_run:
        show_forecast(made, how, where, runs=runs, json=json)
        return
    if leads():
        say_default_epochs(given, made)
    comparison, error = carry_out(made, where, how, runs=runs)
    if json and leads():
        print_json(comparison)
    elif leads():
        show(comparison)
        say_networks(comparison, runs=runs)
        say_where(comparison, runs=runs)
    if error is not None:
        raise error


def carry_out(
    made: "Design", where: "Where", how: Mapping[str, Any], *, runs: str, **settings: Any
) -> "tuple[dict[str, Any], EvenlyError | None]":
    """Train a comparison; return it, and the error if some runs failed."""
    from evenly.training.comparison import compare as run_comparison

    command = f"evenly {shlex.join(sys.argv[1:])}" if sys.argv[1:] else ""
    try:
        return run_comparison(made, runs=runs, where=where, command=command, **settings, **how), None
    except EvenlyError as error:
        comparison = getattr(error, "comparison", None)
        if comparison is None or not any(method["error"] for method in comparison["methods"]):
            raise
        return comparison, error
