"""executed/deadlinks.py: no link, anchor or file of a built site leads nowhere, and the message says which does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executed.deadlinks import dead

HOOK = Path(__file__).parents[2] / "executed/hook.py"
SITE = {
    "index.html": '<h1 id="top">Start</h1><a href="one/#there">one</a><a href="one/">one</a><a href="#top">up</a>',
    "one/index.html": '<p id="there"></p><img src="../a%20b.svg"><a href="..">start</a><a href="../#top">start</a>',
    "404.html": '<a href="/">start</a><a href="/one/#there">one</a>',
    "a b.svg": "<svg/>",
    "assets/book.css": '@font-face { src: url("fonts/x.woff2") } a { background: url(data:image/png;base64,AA) }',
    "assets/fonts/x.woff2": "",
    "assets/scripts/book.js": 'load("assets/book.css"); load(`values/${name}.js`); // values/<example>.js',
    "assets/scripts/widgets/viewer.js": "",
    "values/a.b.js": "",
    "search/search_index.json": json.dumps({"docs": [{"location": ""}, {"location": "one/#there"}]}),
}

WriteBook = Callable[..., Path]


def wrong(folder: Path, changes: dict[str, str], address: str = "", directories: bool = True) -> list[str]:
    for path, text in {**SITE, **changes}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return [f"{one.file}: {one.words}" for one in dead(folder, address, directories)]


def test_a_site_in_which_all_links_lead_somewhere_has_nothing_dead(tmp_path: Path) -> None:
    assert wrong(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("x.html", '<a href="two/">', "two/ leads to no page or file of the site"),
        ("x.html", '<a href="one">', "one leads to no page or file of the site; write one/"),
        ("x.html", '<a href="../x.html">', "../x.html leads to no page or file of the site"),
        ("x.html", '<a href="One/">', "One/ leads to no page or file of the site"),
        ("x.html", '<a href="#nowhere">', "#nowhere leads to no anchor: x.html has no #nowhere"),
        ("x.html", '<a href="one/#nowhere">', "one/#nowhere leads to no anchor: one/index.html has no #nowhere"),
        ("x.html", "<a class=x href=two/>", "two/ leads to no page or file of the site"),
        ("x.html", "<a href='two/'>", "two/ leads to no page or file of the site"),
        ("x.html", '<img alt="" src="c.png">', "c.png leads to no page or file of the site"),
        ("x.html", '<svg><use xlink:href="#mark"/></svg>', "#mark leads to no anchor: x.html has no #mark"),
        ("x.html", '<svg><g clip-path="url(#cut)"/></svg>', "a figure refers to #cut, which is not on its page"),
        ("x.html", '<link rel="manifest" href="m.webmanifest">', "m.webmanifest leads to no page or file of the site"),
        ("x.html", '<p id="a"></p><p id="a">', "two elements have the id a"),
        ("x.html", '<div data-widget="player">',
         "assets/scripts/widgets/player.js leads to no page or file of the site"),
        ("x.html", '<div data-example="a.c">', "values/a.c.js leads to no page or file of the site"),
        ("x.html", '<a href="http://example.org/">', "http://example.org/ is not encrypted: write https"),
        ("x.html", '<a href="https://example/x">', "https://example/x is no address"),
        ("x.html", '<a href="https://exa mple.org">', "https://exa mple.org is no address"),
        ("x.html", '<a href="https://[x">', "https://[x is no address: Invalid IPv6 URL"),
        ("x.html", '<a href="mailto:me">', "mailto:me is no mail address"),
        ("x.html", '<a href="//example.org/">', "//example.org/ leads out of the site, and not by https"),
        ("x.css", "a { background: url(b.png) }", "in x.css of the site, b.png leads to no page or file of the site"),
        ("assets/scripts/x.js", 'load("assets/x.css")',
         "in assets/scripts/x.js of the site, ../x.css leads to no page or file of the site"),
        ("m.webmanifest", '{"icons": [{"src": "i.png"}], "start_url": "./"}',
         "in m.webmanifest of the site, i.png leads to no page or file of the site"),
        ("llms.txt", "- [One](one/) [Two](two.md)",
         "in llms.txt of the site, two.md leads to no page or file of the site"),
        ("one/index.md", "`[x](y)`\n\n```\n[x](y)\n```\n[Two](../two/)",
         "in one/index.md of the site, ../two/ leads to no page or file of the site"),
        ("one/index.md", "[Two](<../two three.md>)",
         "in one/index.md of the site, ../two three.md leads to no page or file of the site"),
        ("n.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["[x](no.md)"]}]}',
         "in n.ipynb of the site, no.md leads to no page or file of the site"),
        ("search/search_index.json", '{"docs": [{"location": "one/#gone"}]}',
         "in search/search_index.json of the site, ../one/#gone leads to no anchor: one/index.html has no #gone"),
    ],
)  # fmt: skip
def test_what_leads_nowhere_is_named(tmp_path: Path, file: str, text: str, words: str) -> None:
    assert wrong(tmp_path, {file: text}) == [f"{file}: {words}"]


def test_a_site_without_a_home_page_is_told_so_once(tmp_path: Path) -> None:
    wrong(tmp_path, {})
    (tmp_path / "index.html").unlink()
    assert [one.words for one in dead(tmp_path)] == [
        "the site has no home page, to which every page leads: write docs/index.md"
    ]


def test_what_plain_text_only_says_is_no_link(tmp_path: Path) -> None:
    said = r"\[click\](javascript:alert(1)) and [space](<../a b.svg>), [space](../a%20b.svg)"
    assert wrong(tmp_path, {"one/index.md": said}) == []


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.org/a_(b)?c=d&amp;e=%20#f">x</a>',
        '<a href="http://localhost:8000">x</a><a href="https://vi.wikipedia.org/wiki/Học_máy">x</a>',
        '<a href="mailto:me@example.org">x</a><a href="#">top</a><a href="">this</a>',
        "<p>In text, href=\"nowhere/\" and id=\"x\" id=\"x\" are words.</p>",
        '<p id="ế"></p><a href="#%E1%BA%BF">x</a><a href="#ế">x</a>',
        '<a href="one/#:~:text=there">x</a><a href="a%20b.svg#part">x</a>',
    ],
)  # fmt: skip
def test_what_leads_somewhere_and_what_is_no_link_is_not(tmp_path: Path, text: str) -> None:
    assert wrong(tmp_path, {"x.html": text}) == []


def test_the_sites_own_address_is_followed_too(tmp_path: Path) -> None:
    base = "https://book.example.org/dl/"
    pages = {
        "404.html": '<a href="/dl/one/">x</a>',
        "x.html": f'<link rel="canonical" href="{base}x.html"><meta property="og:image" content="{base}cards/x.png">',
        "sitemap.xml": f"<loc>{base}one/</loc><loc>{base}two/</loc>",
    }
    assert wrong(tmp_path, pages, base) == [
        "sitemap.xml: in sitemap.xml of the site, "
        "https://book.example.org/dl/two/ leads to no page or file of the site",
        "x.html: https://book.example.org/dl/cards/x.png leads to no page or file of the site",
    ]
    assert (
        wrong(tmp_path, {**pages, "404.html": '<a href="/one/">x</a>'}, base)[0]
        == "404.html: /one/ leads out of the site"
    )


def test_the_same_link_may_be_right_on_one_page_and_dead_on_another(tmp_path: Path) -> None:
    pages = {
        "a/index.html": '<p id="x"></p><a href="../one/">one</a><a href="#x">x</a><a href="../#top">top</a>',
        "b/index.html": '<a href="../one/">one</a><a href="#x">x</a><a href="../#top">top</a>',
        "b/c/index.html": '<a href="../one/">one</a><a href="../../one/">one</a><a href="../#top">top</a>',
        "d.html": '<a href="one/">one</a><a href="#top">top</a>',
    }
    assert wrong(tmp_path, pages) == [
        "b/c/index.html: ../one/ leads to no page or file of the site",
        "b/c/index.html: ../#top leads to no anchor: b/index.html has no #top",
        "b/index.html: #x leads to no anchor: b/index.html has no #x",
        "d.html: #top leads to no anchor: d.html has no #top",
    ]


def test_from_the_disk_a_link_has_to_name_a_file(tmp_path: Path) -> None:
    found = wrong(tmp_path, {"x.html": '<a href="one/index.html">x</a>'}, directories=False)
    assert found
    assert all("leads to a folder, which opens no page from the disk" in words for words in found)
    assert not any(words.startswith("x.html") for words in found)


def test_a_strict_build_fails_at_a_dead_link_and_says_where_it_is_written(write_book: WriteBook) -> None:
    chapter = '# One\n\nA line.\n\n<a href="gone/">gone</a> <b id="a"></b>\n\n<b id="a"></b> <a href="#nowhere">x</a>\n'
    root = write_book({"a": "x = 1\n"}, {"index": "# Start\n", "one": chapter})
    (root / "mkdocs.yml").write_text(
        f"site_name: Test\ntheme: {{name: material, font: false}}\nhooks: ['{HOOK.as_posix()}']\n"
    )

    def build(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", *options], cwd=root, capture_output=True, text=True,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )  # fmt: skip

    strict = build("--strict")
    assert strict.returncode == 1
    for line in (
        "docs/one.md:5: two elements have the id a",
        "docs/one.md:5: gone/ leads to no page or file of the site",
        "docs/one.md:7: #nowhere leads to no anchor: one/index.html has no #nowhere",
    ):
        assert line in strict.stderr
    assert build().returncode == 0
