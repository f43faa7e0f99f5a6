"""What the book has that nothing uses: examples no chapter shows, values nobody reads, sources nobody cites, chapters
nobody tests.

All of it is told from the text; nothing runs. A value is read by a chapter that quotes it, by a reference figure, or by
code that names its example (a test, an example that needs it) and writes the value's name, there or in what it calls.
Asked about are the names that an example writes in its own `return {...}`: a dict that a function makes is that
function's.
"""

import ast
import difflib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from executed import reference
from executed.book import DEFINITION, FUNCTION, SNIPPETS, Book, BookError, Module, Problem, dotted, read_module
from executed.citations import BIBLIOGRAPHY, CITATION, Bibliography, cited_keys
from executed.markup import Stretch, directives, parts
from executed.render import Page
from executed.store import RECORDS

SHOW = ("example", "output", "figure", "widget")
CONDITIONS = ("when_run", "when_not_run")


class Asked(NamedTuple):
    """An example or a value that a chapter asks for, step by step: `("attention", "four_tokens", "weights")`."""

    path: tuple[str, ...]
    page: str
    line: int
    shows: bool = True
    """It puts something on the page: not so a condition, which only decides what stands there."""
    all: bool = False
    """It hands every value to a script."""

    def split(self, book: Book) -> tuple[str, tuple[str, ...]]:
        """The example this leads to, or what stands where its name should, and the steps behind it."""
        lengths = range(len(self.path), 1, -1)
        length = next((one for one in lengths if ".".join(self.path[:one]) in book.examples), 2)
        return ".".join(self.path[:length]), self.path[length:]


def asked(page: Page) -> Iterator[Asked]:
    """What a chapter asks for, the paragraphs that only another machine shows included."""
    yield from _asked(page.source, page.path, 1)


def _asked(text: str, page: str, first: int) -> Iterator[Asked]:
    for directive in directives(text, page, []):
        line = first + directive.line - 1
        match directive.expression:
            case ast.Call(ast.Name(word), [ast.Constant(str(name)), *_], options) if word in SHOW + CONDITIONS:
                yield Asked(tuple(name.split(".")), page, line, word in SHOW, word == "widget")
                for option, node in ((given.arg, node) for given in options for node in ast.walk(given)):
                    match node:
                        case ast.Constant(str(text)) if (word, option) == ("widget", "loads"):
                            yield Asked(tuple(text.split(".")), page, line, all=True)
                        case ast.Constant(str(text)):
                            yield from _asked(text, page, line + node.lineno - 1)
            case ast.Call():
                pass
            case value:
                yield Asked(_path(value), page, line)


def _path(value: ast.expr) -> tuple[str, ...]:
    match value:
        case ast.BinOp(quoted):
            return _path(quoted)
        case ast.Name(name):
            return (name,)
        case ast.Attribute(owner, name) | ast.Subscript(owner, ast.Constant(str(name))):
            return (*_path(owner), name)
        case ast.Subscript(owner):
            return _path(owner)
    return ()


def module_of(page: str) -> str:
    """The snippet module of a chapter's name: `multi_head` for docs/multi-head.md and docs/vi/multi-head.md."""
    return Path(page).stem.replace("-", "_")


def about(page: str, problems: list[Problem]) -> list[Problem]:
    """Those of the problems that are for the author of one chapter to mend."""
    module = module_of(page)
    files = (page, f"{SNIPPETS}/{module}.py", f"tests/test_{module}.py", reference.FILE)
    return [one for one in problems if one.path in files or one.path.startswith(f"{RECORDS}/")]


def examples(book: Book, pages: list[Page]) -> list[Problem]:
    """Examples that no chapter shows or quotes, no reference figure asks for and no used example needs."""
    wanted = {one.split(book)[0]: f"{one.page}:{one.line}" for page in pages for one in asked(page) if one.shows}
    figures = {one.split(book)[0] for one in _figures(book)}
    used = book.order(name for name in {*wanted, *figures} if name in book.examples)
    nowhere = {name: place for name, place in wanted.items() if name not in book.examples}
    return [
        Problem(
            example.path,
            example.line,
            f'no chapter shows {name}: show it ({{{{ example("{name}") }}}}) or delete it{_meant(name, nowhere)}',
        )
        for name, example in book.examples.items()
        if name not in used
    ]


