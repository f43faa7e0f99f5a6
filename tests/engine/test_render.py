"""executed/render.py and executed/markup.py: what a chapter becomes, looked at in the HTML that a reader gets."""

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import markdown
import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mkdocs.utils.meta import get_data
from mkdocs.utils.yaml import yaml_load

from executed.book import Book
from executed.capture import readable, visible
from executed.commit import Commit
from executed.hook import FIGURE
from executed.markup import directives, escaped, fenced
from executed.render import Page, Renderer, failure_block
from executed.stage import chapters
from executed.store import Failure, Outcomes, Result, failure_text

SNIPPETS = {
    "tokens": '''
        """Tokens."""

        from executed import example

        LIMIT = 3


        def scale(x):
            """Halve it."""
            text = """
        at the margin </code>
        ```
        """
            return x / 2


        class Head:
            def forward(self):
                return self.size  # {{ not.a.directive }} [@key]


        @example
        def shown():
            """Says something."""
            x = scale(1)
            print(x, "<b>", "`````")
            return {"x": x}


        @example
        def reading(shown):
            print(shown)


        @example
        def silent():
            pass
    ''',
}
BIBLIOGRAPHY = """
@article{key, author = {Doe, Jane}, title = {A {Title}}, year = {2017}, journal = {J}}
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><g id="figure1-a"/><use href="#figure1-a"/></svg>'
VALUES: dict[str, Any] = {
    "x": 0.6874,
    "n": 1234567,
    "weights": [[0.1, 0.9], [0.5, 0.25]],
    "heads": [2, 4, 8],
    "name": "GPT",
    "yes": True,
    "none": None,
    "empty": [],
    "nested": {"of by": 0.5, "3": 7},
    "odd": [math.nan, math.inf, -math.inf, -0.0],
    "huge": 10**30,
    "model": {"$unquotable": "a Module, which prose cannot quote"},
    "mixed": [1.0, {"$unquotable": "a Module"}],
}

Show = Callable[..., Page]


def result(name: str, **given: Any) -> Result:
    made: dict[str, Any] = {
        "name": name,
        "text": "",
        "figures": [],
        "values": {},
        "seconds": 1.0,
        "memory": 1,
        "started": 1.0,
        "fingerprint": "f",
        "parts": {},
        "files": {},
        "needs": {},
        "machine": "m",
    }
    return Result(**(made | given))


@pytest.fixture
def show(write_book: Callable[..., Path]) -> Show:
    """`show(source, printed=..., figures=..., values=...)`: the page when `tokens.shown` left that."""
    root = write_book(SNIPPETS, {"index": "\n"})
    (root / "docs/references.bib").write_text(BIBLIOGRAPHY)
    book = Book.read(root)
    assert not book.problems

    def rendered(
        source: str,
        printed: str = "",
        figures: int = 0,
        values: Any = None,
        language: str = "en",
        path: str = "docs/page.md",
        failures: tuple[Failure, ...] = (),
        others: tuple[Page, ...] = (),
        commit: Commit | None = None,
    ) -> Page:
        results = {name: result(name, values=VALUES) for name in book.examples}
        results["tokens.shown"] = result(
            "tokens.shown", text=printed, figures=[SVG] * figures, values=VALUES if values is None else values
        )
        failed = {failure.name: failure for failure in failures}
        generated = {"machine": lambda language, link: f"| {language} |\n| --- |\n| x |"}
        kept = {name: one for name, one in results.items() if name not in failed}
        renderer = Renderer(book, Outcomes(kept, failed), generated, commit)
        page = Page(path, source)
        renderer.find_examples([*others, page])
        renderer.render(page, language)
        return page

    return rendered


def site_extensions() -> dict[str, dict[str, Any]]:
    """The extensions of mkdocs.yml, after those that MkDocs itself adds."""
    listed = yaml_load((Path(__file__).parents[2] / "mkdocs.yml").read_text("utf-8"))["markdown_extensions"]
    found: dict[str, dict[str, Any]] = {"toc": {}, "tables": {}, "fenced_code": {}}
    for item in listed:
        found |= {item: {}} if isinstance(item, str) else item
    return found


EXTENSIONS = site_extensions()


def html(text: str) -> BeautifulSoup:
    """The page that Python-Markdown makes of a chapter, after MkDocs has taken its front matter off."""
    built = markdown.markdown(get_data(text)[0], extensions=list(EXTENSIONS), extension_configs=EXTENSIONS)
    return BeautifulSoup(built, "html.parser")


def outputs(text: str) -> list[str]:
    return [block.get_text() for block in html(text).select(".output pre code")]


def messages(page: Page) -> list[str]:
    return [str(problem) for problem in page.problems]


def only(page: Page) -> str:
    [message] = messages(page)
    return message


hostile = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])

CONTAINERS = {
    "the page itself": "",
    "a note": "!!! note\n    ",
    "a folded question": '??? question "Why?"\n    ',
    "an open question": '???+ question "Why?"\n    ',
    "a tab": '=== "Tab"\n    ',
    "a list": "- item\n    ",
    "a numbered list": "1. item\n\n    ",
    "a list in a note": "!!! note\n    - item\n        ",
    "a note in a list": "- item\n\n    !!! note\n        ",
    "a tab in a question": '??? question "Why?"\n    === "Tab"\n        ',
    "a note in a tab in a list": '1. item\n\n    === "Tab"\n        !!! note\n            ',
    "a note, by a tab stop": "!!! note\n\t",
}


# ---------- Blocks, at any indentation ----------


@pytest.mark.parametrize("before", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("after", ["", "\n", "\n\nProse goes on.\n"])
def test_a_block_stays_inside_what_it_is_indented_in(show: Show, before: str, after: str) -> None:
    printed = "first\n\n    indented\n</pre><script>x</script>\n```\nlast"
    page = show(f'Before.\n\n{before}{{{{ example("tokens.shown", alt="A picture") }}}}{after}', printed, 1)
    assert not page.problems
    soup = html(page.text)
    containers = soup.select(".admonition, details, .tabbed-block, li")
    depth = before.count("!!!") + before.count("???") + before.count("===") + before.count("item")
    assert len(containers) == depth
    inside = containers[-1] if containers else soup
    assert inside.select_one(".output pre code").get_text() == printed + "\n"  # type: ignore[union-attr]
    assert inside.select_one(".highlight#tokens\\.shown") is not None
    assert [image["alt"] for image in inside.select("img")] == ["A picture"]
    assert not soup.select("script")
    inlined = FIGURE.sub("<figure></figure>", str(soup))
    assert inlined.count("<figure>") == 1
    assert "<p><figure>" not in inlined
    assert inlined.count("<p>") + inlined.count("<p ") == inlined.count("</p>")


@pytest.mark.parametrize("before", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize(
    "directive",
    ['code("tokens.scale")', 'output("tokens.shown")', 'figure("tokens.shown", alt="A picture")', "machine()"],
)
def test_every_block_directive_works_in_every_container(show: Show, before: str, directive: str) -> None:
    page = show(f"Before.\n\n{before}{{{{ {directive} }}}}\n", "printed", 1)
    assert not page.problems
    soup = html(page.text)
    containers = soup.select(".admonition, details, .tabbed-block, li")
    inside = containers[-1] if containers else soup
    assert inside.select_one("pre, img, table") is not None
    assert "{{" not in soup.get_text()
    assert "```" not in re.sub(r"(?s)at the margin.*?\"\"\"", "", soup.get_text())


@pytest.mark.parametrize("before", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("directive", ["example", "figure", "output"])
def test_how_a_result_was_made_is_folded_away_where_the_result_stands(show: Show, before: str, directive: str) -> None:
    alt = "" if directive == "output" else ', alt="A picture"'
    page = show(f'Before.\n\n{before}{{{{ {directive}("tokens.shown"{alt}) }}}}\n', "printed", 1, commit=Commit())
    assert not page.problems
    [made] = html(page.text).select("details.made")
    assert "tokens.shown ran on" in made.get_text()
    depth = before.count("!!!") + before.count("???") + before.count("===") + before.count("item")
    inside = [*made.find_parents(class_=["admonition", "question", "tabbed-block"]), *made.find_parents("li")]
    assert len(inside) == depth


def test_text_directly_before_and_after_a_block_stays_a_paragraph_of_its_own(show: Show) -> None:
    soup = html(show('Just before\n{{ output("tokens.shown") }}\nAfter.', "printed").text)
    assert [paragraph.get_text() for paragraph in soup.select("p")] == ["Just before", "After."]


def test_an_example_without_a_body_output_or_figure_still_shows_code(show: Show) -> None:
    assert html(show('{{ example("tokens.silent") }}').text).select_one("pre").get_text() == "pass\n"  # type: ignore[union-attr]


def test_code_is_shown_as_it_stands_in_the_module(show: Show) -> None:
    soup = html(show('{{ code("tokens.scale") }}').text)
    assert "at the margin </code>\n```\n" in soup.get_text()
    assert html(show('{{ code("tokens.Head.forward") }}').text).get_text().startswith("def forward(self):\n    return")
    assert "LIMIT = 3" in html(show('{{ code("tokens.LIMIT") }}').text).get_text()


def test_links_lead_to_the_first_of_two_places_that_show_the_same_code(show: Show) -> None:
    soup = html(
        show('{{ example("tokens.shown") }}\n\n{{ example("tokens.shown") }}\n\n{{ code("tokens.shown") }}').text
    )
    assert len(soup.select(".highlight")) == 3
    assert len(soup.select("#tokens\\.shown")) == 1


def test_directives_and_citations_in_shown_code_are_code(show: Show) -> None:
    page = show('{{ code("tokens.Head") }}\n')
    assert not page.problems
    assert not page.cited
    assert "{{ not.a.directive }} [@key]" in html(page.text).get_text()


def test_an_example_links_to_the_results_it_uses(show: Show) -> None:
    other = Page("docs/other.md", '{{ example("tokens.shown") }}')
    page = show('!!! note\n    {{ example("tokens.reading") }}\n', others=(other,))
    line = html(page.text).select_one(".admonition p.needs")
    assert line is not None
    assert line.get_text() == "Uses the result of shown"
    assert line.a is not None
    assert line.a["href"] == "other.md#tokens.shown"


def test_a_translated_page_links_to_its_own_languages_page(show: Show) -> None:
    english = Page("docs/other.md", '{{ example("tokens.shown") }}')
    vietnamese = Page("docs/vi/other.md", '{{ example("tokens.shown") }}')
    page = show('{{ example("tokens.reading") }}', path="docs/vi/page.md", language="vi", others=(english, vietnamese))
    assert "Dùng kết quả của [`shown`](other.md#tokens.shown)" in page.text
    page = show('{{ example("tokens.reading") }}', path="docs/vi/page.md", language="vi", others=(english,))
    assert "(../other.md#tokens.shown)" in page.text


def test_a_failed_example_shows_what_happened_in_its_place(show: Show) -> None:
    failure = Failure("tokens.shown", "f", "</code> <b>", "snippets/tokens.py", 7, ("in x\x1b[31m",), "a\n```\nb")
    page = show("- item\n\n    {{ example('tokens.shown') }}\n", failures=(failure,))
    block = html(page.text).select_one("li .admonition.failure pre code")
    assert block is not None
    assert block.get_text() == failure_text(failure) + "\n"
    assert failure_text(failure).startswith("snippets/tokens.py:7: tokens.shown: </code> <b>")
    assert "\x1b" not in failure_text(failure)
    assert failure_block(failure) in page.text.replace("\n    ", "\n")
    assert show("It is {{ tokens.shown.x | num(2) }}.", failures=(failure,)).text == "It is (?).\n"


# ---------- Whatever a snippet prints is shown and nothing else ----------

HOSTILE = [
    "</pre><script>alert(1)</script>",
    "```\n# heading\n```",
    "``````````\n~~~~~~~~",
    "~~~\n</code>",
    "{{ tokens.shown.x }} {{ code('tokens.scale') }}",
    "[@key] and [text](http://x)",
    "$x$ \\(y\\) $$z$$",
    '--8<-- "mkdocs.yml"',
    "---\ntitle: x\n---",
    "!!! note\n    text",
    "\x02wzxhzdk:0\x03 \x02klzzwxh:0\x03 \x02amp\x03 \x01wzxhzdk:0\x04",
    "nul \x00 bell \x07 delete \x7f next line \x85 form \x0c feed \x0b",
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(B \x1b",
    "over\rwrite\r\nnew line",
    "bidi \u202e\u2066 separators \u2028\u2029 soft\u00ad",
    "&amp; &lt; &#36; &",
    "trailing   \n   \n\ttab\tin the\tmiddle\n",
    "long " * 20_000,
    "<!-- comment -->\n<div markdown>\n*x*\n</div>",
    "[^1] [x]: y\n*[abbr]: z",
    "{: .class } { .class }",
    '<img alt="a" src="figures/tokens.shown-1.svg">',
    '<span class="arithmatex">\\(x\\)</span>',
    "\ufeffmark",
    "> quote\n- list\n| a |\n| - |",
    "\u3000wide space",
]


@pytest.mark.parametrize("before", ["", "!!! note\n    ", "- item\n\n    ", "  "])
@pytest.mark.parametrize("printed", HOSTILE)
def test_hostile_output_is_shown_letter_by_letter(show: Show, printed: str, before: str) -> None:
    text = readable(printed.encode())
    page = show(f'{before}{{{{ output("tokens.shown") }}}}\n\nAfter.\n', text)
    assert outputs(page.text) == [text + "\n"]
    assert not page.cited
    soup = html(page.text)
    assert not soup.select("script, img, h1, h2, table, .arithmatex, .footnote")
    assert soup.select("p")[-1].get_text() == "After."
    assert not FIGURE.search(str(soup))


fragments = (
    st.sampled_from(
        ["```", "~~~", "</code>", "{{", "}}", "[@key]", "&amp;", "--8<--", "wzxhzdk:0", "\n\n", "    ", "- "]
    )
    | st.sampled_from(["!!! note\n", "> ", "**", "[^1]", "](", "<!--", "'", '"'])
    | st.sampled_from("`<>$|\n\x01\x02\x03\x04\t\r\b\x1b\xa0\ufeff\u202e")
)
printable = st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))) | st.lists(
    fragments | st.text(max_size=3)
).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass"))


@hostile
@given(raw=printable, before=st.sampled_from(["", "!!! note\n    ", "1. item\n\n    ", '=== "T"\n    - x\n\n        ']))
def test_any_printed_bytes_show_as_a_terminal_would_show_them(show: Show, raw: bytes, before: str) -> None:
    text = readable(raw)
    page = show(f'{before}{{{{ example("tokens.shown") }}}}\n', text)
    assert outputs(page.text) == ([text + "\n"] if text else [])
    assert not page.cited
    assert not page.problems


@hostile
@given(
    text=st.text() | st.lists(fragments).map("".join), before=st.sampled_from(["", "- ", "1. ", "> ", "word ", "# "])
)
def test_any_returned_text_shows_as_that_text(show: Show, text: str, before: str) -> None:
    page = show(f"Start.\n\n{before}{{{{ tokens.shown.value }}}} end\n", values={"value": text})
    assert not page.problems
    soup = html(page.text)
    for link in soup.select("a.headerlink"):
        link.decompose()
    wanted = re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), escaped(text))
    assert " ".join(soup.get_text().split()) == " ".join(f"Start. {before.strip(' >-1.#')} {wanted} end".split())
    assert {tag.name for tag in soup.find_all()} <= {"p", "ul", "ol", "li", "blockquote", "h1"}
    assert len(soup.find_all("p")) <= 2


@pytest.mark.parametrize(
    "value", ["-", "---", "===", "- x", "+", "1", "12", "1.", "3)", "#", "| a |", "***", ":", "~~~", "```"]
)
@pytest.mark.parametrize(
    "source", ["{}", "{}. And on", "Text\n{}", "Text\n{}\nmore", "- {}", "- {}. And on", "> {} x", "{} {} x"]
)
def test_a_value_at_the_start_of_a_line_begins_no_list_heading_or_rule(show: Show, value: str, source: str) -> None:
    page = show(source.replace("{}", "{{ tokens.shown.v }}"), values={"v": value})
    soup = html(page.text)
    assert {tag.name for tag in soup.find_all()} <= {"p", *(["ul", "li"] if source[0] == "-" else []), "blockquote"}
    assert value in soup.get_text()


def test_a_value_keeps_to_its_table_cell_link_and_emphasis(show: Show) -> None:
    values = {"v": "a | b ](c) ** ` $"}
    soup = html(show("| x | y |\n| --- | --- |\n| {{ tokens.shown.v }} | 1 |\n", values=values).text)
    assert [cell.get_text() for cell in soup.select("td")] == [values["v"], "1"]
    soup = html(show("[{{ tokens.shown.v }}](page.md) and **{{ tokens.shown.v }}**", values=values).text)
    assert soup.select_one("a").get_text() == soup.select_one("strong").get_text() == values["v"]  # type: ignore[union-attr]


@hostile
@given(text=st.lists(fragments | st.text()).map("".join), before=st.sampled_from(["", "- item\n\n    "]))
def test_any_code_shows_as_it_is(text: str, before: str) -> None:
    text = f"x = {text}."
    block = html(before + fenced(text, ".python #a.b").replace("\n", "\n" + " " * (len(before) and 4))).select_one(
        "pre"
    )
    assert block is not None
    wanted = "\n".join(line if line.strip(" ") else "" for line in visible(text).expandtabs(4).split("\n"))
    assert block.get_text() == wanted + "\n"


@hostile
@given(text=st.text())
def test_nothing_closes_a_fence_from_inside(text: str) -> None:
    opening, *inside, closing = fenced(text, ".text").split("\n")
    assert opening == closing + " { .text }"
    assert closing not in "\n".join(inside)


# ---------- What is left alone ----------


@pytest.mark.parametrize(
    "source",
    [
        "`{{ x }}` and `` ` {{ y }} ` ``",
        "```\n{{ x }}\n```",
        "````md\n```\n{{ x }}\n```\n````",
        "~~~\n{{ x }}\n```\n{{ y }}\n~~~",
        '    ```python title="x"\n    {{ x }}\n\n    {{ y }}\n    ```',
        "> ``` { .python }\n> {{ x }}\n> ```",
        "`a\n{{ x }} b`",
        "- item\n\n    ~~~~\n    {{ x }}\n    ~~~\n    {{ y }}\n    ~~~~",
    ],
)
def test_braces_in_code_are_left_alone(show: Show, source: str) -> None:
    page = show(source + "\n")
    assert not page.problems
    assert page.text == source + "\n"
    assert page.text.count("{{") == html(page.text).get_text().count("{{") or "`" in source


def test_citations_in_code_output_and_values_are_left_alone(show: Show) -> None:
    source = (
        "`[@key]`\n\n~~~~ { .text }\n```\n[@key]\n~~~~\n\n> ```\n> [@key]\n> ```\n\n{{ tokens.shown.v }} \\[@key]\n\n"
    )
    page = show(source + '{{ example("tokens.shown") }}\n', "[@key]\n```\n[@key]", values={"v": "[@key]"})
    assert not page.cited
    assert not page.problems
    assert html(page.text).get_text().count("[@key]") == 7
    assert "href" not in str(html(page.text))


def test_comments_are_for_authors_and_left_out(show: Show) -> None:
    page = show(
        "Text <!-- {{ x }} [@key] --> goes on.\n\n<!--\n```\n{{ y }}\n-->\n\n{{ output('tokens.shown') }}", "a\n```b"
    )
    assert not page.problems
    assert "<!--" not in page.text
    assert outputs(page.text) == ["a\n```b\n"]


def test_a_comment_leaves_no_line_break_and_splits_no_paragraph(show: Show) -> None:
    page = show("One  <!-- a -->\ntwo\n<!-- b\nc -->\nthree <!-- d -->")
    assert page.text == "One\ntwo\nthree\n"


def test_prose_behind_a_block_is_an_error_even_between_comments(show: Show) -> None:
    assert "stands alone" in only(show("{{ code('tokens.scale') }} <!-- a --> text <!-- b -->"))


def test_a_comment_may_stand_behind_a_block(show: Show) -> None:
    page = show("- item\n\n    {{ output('tokens.shown') }} <!-- constant: why -->\n\n    More.", "printed")
    assert not page.problems
    assert html(page.text).select_one("li .output") is not None
    assert html(page.text).select_one("li > p:last-child").get_text() == "More."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("text\n```python\ncode\n", "page.md:2: this ``` opens code that is never closed"),
        ("~~~~\ncode\n~~~\n", "page.md:1: this ~~~~ opens code"),
        ("!!! note\n    ```\n    code\n\nout\n```", "page.md:2: this ``` opens code"),
        ("a\n\n<!-- open", "page.md:3: this <!-- is never closed"),
    ],
)
def test_what_is_never_closed_is_a_problem_and_swallows_nothing(show: Show, source: str, said: str) -> None:
    page = show(source + '\n\n{{ output("tokens.shown") }}\n', "<b>\n`` ` ``\n~~~\n```")
    assert said in messages(page)[0]
    assert outputs(page.text) == ["<b>\n`` ` ``\n~~~\n```\n"]


lines = st.sampled_from(
    """
