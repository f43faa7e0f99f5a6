"""A staged book, ready for a site generator, and the last one again while nothing it was made of has changed."""

import contextlib
import json
import platform
from dataclasses import dataclass, field
from pathlib import Path

from executed.book import SNIPPETS, BookError, Problem
from executed.commit import head
from executed.fingerprint import file_digest
from executed.installed import version
from executed.outside import missing
from executed.policy import leading_out
from executed.statements import sha
from executed.store import KEPT, RECORDS, Failure, Outcomes, Store, failure_text

PUBLISHED = ("pages", "figures", "files", "results", "links", "plain")
"""What is kept of a staged book: all that there is of one that has nothing to mend."""
RENDERERS = ("babel", "markdown-it-py", "mdit-py-plugins", "pybtex")


@dataclass
class Staged:
    """Finished Markdown and figures, what ran for them, and what there is to mend."""

    pages: dict[str, str]
    """Markdown by path below `docs/`."""
    figures: dict[str, str]
    """SVG by file name below `docs/figures/`."""
    files: dict[str, str] = field(default_factory=dict)
    """What else the site publishes: text files by path below `docs/`."""
    results: int = 0
    """How many examples have a result."""
    ran: list[str] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    """Names and values that lead nowhere, unused examples, figures out of tolerance."""
    strict: list[Problem] = field(default_factory=list)
    """What only a strict build refuses: numbers typed into prose, sources nobody cites, records of other code."""
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The first page line that shows or quotes each example."""
    links: dict[str, dict[str, list[tuple[int, int, str, str]]]] = field(default_factory=dict)
    """Names in code that lead to definitions, by path below `docs/`: see `executed.definitions`."""

    plain: dict[str, str] = field(default_factory=dict)
    """The same pages as Markdown for other programs, see `executed.plain`."""

    def report(self) -> list[str]:
        """One readable block for each failed example and each error, failures first."""
        blocks = []
        for name, failure in self.failures.items():
            page, line = self.places.get(name, ("", 0))
            head, _, rest = failure_text(failure).partition("\n")
            blocks.append("\n".join(filter(None, [head, f"  shown by {page}:{line}" if page else "", rest])))
        return [*blocks, *map(str, self.errors)]

    def summary(self) -> str:
        """What ran and what did not need to."""
        kept = self.results - len([name for name in self.ran if name not in self.failures])
        if not self.ran and not self.failures:
            return f"nothing ran: {kept} results are up to date"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"{len(self.ran)} examples ran, {kept} results were up to date{failed}"


def saved_since(root: Path) -> list[Path]:
    """Snippets that were saved since a book was kept; all of them where none is."""
    last = root / KEPT
    since = last.stat().st_mtime if last.exists() else 0.0
    return [file for file in (root / SNIPPETS).rglob("*.py") if file.is_file() and file.stat().st_mtime > since]


def keep(root: Path, staged: Staged, outcomes: Outcomes, outside: set[str], before: str) -> None:
    """Keep a book that has nothing to mend, unless its sources are no longer what they were `before` it was made."""
    if sources(root) != before:
        return
    results = outcomes.results.values()
    parts = {part for result in results for part in result.parts}
    if any(part.startswith("files of ") for part in parts):
        return  # it reaches into Python of the repository that is no snippet, which is not looked at here
    made_of = {
        "packages": sorted(part.removeprefix("package ") for part in parts if part.startswith("package ")),
        "read": sorted(
            {path for result in results for path in result.files}
            | {part.removeprefix("file ") for part in parts if part.startswith("file ")}
        ),
        "outside": sorted(outside),
        "entries": sorted(result.entry.relative_to(root).as_posix() for result in results),
    }
    book = {name: getattr(staged, name) for name in PUBLISHED}
    body = {"made_of": made_of, "inputs": inputs(root, before, **made_of), "book": book}
    with contextlib.suppress(BookError):  # without it only the next build takes longer
        Store(root).write_text(root / KEPT, json.dumps(body))


def unchanged(root: Path, now: str = "") -> Staged | None:
    """The staged book of last time, if every byte and every version it was made of is still the same.

    `now` is the hash of the book's `sources`, for a caller that has it.
    """
    body = json.loads(Store(root).read_text(root / KEPT) or "{}")
    try:
        if body["inputs"] == inputs(root, now or sources(root), **body["made_of"]):
            return Staged(**body["book"])
    except (KeyError, TypeError):
        pass  # nothing kept, or by another version of the engine
    return None


def sources(root: Path) -> str:
    """A hash of the texts a book is written in: snippets, chapters, lists, settings, and the engine's own.

    Raises BookError, before anything is read, where a link leads out of the book.
    """
    if links := leading_out(root):
        raise BookError(*links)
    patterns = (
        f"{SNIPPETS}/**/*.py",
        "docs/**/*.md",
        "docs/assets/scripts/widgets/*.js",
        "docs/*.bib",
        "docs/*.toml",
        "pyproject.toml",
        f"{RECORDS}/*.json",
    )
    files = sorted(file for pattern in patterns for file in root.glob(pattern))
    files += sorted(file for file in Path(__file__).parent.iterdir() if file.suffix in (".py", ".mplstyle"))
    return sha("\n".join(f"{file} {file_digest(root, str(file))}" for file in files))


def inputs(root: Path, texts: str, packages: list[str], read: list[str], entries: list[str], outside: list[str]) -> str:
    """A hash of all that a staged book is made of: its `sources`, packages, files read, and stored results."""
    parts = [texts, platform.python_version(), platform.platform(), head(root)]
    parts += [f"{name} {version(name)}" for name in (*packages, *RENDERERS)]
    parts += [f"{path} {file_digest(root, path)}" for path in read]
    parts += [f"{need} {missing(need)}" for need in outside]
    parts += [f"{entry} {_written(root / entry)}" for entry in entries]
    return sha("\n".join(parts))


def _written(entry: Path) -> str:
    """When a stored result was written: its bytes are checked whenever it is read, here its date is enough."""
    try:
        state = entry.stat()
    except OSError:
        return "absent"
    return f"{state.st_mtime_ns} {state.st_size} {state.st_ino}"
