"""executed/book.py: which examples a book has, what each shows and needs, and errors that help to mend it."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from executed.book import Book, BookError, Module, Options, find_root, nearest

WriteBook = Callable[..., Path]
MARK = "from executed import example\n"


def read(write_book: WriteBook, **snippets: str) -> Book:
    return Book.read(write_book({name: MARK + textwrap.dedent(source) for name, source in snippets.items()}))


def problems(book: Book) -> list[str]:
    return [str(problem) for problem in book.problems]


def body(source: str) -> str:
    module = Module("m", "snippets/m.py", (MARK + source).encode())
    assert not module.problems
    [example] = module.examples.values()
    return example.body


# What a page shows of an example


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        pytest.param("@example\ndef f():\n    x = 1\n    print(x)\n    return x\n", "x = 1\nprint(x)", id="plain"),
        pytest.param('@example\ndef f():\n    """Doc."""\n\n    print(1)\n', "print(1)", id="a docstring"),
        pytest.param(
            '@example\ndef f():\n    """Doc.\n\n    More.\n    """  # noqa\n    print(1)\n', "print(1)", id="long"
        ),
        pytest.param('@example\ndef f():\n    """Only a docstring."""\n', "", id="a docstring only"),
        pytest.param('@example\ndef f():\n    """Doc."""; print(1)\n', "print(1)", id="code after a docstring"),
        pytest.param("@example\ndef f():\n    return {\n        'a': 1,\n    }\n", "", id="a return only"),
        pytest.param("@example\ndef f(): print(1)\n", "print(1)", id="one line"),
        pytest.param("@example\ndef f(): print('é'); return 2\n", "print('é')", id="one line with a return"),
        pytest.param("@example\ndef f():\n    x = 1; return x\n", "x = 1", id="a return after a semicolon"),
        pytest.param(
            "@example\ndef f():\n    # first\n    x = 1\n    # last\n    return x\n", "# first\nx = 1\n# last"
        ),
        pytest.param("@example\ndef f():\n    # a remark;\n    return 1\n", "# a remark;", id="a comment only"),
        pytest.param("@example\ndef f():\n# far left\n    x = 1\n", "# far left\nx = 1", id="a comment at the margin"),
        pytest.param("@example\ndef f():  # a remark: on f\n    x = 1\n", "x = 1", id="a comment on the def line"),
        pytest.param(
            "@example\ndef f(\n    a,  # why: this\n    # and: that\n    b,\n) -> 'a: b':\n    pass\n",
            "pass",
            id="a def over several lines",
        ),
        pytest.param(
            "@example\n@other\ndef f():\n    if 1:\n        return 2\n    print(3)\n",
            "if 1:\n    return 2\nprint(3)",
            id="a return in the middle",
        ),
        pytest.param("@other(\n    1\n)\n@example()\ndef f():\n    print(1)\n", "print(1)", id="a decorator above"),
        pytest.param("@example\ndef f():\n\tif 1:\n\t\tprint(1)\n\treturn 2\n", "if 1:\n\tprint(1)", id="tabs"),
        pytest.param("@example\r\ndef f():\r\n    x = 1\r\n    return x\r\n", "x = 1", id="Windows line ends"),
        pytest.param(
            "\f\n@example\ndef f():\n    x = 'a\\fb\fc'\n\n\f\n    print(x)\n", "x = 'a\\fb\fc'\n\n\nprint(x)"
        ),
        pytest.param(
            '@example\ndef f():\n    text = """\n  two\nnone\n    """\n    print(text)\n',
            'text = """\n  two\nnone\n    """\nprint(text)',
            id="the lines of a text stay as they are",
        ),
        pytest.param("@example\ndef f():\n    x = ('a'\n         'b')\n", "x = ('a'\n     'b')", id="joined texts"),
        pytest.param(
            "@example\ndef f():\n    def inner():\n        return 1\n    return inner()\n",
            "def inner():\n    return 1",
            id="a function inside",
        ),
    ],
)
def test_the_body_is_what_a_reader_would_type(source: str, shown: str) -> None:
    assert body(source) == shown


def test_a_definition_is_found_with_its_decorators(write_book: WriteBook) -> None:
    book = read(
        write_book,
        a="@cache\n@other(\n    1\n)\nclass A:\n    @property\n    def b(self):\n        return 1\nC = [\n    2\n]\n",
    )
    module = book.modules["a"]
    assert list(module.definitions) == ["A", "A.b", "C"]
    assert module.text(module.definitions["A.b"]) == "    @property\n    def b(self):\n        return 1"
    assert module.text(module.definitions["C"]) == "C = [\n    2\n]"


# Options


def test_options_are_read_from_the_text(write_book: WriteBook) -> None:
    book = read(
        write_book,
        a="""
        import torch
        @example(timeout=300, memory=8, threads=2, alone=True, varies=True, raises=torch.OutOfMemory, files=["a", "b"])
        def f():
            pass
        """,
    )
    assert book.examples["a.f"].options == Options(300, 8, 2, True, True, "OutOfMemory", ("a", "b"))


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("@example(timout=3)\ndef f(): pass", "@example has no option timout; did you mean timeout?"),
        ("@example(timeout='3')\ndef f(): pass", "@example reads timeout= from the text: write a number of seconds"),
        ("@example(timeout=True)\ndef f(): pass", "@example reads timeout= from the text: write a number of seconds"),
        ("@example(timeout=LIMIT)\ndef f(): pass", "@example reads timeout= from the text: write a number of seconds"),
        ("@example(alone=1)\ndef f(): pass", "@example reads alone= from the text: write True or False"),
        ("@example(threads='2')\ndef f(): pass", "@example reads threads= from the text: write a whole number"),
        ("@example(threads=2)\ndef f(): pass", "threads= above 1 needs alone=True: examples share the cores"),
        ("@example(files='a.txt')\ndef f(): pass", "@example reads files= from the text: write a list of paths"),
        ("@example(raises=(A, B))\ndef f(): pass", "raises= names one exception, such as raises=ValueError"),
        ("@example(300)\ndef f(): pass", "@example takes named options only, such as timeout=300"),
        ("@example\nasync def f(): pass", "f is async; an example is an ordinary function"),
        ("@example\ndef f(x=1): pass", "f may only have plain parameters, each the name of an example it needs"),
        ("@example\ndef f(*x): pass", "f may only have plain parameters, each the name of an example it needs"),
        ("@example\ndef g(): pass\n@example\ndef g(): pass", "a.g is defined twice; the first is at line 3"),
        ("class A:\n    @example\n    def f(): pass", "f is inside another statement; an example stands by itself"),
    ],
)
def test_a_wrong_mark_names_the_line_and_the_remedy(write_book: WriteBook, marked: str, message: str) -> None:
    [problem] = [one for one in read(write_book, a=marked).problems if "needs x" not in one.message]
    assert problem.path == "snippets/a.py"
    assert problem.line >= 2
    assert problem.message == message


# Needs


def test_a_need_is_found_through_any_chain_of_imports(write_book: WriteBook) -> None:
    book = read(
        write_book,
        a="@example\ndef trained():\n    return 1\n",
        b="from snippets.a import trained as model\n",
        c="from .b import model as it\n@example\ndef used(it, own):\n    pass\n@example\ndef own():\n    pass\n",
    )
    assert not book.problems
    assert book.examples["c.used"].needs == ("a.trained", "c.own")
    order = book.order(["c.used"])
    assert set(order) == {"a.trained", "c.own", "c.used"}
    assert order[-1] == "c.used"


def test_a_misspelt_need_names_the_nearest_example(write_book: WriteBook) -> None:
    book = read(write_book, a="@example\ndef trained():\n    pass\n@example\ndef shown(traned):\n    pass\n")
    assert problems(book) == [
        "snippets/a.py:6: a.shown needs traned, and no example of that name is defined or imported here; "
        "did you mean trained?"
    ]
    assert list(book.examples) == ["a.trained"]


def test_a_need_that_is_not_imported_says_how_to_import_it(write_book: WriteBook) -> None:
    book = read(write_book, a="@example\ndef trained():\n    pass\n", b="@example\ndef shown(trained):\n    pass\n")
    assert problems(book)[0].endswith("defined or imported here; write from snippets.a import trained")


def test_every_missing_need_is_named_at_once(write_book: WriteBook) -> None:
    assert len(problems(read(write_book, a="@example\ndef shown(one, two):\n    pass\n"))) == 2


def test_a_circle_of_needs_is_printed_as_a_chain(write_book: WriteBook) -> None:
    source = "".join(f"@example\ndef {one}({two}):\n    pass\n" for one, two in ("ab", "bc", "ca", "da"))
    book = read(write_book, m=source + "@example\ndef e():\n    pass\n")
    [problem] = book.problems
    assert problem.message.startswith("examples need each other in a circle: ")
    chain = problem.message.partition(": ")[2].split(" -> ")
    needs = {"m.a": "m.b", "m.b": "m.c", "m.c": "m.a"}
    assert chain[0] == chain[-1]
    assert [needs[name] for name in chain[:-1]] == chain[1:]
    assert list(book.examples) == ["m.e"]


def test_a_chain_of_a_thousand_needs_is_no_problem(write_book: WriteBook) -> None:
    source = "@example\ndef f0():\n    pass\n"
    source += "".join(f"@example\ndef f{number}(f{number - 1}):\n    pass\n" for number in range(1, 1001))
    book = read(write_book, m=source)
    assert not book.problems
    assert book.order(["m.f1000"]) == [f"m.f{number}" for number in range(1001)]


# Files that cannot be read cost only themselves


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"x = (\n", "this is not Python: '(' was never closed", id="syntax"),
        pytest.param(b"def f(a, a):\n    pass\n", "this is not Python: duplicate argument 'a'", id="two parameters"),
        pytest.param(b"x = 1\0\n", "this is not Python: ", id="a null byte"),
        pytest.param(b"\n\nx = '\xff'\n", "this is not UTF-8; save the file as UTF-8", id="not UTF-8"),
        pytest.param(b"# coding: latin-1\nx = '\xe9'\n", "save the file as UTF-8", id="another encoding"),
        pytest.param(("x = " + "-" * 100000 + "1\n").encode(), "nested too deeply", id="too deep"),
        pytest.param(("x = " + " + ".join("x" * 20000) + "\n").encode(), "nested too deeply", id="too long a sum"),
    ],
)
def test_a_file_that_is_not_python_costs_only_itself(write_book: WriteBook, data: bytes, message: str) -> None:
    root = write_book({"good": MARK + "@example\ndef f():\n    pass\n"})
    (root / "snippets" / "bad.py").write_bytes(data)
    book = Book.read(root)
    [problem] = book.problems
    assert problem.path == "snippets/bad.py"
    assert message in problem.message
    assert list(book.examples) == ["good.f"]
    assert book.why_missing("bad.f") == f"bad.f cannot be used: {problem}"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["empty", "byte order mark"])
def test_an_unusual_file_is_no_problem(write_book: WriteBook, start: bytes) -> None:
    root = write_book({})
    (root / "snippets" / "a.py").write_bytes(
        start + (MARK + "@example\ndef f():\n    pass\n").encode() if start else b""
    )
    book = Book.read(root)
    assert not book.problems
    assert len(book.examples) == bool(start)


def test_a_file_that_python_cannot_import_is_a_problem(write_book: WriteBook) -> None:
    book = read(write_book, **{"multi-head": "", ".checkpoints/copy": "x = ("})
    assert problems(book) == ["snippets/multi-head.py:1: Python cannot import a file of this name; use a-z, 0-9 and _"]


def test_modules_in_folders_have_dotted_names(write_book: WriteBook) -> None:
    book = read(write_book, **{"vi/attention": "@example\ndef f():\n    pass\n"})
    assert book.examples["vi.attention.f"].module == "vi.attention"
    assert book.examples["vi.attention.f"].path == "snippets/vi/attention.py"


# Why an example is missing


def test_why_an_example_is_missing_names_the_nearest(write_book: WriteBook) -> None:
    book = read(write_book, a="@example\ndef four_tokens():\n    pass\ndef plain():\n    pass\n")
    assert book.why_missing("a.for_tokens") == "there is no example a.for_tokens; did you mean a.four_tokens?"
    assert book.why_missing("b.four_tokens") == "there is no example b.four_tokens; did you mean a.four_tokens?"
    assert book.why_missing("a.plain") == "a.plain (snippets/a.py:5) is not marked @example"


def test_an_example_whose_need_is_missing_names_that_problem(write_book: WriteBook) -> None:
    book = read(
        write_book, a="@example\ndef one(nothing):\n    pass\n@example\ndef two(one):\n    pass\ndef three(): pass\n"
    )
    assert len(book.problems) == 1
    assert book.why_missing("a.two") == f"a.two cannot be used: {book.problems[0]}"


def test_nearest_says_nothing_where_nothing_is_near() -> None:
    assert nearest("attention", ["masks"]) == ""
    assert nearest("a.four_tokens", ["b.four_tokens"]) == "; did you mean b.four_tokens?"


# The repository


def test_an_unknown_setting_names_the_nearest(write_book: WriteBook) -> None:
    root = write_book({})
    (root / "pyproject.toml").write_text("[tool.executed]\npreloud = []\n")
    with pytest.raises(BookError, match="has no setting preloud; did you mean preload"):
        Book.read(root)


def test_settings_that_are_not_toml_name_the_line(write_book: WriteBook) -> None:
    root = write_book({})
    (root / "pyproject.toml").write_text("[tool.executed]\npreload = [\n")
    with pytest.raises(BookError, match=r"pyproject\.toml:\d+: this is not TOML"):
        Book.read(root)


def test_the_root_is_found_from_any_folder_inside(write_book: WriteBook) -> None:
    root = write_book({"a": ""}, {"a": "# A\n"})
    assert find_root(root / "docs") == root.resolve()


def test_no_root_is_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"no folder above holds snippets/ and pyproject\.toml"):
        find_root(tmp_path)


def test_reading_again_sees_what_changed(write_book: WriteBook) -> None:
    assert list(read(write_book, a="@example\ndef f():\n    pass\n").examples) == ["a.f"]
    assert list(read(write_book, a="@example\ndef g():\n    pass\n").examples) == ["a.g"]