```
````
~~~
    ```
    ~~~
  ```
> ```
> ~~~
> > ```
>
text
    text
{tab}```
``` python
``` a b c
``` a="b"
```{.x}
~~~ { .x }
~~~x{.y}
```x```
`
`` ` ```
<!--
-->
<!-- c -->```
    <!-- c --> <!-- d --> ~~~
<div>
</div>
---
!!! note
=== "T"
- item
1. a ` b
{{
{{ tokens.shown.x | num(2) }}
""".replace("{tab}", "\t").split("\n")
)


@settings(hostile, max_examples=500)
@given(
    before=st.lists(lines, max_size=8),
    printed=st.lists(lines, min_size=1).map("\n".join),
    indent=st.sampled_from(["", "    "]),
)
def test_no_chapter_lets_output_out_of_its_block(show: Show, before: list[str], printed: str, indent: str) -> None:
    printed = readable(f"<i>\n{printed}\n</i>".encode())
    source = "\n".join([*before, "", "!!! note", "", f'{indent}{{{{ output("tokens.shown") }}}}', ""])
    page = show(source, printed)
    if "```\n<i>" not in page.text.replace("\n    ", "\n") and "{ .text .output }" not in page.text:
        return  # the chapter's own code holds the directive
    assert not html(page.text).select("i")


