"""`evenly report`: experiments as one page, live while they train; the papers' claims or the atlas as a site."""

from contextlib import suppress
from pathlib import Path

from evenly.cli.output import print_json, say
from evenly.cli.parser import Parser, add_json
from evenly.errors import UsageError

EXAMPLES = """
  evenly report runs --out page.html --open
  evenly report 3f2a --out page.html
  evenly report 3f2a --sections features,geometry --out page.html
  evenly report --serve
  evenly report --claims --out site/
  evenly report --atlas --out atlas/
"""
OUT, MARK = "report.html", 'name="generator" content="evenly"'


def fill(parser: Parser) -> None:
    """The arguments of `evenly report`."""
    parser.calls(report, examples=EXAMPLES)
    parser.add_argument(
        "run_ids", metavar="RUN", nargs="*", help="the ID of a run or a comparison, its beginning, or a folder of runs"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=f"the page to write (default: {OUT}, which is overwritten)"
    )
    parser.add_argument("--force", action="store_true", help="replace a page that exists")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--sections",
        metavar="S,S",
        help="only these sections; an error if one has no data (default: all that have data)",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="serve a live page on this machine only (default: of the folder given by --runs)",
    )
    parser.add_argument("--port", type=int, metavar="N", help="the port of --serve; 0 takes any that is free")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    parser.add_argument("--claims", action="store_true", help="the papers' claims and their verdicts, as a site")
    parser.add_argument("--atlas", action="store_true", help="the atlas of cures: which helps where, as a site")
    parser.add_argument(
        "--ledger", type=Path, metavar="DIR", help="the ledger of --claims and --atlas (default: claims)"
    )
    add_json(parser)


def report(
    *,
    run_ids: list[str],
    out: Path | None,
    force: bool,
    open: bool,
    sections: str | None,
    serve: bool,
    port: int | None,
    runs: str,
    claims: bool,
    atlas: bool,
    ledger: Path | None,
    json: bool,
) -> None:
    """Write the page of some runs, or serve it; or write the site of the claims or of the atlas."""
    if claims or atlas:
        name = "--claims" if claims else "--atlas"
        if run_ids or serve or (claims and atlas):
            raise UsageError(f"{name} is a separate site, not about runs: give only --out, a folder.")
        write = _claims if claims else _atlas
        write(out or Path("site" if claims else "atlas"), ledger, force=force, open=open, json=json)
        return
    if ledger is not None:
        raise UsageError(f"--ledger {ledger} is for --claims: evenly report --claims --ledger {ledger} --out site/")
    if serve and not run_ids:
        run_ids = [runs]
    if not run_ids:
        raise UsageError(
            f"which run? Give its ID, or the folder of all runs: evenly report {runs} --out page.html. `evenly runs` "
            "lists them."
        )
    if port is not None and not serve:
        raise UsageError(f"--port {port} is for --serve: evenly report --serve {run_ids[0]} --port {port}")
    wanted = [word.strip() for word in (sections or "").split(",") if word.strip()]
    if serve:
        if out is not None:
            raise UsageError("--serve writes no file: leave --out out, or leave out --serve to write the page.")
        _serve(run_ids, runs, wanted, port, open)
        return
    from evenly.report.experiments import page_of

    path = writable(out or Path(OUT), force=force or (out is None and is_ours(Path(OUT))))
    page = page_of(run_ids, runs=runs, wanted=wanted)
    page.write(path)
    for remark in page.remarks:
        say(remark)
    if json:
        experiments = [{"title": chapter.title, "finding": chapter.lead.finding} for chapter in page.chapters]
        names = [section.id for section in page.sections]
        finding = {"badge": page.lead.badge, "finding": page.lead.finding, "next": page.lead.next_command}
        facts = {"out": str(path), **finding, "command": page.lead.command, "sections": names}
        print_json(facts | {"experiments": experiments})
    else:
        print(path)
        say(" ".join([f"[{page.lead.badge}]"] * bool(page.lead.badge) + [page.lead.finding]))
    show(path.resolve().as_uri(), open=open)


def writable(path: Path, *, force: bool) -> Path:
    """The path of a page, if one may be written there."""
    if path.is_dir():
        raise UsageError(f"--out {path} is a folder: give a file, such as --out {path / OUT}")
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--out {path}: the page is HTML. Give a name such as --out {path.with_suffix('.html')}")
    if path.exists() and not force:
        raise UsageError(f"{path} exists. Give another --out, or --force to replace it.")
    return path


def is_ours(path: Path) -> bool:
    """Whether evenly wrote this page."""
    try:
        with path.open("rb") as file:
            return MARK in file.read(4096).decode("utf-8", "replace")
    except OSError:
        return False


def show(address: str, *, open: bool) -> None:
    """Open an address in a browser if requested, else say how to."""
    if not open:
        say(f"Open {address} in a browser, or give --open.")
        return
    import webbrowser

    if not webbrowser.open(address):
        say(f"No browser was found here. Open {address} in one.")


def _claims(out: Path, ledger: Path | None, *, force: bool, open: bool, json: bool) -> None:
    from evenly.cli.reproduce import find_ledger
    from evenly.papers import ledger as book
    from evenly.papers.catalogue import PAPERS
    from evenly.papers.reproduction import overview
    from evenly.report.claims_site import write_site

    folder = find_ledger(ledger)
    rows = book.rows(folder)
    if not rows and not Path(folder).is_dir():
        raise UsageError(f"there is no ledger in {folder}. `evenly reproduce KEY` writes one, or name it: --ledger DIR")
    if not rows:
        raise UsageError(
            f"{folder} holds no ledger: that is a JSON file for every experiment and scale, such as "
            "nguyen2024-fig2-full.json, beside its figure. `evenly reproduce KEY --ledger DIR` writes one."
        )
    lines = overview(folder)
    papers = {key: (paper.name, f"{paper.authors}: {paper.title}.") for key, paper in PAPERS.items()}
    first = write_site(out, lines, rows, ledger=folder, papers=papers, force=force)
    if json:
        print_json({"out": str(first), "experiments": len({line["key"] for line in lines})})
    else:
        print(first)
    show(first.resolve().as_uri(), open=open)


def _atlas(out: Path, ledger: Path | None, *, force: bool, open: bool, json: bool) -> None:
    from evenly.cli.reproduce import find_ledger
    from evenly.papers.atlas.page import write_atlas
    from evenly.papers.atlas.task_list import TASKS, atlas_rows

    folder = find_ledger(ledger)
    rows = atlas_rows(folder)
    if not rows:
        raise UsageError(
            f"{folder} holds no task of the atlas: nothing can be drawn. `evenly reproduce atlas --scale small` "
            "measures them, or name another ledger: --ledger DIR"
        )
    first = write_atlas(out, rows, TASKS, force=force)
    if json:
        print_json({"out": str(first), "tasks": len(rows), "declared": len(TASKS)})
    else:
        print(first)
        say(f"{len(rows)} of {len(TASKS)} declared tasks have been measured.")
    show(first.resolve().as_uri(), open=open)


def _serve(run_ids: list[str], runs: str, wanted: list[str], port: int | None, open: bool) -> None:
    from evenly.report.experiments import Page, page_of
    from evenly.report.live import PORT, Server

    def page() -> Page:
        return page_of(run_ids, runs=runs, wanted=wanted)

    page()  # report errors before sending the user to the page
    with Server(page, port=PORT if port is None else port) as server:
        print(server.address, flush=True)
        say("The page follows training until all is done. Ctrl-C ends it.")
        if open:
            show(server.address, open=True)
        # Ctrl-C is the usual way to end a server, not an error.
        with suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
