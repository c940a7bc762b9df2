"""`evenly useful`: the whole method and its controls on any data, with paired seeds."""

from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import add_recipe, add_running, duration, fast_where_possible, resolved, running
from evenly.errors import UsageError
from evenly.rules import RULES

if TYPE_CHECKING:
    from evenly.recipe import Ascent, Optimizer, Recipe, Until
    from evenly.training.useful import Line, Row

EXAMPLES = """
  evenly useful digit-dominoes --model mlp --epochs 30 --controls original,random --seeds 0-4
  evenly useful fashion-mnist --model convnet --epochs 10 --controls original,random,upweight
  evenly useful photos/ --model resnet18 --optimizer sam --at-epoch 8 --set data.validation=0.2
  evenly useful cifar10 --model preact-resnet18 --optimizer sam --early-optimizer sgd --dry-run
"""
MANY = 10_000  # seeds in a range: beyond it a mistyped number, which would fill the memory


def fill(parser: Parser) -> None:
    """The arguments of `evenly useful`."""
    parser.calls(useful, examples=EXAMPLES)
    add_recipe(parser, seed=False)
    parser.add_argument("--seeds", default="0-2", metavar="A-B", help="seeds, as 0-4 or 0,3,7 (default: %(default)s)")
    parser.add_argument(
        "--controls",
        default="original,random",
        metavar="C,C",
        help="of original, random, upweight, quantile, misclassified, steps (default: %(default)s)",
    )
    add_moment(parser)
    parser.add_argument("--factor", type=int, default=2, metavar="K", help="how often a hard example is shown")
    parser.add_argument("--drop-suspect", action="store_true", help="leave what looks mislabelled at one copy")
    parser.add_argument("--early-model", metavar="M", help="a smaller network for the first stage")
    parser.add_argument("--early-optimizer", metavar="O", help="sgd, adamw, … or sam, … for the first stage")
    parser.add_argument("--early-lr", type=float, metavar="R", help="the learning rate of that optimizer")
    parser.add_argument("--split", help="where the error is taken (default: test, or validation)")
    parser.add_argument("--dry-run", action="store_true", help="print both recipes and the cost, train nothing")
    add_running(parser)
    add_root(parser)
    add_json(parser)


def add_moment(parser: Parser) -> None:
    """When to separate."""
    parser.add_argument("--at-epoch", type=int, metavar="N", help="separate after this epoch")
    parser.add_argument("--at-fraction", type=float, metavar="F", help="separate after this part of all epochs")


def moment(at_epoch: int | None, at_fraction: float | None) -> "Until":
    """The moment that the arguments name; by default, where the gain in training error shrinks."""
    from evenly.recipe import Until

    if at_epoch is not None and at_fraction is not None:
        raise UsageError("--at-epoch and --at-fraction: give one of them.")
    if at_epoch is not None:
        return Until("epoch", at_epoch)
    return Until("gain") if at_fraction is None else Until("fraction", at_fraction)


def useful(
    *,
    seeds: str,
    controls: str,
    at_epoch: int | None,
    at_fraction: float | None,
    factor: int,
    drop_suspect: bool,
    early_model: str | None,
    early_optimizer: str | None,
    early_lr: float | None,
    split: str | None,
    dry_run: bool,
    runs: str,
    json: bool,
    **given: Any,
) -> None:
    """Run the method beside its controls and print what it gains."""
    from dataclasses import asdict

    for change in given["changes"]:
        if change.partition("=")[0].strip() == "seed":  # which each of --seeds would replace
            raise UsageError(f"--set {change}: a comparison has several seeds. Give --seeds 0-4.")
    how = running(given)
    recipe = fast_where_possible(resolved(**given, verb="useful"), given, device=how["device"])
    from evenly.recipe import Model

    optimizer, ascent = early_choice(recipe, early_optimizer, early_lr)
    plan: dict[str, Any] = {
        "seeds": numbers(seeds),
        "controls": [word for word in controls.split(",") if word],
        "until": moment(at_epoch, at_fraction),
        "factor": factor,
        "keep_suspects": not drop_suspect,
        "early_model": Model(early_model) if early_model else None,
        "early_optimizer": optimizer,
        "early_ascent": ascent,
        "runs": runs,
        "split": split,
    }
    if dry_run:
        _foretell(recipe, plan, how, json=json)
        return
    from evenly.records import Run
    from evenly.training.agreement import mean_agreement
    from evenly.training.useful import compared
    from evenly.training.useful import train_useful as method

    rows = method(recipe, **plan, **how)
    lines = compared(rows)
    shared = mean_agreement([Run(f"{runs}/{row.run}") for row in rows if row.method == "useful"])
    if json:
        found = {"lines": [asdict(line) for line in lines], "runs": [asdict(row) for row in rows], "agreement": shared}
        print_json(found)
        return
    print_table([_shown(line) for line in lines], ["method", "error %", "difference", "worst %", "hard %", "cost"])
    chosen = ", ".join(row.run for row in rows if row.method == "useful")
    if shared is not None:
        say(
            f"\nOf the examples that either of two seeds calls hard, {shared['jaccard']:.0%} are hard to both (a mean "
            f"of {shared['pairs']} pairs; agreement beyond chance, the adjusted Rand index: "
            f"{shared['adjusted_rand']:.2f})."
        )
    say(f"\n{verdict(rows)}\nFor `evenly export`, the runs of the method: {chosen} (in {runs}).")


