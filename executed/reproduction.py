"""The tables that the book writes about itself: reference figures, the machine, and what every example took."""

import re
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from executed.book import Book, nearest
from executed.markup import escaped
from executed.numbers import as_bytes, duration, num, sci
from executed.provenance import packages
from executed.reference import AGREES, DIFFERS, ReferenceFigure, decimals, ours, read
from executed.render import Page
from executed.store import Result

Link = Callable[[str], str]
"""Gives the page and anchor that show an example, seen from the page with the table; nothing where none does."""

TOLERANCES = {
    "exact": "none",
    "order": "within a factor of ten",
    "shape": "the relation holds",
    "within": "inside our range",
    "curve": "{}",
    "close": "± {}",
    "hub": "± {}",
}


def directives(book: Book, results: dict[str, Result], pages: list[Page]) -> dict[str, Callable[..., str]]:
    """The directives that need no example: `{{ reference_figures() }}`, `{{ machine() }}`, and their like."""
    return {
        "reference_figures": lambda language, link: figure_table(read(book.root), results, language, link),
        "published": lambda language, link, name: published(read(book.root), name, language),
        "chapters": lambda language, link, *names: chapter_table(names, pages, results, language),
        "machine": lambda language, link: machine_list(results),
        "every_example": lambda language, link: example_table(results, language, link),
    }


def figure_table(figures: list[ReferenceFigure], results: dict[str, Result], language: str, link: Link) -> str:
    """Each figure that something of ours is held against, with a link to where ours is made; then the notes."""
    rows, notes = [["Figure", "Verdict", "Published", "Ours", "Tolerance"]], []
    for figure in figures:
        try:
            value = ours(figure, results)
        except LookupError:
            value = None
        if value is None and not figure.ours:
            continue
        target = link(figure.paths[0].rpartition(".")[0])
        rows.append([
            f"[`{figure.id}`]({target})" if target else f"`{figure.id}`",
            "not run here" if value is None else AGREES if figure.verdict(value) == AGREES else f"**{DIFFERS}**",
            written(figure.published, figure.published, figure.kind, language),
            "" if value is None else written(value, figure.published, figure.kind, language),
            _tolerance(figure, language),
        ])  # fmt: skip
        if figure.note and value is not None:
            notes.append(f"- `{figure.id}`: {escaped(figure.note)}")
    return table(rows) + ("\n\n" + "\n".join(notes) if notes else "")


def published(figures: list[ReferenceFigure], name: str, language: str) -> str:
    """A reference figure where ours cannot be shown, in a style nobody can mistake for ours."""
    known = {figure.id: figure for figure in figures}
    if name not in known:
        raise LookupError(f"there is no reference figure {name}{nearest(name, known)}")
    title = {"vi": "Công bố ở nơi khác, không chạy ở đây"}.get(language, "Published elsewhere, not run here")
    shown = written(known[name].published, known[name].published, known[name].kind, language).replace(
        "<br>", "\n    - "
    )
    return f'!!! published-elsewhere "{title}"\n    `{name}`:\n\n    - {shown}'


def _tolerance(figure: ReferenceFigure, language: str) -> str:
    if isinstance(figure.tol, str):
        return escaped(figure.tol)
    return TOLERANCES[figure.kind].format("" if figure.tol is None else written(figure.tol, figure.tol, "", language))


def written(value: Any, published: Any, kind: str, language: str) -> str:
    """A published value or ours, with the decimals that were published, as a table cell shows it."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "<br>".join(written(item, published, kind, language) for item in value)
    if isinstance(value, list) and value and isinstance(value[0], list) and isinstance(value[0][0], str):
        return ", ".join(" ".join(written(item, published, kind, language) for item in pair) for pair in value)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "<br>".join(written(row, published, kind, language).replace(" ", "\u00a0") for row in value)
    if isinstance(value, list):
        return ", ".join(written(item, published, kind, language) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{escaped(key)} {written(item, published, kind, language)}" for key, item in value.items())
    if isinstance(value, bool):
        return ("holds" if value else "does not hold") if kind == "shape" else ("yes" if value else "no")
    if isinstance(value, str):
        return escaped(value)
    number = float(value)
    if number and abs(number) < 1e-3:
        return sci(number, 2, language)
    return num(number, 0 if isinstance(value, int) else _most_decimals(published), language)


def _most_decimals(published: Any) -> int:
    if isinstance(published, list):
        return max(map(_most_decimals, published), default=0)
    if isinstance(published, dict):
        return max(map(_most_decimals, published.values()), default=0)
    return decimals(published) if isinstance(published, Decimal) else 0


def machine_list(results: dict[str, Result]) -> str:
    """Where the results on these pages come from: machines, versions, and when they were made."""
    versions: dict[str, set[str]] = {}
    for result in results.values():
        for name, version in [("Python", result.parts.get("python", "?")), *packages(result)]:
            versions.setdefault(name, set()).add(version)
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(result.started)) for result in results.values()})
    lines = sorted({escaped(result.machine) for result in results.values()})
    lines.append(", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in sorted(versions.items())))
    lines.append(f"made {' to '.join(dict.fromkeys([*days[:1], *days[-1:]]))}" if days else "")
    return "\n".join(f"- {line}" for line in lines if line)


def chapter_table(names: Sequence[str], pages: list[Page], results: dict[str, Result], language: str) -> str:
    """Chapters in reading order: what each answers, and how long all its code ran.

    Raises LookupError for a name that is no chapter.
    """
    known = {page.path.removeprefix("docs/").removesuffix(".md"): page for page in pages}
    rows = [["Chapter", "What it is about", "Code runs"]]
    for name in names:
        if name not in known:
            raise LookupError(f"there is no chapter {name}{nearest(name, known)}")
        meta = dict(re.findall(r"^(title|description): *(.+)$", known[name].source.partition("\n---\n")[0], re.M))
        module = name.rpartition("/")[2].replace("-", "_")
        seconds = sum(one.seconds for one in results.values() if one.name.startswith(f"{module}."))
        rows.append(
            [f"[{meta.get('title', name)}]({name}.md)", meta.get("description", ""), duration(seconds, language)]
        )
    return table(rows)


def example_table(results: dict[str, Result], language: str, link: Link) -> str:
    """Each example with the time and the memory that its last run took."""
    rows = [["Example", "Time", "Peak memory"]]
    for name, result in sorted(results.items()):
        shown = f"[`{name}`]({link(name)})" if link(name) else f"`{name}`"
        rows.append([shown, f"{num(result.seconds, 2, language)}\u00a0s", as_bytes(result.memory, 0, language)])
    return table(rows)


def table(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is its head."""
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])
