"""The arguments that `evenly compare`, `useful` and `reproduce` share, and what they mean."""

from typing import TYPE_CHECKING, Any

from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import add_run_options, fast_where_possible, resolve_recipe, take_run_options, with_tested_rate
from evenly.errors import UsageError
from evenly.rules import RULES

if TYPE_CHECKING:
    from evenly.recipe import Ascent, Optimizer, Recipe
    from evenly.sweep import Where
    from evenly.training.comparison import Design

FACTOR = 2
MANY = 10_000  # seeds in a range: beyond it a mistyped number, which would fill the memory


def add_comparison(parser: Parser) -> None:
    """What `compare` and `useful` share."""
    add_moment(parser)
    parser.add_argument(
        "--factor", type=int, metavar="K", help=f"how often a hard example is shown (default: {FACTOR})"
    )
    parser.add_argument("--drop-suspect", action="store_true", help="do not repeat examples that look mislabelled")
    parser.add_argument("--early-model", metavar="M", help="a smaller network for the early run")
    parser.add_argument("--early-optimizer", metavar="O", help="sgd, adamw, … or sam, … for the early run")
    parser.add_argument("--early-lr", type=float, metavar="R", help="the learning rate of that optimizer")
    parser.add_argument("--split", help="where the error is taken (default: test, or validation)")
    parser.add_argument("--dry-run", action="store_true", help="print the recipes and the cost, train nothing")
    add_where(parser)
    add_run_options(parser)
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
    group.add_argument("--account", metavar="A", help="the Slurm account to charge")


def take_where(given: dict[str, Any], *, default: str = "local:1") -> "Where":
    """Take `--on` and its companions out of the arguments; by default one run after the other in this process."""
    from evenly.sweep import parse

    names = {"threads_per_run": "threads", "devices_per_run": "devices"}
    names |= {name: name for name in ("gpus", "memory", "time", "account")}
    companions = {new: given.pop(old) for old, new in names.items()}
    on = given.pop("on")
    if on is None:
        on = "local" if companions["devices"] > 1 else default
    return parse(on, **companions)


def design(
    given: dict[str, Any],
    *,
    verb: str,
    methods: "tuple[str, ...] | None" = None,
    seeds: str,
    runs: str,
    dry_run: bool,
) -> "tuple[Design, Where, dict[str, Any]]":
    """What is compared, where it is trained, and how; taken out of the arguments of a verb.

    Where `--lr auto` asks for it, the learning rate is tested by short runs in the folder `runs`, but not by a dry run.
    """
    from evenly.recipe import Model, Until
    from evenly.training.comparison import Design
    from evenly.training.useful import useful_methods

    for change in given["changes"]:
        if change.partition("=")[0].strip() == "seed":  # which each of --seeds would replace
            raise UsageError(f"--set {change}: a comparison has several seeds. Give --seeds 0-4.")
    where, how = take_where(given), take_run_options(given)
    own = {name: given.pop(name) for name in ("at_epoch", "at_fraction", "factor", "drop_suspect", "split")}
    early = {name: given.pop(f"early_{name}") for name in ("model", "optimizer", "lr")}
    controls = given.pop("controls", None)
    if methods is not None:
        _refuse_without_early_run(methods, own | {f"early_{name}": value for name, value in early.items()})
    recipe = fast_where_possible(resolve_recipe(**given, verb=verb, runs=runs), given, device=how["device"])
    if not dry_run:
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
        factor=FACTOR if own["factor"] is None else own["factor"],
        keep_suspects=not own["drop_suspect"],
        early_model=Model(early["model"]) if early["model"] else None,
        early_optimizer=optimizer,
        early_ascent=ascent,
        split=own["split"],
    )
    _refuse_unused_factor(made, own["factor"])
    return made, where, how


def _refuse_without_early_run(methods: "tuple[str, ...]", given: dict[str, Any]) -> None:
    """Raise if an option is for the early run, or for what is chosen by it, and no method has one."""
    from evenly.training.methods import parse_all

    if any(method.needs_early for method in parse_all(methods)):
        return
    for name in ("at_epoch", "at_fraction", "factor", "drop_suspect", "early_model", "early_optimizer", "early_lr"):
        if given[name] not in (None, False):
            word = f"--{name.replace('_', '-')}"
            written = word if given[name] is True else f"{word} {given[name]}"
            raise UsageError(
                f"{written} is for methods that choose examples by an early run, and --methods {','.join(methods)} has "
                f"none. Leave it out, or add such a method: --methods {','.join(methods)},useful"
            )


def _refuse_unused_factor(made: "Design", factor: int | None) -> None:
    """Raise if every method itself says how often it shows examples, so that `--factor` would be ignored."""
    if factor is None or not made.needs_early:
        return
    plain, methods = made.plain(made.seeds[0]), made.parsed_methods
    if all(method.copied(plain, factor=factor) == method.copied(plain, factor=factor + 1) for method in methods):
        own = next(method for method in methods if method.needs_early)
        raise UsageError(
            f"--factor {factor} is for methods that do not say themselves how often they show examples, and all of "
            f"{', '.join(method.name for method in methods)} do. Leave it out, or write the factor into the method, "
            f"as {own.words[0][0]}:{factor}"
        )


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
            from evenly.training.build_optimizer import default_lr

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
        raise UsageError(f"--seeds {text!r}: give at least one seed, and each only once.")
    return seeds
