"""Chapters as plain Markdown, for other programs and for whoever takes the text elsewhere; and llms.txt, their list.

Made from a chapter that is filled in: outputs are code blocks, figures are images with their alt text, boxes are
quotations with a bold title. What only a browser can show is left out: widgets, and the notes on how a result was made.
The format of llms.txt is that of llmstxt.org.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from urllib.parse import quote, unquote

FRONT_MATTER = re.compile(r"---\n.*?\n---\n", re.S)
FENCE = re.compile(r"(`{3,}|~{3,}) *(?:\{ *\.([\w+-]+)[^}\n]*\}|([\w+-]*).*)$")
BOX = re.compile(r'(?:!!!|\?\?\?\+?|===[!+]*)[ \t]*([\w -]*?)[ \t]*(?:"(.*)")?[ \t]*$')
WIDGET = re.compile(r'<div class="widget".*?</div>', re.S)
FIGURE = re.compile(r'!\[([^\]]*)\]\(([^()\s]+)(?: "([^"]*)")?\)')
TARGET = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!<?\w+:)<?((?<=<)[^<>\n#]*|[^()\s#<]*)(#[^()\s>]*)?>?\)")
ATTRIBUTES = re.compile(r" *\{:?(?: *(?:[.#][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[\w-]+)))+ *\}")
ENTITY = re.compile(r"&#\d+;|&(?:lt|gt|amp|quot|nbsp);")
LINK = re.compile(r'\[([^\]]+)\]\((?:[^()\s"]*/)?glossary\.md#[\w-]+ "[^"]*"\)\{: \.glossary \}')
"""A link to the glossary, as executed/glossary.py writes it."""
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|\$\$[^$]+\$\$|(?<!\\)\$[^$]+\$")
"""What stays as it is: code, and formulas."""
MARKS, STARTS = frozenset("\\`*_[]<$|&~"), frozenset("#>-+")
"""What would be markup anywhere, and what would at the start of a line."""
EMPTY = "\ue002"
"""An empty line of code, which stays where others are drawn together."""
HERE, THERE = "\ue000", "\ue001"
"""Around the address of a file below `docs/`, until it is known where the text will stand."""


def plain(text: str) -> str:
    """A chapter's finished Markdown without what only this site understands; addresses wait for `placed`."""
    text = WIDGET.sub("", FRONT_MATTER.sub("", text, count=1))
    body = "\n".join(_lines(text.split("\n")))
    return re.sub(f" ?{EMPTY}", "", re.sub(r"\n{3,}", "\n\n", body)).strip("\n") + "\n"


def _lines(lines: Sequence[str]) -> Iterator[str]:
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        bare = line.lstrip(" ")
        indent = line[: len(line) - len(bare)]
        if fence := FENCE.match(bare):
            yield f"{indent}{fence[1]}{fence[2] or fence[3] or ''}"
            while number < len(lines) and lines[number].strip() != fence[1]:
                yield lines[number] if lines[number].strip() else EMPTY
                number += 1
            yield f"{indent}{fence[1]}"
            number += 1
        elif bare.startswith(("!!!", "???", "===")) and (box := BOX.match(bare)):
            inside = []
            while number < len(lines) and (not lines[number].strip() or lines[number].startswith(f"{indent}    ")):
                inside.append(lines[number][len(indent) + 4 :])
                number += 1
            if box[1] != "made":
                title = _inline(box[2]) if box[2] else box[1].capitalize()
                quoted = [f"**{title}**", "", *_lines([*inside, ""])]
                yield from (f"{indent}> {one}".rstrip() for one in _trimmed(quoted))
            yield ""
        elif bare == "$$":
            yield line
            while number < len(lines) and lines[number].strip() != "$$":
                yield lines[number]
                number += 1
            yield line
            number += 1
        elif re.fullmatch(r"\{:.*\}", bare):
            continue
        else:
            yield indent + _inline(bare)


def _trimmed(lines: list[str]) -> list[str]:
    """A box without empty lines at its end, and with one where there are several."""
    while lines and not lines[-1].strip():
        lines.pop()
    return [line for before, line in zip(["", *lines], lines, strict=False) if line.strip() or before.strip()]


def _inline(line: str) -> str:
    """A line of prose; what is code in it stays as it is."""
    codes = [code[0] for code in CODE.finditer(line)]
    numbers = iter(range(len(codes)))
    line = CODE.sub(lambda _: f"{HERE}{next(numbers)}{HERE}", line)
    line = ATTRIBUTES.sub("", LINK.sub(r"\1", line))
    line = ENTITY.sub(lambda found: _letter(unescape(found[0]), found.start() == 0), line)
    line = FIGURE.sub(_image, line)
    line = TARGET.sub(lambda found: f"[{found[1]}]({HERE}{found[2]}{THERE})" if found[2] else found[1], line)
    return re.sub(rf"{HERE}(\d+){HERE}", lambda found: codes[int(found[1])], line)


def _letter(letter: str, first: bool) -> str:
    return f"\\{letter}" if letter in MARKS or (first and letter in STARTS) else letter


def _image(found: re.Match[str]) -> str:
    caption = f"\n\n*{found[3]}*" if found[3] else ""
    return f"![{found[1]}]({HERE}{found[2]}{THERE}){caption}"


def placed(text: str, source: str, to: str, files: Mapping[str, str]) -> str:
    """The text of the chapter `source` as it stands in the file `to`: links lead from there.

    `files` says where each file below `docs/` is in the site, chapters as plain Markdown.
    """
    folder, base = posixpath.dirname(source), posixpath.dirname(to)

    def address(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, unquote(found[1])))
        return quote(posixpath.relpath(files.get(target, target), base or "."))

    return re.sub(f"{HERE}([^{THERE}]*){THERE}", address, text)


@dataclass(frozen=True)
class Entry:
    """A page in llms.txt."""

    title: str
    description: str
    address: str


def llms(site: str, summary: str, full: str, sections: Sequence[tuple[str, Sequence[Entry]]]) -> str:
    """llms.txt: what the site is, and its pages as Markdown, section by section; `full` has them all in one."""
    lines = [f"# {site}", "", f"> {summary}", "", f"All pages in one file: [{posixpath.basename(full)}]({full})."]
    for title, entries in sections:
        lines += ["", f"## {title}", ""]
        lines += [f"- [{one.title}]({one.address}): {one.description}".removesuffix(": ") for one in entries]
    return "\n".join(lines) + "\n"
