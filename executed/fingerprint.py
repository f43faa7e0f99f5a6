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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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

# Code that says one of these words may read line numbers, comments, docstrings or names it does not write out.
OPAQUE = frozenset(
    """globals locals vars dir help __doc__ __file__ __globals__ __dict__ __code__ __closure__ __subclasses__
    __annotations__ __getattribute__ f_globals f_back f_lineno f_code tb_frame tb_lineno lineno _getframe excepthook
    inspect traceback linecache gc ast dis logging threading asyncio concurrent unittest doctest cProfile pstats
    tracemalloc faulthandler jit fx export _dynamo profiler detect_anomaly set_detect_anomaly rich loguru""".split()
)
# And code that says one of these may load any module, by a name that only the run knows.
ANYWHERE = frozenset(
    """eval exec compile execfile __import__ __builtins__ __loader__ __spec__ builtins importlib runpy pkgutil modules
    pickle shelve marshal subprocess multiprocessing popen""".split()
)
# Functions and decorators that do nothing but make a value of what they are given.
PURE = frozenset(
    """dataclass field property staticmethod classmethod cached_property cache lru_cache wraps contextmanager
    abstractmethod override overload no_grad inference_mode example TypeVar ParamSpec NewType namedtuple partial Path
    bool int float complex str bytes tuple list dict set frozenset range len abs min max sum round sqrt""".split()
)
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.keyword, ast.arguments, ast.expr_context)
# What runs code of the operands' own.
OPERATIONS = (
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    *(ast.JoinedStr, ast.FormattedValue, ast.Dict, ast.Set),
)
# Imported for what the import does, whatever name it binds.
IMPORTED_FOR_EFFECT = ("__future__", "this")


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
    def loaded(self) -> str:
        return (self.snippet or "__init__") if self.package == SNIPPETS else self.package

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


class _Effects:
    """Goes through a module's top level, or a class body, in order, and tells what may do more than bind a name."""

    def __init__(self, bound: set[str], safe: set[str]) -> None:
        self.bound = bound
        """Names that certainly exist."""
        self.safe = safe
        """Those of them on which attributes, operators and subscripts do nothing but give a value."""

    def of(self, node: ast.stmt, binds: Iterable[str], imports: tuple[Import, ...]) -> bool:
        effects, safe = self._of(node, imports)
        self.bound |= set(binds)
        self.safe = self.safe | set(binds) if safe and not effects else self.safe - set(binds)
        if isinstance(node, ast.Delete):
            self.bound -= set(binds)
        return effects

    def _of(self, node: ast.stmt, imports: tuple[Import, ...]) -> tuple[bool, bool]:
        """Whether it has effects, and whether what it binds is safe."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            special = any(one.attribute == "*" or one.module in IMPORTED_FOR_EFFECT for one in imports)
            return special, all(one.package != SNIPPETS for one in imports)
        if isinstance(node, ast.Pass) or _idle(node):
            return False, True
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = [value for target in targets for value in _pairs(target, node.value)]
            annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
            plain = None not in values and all(self.plain(value) for value in values if value)
            return not (plain and self._harmless(annotation)), all(self.plain(value, True) for value in values if value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pure = all(map(self._pure, node.decorator_list))
            return not (pure and self.plain(node.args) and self._harmless(node.returns)), True
        if isinstance(node, ast.ClassDef):
            # A base class of the book's own may keep a list of its subclasses.
            pure = all(map(self._pure, node.decorator_list)) and not node.keywords
            pure = pure and all(self.plain(base, True) for base in node.bases)
            inside = _Effects(set(self.bound), set(self.safe))
            effects = [inside.of(member, _binds(member), tuple(_imports(member, ""))) for member in node.body]
            hooks = {"__init_subclass__", "__class_getitem__"} & {getattr(member, "name", "") for member in node.body}
            return not pure or any(effects), not hooks
        return True, False

    def plain(self, node: ast.AST, operand: bool = False) -> bool:
        """Whether evaluating this at import can do nothing but give a value."""
        if isinstance(node, ast.Name):
            return node.id in (self.safe if operand else self.bound)
        if isinstance(node, ast.arg):
            return self._harmless(node.annotation)
        if isinstance(node, ast.Lambda):
            return self.plain(node.args)
        if isinstance(node, ast.Call) and not self._pure(node.func):
            return False
        if not isinstance(node, (*LITERALS, *OPERATIONS, ast.Call)):
            return False
        operand = operand or isinstance(node, (*OPERATIONS, ast.Call))
        return all(self.plain(child, operand) for child in ast.iter_child_nodes(node))

    def _harmless(self, annotation: ast.expr | None) -> bool:
        # What an annotation does with `|`, dots and brackets is taken to have no effect.
        return annotation is None or _Effects(self.bound, self.bound).plain(annotation)

    def _pure(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Call):
            return self.plain(function)
        first, last = (name := dotted(function)).partition(".")[0], name.rpartition(".")[2]
        return last in PURE and first in self.safe


def _pairs(target: ast.expr, value: ast.expr | None) -> list[ast.expr | None]:
    """What each name of an assignment gets; None among them where that takes more than a look."""
    if isinstance(target, ast.Name):
        return [value or ast.Constant(None)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [one for pair in zip(target.elts, value.elts, strict=True) for one in _pairs(*pair)]
    return [None]


def _idle(node: object) -> bool:
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
    """The names a statement binds where it stands."""
    if isinstance(node, DEFINITION):
        return {node.name}
    inner = list(ast.walk(node))
    return {
        *(one.id for one in inner if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)),
        *(one.name for one in inner if isinstance(one, DEFINITION)),
        *(bound.bound for one in inner for bound in _imports(one, "")),
    }


def _walk(root: ast.stmt, left_out: list[ast.expr], shape: list[str]) -> Iterator[ast.AST]:
    """Every node of a statement but docstrings and what is left out; `shape` gets what the code says, not how."""
    todo: list[ast.AST] = [root]
    while todo:
        node = todo.pop()
        yield node
        shape.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                kept = [item for item in value if not _idle(item) and item not in left_out]
                shape.append(str(len(kept)))
                for item in kept:
                    todo.append(item) if isinstance(item, ast.AST) else shape.append(repr(item))
            else:
                shape.append(repr(value))


def _looked_up(scope: symtable.SymbolTable) -> set[str]:
    """Names that a scope inside a module may look up in the module: Python's own analysis, so a local never counts."""
    names = scope.get_globals() if isinstance(scope, symtable.Function) else scope.get_identifiers()
    return {*names}.union(*map(_looked_up, scope.get_children()))


