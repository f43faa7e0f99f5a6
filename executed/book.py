"""Reads `snippets/` as text: which definitions and examples exist, where, and what each example needs.

Nothing is imported here, so a broken module costs only itself and a build that runs nothing stays quick.
"""

import ast
import difflib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path

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
    body: tuple[Span, ...]
    needs: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def function(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Module:
    """One file of `snippets/`, parsed. A file that does not parse has a problem and an empty tree."""

    name: str
    path: str
    source: str
    tree: ast.Module = field(init=False)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.tree = ast.parse(self.source, self.path)
        except (SyntaxError, ValueError) as error:  # ValueError: a null byte
            self.tree = ast.Module([], [])
            line = getattr(error, "lineno", 1) or 1
            self.problems.append(Problem(self.path, line, f"this is not Python: {getattr(error, 'msg', error)}"))

    @cached_property
    def lines(self) -> list[str]:
        # Python's own idea of a line: str.splitlines would also split at form feeds.
        return self.source.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def text(self, span: Span) -> str:
        return "\n".join(self.lines[span.first - 1 : span.last])

    @cached_property
    def definitions(self) -> dict[str, Span]:
        """Every name that `code(...)` can show: functions, classes, methods and module constants."""
        found: dict[str, Span] = {}
        for name, node in _named(self.tree.body):
            found[name] = Span(
                min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]),
                node.end_lineno or node.lineno,
            )
        return found

    @cached_property
    def imported(self) -> dict[str, str]:
        """Names that `from snippets.sorting import trained_sorter` binds, as `sorting.trained_sorter`."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (target := snippet_module(node.module, node.level, self.name)):
                found |= {alias.asname or alias.name: f"{target}.{alias.name}" for alias in node.names}
        return found

    @cached_property
    def examples(self) -> dict[str, Example]:
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in filter(is_example_decorator, node.decorator_list):
                    found[f"{self.name}.{node.name}"] = self._example(node, decorator)
        return found

    def _example(self, node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> Example:
        if isinstance(node, ast.AsyncFunctionDef):
            self._problem(node, f"{node.name} is async; an example is an ordinary function")
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.defaults or any(arguments.kw_defaults):
            self._problem(node, f"{node.name} may only have plain parameters, each the name of an example it needs")
        parameters = [p.arg for p in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return Example(
            f"{self.name}.{node.name}",
            self.path,
            node.lineno,
            tuple(parameters),
            self._options(decorator),
            tuple(_shown_body(node, self.lines)),
        )

    def _options(self, decorator: ast.expr) -> Options:
        options: dict[str, object] = {}
        if not isinstance(decorator, ast.Call):
            return Options()
        kinds = {item.name: item.type for item in fields(Options)}
        for keyword in decorator.keywords:
            name = keyword.arg or "**"
            if name not in kinds:
                self._problem(decorator, f"@example has no option {name}{nearest(name, kinds)}")
            elif name == "raises":
                options[name] = ast.unparse(keyword.value).rpartition(".")[2]
            else:
                try:
                    value = ast.literal_eval(keyword.value)
                    options[name] = tuple(value) if name == "files" else value
                except (ValueError, TypeError):
                    self._problem(keyword.value, f"@example reads {name}= from the text: write a plain value")
        if decorator.args:
            self._problem(decorator, "@example takes named options only, such as timeout=300")
        chosen = Options(**options)  # type: ignore[arg-type]
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


def is_example_decorator(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named) in ("example", "executed.example")


def _shown_body(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> Iterator[Span]:
    """The lines a page shows: the body without its docstring and without the closing `return`."""
    body = node.body
    # A one-line function, or a body that begins on the `def` line, has nothing to cut between lines.
    first = max(node.lineno, *(p.lineno for p in ast.walk(node.args) if isinstance(p, ast.arg)), 0) + 1
    if node.returns is not None:
        first = max(first, (node.returns.end_lineno or 0) + 1)
    while first < body[0].lineno and lines[first - 1].lstrip().startswith(")"):
        first += 1
    last = node.end_lineno or node.lineno
    if ast.get_docstring(node, clean=False) is not None:
        first = (body[0].end_lineno or first) + 1
    if isinstance(body[-1], ast.Return):
        last = body[-1].lineno - 1
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    if first <= last:
        yield Span(first, last)


def snippet_module(module: str | None, level: int, importer: str) -> str | None:
    """The snippet module an import names (`snippets.attention` is `attention`), or None for any other."""
    if level:
        parts = f"{SNIPPETS}.{importer}".split(".")[:-level]
        module = ".".join([*parts, *([module] if module else [])])
    package, _, name = (module or "").partition(".")
    return name if package == SNIPPETS and name else None


@lru_cache(maxsize=4096)
def read_module(name: str, path: str, source: str) -> Module:
    return Module(name, path, source)


@dataclass(frozen=True)
class Settings:
    """`[tool.executed]` in pyproject.toml."""

    preload: tuple[str, ...] = ()
    language: str = "en"


@dataclass
class Book:
    """All snippet modules and examples of the repository at `root`."""

    root: Path
    settings: Settings
    modules: dict[str, Module]
    examples: dict[str, Example]
    problems: list[Problem]

    @classmethod
    def read(cls, root: Path) -> "Book":
        """Read the book. Problems are collected, not raised: they cost only what they touch."""
        modules = {}
        for file in sorted((root / SNIPPETS).rglob("*.py")):
            name = ".".join(file.relative_to(root / SNIPPETS).with_suffix("").parts)
            path = file.relative_to(root).as_posix()
            modules[name] = read_module(name, path, file.read_bytes().decode("utf-8", "replace"))
        examples = {name: one for module in modules.values() for name, one in module.examples.items()}
        book = cls(root, _settings(root), modules, {}, [p for m in modules.values() for p in m.problems])
        for one in examples.values():
            book._resolve_needs(one, examples)
        book._drop_cycles()
        return book

    def _resolve_needs(self, example: Example, examples: dict[str, Example]) -> None:
        module = self.modules[example.module]
        needs = []
        for parameter in example.parameters:
            need = f"{example.module}.{parameter}"
            need = need if need in examples else module.imported.get(parameter, need)
            for _ in range(len(self.modules)):  # a name may be imported through several modules
                if need in examples or need.rpartition(".")[0] not in self.modules:
                    break
                owner, _, name = need.rpartition(".")
                need = self.modules[owner].imported.get(name, need)
            if need not in examples:
                known = [*(e.rpartition(".")[2] for e in module.examples), *module.imported]
                self.problems.append(
                    Problem(
                        example.path,
                        example.line,
                        f"{example.name} needs {parameter}, and no example of that name is defined or imported "
                        f"here{nearest(parameter, known)}",
                    )
                )
                return
            needs.append(need)
        self.examples[example.name] = Example(**{**vars(example), "needs": tuple(needs)})

    def _drop_cycles(self) -> None:
        sound: dict[str, bool] = {}

        def follow(name: str, chain: tuple[str, ...]) -> bool:
            if name in chain:
                circle = " -> ".join([*chain[chain.index(name) :], name])
                here = self.examples[name]
                self.problems.append(Problem(here.path, here.line, f"examples need each other in a circle: {circle}"))
                return False
            if name not in sound:
                known = name in self.examples
                sound[name] = known and all(follow(need, (*chain, name)) for need in self.examples[name].needs)
            return sound[name]

        self.examples = {name: one for name, one in self.examples.items() if follow(name, ())}

    def order(self, names: Iterable[str]) -> list[str]:
        """The named examples and all they need, each after what it needs."""
        seen: dict[str, None] = {}

        def visit(name: str) -> None:
            for need in self.examples[name].needs:
                visit(need)
            seen.setdefault(name)

        for name in names:
            if name not in seen:
                visit(name)
        return list(seen)

    def why_missing(self, name: str) -> str:
        """Why there is no example (or module) of this name, in words that help to mend it."""
        module = name.partition(".")[0]
        for problem in self.problems:
            if problem.path == f"{SNIPPETS}/{module}.py":
                return f"{name} cannot be used: {problem}"
        return f"there is no example {name}{nearest(name, self.examples)}"


def _settings(root: Path) -> Settings:
    file = root / "pyproject.toml"
    table = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("executed", {}) if file.exists() else {}
    for name in table:
        if name not in (known := [item.name for item in fields(Settings)]):
            hint = nearest(name, known)
            raise BookError(Problem("pyproject.toml", 1, f"[tool.executed] has no setting {name}{hint}"))
    return Settings(tuple(table.get("preload", ())), table.get("language", "en"))


def find_root(start: Path) -> Path:
    """The repository root: the nearest folder at or above `start` that holds `snippets/` and pyproject.toml."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / SNIPPETS).is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise BookError(Problem(str(start), 1, "no book here: no folder above holds snippets/ and pyproject.toml"))
