"""A small book in a temporary folder, for the tests of the engine."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

WriteBook = Callable[..., Path]


@pytest.fixture
def write_book(tmp_path: Path) -> WriteBook:
    """`write_book({"sorting": source}, {"sorting": chapter})`: writes both, dedented, and returns the root.

    A second call changes the files it names and leaves the others. `{"vi/sorting": ...}` makes a sub-folder.
    """

    def write(snippets: dict[str, str], docs: dict[str, str] | None = None) -> Path:
        settings = tmp_path / "pyproject.toml"
        if not settings.exists():
            settings.write_text("[tool.executed]\npreload = []\n", "utf-8")
        for folder, suffix, files in (("snippets", ".py", snippets), ("docs", ".md", docs or {})):
            (tmp_path / folder).mkdir(exist_ok=True)
            for name, text in files.items():
                file = tmp_path / folder / (name.removesuffix(suffix) + suffix)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(textwrap.dedent(text).lstrip("\n").encode())
        return tmp_path

    return write
