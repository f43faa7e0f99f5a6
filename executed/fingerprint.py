"""What an example's result depends on, function by function, read from the source text alone.

From an example's body every name is followed: to definitions in its module, through imports to other snippet
modules, and out to installed packages, of which the version counts. Importing a module runs its top level, so
whatever there is more than a plain definition counts for every example that touches the module. Where names
cannot be followed (`globals()`, `eval`, star imports) whole modules count. When in doubt, run again.
"""

import ast
import builtins
import hashlib
import importlib.metadata
import json
import platform
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from executed.book import (
    DEFINITION,
    FUNCTION,
    SNIPPETS,
    Book,
    Example,
    Module,
    is_example_decorator,
    read_module,
    snippet_module,
)

# Code that uses these names or attributes may reach anything in the loaded modules, comments and docstrings included.
OPAQUE_NAMES = {"globals", "vars", "help", "__file__"}
OPAQUE_ATTRIBUTES = {
    "__doc__",
    "__globals__",
    "__dict__",
    "__code__",
    "__subclasses__",
    "__module__",
    "f_globals",
    "f_back",
    "f_lineno",
    "_getframe",
    "__file__",
}
OPAQUE_MODULES = {"inspect", "traceback", "linecache", "gc", "pickletools", "ast", "dis"}
# And these may load any module by a name that only the run knows.
ANYWHERE_NAMES = {"eval", "exec", "compile", "__import__", "__builtins__", "__loader__", "__spec__"}
ANYWHERE_MODULES = {"importlib", "runpy", "pkgutil", "builtins"}
# Decorators that do nothing but wrap what they decorate. Any other may register it somewhere.
PURE_DECORATORS = {
    "dataclass",
    "dataclasses.dataclass",
    "property",
    "staticmethod",
    "classmethod",
    "cached_property",
    "functools.cache",
    "functools.lru_cache",
    "functools.wraps",
    "contextmanager",
    "torch.no_grad",
    "contextlib.contextmanager",
    "torch.inference_mode",
    "example",
    "executed.example",
}
# Expressions that can be evaluated at import without any effect beyond their value.
PLAIN = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.BinOp,
    ast.UnaryOp,
    ast.Subscript,
    ast.Slice,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
    ast.keyword,
    ast.Lambda,
    ast.arguments,
    ast.JoinedStr,
    ast.FormattedValue,
)


@dataclass(frozen=True)
class Fingerprint:
    """A hash and, for `executed status`, the parts it was made of."""

    digest: str
    parts: dict[str, str]


@dataclass(frozen=True)
class Import:
    """One name an import binds: from where, and which name there (None: the module itself)."""

    bound: str
    module: str
    snippet: str | None
    attribute: str | None


@dataclass(frozen=True)
class Statement:
    """A top-level statement of a module: what it binds, what it reads, and whether importing it has effects."""

    label: str
    digest: str
    binds: frozenset[str]
    reads: frozenset[str]
    opaque: bool
    anywhere: bool
    attributes: frozenset[tuple[str, str]]
    bare: frozenset[str]
    imports: tuple[Import, ...]
    effects: bool


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _imports(node: ast.AST, importer: str) -> Iterator[Import]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            for alias in inner.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield Import(bound, alias.name, snippet_module(alias.name, 0, importer), None)
        elif isinstance(inner, ast.ImportFrom):
            snippet = snippet_module(inner.module, inner.level, importer)
            for alias in inner.names:
                if snippet is None and inner.module == SNIPPETS:  # from snippets import attention
                    yield Import(alias.asname or alias.name, SNIPPETS, alias.name, None)
                else:
                    yield Import(alias.asname or alias.name, inner.module or SNIPPETS, snippet, alias.name)


def _global_reads(text: str) -> frozenset[str]:
    """Names a statement may look up in its module: Python's own scope analysis, so a local never counts."""
    names: set[str] = set()

    def visit(table: symtable.SymbolTable, top: bool) -> None:
        loose = top or table.get_type() == "class"  # at these levels a name is looked up when the line runs
        names.update(s.get_name() for s in table.get_symbols() if s.is_referenced() and (loose or s.is_global()))
        names.update(s.get_name() for s in table.get_symbols() if s.is_declared_global())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(text, "snippet", "exec"), True)
    return frozenset(names)


