"""executed/offline.py: what a site needs to be read from the disk, or without a connection."""

import json
import re
from pathlib import Path
from typing import Any

from executed.offline import publish_worker, settings, with_manifest

FILES = {
    "index.html": "start",
    "404.html": "nowhere",
    "one/index.html": "one",
    "one.html": "one",
    "assets/book.css": "css",
    "assets/book.css.map": "{}",
    "figures/a.svg": "<svg/>",
    "search/search_index.json": "{}",
    "notebooks/one.ipynb": "{}",
    "sitemap.xml": "",
}


def worker(folder: Path, **changes: str) -> dict[str, Any]:
    for path, text in {**FILES, **changes}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    publish_worker(folder)
    text = (folder / "service-worker.js").read_text("utf-8")
    found = re.fullmatch(r'self\.book = (\{.*\});\nimportScripts\("assets/scripts/service-worker\.js"\);\n', text)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_a_worker_knows_every_page_and_what_pages_load_with_its_size(tmp_path: Path) -> None:
    assert worker(tmp_path)["files"] == {
        "": 5,
        "one/": 3,
        "one.html": 3,
        "assets/book.css": 3,
        "search/search_index.json": 2,
    }


def test_a_worker_is_another_where_anything_of_the_site_is_and_else_the_same(tmp_path: Path) -> None:
    first = worker(tmp_path)["build"]
    assert worker(tmp_path)["build"] == first
    assert worker(tmp_path, **{"one/index.html": "two"})["build"] != first
    assert worker(tmp_path, **{"two/index.html": "two"})["build"] != first


def test_a_site_for_the_disk_has_the_search_for_the_disk_and_no_worker() -> None:
    extra: dict[str, Any] = {"polyfills": ["x.js"]}
    scripts: list[Any] = ["assets/scripts/book.js"]
    settings(extra, scripts, from_disk=True)
    assert extra == {"polyfills": ["x.js", "assets/scripts/iframe-worker.js"]}
    assert scripts == ["assets/scripts/book.js"]


def test_a_site_for_a_server_registers_its_worker_once_after_the_other_scripts() -> None:
    extra: dict[str, Any] = {}
    scripts: list[Any] = ["assets/scripts/book.js"]
    settings(extra, scripts, from_disk=False)
    settings(extra, scripts, from_disk=False)
    assert scripts == ["assets/scripts/book.js", "assets/scripts/offline.js"]
    assert extra == {}


def test_each_page_leads_to_the_manifest_from_where_it_is() -> None:
    for base, path in (
        (".", "./manifest.webmanifest"),
        ("../..", "../../manifest.webmanifest"),
        ("/", "/manifest.webmanifest"),
    ):
        assert f'<link rel="manifest" href="{path}">' in with_manifest("<head></head>", base)
