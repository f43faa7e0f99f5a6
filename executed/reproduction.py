"""The two tables that the book writes about itself: reference figures, and every example with what it took."""

import time
from collections.abc import Callable
from typing import Any

from executed.book import Book
from executed.numbers import as_bytes, num, si
from executed.reference import AGREES, OPEN, ReferenceFigure, ours, read
from executed.render import escaped
from executed.store import Result

WORDS = {
    "en": {
        "figure": "Figure",
        "published": "Published",
        "ours": "Ours",
        "tolerance": "Tolerance",
        "verdict": "Verdict",
        "agrees": "agrees",
        "differs": "differs",
        "open": "not run yet",
        "holds": "holds",
        "fails": "does not hold",
        "example": "Example",
        "time": "Time",
        "memory": "Peak memory",
        "note": "Note",
        "yes": "yes",
        "no": "no",
        "exact": "to the printed digits",
        "order": "same order of magnitude",
        "shape": "the relation holds",
        "within": "inside our range",
        "factor": "a factor of {}",
        "close": "± {}",
        "hub": "± {}",
    },
}
"""How each word of the tables reads in the page's language; English where a language has none."""


def directives(book: Book, results: dict[str, Result]) -> dict[str, Callable[[str], str]]:
    """The directives that need no name: `{{ reference_figures() }}`, `{{ machine() }}`, `{{ every_example() }}`."""
    return {
        "reference_figures": lambda language: figure_table(read(book.root), results, language),
        "machine": lambda language: machine_list(results, language),
        "every_example": lambda language: example_table(results, language),
    }


def _words(language: str) -> dict[str, str]:
    return WORDS["en"] | WORDS.get(language, {})


def figure_table(figures: list[ReferenceFigure], results: dict[str, Result], language: str) -> str:
    words = _words(language)
    rows = [[words[key] for key in ("figure", "published", "ours", "tolerance", "verdict")]]
    notes = []
    for figure in figures:
        try:
            value = ours(figure, results)
        except LookupError:
            value = None
        verdict = OPEN if value is None else figure.verdict(value)
        rows.append(
            [
                f"`{figure.id}`",
                written(figure.published, figure, language),
                "" if value is None else written(value, figure, language),
                _tolerance(figure, words, language),
                words[verdict] if verdict == AGREES else f"**{words[verdict]}**" if verdict != OPEN else words[OPEN],
            ]
        )
        if figure.note and value is not None:
            notes.append(f"- `{figure.id}`: {escaped(figure.note)}")
    return _table(rows) + ("\n\n" + "\n".join(notes) if notes else "")


def _tolerance(figure: ReferenceFigure, words: dict[str, str], language: str) -> str:
    if isinstance(figure.tol, str):
        return escaped(figure.tol)
    tolerance = written(figure.tol, figure, language) if figure.tol is not None else ""
    return words[figure.kind].format(tolerance)


def written(value: Any, figure: ReferenceFigure, language: str) -> str:
    """A published value or ours, rounded alike, as a table cell shows it."""
    words = _words(language)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "<br>".join(written(row, figure, language) for row in value)
    if isinstance(value, list):
        return ", ".join(written(item, figure, language) for item in value)
    if isinstance(value, bool):
        return words["yes" if value else "no"] if figure.kind != "shape" else words["holds" if value else "fails"]
    if isinstance(value, dict):
        return "; ".join(f"{escaped(str(key))} {written(item, figure, language)}" for key, item in value.items())
    if isinstance(value, int):
        return num(value, 0, language)
    if isinstance(value, float):
        small = value != 0 and abs(value) < 1e-3
        return (
            f"{value:.2e}"
            if small
            else num(value, figure.digits, language)
            if abs(value) < 1e5
            else si(value, 1, language)
        )
    return escaped(str(value))


def machine_list(results: dict[str, Result], language: str) -> str:
    """Where the results of this page come from: machines, versions, and when they were made."""
    machines = sorted({result.machine for result in results.values()})
    versions: dict[str, set[str]] = {}
    for result in results.values():
        for part, version in result.parts.items():
            if part.startswith("package ") or part == "python":
                versions.setdefault(part.removeprefix("package "), set()).add(version)
    days = sorted(time.strftime("%Y-%m-%d", time.gmtime(result.started)) for result in results.values())
    lines = [f"- {escaped(machine)}" for machine in machines]
    lines.append("- " + ", ".join(f"{name} {', '.join(sorted(found))}" for name, found in sorted(versions.items())))
    if days:
        lines.append(f"- {days[0]}" if days[0] == days[-1] else f"- {days[0]} to {days[-1]}")
    return "\n".join(lines)


def example_table(results: dict[str, Result], language: str) -> str:
    words = _words(language)
    rows = [[words[key] for key in ("example", "time", "memory")]]
    for name, result in sorted(results.items()):
        rows.append([f"`{name}`", f"{num(result.seconds, 2, language)} s", as_bytes(result.memory, 0, language)])
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
