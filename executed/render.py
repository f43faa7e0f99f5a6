"""Turns a chapter into Markdown: each directive becomes the code, output, figures or number that it names."""

import ast
import itertools
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from executed import widgets
from executed.book import Book, Example, Problem, nearest
from executed.citations import CITATION, Bibliography, cited_keys
from executed.commit import Commit
from executed.glossary import Glossary
from executed.markup import Directive, Stretch, directives, escaped, fenced, parts
from executed.numbers import DEFAULT_DIGITS, FILTERS, formatted, listed
from executed.policy import refused
from executed.provenance import made_block, record_line, timing_line
from executed.store import Failure, Outcomes, Result, failure_text

BLOCKS = {
    "code": (),
    "example": ("alt", "caption"),
    "output": (),
    "figure": ("alt", "caption", "number"),
    "widget": ("kind", "loads"),
}
MOST_DECIMALS = 20


@dataclass
class Page:
    """A rendered chapter: Markdown, its figures by file name, and everything its author must mend."""

    path: str
    source: str
    text: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """What else the page loads: text files by path below the site's root."""
    problems: list[Problem] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    """The examples the page shows or quotes, each with the first line that does."""
    cited: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    """The names whose code the page shows; the first time it does is where links lead."""
    blocks: list[tuple[str, str]] = field(default_factory=list)
    """All the Python that the page shows: whose it is, and the code."""


Generated = Callable[..., str]
"""A block the book writes about itself, from the page's language, a way to link to examples, and what it is asked."""


class Renderer:
    """Renders the chapters of one book with one set of results."""

    def __init__(
        self,
        book: Book,
        outcomes: Outcomes,
        generated: dict[str, Generated] | None = None,
        commit: Commit | None = None,
        glossary: Glossary | None = None,
    ) -> None:
        """With a commit, each result is followed by how it was made; with a glossary, terms lead to it."""
        self.book, self.results, self.failures = book, outcomes.results, outcomes.failures
        self.absent, self.outdated = outcomes.absent, outcomes.outdated
        self.generated = generated or {}
        self.bibliography = Bibliography(book.root)
        self.commit, self.glossary = commit, glossary
        self.shown_in: dict[str, list[str]] = {}

    def find_examples(self, pages: list[Page]) -> None:
        """Learn which pages show which example, for the links from the examples that need it."""
        for page in pages:
            for directive in directives(page.source, page.path, []):
                match directive.expression:
                    case ast.Call(func=ast.Name("example"), args=[ast.Constant(str(name)), *_]):
                        self.shown_in.setdefault(name, []).append(page.path)

    def render(self, page: Page, language: str) -> None:
        """Fill in the page's text and figures, and note its problems."""
        found, problems = parts(self.chosen(page), page.path)
        page.problems += problems
        linked = self.glossary.linked(found, page.path, language) if self.glossary else found
        # What snippets left is never looked at again: only the author's own prose can cite.
        done = [
            Expansion(self, page, language, part.line).expand(part)
            if isinstance(part, Directive)
            else self._cited(page, part, language)
            if part.prose
            else part.text
            for part in linked
        ]
        page.text = "".join(done).rstrip("\n") + "\n" + self.bibliography.section(page.cited, language)

    def chosen(self, page: Page) -> str:
        """The chapter without the paragraphs under `when_run` and `when_not_run` whose condition does not hold."""

        def choose(found: re.Match[str]) -> str:
            if found["name"] not in self.book.examples:
                line = page.source.count("\n", 0, found.start()) + 1
                page.problems.append(Problem(page.path, line, self.book.why_missing(found["name"])))
            here = found["name"] not in self.absent and found["name"] not in self.failures
            if here is (found["not"] is None):
                return "\n" + re.sub(r"^(?: {4}|\t)", "", found["body"], flags=re.M)
            return "\n" * found[0].count("\n")  # the lines below keep their numbers

        return CONDITION.sub(choose, page.source)

    def _cited(self, page: Page, prose: Stretch, language: str) -> str:
        def link(found: re.Match[str]) -> str:
            keys = cited_keys(found[0])
            for key in keys:
                if key not in self.bibliography:
                    line = prose.line + prose.text.count("\n", 0, found.start())
                    message = f"docs/references.bib has no entry {key}{self.bibliography.nearest(key)}"
                    page.problems.append(Problem(page.path, line, message))
                elif key not in page.cited:
                    page.cited.append(key)
            return self.bibliography.link(keys, language)

        return CITATION.sub(link, prose.text)

    def page_of(self, name: str, asking: str) -> str | None:
        """The page that shows an example, if possible the asking page or one of its folder, so of its language."""
        pages = self.shown_in.get(name, [])
        folder = posixpath.dirname(asking)
        return min(pages, key=lambda page: (page != asking, posixpath.dirname(page) != folder), default=None)


