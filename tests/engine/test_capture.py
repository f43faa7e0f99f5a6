"""executed/capture.py: text as a terminal shows it, values as prose can quote them, figures as part of a page."""

import collections
import dataclasses
import enum
import json
import math
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import matplotlib.style
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executed.capture import (
    LONGEST_INTEGER,
    MARKER,
    MOST_NUMBERS,
    open_figures,
    own_ids,
    page_svg,
    quotable,
    readable,
    visible,
)

matplotlib.use("agg")
import matplotlib.pyplot as plt

STYLE = Path(__file__).parents[2] / "executed/book.mplstyle"
XLINK = "{http://www.w3.org/1999/xlink}href"


# ---------- Text ----------


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("a\nb\n", "a\nb"),
        ("\n\n a \n\n b\n\n", " a\n\n b"),
        ("a\r\nb\r\n", "a\nb"),
        ("10%\r100%", "100%"),
        ("long line\rshort", "shortline"),
        ("long line\r\x1b[Kdone", "done"),
        ("long line\x1b[2K\rdone", "done"),
        ("abcdef\b\b\b\x1b[1KX", "   Xef"),
        ("abc\b\bX", "aXc"),
        ("\b\bab", "ab"),
        ("a\tb", "a       b"),
        ("1234567\tb\t\tc", "1234567 b               c"),
        ("abcdefgh\r\tX", "abcdefghX"),
        ("\x1b[1;31mred\x1b[0m \x1b[38;5;4mblue\x1b[m", "red blue"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b]0;title\x07", "link"),
        ("\x1b(Bplain\x1b7\x1b8\x1b=\x1bP1;2|x\x1b\\", "plain"),
        ("end \x1b", "end ␛"),
        ("nul\x00bell\x07\x02\x03", "nul␀bell␇␂␃"),
        ("del\x7f nel\x85 csi\x9b31m", "del� nel� csi�31m"),
        ("bidi\u202e\u2066 line\u2028\u2029 soft\u00ad", "bidi�� line�� soft�"),
        ("\ufeffmark", "mark"),
        ("é e\u0301 học máy 你好 👩\u200d🔬", "é e\u0301 học máy 你好 👩\u200d🔬"),
        ("\ufdd0x", "�x"),
        ("trailing   \n\t\nx", "trailing\n\nx"),
    ],
)
def test_text_is_what_a_terminal_would_show(printed: str, shown: str) -> None:
    assert readable(printed.encode()) == shown


def test_bytes_that_are_no_text_are_marked() -> None:
    assert readable(b"a\xff\xfeb \xed\xa0\x80") == "a��b ���"


@settings(max_examples=300)
@given(st.binary() | st.text(st.sampled_from("ab \t\r\b\n\x1b[]K2(;\x07\\\x02\u202e\ufeff")).map(str.encode))
def test_nothing_printed_can_steer_a_terminal_or_a_page(raw: bytes) -> None:
    shown = readable(raw)
    unseen = [character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert set(unseen) <= set("\n\u200c\u200d")
    assert all(line == line.rstrip() for line in shown.split("\n"))
    assert shown.splitlines() == shown.split("\n") or not shown
    assert readable(shown.encode()) == shown


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"])))
def test_plain_lines_stay_as_they_are(line: str) -> None:
    assert readable(line.encode()) == line.rstrip()


def test_visible_text_keeps_its_lines_and_tabs() -> None:
    assert visible("a\tb\nc\x00\x85\ud800") == "a\tb\nc␀��"


# ---------- Values ----------


@dataclasses.dataclass
class Point:
    x: float
    other: Any = None


class Colour(enum.IntEnum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


class Array:
    """What a tensor looks like from outside."""

    def __init__(self, values: Any, shape: tuple[int, ...] = (2,)) -> None:
        self.values, self.shape = values, shape

    def tolist(self) -> Any:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (10**100, 10**100),
        (Colour.RED, 1),
        ("text", "text"),
        ("\ud800", "?"),
        ({"\ud800": 1, 2: "b"}, {"?": 1, "2": "b"}),
        ((1, (2.5,)), [1, [2.5]]),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.array(0.5), 0.5),
        (Point(0.5, np.arange(2)), {"x": 0.5, "other": [0, 1]}),
        (Pair(1, "b"), {"a": 1, "b": "b"}),
        (Array([1, 2]), [1, 2]),
    ],
)
def test_values_become_plain_numbers_texts_lists_and_dicts(value: object, kept: object) -> None:
    plain = quotable(value)
    assert plain == kept
    assert json.loads(json.dumps(plain)) == plain


