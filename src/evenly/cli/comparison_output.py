"""A comparison on the terminal: its table and recommendation, or what it would cost."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.train import duration

if TYPE_CHECKING:
    from evenly.sweep import Where
    from evenly.training.comparison import Design


def show(comparison: Mapping[str, Any]) -> None:
    """The table on stdout, the recommendation below it on stderr."""
    has_share = any(row.get("hard_share") for method in comparison["methods"] for row in method["runs"].values())
    columns = [
        "method",
        "error %",
        *([f"− {comparison['baseline']}"] if len(comparison["methods"]) > 1 else []),
        "worst %",
        *(["hard %"] if has_share else []),
        "cost",
    ]
    print_table([_row(method, comparison) for method in comparison["methods"]], columns)
    worst = {row.get("worst_group") for method in comparison["methods"] for row in method["runs"].values()} - {None}
    of = f"group ({', '.join(sorted(worst)[:3])})" if worst else "class"
    n = max((method["error"]["n"] for method in comparison["methods"] if method["error"]), default=0)
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    say(f"\nError on {comparison['split']} with 95% intervals, {seeds}; worst: of the worst {of}; cost: in gradients.")
    advice = comparison["recommendation"]
    say(f"\n{advice['sentence']}")
    if advice["next"]:
        say(f"To tell more:\n  {advice['next']}")


def _row(method: Mapping[str, Any], comparison: Mapping[str, Any]) -> dict[str, str]:
    from evenly.intervals import Interval, points_with_interval
    from evenly.report.wording import percent

    done = [row for row in method["runs"].values() if row["state"] == "done"]
    name = f"− {comparison['baseline']}"
    if not done:
        states = sorted({row["state"] for row in method["runs"].values()})
        return {"method": method["label"], "error %": "/".join(states)}
    error, gap = method["error"], method["difference"]
    shares = [row["hard_share"] for row in done if row["hard_share"] is not None]
    return {
        "method": method["label"],
        "error %": percent(Interval(error["mean"], error["low"], error["high"], error["n"])),
        name: "" if gap is None else points_with_interval(Interval(gap["mean"], gap["low"], gap["high"], gap["n"])),
        "worst %": f"{sum(row['worst'] for row in done) / len(done) * 100:.1f}",
        "hard %": f"{sum(shares) / len(shares) * 100:.0f}" if shares else "",
        "cost": f"{method['cost']:.2f}×",
    }


def show_forecast(made: "Design", how: Mapping[str, Any], where: "Where", *, runs: str, json: bool) -> None:
    """What a comparison would be and cost; nothing is trained or written."""
    from evenly.sweep import check_available, parse
    from evenly.training.forecast import WRONG, forecast

    at_once = check_available(where).at_once
    possible = check_available(parse("local", gpus=0 if how["device"] == "cpu" else None)).at_once or 1
    forecast_ = forecast(made, runs=runs, **{name: how[name] for name in ("device", "data_root", "workers")})
    if json:
        print_json(forecast_)
        return
    _print_recipes(forecast_["recipes"], seed=made.seeds[0])
    rows = [
        {**line, "examples": f"{line['examples']:,}", "time": f"about {duration(line['seconds'])}"}
        for line in forecast_["lines"]
    ]
    print_table(rows, ["method", "runs", "examples", "time"])
    early = forecast_["early_epochs"]
    guesses = {
        "share": f"{(forecast_['share'] or 0):.0%} of the examples are hard",
        "wrong": f"{WRONG:.0%} of the examples are predicted wrongly",
        "early_epochs": f"the gain shrinks after {early} epoch{'s' * (early != 1)}",
    }
    assumed = " and ".join(guesses[name] for name in forecast_["assumed"])
    order = "one run after the other" if at_once == 1 else f"on one device after the other; --on {where} shares them"
    if at_once and at_once > 1:
        order += f" among {at_once}"
    elif at_once == 1 and possible > 1:
        order += f" (--on local trains {possible} at once)"
    say(
        f"\n{forecast_['examples']:,} examples, about {duration(forecast_['seconds'])} here, {order}"
        + (f", if {assumed}: only the early run can tell." if assumed else ".")
    )


def _print_recipes(recipes: Mapping[str, Any], *, seed: int) -> None:
    """The recipe of plain training, or of the first method, and how the others differ from it."""
    from evenly.typed import yaml_text
    from evenly.typed.mappings import flatten

    first = "plain" if "plain" in recipes else next(iter(recipes))
    base = flatten(recipes[first]["recipe"])
    print(f"# {first}, seed {seed}: run {recipes[first]['id']}\n{yaml_text.render(recipes[first]['recipe'])}")
    for name, each in recipes.items():
        if name != first:
            changed = {path: value for path, value in flatten(each["recipe"]).items() if base.get(path) != value}
            print(f"# {name}, seed {seed}: run {each['id']}, as {first} except for\n{yaml_text.render(changed)}")


def say_networks(comparison: Mapping[str, Any], *, runs: str) -> None:
    """The networks that were trained, one of each method, and the line that uses one."""
    done = {
        method["label"]: next((row["run"] for row in method["runs"].values() if _is_usable(row)), None)
        for method in comparison["methods"]
    }
    named = {label: run for label, run in done.items() if run is not None}
    if not named:
        return
    place = "" if runs == "runs" else f" --runs {shlex.quote(runs)}"
    listed = ", ".join(f"{label} {run}" for label, run in named.items())
    first = next(iter(named.values()))
    if _takes_images(first, runs):
        line = f"evenly predict {first} PHOTOS{place} --out predictions.csv"
    else:  # `evenly predict` reads image files
        line = f'evenly.load_run("{first}"{"" if runs == "runs" else f", runs={runs!r}"}).predict(inputs)'
    say(f"To use a network ({listed}):\n  {line}")


def _takes_images(run: str, runs: str) -> bool:
    """Whether the inputs of a run's network are pictures, as far as its record says."""
    from evenly.records import json_text
    from evenly.training.model_record import NAME, ModelRecord

    path = Path(runs) / run / NAME
    return not path.is_file() or ModelRecord.from_mapping(json_text.read(path), source=path).inputs.is_image


