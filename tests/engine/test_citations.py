"""executed/citations.py: citations become links to a list of sources at the chapter's end."""

import re
from collections.abc import Callable
from pathlib import Path

import markdown
import pytest
from bs4 import BeautifulSoup

from executed.book import Book, BookError
from executed.citations import Bibliography, cited_keys
from executed.render import Page, Renderer
from executed.store import Outcomes

BIBLIOGRAPHY = r"""
% A comment.
@inproceedings{vaswani2017,
  author = {Vaswani, Ashish and Shazeer, Noam and Parmar, Niki},
  title = {Attention is {All} You Need},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {30},
  pages = {5998--6008},
  year = {2017},
  url = {https://x.org/a_b_c?q=1&r=(2)}
}

@article{erdos:1959,
  author = {Erd{\H o}s, P{\'a}l and van der Berg, Jan},
  title = {On $x^2$ [and] *more* <b> & {\"U}ber 100\% \_},
  journal = {J. <i>},
  volume = {6},
  number = {2},
  year = {1959},
  doi = {10.1/x_y}
}

@misc{group, author = {{Some <Research> Group}}, title = {Report}, year = {2020}, publisher = {Press}}
@misc{anonymous, title = {No [One]}, year = {2021}}
"""

Cite = Callable[..., Page]


@pytest.fixture
def cite(write_book: Callable[..., Path]) -> Cite:
    """`cite(source)`: the page, with the bibliography above or another one."""

    def rendered(source: str, bibliography: str | None = BIBLIOGRAPHY, language: str = "en") -> Page:
        root = write_book({}, {"index": ""})
        if bibliography is not None:
            (root / "docs/references.bib").write_text(bibliography, "utf-8")
        page = Page("docs/page.md", source)
        Renderer(Book.read(root), Outcomes()).render(page, language)
        return page

    return rendered


def html(page: Page) -> BeautifulSoup:
    built = markdown.markdown(page.text, extensions=["attr_list", "toc", "tables", "footnotes"])
    return BeautifulSoup(built, "html.parser")


def test_a_citation_links_to_its_source_at_the_end(cite: Cite) -> None:
    soup = html(cite("As they say [@vaswani2017].\n"))
    link, title = soup.select("a[href]")
    assert soup.p is not None
    assert soup.p.get_text() == "As they say (Vaswani et al., 2017)."
    assert soup.select_one(str(link["href"]))
    assert title["href"] == "https://x.org/a_b_c?q=1&r=%282%29"
    assert [heading.get_text() for heading in soup.select("h2")] == ["References"]
    assert soup.li is not None
    assert " ".join(soup.li.get_text().split()) == (
        "Ashish Vaswani, Noam Shazeer, Niki Parmar. Attention is All You Need. "
        "Advances in Neural Information Processing Systems 30, pages 5998–6008, 2017."
    )


def test_several_keys_share_one_pair_of_brackets_and_each_source_is_listed_once(cite: Cite) -> None:
    page = cite("One [@group; @vaswani2017] and\ntwo [@vaswani2017;\n@group].\n")
    soup = html(page)
    assert page.cited == ["group", "vaswani2017"]
    assert "(Some <Research> Group, 2020; Vaswani et al., 2017)" in soup.get_text()
    assert len(soup.select("li")) == 2


def test_what_a_bibliography_says_is_shown_letter_by_letter(cite: Cite) -> None:
    soup = html(cite("[@erdos:1959]\n"))
    assert "Pál Erdős, Jan van der Berg. On $x^2$ [and] *more* <b> & Über 100% _. J. <i> 6(2), 1959." in soup.get_text()
    assert not soup.select("b, i, em")
    assert soup.p is not None
    assert soup.p.get_text() == "(Erdős and van der Berg, 1959)"
    assert soup.find(id="ref-erdos:1959") is not None
    assert soup.li is not None
    assert soup.li.a is not None
    assert soup.li.a["href"] == "https://doi.org/10.1/x_y"


def test_a_source_without_author_is_cited_by_its_title(cite: Cite) -> None:
    soup = html(cite("[@anonymous]\n"))
    assert soup.p is not None
    assert soup.p.get_text() == "(No [One], 2021)"
    assert soup.li is not None
    assert soup.li.get_text().strip() == "No [One]. 2021."


def test_citations_follow_the_pages_language(cite: Cite) -> None:
    text = html(cite("[@vaswani2017; @erdos:1959]\n", language="vi")).get_text()
    assert "(Vaswani và cộng sự, 2017; Erdős và van der Berg, 1959)" in text
    assert "Tài liệu tham khảo" in text
    assert "tr. 5998–6008" in text


@pytest.mark.parametrize(
    "source",
    [
        "# A [@group]",
        "- a [@group]",
        "> [@group]",
        "| [@group] | b |\n| - | - |",
        "x[^1]\n\n[^1]: [@group]",
        "**[@group]**",
    ],
)
def test_a_citation_works_wherever_prose_stands(cite: Cite, source: str) -> None:
    page = cite(source + "\n")
    assert page.cited == ["group"]
    assert html(page).select("a[href='#ref-group']")


def test_an_unknown_key_is_an_error_at_its_own_line_with_the_nearest_key(cite: Cite) -> None:
    page = cite("`[@vaswani]`\n\n[@vaswani2017]\nand [@vaswani; @group]\n")
    assert [str(problem) for problem in page.problems] == [
        "docs/page.md:4: docs/references.bib has no entry vaswani; did you mean vaswani2017?"
    ]
    assert page.cited == ["vaswani2017", "group"]


def test_without_a_bibliography_every_key_is_unknown_and_no_list_is_made(cite: Cite) -> None:
    page = cite("[@group]\n", None)
    assert "docs/references.bib has no entry group" in str(page.problems[0])
    assert "References" not in page.text
    assert not cite("No citation.\n", None).problems


@pytest.mark.parametrize(
    ("bibliography", "said"),
    [
        ("\n\n@article{a, title = {x", "references.bib:3: this is no good BibTeX"),
        (
            "@article{a, title={x}, year={2000}}\n@article{a, title={y}, year={2000}}",
            "this is no good BibTeX: repeated",
        ),
        ("\n@article{a, author = {X}, title = {T}}", "references.bib:2: this is no good BibTeX: a has no year"),
        (
            "\n@article{b, year=2000, title={y}}\n@article{a, year = 2000}",
            "references.bib:3: this is no good BibTeX: a has no title",
        ),
    ],
)
def test_a_bibliography_that_cannot_be_read_is_an_error_with_its_line(cite: Cite, bibliography: str, said: str) -> None:
    with pytest.raises(BookError, match=said.replace("[", r"\[")):
        cite("[@a]\n", bibliography)


def test_keys_are_found_in_order_and_once() -> None:
    assert cited_keys("[@b] [@a; @b ;@c.d-e:f] [x @g] @h \\[@i] [@]") == ["b", "a", "c.d-e:f"]


def test_the_books_own_bibliography_can_be_read() -> None:
    root = Path(__file__).parents[2]
    bibliography = Bibliography(root)
    keys = re.findall(r"^@\w+\{(.*),$", (root / "docs/references.bib").read_text("utf-8"), re.M)
    assert "vaswani2017" in keys
    built = markdown.markdown(bibliography.section(keys, "en"), extensions=["attr_list"])
    section = BeautifulSoup(built, "html.parser")
    assert len(section.select("li[id]")) == len(keys)
