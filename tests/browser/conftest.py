"""A real browser, where there is one; and run folders to look at."""

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
written_by_hand = runpy.run_path(str(Path(__file__).parents[1] / "unit" / "report" / "conftest.py"))


class Sight:
    """A page that is open, and everything it complained of or asked for."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)

    @property
    def asked_for(self) -> list[str]:
        """Every request but for the page itself and what it holds in itself."""
        return [url for url in self.requests if url != self.address and not url.startswith(("data:", "blob:"))]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as library:
        made = library.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Sight]]:
    """`look(address, width=390, scheme="dark")` opens a page."""
    contexts = []

    def opened(address: str | Path, *, width: int = 1440, scheme: str = "light") -> Sight:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        return Sight(context.new_page(), address.as_uri() if isinstance(address, Path) else address)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def comparison(tmp_path: Path) -> Callable[..., Any]:
    """`comparison(...)` writes the runs of one comparison."""
    return lambda **how: written_by_hand["write_comparison"](tmp_path / "runs", **how)


@pytest.fixture
def measure() -> Callable[[Any], None]:
    """`measure(run)` leaves measurements and a stability report beside a run."""

    def leave(run: Any) -> None:
        run.write_json("measurements/epoch-0010.json", written_by_hand["MEASURED"])
        run.write_json("stability.json", written_by_hand["STABILITY"])
        run.close()

    return leave


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[Path], Path]:
    """`page_of(folder)` writes the page of a run and gives its path."""
    from evenly.report.experiments import page_of as page

    def written(folder: Path) -> Path:
        path = tmp_path / "page.html"
        page([folder]).write(path)
        return path

    return written
