"""The glossary: docs/glossary.toml, the page that lists it, and a link from the first use of a term in each chapter.

A term is linked in prose only: not in headings, links, code, mathematics, footnotes, HTML and captions, and inside a
note or another box only where the text around the boxes has no use of it. Each entry says which chapter introduces its
term; one whose chapter has no such word is an error, and so is a word that two entries claim.
"""

import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executed.book import BookError, Problem, nearest
from executed.markup import Directive, Stretch, escaped, parts

if TYPE_CHECKING:
    from executed.render import Page

FILE = "docs/glossary.toml"
PAGE = "docs/glossary.md"
NO_CHAPTERS = ("index.md", "glossary.md")
"""Pages without links to the glossary: where the book begins, and the glossary."""
HOLE = "\0"
# Where a term is no prose, or a link in it would break what it stands in.
SKIPPED = re.compile(
    r"""
    ^[ \t>]* (?: \#{1,6}\ | !!! | \?\?\? | === | \[\^[\w-]+\]: ) .* $
    | ^[ \t]* <[A-Za-z/] [^\n]* (?: \n (?![ \t]*(?:\n|\Z)) [^\n]* )*
    | \$\$ [^$]* \$\$ | \$ [^$\n]+ \$
    | !?\[ (?: [^\[\]] | \[ [^\[\]]* \] )* \] (?: \( [^()\n]* (?: \( [^()\n]* \) [^()\n]* )* \) | \[ [^\[\]]* \] )?
    | < [^<>\n]* > | \{:? [^{}\n]* \} | https?://\S+
    """,
    re.M | re.X,
)


@dataclass(frozen=True)
class Term:
    """One entry of the glossary."""

    term: str
    vietnamese: str
    definition: str
    chapter: str
    """Which chapter introduces it, `multi-head`."""
    forms: tuple[str, ...] = ()
    """Its plural and its other names."""
    other_sense: tuple[str, ...] = ()
    """Chapters in which the word means something else, so that it is no link there."""
    line: int = 0

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.term.lower()).strip("-")


@lru_cache(maxsize=4)
def _read(text: str) -> tuple[Term, ...]:
    from executed.lint import naked_numbers  # here: a build in which nothing has changed reads no prose

    known = [item.name for item in fields(Term) if item.name != "line"]
    needed = known[:4]
    try:
        entries = tomllib.loads(text).get("term", [])
    except tomllib.TOMLDecodeError as error:
        raise BookError(Problem(FILE, 1, f"this is not TOML: {error}")) from None
    starts = [number for number, line in enumerate(text.split("\n"), 1) if line.strip() == "[[term]]"]
    terms, problems = [], list[Problem]()
    for line, entry in zip(starts, entries, strict=True):
        wrong = [f"a term has no {key}{nearest(key, known)}" for key in entry if key not in known]
        wrong += [f"this term has no {key}" for key in needed if not entry.get(key)]
        problems += [Problem(FILE, line, words) for words in wrong]
        if not wrong:
            values: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
            }
            terms.append(Term(**values, line=line))
            problems += [replace(one, line=line) for one in naked_numbers(entry["definition"], FILE)]
    problems += _claimed_twice(terms)
    if problems:
        raise BookError(*problems)
    return tuple(terms)


def _claimed_twice(terms: Iterable[Term]) -> Iterator[Problem]:
    claimed: dict[str, Term] = {}
    for term in terms:
        words = [word.lower() for word in (term.term, *term.forms)]
        for word in words:
            first = claimed.setdefault(word, term)
            if first is not term or words.count(word) > 1:
                yield Problem(FILE, term.line, f"{word} is in the glossary already (line {first.line})")


