"""executed/fingerprint.py: never stale, and no needless run where the text alone can tell.

The tricky books below are changed digit by digit, line by line, and really run: whatever changes what an example
prints must change its fingerprint. Honest scope: what the environment does, or a file that a child process reads, is
not seen in the source text; `benchmarks/mutation.py` puts the whole book to the question, and takes its time.
"""

import ast
import contextlib
import gc
import importlib
import importlib.metadata
import io
import json
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.mutants import variants
from executed.book import DEFINITION, Book
from executed.fingerprint import Fingerprints, differences
from executed.installed import version
from executed.runner import run
from executed.store import Store

WriteBook = Callable[..., Path]
Snippets = dict[str, str]
MARK = "from executed import example\n"


def digests(root: Path) -> dict[str, str]:
    """The fingerprints of a book, with what was remembered of it when this was last asked; without, they are equal."""
    book = Book.read(root)
    fingerprints = Fingerprints(book)
    found = {name: fingerprints.of(name).digest for name in book.examples}
    fingerprints.keep()
    memory = root / ".executed/reach.json"
    aside = memory.replace(memory.with_suffix(".aside"))
    anew = Fingerprints(book)
    assert found == {name: anew.of(name).digest for name in book.examples}
    aside.replace(memory)
    return found


def outputs(root: Path) -> dict[str, str]:
    """What each example prints and returns, or how it fails, in one process that imports the modules anew for each."""
    book = Book.read(root)

    def called(name: str) -> object:
        example = book.examples[name]
        function = getattr(importlib.import_module(f"snippets.{example.module}"), example.function)
        return function(**dict(zip(example.parameters, map(called, example.needs), strict=True)))

    def run(name: str) -> str:
        sys.dont_write_bytecode = True
        for loaded in [one for one in sys.modules if one.partition(".")[0] == "snippets"]:
            del sys.modules[loaded]
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                print(repr(called(name)))
            except Exception as error:
                print(type(error).__name__)
        return printed.getvalue()

    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        with contextlib.suppress(BaseException), open(writing, "w") as stream:
            json.dump({name: run(name) for name in book.examples}, stream)
        os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        found: dict[str, str] = json.load(stream)
    os.waitpid(pid, 0)
    return found


def replaced(source: str, node: ast.AST, text: str) -> str:
    lines = source.split("\n")
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]
    return "\n".join([*lines[:first], before + text + after, *lines[last + 1 :]])


