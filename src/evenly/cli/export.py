"""`evenly export`: the resampled training set of a run, for whatever trainer comes next."""

from pathlib import Path
from typing import Any

from evenly.cli.output import print_json, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.errors import UsageError

EXAMPLES = """
  evenly export runs/3f2a91c04b7d --as csv
  evenly export separation.csv --as indices --out indices.npy
  evenly export 3f2a --as folder --out upsampled/
"""
OUT = {"indices": "indices.npy", "csv": "upsampled.csv", "folder": "upsampled"}


def fill(parser: Parser) -> None:
    """The arguments of `evenly export`."""
    parser.calls(export, examples=EXAMPLES)
    parser.add_argument("source", metavar="RUN", help="a run of `evenly useful`, or a file of `evenly separate`")
    parser.add_argument("--as", dest="form", choices=sorted(OUT), required=True, help="what to write")
    parser.add_argument("--out", type=Path, help="where (default: indices.npy, upsampled.csv or upsampled/)")
    parser.add_argument(
        "--factor", type=int, metavar="K", help="how often a hard example is shown (default: the run's, or 2)"
    )
    parser.add_argument("--data", metavar="DATA", help="the data, where a file of `evenly separate` does not name them")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    parser.add_argument("--force", action="store_true", help="replace what exists")
    add_root(parser)
    add_json(parser)


def export(
    *,
    source: str,
    form: str,
    out: Path | None,
    factor: int | None,
    data: str | None,
    runs: str,
    force: bool,
    data_root: str | None,
    json: bool,
) -> None:
    """Write the multiset in the form asked for."""
    from evenly.resampling import exports, load

    out = out or Path(OUT[form])
    path, recipe = _found(source, runs)
    if out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    separation = load(path)
    if factor is None:
        factor = 2 if recipe is None else recipe["resampling"]["factor"]
    files = None
    if form != "indices":
        files = _files(recipe, data, data_root)
    if form == "indices":
        exports.write_indices(separation, out, factor=factor)
    elif form == "csv":
        exports.write_csv(separation, out, factor=factor, files=files)
    elif files is None:
        raise UsageError("--as folder makes links to image files, and these data are not files. Use csv or indices.")
    else:
        exports.write_links(separation, out, files=files, factor=factor)
    num = len(separation) + separation.num_hard * (factor - 1)
    facts = {"out": str(out), "examples": len(separation), "hard": separation.num_hard, "with_repeats": num}
    if json:
        print_json(facts)
    else:
        print(out)
        say(f"{len(separation):,} examples, {separation.num_hard:,} of them {factor} times: {num:,} in all.")


def _found(source: str, runs: str) -> tuple[Path, dict[str, Any] | None]:
    if Path(source).is_file():
        return Path(source), None
    from evenly.records import Run

    run = Run.open(source, runs)
    path = run.path / "separation.csv"
    if not path.is_file():
        method = run.recipe.get("resampling", {}).get("method", "none")
        raise UsageError(
            f"run {run.id} trained on the data as they are (resampling.method={method}), so there is nothing to "
            "export. `evenly useful` makes runs that can be."
        )
    return path, run.recipe


def _files(recipe: dict[str, Any] | None, data: str | None, data_root: str | None) -> list[Path] | None:
    """The image files behind the training examples, where there are any."""
    if recipe is None and data is None:
        return None
    from evenly.data import load
    from evenly.data.formats.image_files import ImageFiles
    from evenly.recipe import Recipe, from_mapping
    from evenly.training.parts import load_data

    if recipe is not None:
        splits = load_data(from_mapping(Recipe, recipe), data_root=data_root)
    else:
        splits = load(str(data), root=data_root)
    inputs = splits.train.inputs
    return [inputs.root / file for file in inputs.names] if isinstance(inputs, ImageFiles) else None
