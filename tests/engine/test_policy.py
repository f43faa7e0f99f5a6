"""executed/policy.py: what a published page may hold, and what it tells the browser."""

import html
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown import markdown

from executed.book import Book, BookError
from executed.markup import escaped, fenced
from executed.policy import content_security_policy, leading_out, refused, with_policy
from executed.stage import stage

WriteBook = Callable[..., Path]
SHELL = (
    '<!doctype html><html><head><meta charset="utf-8"><script>a<b&&c()</script><script src="x.js"></script>'
    '<script id="c" type="application/json">{}</script></head><body><form name="search"></form></body></html>'
)


@pytest.mark.parametrize(
    "harm",
    [
        "<script>alert(1)</script>",
        "<SCRIPT src=x.js></SCRIPT>",
        "<script",
        '<script type="application/json">{}</script>',
        "<img src=x onerror=alert(1)>",
        '<img src="x" ONERROR="alert(1)">',
        "<img/onerror=alert(1)/src=x>",
        '<img src="x"onerror="alert(1)">',
        '<b title="a>b" onclick="alert(1)" c=">">x</b>',
        '<b ">x <img src=x onerror=alert(1)> "></b>',
        '<b x=="><img src=x onerror=alert(1)>">',
        "<b title='a'onclick=alert(1)>",
        "<b xlink:onclick='alert(1)'>",
        "<!--><script>alert(1)</script>-->",
        "<!--> <img src=x onerror=alert(1)> -->",
        "<![CDATA[<script>alert(1)</script>]]>",
        "<?xml-stylesheet href='x.css'?>",
        '<a href="javascript:alert(1)">x</a>',
        '<a href=" java&#10;script&colon;alert(1)">x</a>',
        "<a href=JAVASCRIPT:alert(1)>x</a>",
        '<a href="data:text/html,<b>">x</a>',
        '<a href="vbscript:x">x</a>',
        '<a href="x" ping="https://elsewhere.example">x</a>',
        '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
        '<svg xmlns:y="http://www.w3.org/1999/xlink"><a y:href="javascript:alert(1)">x</a></svg>',
        '<svg><use href="data:image/svg+xml,x#y"/></svg>',
        '<svg><animate attributeName="href" values="javascript:alert(1)"/></svg>',
        "<svg><foreignObject><b>x</b></foreignObject></svg>",
        "<svg><style>*{}</style></svg>",
        '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
        '<math><annotation-xml encoding="text/html"><b>x</b></annotation-xml></math>',
        '<img src="https://elsewhere.example/x.png">',
        '<img src="//elsewhere.example/x.png">',
        '<img src="/\\elsewhere.example/x.png">',
        '<img src="x.png" srcset="https://elsewhere.example/x.png 2x">',
        '<img src="data:image/svg+xml;base64,x">',
        '<iframe src="x.html"></iframe>',
        '<object data="x"></object>',
        '<embed src="x">',
        '<base href="https://elsewhere.example/">',
        '<meta http-equiv="refresh" content="0;url=https://elsewhere.example">',
        '<meta name="description" content="" http-equiv="refresh">',
        '<link rel="stylesheet" href="x.css">',
        '<link rel="next" href="x" onload="alert(1)">',
        '<form action="x"><input></form>',
        '<button formaction="x">x</button>',
        "<template><b>x</b></template>",
        "<noscript><b>x</b></noscript>",
        "<textarea>x</textarea>",
        "<video poster=x></video>",
    ],
)
def test_what_could_run_load_or_send_something_is_refused(harm: str) -> None:
    assert list(refused(harm))
    assert list(refused(SHELL.replace("</body>", f"{harm}</body>"), SHELL))


@pytest.mark.parametrize(
    "fine",
    [
        '<p>a > b &lt;script&gt; javascript: onclick = "x"</p>',
        '<a href="https://elsewhere.example/">x</a><a href="mailto:a@b.example">x</a><a href="../x/#a.b">x</a>',
        "<a href='#fn:1'>x</a><br/><br /><hr>",
        '<img alt="javascript:" src="../figures/a.one-1.svg" title="&lt;b&gt;">',
        '<svg><image xlink:href="data:image/png;base64,AA=="/><use xlink:href="#svg1-a" style="fill: #000000"/></svg>',
        "<!-- a comment -->",
    ],
)
def test_what_a_chapter_and_a_figure_are_made_of_may_stand(fine: str) -> None:
    assert list(refused(fine)) == []
    assert list(refused(SHELL.replace("</body>", f"{fine}</body>"), SHELL)) == []


def test_the_shell_itself_may_stand_and_a_script_that_differs_by_a_letter_may_not() -> None:
    assert list(refused(SHELL, SHELL)) == []
    assert list(refused(SHELL.replace("c()", "d()"), SHELL))
    assert list(refused(SHELL.replace("<html>", '<html><b title="<script>a<b&&c()</script>">'), SHELL))


