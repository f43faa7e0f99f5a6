"""Reads `snippets/` as text: which definitions and examples exist, where, and what each example needs.

Nothing is imported here, so a broken module costs only itself and a build that runs nothing stays quick.
"""

import ast
import contextlib
import difflib
import gc
import hashlib
import io
import re
import symtable
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PureWindowsPath
from typing import Any

from executed.outside import mistake

SNIPPETS = "snippets"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)


@dataclass(frozen=True)
class Problem:
    """Something a person must mend: where it is, what is wrong, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class BookError(Exception):
    """One problem or more that stop what was asked; the message lists them."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean ...?` with the existing name closest to a misspelt one, or nothing."""
    known = list(names)
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if not close:  # a right name under the wrong module is a near miss too
        close = [other for other in known if other.rpartition(".")[2] == name.rpartition(".")[2]][:1]
    return f"; did you mean {close[0]}?" if close else ""


@dataclass(frozen=True)
class Options:
    """What `@example(...)` said. See `executed.example` for what each means."""

    timeout: float = 120.0
    memory: float = 4.0
    threads: int = 1
    alone: bool = False
    varies: bool = False
    raises: str = ""
    files: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


# What each option that is read as a plain value must be, and the words for it.
PLAIN_OPTIONS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "timeout": ((int, float), "a number of seconds"),
    "memory": ((int, float), "a number of GiB"),
    "threads": (int, "a whole number"),
    "alone": (bool, "True or False"),
    "varies": (bool, "True or False"),
    "files": ((list, tuple), "a list of paths"),
    "needs": ((str, list, tuple), 'text such as "hub:owner/model@revision", or a list of such'),
}


@dataclass(frozen=True)
class Span:
    """A stretch of a module's lines; `first` and `last` count from 1 and both belong to it."""

    first: int
    last: int


