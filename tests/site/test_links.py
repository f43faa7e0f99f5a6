"""Links within the book: names in code, previews of what a link leads to, and nothing dead."""

import re
from pathlib import Path
from typing import Any

import pytest

from executed.deadlinks import dead

SCALED = "a.defined[href$='attention/#attention.scaled_dot_product_attention']"


@pytest.fixture
def chapter(page: Any) -> Any:
    """A chapter that uses what others define."""
    chapter = page(1440)
    chapter.goto("/multi-head/", wait_until="load")
    return chapter


def preview(page: Any) -> Any:
    return page.locator("#preview:visible")


def test_nothing_on_the_site_leads_nowhere(site: Path) -> None:
    assert dead(site) == []


def test_an_address_that_leads_nowhere_names_every_page_of_the_book(site: Path) -> None:
    article = (site / "404.html").read_text("utf-8").split("<article")[1].split("</article>")[0]
    listed = set(re.findall(r'href="/([^"]*?)/?"', article))
    chapters = {file.stem for file in (Path(__file__).parents[2] / "docs").glob("*.md")} - {"index"}
    assert listed == chapters | {"."}


def test_a_name_in_code_leads_to_its_definition_on_another_page(chapter: Any) -> None:
    chapter.locator(SCALED).first.click()
    chapter.wait_for_url("**/attention/#attention.scaled_dot_product_attention")
    target = chapter.locator("[id='attention.scaled_dot_product_attention']")
    assert target.inner_text().startswith("def scaled_dot_product_attention(")
    assert chapter.evaluate("element => element.getBoundingClientRect().top >= 48", target.element_handle())


def test_a_method_leads_to_its_line_in_the_class(chapter: Any) -> None:
    chapter.locator("a.defined[href='#multi_head.MultiHeadAttention.split']").first.click()
    target = chapter.locator("[id='multi_head.MultiHeadAttention.split']")
    assert target.inner_text() == "split"
    assert target.evaluate("one => one.getBoundingClientRect().top < innerHeight")


def test_code_with_links_is_copied_as_plain_code_and_stands_as_it_did(chapter: Any) -> None:
    block = chapter.locator(f".highlight:has({SCALED})").first
    block.hover()
    block.locator(".md-code__button").click()
    chapter.locator(".md-dialog--active").wait_for()
    copied = chapter.evaluate("navigator.clipboard.readText()")
    source = (Path(__file__).parents[2] / "snippets/multi_head.py").read_text("utf-8")
    assert copied.strip() in source
    assert "scaled_dot_product_attention(" in copied
    height = block.locator("code").evaluate("one => one.getBoundingClientRect().height")
    assert height < 2 * 16 * (copied.count("\n") + 3)


@pytest.mark.parametrize(
    ("path", "link", "words"),
    [
        ("/multi-head/", SCALED, "def scaled_dot_product_attention("),
        ("/multi-head/", "a.defined[href='#multi_head.MultiHeadAttention.split']", "    def split(self, x: Tensor)"),
        ("/why-attention/", "a[href='#ref-hochreiter1997']", "Sepp Hochreiter"),
        ("/why-attention/", "a.footnote-ref", "The first LSTM had no forget gate"),
        ("/multi-head/", "p a[href='../attention/']", "Attention\n"),
    ],
    ids=["another page", "a method", "a source", "a footnote", "a whole page"],
)
def test_a_link_shows_the_beginning_of_what_it_leads_to(page: Any, path: str, link: str, words: str) -> None:
    reader = page(1440)
    reader.goto(path, wait_until="load")
    reader.locator(link).first.hover()
    preview(reader).wait_for()
    assert preview(reader).inner_text().startswith(words)
    assert preview(reader).locator("[id], a, button").count() == 0
    box = preview(reader).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1440
    assert box["height"] < 450
    reader.mouse.move(box["x"] + 20, box["y"] + 5)  # it stays while the pointer is on it
    reader.wait_for_timeout(300)
    assert preview(reader).is_visible()
    reader.mouse.move(5, 5)
    preview(reader).wait_for(state="detached")


def test_the_preview_of_a_chapter_is_its_title_and_how_it_begins(page: Any) -> None:
    reader = page(1440)
    reader.goto("/attention/", wait_until="load")
    reader.locator("article p a[href$='masks/']").first.hover()
    preview(reader).wait_for()
    title, beginning = preview(reader).locator("p").all_inner_texts()
    assert title == "Masks"
    assert beginning.startswith("A language model learns")


def test_the_preview_of_a_method_ends_with_the_method(chapter: Any) -> None:
    chapter.locator("a.defined[href='#multi_head.MultiHeadAttention.split']").first.hover()
    preview(chapter).wait_for()
    assert preview(chapter).inner_text().count("def ") == 1


def test_the_keyboard_opens_a_preview_and_escape_closes_it(chapter: Any) -> None:
    link = chapter.locator(SCALED).first
    chapter.keyboard.press("Tab")  # who uses the keyboard sees the focus
    link.focus()
    preview(chapter).wait_for()
    assert link.get_attribute("aria-describedby") == "preview"
    assert preview(chapter).get_attribute("role") == "tooltip"
    chapter.keyboard.press("Escape")
    preview(chapter).wait_for(state="detached")
    assert link.get_attribute("aria-describedby") is None
    assert link.evaluate("one => one === document.activeElement")


def test_a_finger_follows_a_link_and_sees_no_preview(page: Any) -> None:
    reader = page(390, has_touch=True, is_mobile=True)
    reader.goto("/why-attention/", wait_until="load")
    reader.locator("a[href='#ref-hochreiter1997']").first.tap()
    reader.wait_for_url("**/#ref-hochreiter1997")
    reader.wait_for_timeout(400)
    assert preview(reader).count() == 0


def test_without_javascript_names_in_code_are_links_all_the_same(page: Any) -> None:
    reader = page(1440, java_script_enabled=False)
    reader.goto("/multi-head/")
    link = reader.locator(SCALED).first
    assert re.fullmatch(r"\.\./attention/#.*", link.get_attribute("href"))