def _is_usable(row: Mapping[str, Any]) -> bool:
    return row["state"] == "done" and not row.get("collapsed")


def say_where(comparison: Mapping[str, Any], *, runs: str) -> None:
    """The last lines: the page to open."""
    place = "" if runs == "runs" else f" --runs {shlex.quote(runs)}"
    say(f"See it as a page:\n  evenly report {comparison['id']}{place} --open")


def say_default_epochs(given: Mapping[str, Any], made: "Design") -> None:
    """Print the number of epochs if the user gave none: the default is long and may take hours.

    >>> from evenly.recipe import Recipe
    >>> from evenly.training.comparison import Design
    >>> say_default_epochs({"changes": ["epochs=5"]}, Design(Recipe(), methods=("plain", "sam"), seeds=(0, 1)))
    """
    changed = {change.partition("=")[0].strip() for change in given["changes"]}
    if given.get("epochs") is None and given.get("config") is None and "epochs" not in changed:
        runs = len(made.seeds) * len(made.methods)
        say(
            f"{runs} runs of {made.recipe.epochs} epochs, the default. --dry-run says how long that takes here; "
            "--epochs 20 is a tenth of it."
        )


def print_words() -> None:
    """The words that methods are made of."""
    from evenly.training.controls import controls_of
    from evenly.training.method_words import WORDS
    from evenly.training.methods import parse

    rows = [
        {
            "word": word,
            "sets": ", ".join(each for each in (*known.settings, known.value.format("VALUE")) if each) or "—",
            "compare with": ", ".join(controls_of(parse(word))),
        }
        for word, known in WORDS.items()
    ]
    print_table(rows, ["word", "sets", "compare with"])
