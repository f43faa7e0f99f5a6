"""executed/store.py: an entry is whole or it is not there."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from executed.book import Book
from executed.fingerprint import Fingerprints
from executed.runner import Progress, run
from executed.store import Outcomes, Store

SOURCE = "from executed import example\n\n@example\ndef one():\n    print('hello')\n    return {'x': [1, 2]}\n"
NEEDS = SOURCE + "\n@example\ndef two(one):\n    print(one['x'], TAIL)\n"


def ran(root: Path) -> Outcomes:
    book = Book.read(root)
    return run(book, Store(root), book.examples, progress=Progress(io.StringIO()))


def entry(root: Path, suffix: str = ".json", name: str = "a.one") -> Path:
    (found,) = (root / ".executed/results" / name).glob(f"*{suffix}")
    return found


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_half_written_entry_is_a_miss(write_book: Callable[..., Path], share: float) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    data = entry(root).read_bytes()
    entry(root).write_bytes(data[: int(len(data) * share)])
    again = ran(root)
    assert (again.ran, again.results["a.one"].text) == (["a.one"], "hello")


def test_an_entry_with_any_byte_changed_is_a_miss(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    file, store = entry(root), Store(root)
    data = file.read_bytes()
    for position in range(0, len(data), 7):
        file.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        assert store.load("a.one", file.stem) is None, position
    file.write_bytes(data)
    assert store.load("a.one", file.stem) is not None


def test_a_damaged_object_is_made_again_before_it_is_handed_on(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": NEEDS.replace("TAIL", "1")})
    ran(root)
    entry(root, ".pickle").write_bytes(b"damaged")
    write_book({"a": NEEDS.replace("TAIL", "2")})
    again = ran(root)
    assert again.ran == ["a.one", "a.two"]
    assert again.results["a.two"].text == "[1, 2] 2"


def test_the_store_keeps_itself_out_of_git(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    assert (root / ".executed/.gitignore").read_text() == "*\n"


def test_gc_deletes_what_no_example_has_any_more_and_nothing_else(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE, "b": SOURCE})
    ran(root)
    write_book({"a": SOURCE.replace("hello", "bye")})
    ran(root)
    (root / "snippets/b.py").unlink()
    book, store = Book.read(root), Store(root)
    prints = Fingerprints(book)
    deleted = list(store.collect({(name, prints.of(name).digest) for name in book.examples}))
    assert len(deleted) == 4
    assert not (root / ".executed/results/b.one").exists()
    assert ran(root).ran == []


def test_going_back_to_an_earlier_state_runs_nothing(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    write_book({"a": SOURCE.replace("hello", "bye")})
    ran(root)
    write_book({"a": SOURCE})
    again = ran(root)
    assert (again.ran, again.results["a.one"].text) == ([], "hello")