def changed(source: str) -> Iterator[str]:
    """A module with one thing changed: a number, a text, a slice, an import; a line or decorator gone, two swapped."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield replaced(source, node, str(node.value + 1))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" not in node.value:
            yield replaced(source, node, repr(node.value + "z"))
        elif isinstance(node, ast.ImportFrom) and len(node.names) > 1:
            one, two = node.names[:2]
            one.asname, two.asname = two.asname or two.name, one.asname or one.name
            yield replaced(source, node, ast.unparse(node))
            node.names[:2] = two, one
            yield replaced(source, node, ast.unparse(node))
        elif isinstance(node, ast.Slice) and (node.lower or node.upper):
            node.lower, node.upper = node.upper, node.lower
            yield replaced(source, node, ast.unparse(node))
        elif isinstance(node, DEFINITION):
            for decorator in node.decorator_list:
                yield replaced(source, decorator, "(lambda f: f)")
    lines = source.split("\n")
    starts = [min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))]) - 1 for one in tree.body]
    pieces = ["\n".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    for number in range(len(pieces)):
        yield "\n".join([*pieces[:number], *pieces[number + 1 :]])
        yield "\n".join([*pieces[:number], *pieces[number + 1 : number + 2], pieces[number], *pieces[number + 2 :]])


def stale(write_book: WriteBook, snippets: Snippets) -> list[str]:
    """Changes after which an example prints something else under the same fingerprint."""
    snippets = {name: textwrap.dedent(source).strip("\n") + "\n" for name, source in snippets.items()}
    root = write_book(snippets)
    printed, known = outputs(root), digests(root)
    assert printed, "the book has examples"
    found = []
    for module, source in snippets.items():
        for text in changed(source):
            write_book({module: text})
            same = {name for name, digest in digests(root).items() if known.get(name) == digest}
            now = outputs(root) if same else {}
            found += [f"{module}: {name}\n{text}" for name in same if now.get(name) != printed[name]]
        write_book({module: source})
    return found


def main(source: str) -> str:
    return MARK + textwrap.dedent(source)


TRICKY: dict[str, Snippets] = {
    "aliases": {
        "a": "def f():\n    return 1\ndef g():\n    return 2\n",
        "main": main("""
        from snippets.a import f as h, g as k
        same = h
        @example
        def shown():
            print(same(), k())
        """),
    },
    "outside aliases": {
        "main": main("""
        from math import floor as one, ceil as two
        import os.path as p
        @example
        def shown():
            print(one(1.5), two(1.5), p.basename("x/y"))
        """)
    },
    "re-exports": {
        "a": "LIMIT = 3\ndef f():\n    return LIMIT\n",
        "b": "from snippets.a import f\n",
        "c": "from snippets.b import f as g\n",
        "main": main("from snippets.c import g\n@example\ndef shown():\n    print(g())\n"),
    },
    "import of a submodule": {
        "a": "def f():\n    return 1\n",
        "b": "import snippets.c\n",
        "c": "def f():\n    return 5\n",
        "main": main("""
        import snippets.a
        import snippets.b
        @example
        def shown():
            print(snippets.a.f(), snippets.c.f())
        """),
    },
    "import as": {
        "a": "X = 3\ndef f():\n    return X\n",
        "main": main("import snippets.a as b\n@example\ndef shown():\n    print(b.f())\n"),
    },
    "from snippets": {
        "a": "def f(x=2):\n    return x\n",
        "main": main("from snippets import a\n@example\ndef shown():\n    print(a.f())\n"),
    },
    "relative imports": {
        "a": "def f():\n    return 2\n",
        "b": "Y = 4\n",
        "main": main("from .a import f\nfrom . import b\n@example\ndef shown():\n    print(f(), b.Y)\n"),
    },
    "chained star imports": {
        "a": "def f():\n    return 2\nG = 3\n",
        "b": "from snippets.a import *\nfrom math import *\n",
        "main": main("from snippets.b import *\n@example\ndef shown():\n    print(f(), G, pi)\n"),
    },
    "inheritance across modules": {
        "a": "class Base:\n    size = 3\n    def area(self):\n        return self.size ** 2\n",
        "b": "from snippets.a import Base\nclass Middle(Base):\n    extra = 1\n",
        "main": main("""
        from snippets import b
        class Own(b.Middle):
            def area(self):
                return super().area() + self.extra
        @example
        def shown():
            print(Own().area())
        """),
    },
    "decorators from another module": {
        "a": "def twice(f):\n    return lambda *a: f(*a) * 2\n",
        "main": main("""
        from snippets.a import twice
        @twice
        def f():
            return 3
        @example
        def shown():
            print(f())
        """),
    },
    "a decorator that only looks harmless": {
        "a": "SEEN = []\ndef property(f):\n    SEEN.append(1)\n    return f\n",
        "main": main("""
        from snippets.a import SEEN, property
        @property
        def unused():
            pass
        @example
        def shown():
            print(SEEN)
        """),
    },
    "closures and default arguments": {
        "main": main("""
        def adder(n):
            def add(x, step=2):
                return x + n + step
            return add
        three = adder(3)
        WIDTH = 4
        def f(x=WIDTH, *, y=[5]):
            return x, y
        WIDTH = 6
        @example
        def shown():
            print(three(1), f())
        """)
    },
    "conditional definitions": {
        "a": """
        FLAG = 1
        if FLAG > 1:
            def f():
                return 7
        else:
            def f():
                return 8
        try:
            from math import nothing as g
        except ImportError:
            def g():
                return 9
        try:
            import snippets.extra as extra
        except ImportError:
            extra = None
        """,
        "main": main("from snippets.a import f, g, extra\n@example\ndef shown():\n    print(f(), g(), extra)\n"),
    },
    "names bound again": {
        "main": main("""
        X = 1
        Y = X + 1
        X = 5
        def f():
            return 1
        g = f
        def f():
            return 2
        Z = [1]
        Z += [2]
        Z.append(3)
        for i in range(3):
            W = i
        (a, b), c = (1, 2), 3
        [d, *e] = 4, 5
        if (n := 10) > 3:
            V = n
        Q = 1
        del Q
        @example
        def shown():
            print(X, Y, f(), g(), Z, W, a, b, c, d, e, n, V)
        """)
    },
    "global writes": {
        "a": """
        STATE = 1
        def set(value):
            global STATE, NEW
            STATE = value
            NEW = value + 1
        def get():
            return STATE, NEW
        def load():
            global helper
            from snippets import helper
        def use():
            return helper.f()
        """,
        "helper": "def f():\n    return 4\n",
        "main": main("""
        from snippets import a
        @example
        def shown():
            a.set(3)
            a.load()
            print(a.get(), a.use())
        """),
    },
    "effects one after the other": {
        "log": "SEEN = []\n",
        "a": "from snippets.log import SEEN\nSEEN.append('a')\n",
        "b": "from snippets.log import SEEN\nSEEN.append('b')\n",
        "main": main("""
        import snippets.a
        import snippets.b
        from snippets.log import SEEN
        @example
        def shown():
            print(SEEN)
        """),
    },
    "a default dictionary": {
        "main": main("""
        from collections import defaultdict
        D = defaultdict(list)
        X = D["one"]
        Y = f"{D['two']}"
        @example
        def shown():
            print(dict(D))
        """)
    },
    "operators with effects": {
        "a": """
        SEEN = []
        class A:
            def __add__(self, other):
                SEEN.append(other)
            def __class_getitem__(cls, key):
                SEEN.append(key)
            def __init_subclass__(cls):
                SEEN.append(cls.__name__)
        ONE = A()
        """,
        "main": main("""
        from snippets.a import A, ONE, SEEN
        two = ONE + 2
        three = A[3]
        class B(A):
            pass
        @example
        def shown():
            print(SEEN)
        """),
    },
    "annotations read at run time": {
        "main": main("""
        from dataclasses import dataclass, field, fields
        from typing import NamedTuple, get_type_hints
        class Kind:
            size = 3
        class Other:
            size = 4
        @dataclass
        class Point:
            x: int = 1
            y: "Kind" = field(default=2)
        class Pair(NamedTuple):
            a: int
            b: Kind = Kind.size
        def f(x: "Other") -> None:
            pass
        SEEN = []
        def note(value):
            SEEN.append(value)
        def g(x: note(5)):
            pass
        @example
        def shown():
            print(Point(), [one.name for one in fields(Point)], Pair(1), get_type_hints(Point)["y"].size)
            print(get_type_hints(f)["x"].size, SEEN)
        """)
    },
    "annotations put off": {
        "main": "from __future__ import annotations\n"
        + main("""
        def f(x: list) -> 3:
            pass
        @example
        def shown():
            print(f.__annotations__)
        """)
    },
    "getattr": {
        "a": "def f1():\n    return 1\ndef f2():\n    return 2\n",
        "main": main("""
        from snippets import a
        import operator
        NAME = "f"
        @example
        def constant():
            print(getattr(a, "f1")())
        @example
        def computed():
            print([getattr(a, NAME + str(i))() for i in (1, 2)], operator.attrgetter("f2")(a)())
        @example
        def listed():
            print(sorted(name for name in vars(a) if name[0] == "f"))
        """),
    },
    "patched modules": {
        "a": "def f():\n    return 1\ndef g():\n    return f()\n",
        "patch": """
        import math
        from snippets import a
        a.f = lambda: 2
        setattr(a, "h", 5)
        math.floor = lambda x: 3
        """,
        "main": main("""
        import math
        import snippets.patch
        from snippets import a
        @example
        def shown():
            print(a.g(), a.h, math.floor(1.5))
        """),
    },
    "a module's own __getattr__": {
        "a": "VALUE = 3\ndef __getattr__(name):\n    return name, VALUE\n",
        "main": main(
            "from snippets import a\nfrom snippets.a import other\n@example\ndef shown():\n    print(a.x, other)\n"
        ),
    },
    "packages": {
        "__init__": "import math\nHELPER = 3\nmath.extra = 1\n",
        "vi/__init__": "from snippets.a import f as g\nCOUNT = 2\n",
        "vi/x": "from .. import HELPER\nfrom . import COUNT, g\nfrom ..a import f\n"
        + main("import math\n@example\ndef shown():\n    print(HELPER, COUNT, f(), g(), math.extra)\n"),
        "a": "def f():\n    return 4\n",
        "main": main("from snippets import vi, HELPER\n@example\ndef shown():\n    print(vi.COUNT, vi.g(), HELPER)\n"),
    },
    "folders without __init__": {
        "vi/x": "def f():\n    return 1\n",
        "vi/y": "from snippets.vi import x\ndef g():\n    return x.f() + 1\n",
        "main": main(
            "import snippets.vi.y\nfrom snippets import vi\n@example\ndef shown():\n    print(vi.x.f(), vi.y.g())\n"
        ),
    },
    "docstrings that are read": {
        "a": '"""The module."""\ndef f():\n    """The function."""\n',
        "main": main("""
        import inspect
        from snippets import a
        @example
        def doc():
            print(a.__doc__, a.f.__doc__)
        @example
        def source():
            print(inspect.getsource(a.f))
        @example
        def by_getattr():
            print(getattr(a.f, "__doc__"))
        """),
    },
    "registries": {
        "a": """
        TABLE = {}
        def register(f):
            TABLE[f.__name__] = f
            return f
        @register
        def one():
            return 1
        """,
        "b": """
        from snippets.a import register
        @register
        def two():
            return helper()
        def helper():
            return 2
        """,
        "main": main("""
        import snippets.b
        from snippets.a import TABLE
        def three():
            return 3
        OWN = {"three": three}
        OWN["four"] = lambda: 4
        @example
        def shown():
            print([f() for f in TABLE.values()], [f() for f in OWN.values()])
        """),
    },
    "singledispatch": {
        "main": main("""
        from functools import singledispatch
        @singledispatch
        def size(x):
            return 0
        @size.register
        def _(x: int):
            return 1
        @size.register(str)
        def _(x):
            return 2
        @example
        def shown():
            print(size(1), size("a"), size(2.0))
        """)
    },
    "metaclasses, descriptors and enumerations": {
        "a": """
        class Meta(type):
            def __new__(cls, name, bases, members):
                return super().__new__(cls, name, bases, members | {"added": 1})
        class Named:
            def __set_name__(self, owner, name):
                owner.names = [*getattr(owner, "names", []), name]
        """,
        "main": main("""
        from enum import Enum, auto
        from snippets.a import Meta, Named
        class Colour(Enum):
            RED = auto()
            BLUE = 5
        class A(metaclass=Meta):
            one = Named()
            match Colour.BLUE.value:
                case 5:
                    two = 2
                case _:
                    two = 3
        @example
        def shown():
            print(list(Colour), A.added, A.names, A.two)
        """),
    },
    "code in texts": {
        "a": "VALUE = 1\ndef f():\n    return 2\n",
        "main": main("""
        import importlib
        import sys
        import sys as system
        from pathlib import Path
        @example
        def evaluated():
            scope = {}
            exec("from snippets.a import f", scope)
            print(scope["f"]())
        @example
        def imported():
            print(importlib.import_module("snippets." + "a").VALUE)
        @example
        def among_the_loaded():
            import snippets.a
            print(sys.modules["snippets.a"].f())
        @example
        def among_the_loaded_by_another_name():
            import snippets.a
            print(list(vars(system.modules["snippets." + "a"]))[-1])
        @example
        def read_as_text():
            print(Path(sys.path[0], "snippets", "a.py").read_text())
        @example
        def the_file():
            print(Path(__file__).read_text())
        @example
        def globals_by_name():
            print(sorted(name for name in globals() if name[0] != "_"))
        """),
    },
    "examples that call and need each other": {
        "a": main("@example\ndef trained():\n    return 3\n"),
        "main": main("""
        from snippets.a import trained
        @example
        def called():
            return trained() + 1
        @example
        def needed(trained):
            return trained + 2
        @example
        def again(needed):
            return needed + called()
        """),
    },
    "imports inside functions": {
        "a": "def f():\n    return 1\nLAZY = 3\n",
        "b": "def f():\n    return 10\n",
        "main": main("""
        from snippets.a import f
        class Both:
            def one(self):
                from snippets.b import f
                return f()
            def two(self):
                return f()
        def lazy():
            from snippets import a as module
            return module.LAZY
        @example
        def shown():
            print(Both().one(), Both().two(), lazy())
        """),
    },
    "several statements on a line": {
        "main": main("""
        X = 1; Y = [X,
            2]; Z = 3
        def f(): a = 4; return a + X
        @example
        def shown(): print(X, Y, Z, f()); return Y
        """)
    },
    "scopes": {
        "main": main("""
        a, b, c = 1, 2, 3
        class A:
            a = a + 10
            values = [b for _ in range(2)]
            def get(self):
                return [(lambda: c)() for a in range(1)]
        def outer():
            b = 20
            def inner():
                return a, b
            return inner
        f = lambda b=b: (b, c)
        @example
        def shown():
            print(A.a, A.values, A().get(), outer()(), f())
        """)
    },
    "keyword defaults and unpacked dictionaries": {
        "main": main("""
        X = {"a": 1}
        def f(*, a=1, b=2, **rest):
            return a, b, rest
        D = {**X, "a": 2}
        @example
        def shown():
            print(f(b=3), f(**X), D)
        """)
    },
    "a names table that is computed": {
        "a": "def f():\n    return 1\ndef g():\n    return 2\n",
        "b": "from snippets import a\nTABLE = {name: getattr(a, name) for name in dir(a) if name in 'fg'}\n",
        "main": main(
            "from snippets.b import TABLE\n@example\ndef shown():\n    print([f() for f in TABLE.values()])\n"
        ),
    },
    "a class that another module changes": {
        "a": "class A:\n    x = 1\n    def get(self):\n        return self.x, self.y()\n",
        "b": """
        from snippets.a import A
        A.x = 2
        def y(self):
            return helper()
        def helper():
            return 3
        A.y = y
        del helper
        def helper():
            return 4
        """,
        "main": main("""
        from snippets.a import A
        import snippets.b
        @example
        def shown():
            print(A().get())
        """),
    },
    "subclasses that are listed": {
        "a": "class Base:\n    pass\n",
        "b": "from snippets.a import Base\nclass One(Base):\n    size = 1\nclass Two(Base):\n    size = 2\n",
        "main": main("""
        import snippets.b
        from snippets.a import Base
        @example
        def shown():
            print([(one.__name__, one.size) for one in Base.__subclasses__()])
        """),
    },
    "a module handed on": {
        "a": "def f():\n    return 1\n",
        "b": "from snippets import a\ndef call(m):\n    return m.f()\ndef own():\n    return call(a)\nalias = a\n",
        "main": main("""
        from snippets.b import alias, call, own
        from snippets import b
        @example
        def shown():
            print(own(), alias.f(), call(alias), b.a.f(), b.alias.f())
        """),
    },
    "context managers, generators and recursion": {
        "a": """
        from contextlib import contextmanager
        from functools import cache, partial, wraps
        LOG = []
        @contextmanager
        def logged(name):
            LOG.append(name)
            yield len(LOG)
        @cache
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        def counted(f):
            @wraps(f)
            def inner(*args):
                LOG.append(f.__name__)
                return f(*args)
            return inner
        double = partial(max, 2)
        """,
        "main": main("""
        from snippets.a import LOG, counted, double, fib, logged
        @counted
        def numbers(n):
            yield from range(n)
        @example
        def shown():
            with logged("x") as count:
                print(count, list(numbers(3)), fib(7), double(1), LOG)
        """),
    },
    "a module without examples that prints": {
        "noisy": "print('hello', 3)\n",
        "quiet": "import snippets.noisy\ndef f():\n    return 1\n",
        "main": main("from snippets.quiet import f\n@example\ndef shown():\n    print(f())\n"),
    },
    "slices": {
        "main": main("""
        def f(x):
            return x[1:], x[:2], x[::2], x[1:2]
        @example
        def shown():
            print(f([1, 2, 3]))
        """)
    },
    "own functions with names that sound harmless": {
        "main": main("""
        SEEN = []
        def sqrt(x):
            SEEN.append(x)
            return 2
        def cache(f):
            SEEN.append(f.__name__)
            return f
        root = sqrt(3)
        @cache
        def unused():
            pass
        class Group:
            len = sqrt
        size = Group.len(4)
        largest = max((1, 2), key=sqrt)
        class Own:
            @classmethod
            @property
            def property(cls):
                SEEN.append(5)
        seen = Own.property
        @example
        def shown():
            print(SEEN)
        """)
    },
    "base classes of others that keep a list": {
        "main": main("""
        import yaml
        class Never(yaml.YAMLObject):
            yaml_tag = "!named"
            size = 3
        @example
        def shown():
            print(yaml.load("!named {}", yaml.Loader).size)
        """)
    },
    "names that are computed": {
        "main": main("""
        def f():
            \"""The function.\"""
            yield 1
        @example
        def by_parts():
            print(getattr(f, "__do" + "c__"))
        @example
        def by_a_template():
            print("{0.__doc__}".format(f))
        @example
        def by_its_code():
            print(f().gi_code.co_firstlineno)
        """)
    },
    "annotations put off in classes and functions": {
        "main": "from __future__ import annotations\n"
        + main("""
        from dataclasses import dataclass
        from typing import get_type_hints
        class Kind:
            size = 3
        @dataclass
        class Point:
            x: Kind = None
        def inner():
            def hinted(x: Other):
                pass
            return get_type_hints(hinted)["x"].size
        class Other:
            size = 4
        @example
        def shown():
            print(get_type_hints(Point)["x"].size, inner())
        """),
    },
    "effects in the order of one import": {
        "log": "SEEN = []\n",
        "a": "from snippets.log import SEEN\nSEEN.append('a')\n",
        "b": "from snippets.log import SEEN\nSEEN.append('b')\n",
        "c": "from snippets.log import SEEN\nSEEN.append('c')\n",
        "main": main("""
        from snippets import a, b
        from snippets import c
        from snippets.log import SEEN
        @example
        def shown():
            print(SEEN)
        """),
    },
    "names bound in passing": {
        "a": """
        match [1, 2]:
            case [x, *y]:
                pass
        def f(z=(w := 5)):
            return x, y, z, w
        """,
        "main": main("from snippets.a import f, w, y\n@example\ndef shown():\n    print(f(), w, y)\n"),
    },
    "modules that import each other": {
        "a": "import snippets.b as b\ndef f():\n    return b.g() + 1\n",
        "b": "import snippets.a as a\ndef g():\n    return 2\ndef h():\n    return a.f()\n",
        "main": main("from snippets.b import h\n@example\ndef shown():\n    print(h())\n"),
    },
}


