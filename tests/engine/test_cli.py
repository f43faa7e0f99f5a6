"""executed/cli.py: the engine from a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from executed.cli import main

WriteBook = Callable[..., Path]
GOOD = """
from executed import example

def scale():
    return 2

@example
def one():
    print("hello")
    return {"x": scale() * 1.5}

@example
def two(one):
    print(one["x"])
"""
CHAPTER = '# A\n\n{{ example("a.one") }}\n\n{{ example("a.two") }}\n\nIt is {{ a.one.x | num(1) }}.\n'


@pytest.fixture
def book(write_book: WriteBook, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    monkeypatch.chdir(root)
    return root


def test_run_prints_what_a_reader_would_see_and_the_values(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a.one"]) == 0
    assert capsys.readouterr().out == "hello\na.one.x = 3.0\n"


def test_run_suggests_the_nearest_name(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a.onne"]) == 1
    assert "there is no example a.onne; did you mean a.one?" in capsys.readouterr().err


def test_status_tells_fresh_from_stale_and_why_and_failed(
    book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["status"])
    assert "stale   a.one  never ran" in capsys.readouterr().out
    main(["check"])
    main(["status"])
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[-2:]] == [
        ["fresh", "a.one"],
        ["fresh", "a.two"],
    ]
    write_book({"a": GOOD.replace("return 2", "return 3")})
    main(["status"])
    out = capsys.readouterr().out
    assert "stale   a.one  a.scale changed" in out
    assert "stale   a.two  " in out
    write_book({"a": GOOD.replace("return 2", "1 / 0")})
    main(["check"])
    main(["status"])
    assert "failed  a.one  snippets/a.py:4: ZeroDivisionError: division by zero" in capsys.readouterr().out


def test_check_lists_everything_with_page_and_line_and_fails(
    book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == 0
    assert "nothing to mend" in capsys.readouterr().out
    write_book({}, {"index": CHAPTER + "\nAnd 5 more.\n\n{{ a.one.z }}\n"})
    assert main(["check"]) == 1
    out = capsys.readouterr().out
    assert "docs/index.md:9: the number 5 is typed into prose" in out
    assert "docs/index.md:11: a.one has no z" in out


def test_stage_writes_markdown_and_replaces_only_a_folder_of_its_own(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stage", "out"]) == 0
    assert "It is 3.0." in (book / "out/index.md").read_text()
    assert main(["stage", "out"]) == 0
    (book / "mine").mkdir()
    (book / "mine/file.txt").write_text("keep me")
    assert main(["stage", "mine"]) == 1
    assert "this folder holds other files" in capsys.readouterr().err
    assert (book / "mine/file.txt").read_text() == "keep me"
    assert main(["stage", "docs"]) == 1


def test_stage_writes_nothing_while_there_is_something_to_mend(book: Path, write_book: WriteBook) -> None:
    write_book({}, {"index": CHAPTER + "{{ a.one.z }}\n"})
    assert main(["stage", "out"]) == 1
    assert not (book / "out").exists()


def test_gc_says_how_much_it_deleted(book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check"])
    write_book({"a": GOOD.replace("hello", "bye")})
    main(["check"])
    assert main(["gc"]) == 0
    assert capsys.readouterr().out.endswith("4 files deleted\n")


def test_outside_a_book_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 1
    assert "no book here" in capsys.readouterr().err
