"""`evenly measure`: measurements of a run, stored in its records."""

from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root, add_trust, assignments
from evenly.cli.train import short_number
from evenly.errors import DataError, SetupError, UsageError, did_you_mean
from evenly.measurements import MEASUREMENTS

if TYPE_CHECKING:
    from evenly.recipe import Optimizer
    from evenly.records import Run
    from evenly.training.trained_model import TrainedModel

EXAMPLES = """
  evenly measure 3f2a sharpness importance rank
  evenly measure 3f2a adaptive_sharpness worst_group layer_probes
  evenly measure 3f2a learning_coefficient --set learning_coefficient.draws=2000
  evenly measure 3f2a rank --other 91c0
  evenly measure runs/3f2a91c04b7d --at-epochs 1,5,10 --json
  evenly measure runs/3f2a91c04b7d/checkpoints/epoch-0005.safetensors rank
"""


def fill(parser: Parser) -> None:
    """The arguments of `evenly measure`."""
    quick = [name for name, entry in MEASUREMENTS.items() if entry.quick]
    lines = "\n".join(f"  {name:21} {entry.help}" for name, entry in MEASUREMENTS.items())
    parser.calls(measure, examples=EXAMPLES)
    parser.epilog = f"measurements:\n{lines}"
    parser.add_argument("run_id", metavar="RUN", help="the ID of a run, its beginning, its folder, or its weights file")
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="*",
        default=[],  # otherwise argparse counts it among the required
        help=f"measurements, listed below (default: {', '.join(quick)}, as far as the data allow)",
    )
    parser.add_argument("--at-epochs", metavar="N,N", help="epochs whose weights were kept (default: the last)")
    parser.add_argument("--examples", type=int, default=1000, metavar="N", help="training examples (default: 1000)")
    parser.add_argument(
        "--rho",
        type=float,
        metavar="R",
        help=f"radius of {_taking('rho')} (default: 0.05; sam_edge: the run's own)",
    )
    parser.add_argument(
        "--other", metavar="RUN", help="also measure the loss along the line to the weights of this run"
    )
    parser.add_argument("--layer", help=f"layer whose input {_taking('layer')} read (default: the last linear one)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="WHAT.K=V", dest="changes", help="an option of one measurement"
    )
    parser.add_argument("--device", default="cpu", help="where to measure: cpu, cuda, mps, auto (default: cpu)")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    add_trust(parser, "RUN")
    add_root(parser)
    add_json(parser)


def measure(
    *,
    run_id: str,
    what: list[str],
    at_epochs: str | None,
    examples: int,
    rho: float | None,
    other: str | None,
    layer: str | None,
    changes: list[str],
    device: str,
    runs: str,
    data_root: str | None,
    json: bool,
) -> None:
    """Measure a run at its kept epochs, and record the results."""
    from evenly.device import choose_device
    from evenly.memory import explain
    from evenly.training.trained_model import load_trained, open_run

    where = choose_device(device)
    given = _options(changes, what)
    for setting, value in {"rho": rho, "layer": layer}.items():
        if value is not None:
            _check_taken(setting, value, what)
    run, pointed = open_run(run_id, runs)
    if pointed is not None and at_epochs is not None:
        raise UsageError(f"{run_id} is epoch {pointed} already: give --at-epochs {at_epochs} with {run.path} instead.")
    rows = []
    refused: dict[str, DataError] = {}
    is_stored = False
    for epoch in _epochs(at_epochs) if pointed is None else [pointed]:
        stored = load_trained(run, epoch=epoch, data_root=data_root)
        rates = (row["lr"] for row in run.metrics() if row.get("epoch") == stored.epoch and "lr" in row)
        lr = next((float(rate) for rate in rates if isinstance(rate, int | float)), None)
        with explain(where, f"Measure on fewer examples, such as --examples {examples // 2}, or with --device cpu."):
            stored.model.to(where)
            measured = _numbers(
                stored, what, examples=examples, rho=rho, layer=layer, lr=lr, given=given, refused=refused
            )
        if other is not None:
            measured |= _line_to(stored, run_id, other, examples=examples, runs=runs, data_root=data_root)
        if refused.keys() >= set(what) > set():
            break  # no results to record, at any epoch
        numbers = {"epoch": stored.epoch, **measured}
        name = f"measurements/epoch-{stored.epoch:04d}.json"
        before = run.read_json(name) if run.file(name).exists() else {}
        is_stored = store(run, name, {**before, **numbers})
        rows.append(numbers)
    run.close()
    if json and rows:
        print_json(rows[0] if at_epochs is None else rows)
    elif rows:
        for row in rows:
            print_table([{"what": k, "value": _words(k, v)} for k, v in row.items()], ["what", "value"])
        if is_stored:
            say(f"\nWritten to {run.path / 'measurements'}.")
    if refused:
        why = [f"{name} was not measured: {error}" for name, error in refused.items()]
        raise DataError("\n  ".join(why + [f"The rest is in {run.path / 'measurements'}."] * is_stored))


def store(run: "Run", name: str, value: Any) -> bool:
    """Write a result into a run's records; if that fails, warn, and let the caller show what took long to measure."""
    try:
        run.write_json(name, value)
    except SetupError as error:
        say(f"{name} was not stored: {error}")
        return False
    return True


