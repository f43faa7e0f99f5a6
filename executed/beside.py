"""What the site publishes beside its chapters: notebooks, plain Markdown, social cards, the reader of search words.

The hook's other half: it knows MkDocs as well, so that what makes these things need not.
"""

import itertools
import posixpath
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from executed import cards, head, notebook_page, plain
from executed.book import BookError, find_root, language_of
from executed.staged import Staged

SEARCH_LANGUAGES = "assets/javascripts/lunr/"


class Beside:
    """What stands beside the chapters of one staged book."""

    def __init__(self, staged: Staged, serving: bool) -> None:
        self.staged, self.serving = staged, serving
        self.plain: dict[str, str] = {}
        """Chapters by name: where in the site each stands as plain Markdown."""
        self.cards: dict[str, str] = {}
        """Pages by name: the picture that stands for each."""

    def add_notebooks(self, files: Files, config: MkDocsConfig) -> None:
        """A page for each notebook; and with a repository on GitHub, what Binder needs to run them."""
        notebooks = {path: text for path, text in self.staged.files.items() if path.endswith(".ipynb")}
        for path, text in notebooks.items():
            text = notebook_page.published(text, config.site_url or "", config.use_directory_urls)
            files.append(File.generated(config, path, content=text))
            page = notebook_page.page_of(path)
            files.append(File.generated(config, page, content="", inclusion=InclusionLevel.NOT_IN_NAV))
        if notebooks and config.repo_url and config.extra.get("notebooks_branch"):
            for path, text in notebook_page.for_binder(notebooks.values()).items():
                files.append(File.generated(config, path, content=text))

    def show_notebook(self, page: Page, config: MkDocsConfig) -> bool:
        """Whether a page is one that shows a notebook; then it is that notebook, as mkdocs-jupyter makes it."""
        path = notebook_page.path_of(page.file.src_uri)
        if path not in self.staged.files or page.file.src_uri != notebook_page.page_of(path):
            return False
        shown = notebook_page.shown(_root(config), path, self.staged.files[path], convert=not self.serving)
        page.meta = {"title": shown.title, "description": shown.description, "search": {"exclude": True}}
        made = {"content": shown.html, "toc": get_toc(shown.headings())}  # type: ignore[arg-type]
        page.render = lambda config, files: vars(page).update(made)  # type: ignore[method-assign]
        return True

    def with_notebook(self, content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
        """A page with the line that leads to its notebook, if it has one; links in a notebook's page lead to pages."""
        path = notebook_page.path_of(page.file.src_uri)
        if path not in self.staged.files:
            return content

        def address(source: str) -> str:
            target = files.get_file_from_path(source)
            return target.url_relative_to(page.file) if target else source

        of_notebook = notebook_page.page_of(path)
        if page.file.src_uri == of_notebook:
            content = notebook_page.with_links_to_pages(content, path, address)
        to_page = "" if page.file.src_uri == of_notebook else address(of_notebook)
        branch = str(config.extra.get("notebooks_branch", ""))
        line = notebook_page.links(path, to_page, address(path), config.repo_url or "", branch)
        return notebook_page.below_title(content, line)

    def add_plain(self, files: Files, nav: Navigation, config: MkDocsConfig) -> None:
        """Each chapter as plain Markdown beside its page, and the lists of pages for programs that read the site."""
        pages = {file.src_uri: file for file in files.documentation_pages() if file.src_uri in self.staged.plain}
        beside = self.plain = {source: f"{posixpath.splitext(file.dest_uri)[0]}.md" for source, file in pages.items()}
        for source, to in beside.items():
            # MkDocs would make a page of what ends in .md: it gets that name only in the site.
            file = File.generated(
                config, f"{to}.txt", content=plain.placed(self.staged.plain[source], source, to, beside)
            )
            file.dest_uri = to
            files.append(file)
        address = _address_of_site(config)
        sections = [
            (title, [self._entry(page, address) for page in inside if page.file.src_uri in beside])
            for title, inside in _sections(nav)
        ]
        order = [page.file.src_uri for _, inside in _sections(nav) for page in inside]
        everything = (
            plain.placed(self.staged.plain[one], one, "llms-full.txt", beside) for one in order if one in beside
        )
        summary = " ".join((config.site_description or "").split())
        for path, text in {
            "llms.txt": plain.llms(config.site_name, summary, f"{address}llms-full.txt", sections),
            "llms-full.txt": "\n".join(everything),
            "robots.txt": head.robots(address),
        }.items():
            files.append(File.generated(config, path, content=text))

    def _entry(self, page: Page, address: str) -> plain.Entry:
        title, description = _words_of(page)
        return plain.Entry(title, description, f"{address}{quote(self.plain[page.file.src_uri])}")

    def add_cards(self, files: Files, config: MkDocsConfig) -> None:
        """A picture for each page where its address is shared: only a site that has an address needs them."""
        if not config.site_url or self.serving:
            return
        logo = Path(config.docs_dir) / str(config.theme.get("logo"))
        mark = logo.read_text("utf-8") if logo.suffix == ".svg" and logo.is_file() else ""
        words = {file.src_uri: _words_of(file.page) for file in files.documentation_pages() if file.page}
        try:
            made = cards.cards(_root(config), config.site_name, mark, words.values())
        except BookError as error:
            raise PluginError(str(error)) from None
        for source, one in words.items():
            path = f"assets/cards/{source.removesuffix('.md')}.png"
            files.append(File.generated(config, path, abs_src_path=str(made[one])))
            self.cards[source] = path

    def facts(self, page: Page, config: MkDocsConfig) -> head.Facts:
        """What there is to say of a page in its head."""
        title, description = _words_of(page)
        address, source = _address_of_site(config), page.file.src_uri
        card = self.cards.get(source)
        beside = self.plain.get(source)
        return head.Facts(
            site=config.site_name,
            title=title,
            description=description or " ".join((config.site_description or "").split()),
            language=language_of(source, str(config.theme.get("language", "en"))),
            home=page.is_homepage,
            address=page.canonical_url or "",
            card=f"{address}{card}" if card else "",
            markdown=posixpath.basename(beside) if beside else "",
        )


def use_our_words(files: Files) -> None:
    """Put the book's own reader of words where the search looks for its language; the theme's are not published."""
    if ours := files.get_file_from_path("assets/scripts/search.js"):
        for file in list(files):
            if file.src_uri.startswith(SEARCH_LANGUAGES) and not file.src_uri.endswith("/lunr.stemmer.support.min.js"):
                files.remove(file)
        ours.dest_uri = f"{SEARCH_LANGUAGES}min/lunr.vi.min.js"


def _address_of_site(config: MkDocsConfig) -> str:
    return f"{config.site_url.rstrip('/')}/" if config.site_url else ""


def _sections(nav: Navigation) -> Iterator[tuple[str, list[Page]]]:
    """The navigation as a list of lists. Pages outside its sections open it; what stands behind them is optional."""
    for number, (in_section, items) in enumerate(itertools.groupby(nav.items, lambda item: bool(item.children))):
        if in_section:
            yield from ((str(item.title), list(_pages(item))) for item in items)
        else:
            yield ("Optional" if number else "Chapters"), [page for item in items for page in _pages(item)]


def _pages(item: Any) -> Iterator[Page]:
    for child in item.children or ():
        yield from _pages(child)
    if isinstance(item, Page):
        yield item


def _words_of(page: Page) -> tuple[str, str]:
    """A page's title and its description."""
    return unescape(str(page.meta.get("title", page.title or ""))), unescape(str(page.meta.get("description", "")))


def _root(config: MkDocsConfig) -> Path:
    return find_root(Path(config.config_file_path or ".").parent)
