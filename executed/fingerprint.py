"""What an example's result depends on, statement by statement, read from the source text alone.

From an example's body every name is followed: to definitions in its module, through imports to other snippet
modules, and out to installed packages, of which the version counts. Importing a module runs its top level, so
whatever there does more than bind a name to something plain counts for every example that touches the module.
Where names cannot be followed (`globals()`, `eval`, star imports) whole modules count. When in doubt, run again.
"""

import ast
import builtins
import hashlib
import importlib.metadata
import json
import platform
import re
import symtable
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from executed.book import (
    DEFINITION,
    FUNCTION,
    SNIPPETS,
    Book,
    Example,
    Module,
    absolute,
    dotted,
    is_example_decorator,
    read_module,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Code that says one of these words may read line numbers, comments, docstrings or names it does not write out.
OPAQUE = _words(
    """globals locals vars dir help lineno excepthook _getframe f_globals f_back f_lineno f_code tb_frame tb_lineno
    __doc__ __file__ __globals__ __dict__ __code__ __closure__ __subclasses__ __annotations__ __getattribute__
    inspect traceback linecache gc ast dis logging threading asyncio concurrent unittest doctest cProfile pstats
    tracemalloc faulthandler jit fx export _dynamo profiler detect_anomaly set_detect_anomaly
    rich loguru pydantic click typer fire"""
)
# And code that says one of these may load any module, by a name that only the run knows.
ANYWHERE = _words(
    """eval exec compile __import__ __builtins__ __loader__ __spec__ builtins importlib runpy pkgutil modules
    pickle shelve marshal subprocess multiprocessing popen"""
)
# Functions and decorators of others that do nothing but make a value of what they are given.
PURE = _words(
    """dataclass field property staticmethod classmethod cached_property cache lru_cache wraps contextmanager
    abstractmethod override overload no_grad inference_mode example TypeVar ParamSpec NewType namedtuple partial Path
    bool int float complex str bytes tuple list dict set frozenset range len abs min max sum round sqrt"""
)
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.keyword, ast.arguments, ast.expr_context)
# What may run code of its operands' own.
OPERATIONS = (
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    *(ast.JoinedStr, ast.FormattedValue, ast.Dict, ast.Set, ast.Call),
)


@dataclass(frozen=True)
class Fingerprint:
    """A hash and, for `executed status`, the parts it was made of."""

    digest: str
    parts: dict[str, str]


@dataclass(frozen=True)
class Import:
    """One name an import binds: from which module, and which name there (None: the module itself)."""

    bound: str
    module: str
    attribute: str | None

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def snippet(self) -> str:
        return self.module.partition(".")[2]


@dataclass(eq=False)
class Statement:
    """A top-level statement of a module: what it binds, what it reads, and whether importing it has effects."""

    label: str
    digest: str
    binds: frozenset[str]
    reads: frozenset[str]
    words: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    """`("nn", "Linear")` for each `nn.Linear`."""
    bare: frozenset[str]
    """Names used in any way but that."""
    imports: tuple[Import, ...]
    effects: bool
    deferred: bool
    """Whether its imports run only when it is called."""


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


