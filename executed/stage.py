"""The whole way from `docs/` and `snippets/` to finished Markdown, figures, and what there is to mend."""

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from executed import lint, reference, reproduction
from executed.book import Book, BookError, Problem
from executed.pool import Pool
from executed.render import Page, Renderer, failure_text, fenced
from executed.runner import Outcomes, Progress, run
from executed.store import Failure, Store


@dataclass
class Staged:
    """A book ready for a site generator."""

    pages: dict[str, str]
    """Markdown by path below `docs/`."""
    figures: dict[str, str]
    """SVG by file name below `docs/figures/`."""
    outcomes: Outcomes
    errors: list[Problem] = field(default_factory=list)
    """Names and values that lead nowhere, unused examples, figures out of tolerance."""
    naked_numbers: list[Problem] = field(default_factory=list)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The first page line that shows or quotes each example."""

    def report(self) -> list[str]:
        """One readable block for each failed example and each error, failures first."""
        blocks = []
        for name, failure in self.outcomes.failures.items():
            page, line = self.places.get(name, ("", 0))
            shown = f"\n  shown by {page}:{line}" if page else ""
            head, _, rest = failure_text(failure).partition("\n")
            blocks.append(head + shown + (f"\n{rest}" if rest else ""))
        return [*blocks, *map(str, self.errors)]

    def summary(self) -> str:
        """What ran and what did not need to."""
        ran, failed = len(self.outcomes.ran), len(self.outcomes.failures)
        kept = len(self.outcomes.results.keys() - set(self.outcomes.ran))
        if not ran and not failed:
            return f"nothing ran: {kept} results are up to date"
        return f"{ran} examples ran, {kept} results were up to date" + (f", {failed} failed" if failed else "")


def chapters(root: Path) -> list[Page]:
    """Every chapter of the book: the Markdown files below `docs/`, apart from `docs/assets/`."""
    files = sorted(file for file in (root / "docs").rglob("*.md") if not file.is_relative_to(root / "docs/assets"))
    return [
        Page(
            file.relative_to(root).as_posix(),
            file.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n"),
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
    execute: Callable[..., Outcomes] = run,
) -> Staged:
    """Bring every result up to date and render every chapter. Problems are collected, none is raised."""
    book = Book.read(root)
    outcomes = execute(book, Store(root), book.examples, pool=pool, progress=progress, remembered=remembered)
    return render(book, chapters(root), outcomes)


def render(book: Book, pages: list[Page], outcomes: Outcomes) -> Staged:
    """Render chapters with the results there are."""
    renderer = Renderer(book, outcomes.results, outcomes.failures, reproduction.directives(book, outcomes.results))
    renderer.find_examples(pages)
    staged = Staged({}, {}, outcomes, list(book.problems))
    for page in pages:
        try:
            renderer.render(page, language_of(page, book.settings.language))
        except BookError as error:
            page.problems += error.problems
        staged.pages[page.path.removeprefix("docs/")] = _with_problems(page)
        staged.figures |= page.figures
        staged.errors += [problem for problem in page.problems if problem not in staged.errors]
        staged.naked_numbers += lint.naked_numbers(page.source, page.path)
        for name, line in page.used.items():
            staged.places.setdefault(name, (page.path, line))
    staged.errors += _unused(book, staged)
    staged.errors += reference.check(book.root, outcomes.results, set(outcomes.failures))
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
    figures = [figure.ours for figure in reference.read(book.root)]
    asked = [name for name in book.examples if any(ours.startswith(f"{name}.") for ours in figures)]
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
