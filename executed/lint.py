"""What a chapter may not contain: numbers typed by hand.

Chapters are read with a Markdown parser, so code, mathematics, links, headings and comments are known for what they
are. A number may stand in a sentence that cites a source, in a name (GPT-2), in a date, or in a sentence that carries
`<!-- constant: why -->` on the number's own line. Every other number is bound to a value or goes.

What it cannot see: numbers in words ("three times", "half"), in formulas and code that are more than a decimal or a
percentage, and in pictures; a wrong number in a sentence that cites; a count that reads like a year ("1950 of them")
or like part of a name ("top-5", "n/2"). It does not look at headings, titles of notes and tabs, and addresses.
"""

import ast
import html
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
from executed.markup import directives

STAND_IN = "\ue000"
"""Stands for directives, code, mathematics, names and dates; it is no digit and no letter of any word."""
EXCUSE = "\ue001"
"""Stands for `<!-- constant: why -->`."""
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
FIGURES = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u218b\u2460-\u249b\u24ea-\u24ff\u2776-\u2793"
"""Superscripts, fractions, Roman and circled numbers: numbers that are no digits to Python."""
COUNTED = (
    "steps|epochs|tokens|words|sequences|sentences|reviews|samples|examples|inputs|batches|seeds|runs|times|seconds|ms"
    "|heads|layers|blocks|dimensions|parameters|weights|places|positions|rows|bytes|[kKMG]B|bước|từ|câu|mẫu|lần|lớp"
)
"""What may stand behind a number and makes it no year."""
# What may hold digits: addresses, dates, years, and names that begin with a letter.
ALLOWED = re.compile(
    rf"""
    (?:https?://|www\.)[^\s{STAND_IN}{EXCUSE}]+
    | \b\d{{1,2}}\ (?:{MONTHS})(?:\ \d{{4}})? | \b(?:{MONTHS})(?:\ \d{{1,2}},?)?\ \d{{4}} | \b\d{{4}}-\d{{2}}-\d{{2}}\b
    | \b(?i:ngày\ \d{{1,2}}(?:\ tháng\ \d{{1,2}})?|tháng\ \d{{1,2}})(?:\ năm\ \d{{4}})?
    | (?<![\d.,])(?:19|20)(?!00)(?:[0-3]\d|(?<=19)\d\d)\b(?![.,]\d|\s?%|\s(?:{COUNTED})\b)
    | \b(?![{FIGURES}])[^\W\d_][\w.]*(?:[-\u2010\u2011/]\w+)*
    """,
    re.X,
)
NUMBER = re.compile(rf"[-+\u2212]?\d[\d.,\u202f]*(?:[eE][-+\u2212]?\d+)?(?:\s?%)?|[{FIGURES}]+")
# A formula or code that is a measured number and nothing more: $\approx 0.92$, `98.8%`.
ALONE = re.compile(
    r"""(?:\\(?:approx|sim|leq?|geq?|pm)(?![a-z])|[-+\u2212=<>~\u2248\s])*
    (\d+\{?[.,]\}?\d+ | \d+(?=\s*\\?%))  \s*(?:\\?%)? (?:\s*\\times(?:\s*10\^\{?[-\d]+\}?)?)? \s*""",
    re.X,
)
ABBREVIATIONS = frozenset(
    [
        "e.g.",
        "i.e.",
        "cf.",
        "al.",
        "vs.",
        "ca.",
        "Fig.",
        "Figs.",
        "Eq.",
        "Eqs.",
        "Sec.",
        "Ch.",
        "No.",
        "Vol.",
        "vol.",
        "p.",
        "pp.",
        "tr.",
    ]
)
SENTENCE_END = re.compile(rf"(?<=[.!?\u2026])[\"'\u201d\u2019)\]{STAND_IN}{EXCUSE}]*\s+")
QUOTED = re.compile(r""""((?:\\.|[^"\\\n])*)"|\'((?:\\.|[^'\\\n])*)\'""")
CONSTANT = re.compile(r"<!--\s*constant:\s*\S[^>]*-->")
TITLE = re.compile(r'^[ \t]*(?:!!!|\?\?\?\+?|===[!+]*)[ \t][\w \t-]*"[^"\n]*"', re.M)
ATTRIBUTES = re.compile(r"""\{:?[ \t]*(?:(?:[.#][\w:.-]+|[\w-]+=(?:"[^"\n]*"|'[^'\n]*'|[^\s}]+))[ \t]*)+\}""")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # Four spaces mean the inside of an admonition, tab or list here: there is no indented code.
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("code")
    parser.use(front_matter_plugin).use(footnote_plugin, inline=False)
    return parser.use(dollarmath_plugin, double_inline=True, allow_space=False)


def naked_numbers(source: str, path: str) -> list[Problem]:
    """The numbers in a chapter's prose, alt texts and captions that nothing stands behind."""
    prepared, texts = _without_directives(source.replace(EXCUSE, STAND_IN), path)
    found = [(line, number) for text, line in [*_prose(prepared), *texts] for line, number in _numbers(text, line)]
    return [
        Problem(
            path,
            line,
            f"the number {number} is typed into prose: bind it ({{{{ chapter.example.value | num(2) }}}}),"
            " cite its source in the same sentence ([@key]), or say in that sentence, on its line, why it is constant"
            " (<!-- constant: why -->)",
        )
        for line, number in sorted(found)
    ]


