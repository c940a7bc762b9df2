"""What `evenly reproduce` does besides running the experiments that are named: judge again, and run a campaign."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.verdicts import print_row
from evenly.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from evenly.files.layered import Layered

# The options that each takes besides --ledger, and why it takes no others.
_WHERE = ("on", "gpus", "memory", "threads_per_run", "devices_per_run", "time", "account")
_TAKES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "listing": (("json",), "it lists every experiment"),
    "judge": (("dry_run",), "it judges every row of the ledger and measures nothing"),
    "campaign": (
        ("hours", "dry_run", "runs", "data_root", "json", *_WHERE),
        "it chooses experiments and seeds by itself, and --more N adds seeds to an experiment that you name",
    ),
}
_UNSET: Mapping[str, Any] = {"scale": "auto", "runs": "runs", "devices_per_run": 1}
_SPELLED = {"keys": "KEY", "listing": "--list", "every": "--all", "campaign": "--next"}


def refuse_ignored(given: Mapping[str, Any]) -> None:
    """Refuse options that `--list`, `--judge` or `--next` would ignore, such as --fresh with --judge."""
    mode = next((mode for mode in _TAKES if given[mode]), None)
    if mode is None:
        return
    takes, why = _TAKES[mode]
    wrong = [
        _spelled(name)
        for name, value in given.items()
        if name not in (mode, "ledger", *takes) and value != _UNSET.get(name) and value is not False and value != []
    ]
    if wrong:
        words = f"{', '.join(wrong[:-1])} and {wrong[-1]}" if len(wrong) > 1 else wrong[0]
        out = "them" if len(wrong) > 1 else "it"
        raise UsageError(f"{_spelled(mode)} does not take {words}: {why}. Leave {out} out.")


def _spelled(name: str) -> str:
    return _SPELLED.get(name, f"--{name.replace('_', '-')}")


def judge(ledger: "Path | Layered", *, dry_run: bool) -> None:
    """Judge all rows again, and tell the verdicts that change."""
    from evenly.papers import ledger as book
    from evenly.papers.reproduction import judge_all

    if not any(True for _ in book.rows(ledger)):
        raise UsageError(f"there are no rows in {ledger}. Give the folder of a ledger: --ledger claims")
    changed = judge_all(ledger, dry_run=dry_run)
    say("\n".join(changed) if changed else f"Every verdict in {ledger} stays as it is.")


def run_campaign(
    ledger: "Path | Layered", hours: float | None, how: Mapping[str, Any], *, dry_run: bool, json: bool
) -> None:
    """Run, or show, what is worth the most per hour."""
    from evenly.papers import campaign

    at_once = campaign.runs_at_once(how["where"])
    if dry_run:
        steps = campaign.steps(ledger, at_once=at_once)
        if json:
            print_json([step.as_dict() for step in steps])
        elif steps:
            rows = [{"next": str(step), "value an hour": f"{step.rate:.3g}"} for step in steps]
            print_table(rows, ["next", "value an hour"])
        say(campaign.summary(steps))
        return
    grown = []
    try:
        for row in campaign.run(ledger=ledger, hours=hours, **how):
            grown.append(row)
            if not json:
                print_row(row, ledger)
    finally:  # also when the time is up
        if json:
            print_json(grown)
    say(f"{campaign.summary(campaign.steps(ledger, at_once=at_once))} Rows are in {ledger}.")
