"""`evenly train`: one recipe, trained in its own run folder; the same command continues it."""

import os
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root, add_trust, expand_data_options
from evenly.cli.setting_options import PATHS, as_typed, quote_name, refuse_two_values, typed_options
from evenly.cli.small_data import fitting_batch
from evenly.errors import UsageError
from evenly.models.catalogue import CATALOGUE as MODELS
from evenly.progress import duration as duration
from evenly.rules import FORMER_NAMES, RULES

if TYPE_CHECKING:
    from evenly.recipe import Ascent, Recipe

EXAMPLES = """
  evenly train digits --model mlp --optimizer sam --epochs 20
  evenly train cifar10 --model convnet --epochs 3 --set precision=bf16
  evenly train photos/ --model resnet18 --set augment=[pad-crop,mirror] --dry-run
  torchrun --nproc-per-node 2 -m evenly train digits --model mlp --epochs 5
"""
AUTO = "auto"  # of --lr


def fill(parser: Parser) -> None:
    """The arguments of `evenly train`."""
    parser.calls(train, examples=EXAMPLES)
    add_recipe(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the resolved recipe and its cost, train nothing")
    add_run_options(parser)
    add_root(parser)
    add_json(parser)


def add_recipe(parser: Parser, *, seed: bool = True, data: str = "a data set, or the path of your own") -> None:
    """The options that describe a run: the data, the usual settings by name, and every other one by `--set`."""
    parser.add_argument("data", metavar="DATA", nargs="?", help=data)
    parser.add_argument("--config", metavar="FILE", help="a recipe in YAML to begin with")
    parser.add_argument(
        "--model", metavar="M", help=f"{', '.join(MODELS)}; timm:NAME, torchvision:NAME, module:function"
    )
    parser.add_argument(
        "--from",
        metavar="RUN",
        dest="from_run",
        help="start from the weights of a run or of its export for the Hub (fine-tuning)",
    )
    parser.add_argument("--optimizer", metavar="O", help=f"sgd, adamw, … or {', '.join(RULES)}")
    parser.add_argument("--rho", metavar="R", help="the radius of SAM and its family")
    parser.add_argument(
        "--lr", metavar="R", help="the learning rate (default: one that fits the model); auto tests some"
    )
    parser.add_argument("--epochs", metavar="N", help="passes over the training examples (default: 200)")
    parser.add_argument("--batch-size", metavar="N", help="examples in a step (default: 128, or fewer on small data)")
    parser.add_argument("--accumulate", metavar="N", help="parts in which to compute each batch, to save memory")
    parser.add_argument(
        "--compile", action="store_const", const="true", help="compile the model; pays off in long runs"
    )
    if seed:
        parser.add_argument("--seed", metavar="S", help="the seed of all random numbers")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", dest="changes",
                        help="any other setting, or an option of the data set (size=32)")  # fmt: skip
    parser.add_argument("--skip-broken", action="store_const", const="true", help="leave out images that do not decode")
    add_trust(parser, "the FILE of --config")


def recipe_options() -> dict[str, str]:
    """The options that change a recipe, by the names of their arguments: everything that `add_recipe` adds.

    >>> options = recipe_options()
    >>> options["batch_size"], options["from_run"], options["changes"], "data" in options
    ('--batch-size', '--from', '--set', False)
    """
    parser = Parser(add_help=False)
    add_recipe(parser)
    known = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
    return {name: option for name, option in known.items() if name != "trust_code"}  # which only allows something


def add_run_options(parser: Parser) -> None:
    """The options for where and how a run is trained, which do not change its result."""
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are made (default: runs)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, mps (default: the best there is)")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that decode image files (default: 0, or enough for a GPU)"
    )
    parser.add_argument("--pace", type=float, default=60.0, metavar="S", help="seconds between checkpoints")
    parser.add_argument("--tensorboard", action="store_true", help="write metrics for TensorBoard too")
    parser.add_argument(
        "--allow",
        default="",
        metavar="WHAT",
        help="resume even if this differs from the previous start: world (number of processes), device",
    )


