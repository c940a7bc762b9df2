"""`evenly compare`: which method helps on your data, with paired seeds, intervals, costs and one recommendation."""

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import (
    add_recipe,
    add_running,
    duration,
    fast_where_possible,
    leads,
    resolve_recipe,
    running,
    with_tested_rate,
)
from evenly.errors import EvenlyError, UsageError
from evenly.rules import RULES

if TYPE_CHECKING:
    from evenly.recipe import Ascent, Optimizer, Recipe
    from evenly.sweep import Where
    from evenly.training.comparison import Design

EXAMPLES = """
  evenly compare digit-dominoes --model mlp --epochs 30 --methods plain,sam,useful --seeds 0-4
  evenly compare photos/ --model convnet --methods plain,useful:8+noise,logit-penalty,batch
  evenly compare cifar10 --model convnet --seeds 0-9 --on local:4
  evenly compare cifar10 --model preact-resnet18 --on slurm:gpu --time 4:00:00 --gpus 1
"""
METHODS = "plain,sam,useful,sam+useful,random,steps"
MANY = 10_000  # seeds in a range: beyond it a mistyped number, which would fill the memory


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


def add_comparison(parser: Parser) -> None:
    """What `compare` and `useful` share."""
    add_moment(parser)
    parser.add_argument("--factor", type=int, default=2, metavar="K", help="how often a hard example is shown")
    parser.add_argument("--drop-suspect", action="store_true", help="leave what looks mislabelled at one copy")
    parser.add_argument("--early-model", metavar="M", help="a smaller network for the early run")
    parser.add_argument("--early-optimizer", metavar="O", help="sgd, adamw, … or sam, … for the early run")
    parser.add_argument("--early-lr", type=float, metavar="R", help="the learning rate of that optimizer")
    parser.add_argument("--split", help="where the error is taken (default: test, or validation)")
    parser.add_argument("--dry-run", action="store_true", help="print the recipes and the cost, train nothing")
    add_where(parser)
    add_running(parser)
    add_root(parser)
    add_json(parser)


def add_moment(parser: Parser) -> None:
    """When to separate."""
    parser.add_argument("--at-epoch", type=int, metavar="N", help="separate after this epoch")
    parser.add_argument("--at-fraction", type=float, metavar="F", help="separate after this part of all epochs")


def add_where(parser: Parser) -> None:
    """Where many runs are trained."""
    group = parser.add_argument_group("where the runs are trained; the results are the same everywhere")
    group.add_argument("--on", metavar="WHERE", help="local[:N] at once, ray[:ADDRESS] or slurm[:PARTITION]")
    group.add_argument("--gpus", type=int, metavar="N", help="GPUs for each process of a run (default: 1 if any)")
    group.add_argument("--memory", type=float, metavar="GB", help="memory that a run asks of Ray or Slurm")
    group.add_argument("--threads-per-run", type=int, metavar="N", help="threads for each process of a run")
    group.add_argument("--devices-per-run", type=int, default=1, metavar="K", help="processes of each run (torchrun)")
    group.add_argument("--time", metavar="H:M:S", help="the time limit of a Slurm job, as 4:00:00")
    group.add_argument("--account", metavar="A", help="whom Slurm charges")


def take_where(given: dict[str, Any], *, default: str = "local:1") -> "Where":
    """Take `--on` and its companions out of the arguments; by default one run after the other in this process."""
    from evenly.sweep import parse

    names = {"threads_per_run": "threads", "devices_per_run": "devices"}
    names |= {name: name for name in ("gpus", "memory", "time", "account")}
    companions = {new: given.pop(old) for old, new in names.items()}
    on = given.pop("on")
    return parse(on or ("local" if companions["devices"] > 1 else default), **companions)


def design(
    given: dict[str, Any],
    *,
    verb: str,
    methods: "tuple[str, ...] | None" = None,
    seeds: str,
    runs: str | None = None,
) -> "tuple[Design, Where, dict[str, Any]]":
    """What is compared, where it is trained, and how; taken out of the arguments of a verb.

    Where `--lr auto` asks for it, the learning rate is tested by short runs in the folder `runs`, if that is given.
    """
    from evenly.recipe import Model, Until
    from evenly.training.comparison import Design
    from evenly.training.useful import useful_methods

    for change in given["changes"]:
        if change.partition("=")[0].strip() == "seed":  # which each of --seeds would replace
            raise UsageError(f"--set {change}: a comparison has several seeds. Give --seeds 0-4.")
    where, how = take_where(given), running(given)
    own = {name: given.pop(name) for name in ("at_epoch", "at_fraction", "factor", "drop_suspect", "split")}
    early = {name: given.pop(f"early_{name}") for name in ("model", "optimizer", "lr")}
    controls = given.pop("controls", None)
    recipe = fast_where_possible(resolve_recipe(**given, verb=verb), given, device=how["device"])
    if runs is not None:
        recipe = with_tested_rate(recipe, given.get("lr"), runs=runs, how=how)
    until: Until = moment(own["at_epoch"], own["at_fraction"])
    optimizer, ascent = early_choice(recipe, early["optimizer"], early["lr"])
    if methods is None:
        methods = useful_methods(controls or (), augments=bool(recipe.resampling.augment))
    made = Design(
        recipe,
        methods=methods,
        seeds=tuple(numbers(seeds)),
        until=until,
        factor=own["factor"],
        keep_suspects=not own["drop_suspect"],
        early_model=Model(early["model"]) if early["model"] else None,
        early_optimizer=optimizer,
        early_ascent=ascent,
        split=own["split"],
    )
    return made, where, how


