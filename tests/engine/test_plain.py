"""executed/plain.py: a chapter as Markdown that any program reads, and the list of all pages."""

import pytest

from executed.plain import Entry, llms, placed, plain


def placed_plain(text: str, source: str = "a.md", to: str = "a/index.md") -> str:
    return placed(plain(text), source, to, {"b.md": "b/index.md", "index.md": "index.md", "vi/b.md": "vi/b/index.md"})


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("---\ntitle: A\n---\n# A\n", "# A\n"),
        ("``` { .python #a.b }\nx = {1: 2}\n```\n", "```python\nx = {1: 2}\n```\n"),
        ("```` { .text .output }\n```\n[a](b.md) &#42;\n````\n", "````text\n```\n[a](b.md) &#42;\n````\n"),
        ("``` { .text .output }\na\n\n\n\nb\n```\n\n\n\nText\n", "```text\na\n\n\n\nb\n```\n\nText\n"),
        ("Uses [`x`](#a.x)\n{: .needs }\n", "Uses `x`\n"),
        ("A [b](b.md#c), [c](https://x.org/), (#d) [e](#d).\n", "A [b](../b/index.md), [c](https://x.org/), (#d) e.\n"),
        ("## A {: #a .term }\n\n*ý*{: lang=\"vi\" }\n", "## A\n\n*ý*\n"),
        ("![An &#61; b](figures/a-1.svg \"A caption\")\n", "![An = b](../figures/a-1.svg)\n\n*A caption*\n"),
        ('A [key](glossary.md#key "k&#58; x"){: .glossary } and `b`.\n', "A key and `b`.\n"),
        ("&#45;0.5, &#42;a&#42;, &#60;b&#62; and `&#42;`\n", "\\-0.5, \\*a\\*, \\<b> and `&#42;`\n"),
        ("$\\sum_{i=1}^{n} {.x}$ and $$ a_{j=2} $$\n", "$\\sum_{i=1}^{n} {.x}$ and $$ a_{j=2} $$\n"),
        ("$$\n\\sum_{i=1}\n$$\n\nText {: .x }\n", "$$\n\\sum_{i=1}\n$$\n\nText\n"),
        ('<div class="widget" data-widget="w">Here\nit is.</div>\n\nText\n', "Text\n"),
        ('??? made "How this was made"\n    `a.b` ran\n\nText\n', "Text\n"),
        ("| a | b |\n| --- | --- |\n| [x](b.md) | `y` |\n", "| a | b |\n| --- | --- |\n| [x](../b/index.md) | `y` |\n"),
    ],
)  # fmt: skip
def test_what_only_this_site_understands_is_written_so_that_all_do(text: str, becomes: str) -> None:
    assert placed_plain(text) == becomes


def test_a_box_becomes_a_quotation_with_its_title_and_all_that_is_in_it() -> None:
    text = (
        '!!! warning "Mind `x`"\n    One [b](b.md):\n\n    ```` { .text .output }\n    2\n\n    3\n    ````\n\nAfter.\n'
    )
    assert placed_plain(text) == (
        "> **Mind `x`**\n>\n> One [b](../b/index.md):\n>\n> ````text\n> 2\n>\n> 3\n> ````\n\nAfter.\n"
    )


def test_boxes_in_boxes_and_tabs_are_quoted_in_their_turn() -> None:
    text = '??? question "Q"\n    A\n\n    !!! note\n        B\n\n=== "First"\n\n    One\n'
    assert placed_plain(text) == "> **Q**\n>\n> A\n>\n> > **Note**\n> >\n> > B\n\n> **First**\n>\n> One\n"


def test_addresses_lead_from_where_the_text_stands() -> None:
    text = plain("[b](b.md) ![f](../figures/f.svg)\n")
    assert placed(text, "vi/a.md", "vi/a/index.md", {"vi/b.md": "vi/b/index.md"}) == (
        "[b](../b/index.md) ![f](../../figures/f.svg)\n"
    )
    assert placed(text, "vi/a.md", "all.txt", {"vi/b.md": "vi/b.md"}) == "[b](vi/b.md) ![f](figures/f.svg)\n"


def test_addresses_of_names_with_spaces_and_vietnamese_letters_are_written_as_addresses() -> None:
    text = plain("[a](<chương một.md#a>) [b](ch%C6%B0%C6%A1ng%20m%E1%BB%99t.md) [c](chương.md)\n")
    files = {"chương một.md": "chương một/index.md", "chương.md": "chương/index.md"}
    assert placed(text, "x.md", "x/index.md", files) == (
        "[a](../ch%C6%B0%C6%A1ng%20m%E1%BB%99t/index.md) [b](../ch%C6%B0%C6%A1ng%20m%E1%BB%99t/index.md)"
        " [c](../ch%C6%B0%C6%A1ng/index.md)\n"
    )


def test_llms_txt_has_a_title_a_summary_and_sections_of_links() -> None:
    text = llms("A book", "What it is.", "llms-full.txt", [("Chapters", [Entry("A", "About a.", "a/index.md")])])
    assert text.split("\n") == [
        "# A book",
        "",
        "> What it is.",
        "",
        "All pages in one file: [llms-full.txt](llms-full.txt).",
        "",
        "## Chapters",
        "",
        "- [A](a/index.md): About a.",
        "",
    ]
