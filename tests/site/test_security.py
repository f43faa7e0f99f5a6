"""The built site in a browser: it works under its own policy, and nothing that a snippet leaves can run in it."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.site.reader import listen
from benchmarks.site.serve import served

ROOT = Path(__file__).parents[2]
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "]]><svg onload=alert(3)>",
    "</code></pre></div><script>alert(4)</script>",
    "[press](javascript:alert(5))",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    '" onmouseover="alert(6)',
    "--><!--><script>alert(7)</script>",
    "``` <b>x</b>",
    r"\(\href{javascript:alert(8)}{x}\)",
]
SNIPPET = f"""
import matplotlib.pyplot as plt

from executed import example

TEXTS = {HOSTILE!r}

@example
def hostile():
    for text in TEXTS:
        print(text)
    _, axes = plt.subplots()
    axes.plot([1, 2], label=TEXTS[0].replace("$", ""))
    axes.set_title(TEXTS[1])
    axes.set_xlabel(TEXTS[3])
    axes.set_gid(TEXTS[6])
    axes.legend()
    return {{"texts": TEXTS}}
"""
ALL = ", ".join(f"{{{{ a.hostile.texts[{number}] }}}}" for number in range(len(HOSTILE)))
CHAPTER = f"""
---
title: 'A chapter with "</title><script>alert(9)</script>"'
description: '"><script>alert(10)</script>'
---

# A chapter `<script>alert(11)</script>` &lt;img src=x onerror=alert(12)&gt;

{{{{ example("a.hostile", alt="{ALL}", caption="{ALL} [press](javascript:alert(13))") }}}}

Values: {ALL}

--8<-- "mkdocs.yml"

=== "First"

    One

=== "Second"

    Two

??? question "A question"

    | a | b |
    | --: | --- |
    | an answer | two |
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small book full of hostile text, built with the settings of this one."""
    root = tmp_path_factory.mktemp("book")
    settings = re.sub(r"\nnav:\n(?:  .*\n)+", "\n", (ROOT / "mkdocs.yml").read_text("utf-8"))
    for path, text in {
        "mkdocs.yml": settings.replace("executed/", f"{ROOT.as_posix()}/executed/"),
        "pyproject.toml": "",
        "snippets/a.py": SNIPPET,
        "docs/index.md": "# Start\n",
        "docs/a.md": CHAPTER,
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
    shutil.copytree(ROOT / "docs/assets", root / "docs/assets")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"], cwd=root, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return root / "site"


@pytest.fixture(scope="module")
def address(browser: Any, site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


@pytest.fixture
def page(browser: Any, address: str, heard: list[str]) -> Iterator[Any]:
    context = browser.new_context(base_url=address, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    listen(page, address, heard)
    yield page
    context.close()


def test_nothing_that_a_snippet_leaves_runs_and_all_of_it_is_shown(page: Any, heard: list[str]) -> None:
    page.goto("/a/", wait_until="networkidle")
    assert page.locator(".output code").inner_text().strip().split("\n") == HOSTILE
    for text in HOSTILE:
        assert text in page.locator("p", has_text="Values:").inner_text()
        assert text in page.locator("figcaption").inner_text()
        assert text in page.locator("figure svg[role=img]").get_attribute("aria-label")
    assert HOSTILE[1] in page.locator("figure svg").text_content()
    assert page.title().startswith('A chapter with "</title><script>alert(9)</script>"')
    assert page.locator("meta[name=description]").get_attribute("content") == '"><script>alert(10)</script>'
    assert "site_name:" not in page.content()
    page.locator("figure svg").hover()
    assert heard == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_the_theme_works_under_the_policy(page: Any, heard: list[str], scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/a/")
    dark = scheme == "dark"
    assert page.evaluate("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    page.locator("label[for^=__palette]:not([hidden])").click()
    page.reload()
    page.locator("summary", has_text="A question").click()
    assert page.locator("td", has_text="an answer").evaluate("one => getComputedStyle(one).textAlign") == "right"
    page.locator(".tabbed-labels label", has_text="Second").click()
    page.get_by_text("Two", exact=True).wait_for()
    if width > 1000:
        page.locator(".highlight pre").first.hover()
        page.locator(".md-code__button").first.click()
        page.locator(".md-dialog--active").wait_for()
        assert "for text in TEXTS:" in page.evaluate("navigator.clipboard.readText()")
    else:
        page.locator("label.md-header__button[for=__search]").click()
    page.locator("input[name=query]").press_sequentially("onerror")
    page.locator(".md-search-result__item a").first.wait_for()
    assert page.locator(".md-search-result script, .md-search-result img").count() == 0
    page.keyboard.press("Enter")
    page.locator("article mark").first.wait_for(state="attached")
    assert heard == []


INJECTED = """
<script>harm("an inline script")</script>
<script src="https://elsewhere.example/harm.js"></script>
<img src="x.png" onerror="harm('an attribute')">
<iframe src="javascript:parent.harm('an address')"></iframe>
<iframe src="https://elsewhere.example/frame"></iframe>
<style>body { --harm: "a style" }</style>
<img src="https://elsewhere.example/harm.png">
<base href="https://elsewhere.example/">
<form action="https://elsewhere.example/"><button id="send">x</button></form>
"""
HARMS = {
    "an inline script",
    "an attribute",
    "an address",
    "a file",
    "a frame",
    "a style",
    "a picture",
    "a base",
    "a form",
}


@pytest.mark.parametrize("protected", [True, False])
def test_the_policy_stops_what_stands_in_a_page_all_the_same(page: Any, site: Path, protected: bool) -> None:
    """Without the policy all of it happens: the test can tell."""
    done = set()

    def elsewhere(route: Any) -> None:
        kinds = {".js": "a file", "png": "a picture", "ame": "a frame"}
        kind = kinds.get(route.request.url[-3:], "a form")
        done.add(kind)
        route.fulfill(content_type="text/javascript" if kind == "a file" else "text/html", body="")

    html = (site / "a/index.html").read_text("utf-8").replace("<article", f"{INJECTED}<article", 1)
    if not protected:
        html = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    page.expose_function("harm", lambda kind: done.add(kind))
    page.route("https://elsewhere.example/**", elsewhere)
    page.route("**/a/injected", lambda route: route.fulfill(content_type="text/html", body=html))
    page.goto("/a/injected", wait_until="load")
    if page.evaluate("getComputedStyle(document.body).getPropertyValue('--harm')"):
        done.add("a style")
    if page.evaluate("document.baseURI").startswith("https://elsewhere.example"):
        done.add("a base")
    page.locator("#send").dispatch_event("click")
    page.wait_for_timeout(300)
    assert done == (set() if protected else HARMS)


def test_every_page_carries_the_policy_and_allows_no_inline_script_but_the_themes(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert {file.relative_to(site).as_posix() for file in pages} == {"404.html", "index.html", "a/index.html"}
    for file in pages:
        html = file.read_text("utf-8")
        policy = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
        assert len(policy) == 1
        assert re.search("script-src 'self'(?: 'sha256-[^']+'){3};", policy[0])
        assert len(re.findall(r"<script>", html)) == 3