@dataclass(frozen=True)
class Example:
    """A function marked `@example`, known by its qualified name, `attention.four_tokens`."""

    name: str
    path: str
    line: int
    parameters: tuple[str, ...]
    options: Options
    body: str
    """What a page shows: the code without decorator, `def` line, docstring and closing `return`, dedented."""
    needs: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def function(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Module:
    """One file of `snippets/`, parsed. One that cannot be read has a problem, an empty tree and no scopes."""

    name: str
    path: str
    data: bytes
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    scopes: symtable.SymbolTable | None = None
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(self.data).readline)
            if encoding not in ("utf-8", "utf-8-sig"):
                raise SyntaxError(f"this is {encoding}; save the file as UTF-8")
            tree = ast.parse(self.data.decode(encoding), self.path)
            self.scopes = symtable.symtable(self.source, self.path, "exec")  # finds what the parser lets pass
            self.tree = tree
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            self.problems.append(Problem(self.path, line, "this is not UTF-8; save the file as UTF-8"))
        except (SyntaxError, ValueError) as error:  # ValueError: a null byte
            line = getattr(error, "lineno", 1) or 1
            self.problems.append(Problem(self.path, line, f"this is not Python: {getattr(error, 'msg', error)}"))
        except (RecursionError, MemoryError):
            self.problems.append(Problem(self.path, 1, "Python cannot parse this: it is nested too deeply"))

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def source(self) -> str:
        return self.data.decode("utf-8-sig", "replace")

    @cached_property
    def lines(self) -> list[str]:
        # Python's own idea of a line: str.splitlines would also split at form feeds.
        return self.source.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def text(self, span: Span) -> str:
        return "\n".join(self.lines[span.first - 1 : span.last])

    @cached_property
    def definitions(self) -> dict[str, Span]:
        """Every name that `code(...)` can show: functions, classes, methods and module constants."""
        return {
            name: Span(
                min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]),
                node.end_lineno or node.lineno,
            )
            for name, node in _named(self.tree.body)
        }

    @cached_property
    def imported(self) -> dict[str, str]:
        """Names that `from snippets.sorting import trained_sorter` binds, as `sorting.trained_sorter`."""
        found: dict[str, str] = {}
        for node in self._imports:
            if isinstance(node, ast.ImportFrom):
                package, _, module = absolute(node, self.name).partition(".")
                if package == SNIPPETS and module:
                    found |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
        return found

    @cached_property
    def mentioned(self) -> set[str]:
        """All that any of its imports names in `snippets`, be it a module or something in one: what it can lead to."""
        found = set()
        for node in self._imports:
            base = absolute(node, self.name) if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                words = [*base.split("."), *alias.name.split(".")] if base else alias.name.split(".")
                if words[0] == SNIPPETS:
                    found |= {".".join(words[1:length]) for length in range(2, len(words) + 1)}
        return found

    @cached_property
    def _imports(self) -> list[ast.Import | ast.ImportFrom]:
        inside = any("import" in line and not line.startswith(("import ", "from ")) for line in self.lines)
        inside = inside or any(line.endswith("\\") for line in self.lines)  # the next line may be part of a statement
        nodes = ast.walk(self.tree) if inside else self.tree.body
        return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]

    @cached_property
    def examples(self) -> dict[str, Example]:
        found: dict[str, Example] = {}
        inside = re.search(r"^[ \t]+@(executed\.)?example\b", self.source, re.M)
        for node in ast.walk(self.tree) if inside else self.tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for decorator in filter(is_example_decorator, node.decorator_list):
                name = f"{self.name}.{node.name}"
                if node not in self.tree.body:
                    self._problem(node, f"{node.name} is inside another statement; an example stands by itself")
                    continue
                if name in found:
                    self._problem(node, f"{name} is defined twice; the first is at line {found[name].line}")
                found[name] = self._example(node, decorator)
        return found

    def _example(self, node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> Example:
        if isinstance(node, ast.AsyncFunctionDef):
            self._problem(node, f"{node.name} is async; an example is an ordinary function")
        given = node.args
        if given.vararg or given.kwarg or given.posonlyargs or given.defaults or any(given.kw_defaults):
            self._problem(node, f"{node.name} may only have plain parameters, each the name of an example it needs")
        return Example(
            f"{self.name}.{node.name}",
            self.path,
            node.lineno,
            tuple(parameter.arg for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs)),
            self._options(decorator),
            _shown_body(node, self.lines),
        )

    def _options(self, decorator: ast.expr) -> Options:
        options: dict[str, object] = {}
        if not isinstance(decorator, ast.Call):
            return Options()
        if decorator.args:
            self._problem(decorator, "@example takes named options only, such as timeout=300")
        for keyword in decorator.keywords:
            name, value = keyword.arg or "**", keyword.value
            if name == "raises" and (dotted(value) or isinstance(value, ast.Constant)):
                options[name] = dotted(value).rpartition(".")[2]
            elif name == "raises":
                self._problem(value, "raises= names one exception, such as raises=ValueError")
            elif name in PLAIN_OPTIONS:
                kind, words = PLAIN_OPTIONS[name]
                try:
                    plain: Any = ast.literal_eval(value)
                except (ValueError, TypeError):
                    plain = None
                if isinstance(plain, kind) and isinstance(plain, bool) == (kind is bool):
                    plain = [plain] if isinstance(plain, str) else plain
                    options[name] = tuple(plain) if isinstance(plain, list | tuple) else plain
                else:
                    self._problem(value, f"@example reads {name}= from the text: write {words}")
            else:
                self._problem(decorator, f"@example has no option {name}{nearest(name, [*PLAIN_OPTIONS, 'raises'])}")
        chosen = Options(**options)  # type: ignore[arg-type]
        for file in chosen.files:
            if (path := PureWindowsPath(file)).anchor or ".." in path.parts:
                self._problem(decorator, f"files={file!r} leads out of the repository: name a path inside it")
        for wrong in filter(None, map(mistake, chosen.needs)):
            self._problem(decorator, wrong)
        if chosen.threads > 1 and not chosen.alone:
            self._problem(decorator, "threads= above 1 needs alone=True: examples share the cores")
        return chosen

    def _problem(self, node: ast.stmt | ast.expr, message: str) -> None:
        self.problems.append(Problem(self.path, node.lineno, message))


def _named(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, DEFINITION):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _named(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, node


def dotted(expression: ast.expr) -> str:
    """`functools.cache` for that expression; nothing for one that is more than names and dots."""
    names: list[str] = []
    while isinstance(expression, ast.Attribute):
        names.append(expression.attr)
        expression = expression.value
    return ".".join([expression.id, *reversed(names)]) if isinstance(expression, ast.Name) else ""


def is_example_decorator(decorator: ast.expr) -> bool:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) in ("example", "executed.example")