def test_nan_infinity_and_the_sign_of_zero_are_kept() -> None:
    nan, infinity, zero = json.loads(json.dumps(quotable([math.nan, -math.inf, -0.0])))
    assert math.isnan(nan)
    assert infinity == -math.inf
    assert math.copysign(1, zero) == -1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "a object, which prose cannot quote"),
        (1 + 2j, "a complex"),
        ({1, 2}, "a set"),
        (b"x", "a bytes"),
        (Point, "a type"),
        ([0] * (MOST_NUMBERS + 1), f"a list of {MOST_NUMBERS + 1} items"),
        (np.zeros((101, 100)), "a tensor of shape (101, 100)"),
        (Array(RuntimeError("on the meta device")), "has no plain list: on the meta device"),
        (10**LONGEST_INTEGER, "an integer of thousands of digits"),
    ],
)
def test_what_cannot_be_quoted_says_why_and_costs_only_itself(value: object, why: str) -> None:
    plain = quotable({"good": 1, "bad": value})
    assert plain["good"] == 1
    assert why in plain["bad"]["$unquotable"]
    assert json.loads(json.dumps(plain)) == plain


# ---------- Figures ----------


@pytest.fixture
def book_style() -> Iterator[None]:
    with matplotlib.style.context(STYLE):
        plt.close("all")
        yield
        plt.close("all")


def drawn() -> ElementTree.Element:
    [svg] = open_figures()
    return ElementTree.fromstring(svg)


def texts(figure: ElementTree.Element) -> dict[str, dict[str, str]]:
    """The labels of a figure, each with the style it is drawn in."""
    found = {}
    for element in figure.iter():
        if element.tag.endswith(("}text", "}tspan")) and (element.text or "").strip():
            style = element.get("style", "")
            found[element.text or ""] = dict(part.split(": ", 1) for part in style.split("; ") if part)
    return found


@pytest.mark.usefixtures("book_style")
def test_labels_take_the_pages_colour_and_font_and_keep_size_weight_and_slant() -> None:
    _, axes = plt.subplots()
    axes.set_title("bold", fontweight="bold", fontsize=20)
    axes.set_xlabel("slanted", fontstyle="italic", family=["DejaVu Sans", "sans-serif"])
    axes.set_ylabel("code", family="monospace")
    axes.text(0, 0, "red", color="#ff0000")
    axes.text(0.5, 0.5, r"mathematics $\frac{\mathbf{y}}{\alpha}$")
    axes.plot([0, 1], label="curve")
    axes.legend()
    labels = texts(drawn())
    assert (labels["bold"]["font-weight"], labels["bold"]["font-size"]) == ("700", "20px")
    assert labels["bold"]["fill"] == "currentColor"
    assert labels["slanted"]["font-style"] == "italic"
    assert labels["code"]["font-family"] == "monospace"
    assert labels["red"]["fill"] == "#ff0000"
    assert labels["y"]["font-weight"] == "700"
    assert labels["α"]["fill"] == "currentColor"
    assert {text for text, style in labels.items() if "font-family" in style} == {"code"}


@pytest.mark.usefixtures("book_style")
def test_a_figure_has_no_ground_no_marker_colour_and_no_style_for_the_whole_page() -> None:
    _, (left, right) = plt.subplots(1, 2)
    left.bar(["a", "b"], [1, 2], hatch="/", label="x")
    left.legend()
    left.grid()
    right.boxplot([[1, 2, 3, 9]])
    [svg] = open_figures()
    assert MARKER not in svg
    assert "currentColor" in svg
    assert "<style" not in svg
    assert "<metadata" not in svg
    assert "<!--" not in svg
    assert "#ffffff" not in svg
    assert svg.startswith('<svg style="stroke-linejoin: round; stroke-linecap: butt" ')
    assert "fill: none" in (ElementTree.fromstring(svg).find(".//*[@id='figure1-patch_1']/*").get("style") or "")  # type: ignore[union-attr]