# `{{ when_run("phobert.tokens") }}` and the indented lines below it.
CONDITION = re.compile(
    r'^\{\{ *when_(?P<not>not_)?run\("(?P<name>[\w.]+)"\) *\}\}[ \t]*\n(?P<body>(?:(?: {4}|\t)[^\n]*\n|[ \t]*\n)+)',
    re.M,
)


class _Trouble(Exception):
    """What is wrong with a directive; becomes a problem of its page."""


_FAILED = object()


class Expansion:
    """What one directive becomes."""

    def __init__(self, renderer: Renderer, page: Page, language: str, line: int) -> None:
        self.renderer, self.book, self.page = renderer, renderer.book, page
        self.language, self.line = language, line

    def expand(self, directive: Directive) -> str:
        try:
            if not isinstance(directive.expression, ast.Call):
                return escaped(self.value(directive.expression), directive.opens)
            return self.block(directive.expression, directive.indent)
        except _Trouble as trouble:
            self.page.problems.append(Problem(self.page.path, self.line, str(trouble)))
            return "**(?)**"

    def block(self, call: ast.Call, indent: str | None) -> str:
        """A block, set apart by blank lines, at the indentation of its directive."""
        word = ast.unparse(call.func)
        known = [*BLOCKS, *self.renderer.generated]
        if word not in known:
            raise _Trouble(f"there is no directive {word}(...){nearest(word, known)}; there are {', '.join(known)}")
        if indent is None:
            raise _Trouble(f"{word}(...) stands alone on its line, with nothing before or after it")
        if word in BLOCKS:
            block = self._shown(word, *self.arguments(word, call))
        else:
            names = [one.value if isinstance(one, ast.Constant) else None for one in [*call.args, *call.keywords]]
            try:
                block = self.renderer.generated[word](self.language, self.link, *names)
            except TypeError:
                takes = 'one name in quotes, published("figure.id"),' if word == "published" else "nothing"
                raise _Trouble(f"{word}() takes {takes} between its parentheses") from None
            except LookupError as error:
                raise _Trouble(str(error.args[0])) from None
        return re.sub(r"\n(?!\n|\Z)", f"\n{indent}", f"\n{block}\n")

    def arguments(self, word: str, call: ast.Call) -> tuple[str, dict[str, Any]]:
        match call.args:
            case [ast.Constant(str(name))]:
                pass
            case _:
                raise _Trouble(f'write one name in quotes: {word}("chapter.name")')
        options = {}
        for keyword in call.keywords:
            option, allowed = keyword.arg or "**", BLOCKS[word]
            if option not in allowed:
                takes = ", ".join(allowed) or "no options"
                raise _Trouble(f"{word}(...) takes {takes}, not {option}={nearest(option, allowed)}")
            try:
                options[option] = ast.literal_eval(keyword.value)
            except (ValueError, TypeError):
                raise _Trouble(
                    f"{option}= is a plain value: text in quotes, a list of such texts, or a number"
                ) from None
        return name, options

    def _shown(self, word: str, name: str, options: dict[str, Any]) -> str:
        if word == "code":
            return self.code(name)
        example = self.example(name)
        if name in self.renderer.failures:
            return failure_block(self.renderer.failures[name])
        if word == "widget" and name in self.renderer.absent:
            return ""
        if name in self.renderer.absent:
            shown = [self._needs_line(example), self._python(name, example.body or "pass")]
            absence = absence_block(name, self.renderer.absent[name], self.language)
            return "\n\n".join(filter(None, [*(shown if word == "example" else []), absence]))
        result = self.result(name)
        numbers = list(range(1, len(result.figures) + 1))
        if word == "widget":
            return self.widget(result, options.get("kind"), options.get("loads", []))
        if word == "output":
            if not result.text:
                raise _Trouble(f"{name} prints nothing")
            blocks = [fenced(result.text, ".text .output")]
        elif word == "figure":
            number = options.get("number", 1)
            if number not in numbers or isinstance(number, bool):
                raise _Trouble(f"{name} draws {len(numbers)} figure(s), and figure {number} is asked for")
            blocks = [self.figures(result, options, [number])]
        else:
            blocks = [self._needs_line(example), self._python(name, example.body or "pass")]
            blocks += [fenced(result.text, ".text .output")] if result.text else []
            blocks += [self.figures(result, options, numbers)] if numbers or options else []
        blocks += [timing_line(result, example, self.language)] if example.options.varies else []
        blocks += [record_line(result, name in self.renderer.outdated, self.language)] if result.recorded else []
        if self.renderer.commit:
            lines = self.book.modules[example.module].definitions[example.function]
            blocks.append(made_block(result, example, lines, self.renderer.commit, self.language))
        return "\n\n".join(filter(None, blocks))

    def code(self, name: str) -> str:
        words = name.split(".")
        modules = [".".join(words[:length]) for length in range(len(words), 0, -1)]
        module = next((self.book.modules[module] for module in modules if module in self.book.modules), None)
        if module is None:
            raise _Trouble(f"there is no snippet module for {name}{nearest(words[0], self.book.modules)}")
        definition = name.removeprefix(module.name).removeprefix(".")
        if definition not in module.definitions:
            if module.problems:
                raise _Trouble(f"{name} cannot be shown: {module.problems[0]}")
            raise _Trouble(
                f"{module.path} defines no {definition}{nearest(definition, module.definitions)}"
                if definition
                else f'say which definition of {module.path}: code("{name}....")'
            )
        return self._python(name, _dedented(module.text(module.definitions[definition])))

    def _python(self, name: str, code: str) -> str:
        anchor = "" if name in self.page.anchors else f" #{name}"
        self.page.anchors.add(name)
        self.page.blocks.append((name, code))
        return fenced(code, f".python{anchor}")

    def example(self, name: str) -> Example:
        if name not in self.book.examples:
            raise _Trouble(self.book.why_missing(name))
        self.page.used.setdefault(name, self.line)
        return self.book.examples[name]

    def result(self, name: str) -> Result:
        if name in self.renderer.absent:
            raise _Trouble(
                f"{name} cannot run here, so it has no values: indent the sentence under "
                f'{{{{ when_run("{name}") }}}}, or record a result (executed record {name})'
            )
        if name not in self.renderer.results:
            raise _Trouble(f"{name} has no result yet")
        return self.renderer.results[name]

    def link(self, name: str) -> str:
        """The address of the code of an example, as seen from this page; empty where no page shows it."""
        page = self.renderer.page_of(name, self.page.path)
        here = posixpath.dirname(self.page.path)
        return f"{'' if page == self.page.path else posixpath.relpath(page, here)}#{name}" if page else ""

    def _needs_line(self, example: Example) -> str:
        pairs = [
            (parameter, self.link(need)) for parameter, need in zip(example.parameters, example.needs, strict=True)
        ]
        links = [f"[`{parameter}`]({link})" if link else f"`{parameter}`" for parameter, link in pairs]
        word = {"vi": "Dùng kết quả của"}.get(self.language, "Uses the result of")
        return f"{word} {', '.join(links)}\n{{: .needs }}" if links else ""

    def figures(self, result: Result, options: dict[str, Any], numbers: list[int]) -> str:
        alts, captions = (self.texts(options.get(kind, []), kind, len(numbers)) for kind in ("alt", "caption"))
        if not all(alts):
            raise _Trouble(
                f'{result.name} draws {len(numbers)} figure(s): each needs alt="...", for those who cannot see it'
            )
        blocks = []
        for number, alt, caption in zip(numbers, alts, captions, strict=True):
            for words, _ in refused(result.figures[number - 1]):
                raise _Trouble(f"figure {number} of {result.name}: {words}")
            file = f"{result.name}-{number}.svg"
            self.page.figures[file] = result.figures[number - 1]
            target = posixpath.relpath(f"docs/figures/{file}", posixpath.dirname(self.page.path))
            # Python-Markdown may take an apostrophe in a title for its other kind of quotation mark.
            title = f' "{escaped(caption)}"'.replace("'", "&#39;") if caption else ""
            blocks.append(f"![{escaped(alt)}]({target}{title})")
        return "\n\n".join(blocks)

    def widget(self, result: Result, kind: Any, loads: Any) -> str:
        known = widgets.known(self.book.root)
        if kind not in known:
            told = nearest(kind, known) if isinstance(kind, str) else ""
            raise _Trouble(f'say which widget: kind="..."{told}; there are {", ".join(known)}')
        if not isinstance(loads, list) or not all(isinstance(name, str) for name in loads):
            raise _Trouble('loads= is a list of examples whose values wait until the reader asks: ["chapter.name"]')
        for name in loads:
            if self.example(name).name in self.renderer.failures:
                return failure_block(self.renderer.failures[name])
        files = [widgets.data(one.name, one.values) for one in (result, *map(self.result, loads))]
        self.page.files.update(files)
        sizes = {name: len(text.encode()) for name, (_, text) in zip(loads, files[1:], strict=True)}
        return widgets.place(result.name, kind, self.language, sizes)

    def texts(self, given: Any, kind: str, count: int) -> list[str]:
        """One alt text or caption for each figure, with the values that it quotes in place."""
        texts = [given] if isinstance(given, str) else given or [""] * count
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _Trouble(f"{kind}= is text in quotes, or a list of such texts")
        if len(texts) != count:
            raise _Trouble(f"{kind}= has {len(texts)} text(s) for {count} figure(s); give a list with one for each")
        return [self._filled(text, kind) for text in texts]

    def _filled(self, text: str, kind: str) -> str:
        found, problems = parts(text, self.page.path)
        if problems:
            raise _Trouble(f"in {kind}=: {problems[0].message}")
        if CITATION.search(text):
            raise _Trouble(f"{kind}= can hold no citation: cite in the sentence before the figure")
        shown = (self.value(part.expression) if isinstance(part, Directive) else part.text for part in found)
        return "".join(shown).strip()

    def value(self, expression: ast.expr) -> str:
        """A value that prose quotes, formatted for the page's language."""
        form = None
        match expression:
            case ast.BinOp(left=expression, op=ast.BitOr(), right=right):
                form = _form(right)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                raise _Trouble("prose quotes values and computes none: let the example return what is wanted")
        name, value = self._lookup(expression)
        if value is _FAILED:
            return "(?)"
        try:
            return formatted(value, *form, self.language) if form else self._plain(value, name)
        except TypeError as error:
            raise _Trouble(f"{name}: {error}") from None

    def _plain(self, value: Any, name: str) -> str:
        match value:
            case [_, *_]:
                return listed([self._plain(item, name) for item in value])
            case bool() | str():
                return str(value)
            case int():
                return formatted(value, "num", 0, self.language)
            case float():
                raise _Trouble(f"{name} is {value}: say how to write it, for instance | num(3)")
            case {"$unquotable": why}:
                raise _Trouble(f"{name} holds {why}")
            case {}:
                raise _Trouble(f"{name} is a dict; quote one of its parts")
        raise _Trouble(f"{name} is {'nothing (None)' if value is None else 'an empty list'}; quote something else")

    def _lookup(self, path: ast.expr) -> tuple[str, Any]:
        """What `chapter.example.value[0]` leads to, and its name as messages have it."""
        steps = list(_steps(path))
        names = [key for key, _ in itertools.takewhile(lambda step: step[1][0] != "[", steps)]
        for length in range(len(names), 1, -1):
            if (name := ".".join(names[:length])) in self.book.examples:
                break
        else:
            hint = "" if names[1:] else " (values are chapter.example.value; in mathematics, write `{ {`)"
            raise _Trouble(self.book.why_missing(".".join(names[:2])) + hint)
        self.example(name)
        if name in self.renderer.failures:
            return name, _FAILED
        value: Any = self.result(name).values
        for key, written in steps[length:]:
            value = _step(value, key, written, name)
            name += written
            if isinstance(value, dict) and "$unquotable" in value:
                raise _Trouble(f"{name} is {value['$unquotable']}")
        return name, value