def _figures(book: Book) -> list[Asked]:
    paths = [path for figure in reference.read(book.root) for path in figure.paths]
    return [Asked(tuple(path.split(".")), reference.FILE, 1) for path in paths]


def _meant(name: str, nowhere: dict[str, str]) -> str:
    """The near miss the other way round: a name that leads nowhere, if it is close to this one that nobody asks for."""
    close = difflib.get_close_matches(name, nowhere, 1, 0.6)
    return f"; did {nowhere[close[0]]} mean it with {close[0]}?" if close else ""


def sources(book: Book, pages: list[Page]) -> list[Problem]:
    """Entries of the bibliography that no chapter cites."""
    cited: dict[str, str] = {}
    for page in pages:
        prose = [part for part in parts(page.source, page.path)[0] if isinstance(part, Stretch) and part.prose]
        for part in prose:
            for found in CITATION.finditer(part.text):
                line = part.line + part.text.count("\n", 0, found.start())
                cited |= dict.fromkeys(cited_keys(found[0]), f"{page.path}:{line}")
    try:
        lines = Bibliography(book.root).lines()
    except BookError as error:
        return list(error.problems)
    nowhere = {key: place for key, place in cited.items() if key not in lines}
    return [
        Problem(BIBLIOGRAPHY, line, f"no chapter cites {key}: cite it ([@{key}]) or delete it{_meant(key, nowhere)}")
        for key, line in lines.items()
        if key not in cited
    ]


def tests(book: Book, pages: list[Page]) -> list[Problem]:
    """Chapters that show examples of their own and have no tests of their name, or tests of something else."""
    chapters: dict[str, list[Asked]] = {}
    for page in pages:
        chapters.setdefault(module_of(page.path), []).extend(asked(page))
    files = {file.stem: file for file in sorted((book.root / "tests").glob("test_*.py"))}
    spare = {stem.removeprefix("test_"): f"tests/{stem}.py" for stem in files}
    spare = {name: path for name, path in spare.items() if name not in chapters}
    found = []
    for module, wanted in chapters.items():
        others = chapters.keys() - {module}  # they test what is theirs
        own = [(name, one) for one in wanted if (name := one.split(book)[0]) in book.examples]
        own = [(name, one) for name, one in own if name.split(".")[-2] not in others]
        path = f"tests/test_{module}.py"
        if own and f"test_{module}" not in files:
            name, first = own[0]
            message = f'no test checks what this chapter says: write {path}, on result("{name}"){_meant(module, spare)}'
            found.append(Problem(first.page, first.line, message))
        elif own:
            found += _tests_of_nothing(read_module(f"tests.{module}", path, files[f"test_{module}"].read_bytes()), own)
    return found


def _tests_of_nothing(module: Module, own: list[tuple[str, Asked]]) -> list[Problem]:
    """What is wrong with a chapter's tests, if they hold no test or ask for nothing that the chapter shows."""
    if module.scopes is None:
        return module.problems
    said, test = set[str](), False
    for node in ast.walk(module.tree):
        match node:
            case ast.Constant(str(text)):
                said.add(text)
            case ast.Import(names):
                said |= {alias.name for alias in names}
            case ast.ImportFrom(str(origin), names):
                said |= {origin, *(f"{origin}.{alias.name}" for alias in names)}
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                test = test or name.startswith("test_")
    name, first = own[0]
    if not test:
        message = f"no test is in here: write def test_...(result), one for each claim of {first.page}"
        return [Problem(module.path, 1, message)]
    if said & {word for name, _ in own for word in (name, f"{SNIPPETS}.{name.rpartition('.')[0]}")}:
        return []
    nowhere = dict.fromkeys(said, module.path)
    message = f'these tests ask for nothing that {first.page} shows: use result("{name}"){_meant(name, nowhere)}'
    return [Problem(module.path, 1, message)]


