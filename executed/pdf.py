"""The whole book as one PDF: the pages of the built site in the order of its navigation, printed by Chromium.

The pages are put together as one document in the browser (pdf.js), so links between chapters lead to pages of the PDF
and the headings become its outline. It is printed twice: the first time tells the page numbers for the contents.
"""

import logging
import mimetypes
import os
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from executed.book import BookError, Problem

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright, Route

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
ADDRESS = "http://book.invalid/"
"""Nobody's: what the pages ask for is read from the folder of the site, and nothing leaves the machine."""
EMPTY = "<!doctype html><html><head><meta charset='utf-8'></head><body></body></html>"
WORDS = {
    "en": {"home": "About this book", "contents": "Contents"},
    "vi": {"home": "Về cuốn sách này", "contents": "Mục lục"},
}


def build(root: Path, site: Path) -> None:
    """Build the site of the book at `root` into a folder. Raises BookError with what MkDocs says."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        built = subprocess.run(command, cwd=root, env=environment, stdout=said, stderr=said)
        said.seek(0)
        lines = [line.rstrip() for line in said if not line.startswith("INFO")]
    if built.returncode:
        mistakes = "\n".join(lines)
        raise BookError(Problem("mkdocs.yml", 1, f"the site does not build, so there is nothing to print:\n{mistakes}"))


def print_book(root: Path, target: Path) -> int:
    """Build the book at `root` and print it into a file; tells how many pages that has.

    Raises BookError where something to print with is missing, the site does not build, or the file cannot be written.
    """
    _libraries()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = _browser(playwright)  # before the build, which would be for nothing without one
        site = Path(folder) / "site"
        build(root, site)
        data, pages = printed(site, browser)
        browser.close()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    except OSError as error:
        raise BookError(Problem(str(target), 1, f"{error.strerror}: name a file that can be written")) from None
    return pages


def printed(site: Path, browser: "Browser") -> tuple[bytes, int]:
    """A built site as one PDF, and how many pages it has."""
    from pypdf import PdfReader

    page = browser.new_page()
    page.route("**/*", lambda route: _answer(route, site))
    page.goto(f"{ADDRESS}print")
    here = Path(__file__).parent
    page.evaluate(f"({(here / 'pdf.js').read_text('utf-8').replace('// @ts-check', '', 1)})", WORDS)
    page.add_style_tag(content=(here / "pdf.css").read_text("utf-8"))
    first = PdfReader(BytesIO(_pdf(page)))
    places = {name: first.get_destination_page_number(place) for name, place in first.named_destinations.items()}
    numbers = {name.removeprefix("/"): number + 1 for name, number in places.items() if number is not None}
    page.evaluate(
        """numbers => document.querySelectorAll(".print-contents__list a").forEach(link => {
            link.nextElementSibling.textContent = numbers[link.hash.slice(1)] ?? "" })""",
        numbers,
    )
    return _mended(_pdf(page)), len(first.pages)


def _pdf(page: Any) -> bytes:
    data: bytes = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    return data


def _mended(data: bytes) -> bytes:
    """Without what Chromium gets wrong: a heading at the top of a sheet stands twice in its outline's entry."""
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, TextStringObject

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it remarks on Chromium's count of objects
    writer = PdfWriter(clone_from=BytesIO(data))
    entries: list[Any] = [writer.get_outline_root()]
    while entries:
        entry = entries.pop().get_object()
        entries += [entry[key] for key in ("/First", "/Next") if key in entry]
        title = str(entry.get("/Title", ""))
        if title and title == 2 * title[: len(title) // 2]:
            entry[NameObject("/Title")] = TextStringObject(title[: len(title) // 2])
    writer.add_metadata({"/Creator": "executed pdf"})
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def _libraries() -> None:
    try:
        import playwright.sync_api  # noqa: F401
        import pypdf  # noqa: F401
    except ImportError as error:
        command = 'pip install -c constraints.txt -e ".[pdf]"'
        raise BookError(Problem("pyproject.toml", 1, f"printing needs {error.name}: {command}")) from None


def _browser(playwright: "Playwright") -> "Browser":
    """Chromium: the machine's own, else the one that playwright has installed."""
    from playwright.sync_api import Error

    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    try:
        return playwright.chromium.launch(executable_path=found)
    except Error as error:
        message = (
            "printing needs Chromium 131 or newer, and none could be started: install it (Debian and Ubuntu: "
            "apt install chromium; any system: python -m playwright install chromium)"
        )
        said = f"{found}: {error.message.splitlines()[0]}" if found else "none is installed"
        raise BookError(Problem("chromium", 1, f"{message}. {said}")) from None


def _answer(route: "Route", site: Path) -> None:
    """A file of the site, as a server would send it."""
    path = unquote(urlsplit(route.request.url).path).lstrip("/")
    if not route.request.url.startswith(ADDRESS):
        route.abort()
    elif path == "print":
        route.fulfill(body=EMPTY, content_type="text/html; charset=utf-8")
    else:
        file = site / path / "index.html" if not path or path.endswith("/") else site / path
        if file.is_file():
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            route.fulfill(body=file.read_bytes(), content_type=kind)
        else:
            route.fulfill(status=404)