class _TopLevel:
    """Goes through a module, or a class body, in order, and tells which statements may do more than bind a name."""

    def __init__(self, bound: set[str], safe: set[str]) -> None:
        self.bound = bound
        """Names that exist by now."""
        self.safe = safe
        """Those on which attributes, operators and subscripts do nothing but give a value."""

    def has_effects(self, node: ast.stmt) -> bool:
        effects, safe = self._judged(node)
        names = _binds(node)
        self.safe = self.safe | names if safe and not effects else self.safe - names
        self.bound = self.bound - names if isinstance(node, ast.Delete) else self.bound | names
        return effects

    def _judged(self, node: ast.stmt) -> tuple[bool, bool]:
        """Whether the statement has effects, and whether what it binds is safe."""
        if _is_idle(node) or isinstance(node, ast.Pass):
            return False, True
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports = list(_imports(node, ""))
            effects = any(one.attribute == "*" or one.module in ("__future__", "this") for one in imports)
            return effects, all(one.package != SNIPPETS for one in imports)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            unpacked = any(isinstance(part, ast.Tuple) for part in parts)
            plain = all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts)
            plain = plain and (isinstance(node, ast.Assign) or self._harmless(node.annotation))
            value = node.value or ast.Constant(None)
            return not (plain and self.plain(value, unpacked)), self.plain(value, True)
        pure = all(map(self._pure, getattr(node, "decorator_list", ())))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return not (pure and self.plain(node.args) and self._harmless(node.returns)), True
        if isinstance(node, ast.ClassDef):
            body = _TopLevel(self.bound, self.safe)
            inside = [body.has_effects(member) for member in node.body]
            # A base class of the book's own may keep a list of its subclasses.
            pure = pure and not node.keywords and all(self.plain(base, True) for base in node.bases)
            hooks = {"__init_subclass__", "__class_getitem__"} & {getattr(member, "name", "") for member in node.body}
            return not pure or any(inside), not hooks
        return True, False

    def plain(self, node: ast.AST, operand: bool = False) -> bool:
        """Whether evaluating this at import can do nothing but give a value."""
        if isinstance(node, ast.Name):
            return node.id in (self.safe if operand else self.bound)
        if isinstance(node, ast.arg):
            return self._harmless(node.annotation)
        if isinstance(node, ast.Lambda):
            return self.plain(node.args)
        if not isinstance(node, (*LITERALS, *OPERATIONS)) or (isinstance(node, ast.Call) and not self._pure(node.func)):
            return False
        operand = operand or isinstance(node, OPERATIONS)
        return all(self.plain(child, operand) for child in ast.iter_child_nodes(node))

    def _harmless(self, annotation: ast.expr | None) -> bool:
        # What an annotation does with `|`, dots and brackets is taken to have no effect.
        return annotation is None or _TopLevel(self.bound, self.bound).plain(annotation)

    def _pure(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Call):
            return self.plain(function)
        first, *rest = dotted(function).split(".")
        return first in self.safe and [first, *rest][-1] in PURE


def _is_idle(node: object) -> bool:
    """A docstring or `...`: a statement that does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _imports(node: ast.AST, importer: str) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.asname or alias.name.partition(".")[0], alias.name, None)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield Import(alias.asname or alias.name, absolute(node, importer), alias.name)


def _binds(node: ast.stmt) -> set[str]:
    """The names that a statement binds where it stands."""
    if isinstance(node, DEFINITION):
        return {node.name}
    inner = list(ast.walk(node))
    return {
        *(one.id for one in inner if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)),
        *(one.name for one in inner if isinstance(one, DEFINITION)),
        *(bound.bound for one in inner for bound in _imports(one, "")),
    }


def _looked_up(scope: symtable.SymbolTable) -> set[str]:
    """Names that a scope inside a module may look up in the module: Python's own analysis, so a local never counts."""
    names = scope.get_globals() if isinstance(scope, symtable.Function) else scope.get_identifiers()
    return {*names}.union(*map(_looked_up, scope.get_children()))


@lru_cache(maxsize=4096)
def statements(module: Module) -> tuple[Statement, ...]:
    """The top-level statements of a module, each analysed on its own; none where the module cannot be analysed."""
    if module.scopes is None:
        return ()
    top = _TopLevel({*dir(builtins)}, {*dir(builtins)})
    scopes = [(scope.get_lineno(), _looked_up(scope)) for scope in module.scopes.get_children()]
    try:
        found = [_statement(module, node, top, scopes) for node in module.tree.body if not _is_idle(node)]
    except (RecursionError, ValueError):  # too deep, or a number of too many digits to print
        return ()
    used = {name for one in found for name in one.reads}
    for one in found:  # an import that nothing reads is there for its effect
        outside = {name.bound for name in one.imports if name.package != SNIPPETS}
        one.effects |= one.binds <= outside and bool(outside - used)
    return tuple(found)


@lru_cache(maxsize=4096)
def binders(module: Module) -> dict[str, list[int]]:
    """The positions of the statements that bind each name."""
    found: dict[str, list[int]] = {}
    for position, statement in enumerate(statements(module)):
        for name in statement.binds:
            found.setdefault(name, []).append(position)
    return found