def _form(written: ast.expr) -> tuple[str, int]:
    """`num(2)` as its name and its decimals."""
    call = written if isinstance(written, ast.Call) else ast.Call(written, [], [])
    word = ast.unparse(call.func)
    if word not in FILTERS:
        raise _Trouble(f"there is no filter {word}{nearest(word, FILTERS)}; there are {', '.join(FILTERS)}")
    match call:
        case ast.Call(args=[ast.Constant(int(digits))], keywords=[]) if 0 <= digits <= MOST_DECIMALS:
            return word, digits
        case ast.Call(args=[], keywords=[]) if word in DEFAULT_DIGITS:
            return word, DEFAULT_DIGITS[word]
    raise _Trouble(f"say how many decimals: | {word}(2)")


def _steps(path: ast.expr) -> Iterator[tuple[Any, str]]:
    """`a.b[2]` step by step, each as its key and as it is written: a, .b and [2]."""
    match path:
        case ast.Name():
            yield path.id, path.id
        case ast.Attribute():
            yield from _steps(path.value)
            yield path.attr, f".{path.attr}"
        case ast.Subscript():
            yield from _steps(path.value)
            for key in path.slice.elts if isinstance(path.slice, ast.Tuple) else [path.slice]:
                try:
                    yield _key(key), f"[{ast.unparse(key)}]"
                except (ValueError, TypeError):
                    raise _Trouble(f"[{ast.unparse(key)}] is not a plain number, name in quotes or slice") from None
        case _:
            written = textwrap.shorten(ast.unparse(path), 80)
            raise _Trouble(f"`{written}` is not the name of a value such as attention.four_tokens.weights[2]")


