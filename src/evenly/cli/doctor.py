"""`evenly doctor`: what is installed, which device there is, which data are found, and how to get what is missing."""

from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.errors import SetupError

# The use of each optional package, and the extra that installs it.
EXTRAS = {
    "pyarrow": ("parquet", "Parquet manifests"),
    "torchvision": ("vision", "torchvision models"),
    "timm": ("timm", "timm models"),
    "tensorboard": ("tensorboard", "metrics for TensorBoard"),
    "datasets": ("datasets", "data sets of Hugging Face (hf:NAME)"),
    "onnx": ("onnx", "networks as ONNX files"),
}


def fill(parser: Parser) -> None:
    """The arguments of `evenly doctor`."""
    parser.calls(doctor, examples="evenly doctor\nevenly doctor --gpu\nevenly doctor --json")
    parser.add_argument("--gpu", action="store_true", help="check the GPU, and print a report to share")
    add_root(parser)
    add_json(parser)


def doctor(*, gpu: bool, data_root: str | None, json: bool) -> int:
    """Print the state of this installation; exit code 4 where it cannot work."""
    if gpu:
        from evenly.cli.doctor_gpu import report as test_gpu

        return test_gpu(json=json)
    from evenly.data.catalogue import data_root as root_of
    from evenly.environment import stamp

    trouble: list[str] = []
    root = root_of(data_root)
    device = _device(trouble)  # first, since it imports torch: the stamp then knows threads and devices
    report = {
        "environment": stamp(),
        "device": device,
        "packages": _packages(),
        "data_root": {"path": str(root), "exists": root.is_dir()},
        "data": _data(root),
        "trouble": trouble,
    }
    if json:
        print_json(report)
    else:
        _print(report)
    if trouble:
        raise SetupError("; ".join(trouble))
    return 0


def _device(trouble: list[str]) -> dict[str, Any]:
    try:
        import torch
    except (ImportError, OSError) as error:
        trouble.append(f"torch does not import ({error}): reinstall it")
        return {"kind": "none"}
    from evenly.device import accelerator

    kind, count = accelerator()
    return {"kind": kind or "cpu", "number": count or 1, "threads": torch.get_num_threads()}


def _packages() -> list[dict[str, str]]:
    rows = []
    for package, (extra, purpose) in EXTRAS.items():
        try:
            state = metadata.version(package)
            import_module(package)
        except metadata.PackageNotFoundError:
            state = f'missing: pip install "evenly[{extra}]"'
        except Exception as error:  # any failure to import, such as a package built for another torch
            reason = str(error).partition("\n")[0].rstrip(".")
            state += f", which does not import ({reason}): reinstall it with torch, from one source"
        rows.append({"package": package, "state": state, "for": purpose})
    return rows


def _data(root: Path) -> list[dict[str, Any]]:
    from evenly.data.catalogue import CATALOGUE
    from evenly.data.fetch.sources import SOURCES

    rows = []
    for entry in CATALOGUE.values():
        missing = entry.missing(root)
        how = [f"evenly data get {name}" + (" (by hand)" if SOURCES[name].by_hand else "") for name in missing]
        rows.append({"name": entry.name, "found": not missing, "get": how})
    return rows


def _print(report: dict[str, Any]) -> None:
    stamp, device, root = report["environment"], report["device"], report["data_root"]
    facts = [
        {"what": "evenly", "value": stamp["evenly"]},
        {"what": "python", "value": stamp["python"]},
        {"what": "torch", "value": stamp["libraries"].get("torch")},
        {
            "what": "device",
            "value": f"{device['kind']} × {device.get('number', 0)}, threads: {device.get('threads')}",
        },
        {
            "what": "data folder",
            "value": root["path"] + ("" if root["exists"] else " (not there yet)"),
        },
    ]
    print_table(facts, ["what", "value"])
    print()
    print_table(report["packages"], ["package", "state", "for"])
    print()
    rows = [{"data": r["name"], "state": "found" if r["found"] else "; ".join(r["get"])} for r in report["data"]]
    print_table(rows, ["data", "state"])
    if not report["trouble"]:
        say(f"\n{summary(report['packages'])}")


def summary(packages: list[dict[str, str]]) -> str:
    """A summary: everything works, or what does not and whether that matters."""
    broken = [row["package"] for row in packages if "does not import" in row["state"]]
    if not broken:
        return "All that is needed is here."
    one = len(broken) == 1
    return (
        f"evenly itself works. {' and '.join(broken)} {'is' if one else 'are'} installed but cannot be imported: "
        f"{' and '.join(row['for'] for row in packages if row['package'] in broken)} cannot be used."
    )