# ---------- Values ----------


@pytest.mark.parametrize(
    ("written", "english", "vietnamese"),
    [
        ("x | num(3)", "0.687", "0,687"),
        ("x | num(0)", "1", "1"),
        ("x | pct(1)", "68.7%", "68,7%"),
        ("x | sci(2)", "6.87\u00a0×\u00a010⁻¹", "6,87\u00a0×\u00a010⁻¹"),
        ("n", "1,234,567", "1.234.567"),
        ("n | num(0)", "1,234,567", "1.234.567"),
        ("n | si(1)", "1.2\u202fM", "1,2\u202fM"),
        ("n | bytes", "1.2\u202fMB", "1,2\u202fMB"),
        ("n | bytes(2)", "1.23\u202fMB", "1,23\u202fMB"),
        ("weights[1] | num(2)", "0.50, 0.25", "0,50; 0,25"),
        ("weights[-1][-2] | num(1)", "0.5", "0,5"),
        ("weights[0, 1] | num(1)", "0.9", "0,9"),
        ("weights | num(1)", "0.1, 0.9; 0.5, 0.2", "0,1; 0,9; 0,5; 0,2"),
        ("heads", "2, 4, 8", "2, 4, 8"),
        ("heads[1:]", "4, 8", "4, 8"),
        ("heads[::-1]", "8, 4, 2", "8, 4, 2"),
        ("name", "GPT", "GPT"),
        ("yes", "True", "True"),
        ('nested["of by"] | num(1)', "0.5", "0,5"),
        ("nested[3]", "7", "7"),
        ("odd | num(1)", "NaN, ∞, −∞, 0.0", "NaN; ∞; −∞; 0,0"),
        ("huge", "1,000,000,000,000,000,000,000,000,000,000", "1.000.000.000.000.000.000.000.000.000.000"),
    ],
)
def test_a_value_is_written_as_the_pages_language_does(show: Show, written: str, english: str, vietnamese: str) -> None:
    for language, wanted in (("en", english), ("vi", vietnamese)):
        page = show(f"It is {{{{ tokens.shown.{written} }}}}.", language=language)
        assert not page.problems
        assert html(page.text).get_text() == f"It is {wanted}."


