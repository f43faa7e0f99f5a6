"""The search: Vietnamese with its diacritics and without, and English as it was."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Found = Callable[[str], dict[str, list[str]]]
"""The pages that were found, by title, and the words that are marked in them."""


@pytest.fixture(scope="module")
def search(visiting: Any) -> Iterator[Found]:
    heard: list[str] = []
    with visiting(1440, "light", heard) as (reader, _):
        reader.goto("/masks/")

        def search(query: str) -> dict[str, list[str]]:
            field, told = reader.locator("input[name=query]"), reader.locator(".md-search-result__meta")
            field.click()
            field.fill("")
            field.dispatch_event("keyup")  # what the theme listens to
            told.filter(has_text="Type to start").wait_for()
            field.fill(query)
            field.dispatch_event("keyup")
            told.filter(has_text=re.compile("matching document")).wait_for()
            if "No matching" not in told.inner_text():
                reader.locator(".md-search-result__item").first.wait_for()
            return dict(
                reader.evaluate("""() => [...document.querySelectorAll(".md-search-result__item")].map((item) => [
                    item.querySelector("h1").textContent,
                    [...new Set([...item.querySelectorAll("mark")].map((mark) => mark.textContent.toLowerCase()))],
                ])""")
            )

        yield search
    assert heard == []


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("đường", "đường"),
        ("duong", "đường"),
        ("dường", "đường"),  # a wrong accent is no accent
        (unicodedata.normalize("NFD", "đường"), "đường"),
        ("nhưng", "nhưng"),
        ("nhung", "nhưng"),
        ("giảng", "giảng"),
        ("giang", "giảng"),
        ("GIẢNG", "giảng"),
        ("truy van", "vấn"),
    ],
)
def test_a_vietnamese_word_is_found_and_marked_however_it_is_typed(search: Found, typed: str, word: str) -> None:
    found = search(typed)
    assert found
    assert any(word in marked for words in found.values() for marked in words)


def test_both_spellings_of_a_tone_mark_find_the_same_word(search: Found) -> None:
    assert "PhoBERT" in search("điều hòa")
    assert "PhoBERT" in search("điều hoà")


def test_a_vietnamese_term_leads_to_the_glossary_with_and_without_diacritics(search: Found) -> None:
    for typed in ("mặt nạ nhân quả", "mat na nhan qua", "chú ý", "chu y"):
        assert next(iter(search(typed))) == "Glossary", typed


def test_who_types_diacritics_is_not_shown_other_words(search: Found) -> None:
    marked = {word for words in search("đường").values() for word in words}
    assert marked == {"đường"}


@pytest.mark.parametrize(
    ("typed", "page", "word"),
    [
        ("masks", "Masks", "masks"),
        ("softm", "Masks", "softmax"),
        ("(softmax", "Masks", "softmax"),
        ("square root", "Attention", "root"),
        ("four_tokens", "Attention", "four_tokens"),
        ("d_k", "Multi-head attention", "d_k"),
        ("dot product", "Positions", "product"),
        ("AdamW", "Sorting", "adamw"),
    ],
)
def test_english_words_and_names_in_code_are_found(search: Found, typed: str, page: str, word: str) -> None:
    assert any(word in marked for marked in search(typed)[page])


def test_a_word_that_is_found_in_two_forms_is_marked_once(search: Found) -> None:
    """ "v" finds vấn under "vấn" and under "van"; what is marked twice shows pieces of tags."""
    for typed in ("v", "att"):
        marked = {word for words in search(typed).values() for word in words}
        assert len(marked) > 5
        assert not {word for word in marked if not word.strip() or "<" in word or ">" in word}


def test_how_results_were_made_is_not_searched(site: Path) -> None:
    index = (site / "search/search_index.json").read_text("utf-8")
    assert "How this was made" not in index
    assert "data-search" not in (site / "attention/index.html").read_text("utf-8")


def test_a_word_that_is_nowhere_finds_nothing(search: Found) -> None:
    assert search("xyzzyx") == {}