def _has_effects(node: ast.stmt, outside: set[str]) -> bool:
    """Whether running this top-level statement can do more than bind a name to something plain."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return False
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        plain = all(isinstance(part, PLAIN) for part in ast.walk(node.value)) if node.value else True
        return not plain or not all(
            isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for target in targets for part in ast.walk(target)
        )
    if not isinstance(node, DEFINITION):
        return True
    for decorator in node.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(named) not in PURE_DECORATORS:
            return True
    if isinstance(node, ast.ClassDef):
        if node.keywords or not all(_root(base) in outside for base in node.bases):
            return True  # a metaclass, or a base class of the book's own that may keep a list of its subclasses
        return any(_has_effects(member, outside) for member in node.body if not isinstance(member, ast.Pass))
    evaluated = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
    return not all(isinstance(part, PLAIN) for default in evaluated for part in ast.walk(default))


def _root(expression: ast.expr) -> str:
    """`nn` for `nn.Module` and for `nn.Module[int]`; nothing for a call."""
    while isinstance(expression, ast.Attribute | ast.Subscript):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (*DEFINITION, ast.Module)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]


@lru_cache(maxsize=4096)
def statements(name: str, path: str, source: str) -> tuple[Statement, ...]:
    """The top-level statements of a module, each analysed on its own."""
    module = read_module(name, path, source)
    if not module.tree.body:
        return ()
    tree = ast.parse(source)
    _strip_docstrings(tree)
    outside = {one.bound for one in _imports(tree, name) if one.snippet is None and one.module != SNIPPETS}
    return tuple(_statement(module, node, outside | set(dir(builtins))) for node in tree.body)


def _statement(module: Module, node: ast.stmt, outside: set[str]) -> Statement:
    effects = _has_effects(node, outside)
    if isinstance(node, FUNCTION):  # an example's options are hashed by what they mean, not by how they are written
        node.decorator_list = [d for d in node.decorator_list if not is_example_decorator(d)]
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    text = "\n".join(module.lines[first - 1 : node.end_lineno])
    imports = tuple(_imports(node, module.name))
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    attributes = [inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute)]
    # A module used only as `attention.softmax` gives away which part is read; any other use hands over all of it.
    dotted = [a.value for a in attributes if isinstance(a.value, ast.Name) and isinstance(a.ctx, ast.Load)]
    bare = {name.id for name in names if not any(name is other for other in dotted)}
    words = {name.id for name in names}
    words_after_dot = {a.attr for a in attributes} | {one.attribute or "" for one in imports}
    packages = {one.module.partition(".")[0] for one in imports} | words
    if isinstance(node, DEFINITION):
        binds = {node.name}
    else:
        binds = {name.id for name in names if not isinstance(name.ctx, ast.Load)} | {one.bound for one in imports}
        binds |= {inner.name for inner in ast.walk(node) if isinstance(inner, DEFINITION)}
    plain = binds and not (effects and not isinstance(node, DEFINITION))
    label = ", ".join(sorted(binds)) if plain else f"line `{text.strip().splitlines()[0][:50]}`"
    return Statement(
        label,
        sha(ast.dump(node)),
        frozenset(binds),
        _global_reads(text),
        opaque=bool(words & OPAQUE_NAMES or words_after_dot & OPAQUE_ATTRIBUTES or packages & OPAQUE_MODULES),
        anywhere=bool(words & ANYWHERE_NAMES or packages & ANYWHERE_MODULES or _uses_sys_modules(node)),
        attributes=frozenset((a.value.id, a.attr) for a in attributes if isinstance(a.value, ast.Name)),
        bare=frozenset(bare),
        imports=imports,
        effects=effects,
    )


def _uses_sys_modules(node: ast.AST) -> bool:
    """`modules` alone would not do: `model.modules()` is PyTorch's."""
    return "sys.modules" in (text := ast.unparse(node)) or "from sys import" in text


