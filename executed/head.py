"""What a page says of itself in its head, for search engines, for whoever shares it and for other programs.

Absolute addresses appear only where the site has one (`site_url`). Nothing here is structured data (JSON-LD): that is
an inline script, which the book's pages do without, and it would say again what is said here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING

from executed.book import Problem

if TYPE_CHECKING:
    from executed.render import Page

SHORTEST, LONGEST = 50, 160
"""Letters in a description: less says nothing, and search engines cut what is longer."""
DESCRIPTION = re.compile(r"^description: *(?:>-?|\|-?)? *(.*(?:\n[ \t]+.*)*)", re.M)
LANGUAGE = re.compile(r'<html lang="[^"]*"')
LOCALES = {"en": "en_GB", "vi": "vi_VN"}


@dataclass(frozen=True)
class Facts:
    """What there is to say of a page."""

    site: str
    title: str
    description: str
    language: str
    home: bool = False
    address: str = ""
    """The page's own absolute address."""
    card: str = ""
    """The absolute address of the picture that stands for it."""
    markdown: str = ""
    """The way to the page as plain Markdown."""

    @property
    def name(self) -> str:
        """The title, or the site's name where that is the same page."""
        return self.title or self.site


def descriptions(pages: Iterable["Page"]) -> list[Problem]:
    """Pages without a description, where others have one, and descriptions that are too short or too long."""
    found = {page.path: DESCRIPTION.search(_front_matter(page.source)) for page in pages}
    problems = []
    for path, description in found.items():
        if description is None:
            if any(found.values()):
                words = f"this page has no description: say in {SHORTEST} to {LONGEST} letters what it answers"
                problems.append(Problem(path, 1, f"{words} (description: in its front matter)"))
            continue
        length = len(" ".join(description[1].strip("\"' \n").split()))
        if not SHORTEST <= length <= LONGEST:
            line = 2 + _front_matter_line(description)
            words = f"this description has {length} letters: say in {SHORTEST} to {LONGEST} what the page answers"
            problems.append(Problem(path, line, words))
    return problems


def _front_matter(source: str) -> str:
    return source[4:].partition("\n---")[0] if source.startswith("---\n") else ""


def _front_matter_line(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start())


def completed(html: str, facts: Facts) -> str:
    """A finished page with all that its head has to say."""
    if says := LANGUAGE.search(html):
        html = html.replace(says[0], f'<html lang="{escape(facts.language)}"', 1)
    return html.replace("</head>", f"{tags(facts)}</head>", 1)


def tags(facts: Facts) -> str:
    """The lines for one page: Open Graph, Twitter's card, and the page in other forms."""
    wide = "summary_large_image" if facts.card else "summary"
    says = {
        "og:type": "website" if facts.home else "article",
        "og:site_name": facts.site,
        "og:title": facts.name,
        "og:description": facts.description,
        "og:locale": LOCALES.get(facts.language, facts.language),
        "og:url": facts.address,
        "og:image": facts.card,
        "og:image:type": facts.card and "image/png",
        "og:image:width": facts.card and "1200",
        "og:image:height": facts.card and "630",
        "og:image:alt": facts.card and f"{facts.name}. {facts.description}".strip(),
    }
    lines = [f'<meta property="{name}" content="{_attribute(value)}">' for name, value in says.items() if value]
    lines.append(f'<meta name="twitter:card" content="{wide}">')
    if facts.markdown:
        # The space: for each [rel=alternate] the theme would look for a sitemap of the site in another language.
        lines.append(f'<link rel="alternate " type="text/markdown" href="{_attribute(facts.markdown)}">')
    return "".join(f"  {line}\n    " for line in lines)


def _attribute(text: str) -> str:
    """A text that may have been escaped already, as the value of an attribute."""
    return escape(unescape(text))


def robots(address: str) -> str:
    """robots.txt: everything may be read; and where the list of pages is, if that has an address."""
    return "User-agent: *\nAllow: /\n" + (f"\nSitemap: {address}sitemap.xml\n" if address else "")
