"""executed/provenance.py and executed/commit.py: where a result came from, as its page says it."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from executed.book import Span
from executed.commit import Commit
from executed.stage import stage

SNIPPET = """
from executed import example


def helper():
    return 6


@example
def one():
    print(helper() * 7)
"""
REMOTES = {
    "https://github.com/some/book.git": "https://github.com/some/book/blob/{}/snippets/a.py#L8-L10",
    "git@github.com:some/book.git": "https://github.com/some/book/blob/{}/snippets/a.py#L8-L10",
    "https://secret:token@gitlab.example.org/group/some/book": "https://gitlab.example.org/group/some/book/-/blob/{}/snippets/a.py#L8-10",
    "ssh://git@codeberg.org/some/book": "https://codeberg.org/some/book/src/commit/{}/snippets/a.py#L8-L10",
}  # fmt: skip


def git(root: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *settings, *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(write_book: Callable[..., Path]) -> Path:
    return write_book({"a": SNIPPET}, {"index": '# A\n\n{{ example("a.one") }}\n', "vi/index": '{{ output("a.one") }}'})


def committed(root: Path) -> str:
    git(root, "init", "-q")
    git(root, "add", "snippets", "docs", "pyproject.toml")
    git(root, "commit", "-qm", "one")
    return git(root, "rev-parse", "HEAD").strip()


def test_a_page_says_of_an_output_when_how_long_and_with_what_it_was_made(root: Path) -> None:
    staged = stage(root)
    page = staged.pages["index.md"]
    assert page.count('??? made "How this was made"\n') == 1
    assert re.search(r"`a\.one` ran on \d{4}-\d\d-\d\d \d\d:\d\d UTC for 0\.\d\d s, threads: 1, memory: \d+\sMB", page)
    assert re.search(r"Python 3\.\d+\.\nFingerprint|Python 3\.\d+\.\n    Fingerprint `[0-9a-f]{16}`", page)
    assert "Source: `snippets/a.py:8`." in page


def test_every_block_that_shows_a_result_says_it_in_the_language_of_its_page(root: Path) -> None:
    assert '??? made "Kết quả này từ đâu ra"' in stage(root).pages["vi/index.md"]


@pytest.mark.parametrize("remote", REMOTES)
def test_the_source_is_linked_at_the_commit_that_the_page_was_built_from(root: Path, remote: str) -> None:
    commit = committed(root)
    git(root, "remote", "add", "origin", remote)
    source = Commit.of(root).source("snippets/a.py", Span(8, 10), "en")
    assert source == f"[`snippets/a.py:8`]({REMOTES[remote].format(commit)}) at commit `{commit[:10]}`"


def test_a_page_links_the_source_of_its_output(root: Path) -> None:
    commit = committed(root)
    git(root, "remote", "add", "origin", "https://github.com/some/book.git")
    address = f"https://github.com/some/book/blob/{commit}/snippets/a.py#L8-L10"
    assert f"Source: [`snippets/a.py:8`]({address})" in stage(root).pages["index.md"]


def test_without_a_known_address_the_commit_is_named(root: Path) -> None:
    commit = committed(root)
    git(root, "remote", "add", "origin", "/somewhere/else")
    assert f"`snippets/a.py:8` at commit `{commit[:10]}`" in stage(root).pages["index.md"]


def test_a_source_that_is_not_as_committed_says_so(root: Path) -> None:
    committed(root)
    (root / "snippets/a.py").write_text(SNIPPET.replace("6", "5").lstrip())
    (root / "snippets/b.py").write_text("x = 1\n")
    assert "`snippets/a.py:8`, with changes that are not committed" in stage(root).pages["index.md"]
    assert Commit.of(root).changed >= {"snippets/a.py", "snippets/b.py"}


def test_a_new_commit_alone_brings_the_pages_up_to_date(root: Path) -> None:
    old = committed(root)
    assert old[:10] in stage(root).pages["index.md"]
    git(root, "commit", "-q", "--allow-empty", "-m", "two")
    new = git(root, "rev-parse", "HEAD").strip()
    staged = stage(root)
    assert not staged.ran
    assert new[:10] in staged.pages["index.md"]


def test_a_book_in_a_folder_of_its_repository_is_linked_there(root: Path) -> None:
    inside = root / "the book"
    (inside / "snippets").mkdir(parents=True)
    (inside / "snippets/một hai.py").write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "remote", "add", "origin", "https://github.com/some/book")
    source = Commit.of(inside).source("snippets/một hai.py", Span(1, 1), "en")
    assert "/the%20book/snippets/m%E1%BB%99t%20hai.py#L1-L1)" in source