def _statement(module: Module, node: ast.stmt, top: _TopLevel, scopes: list[tuple[int, set[str]]]) -> Statement:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    # An example's options are hashed by what they mean, not by how they are written.
    marks = [one for one in decorators if is_example_decorator(one) and top.safe & {"example", "executed"}]
    shape, nodes = _shape(node, marks)
    attributes = nodes[ast.Attribute]
    owners = {id(one.value) for one in attributes if isinstance(one.ctx, ast.Load)}
    texts = [one.value for one in nodes[ast.Constant] if isinstance(one.value, str)]
    imports = tuple(name for one in (*nodes[ast.Import], *nodes[ast.ImportFrom]) for name in _imports(one, module.name))
    effects, binds = top.has_effects(node), _binds(node)
    binds |= {name for one in nodes[ast.Global] for name in one.names}

    evaluated: list[ast.AST | None] = [node]  # what is looked up in the module itself, not in a scope inside it
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        evaluated = [*decorators, node.args, node.returns]
    elif isinstance(node, ast.ClassDef):
        evaluated = [*decorators, *node.bases, *node.keywords]
    reads = {one.id for part in evaluated if part for one in ast.walk(part) if isinstance(one, ast.Name)}
    reads = reads.union(*(names for line, names in scopes if node.lineno <= line <= (node.end_lineno or 0)))
    # `typing.get_type_hints` looks up what an annotation says as text.
    noted = [one.annotation for one in (*nodes[ast.arg], *nodes[ast.AnnAssign])]
    noted += [one.returns for kind in FUNCTION for one in nodes[kind]]
    hints = [one.value for part in noted if part for one in ast.walk(part) if isinstance(one, ast.Constant)]
    reads = reads.union(*(re.findall(r"\w+", hint) for hint in hints if isinstance(hint, str)))

    called = {id(one.func) for one in nodes[ast.Call]}
    said = {*texts, *(one.attr for one in attributes if one.attr != "modules" or id(one) not in called)}
    said = {word for word in said if word.startswith("__") or word not in vars(builtins)}  # `model.eval()` is PyTorch's
    said |= {one.id for one in nodes[ast.Name]} - {"modules"}
    said |= {word for one in imports for word in (*one.module.split("."), one.attribute or "")}
    said |= {"importlib" for text in texts if ".py" in text or SNIPPETS in text}
    named = binds and (isinstance(node, DEFINITION) or not effects)
    return Statement(
        ", ".join(sorted(binds)) if named else f"line `{module.lines[node.lineno - 1].strip()[:50]}`",
        sha("\n".join(shape)),
        frozenset(binds),
        frozenset(reads),
        frozenset(said & (OPAQUE | ANYWHERE)),
        frozenset((one.value.id, one.attr) for one in attributes if isinstance(one.value, ast.Name)),
        frozenset(one.id for one in nodes[ast.Name] if id(one) not in owners),
        imports,
        effects,
        isinstance(node, FUNCTION),
    )


def _shape(root: ast.stmt, left_out: list[ast.expr]) -> tuple[list[str], dict[type, list[Any]]]:
    """What a statement says, not how it is laid out, docstrings left out; and its nodes, by type."""
    shape: list[str] = []
    nodes: dict[type, list[Any]] = defaultdict(list)
    todo: list[ast.AST] = [root]  # no recursion: a sum of a thousand terms is a thousand levels deep
    while todo:
        node = todo.pop()
        kind = type(node)
        nodes[kind].append(node)
        shape.append(kind.__name__)
        for name in kind._fields:
            value = getattr(node, name, None) if name not in ("ctx", "kind", "type_comment") else None
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                kept = [item for item in value if item not in left_out and not _is_idle(item)]
                todo += [item for item in kept if isinstance(item, ast.AST)]
                shape += ["[", *("" if isinstance(item, ast.AST) else repr(item) for item in kept), "]"]
            else:
                shape.append(repr(value))
    return shape, nodes


class Node(NamedTuple):
    """Something an example can depend on. Nodes sort as the book reads, and that order counts."""

    module: str
    position: int
    """The position of a statement in its module, or IMPORTED, or WHOLE, or PACKAGE."""
    name: str = ""
    """For an import, the name it binds; for a package, its name."""


IMPORTED, WHOLE, PACKAGE = -3, -2, -1