class Reach:
    """Everything one example can reach, gathered by following names."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.parts: dict[str, str] = {}
        self.touched: set[str] = set()
        self.opaque = self.anywhere = False
        self._seen: set[tuple[str, int]] = set()

    def statements(self, module: str) -> tuple[Statement, ...]:
        found = self.book.modules[module]
        return statements(found.name, found.path, found.source)

    def touch(self, module: str) -> None:
        """The module gets imported: its top-level effects count, and those of what it imports."""
        if module in self.touched or module not in self.book.modules:
            return
        self.touched.add(module)
        self.touch("__init__")
        every = self.statements(module)
        used = {name for statement in every for name in statement.reads}
        for index, statement in enumerate(every):
            if statement.effects:
                self.visit(module, index)
            for one in statement.imports:
                if one.snippet:
                    self.touch(one.snippet)
                if one.attribute == "*" or one.bound not in used:  # imported for its effect
                    self.follow(one)

    def visit(self, module: str, index: int) -> None:
        if (module, index) in self._seen:
            return
        self._seen.add((module, index))
        self.touch(module)
        statement = self.statements(module)[index]
        part = f"{module}.{statement.label}"
        self.parts[part] = sha(self.parts.get(part, "") + statement.digest)
        self.opaque |= statement.opaque
        self.anywhere |= statement.anywhere
        for one in statement.imports:
            self.follow(one, statement)
        for name in sorted(statement.reads - {one.bound for one in statement.imports}):
            self.name(module, name, statement)

    def name(self, module: str, name: str, reader: Statement | None = None) -> bool:
        """Follow a name as the module's top level binds it. False where nothing binds it."""
        found = False
        for index, statement in enumerate(self.statements(module)):
            if name not in statement.binds:
                continue
            found = True
            targets = [one for one in statement.imports if one.bound == name]
            for one in targets:
                self.follow(one, reader)
            if not targets:
                self.visit(module, index)
        return found

    def follow(self, one: Import, reader: Statement | None = None) -> None:
        """Follow an import to the definition, module or installed package behind it."""
        if one.snippet is None:
            if one.module == SNIPPETS:
                self.anywhere = True
            elif (one.module, one.attribute) != ("executed", "example"):
                self.package(one.module.partition(".")[0])
            return
        self.touch(one.snippet)
        if one.snippet not in self.book.modules:
            return
        if one.attribute and one.attribute != "*":
            if f"{one.snippet}.{one.attribute}" in self.book.modules:
                self.whole(f"{one.snippet}.{one.attribute}")
            elif not self.name(one.snippet, one.attribute):
                self.whole(one.snippet)  # a module-level __getattr__, or a star import
        elif (
            one.attribute is None
            and reader
            and one.bound not in reader.bare
            and "." not in one.module.removeprefix(f"{SNIPPETS}.")
        ):
            for owner, attribute in reader.attributes:
                if owner == one.bound and not self.name(one.snippet, attribute):
                    self.whole(one.snippet)
        else:
            self.whole(one.snippet)

    def whole(self, module: str) -> None:
        """Every statement of the module, and its text with comments and docstrings."""
        key = f"all of {module}"
        if key in self.parts or module not in self.book.modules:
            return
        self.parts[key] = sha(self.book.modules[module].source)
        self.touch(module)
        for index in range(len(self.statements(module))):
            self.visit(module, index)

    def package(self, name: str) -> None:
        if name in sys.stdlib_module_names:
            return
        local = [file for file in (self.book.root / f"{name}.py", self.book.root / name) if file.exists()]
        if local:
            files = sorted(local[0].rglob("*.py")) if local[0].is_dir() else local
            self.parts[f"files of {name}"] = sha("".join(sha(file.read_bytes()) for file in files))
        else:
            self.parts[f"package {name}"] = version(name)

    def settle(self) -> None:
        """Add the whole modules that opaque code asks for, until nothing new turns up."""
        size = -1
        while size != len(self.parts) and (self.opaque or self.anywhere):
            size = len(self.parts)
            for module in list(self.book.modules if self.anywhere else self.touched):
                self.whole(module)


@lru_cache(maxsize=256)
def version(package: str) -> str:
    """The installed version of the distribution that an import name belongs to."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        owners = _distributions().get(package, [])
        return ", ".join(f"{owner} {importlib.metadata.version(owner)}" for owner in sorted(set(owners))) or "missing"


@lru_cache(maxsize=1)
def _distributions() -> "dict[str, list[str]]":
    return dict(importlib.metadata.packages_distributions())


@lru_cache(maxsize=1)
def _engine() -> str:
    """The parts of the engine that decide what a result looks like."""
    here = Path(__file__).parent
    return sha("".join(sha((here / name).read_bytes()) for name in ("worker.py", "capture.py", "book.mplstyle")))


class Fingerprints:
    """Fingerprints of a book's examples, each computed once."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._known: dict[str, Fingerprint] = {}

    def of(self, name: str) -> Fingerprint:
        if name not in self._known:
            self._known[name] = self._compute(self.book.examples[name])
        return self._known[name]

    def _compute(self, example: Example) -> Fingerprint:
        reach = Reach(self.book)
        reach.name(example.module, example.function)
        reach.settle()
        options = example.options
        parts = reach.parts | {f"need {need}": self.of(need).digest for need in example.needs}
        parts |= {f"file {file}": file_digest(self.book.root, file) for file in options.files}
        parts["options"] = json.dumps([options.raises, options.threads, options.alone])
        parts["python"] = "{}.{}".format(*sys.version_info)
        parts["machine"] = f"{platform.system()} {platform.machine()}"
        parts["engine"] = _engine()
        return Fingerprint(sha(json.dumps(parts, sort_keys=True)), parts)


def file_digest(root: Path, path: str) -> str:
    """The state of a repository file or folder listing that an example read; `absent` is a state too."""
    target = root / path
    try:
        if target.is_dir():
            return sha("\n".join(sorted(entry.name for entry in target.iterdir())))
        return sha(target.read_bytes())
    except OSError:
        return "absent"


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """What changed between two fingerprints, in words."""
    words = []
    for part in sorted(old.keys() | new.keys()):
        before, after = old.get(part), new.get(part)
        if before == after:
            continue
        if part.startswith("package ") and before and after:
            words.append(f"{part.removeprefix('package ')} {before} -> {after}")
        elif before is None:
            words.append(f"now uses {part}")
        else:
            words.append(f"{part} changed" if after is not None else f"no longer uses {part}")
    return words