def _shown_body(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    """The body as a page shows it: without its docstring and without the closing `return`, dedented."""
    lines = lines[node.lineno - 1 : node.end_lineno]
    text = "\n".join(lines)

    def offset(line: int | None, column: int | None) -> int:
        before = lines[: (line or 0) - node.lineno + 1]
        # Python counts a column in bytes.
        return sum(len(one) + 1 for one in before[:-1]) + len(before[-1].encode()[:column].decode())

    # The header ends at the first colon, comments aside, after the last of its annotations and defaults.
    header = [*ast.walk(node.args), *getattr(node, "type_params", ()), *([node.returns] if node.returns else [])]
    ends = [(part.end_lineno, part.end_col_offset) for part in header if hasattr(part, "end_lineno")]
    start = _after(r"(?:[^:#]|#[^\n]*)*?:", text, offset(*max(ends, default=(node.lineno, node.col_offset))))
    body = list(node.body)
    if ast.get_docstring(node, clean=False) is not None:
        docstring = body.pop(0)
        start = offset(docstring.end_lineno, docstring.end_col_offset)
    closing = body and isinstance(body[-1], ast.Return)
    end = offset(body[-1].lineno, body[-1].col_offset) if closing else len(text)
    start = _after(r"[ \t]*;?[ \t]*(?:#[^\n]*|\\)?\n?", text, start)  # a comment on the `def` line belongs to that line
    kept = text[start:end].rstrip(" \t\f")
    kept = kept.rstrip() if kept.endswith("\n") else kept.rstrip(" \t\f;\\")  # `x = 1; return x`
    inside = _inside_strings(text) if any(sign in kept for sign in ('"""', "'''", "\\\n")) else ()
    shown, first = kept.split("\n"), text.count("\n", 0, start) + 1
    code = [line for line in shown if line.strip() and not line.lstrip().startswith("#")] or shown
    indent = code[0][: -len(code[0].lstrip())] if code[0].strip() else ""
    shown = [
        line if number in inside else line.removeprefix(indent) if line.startswith(indent) else line.lstrip()
        for number, line in enumerate(shown, first)
    ]
    return "\n".join(shown).strip("\n")


def _after(pattern: str, text: str, start: int) -> int:
    found = re.compile(pattern).match(text, start)
    return found.end() if found else start


def _inside_strings(text: str) -> set[int]:
    """The lines that begin inside a string: their indentation is part of what the code says."""
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if "STRING" in tokenize.tok_name[token.type]
        for line in range(token.start[0] + 1, token.end[0] + 1)
    }


def language_of(path: str, default: str) -> str:
    """The language of a chapter, by its path below `docs/`: that of its folder (`vi/`), else the book's own."""
    folder = path.partition("/")[0]
    return folder if len(folder) == 2 and folder.isalpha() else default


def absolute(node: ast.ImportFrom, importer: str) -> str:
    """The module that `from ... import` names, with `from .` resolved as it stands in the snippet module `importer`."""
    package = f"{SNIPPETS}.{importer}".split(".")[: -node.level] if node.level else []
    return ".".join([*package, *([node.module] if node.module else [])])


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Syntax trees are many objects and no garbage: looking for some among them takes as long as parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@lru_cache(maxsize=4096)
@no_garbage_collection()
def read_module(name: str, path: str, data: bytes) -> Module:
    """Parse a module, or hand out what was parsed of the same text before."""
    module = Module(name, path, data)
    _ = module.examples  # they find problems of their own
    return module


