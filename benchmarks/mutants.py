"""Every way in which benchmarks/mutation.py changes a module, one at a time."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from executed.book import DEFINITION, FUNCTION, is_example_decorator
from executed.statements import is_idle

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """One change to one module: lines `first` to `last` replaced by `text`."""

    kind: str
    module: str
    first: int
    last: int
    text: str
    line: int
    """Of the innermost statement that changed."""
    touched: tuple[int, ...]
    """The top-level statements it changes, by their index."""
    name: str = ""
    """For an import, the one name that it changes."""
    importing: bool = False
    """Whether what changed runs when the module is imported."""

    def source(self, lines: list[str]) -> str:
        return "\n".join([*lines[: self.first - 1], self.text, *lines[self.last :]])


SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.And: ast.Or, ast.Or: ast.And, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """A node with one thing changed, and the kind of that change."""

    def with_(**fields: Any) -> ast.AST:
        return type(node)(**{**dict(ast.iter_fields(node)), **fields})

    match node:
        case ast.Expr(ast.Constant(str(text))):
            yield "docstring", ast.Expr(ast.Constant(f"{text} And more."))
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(str(value)):
            yield "constant", ast.Constant(value + "z")
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            yield "operator", with_(op=SWAPS[type(op)]())
        case ast.UnaryOp(operand=operand):
            yield "operator", operand
        case ast.Compare(ops=[first, *rest]):
            yield "comparison", with_(ops=[SWAPS[type(first)](), *rest])
        case ast.IfExp(body=body, orelse=orelse):
            yield "condition", with_(body=orelse, orelse=body)
        case ast.If(test=test) | ast.While(test=test):
            yield "condition", with_(test=ast.UnaryOp(ast.Not(), test))
        case ast.Slice(lower=lower, upper=upper) if lower or upper:
            yield "slice", with_(lower=upper, upper=lower)
        case ast.Call(args=args, keywords=keywords):
            for number in range(len(keywords)):
                yield "argument", with_(keywords=[*keywords[:number], *keywords[number + 1 :]])
            if len(args) > 1 and ast.dump(args[0]) != ast.dump(args[1]):
                yield "argument", with_(args=[args[1], args[0], *args[2:]])
        case ast.Return(value=ast.AST()):
            yield "return value", ast.Return(None)
        case ast.Attribute(value=value, attr=attr) if attr == "T":
            yield "operator", value


CONTEXTS = {
    "decorator_list": "decorator", "bases": "base class", "keywords": "base class", "returns": "annotation",
    "annotation": "annotation", "defaults": "argument default", "kw_defaults": "argument default",
}  # fmt: skip


def places(node: ast.AST, context: str, inside: ast.stmt) -> Iterator[tuple[Any, Any, str, ast.stmt]]:
    """Every place below a node that holds another: a container and its key, what it is part of, in which statement."""
    for name, value in list(ast.iter_fields(node)):
        inner = context
        if name in CONTEXTS and not isinstance(node, ast.Call):
            inner = CONTEXTS[name] if context not in CONTEXTS.values() else context
        elif isinstance(node, ast.ClassDef) and name == "body":
            inner = "class body"
        elif isinstance(node, (*FUNCTION, ast.Lambda)) and name == "body":
            inner = ""
        holder: Any = value if isinstance(value, list) else vars(node)
        keys: Any = range(len(value)) if isinstance(value, list) else [name]
        for key in keys:
            found = holder[key]
            if not isinstance(found, ast.AST) or (isinstance(found, ast.expr) and is_example_decorator(found)):
                continue  # its options count by what they mean
            statement = found if isinstance(found, ast.stmt) else inside
            yield holder, key, inner, statement
            if not is_idle(found):
                yield from places(found, inner, statement)


def variants(module: str, tree: ast.Module, index: int) -> Iterator[Mutant]:
    """Every mutant of one top-level statement. The tree is changed in place and put back."""
    top, after = tree.body[index], tree.body[index + 1 : index + 2]

    def mutant(kind: str, text: str, *at: ast.stmt, **more: Any) -> Mutant:
        at = at or (top,)
        span = {"first": min(map(first_line, at)), "last": max(one.end_lineno or 0 for one in at)}
        return Mutant(kind, module, text=text, line=at[0].lineno, **{**span, "touched": (index,), **more})

    yield mutant("comments and layout", written(top))
    yield mutant("definition added", f"def never_called(x):\n    return x\n\n\n{written(top)}", importing=True)
    if is_idle(top):
        yield mutant("docstring", '"""Another docstring."""')
        return
    yield mutant("definition deleted", "", importing=True)
    if after:
        touched = (index, index + 1)
        yield mutant("top level swapped", written(after[0], top), top, *after, touched=touched, importing=True)
    if isinstance(top, ast.Import | ast.ImportFrom):
        yield from (mutant("imported name", text, name=name, importing=True) for name, text in imports(top))
        return
    start = "module level" if not isinstance(top, DEFINITION) else ""
    for holder, key, context, inside in [({"top": top}, "top", start, top), *places(top, start, top)]:
        node = holder[key]
        choices = list(changed(node))
        if context == "annotation":
            plain = isinstance(node, ast.Name) and node.id != "object"
            choices = [("annotation", ast.Name("object"))] if plain else []
        elif context == "base class" and isinstance(node, ast.Name | ast.Attribute):
            choices = [("base class", ast.Name("object"))]
        elif node is inside and node is not top and not is_idle(node) and not isinstance(node, ast.Pass):
            choices += [("statement deleted", ast.Pass())]
        importing = bool(context)
        for kind, new in choices:
            holder[key] = new
            text = written(new if node is inside and isinstance(new, ast.stmt) else inside, depth=inside.col_offset)
            yield mutant(kind if kind == "docstring" else context or kind, text, inside, importing=importing)
            holder[key] = node
        pair = holder[key : key + 2] if node is inside and node is not top and isinstance(holder, list) else []
        if len(pair) == 2 and not any(map(is_idle, pair)):
            text = written(*reversed(pair), depth=inside.col_offset)
            yield mutant(context or "statements swapped", text, *pair, importing=importing)
        if context == "decorator" and isinstance(holder, list):
            kept, first = list(holder), first_line(inside)
            for fewer in ([one for one in kept if one is not node], kept[::-1]):
                holder[:] = fewer
                if fewer != kept:
                    text = written(inside, depth=inside.col_offset)
                    yield mutant("decorator", text, inside, first=first, importing=True)
            holder[:] = kept


def written(*statements: ast.stmt, depth: int = 0) -> str:
    """Statements as text, at their indentation."""
    body = list(statements)
    for _ in range(depth // 4):
        body = [ast.If(ast.Constant(1), body, [])]
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    return text.split("\n", depth // 4)[-1]


def imports(top: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """An import that binds another name of the same module, or one name fewer; and the name it is about."""
    for number, alias in enumerate(top.names):
        bound = alias.asname or alias.name.partition(".")[0]
        if isinstance(top, ast.Import):
            other = alias.name.rpartition(".")[0] or "string"
        else:
            names = sorted(one for one in public(top.module or "") if one != alias.name)
            other = next((one for one in names if one > alias.name), names[0] if names else "")
        for instead in ([ast.alias(other, bound)] if other else [], []):
            if names_now := [*top.names[:number], *instead, *top.names[number + 1 :]]:
                yield bound, ast.unparse(type(top)(**{**dict(ast.iter_fields(top)), "names": names_now}))


@cache
def public(module: str) -> list[str]:
    if module.startswith("snippets."):
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        return [node.name for node in tree.body if isinstance(node, DEFINITION)]
    return [name for name in dir(importlib.import_module(module)) if name[0] != "_"]


def first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])
