"""executed/glossary.py: words that lead to the glossary where a chapter first uses them; what is wrong with a list."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from executed.book import BookError
from executed.glossary import Glossary
from executed.markup import Stretch, parts
from executed.plain import LINK
from executed.stage import stage

WriteBook = Callable[..., Path]
Linked = Callable[..., str]
QUERY = """
[[term]]
term = "query"
forms = ["queries"]
vietnamese = "truy vấn"
definition = "What a lookup asks with."
chapter = "a"
"""
MASK = QUERY.replace("query", "mask").replace("queries", "masks").replace("truy vấn", "mặt nạ")
CAUSAL = QUERY.replace("query", "causal mask").replace('forms = ["queries"]\n', "")
SHOWN = "---\ntitle: Glossary\n---\n# Glossary\n\n{{ glossary() }}\n"


@pytest.fixture
def root(write_book: WriteBook) -> Path:
    root = write_book({}, {"a": "# A\n\nA query, a mask and a causal mask.\n", "glossary": SHOWN})
    (root / "docs/glossary.toml").write_text(QUERY + MASK + CAUSAL, "utf-8")
    return root


@pytest.fixture
def linked(root: Path) -> Linked:
    """The text of a chapter `b` with its links to the glossary; directives and code are left out."""

    def link(source: str, path: str = "docs/b.md", language: str = "en") -> str:
        done = Glossary(root).linked(parts(source, path)[0], path, language)
        return "".join(part.text for part in done if isinstance(part, Stretch))

    return link


def words(text: str) -> list[str]:
    return [found[1] for found in LINK.finditer(text)]


def test_the_first_use_of_a_word_is_a_link_that_says_what_it_means_in_both_languages(linked: Linked) -> None:
    assert linked("Two queries, one query.\n") == (
        'Two [queries](glossary.md#query "query · truy vấn&#58; What a lookup asks with."){: .glossary }, one query.\n'
    )


def test_in_a_vietnamese_chapter_the_vietnamese_word_comes_first_and_the_way_leads_out_of_its_folder(
    linked: Linked,
) -> None:
    text = linked("Một query.\n", "docs/vi/b.md", "vi")
    assert '[query](../glossary.md#query "truy vấn · query&#58; What' in text


@pytest.mark.parametrize(
    "source",
    [
        "# A query\n",
        "## A `b` query\n",
        "A [query](c.md), a [the `b` query](c.md) and ![query](x.svg).\n",
        "A `query` and $query$ and\n\n$$\nquery\n$$\n",
        "```text\nquery\n```\n",
        '!!! note "A query"\n',
        '??? question "A query"\n',
        '=== "A query"\n',
        '<div class="x">\na query\n</div>\n',
        "Text[^query].\n\n[^query]: A query.\n",
        '{{ figure("a.b", alt="A query", caption="A query") }}\n',
        "A multi-query or a query-like word, and some subquery.\n",
        "See https://example.org/query and <https://example.org/query>.\n",
        "Two words\n{: .query }\n",
    ],
)
def test_only_prose_has_links(linked: Linked, source: str) -> None:
    assert words(linked(source)) == []
    assert words(linked(f"{source}\nA query.\n")) == ["query"]


def test_a_word_inside_a_longer_term_is_no_use_of_it(linked: Linked) -> None:
    assert words(linked("A causal mask. Two masks.\n")) == ["causal mask", "masks"]


def test_a_term_may_be_broken_over_two_lines_and_stand_in_bold(linked: Linked) -> None:
    text = linked("The **causal\nmask** hides.\n")
    assert words(text) == ["causal\nmask"]
    assert text.count("**") == 2


def test_a_box_has_the_link_only_where_the_text_around_it_has_no_such_word(linked: Linked) -> None:
    box = "!!! note\n    A query and a mask.\n\n"
    text = linked(f"{box}A query.\n")
    assert words(text) == ["mask", "query"]
    assert "    A query and" in text


def test_what_a_snippet_printed_and_what_prose_quotes_of_it_are_never_links(write_book: WriteBook, root: Path) -> None:
    source = 'from executed import example\n\n\n@example\ndef b():\n    print("query")\n    return {"x": "query"}\n'
    write_book({"a": source}, {"a": '# A\n\n{{ example("a.b") }}\n\n{{ a.b.x }}, a query, a mask, a causal mask\n'})
    staged = stage(root)
    assert not staged.report()
    assert words(staged.pages["a.md"]) == ["query", "mask", "causal mask"]
    assert "\nquery, a [query](" in staged.pages["a.md"]


def test_where_a_word_has_another_sense_it_is_no_link(root: Path, linked: Linked) -> None:
    (root / "docs/glossary.toml").write_text(QUERY + 'other_sense = ["b"]\n', "utf-8")
    assert words(linked("A query.\n")) == []
    assert words(linked("A query.\n", "docs/c.md")) == ["query"]


def test_the_home_page_and_the_glossary_have_no_links_to_it(linked: Linked) -> None:
    assert words(linked("A query.\n", "docs/index.md")) == words(linked("A query.\n", "docs/glossary.md")) == []


def test_the_page_lists_all_words_by_the_alphabet_with_their_chapters(root: Path) -> None:
    page = stage(root).pages["glossary.md"]
    assert re.findall(r"^## (.*?) \{", page, re.M) == ["causal mask", "mask", "query"]
    assert '## query {: #query .term }\n\n*truy vấn*{: lang="vi" } · chapter [docs/a.md](a.md)\n' in page
    assert page.count("\n\nWhat a lookup asks with.") == 3


def test_a_book_without_a_glossary_has_no_links(write_book: WriteBook) -> None:
    staged = stage(write_book({}, {"a": "# A\n\nA query.\n"}))
    assert not staged.report()
    assert "[query]" not in staged.pages["a.md"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (QUERY.replace('"a"', '"b"'), 2, "there is no chapter b"),
        (
            MASK + QUERY.replace('"query"', '"key"').replace('"queries"', '"keys"'),
            9,
            "docs/a.md does not have the word key",
        ),
        (QUERY + 'other_sense = ["z"]\n', 2, "there is no chapter z"),
        (QUERY + 'other_sense = ["a"]\n', 2, "does not have the word query"),
    ],
)
def test_a_word_that_its_chapter_does_not_have_is_an_error(root: Path, text: str, line: int, says: str) -> None:
    (root / "docs/glossary.toml").write_text(text, "utf-8")
    assert any(str(one).startswith(f"docs/glossary.toml:{line}: ") and says in str(one) for one in stage(root).errors)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (QUERY + MASK.replace('"masks"', '"Queries"'), 9, "queries is in the glossary already (line 2)"),
        (QUERY.replace('"queries"', '"query"'), 2, "query is in the glossary already"),
        (QUERY.replace("lookup", "lookup of 7"), 2, "the number 7 is typed"),
        (QUERY.replace("vietnamese =", "vietnamise ="), 2, "a term has no vietnamise; did you mean vietnamese?"),
        (QUERY.replace('"What a lookup asks with."', '""'), 2, "this term has no definition"),
        ("[[term]\n", 1, "this is not TOML"),
    ],
)
def test_a_list_that_is_wrong_stops_the_build_and_says_where(root: Path, text: str, line: int, says: str) -> None:
    (root / "docs/glossary.toml").write_text(text, "utf-8")
    with pytest.raises(BookError) as raised:
        stage(root)
    assert f"docs/glossary.toml:{line}: " in str(raised.value)
    assert says in str(raised.value)


def test_a_glossary_that_no_page_shows_is_an_error(root: Path) -> None:
    (root / "docs/glossary.md").unlink()
    assert any("no page shows the glossary: write docs/glossary.md" in str(one) for one in stage(root).errors)