def compare(*, methods: str, seeds: str, runs: str, dry_run: bool, json: bool, **given: Any) -> None:
    """Compare methods and recommend one."""
    if methods == "help":
        print_words()
        return
    names = tuple(word.strip() for word in methods.split(",") if word.strip())
    if len(names) == 1:
        both = "plain,sam" if names[0] in ("plain", "original") else f"plain,{names[0]}"
        raise UsageError(f"--methods {methods}: there is nothing to compare it with. Give --methods {both}.")
    made, where, how = design(given, verb="compare", methods=names, seeds=seeds, runs=None if dry_run else runs)
    if dry_run:
        show_forecast(made, how, where, runs=runs, json=json)
        return
    if leads():
        say_default_epochs(given, made)
    found, error = carry_out(made, where, how, runs=runs)
    if json and leads():
        print_json(found)
    elif leads():
        show(found)
        say_where(found, runs=runs)
    if error is not None:
        raise error


def say_where(found: Mapping[str, Any], *, runs: str) -> None:
    """The last lines: the page to open."""
    place = "" if runs == "runs" else f" --runs {shlex.quote(runs)}"
    say(f"See it as a page:\n  evenly report {found['id']}{place} --open")


def say_default_epochs(given: Mapping[str, Any], made: "Design") -> None:
    """How long every run is where nobody said it: the default is that of long training, a matter of hours."""
    said = {change.partition("=")[0].strip() for change in given["changes"]}
    if given.get("epochs") is None and given.get("config") is None and "epochs" not in said:
        runs = len(made.seeds) * len(made.methods)
        say(
            f"{runs} runs of {made.recipe.epochs} epochs, the default. --dry-run says how long that takes here; "
            "--epochs 20 is a tenth of it."
        )


def carry_out(
    made: "Design", where: "Where", how: Mapping[str, Any], *, runs: str, **settings: Any
) -> "tuple[dict[str, Any], EvenlyError | None]":
    """Train a comparison; where some runs failed, what the others came to, and the error."""
    from evenly.training.comparison import compare as run_comparison

    command = f"evenly {shlex.join(sys.argv[1:])}" if sys.argv[1:] else ""
    try:
        return run_comparison(made, runs=runs, where=where, command=command, **settings, **how), None
    except EvenlyError as error:
        found = getattr(error, "comparison", None)
        if found is None or not any(method["error"] for method in found["methods"]):
            raise
        return found, error


def show(found: Mapping[str, Any]) -> None:
    """The table on stdout, the recommendation below it on stderr."""
    has_share = any(row.get("hard_share") for method in found["methods"] for row in method["runs"].values())
    columns = ["method", "error %", f"− {found['baseline']}", "worst %", *(["hard %"] if has_share else []), "cost"]
    print_table([_row(method, found) for method in found["methods"]], columns)
    worst = {row.get("worst_group") for method in found["methods"] for row in method["runs"].values()} - {None}
    of = f"group ({', '.join(sorted(worst)[:3])})" if worst else "class"
    n = max((method["error"]["n"] for method in found["methods"] if method["error"]), default=0)
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    say(f"\nError on {found['split']} with 95% intervals, {seeds}; worst: of the worst {of}; cost: in gradients.")
    advice = found["recommendation"]
    say(f"\n{advice['sentence']}")
    if advice["next"]:
        say(f"To tell more:\n  {advice['next']}")


