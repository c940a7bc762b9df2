"""`evenly reproduce`: run and judge any figure or table of the papers, or list the verdicts in the ledger."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly import atomic
from evenly.cli.atlas_row import say_how_to_read
from evenly.cli.comparison_arguments import add_where, take_where
from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.reproduce_modes import judge, refuse_ignored, run_campaign
from evenly.cli.verdicts import list_verdicts, print_clusters, print_row
from evenly.errors import DataError, EvenlyError, UsageError

if TYPE_CHECKING:
    from evenly.files.layered import Layered
    from evenly.papers.experiment import Experiment

EXAMPLES = """
  evenly reproduce --list                                        every claim with its verdict
  evenly reproduce nguyen2024/fig2 --scale full                  one figure, at the paper's size
  evenly reproduce springer2024/table1-cifar-mnist --dry-run     what it would do, and how long
  evenly reproduce --all --scale smoke --check                   exit 5 where a verdict is worse than in the ledger
  evenly reproduce nguyen2024/fig7 --scale full --more 2         two more seeds, beside those in the ledger
  evenly reproduce --next --hours 8                              the most informative experiments per hour, one by one
"""


class ClaimWorsened(EvenlyError):
    """The experiments ran, and a claim that held before no longer holds."""

    exit_code = 5


def fill(parser: Parser) -> None:
    """The arguments of `evenly reproduce`."""
    parser.calls(reproduce, examples=EXAMPLES)
    parser.add_argument("keys", metavar="KEY", nargs="*", help="experiments, such as nguyen2024/fig2, or a whole paper")
    parser.add_argument("--list", dest="listing", action="store_true", help="every experiment with its verdict")
    parser.add_argument("--all", dest="every", action="store_true", help="every experiment")
    parser.add_argument(
        "--scale",
        default="auto",
        choices=("auto", "smoke", "small", "full"),
        help="smoke: seconds, to see that it works; small: fits a laptop; full: the paper's own size; auto: full if "
        "that takes an hour at most, otherwise small (default: auto)",
    )
    parser.add_argument("--seeds", metavar="A-B", help="other seeds than the declared ones")
    parser.add_argument("--more", type=int, metavar="N", help="add N seeds to those in the ledger")
    parser.add_argument(
        "--next", dest="campaign", action="store_true", help="run the most informative experiments per hour"
    )
    parser.add_argument("--hours", type=float, metavar="H", help="with --next: stop after H hours")
    parser.add_argument("--judge", action="store_true", help="judge all rows of the ledger again, measuring nothing")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and check it, run nothing")
    parser.add_argument("--check", action="store_true", help="compare with the ledger instead of writing to it")
    parser.add_argument("--yes", action="store_true", help="start even if it takes more than ten hours")
    parser.add_argument("--fresh", action="store_true", help="run finished parts again, and begin a new row")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="where rows and figures are kept (default: claims)")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where the work is kept (default: %(default)s)")
    add_where(parser)
    add_root(parser)
    add_json(parser)


def reproduce(**given: Any) -> None:
    """Run experiments and print their verdicts, or do what `--list`, `--judge` or `--next` says."""
    from evenly.sweep.launch import check_available

    refuse_ignored(given)
    listing, judging, campaign, hours = (given.pop(name) for name in ("listing", "judge", "campaign", "hours"))
    ledger = find_ledger(given["ledger"])
    if hours is not None and not (campaign and hours > 0):
        raise UsageError(f"--hours {hours:g}: give a number above 0, with --next: evenly reproduce --next --hours 8")
    if listing:
        list_verdicts(ledger, json=given["json"])
    elif judging:
        judge(ledger, dry_run=given["dry_run"])
    elif campaign:
        how = {"where": check_available(take_where(given, default="local"))}
        how |= {name: given[name] for name in ("runs", "data_root")}
        run_campaign(ledger, hours, how, dry_run=given["dry_run"], json=given["json"])
    else:
        _run(**given)


def _run(
    *,
    keys: list[str],
    every: bool,
    scale: str,
    seeds: str | None,
    more: int | None,
    dry_run: bool,
    check: bool,
    yes: bool,
    fresh: bool,
    ledger: Path | None,
    runs: str,
    data_root: str | None,
    json: bool,
    **companions: Any,
) -> None:
    """Run the experiments that are named, or all."""
    from evenly.cli.comparison_arguments import numbers
    from evenly.papers import reproduction
    from evenly.sweep.launch import check_available, is_sequential

    where = take_where(companions, default="local")
    is_cluster = where.engine != "local"
    how: dict[str, Any] = {"runs": runs, "data_root": data_root, "where": where}
    if more is not None and (seeds is not None or check or fresh):
        raise UsageError("--more adds the next seeds to a row: leave out --seeds, --check and --fresh.")
    given = None if seeds is None else numbers(seeds)
    if given is not None and ledger is None and not (check or dry_run):
        raise UsageError(f"--seeds {seeds}: other seeds make another row. Say where it is kept: --ledger DIR")
    chosen = _select(keys, scale, every=every)
    if scale == "auto" and not (yes or dry_run):
        chosen = _without_long(chosen, keys)
    wanted: dict[str, Sequence[int] | None] = dict.fromkeys((each.key for each, _ in chosen), given)
    if more is not None:
        for each, size in chosen:
            wanted[each.key] = reproduction.seeds_to_add(each, size, more, ledger=find_ledger(ledger))
    for each, size in chosen:
        reproduction.check_cost(each, size, yes=yes or dry_run, seeds=wanted[each.key])
    how["where"] = check_available(where)
    plans, missing = _plans(chosen, wanted, data_root)
    if dry_run:
        _print_plans(plans, _on_clusters(chosen, wanted) if is_cluster else None, json=json)
    if missing:
        raise DataError("\n".join(missing))
    if dry_run:
        return
    into = None if check else find_ledger(ledger)
    if into is not None:
        atomic.make_folder(into)  # before anything is measured
    failed, replacing = None, fresh
    if len(chosen) > 1 and not is_sequential(how["where"]):
        settings = {"seeds": given, "more": more, "fresh": fresh, "ledger": find_ledger(ledger)}
        chosen, failed = reproduction.measure_together(chosen, **settings, **how)  # type: ignore[arg-type]  # of many kinds
        fresh = False
    rows = []
    for each, size in chosen:
        if more is not None:
            row = reproduction.grow(each, size, more, ledger=find_ledger(ledger), **how)
        else:
            row = reproduction.reproduce(each, size, seeds=given, ledger=into, fresh=fresh, replacing=replacing, **how)
        rows.append(row)
        if not json:
            print_row(row, find_ledger(ledger))
    if json:
        print_json(rows)
    elif any(row["kind"] == "atlas" for row in rows):
        say_how_to_read()
    if any(row["scale"] == "smoke" for row in rows):
        say("Smoke only shows that an experiment runs: its numbers and verdicts mean nothing.")
    if failed is not None:
        raise failed
    if check:
        _check_against(find_ledger(ledger), rows)
    else:
        say(f"Written to {into}.")


def _print_plans(plans: list[dict[str, Any]], clusters: list[dict[str, Any]] | None, *, json: bool) -> None:
    """What would run; with `clusters`, also what it would cost on clusters of GPUs."""
    if json:
        print_json(plans if clusters is None else {"experiments": plans, "clusters": clusters})
    else:
        print_table(plans, ["key", "scale", "seeds", "parts", "cost", "needs"])
        print_clusters(clusters or [])


def _check_against(ledger: "Path | Layered", rows: list[dict[str, Any]]) -> None:
    """Raise if a claim is worse than in the ledger."""
    from evenly.papers.ledger import read
    from evenly.papers.reproduction import regressions

    unknown = [row for row in rows if read(ledger, row["key"], row["scale"]) is None]
    # A row that cannot be compared must not look like one that passed.
    worse = regressions(rows, ledger) + [
        f"{row['key']} at {row['scale']}: not in the ledger; without --check it is written" for row in unknown
    ]
    if worse:
        raise ClaimWorsened(f"against the ledger in {ledger}:\n  " + "\n  ".join(worse))
    say(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}, and none is worse than in the ledger.")


def _experiments(keys: list[str], *, every: bool) -> "list[Experiment]":
    from evenly.papers.catalogue import CATALOGUE, PAPERS, find

    if bool(keys) == every:
        raise UsageError("give the KEY of an experiment, of a paper, or --all; `evenly reproduce --list` shows them.")
    if every:
        return [*CATALOGUE.values()]
    experiments: dict[str, Experiment] = {}
    for key in keys:
        whole = [each for each in CATALOGUE.values() if key in PAPERS and each.key.startswith(f"{key}/")]
        experiments |= {each.key: each for each in whole or [find(key)]}
    return [*experiments.values()]


def _select(keys: list[str], scale: str, *, every: bool) -> "list[tuple[Experiment, str]]":
    """Experiments with their scales; of several, only those that have the scale."""
    from evenly.papers.catalogue import PAPERS
    from evenly.papers.ledger import resolve_scale

    named = _experiments(keys, every=every)
    if every or any(key in PAPERS for key in keys):
        able = [each for each in named if scale == "auto" or scale in each.scales or each.key in keys]
        if len(able) < len(named):
            say(f"{len(named) - len(able)} of {len(named)} experiments have no scale {scale} and are left out.")
        named = able
    chosen = [(each, resolve_scale(scale, each)) for each in named]
    for each, size in chosen:
        if scale not in ("auto", size):
            say(f"{each.key} has no scale {scale}: it runs at {size}, which takes minutes.")
    return chosen


def _without_long(chosen: "list[tuple[Experiment, str]]", keys: list[str]) -> "list[tuple[Experiment, str]]":
    """Of whole papers, the experiments that take ten hours at most; one that is named itself is asked about instead."""
    from evenly.papers.reproduction import LONG, cost

    kept = [(each, size) for each, size in chosen if each.key in keys or cost(each, size) <= LONG]
    if len(kept) < len(chosen):
        say(
            f"{len(chosen) - len(kept)} of {len(chosen)} experiments take more than ten hours and are left out: --yes "
            "includes them, and --dry-run shows what they take."
        )
    return kept


def _plans(
    chosen: "list[tuple[Experiment, str]]", wanted: Mapping[str, Sequence[int] | None], data_root: str | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The plan and the missing data; every mistake is reported here, before anything runs."""
    from evenly.papers.measurement import check
    from evenly.papers.reproduction import cost
    from evenly.report.wording import duration

    lines, missing = [], []
    for each, size in chosen:
        scale, seeds = each.scales[size], wanted[each.key]
        try:
            parts = check(each, size, seeds=seeds, data_root=data_root)
        except DataError as error:
            missing.append(str(error))
            parts = each.parts(size, seeds)
        lines.append(
            {
                "key": each.key,
                "scale": size,
                "seeds": len(seeds or scale.seeds),
                "parts": len(parts),
                "cost": f"about {duration(cost(each, size, seeds))} on two cores",
                "needs": ", ".join(scale.data),
            }
        )
    return lines, missing


def _on_clusters(
    chosen: "list[tuple[Experiment, str]]", wanted: Mapping[str, Sequence[int] | None]
) -> list[dict[str, Any]]:
    from evenly.papers.full_cost import costs, on_clusters

    return on_clusters(costs(chosen, wanted))


def find_ledger(given: Path | None) -> "Path | Layered":
    """The given ledger, else that in the current folder on top of the one that came with the software."""
    from evenly.files.layered import Layered
    from evenly.papers.ledger import shipped_ledger

    if given is not None:
        return given
    own, shipped = Path("claims"), shipped_ledger()
    return own if own.resolve() == shipped.resolve() else Layered(own, shipped)
