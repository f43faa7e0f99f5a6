"""The glossary: a word shows its meaning to who points at it or tabs to it, and leads to its entry."""

from collections.abc import Callable
from typing import Any

Open = Callable[..., Any]


def test_pointing_at_a_word_shows_both_names_and_the_sentence(page: Open) -> None:
    reader = page(1440, "light")
    reader.goto("/masks/")
    word = reader.locator("a.glossary", has_text="token").first
    word.hover()
    tip = reader.locator(".md-tooltip2--active")
    tip.wait_for()
    assert tip.inner_text().startswith("token · token (đơn vị văn bản): One piece of a text")
    assert tip.evaluate("one => getComputedStyle(one.firstElementChild).fontWeight") == "400"


def test_tabbing_to_a_word_shows_it_and_enter_leads_to_its_entry(page: Open) -> None:
    reader = page(390, "dark")
    reader.goto("/masks/")
    word = reader.locator("a.glossary", has_text="token").first
    word.focus()
    tip = reader.locator(".md-tooltip2--active")
    tip.wait_for()
    assert word.get_attribute("aria-describedby") == tip.get_attribute("id")
    box = tip.locator(".md-tooltip2__inner").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    word.press("Enter")
    reader.wait_for_url("**/glossary/#token")
    assert reader.locator("#token").is_visible()


def test_without_javascript_a_word_is_a_link_with_a_title(page: Open) -> None:
    reader = page(390, "light", java_script_enabled=False)
    reader.goto("/masks/")
    word = reader.locator("a.glossary", has_text="token").first
    assert "đơn vị văn bản" in word.get_attribute("title")
    word.click()
    reader.wait_for_url("**/glossary/#token")


def test_a_word_looks_like_the_text_around_it_with_a_dotted_line(page: Open) -> None:
    reader = page(1440, "light")
    reader.goto("/masks/")
    look = reader.locator("a.glossary").first.evaluate(
        "one => [getComputedStyle(one).color === getComputedStyle(one.parentElement).color,"
        " getComputedStyle(one).textDecorationStyle]"
    )
    assert look == [True, "dotted"]
    assert reader.locator("h1 a.glossary, h2 a.glossary, pre a.glossary, figcaption a.glossary").count() == 0