def _key(written: ast.expr) -> Any:
    if not isinstance(written, ast.Slice):
        return ast.literal_eval(written)
    bounds: list[Any] = [part and ast.literal_eval(part) for part in (written.lower, written.upper, written.step)]
    found = slice(*bounds)
    range(0)[found]  # raises what a wrong slice raises
    return found


def _step(value: Any, key: Any, written: str, so_far: str) -> Any:
    if isinstance(value, dict) and not isinstance(key, slice):
        if str(key) not in value:
            kept = ", ".join(value) or "no values"
            raise _Trouble(f"{so_far} has no {key}{nearest(str(key), value)} (it has {kept})")
        return value[str(key)]
    if isinstance(value, list) and isinstance(key, int | slice):
        if isinstance(key, int) and not -len(value) <= key < len(value):
            raise _Trouble(f"{so_far} has {len(value)} items, counted from 0: there is no {written}")
        return value[key]
    raise _Trouble(f"{so_far} is a {type(value).__name__}: {written} leads nowhere")


def _dedented(code: str) -> str:
    """Code moved to the left margin. What stands further left than its first line, inside a text, stays there."""
    margin = re.match(r"[ \t]*", code)
    return re.sub(rf"^{margin[0] if margin else ''}", "", code, flags=re.M)


def failure_block(failure: Failure) -> str:
    """The same in a page, in the place of what the example would have shown."""
    return f'!!! failure "{failure.name} failed"\n' + textwrap.indent(fenced(failure_text(failure), ".text"), "    ")


def absence_block(name: str, lacks: str, language: str) -> str:
    """Stands where an example that cannot run here would show its output."""
    title, words = {
        "vi": ("Không chạy ở đây", "Ví dụ này cần {}. Hãy chạy trong bản sao của kho mã này:"),
    }.get(language, ("Not run here", "This example needs {}. To run it, in a clone of this book's repository:"))
    command = fenced(f"executed run {name}", ".sh")
    return f'!!! not-run "{title}"\n' + textwrap.indent(f"{words.format(escaped(lacks))}\n\n{command}", "    ")