@pytest.mark.parametrize(
    ("directive", "said"),
    [
        ("toxens.shown.x | num(2)", "there is no example toxens.shown; did you mean tokens.shown?"),
        ("tokens.show.x | num(2)", "there is no example tokens.show; did you mean tokens.shown?"),
        ("i", "there is no example i (values are chapter.example.value; in mathematics, write `{ {`)"),
        ("tokens.shown.wieghts", "tokens.shown has no wieghts; did you mean weights? (it has x, n, weights"),
        ("tokens.shown.nested['ofby']", "tokens.shown.nested has no ofby; did you mean of by?"),
        ("tokens.shown.weights[2]", "tokens.shown.weights has 2 items, counted from 0: there is no [2]"),
        ("tokens.shown.weights[-3]", "there is no [-3]"),
        ("tokens.shown.weights.mean", "tokens.shown.weights is a list: .mean leads nowhere"),
        ("tokens.shown.weights['a']", "tokens.shown.weights is a list: ['a'] leads nowhere"),
        ("tokens.shown.x[0]", "tokens.shown.x is a float: [0] leads nowhere"),
        ("tokens.shown.x[i]", "[i] is not a plain number, name in quotes or slice"),
        ("tokens.shown.heads[::0]", "[::0] is not a plain number"),
        ("tokens.shown.heads['a':]", "['a':] is not a plain number"),
        ("tokens.shown.nested[:1]", "tokens.shown.nested is a dict: [:1] leads nowhere"),
        ("tokens.shown.x", "tokens.shown.x is 0.6874: say how to write it, for instance | num(3)"),
        ("tokens.shown.weights", "is 0.1: say how to write it"),
        ("tokens.shown.none", "tokens.shown.none is nothing (None)"),
        ("tokens.shown.nested", "tokens.shown.nested is a dict; quote one of its parts"),
        ("tokens.shown.empty", "tokens.shown.empty is an empty list"),
        ("tokens.shown.heads[3:] | num(0)", "num formats numbers, and this is []"),
        ("tokens.shown", "tokens.shown is a dict; quote one of its parts"),
        ("tokens.shown.model", "tokens.shown.model is a Module, which prose cannot quote"),
        ("tokens.shown.mixed | num(1)", "num formats numbers, and this is a Module"),
        ("tokens.shown.mixed[1:]", "tokens.shown.mixed[1:] holds a Module"),
        ("tokens.shown.name | num(1)", "num formats numbers, and this is 'GPT'"),
        ("tokens.shown.yes | num(1)", "num formats numbers, and this is True"),
        ("tokens.shown.none | num(1)", "num formats numbers, and this is None"),
        ("tokens.shown.x | nun(2)", "there is no filter nun; did you mean num?"),
        ("tokens.shown.x | num", "say how many decimals: | num(2)"),
        ("tokens.shown.x | num(True + 1)", "say how many decimals"),
        ("tokens.shown.x | num(-1)", "say how many decimals"),
        ("tokens.shown.x | num(99)", "say how many decimals"),
        ("tokens.shown.x | num(1.5)", "say how many decimals"),
        ("tokens.shown.x | num(2) | pct(1)", "is not the name of a value"),
        ("tokens.shown.x * 2", "prose quotes values and computes none"),
        ("-tokens.shown.x", "prose quotes values and computes none"),
        ("'text'", "is not the name of a value"),
        ("", "is not the name of a value"),
        ("(", "this {{ is not a directive that can be read"),
        ("tokens.shown.x if", "this {{ is not a directive that can be read"),
        ("\0", "this {{ is not a directive that can be read"),
    ],
)
def test_a_value_that_cannot_be_quoted_is_an_error_with_page_and_line(show: Show, directive: str, said: str) -> None:
    message = only(show(f"First line.\n\nIt is {{{{ {directive} }}}} here.\n"))
    assert message.startswith("docs/page.md:3: ")
    assert said in message


