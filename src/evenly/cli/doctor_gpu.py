"""`evenly doctor --gpu`: the checks that only a machine with a GPU can make, as a report to paste into an issue."""

from typing import Any

from evenly.cli.output import print_json, print_table, say
from evenly.errors import SetupError


def report(*, json: bool) -> int:
    """Run all checks on the first and the last GPU; exit code 4 without a GPU, 1 if a check fails."""
    from evenly.device import accelerator, facts
    from evenly.environment import stamp
    from evenly.training.gpu.checks import CHECKS, ask, devices_to_check

    kind, count = accelerator()
    if kind is None:
        rows = [{"check": check.name, "asks": check.asks, "found": "not asked"} for check in CHECKS]
        if json:
            print_json({"environment": stamp(), "devices": [], "checks": rows})
        else:
            print_table(rows, ["check", "asks"], title="The checks of a GPU")
        raise SetupError(
            "this torch sees no GPU, so nothing was checked. Run it on a machine with one: CUDA, ROCm, XPU or Apple."
        )
    devices = devices_to_check(count, kind)
    answers: list[dict[str, Any]] = []
    for device in devices:
        for row in ask(device):
            say(f"{row['device']} {row['check']}: {row['found']}")
            answers.append(row)
    result = {"environment": stamp(), "devices": [facts(device) for device in devices], "checks": answers}
    if json:
        print_json(result)
    else:
        _print(result)
    wrong = [f"{row['check']} on {row['device']}" for row in answers if not row["right"]]
    if wrong:
        say(f"\nNot as it should be: {', '.join(wrong)}. Please open an issue and paste this report into it.")
    return int(bool(wrong))


def _print(told: dict[str, Any]) -> None:
    versions = told["environment"]
    print("```text")
    for name in ("evenly", "python", "system", "machine", "cpu"):
        print(f"{name}: {versions[name]}")
    print(f"torch: {versions['libraries']['torch']}")
    for facts in told["devices"]:
        print("; ".join(f"{name}: {value}" for name, value in facts.items()))
    print_table(
        [row | {"right": "yes" if row["right"] else "NO"} for row in told["checks"]],
        ["device", "check", "right", "found"],
    )
    print("```")
