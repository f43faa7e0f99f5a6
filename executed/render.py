"""Turns a chapter into Markdown: directives become the code, output, figures and numbers they name.

Directives are Python expressions between double braces and are parsed as such. They are left alone in code and
comments. Whatever comes from a snippet is fenced or escaped, so it can never become HTML or Markdown of the page.
"""

import ast
import html
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from executed.book import Book, Example, Problem, nearest
from executed.citations import Bibliography, cited_keys
from executed.numbers import DEFAULT_DIGITS, FILTERS, formatted
from executed.store import Failure, Result

BLOCKS = {"code": (), "example": ("alt", "caption"), "output": (), "figure": ("alt", "caption", "number")}
# What the search for directives steps over, and the braces it looks for.
TOKEN = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:[^\n]*\n)*?[ \t]*(?P=fence)[`~]*[ \t]*$|<!--[\s\S]*?-->"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^`\n]|\n(?!\s*\n)|(?!(?P=ticks)(?!`))`)+?(?P=ticks)(?!`)|(?P<open>\{\{)",
    re.M,
)


@dataclass(frozen=True)
class Directive:
    """`{{ ... }}` in a chapter: what is between the braces, and where."""

    expression: ast.expr
    start: int
    end: int
    line: int
    indent: str | None
    """The white space before it where it stands alone on its line, else None."""


@dataclass
class Page:
    """A rendered chapter: Markdown, its figures by file name, and everything its author must mend."""

    path: str
    source: str
    text: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    """The examples the page shows or quotes, each with the first line that does."""
    cited: list[str] = field(default_factory=list)


def directives(source: str, path: str, problems: list[Problem]) -> Iterator[Directive]:
    """The directives of a chapter, in order; what cannot be read as one becomes a problem."""
    position = 0
    while found := TOKEN.search(source, position):
        position = found.end()
        if not found["open"]:
            continue
        line = source.count("\n", 0, found.start()) + 1
        expression, end = _expression(source, found.end())
        if expression is None:
            problems.append(
                Problem(
                    path,
                    line,
                    'this {{ is not a directive that can be read; write `{{ code("...") }}`'
                    " or `{{ chapter.example.value | num(2) }}` (in mathematics, `{ {`)",
                )
            )
            continue
        position = end
        before = source[source.rfind("\n", 0, found.start()) + 1 : found.start()]
        after = source[end : source.find("\n", end) if "\n" in source[end:] else len(source)]
        alone = not before.strip() and not after.strip()
        yield Directive(expression, found.start(), end, line, before if alone else None)


def _expression(source: str, start: int) -> tuple[ast.expr | None, int]:
    """Parse up to the closing braces. Text inside may hold directives of its own, so try each `}}` in turn."""
    end = source.find("}}", start)
    while end >= 0 and end - start < 5000:
        try:
            return ast.parse(f"({source[start:end].strip()}\n)", mode="eval").body, end + 2
        except SyntaxError:
            end = source.find("}}", end + 1)
    return None, start


class Renderer:
    """Renders the chapters of one book with one set of results."""

    def __init__(
        self,
        book: Book,
        results: dict[str, Result],
        failures: dict[str, Failure],
        generated: dict[str, Callable[[str], str]] | None = None,
    ) -> None:
        self.book, self.results, self.failures = book, results, failures
        self.generated = generated or {}
        self.bibliography = Bibliography(book.root)
        self.shown_in: dict[str, str] = {}

    def find_examples(self, pages: list[Page]) -> None:
        """Learn which page shows which example, for the links from the examples that need it."""
        for page in pages:
            for directive in directives(page.source, page.path, []):
                call = directive.expression
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "example" and call.args:
                    name = getattr(call.args[0], "value", None)
                    self.shown_in.setdefault(str(name), page.path)

    def render(self, page: Page, language: str) -> None:
        """Fill in the page's text and figures, and note its problems."""
        pieces, done = [], 0
        for directive in directives(page.source, page.path, page.problems):
            start = directive.start - len(directive.indent or "")
            pieces.append(page.source[done:start])
            pieces.append(_Expansion(self, page, language, directive.line).expand(directive))
            done = directive.end
        pieces.append(page.source[done:])
        page.text = self._cite(page, "".join(pieces), language)

    def _cite(self, page: Page, text: str, language: str) -> str:
        page.cited = []
        pieces, done = [], 0
        for found in [*TOKEN.finditer(text), None]:
            prose = text[done : found.start() if found else len(text)]
            page.cited += [key for key in cited_keys(prose) if key not in page.cited]
            pieces.append(self.bibliography.link(prose))
            if found:
                pieces.append(found[0])
                done = found.end()
        for key in page.cited:
            if key not in self.bibliography:
                line = page.source.count("\n", 0, max(page.source.find(f"@{key}"), 0)) + 1
                page.problems.append(
                    Problem(
                        page.path,
                        line,
                        f"docs/references.bib has no entry {key}{self.bibliography.nearest(key)}",
                    )
                )
        return "".join(pieces).rstrip("\n") + "\n" + self.bibliography.section(page.cited, language)


class _Expansion:
    """What one directive becomes."""

    def __init__(self, renderer: Renderer, page: Page, language: str, line: int) -> None:
        self.renderer, self.book, self.page = renderer, renderer.book, page
        self.language, self.line = language, line

    def expand(self, directive: Directive) -> str:
        expression = directive.expression
        call = expression if isinstance(expression, ast.Call) else None
        word = ast.unparse(call.func) if call else ""
        try:
            if call is None:
                return (directive.indent or "") + escaped(self.value(expression))
            if directive.indent is None:
                raise _Trouble(f"{word}(...) stands alone on its line, with nothing before or after it")
            block = self.block(word, call)
        except _Trouble as trouble:
            self.problem(str(trouble))
            return (directive.indent or "") + "**(?)**"
        return textwrap.indent(f"{block}\n", directive.indent)

    def problem(self, message: str) -> None:
        self.page.problems.append(Problem(self.page.path, self.line, message))

    def block(self, word: str, call: ast.Call) -> str:
        if word in self.renderer.generated:
            return self.renderer.generated[word](self.language)
        if word not in BLOCKS:
            known = [*BLOCKS, *self.renderer.generated]
            raise _Trouble(f"there is no directive {word}(...){nearest(word, known)}; there are {', '.join(known)}")
        name, options = self._arguments(word, call)
        if word == "code":
            return self.code(name)
        example = self.example(name)
        if name in self.renderer.failures:
            return failure_block(self.renderer.failures[name])
        result = self.renderer.results[name]
        if word == "output":
            if not result.text:
                raise _Trouble(f"{name} prints nothing")
            return fenced(result.text, ".text .output")
        if word == "figure":
            number = options.get("number", 1)
            if not isinstance(number, int) or not 1 <= number <= len(result.figures):
                raise _Trouble(f"{name} draws {len(result.figures)} figures, and figure {number} is asked for")
            return self.figures(result, options, [number])
        parts = [self._needs_line(example), fenced(self._body(example), f".python #{name}")]
        parts += [fenced(result.text, ".text .output")] if result.text else []
        parts += [self.figures(result, options, list(range(1, len(result.figures) + 1)))] if result.figures else []
        return "\n\n".join(part for part in parts if part)

    def _arguments(self, word: str, call: ast.Call) -> tuple[str, dict[str, Any]]:
        if len(call.args) != 1 or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
            raise _Trouble(f'write the name in quotes: {word}("chapter.name")')
        options = {}
        for keyword in call.keywords:
            if keyword.arg not in BLOCKS[word]:
                allowed = ", ".join(BLOCKS[word]) or "no options"
                raise _Trouble(
                    f"{word}(...) takes {allowed}, not {keyword.arg}={nearest(str(keyword.arg), BLOCKS[word])}"
                )
            try:
                options[keyword.arg] = ast.literal_eval(keyword.value)
            except ValueError:
                raise _Trouble(f"{keyword.arg}= is text in quotes, or a list of such texts") from None
        return call.args[0].value, options

    def code(self, name: str) -> str:
        module, _, definition = name.partition(".")
        while module not in self.book.modules and definition:
            head, _, definition = definition.partition(".")
            module = f"{module}.{head}"
        if module not in self.book.modules:
            raise _Trouble(f"there is no snippet module for {name}{nearest(name.partition('.')[0], self.book.modules)}")
        found = self.book.modules[module]
        if found.problems and definition not in found.definitions:
            raise _Trouble(f"{name} cannot be shown: {found.problems[0]}")
        if definition not in found.definitions:
            raise _Trouble(f"{found.path} defines no {definition}{nearest(definition, found.definitions)}")
        return fenced(textwrap.dedent(found.text(found.definitions[definition])), f".python #{name}")

    def example(self, name: str) -> Example:
        if name not in self.book.examples:
            raise _Trouble(self.book.why_missing(name))
        self.page.used.setdefault(name, self.line)
        return self.book.examples[name]

    def _body(self, example: Example) -> str:
        module = self.book.modules[example.module]
        return textwrap.dedent("\n".join(module.text(span) for span in example.body)) or "pass"

    def _needs_line(self, example: Example) -> str:
        links = []
        for parameter, need in zip(example.parameters, example.needs, strict=True):
            page = self.renderer.shown_in.get(need)
            target = posixpath.relpath(page, posixpath.dirname(self.page.path)) if page else ""
            link = "" if page == self.page.path else target
            links.append(f"[`{parameter}`]({link}#{need})" if page else f"`{parameter}`")
        word = {"vi": "Dùng kết quả của"}.get(self.language, "Uses the result of")
        return f"{word} {', '.join(links)}\n{{: .needs }}" if links else ""

    def figures(self, result: Result, options: dict[str, Any], numbers: list[int]) -> str:
        alts, captions = (self._texts(options.get(kind), kind, len(numbers)) for kind in ("alt", "caption"))
        if not all(alts):
            raise _Trouble(
                f'{result.name} draws {len(numbers)} figure(s): each needs alt="...", for those who cannot see it'
            )
        blocks = []
        for number, alt, caption in zip(numbers, alts, captions, strict=True):
            file = f"{result.name}-{number}.svg"
            self.page.figures[file] = result.figures[number - 1]
            target = posixpath.relpath(f"docs/figures/{file}", posixpath.dirname(self.page.path))
            title = f' "{escaped(caption)}"' if caption else ""
            blocks.append(f"![{escaped(alt)}]({target}{title})")
        return "\n\n".join(blocks)

    def _texts(self, given: Any, kind: str, count: int) -> list[str]:
        texts = given if isinstance(given, list) else [given or ""] * (count if not given else 1)
        if len(texts) != count:
            raise _Trouble(f"{kind}= has {len(texts)} text(s) for {count} figure(s); give a list with one for each")
        return [self._filled(text) for text in texts]

    def _filled(self, text: str) -> str:
        """Alt text or a caption with the values it quotes in place."""
        pieces, done = [], 0
        for directive in directives(text, self.page.path, self.page.problems):
            pieces += [text[done : directive.start], self.value(directive.expression)]
            done = directive.end
        return " ".join("".join([*pieces, text[done:]]).split())

    def value(self, expression: ast.expr) -> str:
        """A value that prose quotes, formatted for the page's language."""
        filtered = isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr)
        if isinstance(expression, ast.BinOp) and not filtered:
            raise _Trouble("prose quotes values and computes none: let the example return what is wanted")
        path = expression.left if isinstance(expression, ast.BinOp) else expression
        name, value = self._lookup(path)
        if value is _FAILED:
            return "(?)"
        if isinstance(expression, ast.BinOp):
            return self._filtered(value, expression.right, name)
        return self._plain(value, name)

    def _filtered(self, value: Any, call: ast.expr, name: str) -> str:
        word = ast.unparse(call.func) if isinstance(call, ast.Call) else ast.unparse(call)
        if word not in FILTERS:
            raise _Trouble(f"there is no filter {word}{nearest(word, FILTERS)}; there are {', '.join(FILTERS)}")
        arguments = call.args if isinstance(call, ast.Call) else []
        digits = getattr(arguments[0], "value", None) if arguments else DEFAULT_DIGITS.get(word)
        if not isinstance(digits, int) or len(arguments) > 1:
            raise _Trouble(f"say how many decimals: | {word}(2)")
        try:
            return formatted(value, word, digits, self.language)
        except TypeError as error:
            raise _Trouble(f"{name}: {error}") from None

    def _plain(self, value: Any, name: str) -> str:
        if isinstance(value, list):
            return ", ".join(self._plain(item, name) for item in value)
        if isinstance(value, bool | str):
            return str(value)
        if isinstance(value, int):
            return formatted(value, "num", 0, self.language)
        if isinstance(value, float):
            raise _Trouble(f"{name} is {value}: say how to write it, for instance | num(3)")
        raise _Trouble(f"{name} is {'nothing (None)' if value is None else 'a dict'}; quote one of its parts")

    def _lookup(self, path: ast.expr) -> tuple[str, Any]:
        steps = list(_steps(path))
        names = [step for step in steps if isinstance(step, str)]
        for length in range(len(names), 1, -1):
            name = ".".join(names[:length])
            if name in self.book.examples and steps[:length] == names[:length]:
                break
        else:
            wanted = ".".join(names[:2])
            raise _Trouble(self.book.why_missing(wanted))
        self.example(name)
        if name in self.renderer.failures:
            return name, _FAILED
        value: Any = self.renderer.results[name].values
        so_far = name
        for step in steps[length:]:
            value = _step(value, step, so_far)
            so_far += f".{step}" if isinstance(step, str) else f"[{_written(step)}]"
            if isinstance(value, dict) and "$unquotable" in value:
                raise _Trouble(f"{so_far} is {value['$unquotable']}")
        return so_far, value


class _Trouble(Exception):
    """What is wrong with a directive; becomes a problem of its page."""


_FAILED = object()


def _written(step: Any) -> str:
    return (
        ":".join("" if part is None else str(part) for part in (step.start, step.stop))
        if isinstance(step, slice)
        else repr(step)
    )


def _steps(path: ast.expr) -> Iterator[Any]:
    """`a.b.weights[2][0]` as "a", "b", "weights", 2, 0."""
    if isinstance(path, ast.Name):
        yield path.id
    elif isinstance(path, ast.Attribute):
        yield from _steps(path.value)
        yield path.attr
    elif isinstance(path, ast.Subscript):
        yield from _steps(path.value)
        try:
            if isinstance(path.slice, ast.Slice):
                yield slice(
                    *(
                        ast.literal_eval(part) if part else None
                        for part in (path.slice.lower, path.slice.upper, path.slice.step)
                    )
                )
            elif isinstance(path.slice, ast.Tuple):
                yield from (_Index(ast.literal_eval(part)) for part in path.slice.elts)
            else:
                yield _Index(ast.literal_eval(path.slice))
        except ValueError:
            raise _Trouble(f"[{ast.unparse(path.slice)}] is not a plain number, name in quotes or slice") from None
    else:
        raise _Trouble(f"`{ast.unparse(path)}` is not the name of a value such as attention.four_tokens.weights[2]")


@dataclass(frozen=True)
class _Index:
    """A subscript, told apart from an attribute of the same text."""

    key: Any

    def __repr__(self) -> str:
        return repr(self.key)


def _step(value: Any, step: Any, so_far: str) -> Any:
    if isinstance(value, dict):
        key = str(step.key if isinstance(step, _Index) else step)
        if key not in value:
            kept = ", ".join(value) or "no values"
            raise _Trouble(f"{so_far} has no {key}{nearest(key, value)} (it has {kept})")
        return value[key]
    if isinstance(value, list) and isinstance(step, slice):
        return value[step]
    if isinstance(value, list) and isinstance(step, _Index) and isinstance(step.key, int):
        if not -len(value) <= step.key < len(value):
            raise _Trouble(f"{so_far} has {len(value)} items, counted from 0: there is no [{step.key}]")
        return value[step.key]
    raise _Trouble(f"{so_far} is a {type(value).__name__}: .{step} leads nowhere")


def fenced(text: str, header: str) -> str:
    """Text in a code fence that nothing in the text can close."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {{ {header} }}\n{text}\n{fence}"


def escaped(text: str) -> str:
    """Text as Markdown shows it, letter by letter: nothing in it can be markup, a link, mathematics or HTML."""
    text = re.sub(r'[!"#$&*:<=>@\[\\\]^_`{|}~]', lambda found: f"&#{ord(found[0])};", " ".join(text.split()))
    return re.sub(r"^([-+]|\d+[.)])(?= )", lambda found: found[0][:-1] + f"&#{ord(found[0][-1])};", text)


def failure_text(failure: Failure) -> str:
    """One readable block for a failed example: what happened, where, and how the run got there."""
    lines = [f"{failure.path}:{failure.line}: {failure.name}: {failure.message}"]
    lines += [f"    {line}" for line in failure.trace]
    if failure.text:
        lines += ["  printed before that:", *(f"    {line}" for line in failure.text.splitlines()[-10:])]
    return "\n".join(lines)


def failure_block(failure: Failure) -> str:
    """The same in a page, in the place of what the example would have shown."""
    title = html.escape(f"{failure.name} failed").replace('"', "&quot;")
    return f'!!! failure "{title}"\n' + textwrap.indent(fenced(failure_text(failure), ".text"), "    ")
