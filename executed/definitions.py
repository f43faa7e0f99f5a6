"""Links from the names in a page's code to where the book shows what they mean.

Only what is certain becomes a link: a name that Python itself would look up in the module (a local of the same name is
not it), what `from snippets...` brings in, a parameter that is the result of an example, and methods of an object whose
class can be told. Links are found by position in the source, and set by position in the page: once a block has been
coloured, its text is still the same, letter by letter.
"""

import ast
import posixpath
import re
import symtable
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from typing import TYPE_CHECKING, Any, NamedTuple

from executed.book import DEFINITION, FUNCTION, SNIPPETS, Book, Module, Span, absolute, dotted
from executed.capture import visible
from executed.memo import Memo
from executed.statements import sha

if TYPE_CHECKING:
    from executed.render import Page

CODE = re.compile(r"(<pre\b[^>]*><span></span><code>)(.*?)(</code></pre>)", re.S)
NAMES = re.compile(r'(<span class="(?:n\w*|fm|vm)">)([^<]*)(?=</span>)|<[^>]*>|([^<]+)')
SCOPES = (*FUNCTION, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Mark = tuple[int, int, str, str]
"""A name in a block of code: where it begins and ends, the page and the anchor it leads to. Without a page, the name is
the definition itself and becomes that anchor."""
Marks = dict[str, list[Mark]]
"""The marks of a page, by `key` of the block they stand in."""


def key(code: str) -> str:
    """What a block of code is known by, before and after it has been coloured."""
    return sha(code.strip("\n"))[:16]


class _Use(NamedTuple):
    """A name in a module that leads to a definition, where it stands: the column is in characters."""

    line: int
    column: int
    name: str
    target: str


Uses = dict[int, list[_Use]]
"""By line."""


def _by_line(uses: list[list[Any]]) -> Uses:
    found: Uses = defaultdict(list)
    for use in uses:
        found[use[0]].append(_Use(*use))
    return found


@dataclass
class _Scope:
    """A function, class or comprehension while its names are followed."""

    table: symtable.SymbolTable
    above: "_Scope | None" = None
    owner: str = ""
    """The class this is the body of, or the method."""
    bound: dict[str, str] = field(default_factory=dict)
    """Locals that are certain to be one definition."""
    objects: dict[str, str] = field(default_factory=dict)
    """Locals that are certain to be an object of one class."""
    inner: dict[tuple[str, int], list[symtable.SymbolTable]] | None = None
    """Python's analysis of the scopes inside that were not entered yet, by name and line."""


def marks(book: Book, pages: "list[Page]", memo: Memo) -> dict[str, Marks]:
    """For each page the names in its code that the book defines somewhere, by path below `docs/`."""
    names = _Names(book, memo)
    inside: dict[str, set[str]] = {}  # the anchors of each page, those on the methods of a class it shows included
    for page in pages:
        inside[page.path] = set(page.anchors)
        for name, _ in page.blocks:
            module, definition = names.split(name)
            inner = module.definitions if module else ()
            inside[page.path].update(f"{name}.{rest}" for rest in _members(definition, inner))
    where: dict[str, list[str]] = defaultdict(list)
    for path, anchors in inside.items():
        for anchor in anchors:
            where[anchor].append(path)
    found: dict[str, Marks] = {}
    for page in pages:
        done: set[str] = set()
        blocks: Marks = {}
        for name, code in page.blocks:
            text = "\n".join(visible(line).expandtabs(4) for line in code.split("\n"))
            marked = list(_marked(names, name, code, page, where, done))
            if marked and key(text) not in blocks:
                blocks[key(text)] = marked
        if blocks:
            found[page.path.removeprefix("docs/")] = blocks
    return found


def _members(definition: str, definitions: "dict[str, Span] | tuple[()]") -> Iterator[str]:
    start = f"{definition}."
    return (name.removeprefix(start) for name in definitions if name.startswith(start))


def _marked(
    names: "_Names", shown: str, code: str, page: "Page", where: dict[str, list[str]], done: set[str]
) -> Iterator[Mark]:
    module, definition = names.split(shown)
    if module is None:
        return
    span = module.definitions[definition]
    lines = code.split("\n")
    first = names.first_line(module, definition, lines)
    if first is None:
        return
    uses, defined = names.uses(module)
    start = 0
    for number, line in enumerate(lines, first):
        source = module.lines[number - 1] if number <= span.last else ""
        cut = source.find(line)
        if cut >= 0 and line:
            for _, column, name, target in uses.get(number, ()):
                place = column - cut
                if line[max(place, 0) :].startswith(name) and place >= 0:
                    before = len(visible(line[:place]).expandtabs(4))
                    if (led := _leads_to(target, shown, page.path, where)) is not None:
                        yield start + before, start + before + len(name), *led
            for _, column, name, target in defined.get(number, ()):
                if target.startswith(f"{shown}.") and target not in page.anchors | done:
                    before = len(visible(line[: column - cut]).expandtabs(4))
                    done.add(target)
                    yield start + before, start + before + len(name), "", target
        start += len(visible(line).expandtabs(4)) + 1


def _leads_to(target: str, shown: str, asking: str, where: dict[str, list[str]]) -> tuple[str, str] | None:
    """The page and anchor of a definition, or of the class it is part of; None where no page shows it."""
    while target not in where and target.count(".") > 1:
        target = target.rpartition(".")[0]
    if target == shown or target not in where:
        return None
    folder, own = posixpath.dirname(asking), target.split(".")[0]

    def distance(path: str) -> tuple[bool, bool, bool, str]:
        chapter = posixpath.basename(path).removesuffix(".md").replace("-", "_")
        return path != asking, posixpath.dirname(path) != folder, chapter != own, path

    return min(where[target], key=distance).removeprefix("docs/"), target


class _Names:
    """What the names in the modules of a book lead to."""

    def __init__(self, book: Book, memo: Memo) -> None:
        self.book, self.memo = book, memo
        self._uses: dict[str, tuple[Uses, Uses]] = {}
        self._nodes: dict[str, dict[str, ast.stmt]] = {}

    def split(self, name: str) -> tuple[Module | None, str]:
        """The module of a definition's full name, and its name there."""
        words = name.split(".")
        for length in range(len(words) - 1, 0, -1):
            module = self.book.modules.get(".".join(words[:length]))
            if module and (definition := ".".join(words[length:])) in module.definitions:
                return module, definition
        return None, ""

    def node(self, module: Module, definition: str) -> ast.stmt | None:
        if module.name not in self._nodes:
            found: dict[str, ast.stmt] = {}
            todo: list[tuple[str, list[ast.stmt]]] = [("", module.tree.body)]
            for prefix, body in todo:
                for one in body:
                    if isinstance(one, DEFINITION):
                        found[prefix + one.name] = one
                    if isinstance(one, ast.ClassDef):
                        todo.append((f"{prefix}{one.name}.", one.body))
            self._nodes[module.name] = found
        return self._nodes[module.name].get(definition)

    def first_line(self, module: Module, definition: str, lines: list[str]) -> int | None:
        """The line of the module that the first of the shown lines is, be it a definition or the body of an example."""
        span = module.definitions[definition]
        if lines[0].strip() == module.lines[span.first - 1].strip():
            return span.first
        node = self.node(module, definition)
        if not isinstance(node, FUNCTION):
            return None
        opening = node.body[0]
        after = opening.end_lineno if ast.get_docstring(node, clean=False) is not None else node.lineno
        for first in range(after or node.lineno, span.last - len(lines) + 2):
            if all(line in module.lines[first - 1 + number] for number, line in enumerate(lines)):
                return first
        return None

    def uses(self, module: Module) -> tuple[Uses, Uses]:
        """The names of a module that lead to definitions, and those that are definitions inside classes, by line."""
        if module.name not in self._uses:
            behind = [f"{name} {self.book.modules[name].digest}" for name in sorted(self._behind(module.name))]
            text = "\n".join([*behind, "", *sorted(self.book.modules)])
            found = self.memo.of(module.name, text, lambda: self._followed(module))
            self._uses[module.name] = _by_line(found[0]), _by_line(found[1])
        return self._uses[module.name]

    def _behind(self, module: str) -> set[str]:
        """A module and all that it imports, and so on: no name in it leads further."""
        found = [module]
        for name in found:  # it grows
            mentioned = self.book.modules[name].mentioned & self.book.modules.keys()
            found += sorted(mentioned - {*found})
        return {*found}

    def _followed(self, module: Module) -> tuple[list[_Use], list[_Use]]:
        follower = _Follower(self, module)
        if module.scopes is not None:
            follower.visit(module.tree, _Scope(module.scopes))
        return follower.uses, follower.defined

    def origin(self, name: str) -> str:
        """Where the book defines a name; empty where it does not."""
        for _ in range(len(self.book.modules) + 1):
            module, definition = self.split(name)
            if module is not None:
                return f"{module.name}.{definition}"
            owner, _, last = name.rpartition(".")
            if owner not in self.book.modules or last not in self.book.modules[owner].imported:
                break
            name = self.book.modules[owner].imported[last]
        return name if name in self.book.modules else ""

    def is_class(self, name: str) -> bool:
        module, definition = self.split(name)
        return module is not None and isinstance(self.node(module, definition), ast.ClassDef)

    def member(self, owner: str, name: str, own: bool = True) -> str:
        """What defines an attribute of a class: itself, or what it inherits from, as far as that is in the book."""
        for _ in range(20):
            module, definition = self.split(owner)
            node = self.node(module, definition) if module else None
            if module is None or not isinstance(node, ast.ClassDef):
                return ""
            if own and f"{definition}.{name}" in module.definitions:
                return f"{owner}.{name}"
            if not node.bases:
                return ""
            owner, own = self.origin(f"{module.name}.{dotted(node.bases[0])}"), True
        return ""


class _Follower:
    """Goes through a module and notes each name that leads to a definition."""

    def __init__(self, names: _Names, module: Module) -> None:
        self.names, self.module = names, module
        self.uses: list[_Use] = []
        self.defined: list[_Use] = []
        self._top: dict[str, str] = {}

    def visit(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and (target := self.resolve(node.id, scope)):
                self._note(self.uses, node.lineno, node.col_offset, node.id, target)
            return
        if isinstance(node, ast.Attribute):
            self.visit(node.value, scope)
            if isinstance(node.ctx, ast.Load) and (target := self.attribute(node, scope)):
                end = (node.end_col_offset or 0) - len(node.attr.encode())
                self._note(self.uses, node.end_lineno or 0, end, node.attr, target)
            return
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if target := self._imported(node, alias):
                    self._note(self.uses, alias.lineno, alias.col_offset, alias.name, target)
            return
        if isinstance(node, ast.ClassDef):
            self._class(node, scope)
        elif isinstance(node, SCOPES):
            self._function(node, scope)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child, scope)

    def _class(self, node: ast.ClassDef, scope: _Scope) -> None:
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(child, scope)
        name = f"{scope.owner or self.module.name}.{node.name}"
        top = scope.above is None or bool(scope.owner and scope.table.get_type() == "class")
        inner = self._scope(node.name, node.lineno, scope, name if top else "")
        if inner is None:
            return
        for child in node.body:
            if top:
                self._define(child, name)
            self.visit(child, inner)

    def _define(self, node: ast.stmt, owner: str) -> None:
        """Note a method or a field of a class: where it is defined is where links to it lead."""
        if isinstance(node, FUNCTION):
            names = [(node.lineno, self.module.lines[node.lineno - 1].find(f"def {node.name}") + 4, node.name)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [(one.lineno, one.col_offset, one.id) for one in targets if isinstance(one, ast.Name)]
        else:
            names = []
        for line, column, name in names:
            self._note(self.defined, line, column, name, f"{owner}.{name}")

    def _function(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, FUNCTION):
            arguments = node.args
            notes = [one.annotation for one in ast.walk(arguments) if isinstance(one, ast.arg)]
            outside = [*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, *notes, node.returns]
            inner = self._scope(node.name, node.lineno, scope, scope.owner if _in_class(scope) else "")
            if inner:
                self._learn(node, inner, scope)
                for argument in ast.walk(arguments):
                    if isinstance(argument, ast.arg) and argument.arg in inner.bound:
                        self._note(
                            self.uses, argument.lineno, argument.col_offset, argument.arg, inner.bound[argument.arg]
                        )
            inside: list[ast.AST] = list(node.body)
        elif isinstance(node, ast.Lambda):
            outside = [*node.args.defaults, *node.args.kw_defaults]
            inner, inside = self._scope("lambda", node.lineno, scope), [node.body]
        else:
            assert isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
            first, *others = node.generators
            outside = [first.iter]
            kind = {"ListComp": "listcomp", "SetComp": "setcomp", "DictComp": "dictcomp", "GeneratorExp": "genexpr"}
            inner = self._scope(kind[type(node).__name__], node.lineno, scope)
            value: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            inside = [*value, first.target, *first.ifs, *others]
        for child in filter(None, outside):
            self.visit(child, scope)
        if inner:
            for part in inside:
                self.visit(part, inner)

    def _learn(self, node: ast.FunctionDef | ast.AsyncFunctionDef, inner: _Scope, outer: _Scope) -> None:
        """What is certain of a function's locals: those that are bound once, to something that can be told."""
        arguments = [one for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        walked = [one for part in node.body for one in ast.walk(part)]
        stores = Counter(one.id for one in walked if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load))
        stores.update(one.arg for one in walked if isinstance(one, ast.arg))
        stores.update(one.name for one in walked if isinstance(one, DEFINITION))
        example = self.names.book.examples.get(f"{self.module.name}.{node.name}") if outer.above is None else None
        needs = dict(zip(example.parameters, example.needs, strict=True)) if example else {}
        for number, argument in enumerate(arguments):
            if stores[argument.arg]:
                continue
            if argument.arg in needs:
                inner.bound[argument.arg] = needs[argument.arg]
            elif number == 0 and _in_class(outer) and not any(map(_static, node.decorator_list)):
                inner.objects[argument.arg] = outer.owner
            elif argument.annotation and (kind := self.kind(argument.annotation, outer)):
                inner.objects[argument.arg] = kind[0] if kind[1] == "class" else ""
        for one in walked:
            if isinstance(one, ast.ImportFrom):
                for alias in one.names:
                    bound = alias.asname or alias.name
                    if not stores[bound] and (target := self._imported(one, alias)):
                        inner.bound[bound] = target
            elif isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
                name = one.targets[0].id
                if stores[name] == 1 and isinstance(one.value, ast.Call):
                    kind = self.kind(one.value.func, inner)
                    if kind and kind[1] == "class":
                        inner.objects[name] = kind[0]

    def _scope(self, name: str, line: int, scope: _Scope, owner: str = "") -> _Scope | None:
        """Python's own analysis of the next scope of this name on this line; None where it has another idea of it."""
        if scope.inner is None:
            scope.inner = defaultdict(list)
            todo = list(scope.table.get_children())
            for one in todo:
                if str(one.get_type()) not in ("function", "class"):  # the scope of type parameters, in newer Pythons
                    todo += one.get_children()
                scope.inner[one.get_name(), one.get_lineno()].append(one)
        found = scope.inner.get((name, line))
        return _Scope(found.pop(0), scope, owner) if found else None

    def _imported(self, node: ast.ImportFrom, alias: ast.alias) -> str:
        package, _, module = absolute(node, self.module.name).partition(".")
        if package != SNIPPETS:
            return ""
        return self.names.origin(f"{module}.{alias.name}" if module else alias.name)

    def resolve(self, name: str, scope: _Scope | None) -> str:
        """The full name of the definition (or module) that a name stands for where it is read; empty if not certain."""
        while scope and scope.above:
            try:
                symbol = scope.table.lookup(name)
            except KeyError:  # an annotation, in some versions
                scope = scope.above
                continue
            if symbol.is_global():
                break
            if symbol.is_local():
                if scope.table.get_type() == "class":
                    return self.names.origin(f"{scope.owner}.{name}") if scope.owner else ""
                return scope.bound.get(name, "")
            scope = scope.above
            while scope and _in_class(scope):
                scope = scope.above
        if name not in self._top:
            found = self.names.origin(f"{self.module.name}.{name}")
            self._top[name] = found if found != self.module.name else ""
            if not found:
                self._top[name] = self._module(name)
        return self._top[name]

    def _module(self, name: str) -> str:
        for node in self.module.tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._imported(node, alias)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname == name and alias.name.startswith(f"{SNIPPETS}."):
                        return self.names.origin(alias.name.partition(".")[2])
        return ""

    def kind(self, expression: ast.expr, scope: _Scope) -> tuple[str, str] | None:
        """What an expression is, if that is certain: a class, a module, or an object of a class."""
        if isinstance(expression, ast.Name):
            above: _Scope | None = scope
            while above and not above.objects.get(expression.id):
                symbols = above.table.get_identifiers()
                if expression.id in symbols and above.table.lookup(expression.id).is_local():
                    break
                above = above.above
            if above and (owner := above.objects.get(expression.id)):
                return owner, "object"
            target = self.resolve(expression.id, scope)
        elif isinstance(expression, ast.Attribute):
            target = self.attribute(expression, scope)
        elif isinstance(expression, ast.Call):
            if isinstance(expression.func, ast.Name) and expression.func.id == "super" and not expression.args:
                above = scope
                while above and not above.owner:
                    above = above.above
                return (above.owner, "super") if above else None
            made = self.kind(expression.func, scope)
            return (made[0], "object") if made and made[1] == "class" else None
        else:
            return None
        if target in self.names.book.modules:
            return target, "module"
        return (target, "class") if target and self.names.is_class(target) else None

    def attribute(self, node: ast.Attribute, scope: _Scope) -> str:
        found = self.kind(node.value, scope)
        if found is None:
            return ""
        owner, kind = found
        if kind == "module":
            return self.names.origin(f"{owner}.{node.attr}")
        return self.names.member(owner, node.attr, own=kind != "super")

    def _note(self, found: list[_Use], line: int, column: int, name: str, target: str) -> None:
        if target not in self.names.book.modules:
            source = self.module.lines[line - 1]
            place = column if source.isascii() else len(source.encode()[:column].decode("utf-8", "replace"))
            found.append(_Use(line, place, name, target))


def _in_class(scope: _Scope) -> bool:
    return scope.table.get_type() == "class"


def _static(decorator: ast.expr) -> bool:
    return dotted(decorator) in ("staticmethod", "classmethod")


def linked(html: str, marks: Marks, address: Callable[[str, str], str]) -> str:
    """A page with the names in its code as links; `address` says how to get to an anchor of a page from this one."""

    seen: set[str] = set()

    def block(found: re.Match[str]) -> str:
        this = key(unescape(re.sub(r"<[^>]*>", "", found[2])))
        wanted = [one for one in marks.get(this, ()) if one[2] or this not in seen]  # an anchor stands on a page once
        seen.add(this)
        return found[1] + _with_links(found[2], wanted, address) + found[3] if wanted else found[0]

    return CODE.sub(block, html)


def _with_links(html: str, wanted: list[Mark], address: Callable[[str, str], str]) -> str:
    starts = {start: (end, page, anchor) for start, end, page, anchor in wanted}
    place = 0
    pieces = []
    for token in NAMES.finditer(html):
        name, other = token[2], token[3]
        if name is None:
            place += len(unescape(other)) if other else 0
            pieces.append(token[0])
            continue
        lead = len(name) - len(name.lstrip("@"))  # a decorator and its sign are one token
        end, page, anchor = starts.get(place + lead, (0, "", ""))
        place += len(unescape(name))
        if end != place:
            pieces.append(token[0])
        elif page:
            pieces.append(f'{token[1]}{name[:lead]}<a class="defined" href="{escape(address(page, anchor))}">'
                          f"{name[lead:]}</a>")  # fmt: skip
        else:
            # Inside: the theme takes spans with ids right below `<code>` for lines.
            pieces.append(f'{token[1]}<span id="{escape(anchor)}">{name}</span>')
    return "".join(pieces)
