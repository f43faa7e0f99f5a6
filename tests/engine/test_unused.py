"""executed/unused.py: what nothing uses is found, where it stands; and it is found no more once something uses it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from executed import unused
from executed.book import Book, Problem
from executed.render import Page
from executed.stage import chapters

WriteBook = Callable[..., Path]
Find = Callable[[Book, list[Page]], list[Problem]]


def found(root: Path, find: Find) -> list[str]:
    return [str(problem) for problem in find(Book.read(root), chapters(root))]


def write_tests(root: Path, **files: str) -> Path:
    (root / "tests").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / f"tests/{name}.py").write_text(text, "utf-8")
    return root


# Examples

TWO = """
from executed import example

@example
def one():
    return {"x": 1}

@example
def two():
    return {"y": 2}
"""


def test_an_example_that_no_chapter_shows_is_found_at_its_line(write_book: WriteBook) -> None:
    root = write_book({"a": TWO}, {"index": '{{ example("a.one") }}\n'})
    assert found(root, unused.examples) == [
        'snippets/a.py:8: no chapter shows a.two: show it ({{ example("a.two") }}) or delete it'
    ]


@pytest.mark.parametrize(
    "use",
    [
        '{{ example("a.two") }}',
        '{{ output("a.two") }}',
        'It is {{ a.two["y"] | num(2) }}.',
        '{{ figure("a.one", alt="{{ a.two.y }} lines") }}',
        '{{ figure("a.one", alt="x", caption=["y", "{{ a.two.y }} lines"]) }}',
        '{{ when_run("a.one") }}\n    {{ example("a.two") }}',
    ],
)
def test_an_example_that_a_chapter_shows_or_quotes_is_used(write_book: WriteBook, use: str) -> None:
    root = write_book({"a": TWO}, {"index": '{{ example("a.one") }}\n', "vi/index": f"\n{use}\n"})
    assert found(root, unused.examples) == []


def test_an_example_is_used_by_a_reference_figure_and_by_a_used_example_that_needs_it(write_book: WriteBook) -> None:
    chain = TWO + "\n@example\ndef three(two):\n    pass\n\n@example\ndef four(three):\n    pass\n"
    root = write_book({"a": chain}, {"index": '{{ example("a.four") }}\n'})
    assert [line.split(":")[1] for line in found(root, unused.examples)] == ["4"]
    (root / "docs/reference_figures.toml").write_text(
        '[[figure]]\nid = "x"\nours = "a.one.x"\npublished = 1\nkind = "exact"\n'
    )
    assert found(root, unused.examples) == []


@pytest.mark.parametrize(
    "mention", ['{{ when_run("a.two") }}\n    text\n', '`{{ example("a.two") }}`', '{{ code("a.two") }}']
)
def test_a_condition_the_code_alone_and_a_directive_in_code_do_not_show_an_example(
    write_book: WriteBook, mention: str
) -> None:
    root = write_book({"a": TWO}, {"index": f'{{{{ example("a.one") }}}}\n\n{mention}\n'})
    assert len(found(root, unused.examples)) == 1


def test_a_chapter_that_asks_for_a_name_close_to_an_unused_example_is_named(write_book: WriteBook) -> None:
    root = write_book({"a": TWO}, {"index": '{{ example("a.one") }}\n\n{{ a.twoo.y }}\n'})
    assert found(root, unused.examples)[0].endswith("or delete it; did docs/index.md:3 mean it with a.twoo?")


# Values

READERS = """
from executed import example

def helper(found):
    return found["by_helper"]

def make():
    return {"made": 1}

@example
def one():
    inner = lambda: {"inner": 1}
    def nested():
        return {"nested": 1}
    print("spare")
    return {"spare": 1,
            "quoted": 2, **make()}

@example
def two(one):
    helper(one)
    return {"needed": one["by_need"]}

@example
def opaque():
    return make()
