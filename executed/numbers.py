"""Numbers as a reader of the page's language writes them: 0.687 in English, 0,687 in Vietnamese."""

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from babel.numbers import format_decimal, format_percent

Number = float | Decimal
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
NARROW_SPACE = "\u202f"
MINUS = "\u2212"
TIMES = "\u00a0×\u00a0"
EXACT = decimal.Context(prec=10_000, rounding=decimal.ROUND_HALF_EVEN)
"""Whole numbers of any size keep their digits; the format of Babel works in the context it finds."""


def _rounded(value: Number, digits: int) -> Decimal:
    """Rounded once, from the value itself and not from how it prints. Zero has no sign."""
    return EXACT.add(EXACT.quantize(Decimal(value), Decimal(1).scaleb(-digits)), Decimal(0))


@lru_cache(maxsize=4096)
def _written(form: Callable[..., str], value: Decimal, digits: int, unit: str, language: str) -> str:
    with decimal.localcontext(EXACT):
        pattern = "#,##0" + ("." + "0" * digits if digits else "") + unit
        return str(form(value, format=pattern, locale=language)).replace("-", MINUS)


def num(value: Number, digits: int, language: str) -> str:
    """`num(3)`: 0.687, with as many decimals as asked for."""
    return _written(format_decimal, _rounded(value, digits), digits, "", language)


def pct(value: Number, digits: int, language: str) -> str:
    """`pct(1)`: 0.988 as 98.8%."""
    return _written(format_percent, _rounded(value, digits + 2), digits, "%", language)


def sci(value: Number, digits: int, language: str) -> str:
    """`sci(1)`: 8.94e-08 as 8.9 × 10⁻⁸."""
    if value == 0:
        return num(0, 0, language)
    mantissa, exponent = f"{Decimal(value):.{digits}e}".split("e")
    return f"{num(Decimal(mantissa), digits, language)}{TIMES}10{str(int(exponent)).translate(SUPERSCRIPT)}"


def si(value: Number, digits: int, language: str) -> str:
    """`si(1)`: 134998272 as 135.0 M, with the prefixes of the SI."""
    size = Decimal(value)
    power = min(max(size.adjusted() // 3 * 3, min(PREFIXES)), max(PREFIXES)) if value else 0
    if power < max(PREFIXES) and abs(_rounded(size.scaleb(-power, EXACT), digits)) >= 1000:
        power += 3
    return f"{num(size.scaleb(-power, EXACT), digits, language)}{NARROW_SPACE}{PREFIXES[power]}".rstrip(NARROW_SPACE)


def as_bytes(value: Number, digits: int, language: str) -> str:
    """`bytes`: 268435456 as 268.4 MB; a megabyte is a million bytes."""
    whole = _rounded(value, 0)
    if abs(whole) < 1000:
        return f"{num(whole, 0, language)}{NARROW_SPACE}B"
    return si(whole, digits, language) + "B"


def duration(seconds: float, language: str) -> str:
    """A time as one says it: 0.4 s, 12 s, 8.4 min."""
    if seconds >= 100:
        return f"{num(seconds / 60, 0 if seconds >= 600 else 1, language)}\u00a0min"
    return f"{num(seconds, 0 if seconds >= 10 else 1, language)}\u00a0s"


FILTERS: dict[str, Callable[[Number, int, str], str]] = {
    "num": num,
    "pct": pct,
    "sci": sci,
    "si": si,
    "bytes": as_bytes,
}
DEFAULT_DIGITS = {"bytes": 1}


def formatted(value: Any, name: str, digits: int, language: str) -> str:
    """A number, or each number of a list, through the named filter. Raises TypeError for anything else."""
    if isinstance(value, list) and value:
        return listed([formatted(item, name, digits, language) for item in value])
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = value["$unquotable"] if isinstance(value, dict) and "$unquotable" in value else repr(value)
        raise TypeError(f"{name} formats numbers, and this is {what}")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    return FILTERS[name](value, digits, language)


def listed(items: list[str]) -> str:
    """Items in a row. Where one holds a comma, as decimals do in Vietnamese, semicolons stand between them."""
    return ("; " if any("," in item for item in items) else ", ").join(items)
