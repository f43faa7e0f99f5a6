"""A notebook as a page of the site: mkdocs-jupyter turns it into HTML, and of that the page keeps what a chapter has.

mkdocs-jupyter itself would inline a style sheet of half a megabyte and its scripts into each page, and ask another
host for the one that sets formulas. Here the book's own style sheet, the theme's copy button and MathML do all that.
"""

import base64
import json
import platform
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from executed import finish, mathematics
from executed.installed import version
from executed.statements import sha
from executed.store import Store

if TYPE_CHECKING:
    from bs4 import Tag

FOLDER = "notebooks"
MATHEMATICS = re.compile(r"(?P<code>`+).*?(?P=code)|\$\$(?P<block>.+?)\$\$|\$(?=\S)(?P<inline>[^$\n]+?)(?<=\S)\$", re.S)
HEADING = re.compile(r'<h([1-6]) id="([^"]*)">(.*?)<a class="headerlink"', re.S)
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
WORDS = {
    "en": ("Notebook", "read", "download", "open in {}", "The chapter {} as a notebook, with all the code it needs."),
    "vi": ("Notebook", "đọc", "tải về", "mở bằng {}", "Chương {} dưới dạng notebook, với toàn bộ mã cần thiết."),
}
LINK = re.compile(r'href="(?P<to>(?:\.\./)*(?:[\w-]+/)*(?:[\w-]+\.ipynb|index\.html))"')
SVG = re.compile("data:image/svg\\+xml;base64,(.*)", re.S)
TITLE = re.compile(r'"source": \[\s*"# ((?:[^"\\]|\\[^n])*)')
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
WAITING = "While you write, only the notebook itself is made anew. This page of it comes with the next `mkdocs build`."


def path_of(page: str) -> str:
    """Where the notebook of a page goes, both below docs/: `notebooks/attention.ipynb` for `attention.md`."""
    return f"{FOLDER}/{page.removeprefix(f'{FOLDER}/').removesuffix('.md')}.ipynb"


def page_of(path: str) -> str:
    """The source of the page that shows a notebook, which is no file."""
    return f"{path.removesuffix('.ipynb')}.md"


@dataclass(frozen=True)
class Shown:
    """A notebook as the content of a page."""

    title: str
    description: str
    html: str

    def headings(self) -> list[dict[str, Any]]:
        """What the table of contents is made of."""
        top: list[dict[str, Any]] = []
        open_ones: list[dict[str, Any]] = []
        for level, anchor, inner in HEADING.findall(self.html):
            name = re.sub(r"<[^>]*>", "", inner)
            token = {
                "level": int(level),
                "id": anchor,
                "name": name,
                "html": name,
                "data-toc-label": "",
                "children": [],
            }
            while open_ones and open_ones[-1]["level"] >= token["level"]:
                open_ones.pop()
            (open_ones[-1]["children"] if open_ones else top).append(token)
            open_ones.append(token)
        return top


def shown(root: Path, path: str, notebook: str, convert: bool = True) -> Shown:
    """The notebook of a path below docs/, converted unless that was done before; in a hurry, not `convert`ed at all."""
    heading = TITLE.search(notebook)  # all of it as JSON would take ten times as long
    title = json.loads(f'"{heading[1]}"') if heading else path
    store = Store(root)
    file = store.folder / FOLDER / f"{path.removeprefix(f'{FOLDER}/').removesuffix('.ipynb').replace('/', '.')}.html"
    made_by = [version("mkdocs-jupyter"), version("nbconvert"), version("math-core")]
    made_by += [Path(str(one)).read_text("utf-8") for one in (__file__, finish.__file__, mathematics.__file__)]
    key = sha("\n".join([notebook, *made_by]))
    known, _, html = (store.read_text(file) or "").partition("\n")
    if known != key and convert:
        html = _converted(notebook)
        store.write_text(file, f"{key}\n{html}")
    elif known != key:
        html = html or f"<h1>{escape(title)}</h1>\n<p>{escape(WAITING)}</p>"
    words = _words(path)
    return Shown(f"{title} ({words[0].lower()})", words[4].format(title), html)


def _words(path: str) -> tuple[str, ...]:
    folder = path.removeprefix(f"{FOLDER}/").partition("/")[0]
    return WORDS.get(folder, WORDS["en"])


def published(notebook: str, site: str, directories: bool = True) -> str:
    """A notebook as it is published: links to pages that have none lead to the site, where its address is known.

    Without `directories`, the pages of the site are `attention.html` and not `attention/index.html`.
    """
    if not directories:
        notebook = re.sub(r"(\]\((?:\.\./)+[^)#.]+)/index\.html", r"\1.html", notebook)
    return re.sub(r"\]\((?:\.\./)+(?![^)]*\.ipynb)", f"]({site.rstrip('/')}/", notebook) if site else notebook


def with_links_to_pages(html: str, path: str, address: Callable[[str], str]) -> str:
    """The page of a notebook, with links to the pages of other notebooks. `address` knows where a page is."""

    def link(found: re.Match[str]) -> str:
        to = posixpath.normpath(posixpath.join(posixpath.dirname(path), found["to"]))
        page = page_of(to) if to.endswith(".ipynb") else f"{to.removesuffix('index.html').rstrip('/') or 'index'}.md"
        return f'href="{address(page)}"'

    return LINK.sub(link, html)


