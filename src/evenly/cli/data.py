"""`evenly data`: list, look at, fetch and verify data sets."""

from pathlib import Path
from typing import Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import add_json, add_root, verb
from evenly.errors import DataError, UsageError


def add_to(verbs: Any) -> None:
    """Add `evenly data` and its own verbs."""
    parser = verbs.add_parser("data", help="list, look at, fetch and verify data sets", examples=_EXAMPLES)
    inner = parser.add_subparsers(metavar="VERB", required=True, title="verbs")

    listing = verb(inner, "list", list_, help="every data set, and whether it is here", examples="evenly data list")
    show_ = verb(inner, "show", show, help="draw a sheet of examples", examples=_SHOW)
    show_.add_argument("source", metavar="NAME", help="a data set, or the path of your own data")
    show_.add_argument("--out", type=Path, default=Path("sheet.png"), help="the picture to write (default: %(default)s)")
    show_.add_argument("--split", default="train", help="which split (default: %(default)s)")
    show_.add_argument("--per-class", type=int, default=8, metavar="N", help="examples a class (default: %(default)s)")
    show_.add_argument("--classes", type=int, default=12, metavar="N", help="at most so many (default: %(default)s)")
    show_.add_argument("--force", action="store_true", help="replace the picture if it exists")
    get_ = verb(inner, "get", get, help="download from the publisher", examples="evenly data get cifar10")
    get_.add_argument("names", metavar="NAME", nargs="+", help="a published data set")
    verify_ = verb(inner, "verify", verify, help="check a data set: files, counts, classes", examples=_VERIFY)
    verify_.add_argument("source", metavar="NAME", help="a data set, or the path of your own data")
    for parser in (show_, verify_):
        parser.add_argument("--set", action="append", default=[], metavar="K=V", dest="options", help="its options")
        parser.add_argument("--skip-broken", action="store_true", help="leave out images that do not decode")
    for parser in (listing, show_, get_, verify_):
        add_root(parser)
        add_json(parser)


def list_(*, data_root: str | None, json: bool) -> None:
    """Print every data set of the catalogue."""
    from evenly.data.catalogue import CATALOGUE
    from evenly.data.catalogue import data_root as root_of
    from evenly.data.sources import SOURCES

    root = root_of(data_root)
    rows = []
    for entry in CATALOGUE.values():
        missing = [name for name in entry.needs if not SOURCES[name].found(root)]
        rows.append({"name": entry.name, "kind": entry.kind, "here": not missing, "needs": missing, "what": entry.summary})
    if json:
        print_json(rows)
        return
    print_table(
        [row | {"here": "yes" if row["here"] else "no"} for row in rows], ["name", "kind", "here", "what"]
    )
    say(f"\nPublished data are looked for in {root}. `evenly data get NAME` fetches one.")
