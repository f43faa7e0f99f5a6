"""What an example uses, found by watching it run, with nothing of the engine's own analysis of names."""

import ast
import importlib.machinery
import inspect
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mutants import Mutant, first_line

from executed.book import DEFINITION, FUNCTION
from executed.statements import is_idle


class Watch:
    """Notes, in one process, which statements of the book run and which of its names are looked up from where."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spaces: dict[str, dict[str, Any]] = {}
        self.ran: dict[str, set[int]] = defaultdict(set)
        """Lines of statements inside functions, by module."""
        self.used: set[tuple[str, str]] = set()
        """Names of modules that functions, or others than the book, looked up."""
        self.bound: set[tuple[str, int, str, str]] = set()
        """Names that the top level of a module looked up: its name, the line, the module, the name."""

    def note(self, module: str, name: str) -> None:
        frame = sys._getframe(2)
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib"):
            return
        if code.co_flags & inspect.CO_OPTIMIZED or not code.co_filename.startswith(str(self.folder)):
            self.used.add((module, name))
        else:
            self.bound.add((Path(code.co_filename).stem, frame.f_lineno, module, name))

    def install(self, root: str) -> None:
        """Stands in for `worker._compile_anew`."""
        watch = self

        class Names(dict[str, Any]):
            def __getitem__(self, name: str) -> Any:
                value = dict.__getitem__(self, name)
                if name[:2] != "__":
                    watch.note(dict.__getitem__(self, "__name__"), name)
                return value

        class Watched(ModuleType):
            def __getattribute__(self, name: str) -> Any:
                own = super().__getattribute__("__dict__")
                space = watch.spaces.get(own["__name__"])
                if space is None or (name not in space and name != "__dict__"):
                    return super().__getattribute__(name)
                if name[:2] == "__":
                    return space if name == "__dict__" else dict.__getitem__(space, name)
                watch.note(own["__name__"], name)
                return dict.__getitem__(space, name)

            def __setattr__(self, name: str, value: Any) -> None:
                watch.spaces.get(self.__name__, super().__getattribute__("__dict__"))[name] = value

        class Loader(importlib.machinery.SourceFileLoader):
            def create_module(self, spec: Any) -> ModuleType:
                return Watched(spec.name)

            def exec_module(self, module: ModuleType) -> None:
                tree = with_marks(ast.parse(Path(self.path).read_bytes()))
                space = Names(module.__dict__)
                space["__ran__"] = watch.ran[module.__name__].add
                watch.spaces[module.__name__] = space
                exec(compile(tree, self.path, "exec"), space)

        def finder(path: str) -> importlib.machinery.FileFinder:
            if Path(path) != watch.folder:
                raise ImportError(path)
            return importlib.machinery.FileFinder(path, (Loader, [".py"]))

        sys.path_hooks.insert(0, finder)
        sys.path_importer_cache.clear()

    def write(self, target: Path) -> None:
        ran = {module: sorted(lines) for module, lines in self.ran.items()}
        target.write_text(json.dumps({"ran": ran, "used": sorted(self.used), "bound": sorted(self.bound)}))


def with_marks(tree: ast.Module) -> ast.Module:
    """A module in which each statement inside a function says, before it runs, that it does."""
    inside = {node for one in ast.walk(tree) if isinstance(one, FUNCTION) for node in ast.walk(one)}
    for node in inside:
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                marked = [
                    part
                    for one in body
                    for part in ([one] if is_idle(one) else [ast.copy_location(_mark(one.lineno), one), one])
                ]
                setattr(node, name, marked)
    return ast.fix_missing_locations(tree)


def _mark(line: int) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Name("__ran__", ast.Load()), [ast.Constant(line)], []))


@dataclass
class Used:
    """What one run of one example used: top-level statements by index, names, and lines inside functions."""

    whole: bool
    statements: set[tuple[str, int]] = field(default_factory=set)
    names: set[tuple[str, str]] = field(default_factory=set)
    ran: dict[str, set[int]] = field(default_factory=dict)

    def uses(self, mutant: Mutant) -> bool:
        if mutant.name:
            return (mutant.module, mutant.name) in self.names
        return all((mutant.module, index) in self.statements for index in mutant.touched)


def used(seen: dict[str, Any], whole: bool, trees: dict[str, ast.Module]) -> Used:
    """Follow what was looked up at run time back through what each definition looked up when it was made."""

    def own(name: str) -> str:
        return name.removeprefix("snippets.")

    found = Used(whole, ran={own(module): set(lines) for module, lines in seen["ran"].items()})
    todo: list[tuple[str, str]] = [(own(module), name) for module, name in seen["used"]]
    bound: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    for reader, line, module, name in seen["bound"]:
        bound[reader, at(trees[reader], line)].add((own(module), name))

    def reach(module: str, index: int, name: str) -> None:
        statement = trees[module].body[index]
        new = bound[module, index]
        if isinstance(statement, ast.ImportFrom):  # only what this name stands for
            named = {one.name for one in statement.names if (one.asname or one.name) == name}
            new = {one for one in new if one[1] in named}
        elif (module, index) in found.statements:
            new = set()
        found.statements.add((module, index))
        todo.extend(new)

    for module, lines in found.ran.items():
        for index in {at(trees[module], line) for line in lines}:
            reach(module, index, "")
        for index, statement in enumerate(trees[module].body):  # what has no name may do anything
            if not is_idle(statement) and not binds(statement):
                reach(module, index, "")
    while todo:
        if (one := todo.pop()) not in found.names:
            found.names.add(one)
            module, name = one
            for index, statement in enumerate(trees[module].body):
                if name in binds(statement):
                    reach(module, index, name)
    return found


@cache
def binds(statement: ast.stmt) -> frozenset[str]:
    """The names a statement of a module's top level binds; none for one that does something else."""
    declared = {name for one in ast.walk(statement) if isinstance(one, ast.Global) for name in one.names}
    if isinstance(statement, DEFINITION):
        return frozenset({statement.name} | declared)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return frozenset(one.asname or one.name.partition(".")[0] for one in statement.names)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        parts = [part for target in targets for part in ast.walk(target)]
        if all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts):
            return frozenset(part.id for part in parts if isinstance(part, ast.Name))
    return frozenset()


def at(tree: ast.Module, line: int) -> int:
    return max(index for index, one in enumerate(tree.body) if first_line(one) <= line)