def test_only_inline_scripts_of_the_shell_get_a_hash() -> None:
    policy = content_security_policy(SHELL)
    # printf %s 'a<b&&c()' | openssl dgst -sha256 -binary | base64
    assert re.findall("'sha256-(.*?)'", policy) == ["3Q8eE9OpPtZMKLvCY5rK/YPUKKgfReUj0izcCfIVbTk="]
    assert re.findall(r"script-src(?:-\w+)? ([^;]*)", policy) == [
        "'self' 'sha256-3Q8eE9OpPtZMKLvCY5rK/YPUKKgfReUj0izcCfIVbTk='"
    ]
    assert "default-src 'none'" in policy


def test_a_page_without_a_head_is_no_page() -> None:
    with pytest.raises(ValueError, match="without <head>"):
        with_policy("<body></body>", "default-src 'none'")


def test_the_policy_stands_before_the_first_script() -> None:
    page = with_policy(SHELL, content_security_policy(SHELL))
    head = page.partition("<script")[0]
    assert head.count('<meta http-equiv="Content-Security-Policy" content="') == 1
    assert head.index("charset") < head.index("Content-Security-Policy") < 1024


@given(st.text(st.sampled_from("<>\"'=&;:/\\ \n-!`[](){}#*_|~abonxjs") | st.characters(), max_size=60))
def test_nothing_that_a_snippet_leaves_is_ever_refused(text: str) -> None:
    extensions = ["attr_list", "tables", "pymdownx.superfences", "pymdownx.highlight"]
    page = markdown(f"{escaped(text)}\n\n{fenced(text, '.text .output')}\n", extensions=extensions)
    assert list(refused(page)) == []


SNIPPET = """
from executed import capture, example

capture.open_figures = lambda: ['<svg><a href="javascript:alert(1)"><text>x</text></a></svg>']

@example
def one():
    print(1)
"""


def test_a_figure_with_something_that_runs_is_refused_where_a_chapter_shows_it(write_book: WriteBook) -> None:
    root = write_book({"a": SNIPPET}, {"index": '# A\n\n{{ example("a.one", alt="x") }}\n'})
    problem = "docs/index.md:3: figure 1 of a.one: <a> may not lead to 'javascript:alert(1)'"
    assert [str(error) for error in stage(root).errors] == [problem]


@pytest.mark.parametrize("link", ["docs/x.md", "docs/assets/y.png", "docs/home", "snippets/x.py", "records/a.one.json"])
def test_a_link_that_leads_out_of_the_book_is_refused_before_anything_is_read(
    write_book: WriteBook, link: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("raise SystemExit('secret')")
    root = write_book({}, {"index": "# A\n"})
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(outside if link == "docs/home" else outside / "secret")
    with pytest.raises(BookError) as caught:
        stage(root)
    assert str(caught.value).startswith(f"{link}:1: this is a link out of ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("target", ["../pyproject.toml", "../.git/config", "nowhere/../../x", "x.md"])
def test_a_link_to_another_part_of_the_repository_or_in_a_circle_is_refused(write_book: WriteBook, target: str) -> None:
    root = write_book({}, {"index": "# A\n"})
    (root / "docs/x.md").symlink_to(target)
    assert [problem.path for problem in leading_out(root)] == (["docs/x.md"] if target != "x.md" else [])


def test_a_folder_of_the_book_that_is_a_link_is_refused(write_book: WriteBook, tmp_path: Path) -> None:
    root = write_book({}, {"index": "# A\n"})
    os.rename(root / "docs", root / "elsewhere")
    (root / "docs").symlink_to("elsewhere")
    assert "docs" in [problem.path for problem in leading_out(root)]


def test_a_link_within_docs_is_no_problem(write_book: WriteBook) -> None:
    root = write_book({}, {"index": "# A\n", "vi/b": "# B\n"})
    (root / "docs/vi/c.md").symlink_to("../index.md")
    assert leading_out(root) == []


@pytest.mark.parametrize("path", ["../x.txt", "/etc/passwd", "data/../../x", "C:\\x", "\\\\host\\x"])
def test_files_of_an_example_lie_in_the_repository(write_book: WriteBook, path: str) -> None:
    source = f"from executed import example\n\n@example(files=[{path!r}])\ndef one():\n    print(1)\n"
    problems = Book.read(write_book({"a": source})).problems
    assert [str(one) for one in problems] == [
        f"snippets/a.py:3: files={path!r} leads out of the repository: name a path inside it"
    ]


@pytest.mark.parametrize("name", ["../secret.KEY", "..secret.KEY", "/etc/passwd", "a/../../secret.KEY"])
def test_code_shows_definitions_of_snippets_only(write_book: WriteBook, name: str) -> None:
    root = write_book({"a": "X = 1\n"}, {"index": f'# A\n\n{{{{ code("{name}") }}}}\n'})
    (root / "secret.py").write_text("KEY = 'secret'\n")
    staged = stage(root)
    assert str(staged.errors[0]).startswith("docs/index.md:3: there is no snippet module for ")
    assert "'secret'" not in html.unescape(staged.pages["index.md"])
