"""executed/definitions.py: names in code lead to what they mean, where the book shows it and where that is certain."""

import re
import shutil
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from executed import definitions
from executed.book import Book
from executed.capture import visible
from executed.memo import Memo
from executed.render import Page, Renderer
from executed.stage import chapters
from executed.store import Outcomes, Store

WriteBook = Callable[..., Path]

LAYERS = """
from executed import example


SIZE = 4


def scores(x):
    return x


class Layer:
    width: int = 3

    def __init__(self, x):
        self.kept = x

    def split(self, x):
        return scores(x) + SIZE

    def forward(self, x):
        return self.split(x) + self.kept


class Wide(Layer):
    def split(self, x):
        return super().split(x)


@example
def trained():
    layer = Layer(SIZE)
    print(layer.forward(1), "Layer")  # a Layer
    return {"layer": 1}


@example
def read(trained):
    print(trained)
    return {"x": 1}
"""
SHOWN = """
{{ code("layers.scores") }}

{{ code("layers.Layer") }}

{{ code("layers.Wide") }}

{{ example("layers.trained") }}

{{ example("layers.read") }}
"""


def linked(root: Path, page: str = "docs/layers.md") -> dict[str, list[str]]:
    """For each block of a page: the names in it that are links, each with what it leads to, `name -> page#anchor`."""
    book, pages = Book.read(root), chapters(root)
    outcomes = Outcomes(absent=dict.fromkeys(book.examples, "a machine that this is not"))
    renderer = Renderer(book, outcomes)
    renderer.find_examples(pages)
    for one in pages:
        renderer.render(one, "en")
        assert not one.problems
    memo = Memo(Store(root), "names")
    marks = definitions.marks(book, pages, memo)
    memo.keep()
    (asked,) = (one for one in pages if one.path == page)
    found: dict[str, list[str]] = {}
    for name, code in asked.blocks:
        html = coloured(visible(code).expandtabs(4))
        made = definitions.linked(html, marks.get(page.removeprefix("docs/"), {}), lambda to, at: f"{to}#{at}")
        assert text_of(made) == text_of(html)
        links = re.findall(r'<a class="defined" href="([^"]*)">([^<]*)</a>', made)
        found[name] = [f"{name} -> {to}" for to, name in links]
        found[f"ids of {name}"] = re.findall(r'<span id="([^"]*)">', made)
    return found


def coloured(code: str) -> str:
    inside = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre><span></span><code>{inside}</code></pre></div>'


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def targets(write_book: WriteBook, snippet: str, shown: str, *others: str) -> list[str]:
    """What the names in the last block of a page lead to."""
    page = "\n\n".join(f'{{{{ code("a.{name}") }}}}' for name in (*others, shown))
    root = write_book({"a": snippet}, {"a": page})
    return [link.replace("a.md#a.", "") for link in linked(root, "docs/a.md")[f"a.{shown}"]]


def test_names_lead_to_the_definitions_that_a_page_shows(write_book: WriteBook) -> None:
    found = linked(write_book({"layers": LAYERS}, {"layers": SHOWN}))
    assert found["layers.scores"] == []
    assert found["layers.Layer"] == [
        "scores -> layers.md#layers.scores",
        "split -> layers.md#layers.Layer.split",
    ]
    assert found["layers.Wide"] == ["Layer -> layers.md#layers.Layer", "split -> layers.md#layers.Layer.split"]
    assert found["layers.trained"] == [
        "Layer -> layers.md#layers.Layer",
        "forward -> layers.md#layers.Layer.forward",
    ]


def test_the_methods_and_fields_of_a_class_that_is_shown_are_anchors(write_book: WriteBook) -> None:
    found = linked(write_book({"layers": LAYERS}, {"layers": SHOWN}))
    names = ["width", "__init__", "split", "forward"]
    assert found["ids of layers.Layer"] == [f"layers.Layer.{name}" for name in names]
    again = linked(write_book({}, {"layers": '{{ code("layers.Layer.split") }}\n' + SHOWN}))
    assert again["ids of layers.Layer"] == [f"layers.Layer.{name}" for name in names if name != "split"]