@pytest.mark.parametrize(
    ("directive", "said"),
    [
        ('exmaple("tokens.shown")', "there is no directive exmaple(...); did you mean example?"),
        ('example("tokens.show")', "there is no example tokens.show; did you mean tokens.shown?"),
        ('example(tokens.shown, alt="x")', 'write one name in quotes: example("chapter.name")'),
        ("example()", "write one name in quotes"),
        ('example("tokens.shown", "a")', "write one name in quotes"),
        ('example("tokens.shown", atl="x")', "example(...) takes alt, caption, not atl=; did you mean alt?"),
        ('example("tokens.shown", **x)', "example(...) takes alt, caption, not **="),
        ('code("tokens.scale", alt="x")', "code(...) takes no options, not alt="),
        ('code("token.scale")', "there is no snippet module for token.scale; did you mean tokens?"),
        ('code("tokens.skale")', "snippets/tokens.py defines no skale; did you mean scale?"),
        ('code("tokens")', "say which definition of snippets/tokens.py"),
        ('output("tokens.silent")', "tokens.silent prints nothing"),
        ('figure("tokens.silent", alt="x")', "tokens.silent draws 0 figure(s), and figure 1 is asked for"),
        ('figure("tokens.shown", alt="x", number=3)', "draws 2 figure(s), and figure 3 is asked for"),
        ('figure("tokens.shown", alt="x", number=True)', "figure True is asked for"),
        ('figure("tokens.shown", alt="x", number="1")', "figure 1 is asked for"),
        ('figure("tokens.shown")', 'each needs alt="..."'),
        ('figure("tokens.shown", alt="")', 'each needs alt="..."'),
        ('figure("tokens.shown", alt=" ")', 'each needs alt="..."'),
        ('figure("tokens.shown", alt=3)', "alt= is text in quotes, or a list of such texts"),
        ('figure("tokens.shown", alt=[3])', "alt= is text in quotes, or a list of such texts"),
        ('figure("tokens.shown", alt=x)', "alt= is a plain value"),
        ('figure("tokens.shown", alt={[]: 1})', "alt= is a plain value"),
        ('figure("tokens.shown", alt="x", caption=["a", "b"])', "caption= has 2 text(s) for 1 figure(s)"),
        ('figure("tokens.shown", alt="see [@key]")', "alt= can hold no citation"),
        ('figure("tokens.shown", alt="{{ tokens.shown.y }}")', "tokens.shown has no y"),
        ('figure("tokens.shown", alt="{{ ( }}")', "in alt=: this {{ is not a directive"),
        ('example("tokens.shown", alt="one for two")', "alt= has 1 text(s) for 2 figure(s)"),
        ('example("tokens.shown")', "tokens.shown draws 2 figure(s): each needs alt"),
        ('example("tokens.silent", alt="x")', "alt= has 1 text(s) for 0 figure(s)"),
        ("machine(1)", "machine() takes nothing"),
        ("tokens.shown()", "there is no directive tokens.shown(...)"),
    ],
)
def test_a_wrong_block_is_an_error_that_says_what_would_be_right(show: Show, directive: str, said: str) -> None:
    page = show(f"First line.\n\n- item\n\n    {{{{ {directive} }}}}\n\nAfter.\n", "printed", figures=2)
    message = only(page)
    assert message.startswith("docs/page.md:5: ")
    assert said in message
    assert html(page.text).select_one("li strong").get_text() == "(?)"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [
        "| {{ code('tokens.scale') }} | x |",
        "- {{ code('tokens.scale') }}",
        "See {{ code('tokens.scale') }}",
        "> {{ code('tokens.scale') }}",
    ],
)
def test_a_block_inside_a_line_is_an_error_and_a_value_is_not(show: Show, line: str) -> None:
    assert "code(...) stands alone on its line" in only(show(f"| a | b |\n| - | - |\n{line}\n"))
    assert not show(line.replace("code('tokens.scale')", "tokens.shown.n")).problems


