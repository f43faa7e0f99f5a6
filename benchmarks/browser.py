"""What a browser says of the whole book: `python benchmarks/browser.py` (two to five minutes on two cores).

Builds the book into a temporary folder, opens every page of it in Chromium, in both colour schemes and at the widths of
a phone and of a desk, and prints a table: pages opened, what the console said, what was asked of another host, and
whether the search, the copy buttons, the colour toggle, the folded answers and the tabs work. Ends with status 1 if a
reader would see an error. `--files` also opens the pages from the disk, where the theme's search does not work.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def watched(browser: Browser, scheme: str, width: int, heard: list[str], address: str) -> Page:
    """A new page that notes all that a reader should never see or cause."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
        permissions=["clipboard-read", "clipboard-write"] if address.startswith("http") else [],
    )
    page = context.new_page()
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("requestfailed", lambda request: heard.append(f"failed: {request.url}"))
    page.on("request", lambda request: request.url.startswith((address, "data:")) or heard.append(f"to: {request.url}"))
    page.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    return page


def used(page: Page, width: int) -> Counter[str]:
    """Use what a page offers; counts what worked, and what was there."""
    counts: Counter[str] = Counter()
    for number, details in enumerate(page.locator("details").all()):
        counts["folded answers"] += 1
        details.locator("summary").first.click()
        counts["folded answers work"] += page.locator("details").nth(number).evaluate("one => one.open")
    for label in page.locator(".tabbed-labels label").all():
        counts["tabs"] += 1
        label.click()
        counts["tabs work"] += page.evaluate("id => document.getElementById(id).checked", label.get_attribute("for"))
    button = page.locator("button.md-code__button, .md-clipboard").first
    if width > 1000 and button.count():
        counts["copy buttons"] += 1
        block = page.locator(".highlight:has(.md-code__button, .md-clipboard)").first
        block.hover()
        button.click()
        copied = page.evaluate("navigator.clipboard.readText()")
        counts["copy buttons work"] += copied.strip() == block.locator("code").inner_text().strip()
    return counts


def toggled(page: Page) -> bool:
    """Whether the button in the head goes through three schemes, and the last choice holds after a reload."""
    schemes = []
    for _ in range(3):
        page.locator("form[data-md-component=palette] label:not([hidden])").click()
        schemes.append(page.evaluate("document.body.dataset.mdColorScheme"))
    page.locator("form[data-md-component=palette] label:not([hidden])").click()
    page.reload()
    return {"default", "slate"} == set(schemes) and page.evaluate("document.body.dataset.mdColorScheme") == schemes[0]


def searched(page: Page, width: int) -> bool:
    """Whether the search finds a word, shows results, and follows the first."""
    if width < 1000:
        page.locator("label.md-header__button[for=__search]").click()
    page.locator("input[name=query]").press_sequentially("softmax")
    page.locator(".md-search-result__item a").first.wait_for(timeout=10_000)
    before = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before, timeout=5000)
    page.locator("mark").first.wait_for(state="attached", timeout=5000)
    return True


def main() -> None:
    executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
    heard: list[str] = []
    on_disk: list[str] = []
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder) / "site"
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", site], cwd=ROOT, check=True,
                       env=environment)  # fmt: skip
        pages = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html"))
        browser = playwright.chromium.launch(executable_path=executable)
        with served(site) as address:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    for name in pages:
                        page = watched(browser, scheme, width, heard, address)
                        page.goto(f"{address}/{name.removesuffix('index.html')}", wait_until="networkidle")
                        counts["pages opened"] += 1
                        counts["pages with the policy"] += page.locator("head > meta[http-equiv]").count()
                        counts += used(page, width)
                        page.context.close()
                    page = watched(browser, scheme, width, heard, address)
                    page.goto(f"{address}/", wait_until="networkidle")
                    counts["colour toggles"] += 1
                    counts["colour toggles work"] += toggled(page)
                    counts["searches"] += 1
                    counts["searches work"] += searched(page, width)
                    page.context.close()
        if "--files" in sys.argv:
            for name in pages:
                page = watched(browser, "light", 1440, on_disk, "file:")
                page.goto((site / name).as_uri(), wait_until="networkidle")
                counts["opened from the disk"] += 1
                page.context.close()
        browser.close()
    print("| | |\n| --- | --- |")
    for what, count in counts.items():
        print(f"| {what} | {count} |")
    print(f"| said on the console, failed, or asked of another host | {len(heard)} |")
    for what, count in [*Counter(heard).most_common(), *Counter(on_disk).most_common()]:
        print(f"| {what.replace(str(site), '')} | {count} |")
    sys.exit(bool(heard))


if __name__ == "__main__":
    main()
