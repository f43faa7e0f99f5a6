"""executed/pdf.py: the whole book as one PDF."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executed import pdf
from executed.book import BookError

ROOT = Path(__file__).parents[2]
pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
chromium = pytest.mark.skipif(not any(map(shutil.which, pdf.CHROMIUM)), reason="no Chromium on this machine")

SNIPPET = '''
"""Two of a kind."""

import matplotlib.pyplot as plt

from executed import example


@example
def drawn():
    """A line."""
    print("printed")
    plt.plot([0, 1])
    return {"kind": "line"}
'''
SETTINGS = """
site_name: A small book
theme: {name: material, font: false}
extra_css: [assets/book.css, assets/widgets.css]
nav: [index.md, {A part: [first.md, second.md]}]
hooks: [%s]
markdown_extensions: [attr_list, footnotes, admonition, pymdownx.details, pymdownx.superfences]
"""
HOME = "---\ndescription: What the book is about.\n---\n\n# A small book\n\n[Go on](first.md).\n"
FIRST = """
# The first chapter

It goes on in [a section of the second](second.md#further), and [elsewhere](https://elsewhere.example/page).
A [file to download](assets/book.css) lies beside the book.

{{ example("first.drawn", alt="A line.", caption="What the line shows.") }}

{{ widget("first.drawn", kind="attention-viewer") }}

??? question "A question"

    Its folded answer.
"""
SECOND = "# The second chapter\n\nAnd [back](first.md). Cà phê có đường.\n\n## Further\n\nThe end.\n"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("book")
    for path, text in {
        "mkdocs.yml": SETTINGS % (ROOT / "executed/hook.py").as_posix(),
        "pyproject.toml": "[tool.executed]\npreload = []\n",
        "snippets/first.py": SNIPPET,
        "docs/index.md": HOME,
        "docs/first.md": FIRST,
        "docs/second.md": SECOND,
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
    shutil.copytree(ROOT / "docs/assets", root / "docs/assets", ignore=shutil.ignore_patterns("*.py", "page.png"))
    return root


@pytest.fixture(scope="module")
def printed(book: Path) -> Iterator[Any]:
    said = executed_pdf(book)
    assert said.returncode == 0, said.stderr
    with pypdf.PdfReader(book / "out/book.pdf") as reader:
        assert said.stdout.startswith(f"{len(reader.pages)} pages, ")
        yield reader


def executed_pdf(root: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command, in a process of its own: where other tests drive a browser, playwright allows no second one."""
    command = [sys.executable, "-m", "executed", "pdf", "out/book.pdf"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env={**os.environ, **environment})


def text(reader: Any, page: int) -> str:
    return " ".join(unicodedata.normalize("NFKC", reader.pages[page].extract_text()).split())


@pytest.mark.site
@chromium
def test_cover_contents_and_every_page_in_the_order_of_the_navigation(printed: Any) -> None:
    opens = [
        "A small book What the book",
        "Contents About this book",
        "A small book Go on",
        "The first chapter It goes",
        "The second chapter And back",
    ]
    assert [words in text(printed, page) for page, words in enumerate(opens)] == [True] * len(printed.pages)
    assert printed.metadata.title == "A small book"
    assert "Cà phê có đường." in text(printed, 4)


@pytest.mark.site
@chromium
def test_the_contents_say_on_which_page_each_chapter_starts(printed: Any) -> None:
    contents = text(printed, 1)
    assert re.findall(r"(About this book|A part|The \w+ chapter) ?(\d*)", contents) == [
        ("About this book", "3"),
        ("A part", ""),
        ("The first chapter", "4"),
        ("The second chapter", "5"),
    ]


@pytest.mark.site
@chromium
def test_the_outline_holds_each_heading_once(printed: Any) -> None:
    def entries(outline: list[Any]) -> list[Any]:
        return [entries(one) if isinstance(one, list) else one.title for one in outline]

    assert entries(printed.outline) == [
        "Contents", "A small book", "The first chapter", "The second chapter", ["Further"],
    ]  # fmt: skip


@pytest.mark.site
@chromium
def test_links_between_chapters_lead_to_pages_and_others_out(printed: Any) -> None:
    places = {name.lstrip("/"): place for name, place in printed.named_destinations.items()}
    led, out = {}, []
    for note in printed.pages[3]["/Annots"]:
        note = note.get_object()
        if "/Dest" in note:
            name = str(note["/Dest"]).lstrip("/")
            led[name] = printed.get_destination_page_number(places[name])
        else:
            out.append(note["/A"]["/URI"])
    assert led["second--further"] == 4
    assert out == ["https://elsewhere.example/page"]  # what lies beside the book is no link on paper


@pytest.mark.site
@chromium
def test_folds_are_open_and_a_widget_leaves_its_place_to_the_figure(printed: Any) -> None:
    first = text(printed, 3)
    assert "Its folded answer." in first
    assert "printed" in first
    assert "What the line shows." in first
    assert "JavaScript" not in first


def test_without_chromium_the_message_says_how_to_get_it(book: Path, tmp_path: Path) -> None:
    said = executed_pdf(book, PATH="", PLAYWRIGHT_BROWSERS_PATH=str(tmp_path))
    assert said.returncode == 1
    assert "apt install chromium; any system: python -m playwright install chromium" in said.stderr
    assert "Traceback" not in said.stderr


def test_without_its_packages_the_message_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(BookError, match=r'printing needs pypdf: pip install -c constraints.txt -e "\.\[pdf\]"'):
        pdf.print_book(tmp_path, tmp_path / "book.pdf")


def test_a_site_that_does_not_build_is_not_printed_and_the_message_says_why(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("site_name: A\ntheme: missing\n", "utf-8")
    (tmp_path / "docs").mkdir()
    with pytest.raises(BookError, match=r"the site does not build, so there is nothing to print:(?s:.*)'missing'"):
        pdf.build(tmp_path, tmp_path / "site")
