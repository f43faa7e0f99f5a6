"""What leads to what in a book: from an example to every statement, module and installed package it can reach.

Every name is followed: to definitions in its module, through imports to other snippet modules, and out to installed
packages, of which the version counts, with those of all that they require. Importing a module runs its top level, so
whatever there does more than bind a name to something plain counts for every example that touches the module. Where
names cannot be followed (`globals()`, `eval`, star imports) whole modules count. When in doubt, run again.
"""

import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from executed.book import SNIPPETS, Book, Example, read_module
from executed.installed import MISSING, installed, required, version
from executed.memo import Memo
from executed.statements import ANYWHERE, OPAQUE, Import, Statement, binders, is_idle, sha, statements


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

    def __init__(self, book: Book, memo: Memo) -> None:
        self.book, self.memo = book, memo
        self._steps: dict[Node, list[Node]] = {}
        self._parts: dict[Node, tuple[str, str]] = {}
        self._opaque: set[Node] = set()
        self._packages: dict[str, list[str]] = {}
        self._locals: dict[str, list[Path]] = {}

    def parts(self, example: Example) -> dict[str, str]:
        """Everything an example can reach, by name, each with its hash."""
        found: dict[str, Any] = self.memo.of(example.name, self._follows_from, lambda: self._found(example))
        return dict(found["parts"])

    def _follows_from(self, found: dict[str, Any]) -> str | None:
        """All that was looked at on the way; None if that was a file of the repository that is no snippet."""
        if any(map(self._local, found["packages"])):
            return None
        modules = self.book.modules
        seen = [f"{name} {modules[name].digest if name in modules else ''}" for name in found["modules"]]
        return "\n".join([self._surroundings, *seen])

    @cached_property
    def _surroundings(self) -> str:
        """The names of all modules, and what is installed."""
        return sha("\n".join([*self.book.modules, "", *installed()]))

    def _found(self, example: Example) -> dict[str, Any]:
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
        return {
            "modules": sorted({node.module for node in reached if node.position != PACKAGE}),
            "packages": sorted({node.name for node in reached if node.position == PACKAGE}),
            "parts": parts,
        }

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
            loaded: dict[str, None] = {}
            for position, statement in enumerate(found):
                if statement.effects:
                    yield Node(node.module, position)
                before = len(loaded)
                for one in () if statement.deferred else statement.imports:
                    yield from self.load(one)
                    if one.package not in sys.stdlib_module_names:
                        loaded.setdefault(self._loads(one))
                if new := list(loaded)[before:]:  # the order of what importing runs counts
                    yield Node(node.module, position, f"import {', '.join(new)}")
            if module.scopes is None or (not found and not all(map(is_idle, module.tree.body))):
                yield from self._everything()  # it cannot be analysed
        elif node.position == WHOLE:
            self._parts[node] = f"all of {node.module}", module.digest
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

    def _loads(self, one: Import) -> str:
        within = _joined(one.module, one.attribute or "")
        return within if one.package == SNIPPETS and self._file(within.partition(".")[2]) else one.module

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
        if local := self._local(name):  # the repository's own code outside the book
            files = sorted(local[0].rglob("*.py")) if local[0].is_dir() else local
            self._parts[node] = f"files of {name}", sha("".join(sha(file.read_bytes()) for file in files))
            yield from self._everything()
            for file in files:
                for statement in statements(read_module(name, file.name, file.read_bytes())):
                    yield from (Node("", PACKAGE, one.package) for one in statement.imports if one.package != SNIPPETS)
        elif name not in sys.stdlib_module_names:
            self._parts[node] = f"package {name}", version(name)
            yield from (Node("", PACKAGE, other) for other in required(name))
            if version(name) == MISSING and name in self.book.modules:  # sys.path may lead to the book's own module
                yield from self._everything()

    def _local(self, package: str) -> list[Path]:
        """The repository's own file or folder of this name, which Python would import."""
        if package not in self._locals:
            places = (self.book.root / package, self.book.root / f"{package}.py")
            self._locals[package] = [file for file in places if file.exists()]
        return self._locals[package]

    def _everything(self) -> Iterator[Node]:
        yield from (Node(name, WHOLE) for name in self.book.modules)


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))
