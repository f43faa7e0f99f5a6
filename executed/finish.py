"""Last touches to a page: what a validator, a screen reader or a slow phone would stumble over in it.

A browser can leave out code, figures and long tables that are not on screen, and that is most of a chapter, if it knows
their size without laying them out (book.css, `content-visibility`): so each block of code says how many lines it has,
each long table how many rows, and each figure its proportions.
"""

import re

CODE = re.compile(r"(<pre\b[^>]*>(?:<span></span>)?<code)>(.*?)(?=</code></pre>)", re.S)
TABLE = re.compile(r"<table>(.*?)(?=</table>)", re.S)
LONG = 50
"""Rows that make a table long: a shorter one is laid out sooner than it is asked for."""
VIEW_BOX = re.compile(r'<svg\b[^>]*?\sviewBox="0 0 ([\d.]+) ([\d.]+)"')
SEARCH_LABEL = re.compile(r'name="query" aria-label="([^"]*)"')
VIETNAMESE = re.compile(r"<em>(?=[^<]*[ăâđêôơưàáãèéìíòóõùúýĂÂĐÊÔƠƯạ-ỹẠ-Ỹ])")
PALETTE = "assets/scripts/palette.js"
TOGGLE = re.compile(r'(<input class="md-toggle"[^>]*) autocomplete="off"')


def finished(html: str) -> str:
    """A whole page as it is published."""
    html = TABLE.sub(_with_rows, CODE.sub(_with_lines, html))
    if '<html lang="vi"' not in html:  # Vietnamese words in an English sentence, read aloud as such
        html = VIETNAMESE.sub('<em lang="vi">', html)
    # What the theme gets wrong: a dialog without a name, a message ("Copied to clipboard") that is not read out, a
    # tabindex without a number, and autocomplete where HTML has none. The form keeps what that was for: a browser does
    # not open the drawer again by itself.
    label = SEARCH_LABEL.search(html)
    html = html.replace(' role="dialog">', f' role="dialog" aria-label="{label[1] if label else "Search"}">', 1)
    html = html.replace('<div class="md-dialog"', '<div class="md-dialog" role="status"', 1)
    html = html.replace(' tabindex=""', "")
    html = html.replace(' data-md-component="source"', "")  # with it the theme asks GitHub for the repository's stars
    if PALETTE in html:  # the book's own script takes care of that form
        html = html.replace(' data-md-component="palette"', " data-palette", 1)
    toggles = list(TOGGLE.finditer(html))
    for toggle in toggles:
        html = html.replace(toggle[0], f'{toggle[1]} form="__toggles"', 1)
    if toggles:
        html = html.replace("<label", '<form id="__toggles" autocomplete="off" hidden></form>\n    <label', 1)
    return html


def _with_lines(found: re.Match[str]) -> str:
    lines = found[2].rstrip("\n").count("\n") + 1
    return f'{found[1]} style="--lines:{lines}">{found[2]}'


def _with_rows(found: re.Match[str]) -> str:
    rows = found[1].count("<tr")
    return f'<table style="--rows:{rows}">{found[1]}' if rows > LONG else found[0]


def with_proportions(svg: str) -> str:
    """A figure that keeps its shape while nothing in it is drawn."""
    size = VIEW_BOX.match(svg)
    if size is None:
        return svg
    shape = f"aspect-ratio: {size[1]} / {size[2]}"
    head, end, body = svg.partition(">")
    if ' style="' in head:
        head = head.replace(' style="', f' style="{shape}; ', 1)
    else:
        head = head.replace("<svg", f'<svg style="{shape}"', 1)
    return head + end + body