@pytest.mark.usefixtures("book_style")
def test_what_a_label_says_is_never_taken_for_markup() -> None:
    said = ['id="a" <b> & "q"', 'url(#x) href="#y"', MARKER, 'font: 10px x; style="a"', "</text><script>", "<!-- x -->"]
    figure = plt.figure()
    for place, text in enumerate(said):
        figure.text(0.1, place / 10, text)
    assert set(said) <= set(texts(drawn()))


@pytest.mark.usefixtures("book_style")
def test_ids_are_unique_when_two_figures_stand_on_one_page() -> None:
    for _ in range(2):
        _, axes = plt.subplots()
        axes.plot([0, 1], marker="o")
        axes.imshow(np.eye(2))
        axes.fill_between([0, 1], [0, 1], hatch="/")
    both = [ElementTree.fromstring(svg) for svg in open_figures()]
    ids = [element.get("id") for svg in both for element in svg.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for svg in both:
        own = {element.get("id") for element in svg.iter()}
        everything = ElementTree.tostring(svg, "unicode")
        asked = {found[1:] for element in svg.iter() if (found := element.get(XLINK, "")).startswith("#")}
        asked |= set(re.findall(r"url\(#([^)]+)\)", everything))
        assert asked
        assert asked <= own


@pytest.mark.usefixtures("book_style")
def test_figures_come_in_the_order_they_were_made_and_are_closed() -> None:
    for name in ("first", "second"):
        plt.figure().suptitle(name)
    assert ["first" in svg for svg in open_figures()] == [True, False]
    assert open_figures() == []


DRAW = f"""
import matplotlib
matplotlib.use("agg")
import matplotlib.style
matplotlib.style.use({str(STYLE)!r})
import matplotlib.pyplot as plt
from executed.capture import open_figures
_, axes = plt.subplots()
axes.plot([0, 1], [1, 0], marker="o", label="$x^2$")
axes.imshow([[0, 1], [1, 0]])
axes.legend()
print(*open_figures())
"""


def test_a_figure_is_the_same_to_the_byte_on_every_run() -> None:
    root = Path(__file__).parents[2]
    first, second = (
        subprocess.run([sys.executable, "-c", DRAW], cwd=root, capture_output=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert b"<svg" in first


def test_the_font_shorthand_of_older_matplotlib_is_read_too() -> None:
    old = "<?xml?><svg><text style=\"font: italic 700 11px 'DejaVu Sans', sans-serif; fill: #0a0b0c\">x</text></svg>"
    assert 'style="font-style: italic; font-weight: 700; font-size: 11px; fill: currentColor"' in page_svg(old, "a")
    mono = "<svg><text style=\"font: 11px 'DejaVu Sans Mono', monospace\">x</text></svg>"
    assert 'style="font-size: 11px; font-family: monospace"' in page_svg(mono, "a")


def test_without_matplotlib_there_are_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    assert open_figures() == []


def test_ids_are_changed_in_tags_and_nowhere_else() -> None:
    svg = '<svg><g id="a" clip-path="url(#b)"><use xlink:href="#a"/></g><text>id="a" href="#a" url(#b)</text></svg>'
    assert own_ids(svg, "x") == (
        '<svg><g id="x-a" clip-path="url(#x-b)"><use xlink:href="#x-a"/></g><text>id="a" href="#a" url(#b)</text></svg>'
    )


def test_erasing_to_the_start_of_a_long_line_many_times_takes_no_longer_than_writing_it() -> None:
    begun = time.process_time()
    assert readable(b"x" * 40_000 + b"\x1b[1K" * 10_000 + b"\ry") == "y"
    assert time.process_time() - begun < 2


def test_a_figure_holds_no_character_that_xml_may_not_hold() -> None:
    assert ">\u2400\u241b\ufffd\ufffd<" in page_svg("<svg><text>\x00\x1b\u202e\ufffe</text></svg>", "a")
