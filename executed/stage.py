"""The whole way from `docs/` and `snippets/` to finished Markdown, figures, and what there is to mend."""

import re
import textwrap
from contextlib import closing, nullcontext
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import executed.book
from executed import citations, definitions, head, lint, markup, notebook, plain, reference, reproduction, unused
from executed.book import Book, BookError, Problem, language_of
from executed.commit import Commit
from executed.glossary import Glossary
from executed.markup import fenced
from executed.memo import Memo
from executed.pool import Pool
from executed.render import Page, Renderer
from executed.runner import Progress, run
from executed.staged import Staged, keep, sources
from executed.store import RECORDS, Failure, Outcomes, Store


def chapters(root: Path) -> list[Page]:
    """Every chapter of the book: the Markdown files below `docs/`, apart from `docs/assets/`."""
    files = sorted(file for file in (root / "docs").rglob("*.md") if not file.is_relative_to(root / "docs/assets"))
    files = [file for file in files if file.is_file()]  # an editor's locks are links to nowhere
    return [
        Page(
            file.relative_to(root).as_posix(),
            file.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n"),
        )
        for file in files
    ]


def stage(
    root: Path,
    *,
    only: str = "",
    pool: Pool | None = None,
    progress: Progress | None = None,
    remembered: dict[str, Failure] | None = None,
    before: str = "",
) -> Staged:
    """Bring every result up to date and render every chapter, or `only` the one at a path with what it asks for.

    `before` is the hash of the book's `sources`, for a caller that has it. Raises BookError for broken lists.
    """
    before = before or sources(root)
    with nullcontext(pool) if pool else closing(Pool(root)) as server:
        if pool is None:
            server.start_early()
        book, pages = Book.read(root), chapters(root)
        asked = {one.split(book)[0] for page in pages if page.path == only for one in unused.asked(page)}
        names = asked & book.examples.keys() if only else book.examples
        outcomes = run(book, Store(root), names, pool=server, progress=progress, remembered=remembered)
    staged = render(book, pages, outcomes, only)
    if not (only or staged.report() or staged.strict):
        outside = {need for example in book.examples.values() for need in example.options.needs}
        keep(root, staged, outcomes, outside, before)
    return staged


def render(book: Book, pages: list[Page], outcomes: Outcomes, only: str = "") -> Staged:
    """Render the chapters, or only one, with the results there are, and collect what there is to mend."""
    glossary = Glossary(book.root)
    generated = reproduction.directives(book, outcomes.results, pages) | glossary.directives(pages)
    renderer = Renderer(book, outcomes, generated, Commit.of(book.root), glossary)
    renderer.find_examples(pages)
    staged = Staged({}, {}, {}, len(outcomes.results), outcomes.ran, outcomes.failures, list(book.problems))
    rendered = [page for page in pages if page.path == only] or pages
    languages = {page.path: language_of(page.path.removeprefix("docs/"), book.settings.language) for page in pages}
    store = Store(book.root)
    texts = Memo(store, "plain", plain)
    for page in rendered:
        try:
            renderer.render(page, languages[page.path])
        except BookError as error:
            page.problems += error.problems
        staged.pages[page.path.removeprefix("docs/")] = _with_problems(page)
        staged.plain[page.path.removeprefix("docs/")] = texts.of(page.path, page.text, partial(plain.plain, page.text))
        staged.figures |= page.figures
        staged.files |= page.files
        staged.errors += [problem for problem in page.problems if problem not in staged.errors]
        for name, line in page.used.items():
            staged.places.setdefault(name, (page.path, line))
    texts.keep()
    names = Memo(store, "names", definitions, executed.book)
    staged.links = definitions.marks(book, rendered, names)
    names.keep()
    if book.settings.notebooks and not only:
        try:
            staged.files |= notebook.notebooks(book, renderer, pages, languages)
        except BookError as error:
            staged.errors += error.problems
    staged.strict += _typed_numbers(store, rendered)
    staged.strict += head.descriptions(pages)
    staged.strict += [
        Problem(
            f"{RECORDS}/{name}.json",
            1,
            f"this was recorded from other code than {name} has now: record it again (executed record {name})",
        )
        for name in outcomes.outdated
    ]
    staged.errors += glossary.problems(book.root, pages)
    staged.errors += unused.examples(book, pages)
    staged.errors += reference.check(book.root, outcomes.results, book.examples.keys() - outcomes.results.keys())
    staged.strict += [one for one in unused.sources(book, pages) if one not in staged.errors]
    if only:
        staged.errors, staged.strict = (unused.about(only, found) for found in (staged.errors, staged.strict))
    return staged


def _typed_numbers(store: Store, pages: list[Page]) -> list[Problem]:
    """Numbers typed by hand."""
    memo = Memo(store, "lint", lint, markup, citations, packages=("markdown-it-py", "mdit-py-plugins"))
    found = [memo.of(page.path, page.source, partial(_typed_into, page)) for page in pages]
    memo.keep()
    return [Problem(*one) for problems in found for one in problems]


def _typed_into(page: Page) -> list[Any]:
    return [*map(astuple, lint.naked_numbers(page.source, page.path))]


def _with_problems(page: Page) -> str:
    """The page's Markdown, headed by what its author must mend: only `mkdocs serve` ever shows such a page."""
    if not page.problems:
        return page.text
    meta = re.match(r"---\n.*?\n---\n", page.text, re.S)
    start = meta.end() if meta else 0
    block = textwrap.indent(fenced("\n".join(map(str, page.problems)), ".text"), "    ")
    return f'{page.text[:start]}\n!!! failure "To mend on this page"\n{block}\n\n{page.text[start:]}'