def links(path: str, page: str, download: str, repository: str, branch: str) -> str:
    """The line that leads to a notebook: to its page, if that is not the one with the line, and to the file.

    Colab and Binder open only what lies in a public repository on GitHub: they are left out where none is known.
    """
    name, read, load, open_in, _ = _words(path)
    found = [f'<a href="{escape(page)}">{read}</a>'] if page else []
    found.append(f'<a href="{escape(download)}" download>{load}</a>')
    if (github := GITHUB.fullmatch(repository)) and branch:
        where = f"{github[1]}/blob/{branch}/{path}"
        found.append(f'<a href="https://colab.research.google.com/github/{where}">{open_in.format("Colab")}</a>')
        where = f"{github[1]}/{quote(branch, safe='')}?labpath={quote(path, safe='')}"
        found.append(f'<a href="https://mybinder.org/v2/gh/{where}">{open_in.format("Binder")}</a>')
    return f'<p class="notebook-links">{name}: {", ".join(found)}</p>'


def for_binder(notebooks: Iterable[str]) -> dict[str, str]:
    """What Binder reads beside the notebooks, by path: which Python, and which packages at which version."""
    wanted = {one for notebook in notebooks for one in json.loads(notebook)["metadata"]["requirements"]}
    # Without the first line pip takes PyTorch with several gigabytes of CUDA, and Binder has no room for it.
    lines = [f"--extra-index-url {CPU_BUILDS}", *sorted(wanted)]
    python = ".".join(platform.python_version_tuple()[:2])
    return {"binder/requirements.txt": "\n".join(lines) + "\n", "binder/runtime.txt": f"python-{python}\n"}


def below_title(html: str, line: str) -> str:
    """A page with a line below its first heading."""
    before, end, after = html.partition("</h1>")
    return f"{before}{end}\n{line}{after}" if end else f"{line}\n{html}"


def _converted(notebook: str) -> str:
    """What mkdocs-jupyter makes of a notebook, without running it, as a chapter's HTML."""
    from mkdocs_jupyter.nbconvert2 import nb2html  # here: importing it takes longer than a build

    formulas: list[str] = []

    def kept(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        latex = escape(found["block"] or found["inline"])
        marked = rf'<div class="arithmatex">\[{latex}\]</div>' if found["block"] else ""
        formulas.append(marked or rf'<span class="arithmatex">\({latex}\)</span>')
        return f"formula{len(formulas) - 1}formula"

    body = json.loads(notebook)
    for cell in body["cells"]:
        if cell["cell_type"] == "markdown":  # Markdown would take the underscores of a formula for its own
            cell["source"] = MATHEMATICS.sub(kept, "".join(cell["source"]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "notebook.ipynb"
        file.write_text(json.dumps(body), "utf-8")
        html = _as_in_chapters(nb2html(str(file), execute=False, allow_errors=False, no_prompt=True))
    marked = re.compile(r"<p>formula(\d+)formula</p>|formula(\d+)formula")
    return mathematics.typeset(marked.sub(lambda found: formulas[int(found[1] or found[2])], html))


def _as_in_chapters(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdown.extensions.toc import slugify, unique

    notebook = BeautifulSoup(html, "html.parser").find(class_="jp-Notebook")
    assert notebook is not None
    anchors: set[str] = set()
    for heading in notebook.find_all(re.compile("^h[1-6]$")):
        for link in heading.find_all(class_="anchor-link"):
            link.extract()
        heading["id"] = unique(slugify(heading.get_text(), "-"), anchors)
        permalink = f'<a class="headerlink" href="#{heading["id"]}" title="Link to this section">¶</a>'
        heading.append(BeautifulSoup(permalink, "html.parser"))
    blocks = []
    for cell in notebook.find_all(class_="jp-Cell", recursive=False):
        for prose in cell.select(".jp-MarkdownOutput"):
            for code in prose.select(".highlight > pre"):
                assert code.parent
                code.parent.replace_with(BeautifulSoup(_preformatted(code, "language-python"), "html.parser"))
            blocks.append(prose.decode_contents())
        for code in cell.select(".highlight-ipynb pre"):
            block = _preformatted(code, "language-python")
            if "celltag_hide-input" in cell["class"]:
                first, _, _ = code.get_text().partition("\n")
                block = f'<details class="note"><summary>{escape(first.strip("# ."))}</summary>{block}</details>'
            blocks.append(block)
        for output in cell.select(".jp-OutputArea-output"):
            if (image := output.find("img")) and (drawn := SVG.match(str(image["src"]))):
                svg = finish.with_proportions(base64.b64decode(drawn[1]).decode())
                blocks.append(f'<figure class="drawn">{svg}</figure>')  # part of the page, in the page's colours
            elif text := output.find("pre"):
                blocks.append(_preformatted(text, "text output"))
    return "\n".join(block.strip("\n") for block in blocks)


def _preformatted(block: "Tag", classes: str) -> str:
    code = block.decode_contents().removeprefix("<span></span>").strip("\n")
    return f'<div class="{classes} highlight"><pre><span></span><code>{code}\n</code></pre></div>'