def _row(method: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    from evenly.intervals import Interval, points_with_interval

    done = [row for row in method["runs"].values() if row["state"] == "done"]
    name = f"− {found['baseline']}"
    if not done:
        states = sorted({row["state"] for row in method["runs"].values()})
        return {"method": method["label"], "error %": "/".join(states)}
    error, gap = method["error"], method["difference"]
    spread = "" if error["low"] is None else f" [{max(0, error['low']) * 100:.2f}, {error['high'] * 100:.2f}]"
    shares = [row["hard_share"] for row in done if row["hard_share"] is not None]
    return {
        "method": method["label"],
        "error %": f"{error['mean'] * 100:.2f}{spread}",
        name: "" if gap is None else points_with_interval(Interval(gap["mean"], gap["low"], gap["high"], gap["n"])),
        "worst %": f"{sum(row['worst'] for row in done) / len(done) * 100:.1f}",
        "hard %": f"{sum(shares) / len(shares) * 100:.0f}" if shares else "",
        "cost": f"{method['cost']:.2f}×",
    }


def show_forecast(made: "Design", how: Mapping[str, Any], where: "Where", *, runs: str, json: bool) -> None:
    """What a comparison would be and cost; nothing is trained or written."""
    from evenly.sweep import check_available, parse
    from evenly.training.forecast import forecast
    from evenly.typed import yaml_text

    at_once = check_available(where).at_once
    possible = check_available(parse("local", gpus=0 if how["device"] == "cpu" else None)).at_once or 1
    found = forecast(made, runs=runs, **{name: how[name] for name in ("device", "data_root", "workers")})
    if json:
        print_json(found)
        return
    for name, each in found["recipes"].items():
        if name in ("early", "plain", "useful"):
            print(f"# {name}, seed {made.seeds[0]}: run {each['id']}")
            print(yaml_text.render(each["recipe"]))
    rows = [
        {**line, "examples": f"{line['examples']:,}", "time": f"about {duration(line['seconds'])}"}
        for line in found["lines"]
    ]
    print_table(rows, ["method", "runs", "examples", "time"])
    guesses = {
        "share": f"{(found['share'] or 0):.0%} of the examples are hard",
        "early_epochs": f"the gain shrinks after {found['early_epochs']} epochs",
    }
    assumed = " and ".join(guesses[name] for name in found["assumed"])
    order = "one run after the other" if at_once == 1 else f"on one device after the other; --on {where} shares them"
    if at_once and at_once > 1:
        order += f" among {at_once}"
    elif at_once == 1 and possible > 1:
        order += f" (--on local trains {possible} at once)"
    say(
        f"\n{found['examples']:,} examples, about {duration(found['seconds'])} here, {order}"
        + (f", if {assumed}: only the early run can tell." if assumed else ".")
    )


def print_words() -> None:
    """The words that methods are made of."""
    from evenly.training.methods import WORDS

    rows = [
        {
            "word": word,
            "sets": ", ".join(each for each in (*known.settings, known.value.format("VALUE")) if each) or "—",
            "compare with": ", ".join(known.controls),
        }
        for word, known in WORDS.items()
    ]
    print_table(rows, ["word", "sets", "compare with"])


def moment(at_epoch: int | None, at_fraction: float | None) -> Any:
    """The moment that the arguments name; by default, where the gain in training error shrinks."""
    from evenly.recipe import Until

    if at_epoch is not None and at_fraction is not None:
        raise UsageError("--at-epoch and --at-fraction: give one of them.")
    if at_epoch is not None:
        return Until("epoch", at_epoch)
    return Until("gain") if at_fraction is None else Until("fraction", at_fraction)


def early_choice(recipe: "Recipe", name: str | None, lr: float | None) -> "tuple[Optimizer | None, Ascent | None]":
    """The optimizer and the ascent of the early run where they are not those of plain training.

    A learning rate is an optimizer's own: another optimizer begins with its usual one.

    >>> from evenly.recipe import Recipe
    >>> optimizer, ascent = early_choice(Recipe(), "adamw", None)
    >>> optimizer.name, optimizer.lr, ascent.rule
    ('adamw', 0.001, 'none')
    """
    from dataclasses import replace

    from evenly.recipe import Ascent, Optimizer

    if name is None:
        return (None if lr is None else replace(recipe.optimizer, lr=lr)), None
    if name in RULES:
        chosen, ascent = recipe.optimizer, Ascent(name)
    else:
        chosen, ascent = recipe.optimizer, Ascent("none")
        if name.lower() != chosen.name.lower():
            from evenly.training.build import default_lr

            chosen = Optimizer(name, lr=default_lr(name), weight_decay=chosen.weight_decay)
    return chosen if lr is None else replace(chosen, lr=lr), ascent


def numbers(text: str) -> list[int]:
    """Seeds as people write them.

    >>> numbers("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(f"--seeds {text!r}: expected numbers such as 0-4 or 0,3,7.")
        if dash and int(last) - int(first) >= MANY:
            raise UsageError(f"--seeds {text!r}: {part.strip()} is more than {MANY:,} seeds. Give fewer, such as 0-9.")
        if dash and int(last) < int(first):
            raise UsageError(f"--seeds {text!r}: {part.strip()} goes down; a range goes up, as {last}-{first}.")
        seeds += range(int(first), int(last if dash else first) + 1)
    if len(set(seeds)) < len(seeds) or not seeds:
        raise UsageError(f"--seeds {text!r}: each seed once, and at least one.")
    return seeds