class Reach:
    """What leads to what in a book, each step worked out once."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._steps: dict[Node, list[Node]] = {}
        self._parts: dict[Node, tuple[str, str]] = {}
        self._opaque: set[Node] = set()
        self._packages: dict[str, list[str]] = {}

    def parts(self, example: Example) -> dict[str, str]:
        """Everything an example can reach, by name, each with its hash."""
        reached: set[Node] = set()
        todo = list(self.lookup(example.module, example.function))
        while todo:
            while todo:
                if (node := todo.pop()) not in reached:
                    reached.add(node)
                    if node not in self._steps:
                        self._steps[node] = list(self._after(node))
                    todo += self._steps[node]
            if not reached.isdisjoint(self._opaque):
                touched = [Node(node.module, WHOLE) for node in reached if node.position == IMPORTED]
                todo = [node for node in touched if node not in reached]
        parts: dict[str, str] = {}
        for node in sorted(reached & self._parts.keys()):
            part, digest = self._parts[node]
            while part in parts:  # a name bound again
                part += " again"
            parts[part] = digest
        return parts

    def _after(self, node: Node) -> Iterator[Node]:
        """The nodes that this one leads to."""
        if node.position == PACKAGE:
            yield from self._package(node)
            return
        module = self.book.modules[node.module]
        found = statements(module)
        if node.position == IMPORTED:
            self._parts[node] = f"module {node.module}", ""
            folders = node.module.split(".")[:-1]
            for length in range(len(folders) + 1):
                yield from self._imported(_joined(*folders[:length], "__init__"))
            first: dict[str, int] = {}
            for position, statement in enumerate(found):
                if statement.effects:
                    yield Node(node.module, position)
                for one in () if statement.deferred else statement.imports:
                    yield from self.load(one)
                    if one.package not in sys.stdlib_module_names:
                        first.setdefault(one.snippet if one.package == SNIPPETS else one.package, position)
            for loaded, position in first.items():  # the order of what importing runs counts
                yield Node(node.module, position, f"import {loaded}")
            if module.scopes is None or (not found and not all(map(_is_idle, module.tree.body))):
                yield from self._everything()  # it cannot be analysed
        elif node.position == WHOLE:
            self._parts[node] = f"all of {node.module}", sha(module.data)
            yield Node(node.module, IMPORTED)
            yield from (Node(node.module, position) for position in range(len(found)))
        elif node.name:
            imports = [one for one in found[node.position].imports if one.bound == node.name]
            self._parts[node] = f"{node.module}.{node.name}", sha(repr(imports))
            yield Node(node.module, IMPORTED)
            for one in imports:
                yield from self.load(one)
                if one.attribute and one.package == SNIPPETS:
                    yield from self.member(one.snippet, one.attribute)
        else:
            statement = found[node.position]
            self._parts[node] = f"{node.module}.{statement.label}", statement.digest
            if not OPAQUE.isdisjoint(statement.words):
                self._opaque.add(node)
            if not ANYWHERE.isdisjoint(statement.words):
                yield from self._everything()
            yield Node(node.module, IMPORTED)
            for one in statement.imports:
                yield Node(node.module, node.position, one.bound)
                yield from self.behind(one, statement)
            for name in statement.reads:
                yield from self.lookup(node.module, name, statement)

    def lookup(self, module: str, name: str, reader: Statement | None = None) -> Iterator[Node]:
        """The statements that bind a name at a module's top level; none where nothing does."""
        for position in binders(self.book.modules[module]).get(name, ()):
            statement = statements(self.book.modules[module])[position]
            imports = [one for one in statement.imports if one.bound == name]
            if not imports or statement.effects or statement.deferred:
                yield Node(module, position)
            for one in imports:
                yield Node(module, position, name)
                yield from self.behind(one, reader)

    def behind(self, one: Import, reader: Statement | None) -> Iterator[Node]:
        """Where an import binds a module: what `reader` reads of it, which may be all."""
        if one.package != SNIPPETS:
            return
        bound = one.snippet if one.bound != SNIPPETS else ""  # `import snippets.attention` binds `snippets`
        bound = _joined(bound, one.attribute) if one.attribute else bound
        if self._inside(bound) or not (reader and self._file(bound)) or one.bound in reader.bare:
            yield from (Node(name, WHOLE) for name in (self._file(bound), *self._inside(bound)) if name)
        else:
            for owner, attribute in reader.attributes:
                if owner == one.bound:
                    yield from self.member(bound, attribute)

    def member(self, module: str, name: str) -> Iterator[Node]:
        """What defines a name in a snippet module."""
        yield from self._all_if_unclear(module, name)
        yield from self.lookup(file, name) if (file := self._file(module)) else ()

    def load(self, one: Import) -> Iterator[Node]:
        """What an import runs: a module, or an installed package."""
        if one.package == SNIPPETS:
            yield from self._imported(self._file(one.snippet))
            yield from self._imported(self._file(_joined(one.snippet, one.attribute or "")))
            yield from self._all_if_unclear(one.snippet, one.attribute) if one.attribute else ()
        elif one.module != "executed":
            yield Node("", PACKAGE, one.package)

    def _imported(self, name: str) -> Iterator[Node]:
        if name in self.book.modules:
            yield Node(name, IMPORTED)

    def _all_if_unclear(self, module: str, name: str) -> Iterator[Node]:
        """The whole module where no statement binds the name: a star, a `__getattr__`, or a name that is not there."""
        file, within = self._file(module), _joined(module, name)
        if file and name not in binders(self.book.modules[file]) and not (self._file(within) or self._inside(within)):
            yield Node(file, WHOLE)
            yield from (Node(other, WHOLE) for other in self._inside(module))

    def _file(self, module: str) -> str:
        """The book's name for what `import snippets.<module>` runs; empty where there is none."""
        return next((name for name in (_joined(module, "__init__"), module) if name in self.book.modules), "")

    def _inside(self, package: str) -> list[str]:
        if package not in self._packages:
            start = f"{package}." if package else ""
            self._packages[package] = [name for name in self.book.modules if name.startswith(start)]
        return self._packages[package]

    def _package(self, node: Node) -> Iterator[Node]:
        name = node.name
        local = [file for file in (self.book.root / name, self.book.root / f"{name}.py") if file.exists()]
        if local:  # the repository's own code outside the book
            files = sorted(local[0].rglob("*.py")) if local[0].is_dir() else local
            self._parts[node] = f"files of {name}", sha("".join(sha(file.read_bytes()) for file in files))
            yield from self._everything()
            for file in files:
                for statement in statements(read_module(name, file.name, file.read_bytes())):
                    yield from (Node("", PACKAGE, one.package) for one in statement.imports if one.package != SNIPPETS)
        elif name not in sys.stdlib_module_names:
            self._parts[node] = f"package {name}", version(name)
            if version(name) == MISSING and name in self.book.modules:  # sys.path may lead to the book's own module
                yield from self._everything()

    def _everything(self) -> Iterator[Node]:
        yield from (Node(name, WHOLE) for name in self.book.modules)


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))


