"""`evenly data`: list, look at, fetch and verify data sets."""

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root, assignments, verb
from evenly.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sized

    from evenly.data import Labelled, Splits
    from evenly.data.catalogue import Entry
    from evenly.data.formats.image_decoding import Broken

_EXAMPLES = """
  evenly data list
  evenly data show digit-dominoes --out sheet.png
  evenly data get cifar10
  evenly data verify cifar10
"""
_SHOW = """
  evenly data show digits --out sheet.png
  evenly data show spirals --set chi=450 --out spirals.svg
  evenly data show photos/ --split test --per-class 12
"""
_VERIFY = """
  evenly data verify cifar10
  evenly data verify photos/ --skip-broken
"""


def fill(parser: Parser) -> None:
    """The verbs of `evenly data` and their arguments."""
    parser.examples = _EXAMPLES
    inner = parser.add_subparsers(metavar="VERB", required=True, title="verbs")

    listing = verb(inner, "list", list_, help="every data set, and whether it is here", examples="evenly data list")
    show_ = verb(inner, "show", show, help="draw a sheet of examples", examples=_SHOW)
    show_.add_argument("source", metavar="NAME", help="a data set, or the path of your own data")
    show_.add_argument("--out", type=Path, default=Path("sheet.png"), help="picture (default: %(default)s)")
    show_.add_argument("--split", default="train", help="which split (default: %(default)s)")
    show_.add_argument(
        "--per-class", type=int, default=8, metavar="N", help="examples per class (default: %(default)s)"
    )
    show_.add_argument("--classes", type=int, default=12, metavar="N", help="at most N classes (default: %(default)s)")
    show_.add_argument("--force", action="store_true", help="replace the picture if it exists")
    get_ = verb(inner, "get", get, help="download from the publisher", examples="evenly data get cifar10")
    get_.add_argument("names", metavar="NAME", nargs="+", help="a published data set")
    verify_ = verb(inner, "verify", verify, help="check a data set: files, images, classes, values", examples=_VERIFY)
    verify_.add_argument("source", metavar="NAME", help="a data set, or the path of your own data")
    for each in (show_, verify_):
        each.add_argument(
            "--set", action="append", default=[], metavar="K=V", dest="options", help="an option of the data set"
        )
        each.add_argument("--skip-broken", action="store_true", help="leave out images that do not decode")
    for each in (listing, show_, get_, verify_):
        add_root(each)
        add_json(each)


def list_(*, data_root: str | None, json: bool) -> None:
    """Print every data set of the catalogue."""
    from evenly.data.catalogue import CATALOGUE
    from evenly.data.catalogue import data_root as root_of

    root = root_of(data_root)
    rows = [
        {"name": known.name, "kind": known.kind, "here": not known.missing(root), "what": known.summary}
        for known in CATALOGUE.values()
    ]
    if json:
        print_json(rows)
        return
    print_table([row | {"here": "yes" if row["here"] else "no"} for row in rows], ["name", "kind", "here", "what"])
    say(f"\nPublished data are looked for in {root}. `evenly data get NAME` fetches one.")


def show(
    *,
    source: str,
    out: Path,
    split: str,
    per_class: int,
    classes: int,
    force: bool,
    options: list[str],
    skip_broken: bool,
    data_root: str | None,
    json: bool,
) -> None:
    """Draw a sheet of examples, class by class."""
    if per_class < 1 or classes < 1:
        raise UsageError(f"--per-class {per_class} --classes {classes}: give 1 or more of each.")
    if out.exists() and not force:
        raise UsageError(f"{out} exists. Give another --out, or --force to replace it.")
    splits = _load(source, options, skip_broken=skip_broken, data_root=data_root)
    part = splits[split]
    draw_sheet(part, out, per_class=per_class, max_classes=classes)
    facts = {"name": part.name, "split": split, "examples": len(part), "shape": list(part.shape), "out": str(out)}
    if json:
        print_json(facts)
    else:
        print(out)
        shape = "×".join(map(str, part.shape))
        say(f"{part.name}, {part.split}: {len(part):,} examples of {shape} in {part.num_classes} classes.")


def draw_sheet(part: "Labelled", out: Path, *, per_class: int, max_classes: int) -> None:
    """Write a picture of the first examples of each class."""
    from evenly.report.contact_sheet import contact_sheet
    from evenly.report.static import save

    # A scatter needs many points, pictures only a few.
    num = 150 if part.shape == (4,) else per_class
    examples = {}
    for label, name in list(enumerate(part.classes))[:max_classes]:
        positions = (part.labels == label).nonzero().flatten()[:num]
        if len(positions):
            examples[name] = part.gather(positions).cpu().numpy()
    more = f", the first {max_classes} of {part.num_classes} classes" if part.num_classes > max_classes else ""
    save(contact_sheet(examples, title=f"{part.name}, {part.split}: {len(part):,} examples{more}"), out)


