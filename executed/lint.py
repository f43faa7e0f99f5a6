"""What a chapter may not contain: numbers typed by hand.

Chapters are read with a Markdown parser, so code, mathematics, links, headings and comments are known for what they
are. A number may stand in a sentence that cites a source, in a name (GPT-2), in a date, or on a line that carries
`<!-- constant: why -->`. Every other number is bound to a value or goes.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from executed.book import Problem
from executed.citations import CITATION
from executed.render import directives

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# What may hold digits: names that begin with a letter, dates, and years.
ALLOWED = re.compile(
    rf"\b\d{{1,2}} (?:{MONTHS})(?: \d{{4}})?|\b(?:{MONTHS})(?: \d{{1,2}},?)? \d{{4}}|\b\d{{4}}-\d{{2}}-\d{{2}}"
    r"|\b(?:19|20)(?:[0-3]\d|[4-9]\d(?<=19\d\d))\b(?![.,]\d)|\b[^\W\d][\w.]*(?:[-\u2010\u2011/]\w+)*"
)
NUMBER = re.compile(
    r"[-+\u2212]?\d[\d.,\u202f]*(?:[eE][-+]?\d+)?\s?%?|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u218b]+"
)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[^\W\da-z]|[\"'(\[*])")
CONSTANT = re.compile(r"<!--\s*constant:\s*\S[^>]*-->")
STAND_IN = "\ue000"
"""Stands for a directive while a chapter is parsed; it is no digit and no letter of any word."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # Four spaces mean the inside of an admonition, tab or list here: there is no indented code.
    parser = MarkdownIt("commonmark").enable("table").enable("strikethrough").disable("code")
    return parser.use(front_matter_plugin).use(footnote_plugin).use(dollarmath_plugin, double_inline=True)


def naked_numbers(source: str, path: str) -> list[Problem]:
    """The numbers in a chapter's prose, alt texts and captions that nothing stands behind."""
    prepared, texts = _without_directives(source, path)
    excused = {number for number, line in enumerate(source.split("\n"), 1) if CONSTANT.search(line)}
    found = [(line, number) for text, line in [*_prose(prepared), *texts] for line, number in _numbers(text, line)]
    return [
        Problem(
            path,
            line,
            f"the number {number} is typed into prose: bind it ({{{{ chapter.example.value | num(2) }}}}),"
            " cite its source in the same sentence ([@key]), or say on its line why it is constant"
            " (<!-- constant: why -->)",
        )
        for line, number in sorted(found)
        if line not in excused
    ]


def _without_directives(source: str, path: str) -> tuple[str, list[tuple[str, int]]]:
    """The chapter with a stand-in for each directive, and the texts (alt, caption) that directives hold."""
    pieces: list[str] = []
    texts, done = [], 0
    for directive in directives(source, path, []):
        inside = source[directive.start : directive.end]
        pieces += [source[done : directive.start], STAND_IN + "\n" * inside.count("\n")]
        done = directive.end
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', inside.partition(",")[2]):
            texts.append((_without_directives(text, path)[0], directive.line))
    return "".join([*pieces, source[done:]]), texts


def _prose(source: str) -> Iterator[tuple[str, int]]:
    """Each run of prose with its line: paragraphs, list items, table cells and the text in raw HTML."""
    heading = False
    for token in _parser().parse(source):
        if token.type in ("heading_open", "heading_close"):
            heading = token.type == "heading_open"
        elif token.type == "inline" and not heading:
            yield _inline(token), (token.map or [0])[0] + 1
        elif token.type == "html_block":
            yield _text_of_html(token.content), (token.map or [0])[0] + 1


def _inline(token: Token) -> str:
    pieces = []
    for child in token.children or []:
        if child.type == "text":
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif child.type == "image":
            pieces.append(f" {child.content} ")
        elif child.type not in ("html_inline", "em_open", "em_close", "strong_open", "strong_close"):
            pieces.append("\ue001" + "\n" * child.content.count("\n"))  # code, mathematics, links' ends
    # `!!! note "Title"` and `=== "Tab"` are headings of their own.
    return re.sub(r'^(?:!!!|\?\?\?\+?|===!?\+?) ?[\w ]*"[^"\n]*"', "", "".join(pieces))


class _Text(HTMLParser):
    """Collects what a block of raw HTML shows."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def _text_of_html(block: str) -> str:
    reader = _Text()
    reader.feed(block)
    return "".join(reader.pieces)


def _numbers(text: str, line: int) -> Iterator[tuple[int, str]]:
    start = 0
    for end in [*(found.end() for found in SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if not CITATION.search(sentence):
            bare = ALLOWED.sub(lambda found: "\n" * found[0].count("\n") or "\ue001", sentence)
            for found in NUMBER.finditer(bare):
                yield (
                    line + text.count("\n", 0, start) + bare.count("\n", 0, found.start()),
                    found[0].strip(" .,"),
                )
        start = end
