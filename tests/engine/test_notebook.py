"""executed/notebook.py, notebook_code.py and notebook_page.py: a chapter as a notebook, and as a page that shows it."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from executed import notebook, notebook_page, policy
from executed.stage import stage
from executed.staged import Staged, unchanged
from tests.engine.test_hook import CONFIG

WriteBook = Callable[..., Path]
Make = Callable[..., Any]
BASE = """
from executed import example

BASE = 10

def tenfold(number):
    \"\"\"Multiply by ten.\"\"\"
    return number * BASE

@example
def first():
    print("first", tenfold(1))
    return {"value": tenfold(1)}
"""
SNIPPET = """
import math

from executed import example
from snippets.base import first, tenfold

def rounded(number):
    \"\"\"Round down.\"\"\"
    return math.floor(number)

@example
def one(first):
    x = first["value"] + tenfold(rounded(2.5))
    print("one", x)
    return {"x": x}
"""
CHAPTER = """
---
title: A chapter
---

# A chapter

Text. The value is {{ a.one.x | num(1) }}.

{{ example("a.one") }}
"""


MADE: dict[object, str] = {}
"""What several tests look at is made once."""


@pytest.fixture
def make(write_book: WriteBook) -> Make:
    """`make(snippet, chapter)`: the notebook of docs/a.md, beside a chapter `base`."""

    def made(snippet: str = SNIPPET, chapter: str = CHAPTER, **docs: str) -> Any:
        others = {"base": '# The base\n\n{{ example("base.first") }}\n'} | docs
        root = write_book({"a": snippet, "base": BASE}, {"a": chapter, **others})
        (root / "pyproject.toml").write_text("[tool.executed]\nnotebooks = true\npreload = []\n", "utf-8")
        (root / "docs/assets/scripts/widgets").mkdir(parents=True, exist_ok=True)
        (root / "docs/assets/scripts/widgets/viewer.js").touch()
        key = (snippet, chapter, *others.items())
        if key not in MADE:
            staged = stage(root)
            assert staged.report() == []
            MADE[key] = staged.files["notebooks/a.ipynb"]
        found = nbformat.reads(MADE[key], 4)
        nbformat.validate(found)
        return found

    return made


def code(made: Any) -> list[str]:
    return [cell.source for cell in made.cells if cell.cell_type == "code"]


def prose(made: Any) -> str:
    return "\n\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")


def output(made: Any, example: str) -> Any:
    return next(cell.outputs for cell in made.cells if cell.metadata.get("executed") == example)


def test_run_in_order_the_cells_need_nothing_but_each_other(make: Make, tmp_path: Path) -> None:
    cells = code(make())
    (tmp_path / "cells.py").write_text("\n\n".join(cells), "utf-8")
    done = subprocess.run([sys.executable, "-I", "cells.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("first 10\none 30\n", "")


def test_what_an_example_returns_stands_under_its_name(make: Make) -> None:
    assert code(make())[-1] == (
        'x = first["value"] + tenfold(rounded(2.5))\nprint("one", x)\n\none = {"x": x}'
    )  # fmt: skip


def test_definitions_of_other_chapters_come_first_folded_and_say_where_they_are_from(make: Make) -> None:
    cell = next(cell for cell in make().cells if "def tenfold" in cell.source)
    assert cell.source.startswith('# From the chapter "The base".\n\nBASE = 10')
    assert cell.metadata["jupyter"]["source_hidden"]


def test_an_example_of_another_chapter_that_is_needed_runs_before_and_is_announced(make: Make) -> None:
    made = make()
    assert "is from the chapter [The base](base.ipynb); what it makes is needed below" in prose(made)
    assert output(made, "base.first")[0].text == "first 10\n"


def test_values_stand_in_the_prose(make: Make) -> None:
    assert "Text. The value is 30.0." in prose(make())


def test_a_definition_that_the_chapter_shows_late_is_given_folded_before_its_use_and_shown_as_text(make: Make) -> None:
    made = make(chapter=CHAPTER + '\n{{ code("a.rounded") }}\n')
    [cell] = [cell for cell in made.cells if cell.cell_type == "code" and "def rounded" in cell.source]
    assert cell.source.startswith("# From further below in this chapter.\n\ndef rounded")
    assert cell.metadata["jupyter"]["source_hidden"]
    assert prose(made).endswith("    return math.floor(number)\n```")


def test_a_definition_that_the_chapter_shows_first_is_a_cell_there(make: Make) -> None:
    made = make(chapter=CHAPTER.replace("{{ example", '{{ code("a.rounded") }}\n\nMore.\n\n{{ example'))
    place = next(number for number, cell in enumerate(made.cells) if "def rounded" in cell.source)
    assert made.cells[place].cell_type == "code"
    assert made.cells[place + 1].source == "More."


def test_an_example_whose_variable_would_take_a_name_that_other_code_uses_stays_a_function(make: Make) -> None:
    made = make(SNIPPET.replace("    x = ", "    rounded_before, math = rounded(1), 3\n    x = ") + "\nmath.pi\n")
    assert code(made)[-1].startswith("def one(first):\n    rounded_before, math = rounded(1), 3\n")
    assert code(made)[-1].endswith("one = one(first)")


@pytest.mark.parametrize("line", ["if x:\n        return {'x': x}", "del max\n    x = 3", "max = 3"])
def test_so_does_one_that_returns_early_or_hides_what_is_built_in(line: str, make: Make) -> None:
    source = SNIPPET.replace('    print("one", x)\n', f'    print("one", x)\n    {line}\n').replace(
        "del max", "max = 1"
    )
    source = source.replace("math.floor(number)", "max(0, math.floor(number))")
    assert code(make(source))[-1].startswith("def one(first):\n")


def test_the_value_of_a_last_line_is_not_shown(make: Make) -> None:
    made = make(
        SNIPPET.replace('    return {"x": x}', "    [x].count(x)  # a comment"),
        CHAPTER.replace(" The value", " <!--").replace("num(1) }}.", "num(1) }} -->"),
    )
    assert code(made)[-1].endswith("[x].count(x);  # a comment")


def test_what_an_example_imports_from_the_book_when_it_runs_is_given_instead(make: Make) -> None:
    source = SNIPPET.replace("import first, tenfold", "import first").replace(
        "    x = ", "    from snippets.base import tenfold\n    x = "
    )
    made = make(source)
    assert "from snippets" not in "\n".join(code(made))
    assert any("def tenfold" in cell for cell in code(made))


def test_an_error_that_is_the_point_is_shown_and_does_not_stop_the_notebook(make: Make) -> None:
    source = SNIPPET.replace("@example\ndef one", "@example(raises=ValueError)\ndef one")
    source = source.replace('    return {"x": x}', '    print("Note: this")\n    raise ValueError("no:\\nnever: x")')
    made = make(source, CHAPTER.replace("{{ a.one.x | num(1) }}", "none"))
    printed, error = output(made, "a.one")
    assert printed.text == "one 30\nNote: this\n"
    assert (error.ename, error.evalue) == ("ValueError", "no:\nnever: x")
    assert made.cells[-1].metadata["tags"] == ["raises-exception"]


def test_an_example_that_cannot_run_here_keeps_its_code_and_says_what_it_needs(make: Make) -> None:
    source = SNIPPET.replace("@example\ndef one", '@example(needs="package:no_such_thing")\ndef one')
    made = make(source, CHAPTER.replace("{{ a.one.x | num(1) }}", "none"))
    assert code(made)[-1].startswith('x = first["value"]')
    assert output(made, "a.one") == []
    assert re.search("The next cell did not run when the book was built. It needs .*no_such_thing", prose(made))


def test_one_that_needs_weights_says_that_it_downloads_them(make: Make) -> None:
    source = SNIPPET.replace("@example\ndef one", '@example(needs="hub:ann/model@0123456789")\ndef one')
    made = make(source, CHAPTER.replace("{{ a.one.x | num(1) }}", "none"))
    assert "It needs the weights of ann/model, a download from the Hugging Face hub." in prose(made)


def test_a_figure_is_an_svg_with_its_alt_text_and_its_caption_below(make: Make) -> None:
    source = "import matplotlib.pyplot as plt\n" + SNIPPET.replace("    return {", "    plt.plot([1, x])\n    return {")
    made = make(source, CHAPTER.replace('one")', 'one", alt="A line to {{ a.one.x | num(0) }}.", caption="It rises.")'))
    figure = output(made, "a.one")[1]
    assert figure.data["image/svg+xml"].startswith('<svg role="img" aria-label="A line to 30." style="')
    assert figure.data["text/plain"] == "A line to 30."
    assert made.cells[-1].source == "**Figure.** It rises."
    assert "InlineBackend.figure_formats" in code(made)[1]


def test_boxes_become_quotations_and_cells_in_them_stand_alone(make: Make) -> None:
    box = CHAPTER.replace(
        '{{ example("a.one") }}', '??? note "A box"\n    Before.\n\n    {{ example("a.one") }}\n\n    - After.'
    )
    made = make(chapter=box)
    assert "> **A box**\n>\n> Before." in prose(made)
    assert made.cells[-1].source == "> - After."
    assert "???" not in prose(made)
    assert made.cells[-2].metadata["executed"] == "a.one"


def test_links_lead_to_notebooks_and_where_there_is_none_to_pages(make: Make) -> None:
    links = "[b](base.md#x), [i](index.md), [n](nothing-to-run.md), [o](https://example.org/a.md), [here](#a-chapter)\n"
    made = make(chapter=f"{CHAPTER}\n{links}", **{"index": "# Home\n", "nothing-to-run": "# Nothing\n"})
    assert prose(made).endswith(
        "[b](base.ipynb), [i](../index.html), [n](../nothing-to-run/index.html), [o](https://example.org/a.md), here"
    )


def test_a_vietnamese_chapter_has_a_vietnamese_notebook_that_leads_to_the_others(make: Make, tmp_path: Path) -> None:
    make(**{"vi/a": f"{CHAPTER}\n[b](../base.md)\n"})
    made = nbformat.reads(stage(tmp_path).files["notebooks/vi/a.ipynb"], 4)
    assert "*Notebook này là chương [A chapter](../../vi/a/index.html) cùng toàn bộ mã" in prose(made)
    assert "Text. The value is 30,0." in prose(made)
    assert prose(made).endswith("[b](../base.ipynb)")


def test_citations_are_plain_links_and_footnotes_are_numbered(make: Make, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    entry = "@misc{a2017, author={Ann Ab}, title={T}, year={2017}, url={https://example.org/t}}"
    (tmp_path / "docs/references.bib").write_text(entry, "utf-8")
    made = make(chapter=f"{CHAPTER}\nAs said [@a2017].[^note]\n\n[^note]: Really.\n")
    assert prose(made).endswith(
        "As said ([Ab, 2017](https://example.org/t)).<sup>1</sup>\n\n<sup>1</sup> Really."
    )  # fmt: skip


def test_a_book_that_has_not_changed_publishes_the_same_bytes_again(make: Make, tmp_path: Path) -> None:
    make()
    staged, kept = stage(tmp_path), unchanged(tmp_path)
    notebook._MADE.clear()
    assert kept
    assert staged.files == kept.files == stage(tmp_path).files


def test_a_name_that_would_mean_two_things_in_a_notebook_is_refused(make: Make, tmp_path: Path) -> None:
    source = SNIPPET.replace("def rounded", "BASE = 3\n\ndef rounded").replace("math.floor(number)", "number // BASE")
    with pytest.raises(AssertionError, match="BASE would mean two things in one notebook"):
        make(source)


def test_a_book_that_does_not_ask_for_notebooks_has_none(write_book: WriteBook) -> None:
    staged: Staged = stage(write_book({"base": BASE}, {"base": '# The base\n\n{{ example("base.first") }}\n'}))
    assert staged.files == {}


def test_the_line_of_links_has_colab_and_binder_only_with_a_repository_on_github() -> None:
    line = notebook_page.links("notebooks/a.ipynb", "../notebooks/a/", "../notebooks/a.ipynb", "", "gh-pages")
    assert line == (
        '<p class="notebook-links">Notebook: <a href="../notebooks/a/">read</a>, '
        '<a href="../notebooks/a.ipynb" download>download</a></p>'
    )
    for repository, branch in (("https://codeberg.org/ann/book", "gh-pages"), ("https://github.com/ann/book", "")):
        assert notebook_page.links("notebooks/a.ipynb", "p", "d", repository, branch).count("<a ") == 2
    line = notebook_page.links("notebooks/a.ipynb", "p", "d", "https://github.com/ann/book.git", "gh-pages")
    assert 'href="https://colab.research.google.com/github/ann/book/blob/gh-pages/notebooks/a.ipynb"' in line
    assert 'href="https://mybinder.org/v2/gh/ann/book/gh-pages?labpath=notebooks%2Fa.ipynb"' in line
    assert not list(policy.refused(line))


def test_binder_gets_the_versions_and_a_pytorch_without_cuda(make: Make) -> None:
    made = make("import numpy\n" + SNIPPET.replace("rounded(2.5)", "int(numpy.float64(2.5))"))
    files = notebook_page.for_binder([nbformat.writes(made)])
    assert re.match(r"--extra-index-url \S+/cpu\nnumpy==[\d.]+\n$", files["binder/requirements.txt"])
    assert re.fullmatch(r"python-3\.\d+\n", files["binder/runtime.txt"])


def test_a_notebook_asks_for_what_an_example_imports_itself(make: Make) -> None:
    imports = '    import filelock\n    from babel.numbers import format_decimal\n    print("""\nfrom here on\n""")\n'
    made = make(SNIPPET.replace("    print", imports + "    print"))
    assert [one.partition("==")[0] for one in made.metadata.requirements] == ["babel", "filelock"]
    assert "`pip install babel filelock`" in made.cells[0].source


def test_where_the_page_has_a_widget_the_notebook_leads_there(make: Make) -> None:
    made = make(chapter=f'{CHAPTER}\nTry it:\n\n{{{{ widget("a.one", kind="viewer") }}}}\n')
    assert "Try it:\n\n*Here [the chapter's page](../a/index.html) has something to try by hand.*" in prose(made)


def test_with_the_address_of_the_site_links_to_pages_work_from_anywhere() -> None:
    text = "[a](../index.html) [b](../c/index.html#x) [c](d.ipynb) [d](../vi/d.ipynb) `x[0](...)`"
    assert notebook_page.published(text, "") == text
    assert notebook_page.published(text, "https://example.org/book/") == (
        "[a](https://example.org/book/index.html) [b](https://example.org/book/c/index.html#x) "
        "[c](d.ipynb) [d](../vi/d.ipynb) `x[0](...)`"
    )


def test_mkdocs_jupyter_makes_a_page_that_looks_like_a_chapter_and_nothing_in_it_runs(
    make: Make, tmp_path: Path
) -> None:
    source = "import matplotlib.pyplot as plt\n" + SNIPPET.replace("    return {", "    plt.plot([1, x])\n    return {")
    chapter = CHAPTER.replace('one")', 'one", alt="A <line>.")').replace(
        "Text.", "Text $a_b < c_d$ and `$x$`.\n\n$$x_1^2$$\n\n## A part: phở\n\nText."
    )
    text = nbformat.writes(make(source, chapter + '\n{{ code("a.rounded") }}\n'))
    shown = notebook_page.shown(tmp_path, "notebooks/a.ipynb", text)
    page = shown.html
    assert page.count("<pre>") == page.count("<pre><span></span><code>")
    assert not list(policy.refused(page))
    assert "<script" not in page
    assert "<style" not in page
    assert page.count("<math ") == 2
    assert "<code>$x$</code>" in page
    assert '<div class="text output highlight"><pre><span></span><code>one 30\n</code></pre></div>' in page
    assert re.search(r'<figure class="drawn"><svg [^>]*aria-label="A &lt;line&gt;."', page)
    assert '<details class="note"><summary>From the chapter &quot;The base&quot;</summary>' in page
    [top] = shown.headings()
    assert (top["name"], [below["id"] for below in top["children"]]) == ("A chapter", ["a-part-pho"])
    assert 'id="a-part-pho"' in page


def test_a_notebook_is_converted_once_and_while_a_writer_waits_not_at_all(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, converted = nbformat.writes(make()), list[str]()

    def convert(text: str) -> str:
        converted.append(text)
        return "<h1>Made</h1>"

    monkeypatch.setattr(notebook_page, "_converted", convert)

    def shown(text: str, convert: bool = True) -> str:
        return notebook_page.shown(tmp_path, "notebooks/a.ipynb", text, convert).html

    assert "comes with the next" in shown(text, convert=False)
    assert [shown(text), shown(text), shown(text.replace("Text", "Words"), convert=False)] == ["<h1>Made</h1>"] * 3
    assert len(converted) == 1
    shown(text.replace("Text", "Words"))
    assert len(converted) == 2


def test_a_site_has_the_notebook_its_page_and_the_line_that_leads_there(make: Make, tmp_path: Path) -> None:
    make(SNIPPET, CHAPTER + "\n[b](base.md)\n", index="# Home\n")
    config = CONFIG.replace(
        "site_name", "repo_url: https://github.com/ann/book\nextra: {notebooks_branch: gh-pages}\nsite_name"
    )
    (tmp_path / "mkdocs.yml").write_text(config, "utf-8")
    for path, text in stage(tmp_path).files.items():  # here: what converts is imported by now
        notebook_page.shown(tmp_path, path, text)
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    built = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    chapter, page = (site / "a/index.html").read_text("utf-8"), (site / "notebooks/a/index.html").read_text("utf-8")
    assert '</h1>\n<p class="notebook-links">Notebook: <a href="../notebooks/a/">read</a>' in chapter
    assert '<p class="notebook-links">Notebook: <a href="../a.ipynb" download>download</a>' in page
    assert "colab.research.google.com/github/ann/book/blob/gh-pages/notebooks/a.ipynb" in chapter
    assert '<a href="../base/">b</a>' in page
    assert 'class="md-source"' in page
    assert 'md-component="source"' not in page  # nothing is asked of GitHub before the reader goes there
    assert "<title>A chapter (notebook) - Test</title>" in page
    assert json.loads((site / "notebooks/a.ipynb").read_text("utf-8"))["nbformat"] == 4
    assert (site / "binder/requirements.txt").exists()
    assert "notebooks/a" not in (site / "search/search_index.json").read_text("utf-8")
