"""What the tests of the book in a browser share. They take minutes: `pytest -m site` runs them, and `.ci/run` does.

    def test_a_table_is_as_wide_as_the_text(page):
        chapter = page(390, "dark")          # a fresh profile: its width in pixels, its colour scheme
        chapter.goto("/attention/")          # addresses start at the site's root
        assert chapter.locator("table").first.is_visible()

- `site`: the folder with this book, built once a test run for all its processes. Read it, change nothing in it.
- `address`: where it is served, compressed as a host would; `sent`: each path it has sent, and how many bytes it took.
- `browser`: one Chromium a process. Without Chromium or playwright, every test that needs it is skipped and says why.
- `page(width, scheme, **options)`: a new page in a new profile (about 50 ms); options are those of playwright's
  `browser.new_context`. Pages are closed after the test.
- `visiting(width, scheme)`: the same as a context manager, of the page and what was heard on it, for fixtures that
  visit pages once for several tests.
- `heard`: what no reader should see or cause: console messages, errors, dialogs, failed requests, requests to other
  hosts. Each test that used `page` fails if something is in it at the end; one that expects something clears it.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from benchmarks.site.reader import CHROMIUM, listen
from benchmarks.site.serve import served

ROOT = Path(__file__).parents[2]
Visiting = Callable[..., AbstractContextManager[tuple[Any, list[str]]]]


@pytest.hookimpl(tryfirst=True)  # before it is decided what to leave out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all that needs the built site; what a snippet could do to a reader (test_security.py) is always tested."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_security.py":
            item.add_marker("site")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This book, as it is; that it can be built strictly is for .ci/run to say."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    folder, said = shared / "site", shared / "site.log"
    with FileLock(shared / "site.lock"):
        if not said.exists():
            built = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(folder)], cwd=ROOT,
                capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            )  # fmt: skip
            said.write_text(built.stderr if built.returncode else "", "utf-8")
    if wrong := said.read_text("utf-8"):
        pytest.fail(f"the book cannot be built:\n{wrong}", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def sent() -> list[tuple[str, int]]:
    return []


@pytest.fixture(scope="session")
def address(browser: Any, site: Path, sent: list[tuple[str, int]]) -> Iterator[str]:
    with served(site, sent=sent) as address:
        yield address


@pytest.fixture(scope="session")
def visiting(browser: Any, address: str) -> Visiting:
    @contextmanager
    def visiting(width: int, scheme: str, heard: list[str] | None = None, **options: Any) -> Iterator[Any]:
        heard = [] if heard is None else heard
        context = browser.new_context(**{
            "base_url": address,
            "viewport": {"width": width, "height": 900},
            "color_scheme": scheme,
            "permissions": ["clipboard-read", "clipboard-write"],
            **options,
        })  # fmt: skip
        context.on("page", lambda page: listen(page, address, heard))
        try:
            yield context.new_page(), heard
        finally:
            context.close()

    return visiting


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def page(visiting: Visiting, heard: list[str]) -> Iterator[Callable[..., Any]]:
    with ExitStack() as opened:

        def open_page(width: int = 1440, scheme: str = "light", **options: Any) -> Any:
            return opened.enter_context(visiting(width, scheme, heard, **options))[0]

        yield open_page
    assert heard == [], "what no reader should see or cause"