"""


def one_value(write_book: WriteBook, returned: str = '{"x": 1}', **docs: str) -> Path:
    source = f"from executed import example\n\n@example\ndef one():\n    return {returned}\n"
    return write_book({"a": source}, {"index": '{{ example("a.one") }}\n', **docs})


def test_a_value_that_nobody_reads_is_found_at_its_line(write_book: WriteBook) -> None:
    root = write_book({"a": READERS}, {"index": "{{ a.one.quoted }} and {{ a.two.needed }}\n"})
    assert found(root, unused.values) == [
        "snippets/a.py:15: a.one returns spare, and nobody reads it: quote it ({{ a.one.spare }}), test it or delete it"
    ]


@pytest.mark.parametrize(
    "quote",
    [
        "{{ a.one.x }}",
        '{{ a.one["x"] | num(2) }}',
        "{{ a.one.x[0][1:] }}",
        "{{ a.one.x.deeper }}",
        '{{ figure("a.one", alt="{{ a.one.x }}") }}',
        '{{ figure("a.one", alt="y", caption=["{{ a.one.x }}"]) }}',
        '{{ not_run("a.one") }}\n{{ when_not_run("a.one") }}\n    {{ a.one.x }}',
    ],
)
def test_a_value_that_a_chapter_quotes_is_read(write_book: WriteBook, quote: str) -> None:
    assert found(one_value(write_book, vi=f"{quote}\n"), unused.values) == []


def test_a_value_that_a_reference_figure_asks_for_is_read(write_book: WriteBook) -> None:
    root = one_value(write_book)
    (root / "docs/reference_figures.toml").write_text(
        '[[figure]]\nid = "x"\nours = ["a.one.x.deeper"]\npublished = 1\nkind = "exact"\n'
    )
    assert found(root, unused.values) == []


@pytest.mark.parametrize(
    "test",
    [
        'def test_x(result):\n    assert result("a.one").values["x"]',
        'def test_x(result):\n    assert result("a.one").values == {"x": 1}',
        'def test_x(result):\n    assert result("a.one").returned().x',
        'def test_x(result):\n    for key, value in result("a.one").values.items():\n        pass',
        'def test_x(result):\n    check(**result("a.one").values)',
        'def check(values):\n    values["x"]\n\ndef test_x(result):\n    check(result("a.one").values)',
        'KEYS = ["x"]\n\ndef test_x(result):\n    [result("a.one").values[key] for key in KEYS]',
        'def one(result):\n    return result("a.one").values\n\ndef test_x(one):\n    one["x"]',
        '@mark.parametrize("name", ["a.one"])\ndef test_x(result, name):\n    result(name).values["x"]',
        'def test_x(result, name):\n    result(f"a.{name}").values["x"]',
        'from snippets import a\n\ndef test_x():\n    a.one()["x"]',
        'from snippets.a import one\n\ndef test_x():\n    one()["x"]',
    ],
)
def test_a_value_that_a_test_reads_is_read(write_book: WriteBook, test: str) -> None:
    root = write_tests(one_value(write_book), test_a="")
    assert len(found(root, unused.values)) == 1
    assert found(write_tests(root, test_a=test), unused.values) == []


@pytest.mark.parametrize(
    "test",
    [
        'def test_x(result):\n    assert result("a.one").values["y"]',
        'def test_x(result):\n    assert result("a.two").values["x"]',
        'def test_x(result):\n    result("a.one")\n\ndef test_y(result):\n    result("a.two").values["x"]',
        'def test_x(result, name):\n    result(f"{name}.{name}").values["x"]',
        'def test_x(result):\n    for value in result("a.one").values["y"].items():\n        pass',
        "this is no Python",
    ],
)
def test_another_value_or_the_value_of_another_example_is_not_read_in_its_place(
    write_book: WriteBook, test: str
) -> None:
    assert len(found(write_tests(one_value(write_book), test_a=test), unused.values)) == 1


def test_a_value_is_read_by_an_example_that_needs_its_own_in_another_module_too(write_book: WriteBook) -> None:
    root = one_value(write_book, '{"x": 1, "y": 2}')
    reader = (
        'from executed import example\nfrom snippets.a import one\n\n@example\ndef two(one):\n    print(one["x"])\n'
    )
    write_book({"b": reader})
    assert [line.split()[3] for line in found(root, unused.values)] == ["y,"]
    write_book({"c": "def show(found):\n    print(found['y'])\n"})
    write_book({"b": reader.replace("\n\n", "\nfrom snippets.c import show\n\n") + "    show(one)\n"})
    assert found(root, unused.values) == []


def test_a_dict_written_as_a_call_is_looked_into_and_another_object_is_not(write_book: WriteBook) -> None:
    assert len(found(one_value(write_book, "dict(x=1)"), unused.values)) == 1
    assert found(one_value(write_book, "(1, 2)"), unused.values) == []


def test_a_value_that_a_chapter_seems_to_mean_is_named(write_book: WriteBook) -> None:
    root = one_value(write_book, '{"weights": 1}', vi="Text.\n{{ a.one.wieghts }}\n")
    assert found(root, unused.values)[0].endswith("; did docs/vi.md:2 mean it with wieghts?")


# Sources

SOURCES = "% a list\n@misc{group2020, title = {A}, year = {2020}}\n\n@misc{other, title = {B}, year = {2021}}\n"


def test_a_source_that_no_chapter_cites_is_found_at_its_line(write_book: WriteBook) -> None:
    root = write_book({}, {"index": "They say [@group2020], and in code `[@other]`.\n"})
    (root / "docs/references.bib").write_text(SOURCES)
    assert found(root, unused.sources) == [
        "docs/references.bib:4: no chapter cites other: cite it ([@other]) or delete it"
    ]
    write_book({}, {"vi/index": '{{ when_run("a.one") }}\n    So do others [@group2020; @other].\n'})
    assert found(root, unused.sources) == []


def test_a_chapter_that_cites_a_key_close_to_an_unused_one_is_named(write_book: WriteBook) -> None:
    root = write_book({}, {"index": "They\nsay [@group200; @other].\n"})
    (root / "docs/references.bib").write_text(SOURCES)
    assert found(root, unused.sources)[0].endswith("or delete it; did docs/index.md:2 mean it with group200?")


def test_a_bibliography_that_cannot_be_read_is_said_once_by_its_own_error(write_book: WriteBook) -> None:
    root = write_book({}, {"index": "Text.\n"})
    (root / "docs/references.bib").write_text("@misc{a")
    assert "this is no good BibTeX" in found(root, unused.sources)[0]


# Chapters without tests

GOOD_TEST = 'def test_x(result):\n    assert result("a.one").values["x"]\n'


def test_a_chapter_that_shows_an_example_of_its_own_needs_tests_of_its_name(write_book: WriteBook) -> None:
    root = one_value(write_book, **{"a": 'Text.\n\n{{ example("a.one") }}\n', "vi/a": '{{ example("a.one") }}\n'})
    assert found(root, unused.tests) == [
        'docs/a.md:3: no test checks what this chapter says: write tests/test_a.py, on result("a.one")'
    ]
    assert found(write_tests(root, test_a=GOOD_TEST), unused.tests) == []


def test_an_example_of_no_other_chapter_is_the_own_of_the_one_that_shows_it(write_book: WriteBook) -> None:
    root = one_value(write_book)
    assert "docs/index.md:1: no test checks" in found(root, unused.tests)[0]
    write_book({}, {"index": "No code.\n"})
    assert found(root, unused.tests) == []


def test_tests_of_a_name_close_to_that_of_the_chapter_are_named(write_book: WriteBook) -> None:
    source = "from executed import example\n\n@example\ndef one():\n    pass\n"
    root = write_book({"multi_head": source}, {"multi-head": '{{ example("multi_head.one") }}\n'})
    write_tests(root, test_multihead="", test_structure="")
    [line] = found(root, unused.tests)
    assert "write tests/test_multi_head.py" in line
    assert line.endswith("; did tests/test_multihead.py mean it with multihead?")


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("", "no test is in here: write def test_...(result), one for each claim of docs/a.md"),
        ('"""a.one"""\n\ndef check(result):\n    result("a.one")\n', "no test is in here"),
        ("def test_x():\n    assert True\n", 'ask for nothing that docs/a.md shows: use result("a.one")'),
        ('def test_x(result):\n    result("a.onne")\n', "; did tests/test_a.py mean it with a.onne?"),
        ("def test_x(\n", "this is not Python"),
    ],
)
def test_tests_that_test_nothing_of_the_chapter_are_no_tests(write_book: WriteBook, test: str, said: str) -> None:
    root = one_value(write_book, a='{{ example("a.one") }}\n')
    [line] = found(write_tests(root, test_a=test), unused.tests)
    assert line.startswith("tests/test_a.py:1: ")
    assert said in line


@pytest.mark.parametrize(
    "test",
    [
        GOOD_TEST,
        "from snippets.a import one\n\ndef test_x():\n    one()\n",
        "from snippets import a\n\nclass TestA:\n    def test_x(self):\n        a.one()\n",
        "import snippets.a as b\n\ndef test_x():\n    b.one()\n",
    ],
)
def test_tests_ask_for_a_published_result_or_import_the_snippet_module(write_book: WriteBook, test: str) -> None:
    root = one_value(write_book, a='{{ example("a.one") }}\n')
    assert found(write_tests(root, test_a=test), unused.tests) == []