@pytest.mark.parametrize("name", TRICKY)
def test_whatever_changes_an_output_changes_the_fingerprint(name: str, write_book: WriteBook) -> None:
    assert not stale(write_book, TRICKY[name])


# Statements of random books. Every name is a function of no arguments, so that any may call any; {m} is an earlier
# module, {x} and {y} are names bound earlier, {n} is the name to bind, {k} a number.
STATEMENTS = [
    "def {n}():\n    return {k}",
    "def {n}():\n    return {x}() + {k}",
    "def {n}(f={x}):\n    return f() * 2",
    "{n} = {x}",
    "{n} = lambda: {x}() - {y}()",
    "{n} = (lambda value: lambda: value)({x}())",
    "LOG.append({x}())\ndef {n}():\n    return sum(LOG)",
    "class C:\n    value = {k}\n    def get(self):\n        return self.value + {x}()\n{n} = C().get",
    "TABLE = {{'one': {x}, 'two': {y}}}\ndef {n}():\n    return TABLE['one']() - TABLE['two']()",
    "if {x}() > {k}:\n    {n} = {x}\nelse:\n    def {n}():\n        return {y}()",
    "def {n}():\n    global changed\n    changed = {x}\n    return changed() + {k}",
    "def {n}():\n    from snippets.{m} import a\n    return a()",
    "from snippets.{m} import {x} as {n}",
    "from snippets.{m} import a as {n}, b as {y}",
    "from snippets import {m} as module\ndef {n}():\n    return module.b() + {x}()",
    "import snippets.{m} as whole\ndef {n}():\n    return getattr(whole, 'a')()",
    "from snippets.{m} import *",
    "import snippets.{m}\ndef {n}():\n    return snippets.{m}.c()",
    "from snippets import {m} as other\nother.{x} = {y}\ndef {n}():\n    return other.{x}()",
    "for {n} in ({x}, {y}):\n    pass",
    "{n}, {y} = {x}, {x}",
    "def {n}():\n    return sum([1, 2, 3, 4][{k}:])",
    "def note(f):\n    LOG.append(f())\n    return f\n@note\ndef {n}():\n    return {k}",
    "def cache(f):\n    LOG.append({k})\n    return f\n@cache\ndef {n}():\n    return {x}()",
    "from functools import cache\n@cache\ndef {n}():\n    return {x}()",
    "TABLE = {{}}\ndef keep(f):\n    TABLE[f.__name__] = f\n    return f\n@keep\ndef {n}():\n    return len(TABLE)",
    "class D(Base):\n    size = {k}\n{n} = D().get",
    "class E(Base):\n    get = lambda self: {x}() + self.size\nBase.size = {k}\n{n} = E().get",
    "from snippets.{m} import Base as Other\nOther.get = lambda self: {k}\n{n} = Other().get",
    "class P:\n    @property\n    def value(self):\n        return {x}()\n{n} = lambda: P().value",
    "best = max(({x}, {y}), key=lambda f: LOG.append(f()) or f())\n{n} = lambda: best()",
    "try:\n    from snippets.{m} import e as {n}\nexcept ImportError:\n    def {n}():\n        return {k}",
    "from . import {m} as near\ndef {n}():\n    return getattr(near, chr({k} % 3 + 97))()",
    "setattr(__import__('snippets.{m}').{m}, 'b', {x})\n{n} = {y}",
    "def {n}(*, f={x}, g=(h := {y})):\n    return f() + h()",
    "del {n}\ndef {n}():\n    return len(LOG)",
    "{n} = __import__('functools').partial(lambda value, f: f() + value, {k}, {x})",
]
NAMES = st.sampled_from("abcd")
FILLED = st.builds(
    lambda text, **fields: (text, fields), st.sampled_from(STATEMENTS), n=NAMES, x=NAMES, y=NAMES, k=st.integers(0, 9)
)


