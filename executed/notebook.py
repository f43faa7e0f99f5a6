"""A chapter as a notebook: its prose, its code in the order to run it, and what that left when the book was built.

It stands by itself. Every definition comes before what uses it, also those of other chapters; an example is a cell
with its own output below; the engine is not needed, only the packages that the code imports.
"""

import ast
import json
import posixpath
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from executed.book import Book, Example
from executed.capture import own_ids
from executed.citations import CITATION, cited_keys
from executed.installed import version
from executed.markup import FRONT_MATTER, Directive, parts
from executed.notebook_code import Code, Place
from executed.notebook_page import path_of
from executed.numbers import duration
from executed.render import BLOCKS, Expansion, Page, Renderer
from executed.store import Result

STYLE = Path(__file__).with_name("book.mplstyle")
LONG = 5.0
"""Seconds after which a cell says how long it will take."""
HERE = re.compile("\ufdd3(\\d+)\ufdd4")
"""Where a cell goes while prose is being rewritten: characters that no chapter may hold."""
BOX = re.compile(r'(?:!!!|\?\?\?\+?)[ \t]+[\w -]+?(?:[ \t]+"(?P<title>.*)")?[ \t]*|===[!+]*[ \t]+"(?P<tab>.*)"[ \t]*')
LINK = re.compile(r"\]\((?!\w+:)(?P<file>[^()\s#]*)(?P<anchor>#[^()\s]*)?\)")
WORDS = {
    "en": {
        "intro": "*This notebook is the chapter [{title}]({page}) with all of its code. Below the cells is what they "
        "left when the book was built, in {time} on {machine}, with {versions}. Run them from top to bottom, and the "
        "same comes out. To install what they need: `{packages}`.*",
        "style": "# The look of the book's figures.",
        "threads": "As in the book: more threads add up in another order, and the last digits differ.",
        "from": '# From the chapter "{title}".',
        "need": "The next cell is from the chapter [{title}]({page}); what it makes is needed below.",
        "long": "It ran for {seconds} when the book was built.",
        "long_one": "The next cell ran for {seconds} when the book was built.",
        "absent": "The next cell did not run when the book was built. It needs {lacks}.",
        "download": "The next cell did not run when the book was built. It needs the weights of {model}, a download "
        "from the Hugging Face hub.",
        "below": "# From further below in this chapter.",
        "widget": "*Here [the chapter's page]({page}) has something to try by hand.*",
        "figure": "Figure.",
        "drawn": "Figure that {name} draws",
    },
    "vi": {
        "intro": "*Notebook này là chương [{title}]({page}) cùng toàn bộ mã của chương. Dưới các ô là kết quả khi sách "
        "được tạo, mất {time} trên {machine}, với {versions}. Chạy lần lượt từ trên xuống sẽ ra đúng như vậy. Để cài "
        "những gì cần: `{packages}`.*",
        "style": "# Kiểu hình vẽ của sách.",
        "threads": "Như khi tạo sách: nhiều luồng hơn thì cộng theo thứ tự khác, các chữ số cuối sẽ khác.",
        "from": '# Từ chương "{title}".',
        "need": "Ô tiếp theo thuộc chương [{title}]({page}); phần dưới cần kết quả của nó.",
        "long": "Ô này đã chạy {seconds} khi sách được tạo.",
        "long_one": "Ô tiếp theo đã chạy {seconds} khi sách được tạo.",
        "absent": "Ô tiếp theo không chạy khi sách được tạo. Ô này cần {lacks}.",
        "download": "Ô tiếp theo không chạy khi sách được tạo. Ô này cần trọng số của {model}, tải về "
        "từ Hugging Face hub.",
        "below": "# Từ phần sau của chương này.",
        "widget": "*Ở chỗ này, [trang của chương]({page}) có phần để bạn tự thử.*",
        "figure": "Hình.",
        "drawn": "Hình do {name} vẽ",
    },
}
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Packages that pip knows by another name than Python."""


def notebooks(book: Book, renderer: Renderer, pages: list[Page], languages: dict[str, str]) -> dict[str, str]:
    """The notebook of each chapter that has a snippet module and nothing to mend: text by path below docs/.

    Raises BookError where a name would mean two things in one notebook.
    """
    having = [page for page in pages if _module(book, page) and not page.problems]
    having = [page for page in having if not renderer.failures.keys() & page.used.keys()]
    titles = {page.path.removeprefix("docs/"): _title(page) for page in pages}
    linked = {page.path.removeprefix("docs/") for page in having}
    results = {name: (result.digest, result.seconds, result.machine) for name, result in renderer.results.items()}
    common = [[*book.modules.values()], results, renderer.absent, titles, linked, renderer.bibliography.lines()]
    found = {}
    for page in having:
        made_of = [page.source, page.text, *common]
        if _MADE.get(page.path, (None, ""))[0] != made_of:
            text = _Notebook(book, renderer, page, languages[page.path], titles, linked).text()
            _MADE[page.path] = made_of, text
        found[path_of(page.path.removeprefix("docs/"))] = _MADE[page.path][1]
    return found


_MADE: dict[str, tuple[object, str]] = {}
"""By chapter, while its author writes: what its notebook was made of, and the notebook."""


def _module(book: Book, page: Page) -> str:
    name = posixpath.basename(page.path).removesuffix(".md").replace("-", "_")
    return name if name in book.modules else ""


def _title(page: Page) -> str:
    front = FRONT_MATTER.match(page.source)
    found = re.search(r"^title: *(.+)$", front[0], re.M) if front else None
    found = found or re.search(r"^# (.+)$", page.source, re.M)
    return found[1] if found else page.path


@dataclass
class _Cell:
    source: str
    example: str = ""
    outputs: list[dict[str, Any]] | None = None
    """None: this is prose."""
    metadata: dict[str, Any] = field(default_factory=dict)


class _Notebook:
    """One chapter on its way to cells."""

    def __init__(
        self, book: Book, renderer: Renderer, page: Page, language: str, titles: dict[str, str], linked: set[str]
    ) -> None:
        self.book, self.renderer, self.page, self.language = book, renderer, page, language
        self.results: dict[str, Result] = renderer.results
        self.titles, self.linked = titles, linked
        self.name = page.path.removeprefix("docs/")
        self.module = _module(book, page)
        self.words = WORDS.get(language, WORDS["en"])
        self.code = Code(book)
        self.cells: list[_Cell] = []
        self.ran: list[str] = []
        self.directives: list[Directive] = []
        self.shown: set[Place | None] = set()
        """The definitions that the chapter shows somewhere."""

    def text(self) -> str:
        """The whole notebook, as its file has it."""
        prose = self._prose()
        wanted = [self._asked(directive) for directive in self.directives]
        examples = [name for word, name, _ in wanted if word != "code" and name in self.book.examples]
        definitions = [name for word, name, _ in wanted if word == "code"]
        self.code.plan([*self.book.order(examples), *definitions])
        self.shown = {self.code.place(name) for name in definitions}
        for number, part in enumerate(HERE.split(prose)):
            if number % 2:
                self._block(*wanted[int(part)])
            else:
                self._say(part)
        self.cells[:1] = [*self._opening(self.cells[0].source), *self.cells[1:1]]
        return json.dumps(self._json(), indent=1, ensure_ascii=False) + "\n"

    def _prose(self) -> str:
        """The chapter's Markdown as notebooks understand it, with marks where its cells go."""
        page = Page(self.page.path, self.page.source)  # its problems are known by now
        done = []
        for part in parts(self.renderer.chosen(page), page.path)[0]:
            if not isinstance(part, Directive):
                done.append(CITATION.sub(self._cited, part.text) if part.prose else part.text)
            elif isinstance(part.expression, ast.Call) and ast.unparse(part.expression.func) in BLOCKS:
                done.append(f"{part.indent or ''}\ufdd3{len(self.directives)}\ufdd4\n")
                self.directives.append(part)
            else:
                done.append(_plainer(Expansion(self.renderer, page, self.language, part.line).expand(part)))
        text = FRONT_MATTER.sub("", "".join(done), count=1)
        text = "\n".join(_boxes_opened(text.split("\n")))
        text = re.sub(r"^[ \t]*\{:[^}\n]*\}[ \t]*\n?|(?<=\S)\{:[^}\n]*\}", "", text, flags=re.M)
        notes = list(dict.fromkeys(re.findall(r"\[\^([\w-]+)\]", text)))
        for number, note in enumerate(notes, 1):
            text = text.replace(f"[^{note}]:", f"<sup>{number}</sup>").replace(f"[^{note}]", f"<sup>{number}</sup>")
        return re.sub(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)(?P<to>\]\([^()\s]*\))", self._linked, text)

    def _cited(self, found: re.Match[str]) -> str:
        bibliography = self.renderer.bibliography
        links = []
        for key in cited_keys(found[0]):
            link = re.search(r"\]\((\S+)\)", bibliography.reference(key, self.language))
            label = bibliography.label(key, self.language)
            links.append(f"[{label}]({link[1]})" if link else label)
        return f"({'; '.join(links)})"

    def _linked(self, found: re.Match[str]) -> str:
        """A link as it works from the notebook: to the other notebook, or to the page if there is none."""
        if not (link := LINK.fullmatch(found["to"])):
            return found[0]
        if not link["file"]:
            return found[1]  # to a place in this chapter, which has another name here
        target = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), link["file"]))
        return f"[{found[1]}]({self._address(target)})"

    def _address(self, target: str) -> str:
        here = posixpath.dirname(path_of(self.name))
        if target in self.linked:
            return posixpath.relpath(path_of(target), here)
        if target.endswith(".md"):
            target = target.removesuffix(".md").removesuffix("index").rstrip("/")
            target = f"{target}/index.html".lstrip("/")
        return posixpath.relpath(target, here)

    def _own_page(self) -> str:
        return posixpath.relpath(f"{self.name.removesuffix('.md')}/index.html", posixpath.dirname(path_of(self.name)))

    def _asked(self, directive: Directive) -> tuple[str, str, dict[str, Any]]:
        """A directive's word, the name it asks for, and its alt texts and captions."""
        call = directive.expression
        assert isinstance(call, ast.Call)
        word = ast.unparse(call.func)
        expansion = Expansion(self.renderer, Page(self.page.path, self.page.source), self.language, directive.line)
        name, options = expansion.arguments(word, call)
        count = len(self.results[name].figures) if name in self.results else 0
        count = min(count, 1) if word == "figure" else count
        given = {kind: options[kind] for kind in ("alt", "caption") if count and kind in options}
        return word, name, {kind: expansion.texts(texts, kind, count) for kind, texts in given.items()}

    def _block(self, word: str, name: str, options: dict[str, Any]) -> None:
        if word == "code":
            self._define(name)
        elif word == "widget":
            if name in self.results:
                self._say(self.words["widget"].format(page=self._own_page()))
        else:
            if name not in self.ran:
                self._run(name, options.get("alt", []))
            elif word == "example":
                self._say(f"```python\n{self.book.examples[name].body}\n```")
            for caption in options.get("caption", []):
                self._say(f"**{self.words['figure']}** {caption}")

    def _define(self, name: str) -> None:
        """The cell of a definition that the chapter shows; as text where an earlier cell had to give it."""
        place = self.code.place(name)
        if place is None or place in self.code.given or name in self.book.examples:
            shown = Expansion(self.renderer, Page(self.page.path, ""), self.language, 1).code(name)
            self._say(re.sub(r"^(`+) \{.*\}$", r"\1python", shown, count=1, flags=re.M))
            return
        self._give([one for one in self.code.missing(name) if one != place])
        self._add(self.code.source(place))

    def _give(self, places: list[Place]) -> None:
        """The definitions that the next cell needs and no cell has given: folded away if shown elsewhere or later."""
        for (module, later), group in groupby(places, key=lambda place: (place[0], place in self.shown)):
            sources = [self.code.source(place) for place in group]
            source = sources[0]
            for before, after in pairwise(sources):
                source += ("\n\n\n" if "\n" in f"{before}{after}" else "\n") + after
            title = self.words["below"]
            if module != self.module:
                title = self.words["from"].format(title=self.titles.get(self._page_of(module), module))
            if module != self.module or later:
                self._add(f"{title}\n\n{source}", metadata=_folded())
            else:
                self._add(source)

    def _page_of(self, module: str) -> str:
        """The chapter that a snippet module belongs to, if possible of this language."""
        folder = posixpath.dirname(self.name)
        name = f"{module.replace('_', '-')}.md"
        return next((path for path in (posixpath.join(folder, name), name) if path in self.titles), name)

    def _run(self, name: str, alts: list[str]) -> None:
        """The cell of an example, after those that it needs."""
        for one in self.book.order([name]):
            if one in self.ran:
                continue
            self.ran.append(one)
            example, result, said = self.book.examples[one], self.results.get(one), []
            if example.module != self.module:
                page = self._page_of(example.module)
                said.append(self.words["need"].format(title=self.titles.get(page, page), page=self._address(page)))
            if one in self.renderer.absent:
                hub = [need for need in example.options.needs if need.startswith("hub:")]
                model = hub[0].removeprefix("hub:").partition("@")[0] if hub else ""
                lacks = self.renderer.absent[one]
                said.append(self.words["download" if hub else "absent"].format(lacks=lacks, model=model))
            elif result and result.seconds >= LONG:
                word = "long" if said else "long_one"
                said.append(self.words[word].format(seconds=duration(result.seconds, self.language)))
            self._give(self.code.missing(one))
            if said:
                self._say(" ".join(said))
            metadata: dict[str, Any] = {"tags": ["raises-exception"]} if example.options.raises else {}
            metadata |= {"tags": ["not-run"]} if one in self.renderer.absent else {}
            outputs = list(self._outputs(example, result, alts if one == name else [])) if result else []
            self._add(self.code.cell(example), one, outputs, metadata)

    def _outputs(self, example: Example, result: Result, alts: list[str]) -> Iterator[dict[str, Any]]:
        printed, error = result.text, ""
        if example.options.raises:  # what it raised is written behind what it printed
            lines = [*re.finditer(r"^[\w.]*\w(?=: |$)", printed, re.M)]
            named = [line for line in lines if line[0].rpartition(".")[2] == example.options.raises]
            start = [*named[:1], *lines[-1:]][0].start()
            printed, error = printed[:start].rstrip("\n"), printed[start:]
        if printed:
            yield {"name": "stdout", "output_type": "stream", "text": _lines(f"{printed}\n")}
        for number, svg in enumerate(result.figures):
            drawn = self.words["drawn"].format(name=result.name)
            alt = alts[number] if number < len(alts) and alts[number] else drawn
            svg = own_ids(svg, f"{result.name.replace('.', '-')}-{number + 1}")
            svg = svg.replace('<svg style="', f'<svg role="img" aria-label="{escape(alt)}" style="{FONT}', 1)
            yield {
                "data": {"image/svg+xml": _lines(svg), "text/plain": _lines(alt)},
                "metadata": {"needs_background": "light"},
                "output_type": "display_data",
            }
        if error:
            kind, _, message = error.partition(": ")
            yield {"ename": kind, "evalue": message, "output_type": "error", "traceback": [error]}

    def _opening(self, first: str) -> list[_Cell]:
        """The title with what this is, what all cells share, and the rest of the first prose."""
        heading, _, rest = first.partition("\n")
        known = [result for name in self.ran if (result := self.results.get(name))]
        packages = self._packages()
        intro = self.words["intro"].format(
            title=self.titles[self.name],
            page=self._own_page(),
            time=duration(sum(result.seconds for result in known), self.language),
            machine=max((result.machine for result in known), default="?"),
            versions=", ".join(f"{name} {version(name)}" for name in packages),
            packages=f"pip install {' '.join(packages)}",
        )
        cells = [_Cell(f"{heading}\n\n{intro}")]
        if "matplotlib" in packages:
            self.code.imports.add(("matplotlib.pyplot", None, "plt"))
        shared = self.code.import_lines()
        if ("torch", None, "torch") in self.code.imports:
            shared += f"\n\n# {self.words['threads']}\ntorch.set_num_threads(1)"
        cells.append(_Cell(shared, outputs=[]))
        if "matplotlib" in packages:
            cells.append(_Cell(f"{self.words['style']}\n{_figure_style()}", outputs=[], metadata=_folded()))
        return [*cells, _Cell(rest.strip("\n"))] if rest.strip() else cells

    def _packages(self) -> list[str]:
        """What pip has to install for this notebook."""
        roots = {module.partition(".")[0] for module, _, _ in self.code.imports}
        for cell in self.cells:
            if cell.outputs is not None:
                roots |= set(re.findall(r"^[ \t]*(?:import (?=\w)|from (?=[\w.]+ import ))(\w+)", cell.source, re.M))
        return sorted(DISTRIBUTIONS.get(root, root) for root in roots - sys.stdlib_module_names)

    def _say(self, text: str) -> None:
        """Prose, after what was said just before; a heading begins a cell."""
        for piece in re.split(r"^(?=#{1,6} )", _dedented(text), flags=re.M) if "```" not in text else [text]:
            if not (piece := piece.strip("\n")):
                continue
            if self.cells and self.cells[-1].outputs is None and not piece.startswith("#"):
                self.cells[-1].source += f"\n\n{piece}"
            else:
                self.cells.append(_Cell(piece))

    def _add(
        self,
        source: str,
        example: str = "",
        outputs: list[dict[str, Any]] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.cells.append(_Cell(source, example, outputs or [], metadata or {}))

    def _json(self) -> dict[str, Any]:
        cells, count = [], 0
        for number, cell in enumerate(self.cells):
            body: dict[str, Any] = {"cell_type": "markdown", "id": f"text-{number}", "metadata": {}}
            if cell.outputs is not None:
                count += 1
                name = cell.example.replace(".", "-")[:60] or f"code-{number}"
                metadata = cell.metadata | ({"executed": cell.example} if cell.example else {})
                body = {"cell_type": "code", "id": name, "metadata": metadata}
                body |= {"execution_count": None if "not-run" in metadata.get("tags", []) else count}
                body["outputs"] = cell.outputs
            cells.append(body | {"source": _lines(cell.source)})
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        wanted = [f"{name}=={version(name).partition('+')[0]}" for name in self._packages()]
        about = {"kernelspec": kernel, "language_info": {"name": "python"}, "requirements": wanted}
        return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


FONT = "font-family: sans-serif; "
"""In a page a figure inherits the font; in a notebook it is an image of its own."""


def _folded() -> dict[str, Any]:
    """A cell whose code is folded away: in Jupyter, in Colab, and where tags say so."""
    return {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}


def _figure_style() -> str:
    """The settings that the book's figures are drawn with, and SVG instead of PNG."""
    pairs = [line.split(": ", 1) for line in STYLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    settings = "".join(f'    "{name}": {_plain(value)},\n' for name, value in pairs if name != "svg.hashsalt")
    magic = '%matplotlib inline\n%config InlineBackend.figure_formats = ["svg"]'
    return f"{magic}\nplt.rcParams.update({{\n{settings}}})"


def _plain(value: str) -> str:
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return f'"{value}"'
    return f"({value})" if "," in value else value


def _boxes_opened(lines: list[str]) -> Iterator[str]:
    """Admonitions, folded blocks and tabs as quotations under a bold title; cells that are in them stand alone."""
    position, fence = 0, ""
    while position < len(lines):
        line = lines[position]
        position += 1
        mark = re.match(r"[ >]*(`{3,}|~{3,})", line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        box = None if fence else BOX.fullmatch(line)
        if not box:
            yield line
            continue
        start = position
        while position < len(lines) and (not lines[position].strip() or lines[position].startswith("    ")):
            position += 1
        body = [one.removeprefix("    ") for one in lines[start:position]]
        while body and not body[-1].strip():
            body.pop()
        quoted = [f"**{box['title'] or box['tab']}**", ""] if box["title"] or box["tab"] else []
        yield ""
        for one in [*quoted, *_boxes_opened(body)]:
            yield one.strip() if HERE.search(one) else f"> {one}".rstrip()
        yield ""


def _plainer(text: str) -> str:
    """Values as a person would write them, where the letter itself can be no markup."""
    return re.sub(r"&#(?:34|58|61|64);|(?<=\w)&#95;(?=\w)", lambda found: unescape(found[0]), text)


def _dedented(text: str) -> str:
    """What is left of a list item or a quotation after a cell: no indented code, and no empty quotation."""
    lines = text.strip("\n").split("\n")
    while lines and lines[0].strip() in ("", ">"):
        lines.pop(0)
    while lines and lines[-1].strip() in ("", ">"):
        lines.pop()
    return re.sub(r"\n{3,}", "\n\n", textwrap.dedent("\n".join(lines)))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