def _circle(graph: dict[str, tuple[str, ...]]) -> list[str]:
    """One circle of needs, its first name again at its end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


@dataclass(frozen=True)
class Settings:
    """`[tool.executed]` in pyproject.toml."""

    preload: tuple[str, ...] = ()
    language: str = "en"
    notebooks: bool = False
    """Whether each chapter is published as a notebook too."""


@dataclass
class Book:
    """All snippet modules and examples of the repository at `root`."""

    root: Path
    settings: Settings
    modules: dict[str, Module]
    examples: dict[str, Example]
    problems: list[Problem]
    unusable: dict[str, Problem] = field(default_factory=dict)
    """Examples that were left out, each with the problem that is to blame."""

    @classmethod
    def read(cls, root: Path) -> "Book":
        """Read the book. Problems are collected, not raised: they cost only what they touch."""
        book = cls(root, read_settings(root), {}, {}, [])
        for file in sorted((root / SNIPPETS).rglob("*.py")):
            parts = file.relative_to(root / SNIPPETS).with_suffix("").parts
            path = file.relative_to(root).as_posix()
            if any(part.startswith(".") for part in parts) or not file.is_file():  # an editor's copies
                continue
            if not all(part.isidentifier() for part in parts):
                book.problems.append(Problem(path, 1, "Python cannot import a file of this name; use a-z, 0-9 and _"))
                continue
            name = ".".join(parts)
            book.modules[name] = read_module(name, path, file.read_bytes())
            book.problems += book.modules[name].problems
            book.examples |= book.modules[name].examples
        for one in list(book.examples.values()):
            book._resolve_needs(one)
        book._leave_out_unusable()
        return book

    def _resolve_needs(self, example: Example) -> None:
        module = self.modules[example.module]
        needs = []
        for parameter in example.parameters:
            need = f"{example.module}.{parameter}"
            need = need if need in self.examples else self._origin(module.imported.get(parameter, need))
            if need not in self.examples:
                here = [name.rpartition(".")[2] for name in module.examples]
                here += [name for name, origin in module.imported.items() if self._origin(origin) in self.examples]
                elsewhere = [name for name in self.examples if name.rpartition(".")[2] == parameter][:1]
                hint = nearest(parameter, here)
                if elsewhere and not hint:
                    hint = "; write from {}.{} import {}".format(SNIPPETS, *elsewhere[0].rsplit(".", 1))
                self._leave_out(
                    example,
                    f"{example.name} needs {parameter}, and no example of that name is defined or imported here{hint}",
                )
            needs.append(need)
        self.examples[example.name] = replace(example, needs=tuple(needs))

    def _origin(self, name: str) -> str:
        """Where a name was first defined: it may be imported through several modules."""
        for _ in range(len(self.modules)):
            module, _, attribute = name.rpartition(".")
            if name in self.examples or module not in self.modules:
                break
            name = self.modules[module].imported.get(attribute, name)
        return name

    def _leave_out(self, example: Example, message: str) -> None:
        problem = Problem(example.path, example.line, message)
        self.problems.append(problem)
        self.unusable.setdefault(example.name, problem)

    def _leave_out_unusable(self) -> None:
        """Drop examples whose needs are missing or form a circle, and all that need those."""
        graph = {name: one.needs for name, one in self.examples.items()}
        while circle := _circle(graph):
            words = f"examples need each other in a circle: {' -> '.join(circle)}"
            self._leave_out(self.examples[circle[0]], words)
            for name in set(circle):
                self.unusable.setdefault(name, self.problems[-1])
                del graph[name]
        for name in TopologicalSorter(graph).static_order():
            for need in graph.get(name, ()):
                if need in self.unusable:
                    self.unusable.setdefault(name, self.unusable[need])
        self.examples = {name: one for name, one in self.examples.items() if name not in self.unusable}

    def order(self, names: Iterable[str]) -> list[str]:
        """The named examples and all they need, each after what it needs."""
        needs: dict[str, tuple[str, ...]] = {}
        todo = list(names)
        for name in todo:  # it grows as needs turn up
            if name not in needs:
                needs[name] = self.examples[name].needs
                todo += needs[name]
        return list(TopologicalSorter(needs).static_order())

    def why_missing(self, name: str) -> str:
        """Why there is no example (or module) of this name, in words that help to mend it."""
        if name in self.unusable:
            return f"{name} cannot be used: {self.unusable[name]}"
        owner, _, definition = name.rpartition(".")
        for module in (self.modules.get(owner), self.modules.get(name)):
            if module and module.scopes is None:
                return f"{name} cannot be used: {module.problems[0]}"
            if module and definition in module.definitions:
                line = module.definitions[definition].first
                return f"{name} ({module.path}:{line}) is not marked @example"
        return f"there is no example {name}{nearest(name, self.examples)}"


def read_settings(root: Path) -> Settings:
    file = root / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("executed", {}) if file.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise BookError(Problem("pyproject.toml", int(line[1]) if line else 1, f"this is not TOML: {error}")) from None
    for name in table:
        if name not in (known := [item.name for item in fields(Settings)]):
            hint = nearest(name, known)
            raise BookError(Problem("pyproject.toml", 1, f"[tool.executed] has no setting {name}{hint}"))
    return Settings(tuple(table.get("preload", ())), table.get("language", "en"), bool(table.get("notebooks")))


def find_root(start: Path) -> Path:
    """The repository root: the nearest folder at or above `start` that holds `snippets/` and pyproject.toml."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / SNIPPETS).is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise BookError(Problem(str(start), 1, "no book here: no folder above holds snippets/ and pyproject.toml"))
