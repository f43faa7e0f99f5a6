"""Citations: `[@vaswani2017]` in a chapter becomes a link to the source, listed at the chapter's end."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from executed.book import BookError, Problem, nearest

if TYPE_CHECKING:
    from pybtex.database import Entry

BIBLIOGRAPHY = "docs/references.bib"
CITATION = re.compile(r"\[(@[\w:.-]+(?:\s*;\s*@[\w:.-]+)*)\]")
HEADINGS = {"en": "References", "vi": "Tài liệu tham khảo"}


def cited_keys(text: str) -> list[str]:
    """The keys a piece of Markdown cites, in order, each once."""
    found = [part.strip().removeprefix("@") for group in CITATION.findall(text) for part in group.split(";")]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4)
def _entries(source: str) -> "dict[str, Entry]":
    from pybtex.database import parse_string
    from pybtex.exceptions import PybtexError

    try:
        return dict(parse_string(source, "bibtex").entries)
    except PybtexError as error:
        line = getattr(error, "lineno", None) or 1
        raise BookError(Problem(BIBLIOGRAPHY, line, f"this is not BibTeX: {error}")) from error


class Bibliography:
    """The entries of docs/references.bib, read when the first citation asks for one."""

    def __init__(self, root: Path) -> None:
        self.file = root / BIBLIOGRAPHY

    def __contains__(self, key: str) -> bool:
        return key in self._all()

    def _all(self) -> "dict[str, Entry]":
        return _entries(self.file.read_text("utf-8") if self.file.exists() else "")

    def nearest(self, key: str) -> str:
        return nearest(key, self._all())

    def label(self, key: str) -> str:
        """`Vaswani et al., 2017`."""
        entry = self._all()[key]
        names = [" ".join(_plain(part) for part in person.last_names) for person in entry.persons["author"]]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return f"{who}, {entry.fields['year']}"

    def reference(self, key: str) -> str:
        """One line of the list at a chapter's end."""
        entry = self._all()[key]
        people = [
            " ".join(
                _plain(p)
                for p in (
                    *person.first_names,
                    *person.middle_names,
                    *person.prelast_names,
                    *person.last_names,
                )
            )
            for person in entry.persons["author"]
        ]
        fields = {name: _plain(text) for name, text in entry.fields.items()}
        where = fields.get("booktitle") or fields.get("journal") or fields.get("publisher", "")
        volume = f" {fields['volume']}" if "volume" in fields else ""
        number = f"({fields['number']})" if "number" in fields else ""
        pages = f", pages {fields['pages'].replace('--', '-')}" if "pages" in fields else ""
        address = fields.get("url") or (f"https://doi.org/{fields['doi']}" if "doi" in fields else "")
        title = f"[{fields['title']}]({address})" if address else f"*{fields['title']}*"
        return f"{', '.join(people)}. {title}. {where}{volume}{number}{pages}, {fields['year']}."

    def link(self, text: str) -> str:
        """Replace every citation in a line of prose by a link to the list at the page's end."""

        def linked(found: re.Match[str]) -> str:
            keys = [part.strip().removeprefix("@") for part in found[1].split(";")]
            return (
                "(" + "; ".join(f"[{self.label(key)}](#ref-{key})" if key in self else f"@{key}" for key in keys) + ")"
            )

        return CITATION.sub(linked, text)

    def section(self, keys: list[str], language: str) -> str:
        """The list of references that closes a chapter; nothing where nothing is cited."""
        known = [key for key in keys if key in self]
        if not known:
            return ""
        lines = [f"- {self.reference(key)}\n{{: #ref-{key} }}" for key in known]
        return f"\n\n## {HEADINGS.get(language, HEADINGS['en'])}\n\n" + "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """BibTeX's own markup taken away: braces that protect capitals, and escaped characters."""
    from pybtex.richtext import Text

    return str(Text.from_latex(text))
