"""What one run of one example left: text as a reader sees it, figures as SVG, values that prose can quote."""

import dataclasses
import io
import math
import re
import sys
import unicodedata
from typing import Any

# The style sheet draws text and axes in this colour; in the SVG it becomes the colour of the page's own text.
MARKER = "#0a0b0c"
MOST_NUMBERS = 10_000
TAG = re.compile(r"<\w[^>]*>")  # labels may hold any text: only what stands in tags is markup
TAB = 8
LONGEST_INTEGER = 4000
"""Digits; Python itself reads and writes few more."""
TOO_LARGE = 10**LONGEST_INTEGER
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
ERASE = re.compile(r"\x1b\[([012]?)K")
ERASED = {"": "\ufdd0", "0": "\ufdd0", "1": "\ufdd1", "2": "\ufdd2"}
"""Stand for "erase to the end, to the start, all of the line": characters that no text may hold."""


def readable(raw: bytes) -> str:
    """Captured bytes as the text a terminal would show: no escape codes; tabs, returns and backspaces carried out.

    Whatever is left of control characters becomes visible, so nothing printed can steer a terminal or a page.
    """
    text = re.sub("[\ufdd0-\ufdd2]", "\ufffd", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    text = ESCAPE.sub("", ERASE.sub(lambda found: ERASED[found[1]], text))
    return "\n".join(map(_overwritten, text.split("\n"))).strip("\n")


def _overwritten(line: str) -> str:
    if line.isprintable():
        return line.rstrip()
    shown: list[str] = []
    column = blank = 0  # all before `blank` is blank
    for character in line:
        if character == "\r":
            column = 0
        elif character == "\b":
            column = max(column - 1, 0)
        elif character == "\t":
            column += TAB - column % TAB
        elif character == ERASED["0"]:
            del shown[column:]
        elif character == ERASED["1"]:
            end = max(blank, min(column + 1, len(shown)))
            shown[blank:end] = " " * (end - blank)
            blank = end
        elif character == ERASED["2"]:
            shown.clear()
        elif character != "\ufeff":  # a byte order mark shows nothing
            shown += " " * (column - len(shown))
            shown[column : column + 1] = [character]
            blank = min(blank, column)
            column += 1
    return visible("".join(shown)).rstrip()


def visible(text: str) -> str:
    """Text with its control characters made visible, apart from tabs and line ends."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    # Joiners are format characters that scripts and emoji need. No text may hold the last two of each plane.
    steers = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(character) & 0xFFFE == 0xFFFE
    if character in "\t\n\u200c\u200d" or not steers:
        return character
    return chr(0x2400 + ord(character)) if ord(character) < 32 else "\ufffd"


def unquotable(reason: str) -> dict[str, str]:
    """Stands in the stored values for something that prose cannot quote, and says why."""
    return {"$unquotable": reason}


def quotable(value: Any) -> Any:
    """A returned value as plain numbers, text, lists and dicts; what cannot be becomes a note that says why.

    Tensors and NumPy arrays become nested lists, dataclasses and named tuples become dicts of their fields.
    NaN and infinity stay what they are.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < TOO_LARGE else unquotable("an integer of thousands of digits")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: quotable(getattr(value, item.name, None)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {_text(str(key)): quotable(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: quotable(item) for key, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        if len(value) > MOST_NUMBERS:
            return unquotable(f"a {type(value).__name__} of {len(value)} items; prose can quote up to {MOST_NUMBERS}")
        return [quotable(item) for item in value]
    if callable(getattr(value, "tolist", None)) and hasattr(value, "shape"):
        return _array(value)
    return unquotable(
        f"a {type(value).__name__}, which prose cannot quote; return a number, text, list or small tensor"
    )


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()  # a lone surrogate cannot be stored


def _array(value: Any) -> Any:
    size = math.prod(value.shape)
    if size > MOST_NUMBERS:
        return unquotable(f"a tensor of shape {tuple(value.shape)}; prose can quote up to {MOST_NUMBERS} numbers")
    try:
        return quotable(value.tolist())
    except Exception as error:
        return unquotable(f"a {type(value).__name__} that has no plain list: {error}")


def open_figures() -> list[str]:
    """Every pyplot figure that is open, as SVG, in the order they were created; then they are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    drawn = []
    for number in plt.get_fignums():
        stream = io.StringIO()
        plt.figure(number).savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        drawn.append(page_svg(stream.getvalue(), f"figure{number}"))
    plt.close("all")
    return drawn


def page_svg(svg: str, prefix: str) -> str:
    """An SVG of matplotlib's, made to be part of a page: it takes the page's colour and font, its ids are its own."""
    svg = re.sub(r"[^\n -~]+", lambda found: visible(found[0]), svg[svg.index("<svg") :])
    # The style element would count for the whole page, comments repeat the labels.
    styles = re.findall(r"<style[^>]*>\*\{(.*?)\}</style>", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r"<defs>\s*</defs>|(?m:^\s*\n)", "", svg)
    svg = TAG.sub(lambda tag: re.sub(r' style="([^"]*)"', _page_style, tag[0].replace(MARKER, "currentColor")), svg)
    return own_ids(svg, prefix).replace("<svg", f'<svg style="{"; ".join(styles)}"', 1).strip()


def own_ids(svg: str, prefix: str) -> str:
    """An SVG whose ids no other figure on a page has."""

    def own(tag: re.Match[str]) -> str:
        return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", tag[0])

    return TAG.sub(own, svg)


def _page_style(found: re.Match[str]) -> str:
    """matplotlib names its own fonts; the page's is inherited instead, at the same size, slant and weight."""
    kept = []
    for declaration in found[1].split("; "):
        name, _, value = declaration.partition(": ")
        if name == "font":  # until matplotlib 3.10: `italic 700 11px 'DejaVu Sans', sans-serif`
            words, size, value = re.split(r"([\d.]+px) ", value, maxsplit=1)
            kept += [("font-weight: " if word.isdigit() else "font-style: ") + word for word in words.split()]
            kept.append(f"font-size: {size}")
            name = "font-family"
        if name != "font-family":
            kept.append(declaration)
        elif "mono" in value.lower():
            kept.append("font-family: monospace")
    return f' style="{"; ".join(kept)}"'