def resolve_recipe(
    *,
    data: str | None,
    config: str | None,
    model: str | None,
    optimizer: str | None,
    changes: list[str],
    from_run: str | None = None,
    verb: str = "train",
    runs: str = "runs",
    **named: str | None,
) -> "Recipe":
    """The recipe that the arguments describe: a file, changed by the named options and by `--set`.

    >>> recipe = resolve_recipe(data="digits", config=None, model=None, optimizer="sam", changes=[], epochs="3")
    >>> recipe.ascent.rule, recipe.optimizer.name, recipe.epochs
    ('sam', 'sgd', 3)
    """
    from dataclasses import replace

    from evenly import recipe as recipes

    base = recipes.load(config, trust_code=True) if config else recipes.Recipe()  # checked below
    if data is None and config is None:
        raise UsageError(f"which data? Give a data set or a path: evenly {verb} digits. `evenly data list` names them.")
    words = {"data.name": data, "model.name": model}
    optimizer = FORMER_NAMES.get(optimizer, optimizer) if optimizer else None
    changes = expand_data_options(changes, data or base.data.name)
    typed = typed_options({"model": model, "optimizer": optimizer, **named})
    refuse_two_values(typed, changes)
    if from_run is not None:
        from evenly.cli.fine_tuning import fine_tuning_settings

        asked = model or (base.model.name if config else None)
        changes = [*fine_tuning_settings(from_run, asked, runs=runs), *changes]
    if optimizer in RULES:
        words |= {"ascent.rule": optimizer, "ascent.rho": "null"}
    elif optimizer is not None:
        # `--optimizer sam` adds SAM to a file's recipe, so `--optimizer sgd` removes it.
        base = replace(base, ascent=recipes.Ascent())
        words["optimizer.name"] = optimizer
    if named.get("rho") is not None and optimizer not in RULES and base.ascent.rule == "none":
        raise UsageError(f"--rho {named['rho']} is the radius of SAM and its family: give --optimizer sam too.")
    words |= {PATHS.get(name, name): value for name, value in named.items() if value not in (None, AUTO)}
    given = [f"{path}={quote_name(path, value)}" for path, value in words.items() if value is not None]
    try:
        recipe = recipes.override(base, [*given, *changes])
    except UsageError as error:
        rule = RULES.get(optimizer or base.ascent.rule, RULES["sam"])
        raise UsageError(as_typed(str(error), typed, radius=rule.rho)) from error
    if base.ascent.rule == "none" and verb not in ("compare", "useful"):  # whose methods may be of SAM's family
        _refuse_unused(recipe.ascent)
    _agree(recipe, config, [*given, *changes])
    return recipe


def _refuse_unused(ascent: "Ascent") -> None:
    """Refuse settings of SAM's family for ordinary training, which would ignore them."""
    plain = type(ascent)()
    unused = [name for name in ("options", "schedule", "rho_end") if getattr(ascent, name) != getattr(plain, name)]
    if ascent.rule == "none" and unused:
        raise UsageError(
            f"ascent.{unused[0]} is for SAM and its family: give --optimizer sam too, or leave it out to train without."
        )


def _agree(recipe: "Recipe", config: str | None, words: list[str]) -> None:
    """Agree to code that the command line itself names; code named by a file needs consent."""
    from evenly import consent
    from evenly import recipe as recipes

    model = recipe.model
    if not consent.is_code(model.name, model.options):
        return
    spoken = recipes.override(recipes.Recipe(), [word for word in words if word.lstrip().startswith("model.")]).model
    if (spoken.name, spoken.options) == (model.name, model.options):
        consent.remember(model.name, model.options)
    else:
        consent.require(model.name, model.options, source=str(config))


