"""The Markdown of a chapter: where its directives stand, and how foreign text is written so that it can be none of it.

A directive is a Python expression between double braces, parsed as such. In code it is left alone; comments are for
authors and are left out. What counts as code is what pymdownx.superfences and Python-Markdown take for it: a fence
that they would see and this file would not could swallow the fences around what a snippet printed.
"""

import ast
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from executed.book import Problem
from executed.capture import visible

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?![> \t]*(?:```|~~~)).*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
TOKEN = re.compile(
    r"""
    ^(?P<prefix>[>\ \t]*+) (?P<fence>`{3,}+|~{3,}+) (?P<header>[^`\n]*+)$
    | (?P<comment> <!-- )
    | \\[\\`]
    | (?P<ticks>`++)  # code in a line; it ends where its paragraph, list item or table row does
      (?: [^`\n]++ | \n(?![ \t]*(?:$|[-+*>\#|]|\d+[.)]|!!!|\?\?\?|===|```|~~~)) | (?!(?P=ticks)(?!`))`++ )*+
      (?P=ticks) (?!`)
    | (?P<open> \{\{ )
    """,
    re.M | re.X,
)
# A language, classes, an anchor and a title: headers that make a fence a fence beyond doubt.
TITLE = r'title="[^"]*"'
HEADER = re.compile(
    rf"""
    [ \t]* (?:\.?[\w\#.+-]+(?=[ \t]|$))? [ \t]*
    (?: {TITLE} | \{{ (?:[ \t]*(?:[.\#][\w:.-]+|{TITLE}))* [ \t]* \}} )? [ \t]*
    """,
    re.X,
)
# What is between the braces: quoted texts may hold braces of their own.
INSIDE = re.compile(
    r"""(?: "(?:\\.|[^"\\\n])*+" | '(?:\\.|[^'\\\n])*+' | \n(?![ \t]*\n) | (?!\}\}|\{\{)[^"'\n] )*+ (?P<close>\}\})""",
    re.X,
)
AFTER_BLOCK = re.compile(r"[ \t]*(?:<!--(?:(?!-->).)*-->)?[ \t]*$", re.M)
SPACES = re.compile(r"[\t-\r\x1c-\x20\x85\u2028\u2029]+")  # but not those that hold a number and its unit together
LINE_START = re.compile(r"[>\s]*(?:(?:[-+*]|\d+[.)])\s+)*")


@dataclass(frozen=True)
class Stretch:
    """A part of a chapter with no directive in it, as the page will have it."""

    text: str
    line: int
    prose: bool
    """Not code, so that citations in it count."""


@dataclass(frozen=True)
class Directive:
    """`{{ ... }}` in a chapter: what is between the braces, and where."""

    expression: ast.expr
    start: int
    end: int
    line: int
    indent: str | None
    """The white space before it where it stands alone on its line, else None."""
    opens: bool
    """Nothing but marks of lists and quotations stands before it on its line."""


def directives(source: str, path: str, problems: list[Problem]) -> Iterator[Directive]:
    """The directives of a chapter, in order; what cannot be read as one becomes a problem."""
    found, wrong = parts(source, path)
    problems += wrong
    yield from (part for part in found if isinstance(part, Directive))


@lru_cache(maxsize=512)
def parts(source: str, path: str) -> tuple[tuple[Stretch | Directive, ...], tuple[Problem, ...]]:
    """A chapter cut into prose, code and directives, and what is wrong with it."""
    reader = _Reader(source, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about backslashes in the texts of directives
        reader.read()
    return tuple(reader.parts), tuple(reader.problems)


class _Reader:
    def __init__(self, source: str, path: str) -> None:
        self.source, self.path = source, path
        self.parts: list[Stretch | Directive] = []
        self.problems: list[Problem] = []
        self.done = 0
        self.line_ends = [found.start() for found in re.finditer("\n", source)]
        self.never_closed: set[tuple[str, str]] = set()

    def read(self) -> None:
        position = 0
        if front := FRONT_MATTER.match(self.source):
            position = front.end()
            if "{{" in front[0]:
                self._problem(front[0].index("{{"), "a directive cannot stand in the page's front matter")
            self._keep(position, prose=False)
        while token := TOKEN.search(self.source, position):
            position = token.end()
            if token["fence"]:
                position = self._fence(token)
            elif token["comment"]:
                position = self._comment(token.start())
            elif token["ticks"]:
                self._replace(token.start(), position, token[0])
            elif token["open"]:
                position = self._directive(token.start())
        self._keep(len(self.source), prose=True)

    def _fence(self, opening: re.Match[str]) -> int:
        prefix, fence = opening["prefix"], opening["fence"]
        wrong = f"this {fence} opens code that is never closed at its own indentation"
        if not HEADER.fullmatch(opening["header"]):
            wrong = f'behind {fence} may stand a language and title="...", or both in braces'
        elif (prefix, fence) not in self.never_closed:
            closing = re.compile(rf"^{re.escape(prefix)}{fence}[ \t]*$", re.M).search(self.source, opening.end())
            if closing is None:
                self.never_closed.add((prefix, fence))
            else:
                between = self.source[opening.end() + 1 : closing.start()].split("\n")
                if all(line.startswith(prefix) or not line.strip() for line in between):
                    self._replace(opening.start(), closing.end(), self.source[opening.start() : closing.end()])
                    return closing.end()
        # Left as it is, it would swallow whatever follows.
        self._problem(opening.start(), wrong)
        self._replace(opening.start(), opening.end("fence"), prefix + fence.translate({96: "&#96;", 126: "&#126;"}))
        return opening.end("fence")

    def _comment(self, start: int) -> int:
        end = self.source.find("-->", start)
        if end < 0:
            self._problem(start, "this <!-- is never closed")
            self._replace(start, start + 4, "&lt;!--")
            return start + 4
        end += 3
        if self.source[end : end + 1] in ("\n", ""):  # leave no space at the end of a line, and no empty line
            while start > self.done and self.source[start - 1] in " \t":
                start -= 1
            end += start == 0 or self.source[start - 1] == "\n"
            self._replace(start, end, "")
        else:  # what follows must not come to stand at the start of the line, where it could open code
            self._replace(start, end, "" if self._before(start).strip("> \t") else "<!-- -->")
        return end

    def _directive(self, start: int) -> int:
        inside = INSIDE.match(self.source, start + 2)
        expression = _expression(self.source[start + 2 : inside.start("close")]) if inside else None
        if not inside or not expression:
            self._problem(
                start,
                'this {{ is not a directive that can be read; write `{{ code("...") }}`'
                " or `{{ chapter.example.value | num(2) }}` (in mathematics, `{ {`)",
            )
            return start + 2
        before = self._before(start)
        after = AFTER_BLOCK.match(self.source, inside.end())
        alone = after and not before.strip()
        end = after.end() if after and alone else inside.end()
        self._keep(start, prose=True)
        opens = bool(LINE_START.fullmatch(before))
        self.parts.append(Directive(expression, start, end, self._line(start), before if alone else None, opens))
        self.done = end
        return end

    def _keep(self, end: int, prose: bool) -> None:
        if end > self.done:
            self.parts.append(Stretch(self.source[self.done : end], self._line(self.done), prose))
        self.done = end

    def _replace(self, start: int, end: int, text: str) -> None:
        self._keep(start, prose=True)
        self.parts.append(Stretch(text, self._line(start), prose=False))
        self.done = end

    def _problem(self, place: int, message: str) -> None:
        self.problems.append(Problem(self.path, self._line(place), message))

    def _before(self, place: int) -> str:
        return self.source[self.source.rfind("\n", 0, place) + 1 : place]

    def _line(self, place: int) -> int:
        return bisect_left(self.line_ends, place) + 1


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null byte
        return None


def fenced(text: str, header: str) -> str:
    """Text in a code fence that nothing in the text can close."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    text = "\n".join(map(visible, text.split("\n")))  # a line is seen at a glance to be fit to be shown, a text is not
    # Tabs would be expanded anyway, and then by the indentation of the place where the block stands.
    return f"{fence} {{ {header} }}\n{text.expandtabs(4)}\n{fence}"


def escaped(text: str, opens: bool = True) -> str:
    """Text as Markdown shows it, letter by letter: nothing in it can be markup, a link, mathematics or HTML.

    `opens` says that it may begin a line, where a number or a dash could begin a list.
    """
    text = visible(SPACES.sub(" ", text).strip(" "))
    text = re.sub(r'[!"#$&*:<=>@\[\\\]^_`{|}~]|[^\S ]', lambda found: f"&#{ord(found[0])};", text)
    return f"&#{ord(text[0])};{text[1:]}" if opens and re.match(r"[-+\d]", text) else text