def test_a_class_that_is_shown_twice_has_its_anchors_once(write_book: WriteBook) -> None:
    code = "class Layer:\n    def split(self):\n        return Layer"
    marks: definitions.Marks = {definitions.key(code): [(21, 26, "", "a.Layer.split"), (49, 54, "b.md", "b.Layer")]}
    made = definitions.linked(coloured(code) * 2, marks, lambda page, name: f"{page}#{name}")
    assert made.count('id="a.Layer.split"') == 1
    assert made.count('href="b.md#b.Layer"') == 2


def test_a_parameter_leads_to_the_example_whose_result_it_is(write_book: WriteBook) -> None:
    found = linked(write_book({"layers": LAYERS}, {"layers": SHOWN}))
    assert found["layers.read"] == ["trained -> layers.md#layers.trained"]


def test_names_lead_to_other_pages_and_first_to_those_of_the_same_language(write_book: WriteBook) -> None:
    use = """
    from snippets.layers import Layer as Base, scores
    from snippets import layers

    def use(x):
        from snippets.layers import SIZE
        return scores(Base(SIZE).split(x)) + layers.SIZE + layers.scores(x)
    """
    show = '{{ code("layers.SIZE") }}\n\n{{ code("layers.scores") }}\n\n{{ code("layers.Layer") }}\n'
    root = write_book(
        {"layers": LAYERS, "use": use},
        {"layers": SHOWN + show, "vi/layers": show, "use": '{{ code("use.use") }}', "vi/use": '{{ code("use.use") }}'},
    )
    expected = ["SIZE", "scores", "Base", "SIZE", "split", "SIZE", "scores"]
    for page in ("docs/use.md", "docs/vi/use.md"):
        links = linked(root, page)["use.use"]
        assert [link.partition(" ")[0] for link in links] == expected
        assert {link.partition("> ")[2].partition("#")[0] for link in links} == {page[5:].replace("use", "layers")}
    assert links[2] == "Base -> vi/layers.md#layers.Layer"


@pytest.mark.parametrize(
    "body",
    [
        "def use(helper):\n    return helper",
        "def use():\n    helper = 1\n    return helper",
        "def use():\n    for helper in ():\n        print(helper)",
        "def use():\n    return [helper for helper in ()]",
        "def use():\n    return lambda helper: helper",
        "def use():\n    def inner(x, *helper):\n        return helper\n    return inner",
        "def use():\n    with open('x') as helper:\n        return helper",
        "def use():\n    import math as helper\n    return helper",
        "def use():\n    try:\n        pass\n    except OSError as helper:\n        raise helper",
        "def use():\n    if (helper := 1):\n        return helper",
        "def use():\n    return 'helper', f'helper', x.helper, x(helper=1)  # helper",
        "class use:\n    helper = 1\n    other = helper",
    ],
)
def test_a_local_of_the_same_name_a_string_and_a_comment_are_no_links(write_book: WriteBook, body: str) -> None:
    found = targets(write_book, f"x = print\n\ndef helper():\n    pass\n\n{body}\n", "use", "helper")
    assert [link for link in found if link.endswith("-> helper")] == []


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("def use(x: helper, y=helper) -> helper:\n    return helper", 4),
        ("@helper\ndef use():\n    return [helper for _ in helper]", 3),
        ("def use():\n    def inner():\n        return helper\n    return lambda: helper", 2),
        ("def use():\n    return {helper: [(helper, y) for y in helper] for y in helper if helper}", 5),
        ("def use():\n    'Tiếng Việt'; việt = 1; return 'Tiếng Việt', việt, helper", 1),
        ("class use(helper):\n    x = helper\n    def method(self):\n        return helper", 3),
        ("def use():\n    global helper\n    return helper", 1),
        ("use = helper", 1),
    ],
)
def test_every_name_that_python_looks_up_in_the_module_is_a_link(write_book: WriteBook, body: str, count: int) -> None:
    found = targets(write_book, f"class helper:\n    pass\n\n{body}\n", "use", "helper")
    assert found == ["helper -> helper"] * count


