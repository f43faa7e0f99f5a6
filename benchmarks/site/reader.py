"""What a reader meets on a page of the built site, as a browser sees it; used by commands here and by tests/site/."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
AXE = NODE_MODULES / "axe-core/axe.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
WIDTHS = (390, 820, 1440)
SCHEMES = ("light", "dark")
PAINTED = """
async () => {
  const entries = (type) => new Promise((done) => {
    const found = [];
    const observer = new PerformanceObserver((list) => found.push(...list.getEntries()));
    observer.observe({ type, buffered: true });
    setTimeout(() => done([...found, ...observer.takeRecords()]), 100);
  });
  const [paints, shifts] = await Promise.all([entries("paint"), entries("layout-shift")]);
  return {
    first: paints.find(({ name }) => name === "first-contentful-paint")?.startTime ?? NaN,
    shift: shifts.filter(({ hadRecentInput }) => !hadRecentInput).reduce((sum, { value }) => sum + value, 0),
  };
}
"""
CHECKED = """
async (options) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.flatMap(({ id, impact, help, nodes }) =>
    nodes.map(({ html, any }) => `${id} (${impact}): ${help}: ${any[0]?.message ?? ""} ${html.slice(0, 160)}`));
}
"""


def pages(site: Path) -> list[str]:
    """The addresses of all pages, below the site's own."""
    files = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html"))
    return [f"/{file.removesuffix('index.html')}" for file in files]


def listen(page: Any, address: str, heard: list[str]) -> None:
    """Note what no reader should see or cause: console messages, errors, dialogs, failures, requests to other hosts."""

    def failed(request: Any) -> Iterator[str]:
        if request.failure != "net::ERR_ABORTED":  # that one: the page was left while it loaded something
            yield f"{request.failure}: {request.url}"

    def elsewhere(url: str) -> Iterator[str]:
        if not url.startswith((address, "data:", "blob:", "file:")):
            yield f"request to {url}"

    def said(message: Any) -> Iterator[str]:
        if "blocked by Playwright" not in message.text:
            yield f"console {message.type}: {message.text} ({message.location.get('url', '')})"

    page.set_default_timeout(20_000)
    page.on("console", lambda message: heard.extend(said(message)))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.extend([f"dialog: {dialog.message}", str(dialog.dismiss())]))
    page.on("requestfailed", lambda request: heard.extend(failed(request)))
    page.on("request", lambda request: heard.extend(elsewhere(request.url)))


def use(page: Any, copy: bool, at_most: int = 4) -> tuple[dict[str, int], list[str]]:
    """Use all that a page offers: how much there was of each kind, and what did not do what it is for."""
    done = page.evaluate((HERE / "reader.js").read_text("utf-8"), {"copy": copy, "atMost": at_most})
    return done["counts"], done["wrong"]


def settled(page: Any, sent: list[tuple[str, int]], quiet: int = 1000) -> int:
    """How many bytes a server has sent, once it has sent nothing for some milliseconds."""
    before = -1
    while before < len(sent):
        before = len(sent)
        page.wait_for_timeout(quiet)
    return sum(size for _, size in sent)


def painted(page: Any) -> tuple[float, float]:
    """When the page first showed something, in milliseconds, and how far things have moved since (its layout shift)."""
    found = page.evaluate(PAINTED)
    return found["first"], found["shift"]


def inaccessible(page: Any, **options: Any) -> list[str]:
    """What axe finds wrong with the page as it stands."""
    page.evaluate(AXE.read_text("utf-8"))
    return page.evaluate(CHECKED, options)  # type: ignore[no-any-return]


def toggled(page: Any) -> bool:
    """Whether the button in the head goes through three schemes, and the last choice holds after a reload."""
    schemes = []
    for _ in range(4):
        page.locator("label[for^=__palette]:not([hidden])").click()
        schemes.append(page.evaluate("document.body.dataset.mdColorScheme"))
    page.reload()
    return {"default", "slate"} == set(schemes) and page.evaluate("document.body.dataset.mdColorScheme") == schemes[0]


def searched(page: Any, word: str) -> bool:
    """Whether the search shows results for a word, and Enter leads to a page that marks it."""
    if not page.locator("input[name=query]").is_visible():
        page.locator("label.md-header__button[for=__search]").click()
    page.locator("input[name=query]").press_sequentially(word)
    page.locator(".md-search-result__item a").first.wait_for()
    before = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)
    page.locator("article mark").first.wait_for(state="attached")
    return True
