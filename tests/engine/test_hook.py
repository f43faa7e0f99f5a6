"""executed/hook.py: the book through MkDocs itself, built and served."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import File

from executed import hook, policy

HOOK = Path(__file__).parents[2] / "executed/hook.py"
CONFIG = f"""
site_name: Test
theme: {{name: material, font: false}}
hooks: ['{HOOK.as_posix()}']
markdown_extensions: [admonition, attr_list, tables, pymdownx.superfences, pymdownx.highlight]
"""
GOOD = """
from executed import example

@example
def one():
    print("hello", 6 * 7)
    return {"x": 0.687}
"""
CHAPTER = """
# A chapter

{{ example("a.one") }}

The value is {{ a.one.x | num(2) }}.
"""

WriteBook = Callable[..., Path]


def mkdocs(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (root / "mkdocs.yml").write_text(CONFIG)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *words], cwd=root, capture_output=True, text=True, timeout=120,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", **environment},
    )  # fmt: skip


def text_of(root: Path, page: str = "site/index.html") -> str:
    return re.sub(r"<[^>]+>", "", (root / page).read_text("utf-8"))


def test_a_strict_build_shows_code_output_and_value(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    built = mkdocs(root, "build", "--strict")
    assert built.returncode == 0, built.stderr
    assert "1 examples ran" in built.stderr
    page = text_of(root)
    assert 'print("hello", 6 * 7)' in page.replace("&quot;", '"')
    assert "hello 42" in page
    assert "The value is 0.69." in page


def test_a_build_in_which_nothing_runs_says_so_and_imports_neither_torch_nor_matplotlib(write_book: WriteBook) -> None:
    source = GOOD.replace("from executed", "import matplotlib.pyplot as plt\nimport torch\nfrom executed")
    chapter = CHAPTER.replace('one")', 'one", alt="nothing")')
    root = write_book({"a": source.replace("print(", "plt.figure()\n    print(torch.ones(1), ")}, {"index": chapter})
    assert mkdocs(root, "build", "--strict").returncode == 0
    for edit in ("", "\nMore prose.\n"):
        write_book({}, {"index": chapter + edit})
        built = mkdocs(root, "build", "--strict", PYTHONPROFILEIMPORTTIME="1")
        assert built.returncode == 0
        assert "nothing ran: 1 results are up to date" in built.stderr
        lines = [line for line in built.stderr.splitlines() if line.startswith("import time")]
        imported = {line.rpartition("|")[2].strip() for line in lines}
        assert "executed.staged" in imported
        assert ("executed.runner" in imported) is bool(edit)
        assert imported.isdisjoint({"torch", "matplotlib", "numpy"})


@pytest.mark.parametrize(
    ("snippets", "docs", "expected"),
    [
        (GOOD.replace("print(", "raise ValueError('boom')\n    print("), CHAPTER,
         ["snippets/a.py:5: a.one: ValueError: boom", "shown by docs/index.md:3"]),
        (GOOD, CHAPTER.replace("one.x", "one.y"), ["docs/index.md:5: a.one has no y"]),
        (GOOD, CHAPTER.replace("a.one.x", "a.ome.x"), ["index.md:5: there is no example a.ome; did you mean a.one?"]),
        (GOOD, CHAPTER + "\nIt has 12 parts.\n", ["docs/index.md:7: the number 12 is typed into prose"]),
        (GOOD + "\n@example\ndef two():\n    print(1)\n", CHAPTER, ["snippets/a.py:9: no chapter shows a.two"]),
        (GOOD + "\ndef broken(:\n", CHAPTER, ["snippets/a.py:8: this is not Python"]),
        (GOOD.replace("def one()", "def one(too)"), CHAPTER, ["snippets/a.py:4: a.one needs too"]),
    ],
    ids=["raise", "value", "example", "number", "unused", "syntax", "need"],
)  # fmt: skip
def test_a_strict_build_fails_with_page_line_and_snippet_line(
    write_book: WriteBook, snippets: str, docs: str, expected: list[str]
) -> None:
    root = write_book({"a": snippets}, {"index": docs})
    built = mkdocs(root, "build", "--strict")
    assert built.returncode == 1
    for line in expected:
        assert line in built.stderr
    assert "Traceback" not in built.stderr


def test_a_failing_build_leaves_the_last_site_as_it_was(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    assert mkdocs(root, "build").returncode == 0
    write_book({"a": GOOD.replace("print(", "1 / 0\n    print(")})
    assert mkdocs(root, "build").returncode == 1
    assert "hello 42" in text_of(root)


def test_a_typed_number_only_warns_outside_a_strict_build(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER + "\nIt has 12 parts.\n"})
    built = mkdocs(root, "build")
    assert built.returncode == 0
    assert "the number 12 is typed into prose" in built.stderr


def test_a_figure_is_part_of_the_page_with_its_alt_text_and_caption(write_book: WriteBook) -> None:
    root = write_book(
        {"a": GOOD.replace("print(", "import matplotlib.pyplot as plt\n    plt.plot([1, 2])\n    print(")},
        {
            "index": "# A\n\n!!! note\n\n    "
            '{{ example("a.one", alt="A line that \\"rises\\"", caption="x < y & {{ a.one.x | num(1) }}") }}\n'
        },
    )
    built = mkdocs(root, "build", "--strict")
    assert built.returncode == 0, built.stderr
    page = (root / "site/index.html").read_text("utf-8")
    figure = re.search(
        r'<figure class="drawn"><svg role="img" aria-label="([^"]*)".*?</svg><figcaption>(.*?)</figcaption>', page, re.S
    )
    assert figure is not None
    assert figure.groups() == ("A line that &#34;rises&#34;", "x &#60; y &#38; 0.7")
    assert (root / "site/figures/a.one-1.svg").exists()
    ids = re.findall(r'\bid="([^"]+)"', figure[0])
    assert len(ids) == len(set(ids))


@contextmanager
def served(root: Path) -> Iterator[Callable[..., str]]:
    """`mkdocs serve` on a free port; gives a function that fetches the front page's text."""
    (root / "mkdocs.yml").write_text(CONFIG)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (root / "serve.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"], cwd=root, stderr=log, stdout=log,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip

    def fetch(page: str = "") -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
                return re.sub(r"<[^>]+>", "", answer.read().decode())
        except OSError:
            return ""

    try:
        yield fetch
    finally:
        server.terminate()
        server.wait(10)
        log.close()


