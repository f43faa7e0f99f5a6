"""Every link of a built site leads somewhere: to a page, a file or an anchor that is there.

Looked at is what was written in the end, whoever wrote it: pages, style sheets, the manifest, the search index, plain
texts. Links to other sites are not followed, since a build asks nothing of the network, but they have to be addresses.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

TAG = re.compile(r"<[A-Za-z][^<>]*>")
TELLING = re.compile(r"id|(?:xlink:)?href|src|content|data-widget|data-example|style|clip-path|fill|mask|marker-\w+")
ATTRIBUTE = re.compile(r"""\s([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")
WITHIN = re.compile(r"url\(#([^)]+)\)")
STYLE = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)""")
FENCED = re.compile(r"^[ >]*(```+|~~~+).*?^[ >]*\1[ \t]*$|`[^`\n]+`", re.M | re.S)
WRITTEN = re.compile(r"(?<!\\)\]\(\s*<?((?<=<)[^<>\n]+|[^\s)>]+)")
LISTED = re.compile(r"<loc>([^<]*)</loc>")
LOADED = re.compile(r"""["'`]((?:assets|values|figures|search)/[^"'`$<\s]+\.\w+)["'`]""")
SCRIPTS = "assets/scripts/"
HOME = "index.html"
HOMELESS = "the site has no home page, to which every page leads: write docs/index.md"
HOST = re.compile(r"(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}", re.I)
LOCAL = re.compile(r"localhost|127\.0\.0\.1")
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


class Dead(NamedTuple):
    """What leads nowhere: the file of the site that has it, what to look for in the sources, and what is wrong."""

    file: str
    piece: str
    words: str


class _Page(NamedTuple):
    ids: Counter[str]
    links: list[str]
    within: list[str]


def dead(site: Path, address: str = "", directories: bool = True) -> list[Dead]:
    """All that leads nowhere in the site in a folder, which will be found at an `address` if that is known.

    Without `directories`, as when pages are opened from the disk, a link has to name the page's file.
    """
    return list(dict.fromkeys(_Site(site, address, directories).dead()))


class _Site:
    def __init__(self, folder: Path, address: str, directories: bool) -> None:
        self.folder, self.directories = folder, directories
        self.address = address.rstrip("/") + "/" if address else ""
        self.pages: dict[str, _Page] = {}
        self.sound: set[tuple[str, str, bool]] = set()
        self.files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}

    def text(self, file: str) -> str:
        return (self.folder / file).read_text("utf-8", "replace")

    def page(self, file: str) -> _Page:
        if file not in self.pages:
            self.pages[file] = self._read(file)
        return self.pages[file]

    def _read(self, file: str) -> _Page:
        ids, links, within = Counter[str](), list[str](), list[str]()
        for tag in TAG.findall(self.text(file)):
            for name, value in _attributes(tag):
                if name == "id":
                    ids[value] += 1
                elif name in ("href", "src", "xlink:href"):
                    links.append(value)
                elif name == "data-widget":
                    links.append(self._from_root(f"{SCRIPTS}widgets/{value}.js", file))
                elif name == "data-example":
                    links.append(self._from_root(f"values/{value}.js", file))
                elif name == "content" and self.address and value.startswith(self.address):
                    links.append(value)
                elif "url(#" in value:
                    within += WITHIN.findall(value)
        return _Page(ids, links, within)

    def _from_root(self, path: str, file: str) -> str:
        return posixpath.relpath(path or ".", posixpath.dirname(file) or ".")

    def dead(self) -> Iterator[Dead]:
        if HOME not in self.files:
            yield Dead(HOME, HOMELESS, HOMELESS)
        for file in sorted(self.files):
            kind = posixpath.splitext(file)[1]
            if kind == ".html":
                page = self.page(file)
                yield from (
                    Dead(file, name, f"two elements have the id {name}") for name in page.ids if page.ids[name] > 1
                )
                for name in page.within:
                    if name not in page.ids:
                        yield Dead(file, name, f"a figure refers to #{name}, which is not on its page")
            for link in dict.fromkeys(self._links(file, kind)):
                if words := self._wrong(file, link):
                    yield Dead(file, _piece(link), words if kind == ".html" else f"in {file} of the site, {words}")

    def _links(self, file: str, kind: str) -> Iterator[str]:
        """The links in a file, as seen from it."""
        if kind == ".html":
            yield from self.page(file).links
        elif kind == ".css":
            yield from STYLE.findall(self.text(file))
        elif kind in (".md", ".txt"):
            yield from WRITTEN.findall(FENCED.sub("", self.text(file)))
        elif kind == ".ipynb":
            cells = json.loads(self.text(file))["cells"]
            texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
            yield from (link for text in texts for link in WRITTEN.findall(FENCED.sub("", text)))
        elif file == "sitemap.xml":
            yield from LISTED.findall(self.text(file))
        elif file.startswith(SCRIPTS):
            yield from (self._from_root(path, file) for path in LOADED.findall(self.text(file)))
        elif kind == ".webmanifest":
            told = json.loads(self.text(file))
            yield from (told[name] for name in ("start_url", "scope", "id") if name in told)
            for part in ("icons", "screenshots", "shortcuts"):
                yield from (one.get("src") or one["url"] for one in told.get(part, ()))
        elif file == "search/search_index.json":
            for found in json.loads(self.text(file))["docs"]:
                yield self._from_root("", file) + "/" + found["location"]

    def _wrong(self, file: str, link: str) -> str:
        """What is wrong with a link; nothing if it leads somewhere, or is one that does on another page already."""
        folder, rest = posixpath.dirname(file), link
        while folder and rest.startswith("../"):
            folder, rest = posixpath.dirname(folder), rest[3:]
        link_of_all = folder, rest, file.endswith(".html") and file != "404.html"
        if link_of_all in self.sound:
            return ""
        words = self._looked_up(file, link)
        if not words and rest and rest[0] not in "#?":  # those are about the page they stand on
            self.sound.add(link_of_all)
        return words

    def _looked_up(self, file: str, link: str) -> str:
        try:
            parts = urlsplit(link.strip())
        except ValueError as error:
            return f"{link} is no address: {error}"
        if self.address and link.startswith(self.address):
            return self._missing(file, "/" + link.removeprefix(self.address).partition("#")[0], parts.fragment, link)
        if parts.scheme in ("http", "https"):
            return _misspelt(link, parts.hostname or "", parts.scheme)
        if parts.scheme == "mailto":
            return "" if ADDRESS.fullmatch(parts.path) else f"{link} is no mail address"
        if parts.scheme == "data":
            return ""
        if parts.scheme or parts.netloc:
            return f"{link} leads out of the site, and not by https"
        path = parts.path
        if path.startswith("/") and self.address:
            base = urlsplit(self.address).path
            if not path.startswith(base):
                return f"{link} leads out of the site"
            path = "/" + path.removeprefix(base)
        return self._missing(file, path, parts.fragment, link)

    def _missing(self, file: str, path: str, fragment: str, link: str) -> str:
        wanted = unquote(path)
        if not wanted:
            target = file
        else:
            folder = "" if wanted.startswith("/") else posixpath.dirname(file)
            target = posixpath.normpath(posixpath.join(folder, wanted.lstrip("/") or "."))
            target = "" if target == "." else target
            is_folder = wanted.endswith(("/", "/.", "/..")) or wanted in (".", "..", "/") or not target
            if is_folder:
                target = posixpath.join(target, "index.html")
                if not self.directories and file != "404.html" and posixpath.splitext(file)[1] == ".html":
                    return f"{link} leads to a folder, which opens no page from the disk"
        if target not in self.files:
            if target == HOME:
                return ""  # that is said once
            slash = f"; write {link}/" if posixpath.join(target, "index.html") in self.files else ""
            return f"{link} leads to no page or file of the site{slash}"
        if not fragment or not target.endswith(".html") or fragment.startswith(":~:"):
            return ""
        ids = self.page(target).ids
        return "" if unquote(fragment) in ids else f"{link} leads to no anchor: {target} has no #{unquote(fragment)}"


@lru_cache(maxsize=2**16)  # the navigation is on every page
def _attributes(tag: str) -> list[tuple[str, str]]:
    found = ((name, "".join(values)) for name, *values in ATTRIBUTE.findall(tag) if TELLING.fullmatch(name))
    return [(name, unescape(value)) for name, value in found]


def _misspelt(link: str, host: str, scheme: str) -> str:
    if LOCAL.fullmatch(host):
        return ""
    if not HOST.fullmatch(host) or re.search(r"[\s<>\"\\]", link):
        return f"{link} is no address"
    return f"{link} is not encrypted: write https" if scheme == "http" else ""


def _piece(link: str) -> str:
    """What to look for in the sources: they write a link to a page otherwise than the site does."""
    path, sign, fragment = link.partition("#")
    if re.match(r"[a-z]+:", link):
        return link
    if sign:
        return f"#{unquote(fragment)}"
    return posixpath.basename(path.removesuffix("index.html").rstrip("/")) or path
