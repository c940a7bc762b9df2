"""`evenly stability`: learning rates at which SGD, noisy SGD and SAM are stable, by every criterion and exactly."""

from pathlib import Path
from typing import Any

from evenly.cli.measure import store
from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root, add_trust, verb
from evenly.cli.train import short_number
from evenly.errors import DataError, UsageError

SOLUTIONS = "  evenly stability solutions --c 2,3,4,5"
MAP = "  evenly stability map --out figure1.png"
THRESHOLD = """  evenly stability threshold --run 3f2a
  evenly stability threshold --run 3f2a --examples 1000 --draws 5
  evenly stability threshold --gram gram.npy --batch 32 --momentum 0.9"""
SCHEMES = ["bernoulli", "without", "with"]
NUM_EXAMPLES, NUM_DRAWS = 500, 3


def fill(parser: Parser) -> None:
    """The verbs of `evenly stability` and their arguments."""
    parser.examples = "\n".join((SOLUTIONS, MAP, THRESHOLD))
    inner = parser.add_subparsers(metavar="VERB", required=True, title="verbs")
    table = verb(inner, "solutions", solutions, help="the (C, r)-solutions of parity, side by side", examples=SOLUTIONS)
    table.add_argument("--c", default="2,3,4,5", metavar="C,C", help="which C (default: %(default)s)")
    table.add_argument("--d", type=int, default=100, help="dimensions (default: %(default)s)")
    table.add_argument("--n", type=int, default=100, help="examples (default: %(default)s)")
    table.add_argument("--batch", type=int, default=10, help="batch size (default: %(default)s)")
    picture = verb(inner, "map", draw, help="figure 1: where training diverges over (B, σ)", examples=MAP)
    picture.add_argument("--out", type=Path, default=Path("figure1.png"), help="the picture (default: %(default)s)")
    picture.add_argument("--lr", type=float, default=0.5, help="learning rate (default: %(default)s)")
    picture.add_argument("--ratios", default="0.25", metavar="R,R", help="ρ/α of SAM (default: %(default)s)")
    picture.add_argument("--repeats", type=int, default=10, help="runs per cell (default: %(default)s)")
    picture.add_argument("--steps", type=int, default=1000, help="steps per run (default: %(default)s)")
    picture.add_argument("--force", action="store_true", help="replace the picture if it exists")
    bound = verb(
        inner, "threshold", threshold, help="where a trained network's learning rate stands", examples=THRESHOLD
    )
    bound.add_argument(
        "--run", dest="run_id", metavar="RUN", help="the ID of a run, its beginning, or its folder or weights"
    )
    bound.add_argument("--gram", type=Path, metavar="FILE", help="an .npy file with the Gram matrix")
    bound.add_argument("--batch", type=int, help="batch size (default: the run's; --gram needs it)")
    bound.add_argument("--lr", type=float, help="learning rate (default: the run's initial one)")
    bound.add_argument(
        "--sampling", choices=SCHEMES, help="how batches are drawn (default: without; --gram: bernoulli)"
    )
    bound.add_argument("--examples", type=int, metavar="N", help=f"training examples (default: {NUM_EXAMPLES})")
    bound.add_argument("--draws", type=int, metavar="N", help=f"random draws of them (default: {NUM_DRAWS})")
    bound.add_argument("--optimizer", choices=["sgd", "adamw"], help="judge the run as if trained with this optimizer")
    bound.add_argument("--ascent", choices=["none", "sam"], help="judge the run as trained with this ascent")
    bound.add_argument("--momentum", type=float, metavar="B", help="SGD's momentum (--gram only; default: 0)")
    bound.add_argument("--weight-decay", type=float, metavar="L", help="SGD's weight decay (--gram only; default: 0)")
    bound.add_argument(
        "--ratio", type=float, metavar="R", help="ρ/α of SAM (default: measured from the run's ρ; --gram: 0.1)"
    )
    bound.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    add_trust(bound, "RUN")
    add_root(bound)
    for each in (table, picture):
        each.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    table.add_argument("--ratio", type=float, default=0.1, metavar="R", help="ρ/α of SAM (default: %(default)s)")
    for each in (table, picture, bound):
        add_json(each)


def solutions(*, c: str, d: int, n: int, batch: int, ratio: float, seed: int, json: bool) -> None:
    """Print a row per solution."""
    from evenly.rng import generator
    from evenly.stability import solutions_table

    rng = generator(seed, "solutions")
    rows = solutions_table(_whole(c, "--c"), rng=rng, d=d, n=n, batch=batch, rho_over_alpha=ratio)
    if json:
        print_json(rows)
        return
    columns = ["c", "trace", "lambda_max", "sigma", "eta_criterion", "eta_exact", "eta_theorem_3_2", "eta_exact_sam"]
    print_table([{name: _words(row[name]) for name in columns} for row in rows], columns)
    say(
        "\nThe criterion is the same for every C; the exact threshold rises with C: coherent solutions are less stable."
    )