def wait_for(fetch: Callable[..., str], text: str, seconds: float = 15) -> float:
    begun = time.monotonic()
    while text not in (page := fetch()):
        assert time.monotonic() - begun < seconds, f"{text!r} did not show; the page says: {page[-1500:]}"
        time.sleep(0.05)
    return time.monotonic() - begun


def test_serve_shows_an_edit_survives_a_failure_and_mends_without_a_restart(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    with served(root) as fetch:
        wait_for(fetch, "hello 42", 30)
        write_book({"a": GOOD.replace("6 * 7", "6 * 8")})
        wait_for(fetch, "hello 48")
        write_book({"a": GOOD.replace("print(", "raise ValueError('boom')\n    print(")})
        wait_for(fetch, "a.one failed")
        page = fetch()
        assert "snippets/a.py:5: a.one: ValueError: boom" in page.replace("&#39;", "'")
        log = (root / "serve.log").read_text()
        assert "snippets/a.py:5: a.one: ValueError: boom" in log
        assert "shown by docs/index.md:3" in log
        write_book({}, {"index": CHAPTER + "\nMore prose.\n"})
        wait_for(fetch, "More prose.")
        assert (root / "serve.log").read_text().count("FAILED a.one") == 1, "a failure is not tried again for prose"
        write_book({"a": GOOD})
        wait_for(fetch, "hello 42")
        write_book({"a": GOOD + "\ndef broken(:\n"})
        wait_for(fetch, "this is not Python")
        write_book({"a": GOOD})
        wait_for(fetch, "hello 42")


def test_serve_keeps_the_pages_that_an_edit_does_not_touch_and_updates_those_it_does(write_book: WriteBook) -> None:
    other = '# Other\n\n{{ example("a.one") }}\n\nOther has {{ a.one.x | num(2) }}.\n'
    root = write_book({"a": GOOD}, {"index": "# A\n", "other": other, "third": "# Third\n\n## A part\n\nStays.\n"})
    with served(root) as fetch:
        wait_for(fetch, "Third", 30)
        third = fetch("third/")
        assert "Stays." in third
        write_book({}, {"index": "# A\n\nAn edit.\n"})
        wait_for(fetch, "An edit.")
        assert "Other has 0.69." in fetch("other/")
        assert fetch("third/").partition("livereload")[0] == third.partition("livereload")[0]
        write_book({"a": GOOD.replace("0.687", "0.5")})
        wait_for(lambda: fetch("other/"), "Other has 0.50.")
        assert "An edit." in fetch()


def test_serve_does_not_rebuild_by_itself(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    with served(root) as fetch:
        wait_for(fetch, "hello 42", 30)
        write_book({"a": GOOD.replace("6 * 7", "6 * 8")})
        wait_for(fetch, "hello 48")
        time.sleep(2)
        assert (root / "serve.log").read_text().count("Building documentation...") == 2


def test_the_staged_markdown_builds_without_the_engine(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    staged = subprocess.run(
        [sys.executable, "-m", "executed", "stage", "out"], cwd=root, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(HOOK.parents[1])},
    )  # fmt: skip
    assert staged.returncode == 0, staged.stderr
    shutil.rmtree(root / "snippets")
    (root / "plain.yml").write_text(re.sub("hooks:.*\n", "", CONFIG) + "docs_dir: out\n")
    assert (
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "plain.yml"], cwd=root).returncode
        == 0
    )
    assert "The value is 0.69." in text_of(root)


