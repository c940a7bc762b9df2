"""`evenly separate`: the first half of the method, from data or from the outputs of any network."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.comparison_arguments import add_moment, moment
from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import (
    add_recipe,
    add_run_options,
    fast_where_possible,
    resolve_recipe,
    take_run_options,
    with_tested_rate,
)
from evenly.errors import UsageError

if TYPE_CHECKING:
    from evenly.recipe import Recipe
    from evenly.resampling import Separation
    from evenly.resampling.health import Health

EXAMPLES = """
  evenly separate digit-dominoes --model mlp --epochs 30
  evenly separate --from-logits logits.npz --out separation.csv
  evenly separate digits --model mlp --epochs 20 --at-epoch 4 --set keep_epochs=[2,3,4]
"""


def fill(parser: Parser) -> None:
    """The arguments of `evenly separate`."""
    parser.calls(separate, examples=EXAMPLES)
    add_recipe(parser)
    parser.add_argument("--from-logits", type=Path, metavar="FILE", help="an .npz file with logits and labels")
    parser.add_argument(
        "--out", type=Path, default=Path("separation.csv"), help=".csv, .json or .npz (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument(
        "--method",
        choices=["k-means", "quantile", "misclassified", "random"],
        default="k-means",
        help="how a class is split (default: %(default)s)",
    )
    parser.add_argument(
        "--among",
        choices=["all", "right"],
        default="all",
        help="split all examples, or only those that the network predicts correctly (default: %(default)s)",
    )
    add_moment(parser)
    add_run_options(parser)
    add_root(parser)
    add_json(parser)


def separate(
    *,
    from_logits: Path | None,
    out: Path,
    force: bool,
    at_epoch: int | None,
    at_fraction: float | None,
    method: str,
    among: str,
    runs: str,
    json: bool,
    **given: Any,
) -> None:
    """Separate, check the separation's health, and write it to a file."""
    if from_logits is not None:
        _refuse_training(given | {"at_epoch": at_epoch, "at_fraction": at_fraction, "runs": runs})
    how = take_run_options(given)
    if from_logits is None:
        recipe = fast_where_possible(resolve_recipe(**given, verb="separate", runs=runs), given, device=how["device"])
        _refuse_resampling(recipe)
        recipe = with_tested_rate(recipe, given.get("lr"), runs=runs, how=how)
    if out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    from evenly.resampling import save
    from evenly.resampling.health import health

    trained: dict[str, Any] = {}
    way: dict[str, Any] = {"method": method, "among": among}
    if from_logits is not None:
        separation, logits = _from_file(from_logits, way)
        checked = health(separation, logits)
    else:
        until = moment(at_epoch, at_fraction)
        separation, checked, trained = _from_training(recipe, until, runs, how, way)
    save(separation, out)
    for sentence in checked.sentences:
        say(sentence)
    if json:
        print_json(_plain(separation, checked, out) | trained)
        return
    rows = [
        {
            "class": separation.name(split.label),
            "hard": split.num_hard,
            "of": split.num,
            "loss hard": f"{split.loss_hard:.3f}",
            "loss easy": f"{split.loss_easy:.3f}",
            "silhouette": f"{split.silhouette:.2f}",
        }
        for split in separation.splits
    ]
    print_table(rows, ["class", "hard", "of", "loss hard", "loss easy", "silhouette"])
    for epoch, alike in trained.get("agreement", {}).items():
        say(f"Of the examples called hard here or after epoch {epoch}, {alike['jaccard']:.0%} are hard in both.")
    say(f"\n{separation.num_hard:,} of {len(separation):,} examples are hard ({separation.share:.0%}): {out}")


def _refuse_training(given: dict[str, Any]) -> None:
    """Refuse training options with `--from-logits`, which would ignore them."""
    if given["data"] is not None:
        raise UsageError(f"{given['data']} and --from-logits: give one of them.")
    usual = Parser()
    fill(usual)
    for name, value in given.items():
        if value != usual.get_default(name):
            option = "--set" if name == "changes" else f"--{name.replace('_', '-')}"
            shown = value[0] if name == "changes" else f"{value:g}" if isinstance(value, float) else value
            words = option if value is True else f"{option} {shown}"
            raise UsageError(f"{words} is about training, and --from-logits trains nothing: leave one of them out.")


def _refuse_resampling(recipe: "Recipe") -> None:
    """Refuse settings of the training that follows a separation: they would change nothing here."""
    from evenly.recipe import Resampling, to_mapping

    usual = to_mapping(Resampling())
    for name, value in to_mapping(recipe.resampling).items():
        if value != usual[name]:
            advice = "use --among" if name == "among" else "leave it out here, and give it to `evenly useful`"
            raise UsageError(f"resampling.{name}={value} is about the training that follows a separation: {advice}.")


def _from_file(path: Path, way: dict[str, Any]) -> "tuple[Separation, Any]":
    from evenly.errors import DataError
    from evenly.files.numpy_files import read_npz
    from evenly.resampling import SeparationWarning
    from evenly.resampling import separate as split

    if not path.exists():
        raise DataError(f"{path} does not exist. Give an .npz file with the arrays `logits` and `labels`.")
    arrays = read_npz(path, advice="Write one with numpy.savez('logits.npz', logits=z, labels=y).")
    for name in ("logits", "labels"):
        if name not in arrays:
            raise DataError(f"{path} has no array {name!r}: it has {', '.join(arrays) or 'none'}.")
    given: dict[str, Any] = {name: arrays[name] for name in ("losses", "index") if name in arrays}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)  # the remarks are said with the rest of the check
        return split(arrays["logits"], arrays["labels"], **way, **given), arrays["logits"]


def _from_training(
    recipe: Any, until: Any, runs: str, how: dict[str, Any], way: dict[str, Any]
) -> "tuple[Separation, Health, dict[str, Any]]":
    """The separation of an early run, which is left in the run's folder too, and its agreement over kept epochs."""
    from evenly.resampling.health import health
    from evenly.training.agreement import separations_at
    from evenly.training.build import load_data
    from evenly.training.early import early_recipe, load_outputs
    from evenly.training.evidence import write_evidence
    from evenly.training.separations import separation_of
    from evenly.training.train import train
    from evenly.training.trained_model import kept_epochs

    data = load_data(recipe, data_root=how["data_root"])
    early = train(early_recipe(recipe, until, keep_epochs=recipe.keep_epochs), runs=runs, splits=data, **how)
    epoch = early.summary()["separated_at"]
    say(f"Separated after epoch {epoch} of run {early.id}.")
    separation = separation_of(early, data.train, **way)
    others = [kept for kept in kept_epochs(early) if kept != epoch] if recipe.keep_epochs else []
    then = separations_at(early, data.train, epochs=others, data_root=how["data_root"], **way)
    checked = health(separation, load_outputs(early)["logits"], others=list(then.values()))
    with early:
        write_evidence(early, separation, early=early, data=data.train, health_=checked)
    alike = {kept: agreed._asdict() for kept, agreed in zip(then, checked.agreements, strict=True)}
    return separation, checked, {"run": early.id, "epoch": epoch, **({"agreement": alike} if alike else {})}


def _plain(separation: "Separation", health_: "Health", out: Path) -> dict[str, Any]:
    return {
        "out": str(out),
        "examples": len(separation),
        "hard": separation.num_hard,
        "share": separation.share,
        "accuracy": separation.accuracy,
        "classes": [
            {
                name: getattr(split, name)
                for name in ("label", "num_hard", "num_easy", "loss_hard", "loss_easy", "silhouette")
            }
            for split in separation.splits
        ],
        "remarks": list(health_.sentences),
    }
