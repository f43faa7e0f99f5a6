"""executed/mathematics.py: formulas become MathML, and a malformed one stops the build."""

import re
import xml.etree.ElementTree as ET
from html import unescape

import markdown
import pytest

from executed.mathematics import typeset

FORMULAS = [
    r"\frac{QK^\top}{\sqrt{d_k}}",
    r"\operatorname{softmax}\left(\frac{x_i}{\sum_{j=1}^{n} e^{x_j}}\right)",
    r"\begin{pmatrix} \cos\omega & \sin\omega \\ -\sin\omega & \cos\omega \end{pmatrix}",
    r"m_{ij} = \begin{cases} 0 & \text{if } j \le i \\ -\infty & \text{otherwise} \end{cases}",
    r"x \in \mathbb{R}^{T \times d}, q \cdot k < \ldots",
]


def page(chapter: str) -> str:
    extensions = ["pymdownx.arithmatex", "pymdownx.superfences"]
    return typeset(
        markdown.markdown(chapter, extensions=extensions, extension_configs={"pymdownx.arithmatex": {"generic": True}})
    )


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("chapter", ["${}$", "$$\n{}\n$$"])
def test_a_formula_becomes_well_formed_mathml_that_keeps_its_latex(formula: str, chapter: str) -> None:
    html = page(chapter.replace("{}", formula))
    (mathml,) = re.findall(r"<math.*?</math>", html, re.DOTALL)
    element = ET.fromstring(mathml.replace("&ApplyFunction;", "\u2061"))
    assert unescape(element.attrib["alttext"]) == formula
    assert (element.get("display") == "block") == chapter.startswith("$$")
    assert "\\(" not in html
    assert "\\[" not in html


@pytest.mark.parametrize("formula", [r"\frac{a}{b", r"\nosuch{a}", "a & b", "x^", r"\left( a", r"\frac{a}", "a_b_c"])
def test_a_malformed_formula_is_an_error_that_shows_it(formula: str) -> None:
    with pytest.raises(ValueError, match=re.escape(formula)):
        page(f"So ${formula}$ it is.")


def test_what_looks_like_a_formula_in_code_stays_code() -> None:
    html = page('```\n<span class="arithmatex">\\(x\\)</span> $y$\n```\n\n`$z$` costs $5 or $6.')
    assert "<math" not in html