def test_a_build_refuses_what_could_run_with_the_line_of_the_chapter(write_book: WriteBook) -> None:
    chapter = """
    # A chapter

    {{ example("a.one") }}

    Text {{ a.one.x | num(2) }} with <script>alert(x)</script>

    [a link](javascript:alert(x)) and ![a picture](../../../etc/passwd)

    Attributes
    {: onclick="alert(x)" }

    !!! note "<img src=x onerror=alert(x)>"
        Text <iframe src="https://elsewhere.example/"></iframe>
    """
    built = mkdocs(write_book({"a": GOOD}, {"index": chapter}), "build", "--strict")
    assert built.returncode == 1
    for line in (
        "docs/index.md:5: <script> may not stand in a page",
        "docs/index.md:7: <a> may not lead to 'javascript:alert(x)'",
        "docs/index.md:10: the attribute onclick of <p> may not stand in a page",
        "docs/index.md:12: the attribute onerror of <img> may not stand in a page",
        "docs/index.md:13: <iframe> may not stand in a page",
        "Doc file 'index.md' contains an unrecognized relative link '../../../etc/passwd'",
    ):
        assert line in built.stderr
    assert "Traceback" not in built.stderr
    assert not (write_book({}) / "site/index.html").exists()


def test_a_link_out_of_the_book_is_refused_even_where_nothing_else_changed(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    assert mkdocs(root, "build", "--strict").returncode == 0
    (root / "docs/picture.png").symlink_to("/etc/passwd")
    built = mkdocs(root, "build")
    assert built.returncode == 1
    assert "docs/picture.png:1: this is a link out of docs/: put what it leads to in its place" in built.stderr
    assert not (root / "site/picture.png").exists()


def test_a_site_folder_that_is_a_link_is_not_emptied(write_book: WriteBook) -> None:
    root = write_book({"a": GOOD}, {"index": CHAPTER})
    (root / "precious").mkdir()
    (root / "precious/letter").touch()
    (root / "site").symlink_to("precious")
    built = mkdocs(root, "build")
    assert "site is a link, and MkDocs would delete all that it leads to" in built.stderr
    assert (root / "precious/letter").exists()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("x.html", "<p>x</p>", "docs/x.html:1: a browser would open this as a page"),
        ("X.XML", "<p>x</p>", "docs/X.XML:1: a browser would open this as a page"),
        ("x.svg", "<svg>\n<script>1</script></svg>", "docs/x.svg:2: <script> may not stand in a page"),
        ("x.svg", '<?xml version="1.0"?><svg\nonload="x"/>', "docs/x.svg:2: the attribute onload of <svg>"),
        ("x.svg", '<?xml version="1.0"?>\n<svg><path d="M0 0"/></svg>', ""),
        ("x.svg", '<?xml version="1.0" encoding="ISO-2022-JP"?><svg/>', "docs/x.svg:1: <?xml"),
        ("x.png", "<script>1</script>", ""),
    ],
)
def test_a_file_that_is_copied_as_it_is_runs_nothing(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    file = File(name, str(tmp_path), str(tmp_path / "site"), True)
    if not problem:
        hook._check_copied(file)
        return
    with pytest.raises(PluginError, match=f"^{re.escape(problem)}"):
        hook._check_copied(file)


@pytest.mark.parametrize("key", ["template", "icon", "location"])
def test_front_matter_chooses_no_file_of_the_theme(tmp_path: Path, key: str) -> None:
    (tmp_path / "a.md").write_text(f"---\ntitle: A\n{key}: ../../../etc/passwd\n---\n")
    file = SimpleNamespace(src_uri="a.md", abs_src_path=str(tmp_path / "a.md"))
    page: Any = SimpleNamespace(meta={"title": "A", key: "../../../etc/passwd"}, file=file)
    config: Any = SimpleNamespace(docs_dir=str(tmp_path))
    problem = f"docs/a.md:3: front matter says title, description, hide, and not {key}"
    with pytest.raises(PluginError, match=f"^{problem}$"):
        hook.on_page_markdown("", page, config, files=[])  # type: ignore[arg-type]


def test_a_served_page_is_as_it_is_published_but_for_the_script_that_reloads_it(tmp_path: Path) -> None:
    page = policy.with_policy("<head></head><body><script>1</script></body>", "script-src 'self' 'sha256-x'")
    server = LiveReloadServer(lambda: None, "127.0.0.1", 0, str(tmp_path))
    try:
        server._inject_js_into_html = hook._allowed(server._inject_js_into_html)  # type: ignore[method-assign]
        served = server._inject_js_into_html(page.encode(), 1).decode()
    finally:
        server.server_close()
    script = re.findall("<script>(.*?)</script>", served, re.S)[-1]
    assert "livereload(" in script
    own_hash = policy.script_hash(script)
    assert served.replace(f"<script>{script}</script>", "").replace(f" {own_hash}", "") == page
    assert f"script-src 'self' {own_hash} 'sha256-x'" in served
