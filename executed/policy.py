"""What may stand in a published page: nothing that runs, and nothing from outside the repository.

Two walls, one behind the other. The build refuses a page whose text could make a browser do something; and each page
carries a content security policy, by which the browser refuses what the build overlooked.
"""

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from pathlib import Path

from executed.book import SNIPPETS, Problem

# What a page may load and run. The theme's own inline scripts are added to script-src, each by its hash.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "style-src-attr": "'unsafe-inline'",  # figures and table cells carry style attributes
    "img-src": "'self' data:",  # the theme's icons, and the images inside figures
    "font-src": "'self'",
    "connect-src": "'self'",  # the search index
    "worker-src": "'self'",  # the search itself, and what keeps pages for when there is no connection
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
HEAD = re.compile(r'<head\b[^>]*>(?:\s*<meta charset="utf-8">)?')
BLOCK = re.compile(r"<(script|style)\b[^>]*>.*?</\1>", re.S)
INLINE = re.compile(r"<script(?![^>]*(?:\ssrc=|application/json))[^>]*>(.*?)</script>", re.S)

ELEMENT = re.compile(
    r"""
    a|abbr|article|aside|b|blockquote|br|button|caption|cite|code|col|colgroup|dd|del|details|dfn|div|dl|dt|em
    |figcaption|figure|h[1-6]|hr|i|img|input|ins|kbd|label|li|mark|nav|ol|p|pre|q|s|samp|section|small|span|strong|sub
    |summary|sup|table|tbody|td|tfoot|th|thead|time|tr|u|ul|var|wbr

    |math|merror|mfrac|mi|mmultiscripts|mn|mo|mover|mpadded|mphantom|mprescripts|mroot|mrow|ms|mspace|msqrt|mstyle
    |msub|msubsup|msup|mtable|mtd|mtext|mtr|munder|munderover

    |svg|circle|clippath|defs|desc|ellipse|filter|g|image|line|lineargradient|marker|mask|path|pattern|polygon|polyline
    |radialgradient|rect|stop|symbol|text|textpath|title|tspan|use
    """,
    re.X | re.I,
)
RUNS = re.compile(r"on.*|action|background|data|formaction|http-equiv|ping|poster|srcdoc|srcset", re.S)
ADDRESSES = ("href", "src")
# A tag that every browser reads alike: no angle bracket inside, each quotation mark closed.
SPACE = r"[ \t\n\f\r]"
NAME = r"[A-Za-z][A-Za-z0-9:_.-]*"
VALUE = rf"""(?:{SPACE}*={SPACE}*(?:"[^"<>]*"|'[^'<>]*'|[^ \t\n\f\r"'<>=`]+))?"""
TAG = re.compile(rf"<(/?)({NAME})((?:{SPACE}+{NAME}{VALUE})*){SPACE}*/?>")
ATTRIBUTE = re.compile(rf"{SPACE}+({NAME})({VALUE})")
COMMENT = re.compile(r"<!--(?:-?[^-<>])*-->")
# What the theme writes into the head of each page, with texts from the chapters.
OF_THE_PAGE = re.compile(
    r'<meta name="(?:description|author)" content="[^"<>]*">|<link rel="(?:prev|next|canonical)" href="[^"<>]*">'
)


def content_security_policy(shell: str) -> str:
    """The policy for pages of this shell, which is what the theme makes of a page without any content."""
    hashes = map(script_hash, dict.fromkeys(INLINE.findall(shell)))
    allowed = {**POLICY, "script-src": " ".join([POLICY["script-src"], *hashes])}
    return "; ".join(f"{directive} {sources}" for directive, sources in allowed.items())


def script_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def with_policy(html: str, policy: str) -> str:
    """The page with its policy, before anything that the policy is for. Raises ValueError where it has no head."""
    meta = f'\n      <meta http-equiv="Content-Security-Policy" content="{policy}">'
    if not (head := HEAD.search(html)):
        raise ValueError("the theme wrote a page without <head>, so it cannot have a content security policy")
    return html.replace(head[0], head[0] + meta, 1)  # ten times as fast as with `sub`, which looks at every letter


def refused(html: str, shell: str = "") -> Iterator[tuple[str, str]]:
    """What may not stand in a page or a figure: the words for it, and the piece to look for in the source.

    What the theme's shell holds may stand there, letter by letter: a chapter that writes the same adds nothing to it.
    """
    blocks, known = _held(shell)
    for block in blocks:
        html = html.replace(block, "<>")
    for tag in dict.fromkeys(_tags(html)):
        if tag not in known and (wrong := _wrong(tag)) and not (shell and OF_THE_PAGE.fullmatch(tag)):
            yield wrong


@lru_cache(maxsize=8)
def _held(shell: str) -> tuple[set[str], set[str]]:
    """The scripts and styles of a shell, and its other tags."""
    return {found[0] for found in BLOCK.finditer(shell)}, {*_tags(BLOCK.sub("<>", shell))}


def _tags(html: str) -> list[str]:
    return re.findall(r"<[^>]*>?", html)


@lru_cache(maxsize=2**16)
def _wrong(tag: str) -> tuple[str, str] | None:
    read = TAG.fullmatch(tag)
    if not read:
        shown = " ".join(tag.split())[:80]
        return None if COMMENT.fullmatch(tag) else (f"{shown} is no plain HTML tag (in text, write &lt;)", tag)
    slash, name, attributes = read.groups()
    if not ELEMENT.fullmatch(name):
        return f"<{name}> may not stand in a page", f"<{slash}{name}"
    for attribute, value in ATTRIBUTE.findall(attributes):
        local = attribute.lower().rpartition(":")[2]
        if RUNS.fullmatch(local):
            return f"the attribute {attribute} of <{name}> may not stand in a page", attribute
        address = unescape(value.strip("= \t\n\f\r").strip("\"'"))
        if local in ADDRESSES and not _may_lead_there(name.lower(), address):
            return f"<{name}> may not lead to {address[:80]!r}", address
    return None


def _may_lead_there(element: str, address: str) -> bool:
    """Whether an address is a link to a page or, for what a page loads by itself, a part of the site."""
    address = re.sub(r"[\x00-\x20]", "", address).lower()
    if element == "a":
        scheme = re.match(r"([a-z][a-z0-9+.-]*):", address)
        return not scheme or scheme[1] in ("http", "https", "mailto")
    return bool(re.match(r"#|data:image/(?:png|jpeg|gif|webp);|(?![/\\]{2})[^:]*$", address))


def leading_out(root: Path) -> list[Problem]:
    """Symbolic links in the book that would bring in what does not belong to it, such as a key or a password file."""
    problems = []
    for top in ("docs", SNIPPETS, "records"):
        inside = os.path.join(os.path.realpath(root), top)
        links = [inside] if os.path.islink(inside) else []
        for folder, folders, files in os.walk(inside):
            links += [path for name in (*folders, *files) if os.path.islink(path := os.path.join(folder, name))]
        for link in links:
            if not os.path.realpath(link).startswith(inside + os.sep):
                shown = Path(os.path.relpath(link, os.path.dirname(inside))).as_posix()
                problems.append(Problem(shown, 1, f"this is a link out of {top}/: put what it leads to in its place"))
    return problems
