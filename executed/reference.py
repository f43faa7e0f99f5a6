"""Reference figures: what was published elsewhere, what a run of ours gives, the tolerance, and a verdict.

docs/reference_figures.toml lists them. `kind` says how ours is held against what was published:

exact   equal to the last digit that was printed (`8.00` means two decimals); whole numbers and words exactly
close   no number differs by more than `tol`, or each by no more than its own of a list
curve   a loss curve: the first within `tol.first`, the others within `tol.rest` or a factor of `tol.factor`
order   the same order of magnitude: within a factor of ten
within  every published number inside the range of ours, [lowest, highest]
shape   the relation that `published` states holds: our value is true
hub     needs published weights; open where they cannot be had
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from executed.book import BookError, Problem, nearest
from executed.lint import naked_numbers
from executed.store import Result

FILE = "docs/reference_figures.toml"
AGREES = "agrees"
DIFFERS = "differs"


@dataclass(frozen=True)
class ReferenceFigure:
    """One published figure, the value of ours it is held against, and how close that has to come."""

    id: str
    published: Any
    kind: str
    ours: str | list[str] = ""
    tol: Any = None
    note: str = ""

    @property
    def paths(self) -> list[str]:
        """The qualified values this figure is held against."""
        return self.ours if isinstance(self.ours, list) else [self.ours] if self.ours else []

    def verdict(self, value: Any) -> str:
        """`agrees` or `differs` for a value of ours."""
        try:
            return AGREES if COMPARE[self.kind](self, value) else DIFFERS
        except ValueError:  # of another shape than what was published
            return DIFFERS


def _pairs(published: Any, ours: Any) -> list[tuple[Any, Any]]:
    """Published and our numbers side by side, however they are nested. Raises ValueError for different shapes."""
    if isinstance(published, dict) and isinstance(ours, dict) and published.keys() == ours.keys():
        return [pair for key in published for pair in _pairs(published[key], ours[key])]
    if not isinstance(published, list | dict) and not isinstance(ours, list | dict):
        return [(published, ours)]
    if not isinstance(published, list) or not isinstance(ours, list):
        raise ValueError("one is nested and the other is not")
    return [pair for one, other in zip(published, ours, strict=True) for pair in _pairs(one, other)]


def _each(test: Callable[[ReferenceFigure, Any, Any], bool]) -> Callable[[ReferenceFigure, Any], bool]:
    return lambda figure, value: all(test(figure, one, other) for one, other in _pairs(figure.published, value))


def _equal(figure: ReferenceFigure, published: Any, ours: Any) -> bool:
    if not isinstance(published, Decimal):
        return bool(published == ours)
    return bool(abs(ours - float(published)) <= 0.5 * 10.0 ** -decimals(published) * (1 + 1e-9))


def decimals(published: Decimal) -> int:
    """How many decimals a number was published with: two for 8.00."""
    return max(0, -int(published.as_tuple().exponent))


def _same_order(figure: ReferenceFigure, published: Any, ours: Any) -> bool:
    return bool(ours > 0 and 0.1 <= ours / float(published) <= 10)


def _curve(figure: ReferenceFigure, ours: Any) -> bool:
    (first, ours_first), *rest = _pairs(figure.published, ours)
    factor, tolerance = float(figure.tol.get("factor", 1)), float(figure.tol.get("rest", 0))
    return abs(ours_first - float(first)) <= float(figure.tol["first"]) and all(
        float(one) / factor - tolerance <= other <= float(one) * factor + tolerance for one, other in rest
    )


def _close(figure: ReferenceFigure, published: Any, ours: Any) -> bool:
    return bool(published == ours if isinstance(published, str) else abs(ours - float(published)) <= figure.tol)


def _all_close(figure: ReferenceFigure, ours: Any) -> bool:
    if isinstance(figure.tol, list):
        for one, other, tolerance in zip(figure.published, ours, figure.tol, strict=True):
            seeds = other if isinstance(other, list) else [other]  # a range over seeds: both its ends
            if any(abs(value - float(one)) > tolerance for value in seeds):
                return False
        return True
    return _each(_close)(figure, ours)


COMPARE: dict[str, Callable[[ReferenceFigure, Any], bool]] = {
    "exact": _each(_equal),
    "close": _all_close,
    "curve": _curve,
    "order": _each(_same_order),
    "within": lambda figure, ours: all(
        low <= one <= high for one, (low, high) in zip(figure.published, ours, strict=True)
    ),
    "shape": lambda figure, ours: ours is True,
    "hub": _each(_close),
}


def read(root: Path) -> list[ReferenceFigure]:
    """The reference figures of the book at `root`; none where there is no list. Raises BookError for a broken one."""
    text = (root / FILE).read_text("utf-8") if (root / FILE).exists() else ""
    known = [item.name for item in fields(ReferenceFigure)]
    try:
        tables = tomllib.loads(text, parse_float=Decimal).get("figure", [])  # Decimal keeps the digits as printed
    except tomllib.TOMLDecodeError as error:
        raise BookError(Problem(FILE, 1, f"this is not TOML: {error}")) from None
    for table in tables:
        for key in table.keys() - set(known):
            raise BookError(Problem(FILE, _line(text, table), f"a figure has no {key}{nearest(key, known)}"))
    return [ReferenceFigure(**table) for table in tables]


def _line(text: str, table: dict[str, Any]) -> int:
    wanted = f'"{table.get("id", "")}"'
    return next((number for number, line in enumerate(text.splitlines(), 1) if wanted in line), 1)


def ours(figure: ReferenceFigure, results: dict[str, Result]) -> Any:
    """Our value for a figure, a list where it names several; None where there is none yet.

    Raises LookupError for a name that leads nowhere.
    """
    if isinstance(figure.ours, list):
        return [_value(figure, name, results) for name in figure.ours]
    return _value(figure, figure.ours, results) if figure.ours else None


def _value(figure: ReferenceFigure, path: str, results: dict[str, Result]) -> Any:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in results:
            value: Any = results[name].values
            for part in parts[length:]:
                if not isinstance(value, dict) or part not in value:
                    known = value if isinstance(value, dict) else ()
                    raise LookupError(f"{figure.id}: {name} has no {part}{nearest(part, known)}")
                value = value[part]
            return value
    raise LookupError(f"{figure.id}: no example behind {path}{nearest(path, results)}")


def check(root: Path, results: dict[str, Result], failed: set[str]) -> list[Problem]:
    """Reference figures that ours does not reach, and names that lead nowhere."""
    problems = []
    text = (root / FILE).read_text("utf-8") if (root / FILE).exists() else ""
    for figure in read(root):
        line = _line(text, {"id": figure.id})
        problems += [Problem(FILE, line, problem.message) for problem in naked_numbers(figure.note, FILE)]
        if figure.kind not in COMPARE:
            problems.append(Problem(FILE, line, f"there is no kind {figure.kind!r}{nearest(figure.kind, COMPARE)}"))
            continue
        if any(path.startswith(f"{name}.") for path in figure.paths for name in failed):
            continue
        try:
            value = ours(figure, results)
        except LookupError as error:
            problems.append(Problem(FILE, line, str(error)))
            continue
        if value is not None and figure.verdict(value) == DIFFERS:
            problems.append(
                Problem(
                    FILE,
                    line,
                    f"{figure.id}: published {figure.published}, ours {value} ({figure.ours}): outside its tolerance",
                )
            )
    return problems
