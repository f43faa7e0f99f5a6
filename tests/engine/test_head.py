"""executed/head.py: what a page says of itself, and descriptions that say something."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from executed import head, hook
from executed.render import Page

FACTS = head.Facts("A book", 'Q &amp; "K"', "How <a> token asks", "en")
HTML = '<!doctype html>\n<html lang="en" class="no-js">\n  <head>\n  </head><body></body></html>'
FRONT = "---\ntitle: A\ndescription: {}\n---\n# A\n"


def said(facts: head.Facts) -> dict[str, str]:
    soup = BeautifulSoup(head.completed(HTML, facts), "html.parser")
    return {str(one.get("property") or one.get("name")): str(one["content"]) for one in soup.find_all("meta")}


def test_a_page_says_its_title_and_description_letter_by_letter() -> None:
    assert said(FACTS) == {
        "og:type": "article",
        "og:site_name": "A book",
        "og:title": 'Q & "K"',
        "og:description": "How <a> token asks",
        "og:locale": "en_GB",
        "twitter:card": "summary",
    }


def test_nothing_in_a_title_can_end_the_attribute_it_stands_in() -> None:
    hostile = head.Facts("s", '"><script>alert(1)</script>', "'\"--></head>", "en", markdown='"><b>')
    html = head.completed(HTML, hostile)
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("</head>") == 1


def test_absolute_addresses_stand_only_where_there_are_some() -> None:
    facts = head.Facts("s", "t", "d", "vi", True, "https://x.org/a/", "https://x.org/a.png", "index.md")
    found = said(facts)
    assert found["og:url"] == "https://x.org/a/"
    assert found["og:image"] == "https://x.org/a.png"
    assert (found["og:image:width"], found["og:image:height"]) == ("1200", "630")
    assert found["og:image:alt"] == "t. d"
    assert found["twitter:card"] == "summary_large_image"
    assert (found["og:type"], found["og:locale"]) == ("website", "vi_VN")
    assert "http" not in head.tags(FACTS)


def test_a_page_names_its_own_language_and_itself_as_markdown() -> None:
    html = head.completed(HTML, head.Facts("s", "t", "d", "vi", markdown="index.md"))
    assert '<html lang="vi" class="no-js">' in html
    link = BeautifulSoup(html, "html.parser").find("link", type="text/markdown")
    assert link
    assert (link["href"], link["rel"]) == ("index.md", ["alternate"])
    assert "[rel=alternate]" not in html
    assert 'rel="alternate"' not in html  # the theme would ask for a sitemap beside it


@pytest.mark.parametrize("letters", [1, 49, 161])
def test_a_description_that_is_too_short_or_too_long_is_told_with_its_line(letters: int) -> None:
    (problem,) = head.descriptions([Page("docs/a.md", FRONT.format("x" * letters))])
    assert str(problem).startswith(f"docs/a.md:3: this description has {letters} letters")


def test_where_one_page_has_a_description_every_page_needs_one() -> None:
    good, bare = Page("docs/a.md", FRONT.format("x" * 50)), Page("docs/b.md", "# B\n")
    assert head.descriptions([good]) == head.descriptions([bare]) == []
    (problem,) = head.descriptions([good, bare])
    assert "docs/b.md:1: this page has no description" in str(problem)


def test_a_description_may_run_over_several_lines() -> None:
    source = "---\ndescription: >-\n  " + "x" * 30 + "\n  " + "y" * 30 + "\ntitle: A\n---\n# A\n"
    assert head.descriptions([Page("docs/a.md", source)]) == []


def test_robots_are_told_where_the_list_of_pages_is_if_there_is_one() -> None:
    assert head.robots("") == "User-agent: *\nAllow: /\n"
    assert head.robots("https://x.org/").endswith("\nSitemap: https://x.org/sitemap.xml\n")


CONFIG = """
site_name: A book
site_description: What it is.
site_url: {address!r}
use_directory_urls: {directories}
nav: [index.md, Part: [a.md], b.md]
theme: {{name: material, font: false}}
hooks: [{hook!r}]
markdown_extensions: [attr_list, pymdownx.superfences]
"""
PAGES = {
    "index": FRONT.format("What the whole book is about, in one plain sentence.") + "\n[On](a.md)\n",
    "a": FRONT.format("What this chapter is about, in another plain sentence."),
    "b": FRONT.format("What comes last and can be left out, in a third one."),
}


def build(root: Path, address: str, directories: bool = True) -> Path:
    config = CONFIG.format(address=address, directories=str(directories).lower(), hook=Path(hook.__file__).as_posix())
    (root / "mkdocs.yml").write_text(config)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"], cwd=root, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return root / "site"


def test_without_an_address_a_site_has_its_texts_and_nothing_that_needs_one(write_book: Callable[..., Path]) -> None:
    site = build(write_book({}, PAGES), "")
    page = BeautifulSoup((site / "a/index.html").read_text("utf-8"), "html.parser")
    assert page.find("link", rel="canonical") is page.find("meta", property="og:image") is None
    assert not list(site.glob("sitemap*"))
    assert not (site / "assets/cards").exists()
    assert (site / "robots.txt").read_text() == "User-agent: *\nAllow: /\n"
    assert (site / "index.md").read_text() == "# A\n\n[On](a/index.md)\n"
    lists = (site / "llms.txt").read_text().split("\n")
    assert lists[6:] == [
        "## Chapters", "", "- [A](index.md): What the whole book is about, in one plain sentence.", "",
        "## Part", "", "- [A](a/index.md): What this chapter is about, in another plain sentence.", "",
        "## Optional", "", "- [A](b/index.md): What comes last and can be left out, in a third one.", "",
    ]  # fmt: skip
    assert (site / "llms-full.txt").read_text() == "# A\n\n[On](a/index.md)\n\n# A\n\n# A\n"


def test_with_an_address_each_page_names_its_own_and_its_card_and_its_text_lies_beside_it(
    write_book: Callable[..., Path],
) -> None:
    site = build(write_book({}, PAGES), "https://x.org/book", directories=False)
    page = BeautifulSoup((site / "a.html").read_text("utf-8"), "html.parser")
    canonical, image = page.find("link", rel="canonical"), page.find("meta", property="og:image")
    text = page.find("link", type="text/markdown")
    assert canonical
    assert image
    assert text
    assert canonical["href"] == "https://x.org/book/a.html"
    card = site / str(image["content"]).removeprefix("https://x.org/book/")
    assert card.read_bytes().startswith(b"\x89PNG")
    assert (site / str(text["href"])).read_text() == "# A\n"
    assert (site / "index.md").read_text() == "# A\n\n[On](a.md)\n"
    assert "<loc>https://x.org/book/a.html</loc>" in (site / "sitemap.xml").read_text()
    assert "- [A](https://x.org/book/a.md): " in (site / "llms.txt").read_text()
    assert "Sitemap: https://x.org/book/sitemap.xml" in (site / "robots.txt").read_text()
