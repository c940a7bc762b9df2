"""`evenly export`: a run's network, or the training set that it resampled, for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, say
from evenly.cli.parser import Parser, add_json, add_root, add_trust, assignments
from evenly.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.data import Labelled
    from evenly.records import Run
    from evenly.resampling import Separation

EXAMPLES = """
  evenly export runs/3f2a91c04b7d --as csv
  evenly export separation.csv --as indices --out indices.npy
  evenly export 3f2a --as folder --out upsampled/
  evenly export 3f2a --as onnx --out network.onnx
  evenly export 3f2a --as hub --out exported/
"""
NETWORKS = {"torchscript": "network.pt", "onnx": "network.onnx", "hub": "exported"}
OUT = {"indices": "indices.npy", "csv": "upsampled.csv", "folder": "upsampled", **NETWORKS}


def fill(parser: Parser) -> None:
    """The arguments of `evenly export`."""
    parser.calls(export, examples=EXAMPLES)
    parser.add_argument("source", metavar="RUN", help="a run, or a file of `evenly separate`")
    parser.add_argument(
        "--as",
        dest="form",
        choices=sorted(OUT),
        required=True,
        help="of the training set: csv, rows with a column `repeat`, which `evenly train FILE` reads; folder, links in "
        "a folder per class (both list the test and validation images too); indices, positions. Of the "
        "network: torchscript; onnx; hub, a folder with safetensors, config and model card (nothing is uploaded)",
    )
    parser.add_argument("--out", type=Path, help=f"where to write (default: {', '.join(OUT.values())})")
    parser.add_argument(
        "--factor", type=int, metavar="K", help="how often a hard example is shown (default: the run's, or 2)"
    )
    parser.add_argument("--data", metavar="DATA", help="the data, where a file of `evenly separate` does not name them")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        dest="options",
        help="an option of --data, such as held_out=0",
    )
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    parser.add_argument("--force", action="store_true", help="replace what exists")
    add_trust(parser, "the run")
    add_root(parser)
    add_json(parser)


def export(
    *,
    source: str,
    form: str,
    out: Path | None,
    factor: int | None,
    data: str | None,
    options: list[str],
    runs: str,
    force: bool,
    data_root: str | None,
    json: bool,
) -> None:
    """Write the network, or the training set with its repeats, in the form asked for."""
    out = out or Path(OUT[form])
    if out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    if options and data is None:
        raise UsageError(f"--set {options[0]} is an option of the data: give them too, --data DATA.")
    if form in NETWORKS:
        _export_network(source, form, out, runs=runs, json=json)
        return
    from evenly.data.formats.image_files import ImageFiles
    from evenly.resampling import exports, load

    path, run = _separation_of(source, runs)
    separation, files = load(path), None
    attributes: dict[str, list[str]] = {}
    chosen: int | Tensor = 2 if factor is None else factor
    once: Tensor | None = None
    held_out: dict[str, Labelled] = {}
    if run is not None:
        chosen, once = _as_trained(run, separation, factor, data_root)
    if form != "indices" or data is not None:
        separation, train, held_out = _with_data(separation, run, data, assignments(options), data_root)
        if train is not None and isinstance(train.inputs, ImageFiles):
            files = [train.inputs.root / name for name in train.inputs.names]
            attributes = exports.attribute_cells(train)
    how: dict[str, Any] = {"factor": chosen, "once": once}
    if form == "indices":
        exports.write_indices(separation, out, **how)
    elif form == "csv":
        exports.write_csv(separation, out, files=files, held_out=held_out, attributes=attributes, **how)
    elif files is None:
        raise UsageError("--as folder makes links to image files, and these data are not files. Use csv or indices.")
    else:
        exports.write_links(separation, out, files=files, held_out=held_out, **how)
    repeat_N = separation.repeats(**how)
    num, more = int(repeat_N.sum()), int((repeat_N > 1).sum())
    facts = {"out": str(out), "examples": len(separation), "hard": separation.num_hard, "with_repeats": num}
    if json:
        print_json(facts | {"repeated": more})
    else:
        print(out)
        often = sorted(set(repeat_N[repeat_N > 1].tolist()))
        times = f"{often[0]} to {often[-1]}" if len(often) > 1 else often[0] if often else chosen
        say(f"{len(separation):,} examples, {more:,} of them {times} times: {num:,} in all.")
        if held_out and form != "indices":
            others = " and ".join(f"{len(part):,} of {split}" for split, part in held_out.items())
            where = f"in folders beside {out / 'train'}" if form == "folder" else "in rows with repeat 0"
            say(f"The examples that are held out ({others}) are {where}.")


def _export_network(source: str, form: str, out: Path, *, runs: str, json: bool) -> None:
    from evenly.integrations import network_files
    from evenly.training.prediction import load_run

    write = {
        "torchscript": network_files.write_torchscript,
        "onnx": network_files.write_onnx,
        "hub": network_files.write_hub,
    }[form]
    _check_replaceable(form, out)
    trained = load_run(source, runs=runs)
    difference = write(trained, out)
    if json:
        facts = {"out": str(out), "classes": list(trained.classes), "inputs": list(trained.preprocess.model_shape)}
        print_json(facts | {"largest_difference": difference})
    else:
        print(out)
        say(f"Read back, it gives the network's own outputs (largest difference {difference:.2g}).")


def _check_replaceable(form: str, out: Path) -> None:
    """Refuse to replace anything but an earlier export: a folder may hold a person's own files."""
    from evenly.integrations.network_files import HUB

    if form != "hub":
        if out.is_dir():
            raise UsageError(f"{out} is a folder, and --as {form} writes a file: give --out {out / OUT[form]}")
        return
    if out.is_file():
        raise UsageError(f"{out} is a file, and --as hub writes a folder: give another --out.")
    foreign = sorted(path.name for path in out.iterdir() if path.name not in HUB) if out.is_dir() else []
    if foreign:
        more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise UsageError(
            f"{out} holds {foreign[0]!r}{more}, which evenly did not export: it is not replaced. Give another --out."
        )


