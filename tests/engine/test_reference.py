"""executed/reference.py and reproduction.py: what was published, ours, and whether they agree."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executed.book import BookError
from executed.reference import ReferenceFigure, read
from executed.stage import stage

SNIPPET = """
from executed import example

@example
def one():
    return {"x": 0.6871, "weights": [[0.5, 0.25]], "holds": True}
"""


def figures(root: Path, text: str) -> None:
    (root / "docs/reference_figures.toml").write_text(text)


@pytest.mark.parametrize(
    ("kind", "published", "ours", "tol", "agrees"),
    [
        ("exact", "0.687", 0.6874, None, True),
        ("exact", "0.687", 0.6876, None, False),
        ("exact", "8.00", 8.004, None, True),
        ("exact", "8.00", 8.03, None, False),
        ("exact", "0", 1e-30, None, False),
        ("exact", "101258", 101258, None, True),
        ("exact", "[[0.50, 0.25]]", [[0.5, 0.25]], None, True),
        ("exact", "[[0.50, 0.25]]", [0.5, 0.25], None, False),
        ("exact", "[0.5]", [0.5, 0.5], None, False),
        ("exact", '["<s>", "a"]', ["<s>", "a"], None, True),
        ("close", "0.687", 0.794, "0.15", True),
        ("close", "0.687", 0.84, "0.15", False),
        ("hub", '[{ head = 1, top = [["a", 0.34]] }]', [{"head": 1, "top": [["a", 0.36]]}], "0.05", True),
        ("hub", '[{ head = 1, top = [["a", 0.34]] }]', [{"head": 1, "top": [["b", 0.34]]}], "0.05", False),
        ("hub", '[{ head = 1, top = [["a", 0.34]] }]', [{"head": 1}], "0.05", False),
        ("order", "8.94e-08", 1.2e-7, None, True),
        ("order", "8.94e-08", 1.2e-6, None, False),
        ("order", "8.94e-08", 0.0, None, False),
        ("close", "[0.301, 0.000]", [0.303, 0.0], "[0.02, 0]", True),
        ("close", "[0.301, 0.000]", [0.303, 0.001], "[0.02, 0]", False),
        ("close", "[0.301, 0.000]", [[0.29, 0.31], [0.0, 0.0]], "[0.02, 0]", True),
        ("close", "[0.301, 0.000]", [[0.29, 0.33], [0.0, 0.0]], "[0.02, 0]", False),
        ("curve", "[9.53, 0.02]", [9.535, 0.09], "{ first = 0.01, factor = 5 }", True),
        ("curve", "[9.53, 0.02]", [9.535, 0.11], "{ first = 0.01, factor = 5 }", False),
        ("curve", "[9.53, 0.02]", [9.55, 0.02], "{ first = 0.01, factor = 5 }", False),
        ("curve", "[9.48, 1.70]", [9.48, 1.74], "{ first = 0.01, rest = 0.05 }", True),
        ("curve", "[9.48, 1.70]", [9.48, 1.76], "{ first = 0.01, rest = 0.05 }", False),
        ("within", "[0.998, 0.988]", [[0.97, 1.0], [0.9, 1.0]], None, True),
        ("within", "[0.998, 0.988]", [[0.97, 0.99], [0.9, 1.0]], None, False),
        ("within", "[0.998, 0.988]", [[0.97, 1.0]], None, False),
        ("close", "[0.301, 0.000]", [0.303], "[0.02, 0]", False),
        ("curve", "[9.53, 0.02]", [9.53], "{ first = 0.01, factor = 5 }", False),
        ("shape", '"it grows"', True, None, True),
        ("shape", '"it grows"', False, None, False),
    ],
)
def test_a_figure_agrees_within_its_tolerance_and_no_further(
    tmp_path: Path, kind: str, published: str, ours: Any, tol: str | None, agrees: bool
) -> None:
    (tmp_path / "docs").mkdir()
    figures(
        tmp_path, f'[[figure]]\nid = "x"\npublished = {published}\nkind = "{kind}"\n' + (f"tol = {tol}" if tol else "")
    )
    (figure,) = read(tmp_path)
    assert (figure.verdict(ours) == "agrees") is agrees


def test_a_figure_out_of_tolerance_is_something_to_mend(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SNIPPET}, {"index": "# A\n\n{{ reference_figures() }}\n"})
    figures(root, '[[figure]]\nid = "x"\npublished = 0.700\nkind = "exact"\nours = "a.one.x"\n')
    assert stage(root).report() == [
        "docs/reference_figures.toml:2: x: published 0.700, ours 0.6871 (a.one.x): outside its tolerance"
    ]


def test_the_table_shows_published_and_ours_with_the_published_decimals(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {"a": SNIPPET},
        {"index": '# A\n\n{{ reference_figures() }}\n\n{{ example("a.one") }}\n'},
    )
    figures(
        root,
        '[[figure]]\nid = "x"\npublished = 0.69\nkind = "exact"\nours = "a.one.x"\nnote = "A note."\n'
        '[[figure]]\nid = "y"\npublished = 12\nkind = "exact"\n',
    )
    staged = stage(root)
    assert staged.report() == []
    assert "| [`x`](#a.one) | agrees | 0.69 | 0.69 | none |" in staged.pages["index.md"]
    assert "`y`" not in staged.pages["index.md"]
    assert "- `x`: A note." in staged.pages["index.md"]


def test_a_list_of_chapters_shows_title_description_and_the_time_their_code_took(
    write_book: Callable[..., Path],
) -> None:
    chapter = '---\ntitle: One\ndescription: What one is.\n---\n# One\n\n{{ example("a.one") }}\n'
    root = write_book({"a": SNIPPET}, {"a": chapter, "index": '{{ chapters("a") }}\n'})
    staged = stage(root)
    assert staged.report() == []
    assert "| [One](a.md) | What one is. | 0.0\u00a0s |" in staged.pages["index.md"]
    write_book({}, {"index": '{{ chapters("aa") }}\n'})
    assert stage(root).report() == ["docs/index.md:1: there is no chapter aa; did you mean a?"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('ours = "a.one.y"', "a.one has no y"),
        ('ours = "a.on.x"', "no example behind a.on.x"),
        ('ours = "a.one.x"\nnote = "It was 0.794."', "the number 0.794 is typed into prose"),
    ],
)
def test_a_wrong_name_or_a_typed_number_in_the_list_is_reported(
    write_book: Callable[..., Path], line: str, message: str
) -> None:
    root = write_book({"a": SNIPPET}, {"index": '# A\n\n{{ example("a.one") }}\n'})
    figures(root, f'[[figure]]\nid = "x"\npublished = 0.69\nkind = "exact"\n{line}\n')
    (report,) = stage(root).report()
    assert report.startswith("docs/reference_figures.toml:2: ")
    assert message in report


def test_a_kind_that_does_not_exist_suggests_one_that_does(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SNIPPET}, {"index": '# A\n\n{{ example("a.one") }}\n'})
    figures(root, '[[figure]]\nid = "x"\npublished = 1\nkind = "exakt"\n')
    assert stage(root).report() == ["docs/reference_figures.toml:2: there is no kind 'exakt'; did you mean exact?"]


def test_a_misspelt_key_and_broken_toml_name_the_file_and_the_line(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SNIPPET}, {"index": "# A\n"})
    figures(root, '[[figure]]\nid = "x"\npublishd = 1\nkind = "exact"\n')
    with pytest.raises(
        BookError, match=r"reference_figures.toml:2: a figure has no publishd; did you mean published\?"
    ):
        read(root)
    figures(root, "[[figure\n")
    with pytest.raises(BookError, match=r"reference_figures.toml:1: this is not TOML"):
        read(root)


def test_a_figure_that_nothing_is_held_against_is_open() -> None:
    assert ReferenceFigure("x", 1, "exact").ours == ""
