"""Citations: `[@vaswani2017]` in a chapter becomes a link to the source, listed at the chapter's end."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from executed.book import BookError, Problem, nearest
from executed.markup import escaped

if TYPE_CHECKING:
    from pybtex.database import Entry

BIBLIOGRAPHY = "docs/references.bib"
CITATION = re.compile(r"(?<!\\)\[(@[\w:.-]+(?:\s*;\s*@[\w:.-]+)*)\]")
WORDS = {
    "en": {"references": "References", "and": "and", "others": "et al.", "pages": "pages"},
    "vi": {"references": "Tài liệu tham khảo", "and": "và", "others": "và cộng sự", "pages": "tr."},
}


def cited_keys(text: str) -> list[str]:
    """The keys a piece of Markdown cites, in order, each once."""
    found = [key.strip().removeprefix("@") for group in CITATION.findall(text) for key in group.split(";")]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Source:
    """One entry of the bibliography, its markup taken away."""

    people: list[str]
    families: list[str]
    fields: dict[str, str]
    line: int


@lru_cache(maxsize=4)
def _sources(text: str) -> dict[str, Source]:
    from pybtex.database import parse_string
    from pybtex.exceptions import PybtexError

    place = 0
    try:
        entries = dict(parse_string(text, "bibtex").entries)
        found = {}
        for key, entry in entries.items():
            place = max(text.find(f"{{{key},"), 0)
            found[key] = _source(entry, text.count("\n", 0, place) + 1)
            for name in {"title", "year"} - found[key].fields.keys():
                raise PybtexError(f"{key} has no {name}")
        return found
    except PybtexError as error:
        line = getattr(error, "lineno", None) or text.count("\n", 0, place) + 1
        raise BookError(Problem(BIBLIOGRAPHY, line, f"this is no good BibTeX: {error}")) from error


def _source(entry: "Entry", line: int) -> Source:
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [
        (*person.first_names, *person.middle_names, *person.prelast_names, *person.last_names, *person.lineage_names)
        for person in people
    ]
    fields = {name.lower(): _plain(text) for name, text in entry.fields.items()}
    return Source(
        [_plain(" ".join(name)) for name in names],
        [_plain(" ".join((*person.prelast_names, *person.last_names))) for person in people],
        fields,
        line,
    )


def _plain(text: str) -> str:
    """BibTeX's own markup taken away: braces that protect capitals, and escaped characters."""
    from pybtex.richtext import Text

    return str(Text.from_latex(text))


class Bibliography:
    """The entries of docs/references.bib, read when the first citation asks for one."""

    def __init__(self, root: Path) -> None:
        self.file = root / BIBLIOGRAPHY

    def __contains__(self, key: str) -> bool:
        return key in self._all()

    def _all(self) -> dict[str, Source]:
        return _sources(self.file.read_bytes().decode("utf-8", "replace") if self.file.exists() else "")

    def lines(self) -> dict[str, int]:
        """The line of each entry."""
        return {key: source.line for key, source in self._all().items()}

    def nearest(self, key: str) -> str:
        return nearest(key, self._all())

    def label(self, key: str, language: str = "en") -> str:
        """`Vaswani et al., 2017`."""
        source, words = self._all()[key], _words(language)
        names = source.families or [source.fields["title"]]
        who = f" {words['and']} ".join(names) if len(names) < 3 else f"{names[0]} {words['others']}"
        return f"{who}, {source.fields['year']}"

    def reference(self, key: str, language: str = "en") -> str:
        """One line of the list at a chapter's end."""
        source, words = self._all()[key], _words(language)
        fields = {name: escaped(text, opens=False) for name, text in source.fields.items()}
        place = fields.get("booktitle") or fields.get("journal") or fields.get("publisher", "")
        place += f" {fields['volume']}" if "volume" in fields else ""
        place += f"({fields['number']})" if "number" in fields else ""
        pages = f"{words['pages']} {fields['pages'].replace('--', '–')}" if "pages" in fields else ""
        doi = f"https://doi.org/{source.fields['doi']}" if "doi" in fields else ""
        address = re.sub(r"[\s<>()\[\]\\]", lambda found: f"%{ord(found[0]):02X}", source.fields.get("url") or doi)
        title = f"[{fields['title']}]({address})" if address else f"*{fields['title']}*"
        who = [escaped(", ".join(source.people))] if source.people else []
        return f"{'. '.join([*who, title])}. {', '.join(filter(None, [place, pages, fields['year']]))}."

    def link(self, keys: Iterable[str], language: str = "en") -> str:
        """What a citation of some keys becomes: links to the list at the page's end."""
        links = (
            f"[{escaped(self.label(key, language), opens=False)}](#ref-{key})" if key in self else f"@{key}"
            for key in keys
        )
        return f"({'; '.join(links)})"

    def section(self, keys: list[str], language: str) -> str:
        """The list of references that closes a chapter; nothing where nothing is cited."""
        known = [key for key in keys if key in self]
        if not known:
            return ""
        lines = [f"- {self.reference(key, language)}\n{{: #ref-{key} }}" for key in known]
        return f"\n\n## {_words(language)['references']}\n\n" + "\n".join(lines) + "\n"


def _words(language: str) -> dict[str, str]:
    return WORDS.get(language, WORDS["en"])
