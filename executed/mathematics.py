r"""Formulas as MathML, set while the book is built: a page needs no script and asks nobody for one.

`pymdownx.arithmatex` with `generic: true` finds the mathematics in a chapter and leaves it as `\(...\)` or
`\[...\]` in elements of class `arithmatex`. Here those become what the browser sets by itself.
"""

import re
from html import escape, unescape

from math_core import LatexError, LatexToMathML

_MARKED = re.compile(r'(<(span|div) class="arithmatex">)\s*(?:\\\((.*?)\\\)|\\\[(.*?)\\\])\s*(</\2>)', re.DOTALL)
_CONVERTER = LatexToMathML(fancy_error=False)


def typeset(html: str) -> str:
    """Replace the LaTeX that arithmatex marked in a page by MathML.

    The LaTeX stays as the formula's `alttext`. Raises ValueError, with the formula and what is
    wrong with it, where a formula is malformed or uses an unknown command.
    """
    return _MARKED.sub(_formula, html)


def _formula(marked: re.Match[str]) -> str:
    start, _, inline, block, end = marked.groups()
    latex = unescape(block if inline is None else inline).strip()
    try:
        mathml = _CONVERTER.convert_with_local_state(latex, displaystyle=inline is None)
    except LatexError as error:
        raise ValueError(f"cannot set the formula {latex}, character {error}") from None
    return start + mathml.replace("<math", f'<math alttext="{escape(latex)}"', 1) + end
