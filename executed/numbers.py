"""Numbers as a reader of the page's language writes them: 0.687 in English, 0,687 in Vietnamese."""

import math
from collections.abc import Callable
from typing import Any

from babel.numbers import format_decimal, format_percent

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
NARROW_SPACE = "\u202f"


def num(value: float, digits: int, language: str) -> str:
    """`num(3)`: 0.687, with as many decimals as asked for."""
    rounded = round(value, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    return str(format_decimal(rounded, format=pattern, locale=language))


def pct(value: float, digits: int, language: str) -> str:
    """`pct(1)`: 0.988 as 98.8%."""
    pattern = "#,##0" + ("." + "0" * digits if digits else "") + "%"
    return str(format_percent(round(value, digits + 2) + 0.0, format=pattern, locale=language))


def sci(value: float, digits: int, language: str) -> str:
    """`sci(1)`: 8.94e-08 as 8.9 × 10⁻⁸."""
    if value == 0:
        return num(0, 0, language)
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{num(float(mantissa), digits, language)} × 10{str(int(exponent)).translate(SUPERSCRIPT)}"


def si(value: float, digits: int, language: str) -> str:
    """`si(1)`: 134998272 as 135.0 M, with the prefixes of the SI."""
    power = min(max(3 * math.floor(math.log10(abs(value)) / 3), -12), 15) if value else 0
    if round(abs(value) / 10**power, digits) >= 1000 and power < 15:
        power += 3
    return f"{num(value / 10**power, digits, language)}{NARROW_SPACE}{PREFIXES[power]}".rstrip(NARROW_SPACE)


def as_bytes(value: float, digits: int, language: str) -> str:
    """`bytes`: 268435456 as 268.4 MB; a megabyte is a million bytes."""
    if abs(value) < 1000:
        return f"{num(value, 0, language)}{NARROW_SPACE}B"
    return si(value, digits, language) + "B"


FILTERS: dict[str, Callable[[float, int, str], str]] = {
    "num": num,
    "pct": pct,
    "sci": sci,
    "si": si,
    "bytes": as_bytes,
}
DEFAULT_DIGITS = {"bytes": 1}


def formatted(value: Any, name: str, digits: int, language: str) -> str:
    """A number, or each number of a list, through the named filter. Raises TypeError for anything else."""
    if isinstance(value, list):
        return ", ".join(formatted(item, name, digits, language) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} formats numbers, and this is {value!r}")
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return FILTERS[name](value, digits, language)
