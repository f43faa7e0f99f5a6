"""The notebooks of the book: run from top to bottom in a fresh kernel, each gives what the site shows.

Those whose code takes seconds run with `pytest -m site`, those that train for minutes with `pytest -m slow`.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from executed import capture
from executed.book import Book
from executed.fingerprint import Fingerprints
from executed.stage import stage
from executed.staged import unchanged
from executed.store import Result, Store
from executed.verify import differences, varies

ROOT = Path(__file__).parents[1]
SLOW = {"sorting", "reading", "in-practice"}
CHAPTERS = sorted(
    file.stem for file in (ROOT / "docs").glob("*.md") if (ROOT / f"snippets/{file.stem.replace('-', '_')}.py").exists()
)
# The inline backend lays a figure out twice, at two resolutions: it comes out a few hundredths of a point elsewhere.
VISIBLE = 0.1


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    staged = unchanged(ROOT) or stage(ROOT)
    return staged.files


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_a_valid_notebook_that_asks_for_published_packages_only(
    chapter: str, files: dict[str, str]
) -> None:
    notebook = nbformat.reads(files[f"notebooks/{chapter}.ipynb"], 4)
    nbformat.validate(notebook)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert not re.search(r"^\s*(?:from|import) (?:executed|snippets)\b", code, re.M)
    ids = [cell.id for cell in notebook.cells]
    assert len({*ids}) == len(ids)


@pytest.mark.parametrize(
    "chapter", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else pytest.mark.site) for name in CHAPTERS]
)
def test_a_notebook_that_runs_in_a_fresh_kernel_gives_what_the_site_shows(
    chapter: str, files: dict[str, str], tmp_path: Path
) -> None:
    book, store = Book.read(ROOT), Store(ROOT)
    fingerprints = Fingerprints(book)
    ran = _run(nbformat.reads(files[f"notebooks/{chapter}.ipynb"], 4), tmp_path)
    compared, wrong = 0, []
    for name, (cell, values) in ran.items():
        published = store.load(name, fingerprints.of(name).digest)
        assert published, name
        found = _result(published, cell, values)
        wrong += [f"{name}: {words}" for words in differences(published, found, varies(book, name), VISIBLE)]
        compared += 1
    assert wrong == []
    assert compared >= 5


def _run(notebook: Any, folder: Path) -> dict[str, tuple[Any, Any]]:
    """Run a notebook; the cell of each example as it is then, and the values it left, where it left some."""
    examples: dict[str, tuple[Any, Any]] = {}
    reader = f"_capture = {{}}\nimport json\nexec({Path(capture.__file__).read_text('utf-8')!r}, _capture)"
    cells = [nbformat.v4.new_code_cell(reader)]
    for cell in notebook.cells:
        if cell.cell_type != "code" or "not-run" in cell.metadata.get("tags", []):
            continue
        cell.outputs = []
        cells.append(cell)
        if name := cell.metadata.get("executed"):
            variable = name.rpartition(".")[2]
            left = re.search(rf"^{variable} = ", cell.source, re.M) and "raises-exception" not in str(cell.metadata)
            value = f"_capture['quotable']({variable})" if left else "None"
            cells.append(nbformat.v4.new_code_cell(f"print(json.dumps({value}))"))
            examples[name] = cell, cells[-1]
    runnable = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    NotebookClient(runnable, timeout=1800, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return {name: (cell, json.loads(values.outputs[0].text)) for name, (cell, values) in examples.items()}


def _result(published: Result, cell: Any, values: Any) -> Result:
    """What a cell left, as a result of the book's own."""
    assert not [output for output in cell.outputs if output.output_type == "execute_result"]
    printed = [output.text for output in cell.outputs if output.get("name") == "stdout"]
    errors = [f"{output.ename}: {output.evalue}" for output in cell.outputs if output.output_type == "error"]
    drawn = [output.data["image/svg+xml"] for output in cell.outputs if output.output_type == "display_data"]
    return replace(
        published,
        text=capture.readable("".join([*printed, *errors]).encode()),
        figures=[capture.page_svg(svg, f"figure{number}") for number, svg in enumerate(drawn, 1)],
        values=published.values if values is None else values if isinstance(values, dict) else {"value": values},
    )
