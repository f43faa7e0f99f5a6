"""executed/widgets.py: an element in the page, and its example's values in a script that also loads from the disk."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from executed import unused
from executed.book import Book
from executed.stage import chapters, stage
from executed.staged import Staged, unchanged

WriteBook = Callable[..., Path]
SNIPPET = """
from executed import example

@example
def row():
    print("a row")
    return {"weights": [0.25, 0.75], "name": "</script> \\u2028 <b>"}
"""


@pytest.fixture
def book(write_book: WriteBook) -> Callable[[str], Path]:
    def write(chapter: str) -> Path:
        root = write_book({"a": SNIPPET}, {"index": chapter})
        scripts = root / "docs/assets/scripts/widgets"
        scripts.mkdir(parents=True, exist_ok=True)
        (scripts / "viewer.js").write_text('book.widget("viewer", () => {});\n')
        return root

    return write


def values_of(staged: Staged) -> object:
    text = staged.files["values/a.row.js"]
    name, _, values = text.removeprefix("book.arrive(").removesuffix(");\n").partition(", ")
    assert json.loads(name) == "a.row"
    return json.loads(values)


def test_a_widget_is_an_element_and_its_values_are_a_file(book: Callable[[str], Path]) -> None:
    staged = stage(book('# A\n\n{{ widget("a.row", kind="viewer") }}\n'))
    assert '<div class="widget" data-widget="viewer" data-example="a.row">' in staged.pages["index.md"]
    assert values_of(staged) == {"weights": [0.25, 0.75], "name": "</script> \u2028 <b>"}
    assert not staged.report()


def test_a_book_that_has_not_changed_publishes_the_same_files_again(book: Callable[[str], Path]) -> None:
    root = book('# A\n\n{{ widget("a.row", kind="viewer") }}\n')
    staged, again = stage(root), unchanged(root)
    assert again
    assert again.files == staged.files


def test_an_example_that_only_a_widget_shows_is_used_with_all_its_values(book: Callable[[str], Path]) -> None:
    root = book('# A\n\n{{ widget("a.row", kind="viewer") }}\n')
    read, pages = Book.read(root), chapters(root)
    assert not unused.examples(read, pages)
    assert not unused.values(read, pages)


def test_what_a_widget_loads_later_is_a_file_too_and_the_page_knows_its_size(book: Callable[[str], Path]) -> None:
    root = book('# A\n\n{{ widget("a.row", kind="viewer", loads=["a.large"]) }}\n')
    with (root / "snippets/a.py").open("a", encoding="utf-8") as file:
        file.write('\n@example\ndef large():\n    print("large")\n    return {"text": "chú ý"}\n')
    staged = stage(root)
    size = len(staged.files["values/a.large.js"].encode())
    assert f' data-example="a.row" data-loads="a.large={size}">' in staged.pages["index.md"]
    assert "values/a.row.js" in staged.files
    assert not staged.report()
    read, pages = Book.read(root), chapters(root)
    assert not unused.examples(read, pages)
    assert not unused.values(read, pages)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('widget("a.row", kind="viever")', "did you mean viewer?"),
        ('widget("a.row")', "there are viewer"),
        ('widget("a.rwo", kind="viewer")', "a.row"),
        ('widget("a.row", knid="viewer")', "kind"),
        ('widget("a.row", kind="viewer", loads="a.row")', "a list of examples"),
        ('widget("a.row", kind="viewer", loads=["a.rwo"])', "a.row"),
    ],
)
def test_a_misspelt_widget_is_told_the_right_name(book: Callable[[str], Path], written: str, told: str) -> None:
    (problem,) = stage(book(f"# A\n\n{{{{ {written} }}}}\n")).errors[:1]
    assert (problem.path, problem.line) == ("docs/index.md", 3)
    assert told in problem.message
