"""executed/cli.py: the engine from a terminal."""

import os
import subprocess
import sys
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
    (root / "tests").mkdir()
    (root / "tests/test_index.py").write_text("from snippets.a import one\n\ndef test_one():\n    assert one()\n")
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
    (book / "tests/test_index.py").unlink()
    write_book({}, {"index": CHAPTER})
    assert main(["check"]) == 1
    assert "docs/index.md:3: no test checks what this chapter says" in capsys.readouterr().out


def test_check_prints_a_note_that_fails_nothing(
    book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str]
) -> None:
    write_book({"a": GOOD.replace('"x": scale() * 1.5', '"x": 3.0, "y": 1')})
    assert main(["check"]) == 0
    note, summary = capsys.readouterr().out.splitlines()
    assert note.startswith("note: snippets/a.py:9: a.one returns y, and nobody reads it")
    assert summary.startswith("nothing to mend; 2 examples ran")


ANOTHER = """
from executed import example

@example
def one():
    print("other")
    return {"spare": 1}

@example
def unshown():
    pass
"""


def test_check_of_one_chapter_runs_what_it_asks_for_and_says_what_is_its_own(
    book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str]
) -> None:
    (book / "docs/references.bib").write_text("@misc{spare2020, title = {A}, year = {2020}}\n")
    write_book({"b_c": ANOTHER}, {"b-c": 'Has 5.\n\n{{ example("b_c.one") }}\n'})
    assert main(["check", "index"]) == 0
    out, progress = capsys.readouterr()
    assert out == "nothing to mend; 2 examples ran, 0 results were up to date\n"
    assert "b_c" not in progress
    assert main(["check", "b-c"]) == 1
    assert [line.split(": ", 1)[0] for line in capsys.readouterr().out.splitlines()] == [
        "note",
        "snippets/b_c.py:9",
        "docs/b-c.md:1",
        "docs/b-c.md:3",
        "3 to mend; 1 examples ran, 0 results were up to date",
    ]
    assert main(["check"]) == 1
    assert "docs/references.bib:1: no chapter cites spare2020" in capsys.readouterr().out
    assert not (book / ".executed/staged.json").exists()


def test_check_of_one_chapter_holds_its_reference_figures_against_its_results(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = '[[figure]]\nid = "{0}"\nours = "{0}"\npublished = 4.0\nkind = "exact"\n'
    (book / "docs/reference_figures.toml").write_text(figure.format("a.one.x"))
    assert main(["check", "index"]) == 1
    assert "docs/reference_figures.toml:2: a.one.x: published 4.0, ours 3.0" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["vi/b-c", "docs/vi/b-c.md"])
def test_a_chapter_is_named_as_in_the_menu_or_by_its_file(
    book: Path, write_book: WriteBook, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    write_book({}, {"vi/b-c": "Có 5.\n"})
    assert main(["check", name]) == 1
    assert capsys.readouterr().out.startswith("docs/vi/b-c.md:1: ")


def test_check_suggests_the_nearest_chapter(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "indx"]) == 1
    assert "docs:1: there is no chapter indx; did you mean index?" in capsys.readouterr().err


def test_the_help_of_check_lists_what_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    out = capsys.readouterr().out
    for word in ("examples", "numbers", "citations", "figures", "tests", "records", "sources", "values"):
        assert f"\n  {word}  " in out


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


def test_a_reader_who_has_seen_enough_is_no_error_to_be_told(book: Path) -> None:
    read, written = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "executed", "status"]
    assert subprocess.run(command, stdout=written, stderr=subprocess.PIPE, check=False).stderr == b""
