"""The code of a notebook: which definitions a cell needs before it, and an example as a cell that stands by itself.

In a notebook all cells share one namespace, so a name may mean only one thing, and an example whose variables would
take a name that other code looks up stays a function.
"""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter

from executed.book import SNIPPETS, Book, BookError, Example, Module, Problem, dotted, is_example_decorator
from executed.statements import binders, is_idle, statements

Place = tuple[str, int]
"""A top-level statement: its module, and its position there."""
WIDTH = 88


class Code:
    """The code that one notebook is made of."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.bound: dict[str, object] = {}
        """What each name of the notebook means: a place, or an import."""
        self.given: set[Place] = set()
        self._needed: dict[str, list[Place]] = {}
        self.imports: set[tuple[str, str | None, str]] = set()
        self.future = False
        imported = {
            name: {one.snippet for found in statements(module) if not found.deferred for one in found.imports}
            for name, module in book.modules.items()
        }
        self.order = [
            *TopologicalSorter({name: froms & imported.keys() for name, froms in imported.items()}).static_order()
        ]
        self.looked_up: dict[str, set[str]] = {}
        """By definition or example: the names that it looks up outside itself."""

    def plan(self, names: Iterable[str]) -> None:
        """Learn what the named definitions and examples look up, before the first cell is written.

        Raises BookError where a name would have to mean two things.
        """
        names = list(names)
        for name in names:
            for place in self.needed(name):
                self.looked_up[str(place)] = self._looked_up(place)
            if name in self.book.examples:
                self.looked_up[name] = {*self._wanted(name), *self.book.examples[name].parameters}

    def needed(self, name: str) -> list[Place]:
        """The definitions that some code is made of, its own last, each after those that it builds on."""
        if name in self._needed:
            return self._needed[name]
        found: set[Place] = set()
        module = self._owner(name)
        if name not in self.book.examples:
            self._follow(module, name.removeprefix(f"{module}."), found)
        for wanted, reader in self._wanted(name).items():
            self._follow(reader or module, wanted, found)
        self._needed[name] = sorted(found, key=self._import_order)
        return self._needed[name]

    def missing(self, name: str) -> list[Place]:
        """Those that no earlier cell gave; they count as given from now on."""
        new = [place for place in self.needed(name) if place not in self.given]
        self.given.update(new)
        return new

    def place(self, name: str) -> Place | None:
        """The statement that a name of the book, `attention.train`, is defined by; None for a part of a class."""
        module = self._owner(name)
        positions = binders(self.book.modules[module]).get(name.removeprefix(f"{module}."), [])
        return (module, positions[-1]) if positions else None

    def source(self, place: Place) -> str:
        """A definition as its module has it."""
        module = self._module(place)
        node = _nodes(module)[place[1]]
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        return _without_snippet_imports("\n".join(module.lines[first - 1 : node.end_lineno]))

    def cell(self, example: Example) -> str:
        """An example as a cell: its body, and what it returns under its name."""
        node = self._function(example)
        if self._stands_alone(example, node):
            body = _without_snippet_imports(example.body).strip("\n")
            bound = self._returned(example, node)
            return "\n\n".join(filter(None, [body, bound])) if bound else _quiet(body)
        lines = self.book.modules[example.module].lines[node.body[0].lineno - 1 : node.end_lineno]
        returns = any(isinstance(one, ast.Return) for one in ast.walk(node))
        call = f"{example.function}({', '.join(example.parameters)})"
        body = _without_snippet_imports("\n".join(lines))
        return f"def {call}:\n{body}\n\n\n{f'{example.function} = {call}' if returns else call}"

    def import_lines(self) -> str:
        """Every import of the notebook, as one block."""
        plain = {(module, bound) for module, name, bound in self.imports if name is None}
        named: dict[str, set[str]] = {}
        for module, name, bound in self.imports:
            if name is not None:
                named.setdefault(module, set()).add(name if name == bound else f"{name} as {bound}")
        blocks = [["from __future__ import annotations"]] if self.future else []
        for standard in (True, False):
            of_kind = [
                one for one in sorted(plain) if (one[0].partition(".")[0] in sys.stdlib_module_names) is standard
            ]
            lines = [f"import {module}" + (f" as {bound}" if bound != module else "") for module, bound in of_kind]
            for module in sorted(named):
                if (module.partition(".")[0] in sys.stdlib_module_names) is standard:
                    names = sorted(named[module], key=lambda name: (not name.isupper(), name.islower(), name))
                    line = f"from {module} import {', '.join(names)}"
                    inside = "".join(f"    {name},\n" for name in names)
                    lines.append(line if len(line) <= WIDTH else f"from {module} import (\n{inside})")
            blocks += [lines] if lines else []
        return "\n\n".join("\n".join(block) for block in blocks)

    def _module(self, place: Place) -> Module:
        return self.book.modules[place[0]]

    def _import_order(self, place: Place) -> tuple[int, int]:
        """As Python would come by it: a module after those that it imports from."""
        return self.order.index(place[0]), place[1]

    def _owner(self, name: str) -> str:
        words = name.split(".")
        return next(
            module for end in range(len(words), 0, -1) if (module := ".".join(words[:end])) in self.book.modules
        )

    def _function(self, example: Example) -> ast.FunctionDef:
        nodes = self.book.modules[example.module].tree.body
        return next(one for one in nodes if isinstance(one, ast.FunctionDef) and one.lineno == example.line)

    def _scope(self, example: Example) -> symtable.SymbolTable:
        scopes = self.book.modules[example.module].scopes
        assert scopes is not None
        found = [one for one in scopes.get_children() if one.get_name() == example.function]
        return next(one for one in found if one.get_lineno() == example.line)

    def _wanted(self, name: str) -> dict[str, str]:
        """The names that a definition or an example's body looks up; each with its module, if the code says it."""
        if name not in self.book.examples:
            place = self.place(name)
            reads = statements(self._module(place))[place[1]].reads if place else ()
            own = dict.fromkeys(reads, "")
            node = _nodes(self._module(place))[place[1]] if place else None
        else:
            example = self.book.examples[name]
            node = self._function(example)
            own = dict.fromkeys(_globals(self._scope(example)), "")
        return own | {attribute: origin for origin, attribute in (_snippet_imports(node) if node else ())}

    def _follow(self, module: str, name: str, found: set[Place]) -> None:
        """Add what a name means in a module, and all that it builds on."""
        for position in binders(self.book.modules[module]).get(name, ()):
            statement = statements(self.book.modules[module])[position]
            imports = [one for one in statement.imports if one.bound == name and not statement.deferred]
            for one in imports:
                if one.package == SNIPPETS and one.attribute and one.snippet in self.book.modules:
                    if one.attribute != one.bound:
                        self._refuse(module, f"imports {one.attribute} as {one.bound}: keep the name it has")
                    self._follow(one.snippet, one.attribute, found)
                elif one.package == SNIPPETS:
                    self._refuse(module, f"imports a whole module as {one.bound}: import the names it uses")
                elif one.package != "executed":
                    self._means(name, one, module)
                    self.imports.add((one.module, one.attribute, one.bound))
            if imports or (module, position) in found or f"{module}.{name}" in self.book.examples:
                continue
            self._means(name, (module, position), module)
            found.add((module, position))
            self.future |= "from __future__ import annotations" in self.book.modules[module].source
            for read in statement.reads:
                self._follow(module, read, found)
            for origin, attribute in _snippet_imports(_nodes(self.book.modules[module])[position]):
                self._follow(origin, attribute, found)

    def _means(self, name: str, meaning: object, module: str) -> None:
        before = self.bound.setdefault(name, meaning)
        if before != meaning and self._written(before) != self._written(meaning):
            self._refuse(module, f"{name} would mean two things in one notebook: give one of them another name")

    def _written(self, meaning: object) -> str:
        if not isinstance(meaning, tuple):
            return repr(meaning)
        node = _nodes(self._module(meaning))[meaning[1]]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            return ast.unparse(
                node.value.value
            )  # `dict[str, Any]` and `dict[str, object]`: a hint, at run time the same
        return ast.unparse(node)

    def _looked_up(self, place: Place) -> set[str]:
        """The names that a definition looks up; `reads` would count a class's own attributes as well."""
        module, node = self._module(place), _nodes(self._module(place))[place[1]]
        inside = module.scopes.get_children() if module.scopes else []
        inside = [one for one in inside if node.lineno <= one.get_lineno() <= (node.end_lineno or 0)]
        parts: list[ast.AST | None] = [node]
        if isinstance(node, ast.FunctionDef):
            parts = [*node.decorator_list, node.args, node.returns]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.decorator_list, *node.bases, *node.keywords]
        names = {one.id for part in parts if part for one in ast.walk(part) if isinstance(one, ast.Name)}
        return names.union(*map(_globals, inside))

    def _refuse(self, module: str, message: str) -> None:
        raise BookError(Problem(self.book.modules[module].path, 1, message))

    def _stands_alone(self, example: Example, node: ast.FunctionDef) -> bool:
        """Whether the body can be a cell: it changes no name that other code looks up, and needs no function around."""
        others = (names for name, names in self.looked_up.items() if name != example.name)
        taken = set().union(*others)
        own: list[ast.AST] = list(node.body)
        while own:
            one = own.pop()
            if isinstance(one, ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Global):
                return False
            if isinstance(one, ast.Return) and one is not node.body[-1]:
                return False
            if isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                if any(isinstance(inner, ast.Nonlocal) for inner in ast.walk(one)):
                    return False
                continue
            own += ast.iter_child_nodes(one)
        if any(not is_example_decorator(one) for one in node.decorator_list):
            return False
        scope = self._scope(example)
        imported = {attribute for _, attribute in _snippet_imports(node)}
        local = {one.get_name() for one in scope.get_symbols() if one.is_local() and not one.is_parameter()} - imported
        return local.isdisjoint(taken | {*self.bound} | ({*dir(builtins)} & set().union(*self.looked_up.values())))

    def _returned(self, example: Example, node: ast.FunctionDef) -> str:
        last = node.body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            return ""
        text = "\n".join(self.book.modules[example.module].lines[last.lineno - 1 : last.end_lineno])
        text = re.sub(rf"^ {{{last.col_offset}}}", "", text, flags=re.M).removeprefix("return").lstrip()
        return "" if text == example.function else f"{example.function} = {text}"