def test_a_result_that_is_not_there_yet_is_a_problem(show: Show, write_book: Callable[..., Path]) -> None:
    page = Page("docs/page.md", "{{ tokens.shown.x | num(1) }}\n\n{{ output('tokens.shown') }}")
    Renderer(Book.read(write_book(SNIPPETS)), Outcomes()).render(page, "en")
    assert messages(page) == [f"docs/page.md:{line}: tokens.shown has no result yet" for line in (1, 3)]


def test_the_pages_problems_come_with_their_own_lines(show: Show) -> None:
    page = show("---\ntitle: x\n---\n{{ a.b }}\n`{{` {{\n\n{{ figure('tokens.shown',\n  alt='x') }}\n{{ c.d }} [@kye]")
    assert [problem.line for problem in sorted(page.problems, key=lambda problem: problem.line)] == [4, 5, 7, 9, 9]


def test_what_a_page_uses_is_known_with_its_first_line(show: Show) -> None:
    page = show('{{ figure("tokens.shown",\n   alt="{{ tokens.silent.n }}") }}\n\n{{ tokens.shown.n }}', figures=1)
    assert page.used == {"tokens.shown": 1, "tokens.silent": 1}


# ---------- Alt texts and captions ----------

TEXTS = [
    "\"double\" and 'single'",
    "a [b](c) ![d]",
    "$x^2$ and \\(y\\)",
    "<b> & &amp; &lt;",
    "`code` *em* **b** _u_",
    "(paren) )(",
    "it's",
    "'",
    "\\ back \\\\",
    "{: .x } {{",
    "https://x.y/z",
    "Tiếng Việt",
    "- 1. x",
    "a | b",
]