def get(*, names: list[str], data_root: str | None, json: bool) -> None:
    """Download, check and unpack published data sets."""
    from evenly.data.catalogue import data_root as root_of
    from evenly.data.catalogue import entry
    from evenly.data.fetch.get import get as fetch

    root = root_of(data_root)
    results = []
    for source in dict.fromkeys(need for name in names for need in _needs(entry(name))):
        result = fetch(source, root=root)
        results.append({"name": source, "folder": str(result.folder), "already": result.already})
        say(str(result))
    if json:
        print_json(results)


def verify(*, source: str, options: list[str], skip_broken: bool, data_root: str | None, json: bool) -> None:
    """Check files against their publication, decode every image, then check classes and values."""
    from evenly.data.catalogue import CATALOGUE, load, options_of
    from evenly.data.catalogue import data_root as root_of
    from evenly.data.checks import duplicates, on_scale, problems
    from evenly.data.fetch.verify import verify as verify_files
    from evenly.data.formats.image_decoding import describe_undecodable
    from evenly.data.formats.listing import list_dropped

    files = []
    if source in CATALOGUE:
        for need in CATALOGUE[source].needs:
            files += verify_files(need, root=root_of(data_root))
    wrong = [str(check) for check in files if check.state != "ok"]
    if any(check.state == "missing" for check in files) and all(check.state == "missing" for check in files):
        wrong = []  # nothing is here: the error of loading is better than a list of every file
    rows: list[dict[str, object]] = []
    done = [f"{len(files):,} published {_plural('file', files)} checked"] if files else []
    broken: list[Broken] = []
    if not wrong:
        given = _options(options, skip_broken=skip_broken)
        # Skipping decodes every image; with --skip-broken, broken ones are no problem.
        decode = {"skip_broken": True} if "skip_broken" in options_of(source) else {}
        splits = load(source, root=data_root, **(given | decode))
        broken = list_dropped(splits)
        if broken and not given.get("skip_broken"):
            wrong = [describe_undecodable(broken)]
        else:
            _say_left_out(broken)
        # Published data cannot be changed; in the user's own, copies can be removed.
        findings = [*(duplicates(splits) if source not in CATALOGUE else ()), *problems(splits)]
        if not wrong:
            with suppress(DataError) if findings else nullcontext():  # a row that does not decode, reported already
                rows = [_row(part) for part in splits.values()]
        wrong += findings
        _say_remarks(splits)
        if not findings and (scale := on_scale(splits.train)):
            say(scale)
        examples = sum(len(part) for part in splits.values())
        done.append(f"{examples:,} {'images decoded' if decode else 'examples loaded'}")
    if json:
        listing = [{"path": str(path), "reason": reason} for path, reason in broken]
        print_json({"name": source, "files": len(files), "problems": wrong, "broken": listing, "splits": rows})
    elif rows:
        print_table(rows, list(rows[0]))
    if wrong:
        raise DataError(f"{source} has problems:\n  " + "\n  ".join(wrong))
    say(f"{source}: {', '.join(done)} in {len(rows)} {_plural('split', rows)}, no problem found.")


def _plural(word: str, things: "Sized") -> str:
    return word if len(things) == 1 else f"{word}s"


def _row(part: "Labelled") -> dict[str, object]:
    return {
        "split": part.split,
        "examples": len(part),
        "shape": "×".join(map(str, part.shape)),
        "classes": part.num_classes,
        "fingerprint": part.fingerprint,
    }


def _needs(entry: "Entry") -> tuple[str, ...]:
    if not entry.needs:
        raise UsageError(f"{entry.name} is {entry.kind}: it is always available and needs no download.")
    return entry.needs


def _load(source: str, options: list[str], *, skip_broken: bool, data_root: str | None) -> "Splits":
    from evenly.data.catalogue import load
    from evenly.data.formats.listing import list_dropped

    splits = load(source, root=data_root, **_options(options, skip_broken=skip_broken))
    _say_left_out(list_dropped(splits))
    _say_remarks(splits)
    return splits


def _options(options: list[str], *, skip_broken: bool) -> dict[str, Any]:
    return assignments(options) | ({"skip_broken": True} if skip_broken else {})


def _say_remarks(splits: "Splits") -> None:
    from evenly.data.formats.listing import remarks_on

    on_broken = {remark for part in splits.values() for remark in remarks_on(part)}
    for remark in splits.remarks:
        if remark not in on_broken:  # `_say_left_out` names all broken files
            say(remark)


def _say_left_out(broken: "list[Broken]") -> None:
    for path, reason in broken:
        say(f"left out: {path}: {reason}")
    if broken:
        say("1 broken image was left out." if len(broken) == 1 else f"{len(broken):,} broken images were left out.")
