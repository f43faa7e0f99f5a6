"""executed/staged.py: the staged book of last time is served again only while nothing it was made of has changed."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from executed import lint
from executed.book import Book, Problem
from executed.pool import Pool
from executed.runner import Progress, run
from executed.stage import stage
from executed.staged import unchanged
from executed.store import Store

SNIPPET = """
import time
from executed import example

@example(varies=True)
def one():
    print(open("data.txt").read())
    return {"x": time.time()}
"""
CHAPTER = '# A\n\n{{ example("a.one") }}\n\n{{ a.one.x | num(6) }}\n'


@pytest.fixture
def root(write_book: Callable[..., Path]) -> Path:
    root = write_book({"a": SNIPPET}, {"index": CHAPTER})
    (root / "data.txt").write_text("some")
    assert stage(root).report() == []
    return root


def test_an_untouched_book_is_taken_as_it_was(root: Path) -> None:
    again = unchanged(root)
    assert again is not None
    assert again.pages == stage(root).pages
    assert again.summary() == "nothing ran: 1 results are up to date"


@pytest.mark.parametrize(
    "file", ["snippets/a.py", "docs/index.md", "docs/new.md", "docs/references.bib", "pyproject.toml", "data.txt"]
)
def test_a_change_to_any_file_it_was_made_of_counts(root: Path, file: str) -> None:
    with (root / file).open("a") as stream:
        stream.write("\n# more\n")
    assert unchanged(root) is None


def test_a_result_that_was_made_again_counts(root: Path) -> None:
    book = Book.read(root)
    run(book, Store(root), book.examples, force=["a.one"], progress=Progress(io.StringIO()))
    assert unchanged(root) is None


def test_another_version_of_a_package_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executed.staged.version", lambda name: "99")
    assert unchanged(root) is None


def test_a_book_with_something_to_mend_is_not_kept(root: Path) -> None:
    (root / "docs/index.md").write_text(CHAPTER + "\nTyped: 12.\n")
    stage(root)
    assert unchanged(root) is None


def test_a_damaged_copy_is_not_used(root: Path) -> None:
    kept = root / ".executed/staged.json"
    kept.write_bytes(kept.read_bytes().replace(b"some", b"lies"))
    assert unchanged(root) is None


def test_what_another_version_of_the_engine_kept_is_not_used(root: Path) -> None:
    store, kept = Store(root), root / ".executed/staged.json"
    store.write_text(kept, (store.read_text(kept) or "").replace('"entries"', '"earlier_name"'))
    assert unchanged(root) is None


def test_an_edit_while_the_book_is_made_is_not_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "docs/index.md").write_text(CHAPTER + "\nOne.\n")
    states = iter(["before", "after"])
    monkeypatch.setattr("executed.stage.sources", lambda root: next(states))
    stage(root)
    assert unchanged(root) is None


def test_a_chapter_is_read_again_only_if_it_has_changed(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_book({}, {"one": "# One\n\nNothing here.\n", "two": "# Two\n\nNor here.\n"})
    read: list[str] = []
    look = lint.naked_numbers

    def noted(source: str, path: str) -> list[Problem]:
        read.append(path)
        return look(source, path)

    monkeypatch.setattr(lint, "naked_numbers", noted)
    assert not stage(root).strict
    write_book({}, {"two": "# Two\n\nAll 12 of them.\n"})
    for _ in range(2):
        assert [str(one)[:15] for one in stage(root).strict] == ["docs/two.md:3: "]
    assert read == ["docs/one.md", "docs/two.md", "docs/two.md"]


def test_imports_of_what_was_saved_start_before_it_is_known_what_must_run(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import {}\nfrom executed import example\n@example\ndef one():\n    print({})\n"
    root = write_book({"a": source.format("colorsys", 1)}, {"index": '{{ example("a.one") }}\n'})
    (root / "pyproject.toml").write_text('[tool.executed]\npreload = ["colorsys", "wave"]\n')
    started: list[list[str]] = []
    monkeypatch.setattr(Pool, "_start", lambda pool: started.append(list(pool.preload)))
    for imports, number, expected in [
        ("colorsys", 1, [["colorsys"]]),
        ("colorsys", 1, []),
        ("math  # not wave", 2, []),
        ("wave", 3, [["wave"]]),
    ]:
        if number > 1:
            write_book({"a": source.format(imports, number)})
        Pool(root).start_early()
        assert started == expected
        (root / ".executed").mkdir(exist_ok=True)
        (root / ".executed/staged.json").touch()
        started.clear()


def test_a_store_that_cannot_take_what_is_clean_costs_only_time(write_book: Callable[..., Path]) -> None:
    root = write_book({}, {"one": "# One\n\nNothing here.\n", "two": "# Two\n\nAll 12 of them.\n"})
    (root / ".executed/lint.json").mkdir(parents=True)
    for _ in range(2):
        assert [str(one)[:15] for one in stage(root).strict] == ["docs/two.md:3: "]