@pytest.mark.parametrize("text", TEXTS)
def test_alt_text_and_caption_arrive_letter_by_letter(show: Show, text: str) -> None:
    page = show(
        "!!! note\n\n    {{ figure('tokens.shown', alt='{{ tokens.shown.v }}', caption='{{ tokens.shown.v }}') }}",
        figures=1,
        values={"v": text},
    )
    [image] = html(page.text).select("img")
    assert (image["alt"], image["title"]) == (text, text)


@hostile
@given(
    alt=st.text(st.characters(codec="utf-8"), min_size=1) | st.lists(fragments, min_size=1).map("".join),
    caption=st.text(st.characters(codec="utf-8")),
)
def test_any_alt_text_and_caption_survive_the_hook(show: Show, alt: str, caption: str) -> None:
    values = {"alt": f"a{alt}", "caption": caption}
    page = show(
        "{{ figure('tokens.shown', alt='{{ tokens.shown.alt }}', caption='{{ tokens.shown.caption }}') }}",
        figures=1,
        values=values,
    )
    built = markdown.markdown(page.text, extensions=list(EXTENSIONS), extension_configs=EXTENSIONS)
    [image] = BeautifulSoup(built, "html.parser").select("img")
    found = FIGURE.fullmatch(built)
    assert found
    assert found["file"] == "tokens.shown-1.svg"
    for shown, name, quoted in ((found["alt"], "alt", values["alt"]), (found["caption"], "title", caption)):
        read = BeautifulSoup(f'<i title="{shown or ""}">', "html.parser").i
        assert read is not None
        wanted = re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), escaped(quoted.strip()))
        assert image.get(name, "") == read["title"] == wanted