def fast_where_possible(recipe: "Recipe", given: dict[str, Any], *, device: str) -> "Recipe":
    """The recipe with defaults that suit its model and device, except for settings in a file or an option."""
    from dataclasses import replace

    from evenly.device import choose_device
    from evenly.training.defaults import with_gpu_defaults, with_model_defaults
    from evenly.typed import yaml_text

    named = {change.partition("=")[0].strip() for change in given.get("changes", ())}
    if given.get("config"):
        named |= set(yaml_text.read(given["config"]))
    if given.get("lr") not in (None, AUTO):
        named.add("optimizer.lr")
    if given.get("batch_size") is None and "batch_size" not in named:
        size, remark = fitting_batch(recipe)
        recipe = replace(recipe, batch_size=size)
        if remark and leads():
            say(remark)
    return with_gpu_defaults(with_model_defaults(recipe, given=named), choose_device(device), given=named)


def with_tested_rate(recipe: "Recipe", lr: str | None, *, runs: str, how: dict[str, Any]) -> "Recipe":
    """The recipe with the learning rate of a short test, if `--lr auto` requests one."""
    if lr != AUTO:
        return recipe
    from dataclasses import replace

    from evenly.training.lr_range import range_test

    test = range_test(recipe, runs=runs, **{name: how[name] for name in ("device", "workers", "data_root")})
    say(test.sentence())
    return replace(recipe, optimizer=replace(recipe.optimizer, lr=test.lr))


def take_run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Move the arguments of `evenly.training.train.train` that say where and how a run is trained out of `given`."""
    how = {name: given.pop(name) for name in ("device", "workers", "pace", "tensorboard", "data_root")}
    return how | {"allow": [word for word in given.pop("allow").split(",") if word]}


def train(*, dry_run: bool, runs: str, json: bool, **given: Any) -> None:
    """Train, or show the recipe and its cost."""
    how = take_run_options(given)
    recipe = fast_where_possible(resolve_recipe(**given, runs=runs), given, device=how["device"])
    if not dry_run:
        recipe = with_tested_rate(recipe, given.get("lr"), runs=runs, how=how)
    from evenly.recipe import to_mapping

    if dry_run:
        from evenly.training.build import load_data
        from evenly.training.cost import estimate
        from evenly.training.identify import identify
        from evenly.typed import yaml_text

        splits = load_data(recipe, data_root=how["data_root"])
        cost = estimate(recipe, splits=splits, **{name: how[name] for name in ("device", "workers")})
        if json:
            print_json({"id": identify(recipe, splits).id, "recipe": to_mapping(recipe), "cost": cost})
        else:
            print(yaml_text.render(to_mapping(recipe)), end="")
            say(f"\n{cost['examples']:,} examples in {cost['steps']:,} steps, about {duration(cost['seconds'])} here.")
        return
    from evenly.training.train import train as run_training

    run = run_training(recipe, runs=runs, **how)
    if leads():
        summary = run.summary()
        if json:
            print_json({"id": run.id, "folder": str(run.path), **summary})
        else:
            rows = [{"metric": k, "value": metric_text(k, v)} for k, v in summary.items() if k != "collapsed"]
            print_table(rows, ["metric", "value"])
            say(f"\nRun {run.id} is done: {run.path}.")


def leads() -> bool:
    """Whether this process prints for all of them."""
    return int(os.environ.get("RANK", 0)) == 0


def metric_text(name: str, value: Any) -> str:
    """The value of a metric as tables show it: errors in per cent.

    >>> metric_text("test.error", 0.0812), metric_text("test.worst.class", 0.2), metric_text("test.loss", 0.25)
    ('8.12%', '20.00%', '0.25')
    """
    is_error = isinstance(value, float) and ({"error", "worst", "adjusted"} & set(name.split(".")))
    return f"{value:.2%}" if is_error else short_number(value)


def short_number(value: Any) -> str:
    """A number in short form."""
    return f"{value:.5g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