# `python benchmarks/mutation.py --books 500` asks for more.
BOOKS = int(os.environ.get("RANDOM_BOOKS", 0))


@settings(max_examples=BOOKS or 25, deadline=None, derandomize=not BOOKS, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(FILLED, min_size=1, max_size=6), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_no_random_book_goes_stale(
    write_book: WriteBook, modules: list[list[tuple[str, dict[str, object]]]], random: Random
) -> None:
    start = "LOG = []\nclass Base:\n    size = 1\n    def get(self):\n        return self.size\n"
    start += "".join(f"def {name}():\n    return {number}\n" for number, name in enumerate("abcd"))
    book: Snippets = {"m0": start}
    for number, filled in enumerate(modules, 1):
        earlier = [random.choice(list(book)) for _ in filled]
        lines = [text.format(m=m, **fields) for (text, fields), m in zip(filled, earlier, strict=True)]
        book[f"m{number}"] = f"from snippets.m{number - 1} import LOG, Base, a, b, c, d\n" + "\n".join(lines) + "\n"
    last = f"m{len(modules)}"
    for name in "ab":
        book[last] += f"from executed import example\n@example\ndef shown_{name}():\n    print({name}())\n"
    root = write_book(book)
    printed, known = outputs(root), digests(root)
    for module in random.sample(list(book), 2):
        write_book({module: random.choice(list(changed(book[module])))})
        now, new = outputs(root), digests(root)
        for name in known.keys() & new.keys():
            assert known[name] != new[name] or printed[name] == now[name]
        write_book({module: book[module]})


def test_nothing_that_changes_a_real_chapter_leaves_its_fingerprint(write_book: WriteBook) -> None:
    for package in ("torch", "matplotlib.pyplot"):  # once, so that each run need not
        importlib.import_module(package)
    chapter = ast.parse((Path(__file__).parents[2] / "snippets" / "attention.py").read_text("utf-8"))
    kept = {"third_row", "four_tokens", "three_roles"}
    marked = [
        one for one in chapter.body if getattr(one, "decorator_list", ()) and getattr(one, "name", "") not in kept
    ]
    chapter.body = [one for one in chapter.body if one not in marked]
    source = ast.unparse(chapter) + "\n"
    root = write_book({"attention": source})
    printed, known = outputs(root), digests(root)
    assert printed.keys() == {f"attention.{name}" for name in kept}
    mutants = [one for index in range(len(chapter.body)) for one in variants("attention", ast.parse(source), index)]
    for mutant in Random(0).sample(mutants, 15):
        write_book({"attention": mutant.source(source.split("\n"))})
        same = {name for name, digest in digests(root).items() if known.get(name) == digest}
        now = outputs(root)
        if len(set(now.values())) > 1:  # else it cannot be imported, and whatever has to run says so
            assert {name: now[name] for name in same} == {name: printed[name] for name in same}, mutant


BOOK: Snippets = {
    "base": """
    import math
    SCALE = 3
    UNUSED = 4

    def helper(x):
        \"\"\"Nobody reads this.\"\"\"
        return SCALE * x

    def other(x):
        return x - 1
    """,
    "middle": """
    from snippets import base
    from snippets.base import helper

    def twice(x):
        return helper(x) + base.helper(x)

    def lonely(x):
        return base.other(x)
    """,
    "chapter": main("""
    from snippets.middle import lonely, twice

    WIDTH = 2

    class Model:
        size = WIDTH

        def __call__(self, x):
            \"\"\"Call it.\"\"\"
            return twice(x) + self.size

    @example(timeout=30)
    def uses_the_model():
        \"\"\"Show it.\"\"\"
        print(Model()(3))  # why

    @example
    def uses_the_lonely_one():
        print(lonely(3))

    @example
    def needs_the_model(uses_the_model):
        print("needs")

    @example
    def calls_nothing():
        print("nothing")
    """),
}
MODEL = {"uses_the_model", "needs_the_model"}
LONELY = {"uses_the_lonely_one"}
ALL = {"uses_the_model", "needs_the_model", "uses_the_lonely_one", "calls_nothing"}


@pytest.mark.parametrize(
    ("module", "old", "new", "rerun"),
    [
        pytest.param("base", "SCALE = 3", "SCALE = 4", MODEL, id="a digit two imports away"),
        pytest.param("base", "x - 1", "x - 2", LONELY, id="another helper"),
        pytest.param("base", "UNUSED = 4", "UNUSED = 5", set(), id="a constant nobody reads"),
        pytest.param("chapter", "print(Model()(3))", "print(Model()(4))", MODEL, id="the example and what needs it"),
        pytest.param("chapter", "WIDTH = 2", "WIDTH = 3", MODEL, id="what a class reads"),
        pytest.param("chapter", '"needs"', '"other"', {"needs_the_model"}, id="an example that needs another"),
        pytest.param("base", "import math", "import math\nimport json\nuse = json", set(), id="a standard import"),
        pytest.param("base", "import math", "import math\nprint('hello')", ALL, id="an effect of importing"),
        pytest.param("base", "Nobody reads this", "Nobody reads that", set(), id="a docstring"),
        pytest.param("chapter", "Show it", "Show this", set(), id="the docstring of an example"),
        pytest.param("chapter", "# why", "# because", set(), id="a comment"),
        pytest.param("base", "SCALE * x", "(\n        SCALE\n        * x\n    )", set(), id="layout"),
        pytest.param("middle", "base.helper(x)", "base.helper(\n        x,\n    )", set(), id="a call over lines"),
        pytest.param("base", "SCALE = 3", "\n\n# Three.\nSCALE = 3", set(), id="blank lines"),
        pytest.param("chapter", "(timeout=30)", "(timeout=60)", set(), id="a longer time limit"),
        pytest.param("chapter", "WIDTH = 2", "WIDTH = 2\ndef new(x):\n    return x", set(), id="a new function"),
        pytest.param("chapter", "@example(", "class New(Model):\n    x = 1\n\n@example(", set(), id="a new class"),
        pytest.param("middle", "def twice", "TABLE = {'one': helper}\ndef twice", set(), id="a table of functions"),
        pytest.param(
            "middle", "def lonely", "def unrelated():\n    pass\n\ndef lonely", set(), id="a function between"
        ),
        pytest.param(
            "chapter", "import lonely, twice", "import (\n    twice,\n    lonely,\n)", set(), id="import order"
        ),
    ],
)
def test_a_change_reruns_exactly_what_it_can_change(
    write_book: WriteBook, module: str, old: str, new: str, rerun: set[str]
) -> None:
    before = digests(write_book(BOOK))
    source = textwrap.dedent(BOOK[module])
    assert source.count(old) == 1
    after = digests(write_book({module: source.replace(old, new)}))
    assert {name.removeprefix("chapter.") for name in before if before[name] != after[name]} == rerun


def test_a_local_name_is_not_taken_for_an_example_of_that_name(write_book: WriteBook) -> None:
    source = main("@example\ndef rows():\n    print(1)\n@example\ndef shown():\n    rows = 3\n    print(rows)\n")
    before = digests(write_book({"main": source}))
    after = digests(write_book({"main": source.replace("print(1)", "print(2)")}))
    assert before["main.shown"] == after["main.shown"]
    assert before["main.rows"] != after["main.rows"]


def test_the_version_of_a_package_that_a_module_imports_counts(
    write_book: WriteBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_book({"main": main("import numpy\n@example\ndef shown():\n    print(numpy.pi)\n")})
    before = Fingerprints(Book.read(root)).of("main.shown")
    monkeypatch.setattr("executed.reach.version", lambda package: "0.0")
    after = Fingerprints(Book.read(root)).of("main.shown")
    assert before.digest != after.digest
    assert differences(before.parts, after.parts) == [f"numpy {before.parts['package numpy']} -> 0.0"]


def test_what_is_remembered_is_forgotten_when_something_else_is_installed(
    write_book: WriteBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_book({"main": main("import numpy\n@example\ndef shown():\n    print(numpy.pi)\n")})
    before = digests(root)
    monkeypatch.setattr("executed.reach.version", lambda package: "0.0")
    monkeypatch.setattr("executed.reach.installed", lambda: ["numpy-0.0.dist-info"])
    assert digests(root) != before


def test_a_book_that_is_read_anew_leaves_nothing_behind(write_book: WriteBook) -> None:
    root = write_book(
        {"a": "import numpy\nfrom executed import example\n\n@example\ndef one():\n    print(numpy.pi)\n"}
    )
    book = Book.read(root)
    Fingerprints(book).of("a.one")
    left = weakref.ref(book)
    del book
    gc.collect()
    assert left() is None, "`mkdocs serve` would keep every version of the book"


def test_a_module_that_appears_or_goes_counts(write_book: WriteBook) -> None:
    source = "try:\n    from snippets import extra\nexcept ImportError:\n    extra = None\n"
    root = write_book({"main": main(f"{source}@example\ndef shown():\n    print(extra)\n")})
    without = digests(root)
    assert digests(write_book({"extra": ""})) != without
    (root / "snippets/extra.py").unlink()
    assert digests(root) == without
    (root / "numpy.py").write_text("")
    main_alone = digests(write_book({"main": main("import numpy\n@example\ndef shown():\n    print(numpy)\n")}))
    (root / "numpy.py").write_text("pi = 3\n")
    assert digests(root) != main_alone
    (root / "numpy.py").unlink()
    assert digests(root) != main_alone


def test_a_package_has_the_version_of_the_distribution_that_installed_it() -> None:
    installed = importlib.metadata.packages_distributions()
    for name in ("sklearn", "PIL", "yaml"):
        (owner,) = set(installed[name])
        assert version(name) == f"{owner} {importlib.metadata.version(owner)}"
    assert version("no_such_package") == "missing"


def test_the_version_of_what_a_package_requires_counts(write_book: WriteBook, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_book({"main": main("import torch\n@example\ndef shown():\n    print(torch.ones(2).numpy())\n")})
    before = Fingerprints(Book.read(root)).of("main.shown")
    monkeypatch.setattr("executed.reach.version", lambda package: "0.0" if package == "sympy" else version(package))
    after = Fingerprints(Book.read(root)).of("main.shown")
    assert differences(before.parts, after.parts) == [f"sympy {version('sympy')} -> 0.0"]
    assert "package numpy" in before.parts, "torch does not say so, and prints arrays with it"


def test_which_submodules_of_a_package_were_imported_counts(write_book: WriteBook) -> None:
    chapter = main("import numpy\nimport snippets.a\n@example\ndef shown():\n    print(numpy.polynomial.hermite)\n")
    before = digests(write_book({"a": "import numpy.polynomial.hermite as one\none\n", "main": chapter}))
    assert before != digests(write_book({"a": "import numpy.polynomial.laguerre as one\none\n"}))


def test_code_of_the_repository_outside_the_book_counts_with_what_it_imports(write_book: WriteBook) -> None:
    root = write_book({"main": main("import tools\n@example\ndef shown():\n    print(tools.f())\n")})
    (root / "tools.py").write_text("from more import f\n")
    (root / "more.py").write_text("def f():\n    return 1\n")
    before = digests(root)
    (root / "more.py").write_text("def f():\n    return 2\n")
    assert before != digests(root)


def test_code_that_only_a_run_can_find_counts_as_a_file_does(write_book: WriteBook) -> None:
    chapter = main("""
    from pydoc import locate
    from snippets.b import f
    @example
    def shown():
        print(locate("snip" + "pets.a").f(), f())
    """)
    root = write_book({"a": "def f():\n    return 1\n", "b": "def f():\n    return 2\n", "main": chapter})
    results = run(Book.read(root), Store(root), ["main.shown"]).results
    assert results["main.shown"].text == "1 2"
    assert results["main.shown"].files.keys() == {"snippets/a.py"}


def test_a_declared_file_counts_and_its_absence_too(write_book: WriteBook) -> None:
    root = write_book({"main": main("@example(files=['data.txt'])\ndef shown():\n    print(1)\n")})
    states = [digests(root)["main.shown"]]
    for text in ("one", "two"):
        (root / "data.txt").write_text(text)
        states.append(digests(root)["main.shown"])
    assert len(set(states)) == 3


def test_a_declared_folder_counts_with_the_files_in_it(write_book: WriteBook) -> None:
    root = write_book({"main": main("@example(files=['data'])\ndef shown():\n    print(1)\n")})
    (root / "data" / "inner").mkdir(parents=True)
    (root / "data" / "inner" / "file.txt").write_text("one")
    before = digests(root)
    (root / "data" / "inner" / "file.txt").write_text("two")
    assert before != digests(root)


def test_needs_that_change_places_count(write_book: WriteBook) -> None:
    source = "@example\ndef {}():\n    return 1\n@example\ndef {}():\n    return 2\n"
    source += "@example\ndef shown(one, two):\n    pass\n"
    before = digests(write_book({"main": main(source.format("one", "two"))}))
    assert before["main.shown"] != digests(write_book({"main": main(source.format("two", "one"))}))["main.shown"]


def test_a_module_of_comments_and_docstrings_ties_nothing_together(write_book: WriteBook) -> None:
    root = write_book({**BOOK, "__init__": '"""The book."""\n# Nothing.\n'})
    before = digests(root)
    write_book({"__init__": '"""The same book."""\n', "base": textwrap.dedent(BOOK["base"]).replace("x - 1", "x - 2")})
    assert {name for name, digest in digests(root).items() if digest != before[name]} == {"chapter.uses_the_lonely_one"}


def test_a_module_that_cannot_be_read_counts_as_it_is(write_book: WriteBook) -> None:
    root = write_book({"a": "def f(:\n", "main": main("import snippets.a\n@example\ndef shown():\n    pass\n")})
    before = digests(root)
    assert before != digests(write_book({"a": "def f( :\n"}))
    assert before != digests(write_book({"a": "def f():\n    pass\n"}))


def test_a_sum_of_hundreds_of_terms_is_no_problem(write_book: WriteBook) -> None:
    terms = " + ".join(["x"] * 900)
    source = main(f"@example\ndef shown():\n    x = 1\n    print({terms})\n")
    assert digests(write_book({"main": source})) != digests(write_book({"main": source.replace("x = 1", "x = 2")}))


def test_fingerprints_do_not_depend_on_the_order_of_sets(write_book: WriteBook) -> None:
    root = write_book(BOOK)
    code = (
        "import sys; from pathlib import Path; from executed.book import Book; from executed.fingerprint import "
        "Fingerprints; b = Book.read(Path(sys.argv[1])); print([Fingerprints(b).of(n).digest for n in b.examples])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(root)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_differences_are_told_in_words(write_book: WriteBook) -> None:
    root = write_book(BOOK)
    before = Fingerprints(Book.read(root)).of("chapter.uses_the_model")
    write_book({"base": textwrap.dedent(BOOK["base"]).replace("SCALE * x", "SCALE * other(x)")})
    after = Fingerprints(Book.read(root)).of("chapter.uses_the_model")
    assert differences(before.parts, after.parts) == ["base.helper changed", "now uses base.other"]


def test_statements_in_another_order_are_told_in_words(write_book: WriteBook) -> None:
    source = main("LOG = []\nLOG.append(1)\nLOG.append(2)\n@example\ndef shown():\n    print(LOG)\n")
    before = Fingerprints(Book.read(write_book({"main": source}))).of("main.shown")
    source = source.replace("LOG.append(1)\nLOG.append(2)", "LOG.append(2)\nLOG.append(1)")
    after = Fingerprints(Book.read(write_book({"main": source}))).of("main.shown")
    assert differences(before.parts, after.parts) == ["its statements stand in another order"]
