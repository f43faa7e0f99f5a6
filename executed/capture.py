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
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def readable(raw: bytes) -> str:
    """Captured bytes as the text a terminal would show: no escape codes, carriage returns and backspaces applied.

    Whatever is left of control characters becomes visible, so nothing printed can steer a terminal or a page.
    """
    text = ESCAPE.sub("", raw.decode("utf-8", "replace").replace("\r\n", "\n"))
    return "\n".join(map(_overwritten, text.split("\n"))).strip("\n")


def _overwritten(line: str) -> str:
    shown: list[str] = []
    column = 0
    for character in line:
        if character == "\r":
            column = 0
        elif character == "\b":
            column = max(column - 1, 0)
        else:
            shown[column : column + 1] = [_visible(character)]
            column += 1
    return "".join(shown).rstrip()


def _visible(character: str) -> str:
    if character == "\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    if character in "\u200c\u200d\ufeff":  # joiners that scripts and emoji need; a byte order mark shows nothing
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
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: quotable(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): quotable(item) for key, item in value.items()}
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
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = svg.replace(MARKER, "currentColor")
    svg = re.sub(r'font: ((?:\w+ )*?)([\d.]+px) [^;"]*', _font, svg)
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + (f"{prefix}-" if m[2] in ids else "") + m[2], svg)
    return svg.strip()


def _font(found: re.Match[str]) -> str:
    """matplotlib names its own font; the page's is inherited instead, at the same size and weight."""
    styles = {"italic": "font-style", "oblique": "font-style", "bold": "font-weight"}
    kept = "".join(f"{styles[word]}: {word}; " for word in found[1].split() if word in styles)
    return f"{kept}font-size: {found[2]}"