@lru_cache(maxsize=4096)
def statements(module: Module) -> tuple[Statement, ...]:
    """The top-level statements of a module, each analysed on its own. None for a module that cannot be analysed."""
    if module.scopes is None:
        return ()
    effects = _Effects(set(dir(builtins)), set(dir(builtins)))
    scopes = [(scope.get_lineno(), _looked_up(scope)) for scope in module.scopes.get_children()]
    try:
        found = [_statement(module, node, effects, scopes) for node in module.tree.body if not _idle(node)]
    except RecursionError:
        return ()
    used = {name for one in found for name in one.reads}
    for one in found:  # an import that nothing reads is there for its effect
        if one.imports and len(one.binds) == len(one.imports) and not one.deferred:
            one.effects |= any(name.package != SNIPPETS and name.bound not in used for name in one.imports)
    return tuple(found)


@lru_cache(maxsize=4096)
def binders(module: Module) -> dict[str, list[int]]:
    """The positions of the statements that bind each name."""
    found: dict[str, list[int]] = {}
    for position, statement in enumerate(statements(module)):
        for name in statement.binds:
            found.setdefault(name, []).append(position)
    return found


def _statement(module: Module, node: ast.stmt, top: _Effects, scopes: list[tuple[int, set[str]]]) -> Statement:
    decorators = [*getattr(node, "decorator_list", ())]
    # An example's options are hashed by what they mean, not by how they are written.
    marks = [one for one in decorators if is_example_decorator(one) and top.safe.intersection(("example", "executed"))]
    shape: list[str] = []
    nodes = list(_walk(node, marks, shape))
    names = [one for one in nodes if isinstance(one, ast.Name)]
    attributes = [one for one in nodes if isinstance(one, ast.Attribute)]
    constants = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    imports = tuple(bound for one in nodes for bound in _imports(one, module.name))
    # A module used only as `attention.softmax` gives away which part is read; any other use hands over all of it.
    owners = [one.value for one in attributes if isinstance(one.value, ast.Name) and isinstance(one.ctx, ast.Load)]
    binds = _binds(node)
    effects = top.of(node, binds, imports)
    binds |= {name for one in nodes if isinstance(one, ast.Global) for name in one.names}
    reads = {word for one in nodes for word in _annotated(one)}
    for line, looked_up in scopes:
        if node.lineno <= line <= (node.end_lineno or line):
            reads |= looked_up
    evaluated: list[ast.AST | None] = [node]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        evaluated = [*decorators, node.args, node.returns]
    elif isinstance(node, ast.ClassDef):
        evaluated = [*decorators, *node.bases, *node.keywords]
    reads |= {one.id for part in evaluated if part for one in ast.walk(part) if isinstance(one, ast.Name)}
    first = module.lines[node.lineno - 1].strip()[:50]
    words = {word for one in imports for word in (*one.module.split("."), one.attribute or "")}
    called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    # `model.eval()` and `model.modules()` are PyTorch's.
    said = {one.attr for one in attributes if one.attr != "modules" or id(one) not in called}
    said = {word for word in said.union(constants) if word.startswith("__") or word not in vars(builtins)}
    said |= {"importlib" for text in constants if ".py" in text or SNIPPETS in text}
    return Statement(
        ", ".join(sorted(binds)) if binds and (isinstance(node, DEFINITION) or not effects) else f"line `{first}`",
        sha("\n".join(shape)),
        frozenset(binds),
        frozenset(reads),
        frozenset(words | said | {one.id for one in names}) & (OPAQUE | ANYWHERE),
        frozenset((one.value.id, one.attr) for one in attributes if isinstance(one.value, ast.Name)),
        frozenset(one.id for one in names if one not in owners),
        imports,
        effects,
        isinstance(node, FUNCTION),
    )