def _separation_of(source: str, runs: str) -> "tuple[Path, Run | None]":
    """The file that holds a separation, and the run it belongs to, if any."""
    given = Path(source)
    if given.is_file():
        return given, None
    from evenly.records import Run

    if (given.suffix or given.name != source) and not given.is_dir():
        raise DataError(
            f"{source}: there is no such file or run's folder. `evenly separate` writes such files; `evenly runs` "
            "lists the runs."
        )
    run = Run.open(source, runs)
    path = run.path / "separation.csv"
    if not path.is_file():
        method = run.recipe.get("resampling", {}).get("method", "none")
        raise UsageError(
            f"run {run.id} trained on the data as they are (resampling.method={method}), so there is nothing to "
            "export. `evenly useful` makes runs that can be."
        )
    return path, run


def _as_trained(
    run: "Run", separation: "Separation", factor: int | None, data_root: str | None
) -> "tuple[int | Tensor, Tensor | None]":
    """How often the run showed a hard example, unless `factor` overrides it, and the hard rows that it showed once."""
    from evenly.records import Run
    from evenly.training.recorded_recipe import recorded_recipe
    from evenly.training.selection import WEIGHING
    from evenly.training.separations import suspect_rows

    wanted = recorded_recipe(run).resampling
    if wanted.method in WEIGHING and factor is None:
        raise UsageError(
            f"run {run.id} saw every example once and multiplied the losses of hard ones by {wanted.factor}"
            f"{' (before all were divided by their mean)' * (wanted.method == 'reweight')}. To repeat them instead, "
            f"say so: --factor {wanted.factor}."
        )
    if wanted.copies == "balance" and factor is None:
        return _repeats_in_training(run, separation, data_root), None
    factor = wanted.factor if factor is None else factor
    if wanted.keep_suspects:
        return factor, None
    try:
        early = Run.open(str(wanted.early), run.path.parent)
    except UsageError as error:
        raise DataError(
            f"run {run.id} did not repeat suspect examples, and the early run that identified them is gone: {error}"
        ) from error
    return factor, suspect_rows(early, separation)


def _repeats_in_training(run: "Run", separation: "Separation", data_root: str | None) -> "Tensor":
    """How often the run showed each row, where that differs between clusters: by its early run, as in training."""
    import torch

    from evenly.resampling import matching
    from evenly.training.recorded_recipe import recorded_recipe
    from evenly.training.selection import select
    from evenly.training.trained_model import data_of

    train = data_of(run, data_root=data_root).train
    position_M = select(recorded_recipe(run), runs=run.path.parent, data=train).indices
    assert position_M is not None  # only weights have none
    return torch.bincount(position_M, minlength=len(train))[
        matching.positions(train, separation.index, separation.labels)
    ]


def _with_data(
    separation: "Separation", run: "Run | None", data: str | None, options: dict[str, Any], data_root: str | None
) -> "tuple[Separation, Labelled | None, dict[str, Labelled]]":
    """The separation with the names of the data's classes, its image files, and the splits beside them."""
    if run is None and data is None:
        return separation, None, {}
    from dataclasses import replace

    from evenly.data import load
    from evenly.data.formats.image_files import ImageFiles
    from evenly.resampling import matching
    from evenly.training.trained_model import data_of

    splits = data_of(run, data_root=data_root) if run is not None else load(str(data), root=data_root, **options)
    train = splits.train
    index_N = separation.index
    if run is None and len(train) == len(separation) and sorted(index_N.tolist()) == list(range(len(train))):
        index_N = train.index[index_N]  # outputs of another program number the training examples from 0
    rows = train.subset(matching.positions(train, index_N, separation.labels))
    beside = {split: splits[split] for split in ("validation", "test") if split in splits}
    held_out = {split: part for split, part in beside.items() if isinstance(part.inputs, ImageFiles)}
    is_listed = isinstance(train.inputs, ImageFiles)
    return replace(separation, classes=train.classes), rows if is_listed else None, held_out if is_listed else {}
