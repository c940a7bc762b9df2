"""`evenly useful`: USEFUL and its controls on any data, with paired seeds; a shortcut for `evenly compare`."""

from typing import Any

from evenly.cli.compare import carry_out
from evenly.cli.comparison_arguments import add_comparison, design
from evenly.cli.comparison_output import say_default_epochs, say_where, show, show_forecast
from evenly.cli.output import print_json, say
from evenly.cli.parser import Parser
from evenly.cli.train import add_recipe, leads

EXAMPLES = """
  evenly useful digit-dominoes --model mlp --epochs 30 --controls plain,random --seeds 0-4
  evenly useful fashion-mnist --model convnet --epochs 10 --controls auto --on local:2
  evenly useful photos/ --model resnet18 --optimizer sam --at-epoch 8 --set data.validation=0.2
  evenly useful cifar10 --model preact-resnet18 --optimizer sam --early-optimizer sgd --dry-run
"""


def fill(parser: Parser) -> None:
    """The arguments of `evenly useful`."""
    parser.calls(useful, examples=EXAMPLES)
    add_recipe(parser, seed=False)
    parser.add_argument("--seeds", default="0-2", metavar="A-B", help="seeds, as 0-4 or 0,3,7 (default: %(default)s)")
    parser.add_argument(
        "--controls",
        default="plain,random",
        metavar="C,C",
        help="plain, random, steps, upweight, batch, augment-all, …; auto: what could explain the gain; or none "
        "(default: %(default)s)",
    )
    add_comparison(parser)


def useful(*, seeds: str, controls: str, runs: str, dry_run: bool, json: bool, **given: Any) -> None:
    """Run USEFUL and its controls and print its gain."""
    words = [word.strip() for word in controls.split(",") if word.strip()]
    given["controls"] = words if words != ["none"] else []
    made, where, how = design(given, verb="useful", seeds=seeds, runs=runs, dry_run=dry_run)
    if dry_run:
        show_forecast(made, how, where, runs=runs, json=json)
        return
    if leads():
        say_default_epochs(given, made)
    comparison, error = carry_out(made, where, how, runs=runs, refuse=True)
    if leads():
        _show(comparison, runs=runs, json=json)
    if error is not None:
        raise error


def _show(comparison: dict[str, Any], *, runs: str, json: bool) -> None:
    from evenly.records import Run
    from evenly.training.agreement import mean_agreement

    own = next(method["runs"] for method in comparison["methods"] if method["name"] == "useful")
    chosen = [row["run"] for row in own.values() if row["state"] == "done"]
    shared = mean_agreement([Run(f"{runs}/{run}") for run in chosen])
    if json:
        print_json({**comparison, "agreement": shared})
        return
    show(comparison)
    if shared is not None:
        say(
            f"Of the examples that either of two seeds calls hard, {shared['jaccard']:.0%} are hard to both "
            f"({_pairs(shared['pairs'])}adjusted Rand index {_signed(shared['adjusted_rand'])}; 0 is chance)."
        )
    say(f"For `evenly export`, the runs of the method: {', '.join(chosen)} (in {runs}).")
    say_where(comparison, runs=runs)


def _signed(value: float) -> str:
    """Two digits with a true minus, and never −0.00.

    >>> _signed(0.756), _signed(-0.12), _signed(-0.001)
    ('0.76', '−0.12', '0.00')
    """
    return f"{value:z.2f}".replace("-", "−")


def _pairs(num: int) -> str:
    return f"mean of {num} pairs of seeds; " if num > 1 else ""