def _without_directives(source: str, path: str) -> tuple[str, list[tuple[str, int]]]:
    """The chapter with a stand-in for each directive, and the texts (alt, caption) that directives hold."""
    pieces, texts, done = [], [], 0
    for directive in directives(source, path, []):
        inside = source[directive.start : directive.end]
        pieces += [source[done : directive.start], STAND_IN + "\n" * inside.count("\n")]
        done = directive.end
        if isinstance(directive.expression, ast.Call) and not CONSTANT.search(inside, inside.rindex("}}")):
            for text in list(QUOTED.finditer(inside))[1:]:  # the first is a name
                line = directive.line + inside.count("\n", 0, text.start())
                plain, _ = _without_directives(text[1] or text[2] or "", path)
                texts.append((CONSTANT.sub(EXCUSE, plain), line))
    return "".join([*pieces, source[done:]]), texts


def _prose(source: str) -> Iterator[tuple[str, int]]:
    """Each run of prose with its line: paragraphs, list items, table cells and the text in raw HTML."""
    within = ""
    lines = source.split("\n")
    for token in _parser().parse(source):
        line = (token.map or [0])[0] + 1
        if token.type == "inline" and within != "heading_open":
            row = EXCUSE if within in ("td_open", "th_open") and CONSTANT.search(lines[line - 1]) else ""
            yield _shown(_inline(token)) + row, line
        elif token.type == "html_block":
            yield _shown(token.content), line
        elif token.type == "math_block":
            yield _alone(token.content), line
        within = token.type


def _inline(token: Token) -> str:
    """A run of prose as HTML, with stand-ins for code and mathematics."""
    pieces = []
    address = False
    for child in token.children or []:
        if child.type in ("link_open", "link_close"):
            address = child.type == "link_open" and child.markup == "autolink"
        if child.type == "text":
            pieces.append(STAND_IN if address else html.escape(child.content))
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif child.type == "html_inline":
            pieces.append(child.content)
        elif child.type == "image":
            pieces.append(html.escape(f" {child.content}. {child.attrs.get('title', '')} "))
        elif child.type == "link_open" and "title" in child.attrs:
            pieces.append(html.escape(f" {child.attrs['title']}. "))
        elif child.type not in ("em_open", "em_close", "strong_open", "strong_close", "s_open", "s_close"):
            pieces.append(_alone(child.content) + "\n" * child.content.count("\n"))
    return "".join(pieces)


def _alone(content: str) -> str:
    """What stands for code or a formula: the number, if there is nothing else in it."""
    found = ALONE.fullmatch(content)
    return re.sub(r"[{}\\\s]", "", found[1]) if found else STAND_IN


class _Shown(HTMLParser):
    """Collects what HTML shows, line by line."""

    UNSEEN = ("code", "pre", "kbd", "samp", "script", "style", "svg", "math")

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.unseen: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        shown = [f" {text}. " for name, text in attributes if name in ("alt", "title", "aria-label") and text]
        self.pieces.append(" ".join("".join(shown).split("\n")) + "\n" * (self.get_starttag_text() or "").count("\n"))
        if tag in self.UNSEEN:
            self.unseen.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.unseen:
            del self.unseen[self.unseen.index(tag) :]
            self.pieces.append(STAND_IN)

    def handle_data(self, data: str) -> None:
        self.pieces.append(data if not self.unseen else "\n" * data.count("\n"))
        if self.unseen == ["code"]:
            self.pieces.append(_alone(data))

    def handle_comment(self, data: str) -> None:
        self.pieces.append((EXCUSE if CONSTANT.fullmatch(f"<!--{data}-->") else "") + "\n" * data.count("\n"))


def _shown(markup: str) -> str:
    reader = _Shown()
    reader.feed(markup)
    reader.close()
    text = "".join(reader.pieces)
    return ATTRIBUTES.sub(STAND_IN, TITLE.sub(STAND_IN, text))


def _numbers(text: str, line: int) -> Iterator[tuple[int, str]]:
    text = re.sub(rf"[ \t]+{EXCUSE}", EXCUSE, text)  # it belongs to the sentence before it
    for sentence in _sentences(text):
        if not CITATION.search(sentence):
            bare = ALLOWED.sub(lambda found: "\n" * found[0].count("\n") or STAND_IN, sentence)
            for number, part in enumerate(bare.split("\n"), line):
                found = NUMBER.findall(part) if EXCUSE not in part else ()
                yield from ((number, one.strip(" .,")) for one in found)
        line += sentence.count("\n")


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for found in SENTENCE_END.finditer(text):
        *_, word = text[max(start, found.start() - 8) : found.start()].split()
        if word.lstrip("(") not in ABBREVIATIONS:
            yield text[start : found.end()]
            start = found.end()
    yield text[start:]
