"""The rules that hold for every chapter, and for the project as the README describes it."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executed import unused
from executed.book import Book
from executed.reference import AGREES, ReferenceFigure, ours, read
from executed.stage import chapters, stage
from executed.store import Result

ROOT = Path(__file__).parents[1]
WITHOUT_CODE = {"index", "glossary", "reproduction"}
CHAPTERS = sorted(file.stem for file in (ROOT / "docs").glob("*.md") if file.stem not in WITHOUT_CODE)
MODULES = sorted(file.stem for file in (ROOT / "snippets").glob("*.py"))
FIGURES = [figure for figure in read(ROOT) if figure.ours]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_a_snippet_module_and_tests_of_its_name(chapter: str) -> None:
    name = chapter.replace("-", "_")
    assert (ROOT / f"snippets/{name}.py").exists()
    tests = ast.parse((ROOT / f"tests/test_{name}.py").read_text("utf-8"))
    assert (ast.get_docstring(tests) or "").startswith(f"docs/{chapter}.md")


@pytest.mark.parametrize("module", MODULES)
def test_a_snippet_module_belongs_to_a_chapter(module: str) -> None:
    assert module.replace("_", "-") in CHAPTERS


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_closes_with_what_to_remember_a_question_and_where_to_go(chapter: str) -> None:
    text = (ROOT / f"docs/{chapter}.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.M)
    closing = ["What to remember", "Check yourself", "Where to go next"]
    assert headings[-3:] == closing, f"docs/{chapter}.md closes with ## {', ## '.join(closing)}"
    assert '??? question "' in text, f'docs/{chapter}.md asks in a box, ??? question "...", that holds the answer'


@pytest.mark.parametrize("module", MODULES)
def test_every_definition_that_readers_see_says_what_it_is_for(module: str) -> None:
    tree = ast.parse((ROOT / f"snippets/{module}.py").read_text("utf-8"))
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert [node.name for node in definitions if not ast.get_docstring(node)] == []
    assert ast.get_docstring(tree)


def test_importing_the_snippets_prints_nothing_and_draws_nothing() -> None:
    code = "import matplotlib.pyplot as plt\n" + "\n".join(f"import snippets.{module}" for module in MODULES)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nassert not plt.get_fignums()"], cwd=ROOT, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_book_has_nothing_to_mend() -> None:
    staged = stage(ROOT)
    assert staged.report() == []
    assert staged.strict == []
    book, pages = Book.read(ROOT), chapters(ROOT)
    assert unused.tests(book, pages) == []
    assert unused.values(book, pages) == []


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.id for figure in FIGURES])
def test_a_reference_figure_is_reached_within_its_tolerance(
    figure: ReferenceFigure, result: Callable[[str], Result]
) -> None:
    examples = Book.read(ROOT).examples
    names = [name for name in examples if any(path.startswith(f"{name}.") for path in figure.paths)]
    assert figure.verdict(ours(figure, {name: result(name) for name in names})) == AGREES


@pytest.mark.parametrize(
    ("package", "knowing"), [("mkdocs", ["beside.py", "hook.py"]), ("mkdocs_jupyter", ["notebook_page.py"])]
)
def test_only_the_two_halves_of_the_hook_know_mkdocs(package: str, knowing: list[str]) -> None:
    importing = re.compile(rf"^\s*(from|import) {package}\b", re.M)
    files = [file for file in (ROOT / "executed").glob("*.py") if importing.search(file.read_text("utf-8"))]
    assert sorted(file.name for file in files) == knowing


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    command = re.search(r"\*\*Test it:\*\*\n\n```sh\n(.+)\n```", readme)
    assert command is not None
    assert f"\n{command[1]}\n" in (ROOT / ".ci/run").read_text("utf-8")


def test_the_chapter_of_the_readme_is_a_chapter(write_readme_chapter: Path) -> None:
    staged = stage(write_readme_chapter)
    assert staged.report() == []
    assert "The largest score gets 0.67 of the weight." in staged.pages["softmax.md"]


@pytest.fixture
def write_readme_chapter(tmp_path: Path) -> Path:
    """The example of the README, as a book of its own."""
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = {
        kind: re.search(rf"^    ```{kind}\n(.*?)^    ```", readme, re.M | re.S) for kind in ("python", "markdown")
    }
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    for path, kind in (("snippets/softmax.py", "python"), ("docs/softmax.md", "markdown")):
        found = blocks[kind]
        assert found is not None
        file = tmp_path / path
        file.parent.mkdir()
        file.write_text(re.sub(r"^    ", "", found[1], flags=re.M), "utf-8")
    return tmp_path
