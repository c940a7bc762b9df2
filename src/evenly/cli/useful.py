"""`evenly useful`: the whole method and its controls on any data, with paired seeds."""

from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import add_recipe, add_running, resolved, running
from evenly.errors import UsageError

if TYPE_CHECKING:
    from evenly.recipe import Until
    from evenly.training.useful import Line, Row

EXAMPLES = """
  evenly useful digit-dominoes --model mlp --epochs 30 --controls original,random --seeds 0-4
  evenly useful fashion-mnist --model convnet --epochs 10 --controls original,random,upweight
  evenly useful photos/ --model resnet18 --optimizer sam --at-epoch 8 --set data.validation=0.2
"""


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
    parser.add_argument("--split", help="where the error is taken (default: test, or validation)")
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
    split: str | None,
    runs: str,
    json: bool,
    **given: Any,
) -> None:
    """Run the method beside its controls and print what it gains."""
    from dataclasses import asdict

    how = running(given)
    recipe = resolved(**given)
    from evenly.recipe import Model
    from evenly.training.useful import compared
    from evenly.training.useful import useful as method

    rows = method(
        recipe,
        seeds=numbers(seeds),
        controls=[word for word in controls.split(",") if word],
        until=moment(at_epoch, at_fraction),
        factor=factor,
        keep_suspects=not drop_suspect,
        early_model=Model(early_model) if early_model else None,
        runs=runs,
        split=split,
        **how,
    )
    lines = compared(rows)
    if json:
        print_json({"lines": [asdict(line) for line in lines], "runs": [asdict(row) for row in rows]})
        return
    print_table([_shown(line) for line in lines], ["method", "error %", "difference", "worst %", "hard %", "cost"])
    chosen = ", ".join(row.run for row in rows if row.method == "useful")
    say(f"\n{verdict(rows)}\nFor `evenly export`, the runs of the method: {chosen} (in {runs}).")


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
        found += range(int(first), int(last if dash else first) + 1)
    if len(set(found)) < len(found) or not found:
        raise UsageError(f"--seeds {text!r}: each seed once, and at least one.")
    return found


def verdict(rows: "list[Row]") -> str:
    """What the table says, in a sentence: whether the gain is real, and whether it is more than its controls'."""
    from evenly.intervals import paired

    def errors(method: str) -> list[float]:
        return [row.error for row in sorted(rows, key=lambda row: row.seed) if row.method == method]

    if not errors("original"):
        return "Without `--controls original` there is nothing to compare with."
    gain = paired(errors("useful"), errors("original"))
    word = "lower" if gain.mean < 0 else "higher" if gain.mean > 0 else "the same"
    told = f"USEFUL changes the error by {abs(gain.mean) * 100:.2f} points ({word})"
    if gain.n < 2:
        return f"{told} with one seed: that says nothing yet. Give --seeds 0-4."
    if not gain.excludes_zero:
        return f"{told}; the interval of {gain.n} paired seeds includes zero."
    told += f"; the interval of {gain.n} paired seeds excludes zero"
    for control in ("random", "steps"):
        if errors(control) and not paired(errors("useful"), errors(control)).excludes_zero:
            return f"{told}, but the one against {control} does not: it may be the extra steps."
    if not errors("random") and not errors("steps"):
        return f"{told}. Add --controls random,steps: it may be the extra steps."
    return f"{told}, and so does the one against as many examples of any kind."


def _shown(line: "Line") -> dict[str, str]:
    def percent(interval: Any) -> str:
        if interval.n < 2:
            return f"{interval.mean * 100:.2f}"
        half = (interval.high - interval.low) / 2
        return f"{interval.mean * 100:.2f} ± {half * 100:.2f}"

    return {
        "method": line.method,
        "error %": percent(line.error),
        "difference": percent(line.difference) if line.difference is not None else "",
        "worst %": f"{line.worst * 100:.2f}",
        "hard %": f"{line.share * 100:.0f}",
        "cost": f"{line.cost:.2f}×",
    }