def draw(*, out: Path, lr: float, ratios: str, repeats: int, steps: int, force: bool, seed: int, json: bool) -> None:
    """Simulate every cell and draw it with the lines of theory."""
    if out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    from evenly.report.stability_map import figure
    from evenly.report.static import save
    from evenly.rng import generator
    from evenly.stability import stability_map

    simulated = stability_map(
        rng=generator(seed, "map"), lr=lr, rho_over_alpha=_numbers(ratios), repeats=repeats, steps=steps
    )
    names = [method.name for method in simulated.methods]
    arrays = {
        name: getattr(simulated, name).numpy() for name in ("diverged", "criterion_lr", "mean_square_lr", "exponent")
    }
    save(figure(names, simulated.batches, simulated.sigmas, lr=lr, **arrays), out)
    agreement = {
        name: float((arrays["diverged"][i] == (arrays["exponent"][i] > 0)).mean()) for i, name in enumerate(names)
    }
    if json:
        print_json({"out": str(out), "diverged": {n: float(arrays["diverged"][i].mean()) for i, n in enumerate(names)},
                    "agrees_with_lyapunov": agreement})  # fmt: skip
    else:
        print(out)
        for name, share in agreement.items():
            say(f"{name}: the simulation agrees with the almost-sure line in {share:.1%} of the cells.")


def threshold(
    *,
    run_id: str | None,
    gram: Path | None,
    batch: int | None,
    lr: float | None,
    sampling: str | None,
    examples: int | None,
    draws: int | None,
    optimizer: str | None,
    ascent: str | None,
    momentum: float | None,
    weight_decay: float | None,
    ratio: float | None,
    runs: str,
    data_root: str | None,
    json: bool,
) -> None:
    """Print a learning rate beside the criteria."""
    if (run_id is None) == (gram is None):
        raise UsageError("give either --run RUN or --gram FILE.")
    if gram is not None:
        of_runs = {"--examples": examples, "--draws": draws, "--optimizer": optimizer, "--ascent": ascent,
                   "--data-root": data_root}  # fmt: skip
        for name, given in of_runs.items():
            if given is not None:
                raise UsageError(
                    f"{name} {given}: a Gram matrix has no run to apply it to. Leave it out, or give --run."
                )
        report = _of_gram(gram, batch, lr, ratio, sampling, momentum, weight_decay)
    else:
        for name, value in (("--momentum", momentum), ("--weight-decay", weight_decay)):
            if value is not None:
                raise UsageError(f"{name} {value:g}: it is read from the run's recipe. Leave it out, or give --gram.")
        num, repeats = NUM_EXAMPLES if examples is None else examples, NUM_DRAWS if draws is None else draws
        report = _of_run(str(run_id), batch, lr, ratio, sampling, num, repeats, (optimizer, ascent), runs, data_root)
    if json:
        print_json(report)
        return
    _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    facts = ("num_examples", "population", "draws", "batch", "sampling", "lr", "lr_initial", "lr_last",
             "rho_over_alpha", "trace", "lambda_max", "rank")  # fmt: skip
    print_table(
        [{"what": k, "value": short_number(report[k])} for k in facts if report.get(k) is not None], ["what", "value"]
    )
    for name, method in report["methods"].items():
        print()
        judged = any(row["lr_over_eta"] is not None for row in method["criteria"])
        rows = [
            {"criterion": row["name"], "critical lr": _words(row["eta"])}
            | ({"lr over it": short_number(row["lr_over_eta"])} if judged else {})
            for row in method["criteria"]
        ]
        facing = [f"σ = {method['sigma']:.4g}"] if method.get("sigma") is not None else []
        facing.append(f"max λmax(H_i) = {method['largest_example']:.4g}")
        if method.get("eta_interval"):
            facing.append("95% interval of the threshold {:.4g} to {:.4g}".format(*method["eta_interval"]))
        columns = ["criterion", "critical lr", *(["lr over it"] if judged else [])]
        print_table(rows, columns, title=f"{name}: {method['stands']}; {', '.join(facing)}")
    if report["notes"]:
        say("")
    for note in report["notes"]:
        say(note)