def early_choice(recipe: "Recipe", name: str | None, lr: float | None) -> "tuple[Optimizer | None, Ascent | None]":
    """The optimizer and the ascent of the first stage where they are not those of the second.

    A learning rate is an optimizer's own: another optimizer begins with its usual one.

    >>> from evenly.recipe import Recipe
    >>> optimizer, ascent = early_choice(Recipe(), "adamw", None)
    >>> optimizer.name, optimizer.lr, ascent.rule
    ('adamw', 0.001, 'none')
    """
    from dataclasses import replace

    from evenly.recipe import Ascent, Optimizer

    if name is None:
        if lr is not None:
            return replace(recipe.optimizer, lr=lr), None
        return None, None
    if name in RULES:
        chosen, ascent = recipe.optimizer, Ascent(name)
    else:
        chosen, ascent = recipe.optimizer, Ascent("none")
        if name.lower() != chosen.name.lower():
            from evenly.training.build import default_lr

            chosen = Optimizer(name, lr=default_lr(name), weight_decay=chosen.weight_decay)
    return chosen if lr is None else replace(chosen, lr=lr), ascent


def _foretell(recipe: "Recipe", plan: dict[str, Any], how: dict[str, Any], *, json: bool) -> None:
    """What all of it would be and cost; nothing is trained or written."""
    from evenly.training.cost import forecast
    from evenly.typed import yaml_text

    found = forecast(recipe, **plan, **{name: how[name] for name in ("device", "data_root", "workers")})
    if json:
        print_json(found)
        return
    for stage, what in (("early", "until it separates"), ("second", "from scratch, by USEFUL")):
        print(f"# The {stage} stage of seed {plan['seeds'][0]}, {what}: run {found[stage]['id']}")
        print(yaml_text.render(found[stage]["recipe"]))
    rows = [
        {**line, "examples": f"{line['examples']:,}", "time": f"about {duration(line['seconds'])}"}
        for line in found["lines"]
    ]
    print_table(rows, ["method", "runs", "examples", "time"])
    guess = {"share": f"{found['share']:.0%} of the examples are hard",
             "early_epochs": f"the gain shrinks after {found['early_epochs']} epochs"}  # fmt: skip
    told = " and ".join(guess[name] for name in found["assumed"])
    say(
        f"\n{found['examples']:,} examples, about {duration(found['seconds'])} here"
        + (f", if {told}: only the early run can tell." if told else ", by what its early runs have found.")
    )


def numbers(text: str) -> list[int]:
    """Seeds as people write them.

    >>> numbers("0-2,7")
    [0, 1, 2, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(f"--seeds {text!r}: expected numbers such as 0-4 or 0,3,7.")
        if dash and int(last) - int(first) >= MANY:
            raise UsageError(f"--seeds {text!r}: {part.strip()} is more than {MANY:,} seeds. Give fewer, such as 0-9.")
        if dash and int(last) < int(first):
            raise UsageError(f"--seeds {text!r}: {part.strip()} goes down; a range goes up, as {last}-{first}.")
        found += range(int(first), int(last if dash else first) + 1)
    if len(set(found)) < len(found) or not found:
        raise UsageError(f"--seeds {text!r}: each seed once, and at least one.")
    return found


def verdict(rows: "list[Row]") -> str:
    """What the table says, in a sentence: whether the gain is real, and whether it is more than its controls'."""
    from evenly.intervals import paired
    from evenly.report.gain import gained

    errors: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        errors.setdefault(row.method, []).append(row.error)
    if "original" not in errors:
        return "Without `--controls original` there is nothing to compare with."
    own = errors["useful"]
    gain = paired(own, errors["original"])
    against = {name: paired(own, others) for name, others in errors.items() if name in ("random", "steps")}
    told = gained("USEFUL", f"{sum(own) / len(own) * 100:.2f} % error", gain, against)
    if gain.n < 2:
        return f"{told} Give --seeds 0-4."
    return f"{told} Add --controls random,steps." if gain.high < 0 and not against else told


def _shown(line: "Line") -> dict[str, str]:
    from evenly.report.gain import between, percent

    return {
        "method": line.method,
        "error %": percent(line.error),
        "difference": between(line.difference) if line.difference is not None else "",
        "worst %": f"{line.worst * 100:.2f}",
        "hard %": f"{line.share * 100:.0f}",
        "cost": f"{line.cost:.2f}×",
    }