def values(book: Book, pages: list[Page]) -> list[Problem]:
    """Values that an example returns and nobody reads."""
    wanted: dict[str, dict[str, str]] = defaultdict(dict)
    read = _read_by_code(book)
    for one in [*(one for page in pages for one in asked(page)), *_figures(book)]:
        name, steps = one.split(book)
        wanted[name] |= dict.fromkeys(steps[:1], f"{one.page}:{one.line}")
        read[name] |= {".+"} if one.all else set()
    found = []
    for name, example in book.examples.items():
        lines = _returned(book.modules[example.module], example.function)
        nowhere = {key: place for key, place in wanted[name].items() if key not in lines}
        found += [
            Problem(
                example.path,
                line,
                f"{name} returns {key}, and nobody reads it: quote it ({{{{ {name}.{key} }}}}), test it or delete it"
                f"{_meant(key, nowhere)}",
            )
            for key, line in lines.items()
            if key not in wanted[name] and not any(re.fullmatch(written, key) for written in read[name])
        ]
    return found


def _returned(module: Module, function: str) -> dict[str, int]:
    """The names that a function writes in the dicts it returns, each with its line."""
    found: dict[str, int] = {}
    todo: list[ast.AST] = [
        statement
        for node in module.tree.body
        if isinstance(node, FUNCTION) and node.name == function
        for statement in node.body
    ]
    for node in todo:  # it grows
        match node:
            case ast.Return(ast.Dict(keys)):
                found |= {str(key.value): key.lineno for key in keys if isinstance(key, ast.Constant)}
            case ast.Return(ast.Call(ast.Name("dict"), keywords=keywords)):
                found |= {keyword.arg: keyword.value.lineno for keyword in keywords if keyword.arg}
        if not isinstance(node, (*DEFINITION, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return found


class _Statement(NamedTuple):
    """A top-level statement of a snippet module or a test file."""

    binds: set[str]
    names: set[str]
    """What it calls or names in another way, as `sorting.table`."""
    examples: set[str]
    """The examples that it names, as code or in a text, or needs."""
    writes: set[str]
    """Patterns of the texts and attributes in it."""


def _read_by_code(book: Book) -> defaultdict[str, set[str]]:
    """For each example, patterns of what is written in code that names it and in all that this code calls."""
    modules = dict(book.modules)
    for file in sorted((book.root / "tests").glob("test_*.py")):
        modules[f"tests.{file.stem}"] = read_module(f"tests.{file.stem}", f"tests/{file.name}", file.read_bytes())
    statements = [_statement(node, name, one, book) for name, one in modules.items() for node in one.tree.body]
    binding: dict[str, list[_Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.binds:
            binding[name].append(statement)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for statement in statements:
        reached, known = [statement], set[str]()
        for one in reached:  # it grows as names lead on
            reached += [other for name in one.names - known for other in binding.get(name, ())]
            known |= one.names
        for name in {name for one in reached for name in one.examples} - statement.binds:
            found[name] = found[name].union(*(one.writes for one in reached))
    return found


def _statement(node: ast.stmt, inside: str, module: Module, book: Book) -> _Statement:
    binds = {node.name} if isinstance(node, DEFINITION) else set()
    names, examples, writes = set[str](), set[str](), set[str]()
    for part in ast.walk(node):
        match part:
            case ast.Constant(str(text)):
                writes.add(re.escape(text))
                names.add(text)
            case ast.JoinedStr(pieces) if any(isinstance(piece, ast.Constant) for piece in pieces):
                texts = [re.escape(str(piece.value)) if isinstance(piece, ast.Constant) else ".+" for piece in pieces]
                writes.add("".join(texts))
                if "\\." in texts[0]:  # f"sorting.{name}"
                    examples |= {name for name in book.examples if re.fullmatch("".join(texts), name)}
            case ast.Attribute(_, attribute):
                writes.add(attribute)
                names.add(dotted(part).removeprefix(f"{SNIPPETS}."))
            case ast.Call(ast.Attribute(ast.Name() | ast.Attribute(), "items" | "values")) | ast.keyword(None):
                writes.add(".+")  # all of it
            case ast.Dict(keys) if None in keys:
                writes.add(".+")
            case ast.Name(name) | ast.arg(name):
                names.add(module.imported.get(name, f"{inside}.{name}"))
                if not isinstance(node, DEFINITION) and isinstance(getattr(part, "ctx", None), ast.Store):
                    binds.add(name)
    own = {f"{inside}.{name}" for name in binds}
    needs = {need for name in own & book.examples.keys() for need in book.examples[name].needs}
    # What an example writes is no word of those that name it.
    return _Statement(own, names - book.examples.keys(), examples | needs | names & book.examples.keys(), writes)