def _of_run(
    run_id: str,
    batch: int | None,
    lr: float | None,
    ratio: float | None,
    sampling: str | None,
    examples: int,
    draws: int,
    judged: tuple[str | None, str | None],
    runs: str,
    data_root: str | None,
) -> dict[str, Any]:
    from dataclasses import replace

    from evenly.diagnostics.measurement_data import random_part
    from evenly.memory import explain
    from evenly.rng import generator
    from evenly.stability.recipe_method import method_of
    from evenly.stability.run_thresholds import run_report
    from evenly.training.trained_model import load_trained, open_run

    for option, value in (("--examples", examples), ("--draws", draws)):
        if value < 1:
            raise UsageError(f"{option} {value}: give 1 or more.")
    run, epoch = open_run(run_id, runs)
    stored = load_trained(run, epoch=epoch, data_root=data_root)
    train, recipe = stored.splits.train, stored.recipe
    optimizer, ascent = judged
    method = method_of(recipe, optimizer=optimizer, ascent=ascent, ratio=ratio)  # type: ignore[arg-type]  # argparse knows the choices
    settings: Any = dict(method.settings)
    if sampling is not None:
        settings["sampling"] = sampling
    method = replace(method, settings=settings, batch=recipe.batch_size if batch is None else batch)
    if method.batch > len(train) and settings["sampling"] != "with":
        whose = f"the run's batch of {method.batch}" if batch is None else f"--batch {batch}"
        raise UsageError(
            f"the run has {len(train)} training examples, fewer than {whose}: give --batch {len(train)} or less, or "
            "--sampling with."
        )
    num = draws if examples < len(train) else 1
    parts = [random_part(train, examples, generator(recipe.seed, "examples", draw)) for draw in range(num)]
    first = recipe.optimizer.lr
    last = next((float(row["lr"]) for row in run.metrics() if row["epoch"] == stored.epoch and "lr" in row), None)
    with explain("cpu", f"Judge the run by fewer examples, such as --examples {max(1, examples // 2)}."):
        report = run_report(
            stored.model,
            train,
            parts,
            method,
            lr=first if lr is None else lr,
            rng=generator(recipe.seed, "stability"),
            loss=None if recipe.loss == "auto" else recipe.loss,
        )
    report |= {"lr_initial": first, "lr_last": last, "notes": [_rate_sentence(lr, first, last), *report["notes"]]}
    store(run, "stability.json", {"epoch": stored.epoch, "examples": len(parts[0]), **report})
    run.close()
    return report


def _rate_sentence(lr: float | None, first: float, last: float | None) -> str:
    """A sentence that says which learning rate the report judges."""
    if last is None or last == first:
        course = f"the run had {first:.3g}"
    else:
        course = f"the run began with {first:.3g} and ended with {last:.3g}"
    if lr is not None:
        return f"Judged at --lr {lr:g}; {course}."
    other = "" if last is None or last == first else f": give --lr {last:.3g} to judge there"
    return f"Judged at the initial learning rate; {course}{other}."


def _of_gram(
    path: Path,
    batch: int | None,
    lr: float | None,
    ratio: float | None,
    sampling: str | None,
    momentum: float | None,
    weight_decay: float | None,
) -> dict[str, Any]:
    import torch

    from evenly.memory import explain
    from evenly.stability import threshold_report

    with explain("cpu", f"Give the Gram matrix of fewer examples than that in {path}."):
        matrix = torch.from_numpy(_matrix(path))
        if batch is None:
            raise UsageError(f"--gram {path}: give --batch too: there is no run to read it from. Try --batch 32")
        return threshold_report(
            matrix,
            batch=batch,
            lr=lr,
            rho_over_alpha=0.1 if ratio is None else ratio,
            sampling=sampling or "bernoulli",  # type: ignore[arg-type]  # argparse knows the choices
            momentum=momentum or 0.0,
            weight_decay=weight_decay or 0.0,
        )


def _matrix(path: Path) -> Any:
    """The numbers of an .npy file, in double precision."""
    import numpy as np

    from evenly.files.numpy_files import read_npy

    wanted = "Write one with numpy.save('gram.npy', K), K an n × n matrix of real numbers."
    if not path.exists():
        raise DataError(f"{path} does not exist. {wanted}")
    array = read_npy(path, advice=wanted)
    if array.dtype.kind not in "fiu":
        raise DataError(f"{path} holds {array.dtype}, not real numbers. {wanted}")
    return array.astype(np.float64)


def _words(value: Any) -> str:
    """A critical learning rate in words; None is infinite."""
    return "∞" if value is None or value == float("inf") else short_number(value)


def _whole(text: str, option: str) -> list[int]:
    if not all(part.strip().isdigit() for part in text.split(",")):
        raise UsageError(f"{option} {text!r}: expected whole numbers such as 2,3,4.")
    return [int(part) for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--ratios {text!r}: expected numbers such as 0.1,0.25.") from error