def _annotated(node: ast.AST) -> Iterator[str]:
    """Words of annotations written as text: `typing.get_type_hints` looks them up."""
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        for part in ast.walk(annotation) if annotation else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield from re.findall(r"\w+", part.value)


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
                    todo += self._steps[node] if node in self._steps else self._step(node)
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

    def _step(self, node: Node) -> list[Node]:
        self._steps[node] = steps = list(self._after(node))
        return steps

    def _after(self, node: Node) -> Iterator[Node]:
        """The nodes that this one leads to."""
        if node.position == PACKAGE:
            yield from self._package(node)
            return
        module = self.book.modules[node.module]
        found = statements(module)
        if node.position == IMPORTED:
            self._parts[node] = f"module {node.module}", ""
            first: dict[str, int] = {}
            for position, statement in enumerate(found):
                if statement.effects:
                    yield Node(node.module, position)
                for one in () if statement.deferred else statement.imports:
                    yield from self.load(one)
                    first.setdefault(one.loaded, position)
            for loaded, position in first.items():  # the order of what importing runs counts
                if loaded not in sys.stdlib_module_names:
                    yield Node(node.module, position, f"import {loaded}")
            if not found and module.data.strip():  # it cannot be analysed, so it may do anything
                yield from (Node(name, WHOLE) for name in self.book.modules)
        elif node.position == WHOLE:
            self._parts[node] = f"all of {node.module}", sha(module.data)
            yield from self.touch(node.module)
            yield from (Node(node.module, position) for position in range(len(found)))
        elif node.name:
            imports = [one for one in found[node.position].imports if one.bound == node.name]
            self._parts[node] = f"{node.module}.{node.name}", sha(repr(imports))
            yield from self.touch(node.module)
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
                yield from (Node(name, WHOLE) for name in self.book.modules)
            yield from self.touch(node.module)
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
        if file := self._file(module):
            yield from self.lookup(file, name)

    def load(self, one: Import) -> Iterator[Node]:
        """What an import runs: a module, or an installed package."""
        if one.package == SNIPPETS:
            yield from self.touch(_joined(one.snippet, one.attribute or ""))
            yield from self._all_if_unclear(one.snippet, one.attribute) if one.attribute else ()
        elif one.module != "executed":
            yield Node("", PACKAGE, one.package)

    def touch(self, module: str) -> Iterator[Node]:
        """A module, and the packages it is in, get imported."""
        parts = module.split(".")
        names = [_joined(*parts[:length], end) for length in range(len(parts) + 1) for end in ("", "__init__")]
        yield from (Node(name, IMPORTED) for name in names if name in self.book.modules)

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
            yield from (Node(other, WHOLE) for other in self.book.modules)
            for file in files:
                for statement in statements(read_module(name, file.name, file.read_bytes())):
                    yield from (Node("", PACKAGE, one.package) for one in statement.imports if one.package != SNIPPETS)
        elif name not in sys.stdlib_module_names:
            self._parts[node] = f"package {name}", version(name)
            if version(name) == MISSING and name in self.book.modules:  # sys.path may lead to the book's own module
                yield from (Node(other, WHOLE) for other in self.book.modules)


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
        options = example.options
        parts = self._reach.parts(example)
        parts |= {f"need {need}": self._known[need].digest for need in example.needs}
        parts |= {f"file {file}": file_digest(self.book.root, file) for file in options.files}
        parts["options"] = json.dumps([options.raises, options.threads, options.alone])
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
