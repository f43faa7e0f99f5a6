"""The top-level statements of a snippet module: what each binds and reads, and whether importing it has effects."""

import ast
import builtins
import hashlib
import re
import symtable
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from executed.book import DEFINITION, FUNCTION, SNIPPETS, Module, absolute, dotted, is_example_decorator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Code that says one of these words may read line numbers, comments, docstrings or names it does not write out.
OPAQUE = _words(
    """globals locals vars dir help lineno excepthook _getframe f_globals f_back f_lineno f_code tb_frame tb_lineno
    __doc__ __file__ __globals__ __dict__ __code__ __closure__ __subclasses__ __annotations__ __getattribute__
    __firstlineno__ co_firstlineno co_lines co_consts gi_code gi_frame cr_code cr_frame settrace setprofile monitoring
    showwarning formatwarning
    inspect traceback linecache gc ast dis logging threading asyncio concurrent unittest doctest cProfile pstats
    tracemalloc faulthandler jit fx export _dynamo profiler detect_anomaly set_detect_anomaly
    rich loguru pydantic click typer fire"""
)
# And code that says one of these may load any module, by a name that only the run knows.
ANYWHERE = _words(
    """eval exec compile __import__ __builtins__ __loader__ __spec__ builtins importlib runpy pkgutil modules
    pickle shelve marshal subprocess multiprocessing popen"""
)
# Functions, decorators and base classes of others that do nothing but make a value of what they are given.
PURE = _words(
    """dataclass field property staticmethod classmethod cached_property cache lru_cache wraps contextmanager
    abstractmethod override overload no_grad inference_mode example TypeVar ParamSpec NewType namedtuple partial Path
    bool int float complex str tuple list dict frozenset range len abs sum round sqrt
    object type Exception ValueError NamedTuple TypedDict Protocol Generic ABC Enum Module Dataset"""
)
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.keyword, ast.arguments, ast.expr_context)
# What may run code of its operands' own.
OPERATIONS = (
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    *(ast.JoinedStr, ast.FormattedValue, ast.Dict, ast.Set, ast.Call),
)


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

    def __init__(self, bound: set[str], safe: set[str], foreign: set[str]) -> None:
        self.bound = bound
        """Names that exist by now."""
        self.safe = safe
        """Those on which attributes, operators and subscripts do nothing but give a value."""
        self.foreign = foreign
        """Those that are Python's or an installed package's."""

    def has_effects(self, node: ast.stmt) -> bool:
        effects, safe = self._judged(node)
        names = _binds(node)
        self.safe = self.safe | names if safe and not effects else self.safe - names
        imported = isinstance(node, ast.Import | ast.ImportFrom)
        self.foreign = self.foreign | names if imported and safe else self.foreign - names
        self.bound = self.bound - names if isinstance(node, ast.Delete) else self.bound | names
        return effects

    def _judged(self, node: ast.stmt) -> tuple[bool, bool]:
        """Whether the statement has effects, and whether what it binds is safe."""
        if is_idle(node) or isinstance(node, ast.Pass):
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
            body = _TopLevel(self.bound, self.safe, self.foreign)
            inside = [body.has_effects(member) for member in node.body]
            pure = pure and not node.keywords and all(map(self._quiet, node.bases))
            hooks = {"__init_subclass__", "__class_getitem__"} & {getattr(member, "name", "") for member in node.body}
            stacked = any(len(getattr(member, "decorator_list", ())) > 1 for member in node.body)  # a class's property
            return not pure or any(inside), not hooks and not stacked
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
        if isinstance(node, ast.Dict):  # it hashes its keys, and does nothing with its values
            pairs = [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]
            return all(self.plain(key, True) and self.plain(value, operand) for key, value in pairs)
        operand = operand or isinstance(node, OPERATIONS)
        return all(self.plain(child, operand) for child in ast.iter_child_nodes(node))

    def _harmless(self, annotation: ast.expr | None) -> bool:
        # What an annotation does with `|`, dots and brackets is taken to have no effect.
        return annotation is None or _TopLevel(self.bound, self.bound, self.foreign).plain(annotation)

    def _quiet(self, base: ast.expr) -> bool:
        """Whether a base class is known to keep no list of its subclasses."""
        first, *rest = dotted(base.value if isinstance(base, ast.Subscript) else base).split(".")
        return self.plain(base, True) and (first not in self.foreign or [first, *rest][-1] in PURE)

    def _pure(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Call):
            return self.plain(function)
        first, *rest = dotted(function).split(".")
        return first in self.foreign and [first, *rest][-1] in PURE


def is_idle(node: object) -> bool:
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
    top = _TopLevel({*dir(builtins)}, {*dir(builtins)}, {*dir(builtins)})
    scopes = [(scope.get_lineno(), _looked_up(scope)) for scope in module.scopes.get_children()]
    try:
        found = [_statement(module, node, top, scopes) for node in module.tree.body if not is_idle(node)]
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
    marks = [one for one in decorators if is_example_decorator(one) and top.foreign & {"example", "executed"}]
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
    # `typing.get_type_hints` looks up what an annotation says, as text or put off.
    noted = [one.annotation for one in (*nodes[ast.arg], *nodes[ast.AnnAssign])]
    noted += [one.returns for kind in FUNCTION for one in nodes[kind]]
    hints = [one for part in noted if part for one in ast.walk(part)]
    reads |= {one.id for one in hints if isinstance(one, ast.Name)}
    reads = reads.union(*(re.findall(r"\w+", str(one.value)) for one in hints if isinstance(one, ast.Constant)))

    called = {id(one.func) for one in nodes[ast.Call]}
    said = {*texts, *(one.attr for one in attributes if one.attr != "modules" or id(one) not in called)}
    said = {word for word in said if word.startswith("__") or word not in vars(builtins)}  # `model.eval()` is PyTorch's
    said |= {one.id for one in nodes[ast.Name]} - {"modules"}
    said |= {word for one in imports for word in (*one.module.split("."), one.attribute or "")}
    said |= {"importlib" for text in texts if ".py" in text or SNIPPETS in text}
    said |= {"__dict__" for text in texts if "__" in text.replace("__main__", "")}  # "{0.__doc__}", "__do" + "c__"
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
                shape.append("")  # `x[1:]` is not `x[:1]`
            elif isinstance(value, list):
                kept = [item for item in value if item not in left_out and not is_idle(item)]
                todo += [item for item in kept if isinstance(item, ast.AST)]
                shape += ["[", *("" if isinstance(item, ast.AST) else repr(item) for item in kept), "]"]
            else:
                shape.append(repr(value))
    return shape, nodes