@pytest.mark.parametrize(
    ("body", "links"),
    [
        ("def use(one: Thing):\n    return one.act()", ["Thing -> Thing", "act -> Thing.act"]),
        ("def use():\n    one = Thing()\n    return one.act()", ["Thing -> Thing", "act -> Thing.act"]),
        ("def use():\n    one = Thing()\n    one = 2\n    return one.act()", ["Thing -> Thing"]),
        ("def use(one):\n    return one.act()", []),
        ("def use():\n    return Thing().act(), Thing.act", ["Thing -> Thing", "act -> Thing.act"] * 2),
        ("class use(Thing):\n    def more(self):\n        return self.act()", ["Thing -> Thing", "act -> Thing.act"]),
        ("class use(Thing):\n    @staticmethod\n    def more(one):\n        return one.act()", ["Thing -> Thing"]),
        ("def use():\n    return Thing().unknown()", ["Thing -> Thing"]),
    ],
)
def test_a_method_is_a_link_where_the_class_is_certain(write_book: WriteBook, body: str, links: list[str]) -> None:
    assert targets(write_book, f"class Thing:\n    def act(self):\n        pass\n\n{body}\n", "use", "Thing") == links


def test_what_no_page_shows_is_no_link_and_a_part_of_a_class_leads_to_the_class(write_book: WriteBook) -> None:
    source = "def hidden():\n    pass\n\ndef use():\n    return hidden()\n"
    assert targets(write_book, source, "use") == []


def test_code_that_is_shown_otherwise_than_it_is_written_keeps_its_links(write_book: WriteBook) -> None:
    source = """
    from executed import example

    def helper():
        return 1

    @example
    def one(): print(helper())

    @example
    def two():
        '''helper()'''
        # first

        x = '''
    helper()'''; y = helper()
        if x:
        \tprint(x, helper()); return y
    """
    root = write_book(
        {"a": source}, {"a": '{{ code("a.helper") }}\n\n{{ example("a.one") }}\n\n{{ example("a.two") }}'}
    )
    assert linked(root, "docs/a.md")["a.two"] == ["helper -> a.md#a.helper"] * 2


def test_two_thousand_names_take_a_moment(write_book: WriteBook) -> None:
    """A book of thousands of examples is staged in seconds; names may not be what it waits for."""
    body = "\n".join(f"    x{number} = helper(x{number - 1 if number else 0})" for number in range(2000))
    root = write_book({"a": f"def helper(x):\n    return x\n\ndef use(x0):\n{body}\n"},
                      {"a": '{{ code("a.helper") }}\n\n{{ code("a.use") }}'})  # fmt: skip
    book = Book.read(root)
    page = Page("docs/a.md", (root / "docs/a.md").read_text())
    Renderer(book, Outcomes()).render(page, "en")
    started = time.process_time()
    marks = definitions.marks(book, [page], Memo(Store(root), "names"))
    assert len(next(iter(marks["a.md"].values()))) == 2000
    assert time.process_time() - started < 1


def test_links_follow_what_changes_in_another_module(write_book: WriteBook) -> None:
    """What is known of a module is known no longer once a module that its names lead to says something else."""
    pages = {"a": '{{ code("a.use") }}', "b": '{{ code("b.Kind") }}', "c": '{{ code("c.Base") }}'}
    user = "from snippets.b import Kind\n\ndef use():\n    kind = Kind()\n    return kind.turn(1), kind.rest\n"
    heir = "from snippets.c import Base\n\nclass Kind(Base):\n    {}\n"
    base = "class Base:\n    rest = 1\n    {}\n"
    turn = "def turn(self, x):\n        return x"
    root = write_book({"a": user, "b": heir.format("pass"), "c": base.format("pass")}, pages)
    found: list[list[str]] = []
    for inherited, own in ((turn, "pass"), (turn, turn), ("pass", turn), ("pass", "pass")):
        write_book({"b": heir.format(own), "c": base.format(inherited)})
        known = linked(root, "docs/a.md")["a.use"]
        shutil.rmtree(root / ".executed", ignore_errors=True)
        assert linked(root, "docs/a.md")["a.use"] == known
        found.append([one for one in known if one.startswith("turn")])
    assert found == [["turn -> c.md#c.Base.turn"], *[["turn -> b.md#b.Kind.turn"]] * 2, []]
