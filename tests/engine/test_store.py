"""executed/store.py: an entry is whole or it is not there."""

import errno
import io
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from executed.book import Book, BookError
from executed.fingerprint import Fingerprints
from executed.runner import Progress, run
from executed.stage import stage
from executed.store import DAY, Outcomes, Store

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


@pytest.mark.parametrize("way", ["a file", "a link to nowhere", "no room"])
def test_a_store_that_cannot_be_written_is_one_message_that_says_what_to_do(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    root = write_book({"a": SOURCE})
    folder = root / ".executed"
    if way == "a file":
        folder.write_text("")
    elif way == "a link to nowhere":
        folder.symlink_to("nowhere/at/all")
    else:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BookError) as raised:
        ran(root)
    assert str(raised.value).startswith(f"{folder}:1: ")
    assert "then build again" in str(raised.value)
    if way == "no room":
        assert "No space left on device" in str(raised.value)
        assert not [left for left in (folder / "tmp").iterdir() if left.is_file()], "the partial file is gone"


def test_a_build_that_has_all_its_results_needs_not_write_any(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE}, {"index": '{{ example("a.one") }}\n'})
    assert stage(root, progress=Progress(io.StringIO())).ran == ["a.one"]
    kept = root / ".executed/staged.json"
    kept.unlink()
    kept.mkdir()
    write_book({}, {"index": 'More.\n\n{{ example("a.one") }}\n'})
    assert stage(root, progress=Progress(io.StringIO())).ran == []


def test_an_entry_under_another_fingerprint_is_a_miss(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    shutil.copy(entry(root), entry(root).with_name(f"{'0' * 64}.json"))
    assert Store(root).load("a.one", "0" * 64) is None


def test_a_result_whose_object_was_deleted_is_not_kept(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    result = ran(root).results["a.one"]
    entry(root).unlink()
    with pytest.raises(BookError, match="No such file"):
        Store(root).save(replace(result, pickled=""), root / "returned.pickle")
    assert not list((root / ".executed/results/a.one").glob("*.json"))


def test_an_object_that_is_a_folder_counts_as_damaged(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    result = ran(root).results["a.one"]
    result.pickle_file.unlink()
    result.pickle_file.mkdir()
    assert not result.intact()
    with pytest.raises(LookupError, match="is damaged"):
        result.returned()


def test_gc_takes_folders_and_links_that_do_not_belong_here(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    ran(root)
    results = root / ".executed/results/a.one"
    (results / "folder.json").mkdir()
    (results / "link.json").symlink_to("nowhere")
    assert len(list(Store(root).collect({("a.one", entry(root, ".pickle").stem)}))) == 2
    assert ran(root).ran == []


def test_what_a_killed_run_left_is_deleted_by_a_later_one(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    store = Store(root)
    old, future, new = (store.new_folder(name) for name in ("old", "future", "new"))
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    os.utime(future, (time.time() + 2 * DAY,) * 2)
    ran(root)
    assert [folder.exists() for folder in (old, future, new)] == [False, False, True]


def test_an_empty_note_to_git_is_written_again(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE})
    (root / ".executed").mkdir()
    (root / ".executed/.gitignore").write_text("")
    ran(root)
    assert (root / ".executed/.gitignore").read_text() == "*\n"


def test_an_editors_lock_file_is_no_chapter(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": SOURCE}, {"index": '{{ example("a.one") }}\n'})
    (root / "docs/.#index.md").symlink_to("someone@somewhere:1")
    (root / "snippets/folder.py").mkdir()
    assert stage(root, progress=Progress(io.StringIO())).report() == []