MISSING = "missing"


@lru_cache(maxsize=256)
def version(package: str) -> str:
    """The installed version of the distribution that an import name belongs to."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        owners = sorted(set(_distributions().get(package, [])))
        return ", ".join(f"{owner} {importlib.metadata.version(owner)}" for owner in owners) or MISSING


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
        self._reach = Reach(book)
        self._known: dict[str, Fingerprint] = {}

    def of(self, name: str) -> Fingerprint:
        for one in self.book.order([name]) if name not in self._known else ():
            if one not in self._known:
                self._known[one] = self._compute(self.book.examples[one])
        return self._known[name]

    def _compute(self, example: Example) -> Fingerprint:
        options, root = example.options, self.book.root
        parts = self._reach.parts(example)
        parts |= {f"need {need}": self._known[need].digest for need in example.needs}
        for file in options.files:  # all of a folder
            parts[f"file {file}"] = file_digest(root, file)
            for path in sorted((root / file).rglob("*")):
                parts[f"file {path.relative_to(root).as_posix()}"] = file_digest(root, str(path))
        parts["options"] = json.dumps([options.raises, options.threads, options.alone, options.memory, example.needs])
        parts["python"] = "{}.{}".format(*sys.version_info)
        parts["machine"] = f"{platform.system()} {platform.machine()}"
        parts["engine"] = _engine()
        return Fingerprint(sha(json.dumps(parts)), parts)


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
    if not words and list(old) != list(new):
        words.append("its statements stand in another order")
    return words
