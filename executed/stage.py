"""The whole way from `docs/` and `snippets/` to finished Markdown, figures, and what there is to mend."""

import re
import textwrap
from pathlib import Path

from executed import lint, reference, reproduction
from executed.book import Book, BookError, Problem
from executed.commit import Commit
from executed.markup import fenced
from executed.pool import Pool
from executed.render import Page, Renderer
from executed.runner import Progress, run
from executed.staged import Staged, keep, sources
from executed.store import RECORDS, Failure, Outcomes, Store


def chapters(root: Path) -> list[Page]:
    """Every chapter of the book: the Markdown files below `docs/`, apart from `docs/assets/`."""
    files = sorted(file for file in (root / "docs").rglob("*.md") if not file.is_relative_to(root / "docs/assets"))
    return [
        Page(
            file.relative_to(root).as_posix(),
            file.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n"),
        )
        for file in files
    ]


def language_of(page: Page, default: str) -> str:
    """The language of a chapter: that of its folder (`docs/vi/`), else the book's own."""
    folder = page.path.split("/")[1]
    return folder if len(folder) == 2 and folder.isalpha() else default


def stage(
    root: Path,
    *,
    pool: Pool | None = None,
    progress: Progress | None = None,
    remembered: dict[str, Failure] | None = None,
) -> Staged:
    """Bring every result up to date and render every chapter. Raises BookError for broken lists."""
    before = sources(root)
    book = Book.read(root)
    outcomes = run(book, Store(root), book.examples, pool=pool, progress=progress, remembered=remembered)
    staged = render(book, chapters(root), outcomes)
    if not (staged.report() or staged.strict):
        outside = {need for example in book.examples.values() for need in example.options.needs}
        keep(root, staged, outcomes, outside, before)
    return staged


def render(book: Book, pages: list[Page], outcomes: Outcomes) -> Staged:
    """Render chapters with the results there are."""
    generated = reproduction.directives(book, outcomes.results, pages)
    renderer = Renderer(book, outcomes, generated, Commit.of(book.root))
    renderer.find_examples(pages)
    staged = Staged({}, {}, len(outcomes.results), outcomes.ran, outcomes.failures, list(book.problems))
    for page in pages:
        try:
            renderer.render(page, language_of(page, book.settings.language))
        except BookError as error:
            page.problems += error.problems
        staged.pages[page.path.removeprefix("docs/")] = _with_problems(page)
        staged.figures |= page.figures
        staged.errors += [problem for problem in page.problems if problem not in staged.errors]
        staged.strict += lint.naked_numbers(page.source, page.path)
        for name, line in page.used.items():
            staged.places.setdefault(name, (page.path, line))
    staged.strict += [
        Problem(
            f"{RECORDS}/{name}.json",
            1,
            f"this was recorded from other code than {name} has now: record it again (executed record {name})",
        )
        for name in outcomes.outdated
    ]
    staged.errors += _unused(book, staged)
    staged.errors += reference.check(book.root, outcomes.results, {*outcomes.failures, *outcomes.absent})
    return staged


def _with_problems(page: Page) -> str:
    """The page's Markdown, headed by what its author must mend: only `mkdocs serve` ever shows such a page."""
    if not page.problems:
        return page.text
    meta = re.match(r"---\n.*?\n---\n", page.text, re.S)
    start = meta.end() if meta else 0
    block = textwrap.indent(fenced("\n".join(map(str, page.problems)), ".text"), "    ")
    return f'{page.text[:start]}\n!!! failure "To mend on this page"\n{block}\n\n{page.text[start:]}'


def _unused(book: Book, staged: Staged) -> list[Problem]:
    """Examples that no chapter shows or quotes, no reference figure asks for and no used example needs."""
    paths = [path for figure in reference.read(book.root) for path in figure.paths]
    asked = [name for name in book.examples if any(path.startswith(f"{name}.") for path in paths)]
    used = set(book.order([*(name for name in staged.places if name in book.examples), *asked]))
    return [
        Problem(
            example.path,
            example.line,
            f'no chapter shows {name}: show it ({{{{ example("{name}") }}}}) or delete it',
        )
        for name, example in book.examples.items()
        if name not in used
    ]