def _numbers(
    stored: "TrainedModel",
    what: list[str],
    *,
    examples: int,
    rho: float | None,
    layer: str | None,
    lr: float | None,
    given: dict[str, dict[str, Any]],
    refused: dict[str, DataError],
) -> dict[str, Any]:
    from evenly.diagnostics.measure import measure as measure_model
    from evenly.rng import generator

    options: dict[str, dict[str, Any]] = {}
    if stored.recipe.loss != "auto":
        options = {name: {"loss": stored.recipe.loss} for name, entry in MEASUREMENTS.items() if "loss" in entry.takes}
    ascent, optimizer = stored.recipe.ascent, stored.recipe.optimizer
    if "sam_edge" in what:
        options.setdefault("sam_edge", {}).update(_momentum(optimizer))
    if rho is None and ascent.rule == "sam" and ascent.radius > 0:
        options.setdefault("sam_edge", {})["rho"] = ascent.radius
    options = {name: options.get(name, {}) | given.get(name, {}) for name in {**options, **given}}
    return measure_model(
        stored.model,
        stored.splits,
        *what,
        rng=generator(stored.recipe.seed, "measure"),
        examples=examples,
        rho=0.05 if rho is None else rho,
        layer=layer,
        lr=optimizer.lr if lr is None else lr,
        options=options,
        refused=refused,
    )


def _momentum(optimizer: "Optimizer") -> dict[str, Any]:
    """The settings of SGD that SAM's edge depends on; another optimizer has another edge, and is refused."""
    if optimizer.name.lower() != "sgd":
        raise UsageError(
            f"sam_edge: the run used {optimizer.name}, and the edge is known for SGD only. Leave sam_edge out; 'evenly "
            "stability threshold --run RUN' judges AdamW and Adam."
        )
    dampening = float(optimizer.options.get("dampening", 0.0))
    return {"momentum": optimizer.momentum, "nesterov": optimizer.nesterov, "dampening": dampening}


def _line_to(
    stored: "TrainedModel", run_id: str, other: str, *, examples: int, runs: str, data_root: str | None
) -> dict[str, Any]:
    """The loss between two runs, on the training examples of the first."""
    from evenly.diagnostics.measurement_data import even_part
    from evenly.diagnostics.mode_connectivity import connection_numbers, mode_connectivity
    from evenly.rng import generator
    from evenly.training.trained_model import load_trained, open_run

    run, epoch = open_run(other, runs)
    second = load_trained(run, epoch=epoch, data_root=data_root)
    run.close()
    part = even_part(stored.splits.train, examples, generator(stored.recipe.seed, "examples"))
    loss = None if stored.recipe.loss == "auto" else stored.recipe.loss
    return connection_numbers(mode_connectivity(stored.model, second.model, part, loss=loss), [run_id, other])


def _options(changes: list[str], what: list[str]) -> dict[str, dict[str, Any]]:
    """The options of `--set WHAT.K=V`, by measurement; one that is not taken needs none."""
    options: dict[str, dict[str, Any]] = {}
    taken = what or [name for name, entry in MEASUREMENTS.items() if entry.quick]
    for path, value in assignments(changes).items():
        name, dot, option = path.partition(".")
        if not (dot and option) or name not in MEASUREMENTS:
            raise UsageError(
                f"--set {path}: expected MEASUREMENT.OPTION=VALUE, such as m_sharpness.m=4. "
                f"{did_you_mean(name, MEASUREMENTS)}"
            )
        if name not in taken:
            raise UsageError(f"--set {path}: {name} is not measured here. Name it too: evenly measure RUN {name} …")
        options.setdefault(name, {})[option] = value
    return options


def _check_taken(setting: str, value: object, what: list[str]) -> None:
    """Refuse a setting that none of the named measurements depends on."""
    named = [MEASUREMENTS[name] for name in what if name in MEASUREMENTS]
    if 0 < len(named) == len(what) and not any(setting in entry.takes for entry in named):
        raise UsageError(
            f"--{setting} {value}: {', '.join(what)} would not depend on it; only {_taking(setting)} take it."
        )


def _taking(setting: str) -> str:
    """The measurements that take a setting, in words."""
    *most, last = (name for name, entry in MEASUREMENTS.items() if setting in entry.takes)
    return f"{', '.join(most)} and {last}"


def _epochs(text: str | None) -> list[int | None]:
    if text is None:
        return [None]
    if not all(part.strip().isdigit() for part in text.split(",")):
        raise UsageError(f"--at-epochs {text!r}: expected numbers such as 1,5,10.")
    return [int(part) for part in text.split(",")]


def _words(name: str, value: Any) -> str:
    """A value for the table: a curve or a map becomes a phrase, since pages draw it."""
    if name == "density":
        return f"{len(value['grid'])} points from {value['grid'][0]:.3g} to {value['grid'][-1]:.3g}"
    if name == "tail":
        return (
            f"{value['share']:.2%} of the eigenvalues are above {value['above']:.3g} and add {value['trace']:.3g} "
            f"to the trace; the negative ones take away {max(-value['negative'], 0.0):.3g}"
        )
    if name == "lorenz":
        middle = len(value["share"]) // 2
        held = f"{value['real'][middle]:.1%}, {value['phantom'][middle]:.1%} as SAM sees it"
        return f"the least important half of the examples holds {held}"
    if name == "importance_map":
        filled = sum(count > 0 for row in value["counts"] for count in row)
        return f"{len(value['counts'])} × {len(value['counts'][0])} cells, {filled} of them with examples"
    if name == "layer_probes":
        rows = [{name: v for name, v in row.items() if name not in ("layer", "features")} for row in value]
        errors = [", ".join(f"{name} {error:.1%}" for name, error in row.items()) for row in rows]
        return "; ".join(f"{row['layer']}: {said}" for row, said in zip(value, errors, strict=True))
    if name == "groups":
        return "; ".join(f"{row['name']}: {row['error']:.1%} of {row['examples']}" for row in value)
    if name == "mode_connectivity":
        return (
            f"loss {value['losses'][0]:.3g}, at most {max(value['losses']):.3g}, {value['losses'][-1]:.3g} on the line"
        )
    return ", ".join(map(short_number, value)) if isinstance(value, list) else short_number(value)