def _nodes(module: Module) -> list[ast.stmt]:
    """The top-level statements of a module, at the positions that `statements` counts."""
    return [node for node in module.tree.body if not is_idle(node)]


def _globals(scope: symtable.SymbolTable) -> set[str]:
    names = {one.get_name() for one in scope.get_symbols() if one.is_global()}
    return names.union(*map(_globals, scope.get_children()))


def _snippet_imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What some code imports from the book where it runs: module and name."""
    for one in ast.walk(node):
        package, _, module = ((one.module if isinstance(one, ast.ImportFrom) else "") or "").partition(".")
        if package == SNIPPETS and isinstance(one, ast.ImportFrom):
            yield from ((module, alias.name) for alias in one.names)


def _without_snippet_imports(source: str) -> str:
    """Code without the imports, inside functions, of what the notebook gives itself."""
    return re.sub(rf"^[ \t]*from {SNIPPETS}[\w.]* import (?:\([^)]*\)|[^(\n]*)(?:\n|\Z)", "", source, flags=re.M)


def _quiet(body: str) -> str:
    """The body with a semicolon behind it where a notebook would show what its last expression gives."""
    last = (ast.parse(body).body or [ast.Pass()])[-1]
    if not isinstance(last, ast.Expr) or (isinstance(last.value, ast.Call) and dotted(last.value.func) == "print"):
        return body
    lines = body.split("\n")
    end = lines[(last.end_lineno or 1) - 1].encode()
    lines[(last.end_lineno or 1) - 1] = f"{end[: last.end_col_offset].decode()};{end[last.end_col_offset :].decode()}"
    return "\n".join(lines)
