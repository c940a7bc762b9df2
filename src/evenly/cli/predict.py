"""`evenly predict`: the classes of new images by a finished run, without its training data."""

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evenly.cli.output import print_json, say
from evenly.cli.parser import Parser, add_json, add_trust
from evenly.errors import DataError, UsageError

if TYPE_CHECKING:
    from evenly.training.prediction import Predictions

EXAMPLES = """
  evenly predict 3f2a photos/ --out predictions.csv
  evenly predict runs/3f2a91c04b7d cat.jpg
  evenly predict exported/ photos/ --probabilities --json
"""
_NAMED = 5  # broken files that are named before the rest is counted


def fill(parser: Parser) -> None:
    """The arguments of `evenly predict`."""
    parser.calls(predict, examples=EXAMPLES)
    parser.add_argument("run_name", metavar="RUN", help="a run, its folder, or a folder of `evenly export --as hub`")
    parser.add_argument("images", metavar="IMAGES", nargs="+", help="image files, or folders with images below them")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a CSV file to write (default: print it)")
    parser.add_argument("--probabilities", action="store_true", help="add a column with the probability of every class")
    parser.add_argument("--skip-broken", action="store_true", help="accept files that do not decode")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="images at once (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, mps (default: the best there is)")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    add_trust(parser, "the run")
    add_json(parser)


def predict(
    *,
    run_name: str,
    images: list[str],
    out: Path | None,
    probabilities: bool,
    skip_broken: bool,
    batch_size: int,
    device: str,
    runs: str,
    force: bool,
    json: bool,
) -> None:
    """Write a row per image: file, class, probability."""
    from evenly.atomic import write_text
    from evenly.device import choose_device
    from evenly.memory import explain
    from evenly.training.prediction import load_run

    if out is not None and out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    if batch_size < 1:
        raise UsageError(f"--batch-size {batch_size}: give 1 or more.")
    trained = load_run(run_name, runs=runs)
    where = choose_device(device)
    with explain(where, f"Try --batch-size {max(1, batch_size // 2)}, or --device cpu."):
        trained.model.to(where)
        predictions = trained.predict(images, batch_size=batch_size, skip_broken=True)
    broken = predictions.skipped
    for path, reason in broken[:_NAMED]:
        say(f"left out: {path}: {reason}")
    if len(broken) > _NAMED:
        say(f"left out: {len(broken) - _NAMED:,} more")
    if not len(predictions):
        raise DataError(f"none of the {len(broken):,} files is an image that decodes.")
    if out is not None:
        # The name of a file may hold bytes that are no text: written as they are, they still name it.
        write_text(out, table(predictions, probabilities=probabilities), errors="surrogateescape")
        num = "1 image" if len(predictions) == 1 else f"{len(predictions):,} images"
        say(f"{out}: {num}{_counts(predictions)}.")
    if json:
        print_json(rows(predictions, probabilities=probabilities))
    elif out is None:
        sys.stdout.write(table(predictions, probabilities=probabilities))
    if broken and not skip_broken:
        count = "1 file does" if len(broken) == 1 else f"{len(broken):,} files do"
        raise DataError(
            f"{count} not decode and {'has' if len(broken) == 1 else 'have'} no row. Replace such files, or accept it "
            f"with --skip-broken{'' if out is None else ' --force'}."
        )


def rows(predictions: "Predictions", *, probabilities: bool) -> list[dict[str, object]]:
    """A row per image; with `probabilities`, a column for every class."""
    lines: list[dict[str, object]] = []
    for number, one in enumerate(predictions):
        line: dict[str, object] = {"file": one.name, "class": one.label, "probability": round(one.probability, 6)}
        if probabilities:
            values = predictions.probabilities[number].tolist()
            line |= {f"p({name})": round(p, 6) for name, p in zip(predictions.classes, values, strict=True)}
        lines.append(line)
    return lines


def table(predictions: "Predictions", *, probabilities: bool) -> str:
    """The rows as CSV."""
    lines = rows(predictions, probabilities=probabilities)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _counts(predictions: "Predictions") -> str:
    labels = predictions.labels
    counts = {name: labels.count(name) for name in predictions.classes}
    most = sorted(((n, name) for name, n in counts.items() if n), reverse=True)[:5]
    return ", most often " + ", ".join(f"{name} ({n:,})" for n, name in most)