class Glossary:
    """The terms of the book at `root`; none where it has no docs/glossary.toml. Raises BookError for a broken one."""

    def __init__(self, root: Path) -> None:
        file = root / FILE
        self.terms = _read(file.read_text("utf-8")) if file.exists() else ()
        self.by_word = {word.lower(): term for term in self.terms for word in (term.term, *term.forms)}
        words = sorted(self.by_word, key=lambda word: -len(word))
        pattern = "|".join(re.escape(word).replace(r"\ ", r"(?:\ |\n[ \t]*)") for word in words)
        self.pattern = re.compile(rf"\b(?:{pattern})\b")

    def linked(self, found: Sequence[Stretch | Directive], path: str, language: str) -> Sequence[Stretch | Directive]:
        """The parts of a chapter with the first use of each term as a link to the glossary."""
        page = path.removeprefix("docs/")
        if not self.terms or posixpath.basename(page) in NO_CHAPTERS:
            return found
        name = page.removesuffix(".md")
        done = list(found)
        address = posixpath.relpath(PAGE, posixpath.dirname(path))
        uses = [use for use in self._first_uses(found) if name not in use[0].other_sense]
        for term, number, start, end in sorted(uses, key=lambda use: use[1:], reverse=True):
            part = done[number]
            assert isinstance(part, Stretch)
            text = part.text
            link = f'[{text[start:end]}]({address}#{term.id} "{_tooltip(term, language)}"){{: .glossary }}'
            done[number] = replace(part, text=text[:start] + link + text[end:])
        return done

    def _first_uses(self, found: Sequence[Stretch | Directive]) -> list[tuple[Term, int, int, int]]:
        """The first use of each term: in which part of the chapter, from where to where."""
        texts = [part.text if isinstance(part, Stretch) and part.prose else HOLE for part in found]
        starts, place = list[int](), 0
        for text in texts:
            starts.append(place)
            place += len(text)
        whole = SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", HOLE, skipped[0]), "".join(texts))
        lower = whole.lower()
        lower = lower if len(lower) == len(whole) else whole  # a capital of few languages becomes two letters
        uses: dict[Term, tuple[bool, re.Match[str]]] = {}
        for use in self.pattern.finditer(lower):
            if "-" in (lower[use.start() - 1 : use.start()], lower[use.end() : use.end() + 1]):
                continue  # a part of another word, as the head of multi-head
            term = self.by_word[" ".join(use[0].split())]
            boxed = whole[whole.rfind("\n", 0, use.start()) + 1 :].startswith("    ")
            if term not in uses or uses[term][0] > boxed:
                uses[term] = boxed, use
        done, number = [], 0
        for term, (_, use) in sorted(uses.items(), key=lambda item: item[1][1].start()):
            while number + 1 < len(starts) and starts[number + 1] <= use.start():
                number += 1
            done.append((term, number, use.start() - starts[number], use.end() - starts[number]))
        return done

    def problems(self, root: Path, pages: Iterable["Page"]) -> Iterator[Problem]:
        """Terms whose chapter does not exist or does not have the word, and a glossary that no page shows."""
        sources = {page.path.removeprefix("docs/").removesuffix(".md"): page for page in pages}
        if self.terms and not (root / PAGE).exists():
            yield Problem(FILE, 1, f"no page shows the glossary: write {PAGE} with {{{{ glossary() }}}}")
        mentioned: dict[str, set[Term]] = {}
        for term in self.terms:
            for chapter in (term.chapter, *term.other_sense):
                if chapter not in sources:
                    yield Problem(FILE, term.line, f"there is no chapter {chapter}{nearest(chapter, sources)}")
            if term.chapter in sources:
                page = sources[term.chapter]
                if term.chapter not in mentioned:
                    mentioned[term.chapter] = {use[0] for use in self._first_uses(parts(page.source, page.path)[0])}
                if term not in mentioned[term.chapter] or term.chapter in term.other_sense:
                    words = f"{page.path} does not have the word {term.term} in its prose: name another chapter"
                    yield Problem(FILE, term.line, f"{words}, add the form it has, or delete this entry")

    def directives(self, pages: Sequence["Page"]) -> dict[str, Any]:
        """`{{ glossary() }}`: all terms by the alphabet, each with its Vietnamese name and its chapter."""
        return {"glossary": lambda language, link: self._page(pages, language)}

    def _page(self, pages: Sequence["Page"], language: str) -> str:
        titles = {}
        for page in pages:
            title = re.search(r"^title: *(.+)$", page.source.partition("\n---\n")[0], re.M)
            titles[page.path.removeprefix("docs/").removesuffix(".md")] = title[1] if title else page.path
        first = {"vi": "chương"}.get(language, "chapter")
        entries = []
        for term in sorted(self.terms, key=lambda term: term.term.lower()):
            chapter = f"{first} [{titles.get(term.chapter, term.chapter)}]({term.chapter}.md)"
            entries += [f"## {escaped(term.term)} {{: #{term.id} .term }}"]
            entries += [f'*{escaped(term.vietnamese, opens=False)}*{{: lang="vi" }} · {chapter}\n{{: .term-names }}']
            entries += [escaped(term.definition)]
        return "\n\n".join(entries)


def _tooltip(term: Term, language: str) -> str:
    """What a link says before it is followed, as the title of a Markdown link."""
    names = (term.vietnamese, term.term) if language == "vi" else (term.term, term.vietnamese)
    return escaped(f"{' · '.join(dict.fromkeys(names))}: {term.definition}", opens=False).replace("'", "&#39;")
