"""The book without a connection: what was visited, the whole book for who asks, and pages opened from the disk."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.site.serve import Site, served
from executed.offline import publish_worker

ROOT = Path(__file__).parents[2]


class Host:
    """A host of a copy of the book that can be taken away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.address = folder, 0, ""

    @contextmanager
    def up(self) -> Iterator[str]:
        with served(self.folder, self.port) as self.address:
            self.port = int(self.address.rpartition(":")[2])
            yield self.address


@pytest.fixture
def host(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(Site, "protocol_version", "HTTP/1.0")  # no connection outlives the server
    return Host(Path(shutil.copytree(site, tmp_path / "site")))


@pytest.fixture
def reader(browser: Any) -> Iterator[Any]:
    """A page in a new profile, on a phone. What it says of a host that is away counts for nothing."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(8000)
    yield page
    context.close()


def until(true: Callable[[], bool]) -> None:
    """Wait for something that no event tells."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def visited(page: Any, address: str, *paths: str) -> None:
    """Open pages and wait until the service worker has kept them, with what they load."""
    kept = """async (url) => {
        const loaded = performance.getEntriesByType("resource").map((one) => one.name)
            .filter((name) => !name.includes("favicon"));
        const found = await Promise.all([url, ...loaded].map((one) => caches.match(one)));
        return Boolean(navigator.serviceWorker.controller) && found.every(Boolean);
    }"""
    for path in paths:
        page.goto(f"{address}{path}", wait_until="load")
        until(lambda: page.evaluate(kept, f"{address}{path}"))  # noqa: B023 - it is called here and now


def names_of_caches(page: Any) -> list[str]:
    return list(page.evaluate("caches.keys()"))


def test_what_was_visited_is_read_again_without_a_connection(reader: Any, host: Host) -> None:
    with host.up() as address:
        visited(reader, address, "/attention/", "/masks/")
        width = reader.locator("h1").bounding_box()["width"]
    reader.goto(f"{address}/attention/")
    assert reader.locator("h1").inner_text().startswith("Attention")
    reader.goto(f"{address}/masks/?read=again#references")
    assert reader.locator("h1").bounding_box()["width"] == width
    assert reader.locator("figure svg").first.is_visible()
    reader.locator("input[name=query]").press_sequentially("softmax")
    reader.locator(".md-search-result__item a").first.wait_for()
    reader.goto(f"{address}/cost/")
    assert "This page is not on this device" in reader.locator("main").inner_text()
    assert reader.locator("main a").get_attribute("href") == f"{address}/"


def test_what_was_on_its_way_before_the_worker_was_there_is_kept_too(
    reader: Any, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Site.do_GET

    def slowly(self: Site) -> None:
        time.sleep(3 if self.path.endswith("search_index.json") else 0)
        answer(self)

    monkeypatch.setattr(Site, "do_GET", slowly)
    with host.up() as address:
        reader.goto(f"{address}/", wait_until="load")
        until(lambda: reader.evaluate("caches.match('/search/search_index.json').then(Boolean)"))


def test_the_whole_book_is_kept_for_who_asks_and_given_back(reader: Any, host: Host) -> None:
    pages = sorted(file.parent.relative_to(host.folder).as_posix() for file in host.folder.rglob("index.html"))
    assert len(pages) > 10
    with host.up() as address:
        visited(reader, address, "/")
        button = reader.get_by_role("button", name="Keep the whole book on this device")
        said = reader.locator(".keep-offline [role=status]")
        said.get_by_text(re.compile(r"^\d+\.\d MB, to read without a connection$")).wait_for()
        button.click()
        said.get_by_text("The whole book is on this device").wait_for()
    addresses = [f"{address}/{path}/".replace("/./", "/") for path in pages]
    ask = "(all) => Promise.all(all.map((one) => caches.match(one))).then((found) => found.filter(Boolean).length)"
    assert reader.evaluate(ask, addresses) == len(pages)
    for path in ("masks", "glossary", "sorting"):
        reader.goto(f"{address}/{path}/")
        assert reader.locator("h1").first.is_visible(), path
    reader.goto(f"{address}/")
    reader.get_by_role("button", name="Remove it").click()
    button.wait_for()
    assert reader.evaluate(ask, addresses) == 0


def test_a_new_build_is_seen_at_once_and_replaces_all_that_was_kept(reader: Any, host: Host) -> None:
    with host.up() as address:
        visited(reader, address, "/attention/", "/masks/")
        (before,) = names_of_caches(reader)
        for file in host.folder.rglob("index.html"):
            html = file.read_text("utf-8")
            file.write_text(re.sub(r"(<h1[^>]*>)", r"\1Renewed: ", html, count=1), "utf-8")
        publish_worker(host.folder)
        reader.reload()
        assert reader.locator("h1").inner_text().startswith("Renewed")
        reader.evaluate(
            "navigator.serviceWorker.getRegistration().then((one) => one.update())"
        )  # a browser takes its time
        until(lambda: len(names_of_caches(reader)) == 1 and before not in names_of_caches(reader))
    for path in ("/attention/", "/masks/"):
        reader.goto(f"{address}{path}")
        assert reader.locator("h1").inner_text().startswith("Renewed"), path


def test_a_new_build_that_cannot_be_had_whole_leaves_the_old_one_whole(
    reader: Any, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def answer(self: Site, with_body: bool) -> None:
        asked.append(self.path)
        self.send_error(503) if self.path == "/masks/" else usual(self, with_body)

    usual = Site._answer
    with host.up() as address:
        visited(reader, address, "/masks/", "/attention/")
        kept = names_of_caches(reader)
        worker = host.folder / "service-worker.js"
        worker.write_text(worker.read_text("utf-8").replace('"build":"', '"build":"x'), "utf-8")
        monkeypatch.setattr(Site, "_answer", answer)
        reader.evaluate("navigator.serviceWorker.getRegistration().then((one) => one.update()).catch(() => {})")
        reader.wait_for_timeout(500)
        assert "/masks/" in asked
        assert set(kept) <= set(names_of_caches(reader))
    reader.goto(f"{address}/masks/")
    assert reader.locator("h1").inner_text().startswith("Masks")


def test_the_book_can_be_installed(reader: Any, host: Host, site: Path) -> None:
    settings = re.sub(r"!ENV \[.*?\]|!\w+[^\n]*", "''", (ROOT / "mkdocs.yml").read_text("utf-8"))
    manifest = json.loads((site / "manifest.webmanifest").read_text("utf-8"))
    told = yaml.safe_load(settings)
    assert manifest["name"] == told["site_name"]
    assert manifest["description"] == told["site_description"]
    for icon in manifest["icons"]:
        data = (site / icon["src"]).read_bytes()
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", data[16:24])
            assert f"{width}x{height}" == icon["sizes"]
    with host.up() as address:
        visited(reader, address, "/attention/")
        tools = reader.context.new_cdp_session(reader)
        assert tools.send("Page.getInstallabilityErrors")["installabilityErrors"] in (
            [],
            [{"errorId": "in-incognito", "errorArguments": []}],
        )
        assert tools.send("Page.getAppManifest")["errors"] == []


@pytest.fixture(scope="module")
def disk(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book as `OFFLINE=true mkdocs build` makes it, strictly."""
    folder = tmp_path_factory.mktemp("disk") / "cà phê & book"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)], cwd=ROOT,
        capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "OFFLINE": "true"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def test_every_chapter_opens_from_the_disk(page: Any, disk: Path) -> None:
    """Without a word on the console: `page` sees to that. Of the notebooks' pages, which are all alike, one."""
    reader = page()
    notebooks = sorted(disk.glob("notebooks/**/*.html"))
    for file in [*sorted(disk.glob("*.html")), *notebooks[:1]]:
        if file.name != "404.html":
            reader.goto(file.as_uri(), wait_until="load")
            assert reader.locator("h1").first.is_visible(), file
            assert reader.evaluate("getComputedStyle(document.querySelector('.md-grid')).maxWidth") != "none"
    assert not (disk / "service-worker.js").exists()


def test_from_the_disk_links_search_fonts_and_widgets_work(page: Any, disk: Path) -> None:
    reader = page()
    reader.goto((disk / "index.html").as_uri())
    reader.locator("article a", has_text="attention").first.click()
    reader.wait_for_url("**/attention.html*")
    assert reader.evaluate("document.fonts.load('16px \"Book Math\"', 'x').then((fonts) => fonts.length)") == 1
    widget = reader.locator(".widget").first
    widget.scroll_into_view_if_needed()
    reader.locator(".widget--alive").first.wait_for()
    reader.locator("input[name=query]").press_sequentially("softmax")
    found = reader.locator(".md-search-result__item a").first
    found.wait_for()
    found.click()
    reader.wait_for_url(re.compile(r"^file:.*\.html\?h="))
    assert reader.locator("h1").first.is_visible()


def test_no_page_for_a_server_asks_for_what_only_the_disk_needs(site: Path) -> None:
    for file in site.rglob("*.html"):
        html = file.read_text("utf-8")
        assert "iframe-worker" not in html
        assert "unpkg" not in html
        assert "assets/scripts/offline.js" in html
        assert len(re.findall('<link rel="manifest" href="[^"]*manifest.webmanifest">', html)) == 1
