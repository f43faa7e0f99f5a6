"""executed/memo.py: what was made of a text is made again when the text, or what makes it, has changed."""

from pathlib import Path
from types import ModuleType

import pytest

from executed.memo import Memo
from executed.store import Store


@pytest.fixture
def maker(tmp_path: Path) -> ModuleType:
    module = ModuleType("maker")
    module.__file__ = str(tmp_path / "maker.py")
    (tmp_path / "maker.py").write_text("first")
    return module


def made(root: Path, maker: ModuleType, *texts: str) -> list[str]:
    """What really had to be made for a list of texts, each under its place in the list."""
    calls: list[str] = []
    memo = Memo(Store(root), "numbers", maker)
    for place, text in enumerate(texts):

        def make(text: str = text) -> list[str]:
            calls.append(text)
            return [text, "made"]

        assert memo.of(str(place), text, make) == [text, "made"]
    memo.keep()
    return calls


def test_only_what_is_new_is_made(tmp_path: Path, maker: ModuleType) -> None:
    assert made(tmp_path, maker, "a", "b") == ["a", "b"]
    assert made(tmp_path, maker, "a", "b") == []
    assert made(tmp_path, maker, "a", "c") == ["c"]
    assert made(tmp_path, maker, "a", "b") == ["b"]


def test_other_code_makes_all_anew(tmp_path: Path, maker: ModuleType) -> None:
    made(tmp_path, maker, "a", "b")
    Path(str(maker.__file__)).write_text("second")
    assert made(tmp_path, maker, "a", "b") == ["a", "b"]


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, maker: ModuleType) -> None:
    made(tmp_path, maker, "a")
    file = tmp_path / ".executed/numbers.json"
    file.write_text(file.read_text().replace('"a"', '"b"'))
    assert made(tmp_path, maker, "a") == ["a"]


def test_who_looks_at_one_text_leaves_the_others(tmp_path: Path, maker: ModuleType) -> None:
    made(tmp_path, maker, "a", "b")
    made(tmp_path, maker, "c")
    assert made(tmp_path, maker, "c", "b") == []
