"""`evenly demo`: the bias and its cure on embedded data, in about a minute, with one page at the end."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

from evenly import __version__, atomic
from evenly.cli.output import say
from evenly.cli.parser import Parser
from evenly.cli.report import is_ours, show
from evenly.errors import SetupError, UsageError

EXAMPLES = """
  evenly demo
  evenly demo --open
  evenly demo --quick --out /tmp/demo
"""
PAGE = "index.html"
FORMAT = 2  # of the cached toy results


def fill(parser: Parser) -> None:
    """The arguments of `evenly demo`."""
    parser.calls(demo, examples=EXAMPLES)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("evenly-demo"),
        metavar="DIR",
        help="where to write the page (default: %(default)s)",
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where run folders are made (default: OUT/runs)")
    parser.add_argument("--quick", action="store_true", help="few seeds and short training, in about ten seconds")
    parser.add_argument("--force", action="store_true", help=f"replace an {PAGE} that evenly did not write")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def demo(*, out: Path, runs: Path | None, quick: bool, force: bool, open: bool) -> None:
    """Show the bias and its cure on the terminal and write them as a page; reuse finished parts."""
    runs = runs or out / "runs"
    _check(out, runs, force=force)
    from evenly.demo import images, toy
    from evenly.demo.findings import headline, image_findings, toy_findings
    from evenly.demo.page import demo_page

    _limit_threads()
    say("1 of 2: an easy feature and a difficult one, in toy data")
    toys = toy.QUICK if quick else toy.Toy()
    toy_results = _load_or_make(out / "toy.json", toys, lambda: toy.toy_story(toys))
    _tell([headline(toy_results), *toy_findings(toy_results)])
    say("2 of 2: the whole method on real images, beside its controls")
    pictures = images.QUICK if quick else images.Images()
    image_results = images.image_story(pictures, runs=runs)
    _tell(image_findings(image_results))
    command = "evenly demo" + (" --quick" if quick else "") + f" --out {quote(str(out))}"
    page = out / PAGE
    atomic.write_text(page, demo_page(toy_results, image_results, command=command, runs=quote(str(runs))))
    print(page)
    show(page.resolve().as_uri(), open=open)


def _check(out: Path, runs: Path, *, force: bool) -> None:
    """Refuse folders that cannot be written to before anything is trained."""
    for option, folder in (("--out", out), ("--runs", runs)):
        taken = next((path for path in (folder, *folder.parents) if path.exists()), None)
        if taken is not None and not taken.is_dir():
            raise UsageError(f"{option} {folder}: {taken} is a file. Give a folder: {option} evenly-demo")
    page = out / PAGE
    if page.is_dir() or (page.exists() and not force and not is_ours(page)):
        raise UsageError(f"{page} exists and is not a page of evenly's. Give another --out, or --force to replace it.")
    for folder in (out, runs):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"cannot make {folder}: {error.strerror}. Choose a folder that can be written to."
            ) from error


def _limit_threads() -> None:
    """Use one thread if other work keeps the processors busy: threads that wait for each other take far longer."""
    import torch

    if hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        torch.set_num_threads(1)


def _load_or_make(path: Path, setting: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The content of `path`, if the same version wrote it with the same setting; else make and store it."""
    from dataclasses import asdict

    wanted = {"version": __version__, "format": FORMAT, "setting": asdict(setting)}
    try:
        kept: dict[str, Any] = json.loads(path.read_bytes())
        if {name: kept.get(name) for name in wanted} == wanted:
            say(f"   (finished before: {path})")
            return kept
    except (OSError, ValueError, AttributeError):
        pass  # missing, or not written by us: make it again
    result = wanted | make()
    atomic.write_text(path, json.dumps(result, allow_nan=False) + "\n")
    return result


def _tell(sentences: list[str]) -> None:
    for sentence in sentences:
        say(f"   - {sentence}")