def test_alt_texts_and_captions_quote_values_in_the_pages_language(show: Show) -> None:
    alt, caption = '["{{ tokens.shown.x | num(2) }} of", "two"]', '["", "{{ tokens.shown.heads }}"]'
    source = f'{{{{ example("tokens.shown", alt={alt}, caption={caption}) }}}}'
    page = show(source, figures=2, language="vi")
    assert not page.problems
    assert [(image["alt"], image.get("title")) for image in html(page.text).select("img")] == [
        ("0,69 of", None),
        ("two", "2, 4, 8"),
    ]
    assert sorted(page.figures) == ["tokens.shown-1.svg", "tokens.shown-2.svg"]


def test_a_figure_is_addressed_from_the_folder_of_its_page(show: Show) -> None:
    page = show('{{ figure("tokens.shown", alt="x", number=2) }}', figures=2, path="docs/vi/page.md")
    assert "](../figures/tokens.shown-2.svg)" in page.text
    assert list(page.figures) == ["tokens.shown-2.svg"]


# ---------- Chapters as files ----------


def test_a_chapter_may_have_a_mark_carriage_returns_and_no_last_line_end(write_book: Callable[..., Path]) -> None:
    root = write_book(SNIPPETS, {"index": ""})
    (root / "docs/index.md").write_bytes(
        "\ufeff# Title\r\n\r\n```\r\n{{ x }}\r\n```\r\n\r{{ tokens.shown.x |\r\n num(2) }}".encode()
    )
    [page] = chapters(root)
    Renderer(Book.read(root), Outcomes({"tokens.shown": result("tokens.shown", values=VALUES)})).render(page, "en")
    assert not page.problems
    assert page.text == "# Title\n\n```\n{{ x }}\n```\n\n&#48;.69\n"


def test_a_directive_in_front_matter_is_an_error(show: Show) -> None:
    page = show("---\ntitle: x\ndescription: '{{ tokens.shown.n }} [@key]'\n---\n\nText.")
    assert only(page) == "docs/page.md:3: a directive cannot stand in the page's front matter"
    assert not page.cited


def test_braces_that_open_nothing_are_an_error_and_the_rest_is_read(show: Show) -> None:
    page = show("A {{ b.\n\nIt's {{ tokens.shown.n }} and {{ 'open }} {{ tokens.shown.n }}")
    assert [problem.line for problem in page.problems] == [1, 3]
    assert page.text.count("1,234,567") == 2


def test_texts_in_a_directive_may_hold_braces_quotes_and_line_ends(show: Show) -> None:
    page = show(
        """{{ figure("tokens.shown",\n  alt="it's }} {{ tokens.shown.nested['3'] }}"\n    ' "and" more',\n) }}""",
        figures=1,
    )
    assert not page.problems
    assert html(page.text).select("img")[0]["alt"] == 'it\'s }} 7 "and" more'


def test_directives_are_found_in_order_with_where_they_stand() -> None:
    source = "a {{ b.c }}\n- {{ d.e }}\n\t{{ f(\n) }} <!-- why -->\n"
    found = list(directives(source, "docs/a.md", []))
    assert [(one.line, one.indent, one.opens) for one in found] == [(1, None, False), (2, None, True), (3, "\t", True)]
    assert [source[one.start : one.end] for one in found] == ["{{ b.c }}", "{{ d.e }}", "{{ f(\n) }} <!-- why -->"]


@pytest.mark.parametrize(
    "source",
    [
        *("{{ " * 5000, '{{ "' * 5000, "{{ a.b\n" * 3000, "{{ " + "(" * 3000 + " }}", "{{ " + "a." * 4000 + "a }}"),
        *("```x\n" * 3000, '``` title="b" ' * 5000 + "!", "\n".join("`" * (3 + i % 100) for i in range(3000))),
        *("`" + "a " * 50_000, "`a``b`" * 5000, "- a ` b\n" * 5000, "<!-- " * 5000, "[@key;" * 20_000),
        *("> " * 50_000, " " * 100_000, "\\" * 100_000, "---\n" + "a\n" * 5000),
    ],
    ids=lambda source: repr(source[:12]),
)
def test_no_chapter_hangs_the_reader(show: Show, source: str) -> None:
    begun = time.perf_counter()
    show(source)
    assert time.perf_counter() - begun < 30  # a search that backtracks would take hours
