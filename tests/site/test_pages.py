"""Every chapter in a browser: it is light, quiet, in working order and for everyone.

Each page is visited once, as a reader who uses all of it; widths and colour schemes take turns. All pages at all widths
in both schemes: `python benchmarks/browser.py` and `python benchmarks/site/measure.py`.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.site.measure import HEAVIEST, MOST_SHIFT, invalid, mistyped
from benchmarks.site.reader import (
    NODE_MODULES,
    SCHEMES,
    WIDTHS,
    inaccessible,
    pages,
    painted,
    searched,
    settled,
    toggled,
    use,
)

tools = pytest.mark.skipif(not NODE_MODULES.exists(), reason="not installed: npm ci --prefix benchmarks/site")
KINDS = ("/", "/404.html", "/attention/", "/glossary/", "/in-practice/", "/reproduction/", "/sorting/")
"""Pages that, with a notebook, hold all there is: axe takes as long for one as all the rest of a visit."""
CONTRAST = {"color-contrast": {"enabled": False}}


@dataclass
class Visit:
    transferred: int
    shift: float
    wrong: list[str]
    inaccessible: list[str]
    heard: list[str]


@pytest.fixture(scope="module")
def names(site: Path) -> list[str]:
    """Chapters, what stands beside them, and one notebook for all."""
    found = pages(site)
    notebooks = [name for name in found if name.startswith("/notebooks/")]
    return [name for name in found if name not in notebooks[1:]]


@pytest.fixture(scope="module")
def visits(visiting: Any, names: list[str], sent: list[tuple[str, int]]) -> dict[str, Visit]:
    visits = {}
    for name, width, scheme in zip(names, itertools.cycle(WIDTHS), itertools.cycle(SCHEMES), strict=False):
        sent.clear()
        with visiting(width, scheme, service_workers="block") as (page, heard):
            page.goto(name, wait_until="load")
            transferred = settled(page, sent, quiet=300)
            _, shift = painted(page)
            _, wrong = use(page, copy=width > 1000, at_most=2)
            checked = NODE_MODULES.exists() and (name in KINDS or name.startswith("/notebooks/"))
            found = inaccessible(page, rules=CONTRAST) if checked else []
            visits[f"{name} {width} {scheme}"] = Visit(transferred, shift, wrong, found, heard)
    return visits


def test_a_first_visit_transfers_no_more_than_the_budget(visits: dict[str, Visit]) -> None:
    assert {name: visit.transferred for name, visit in visits.items() if visit.transferred > HEAVIEST} == {}
    assert all(visit.transferred > 100_000 for visit in visits.values()), "the search alone weighs that"


def test_nothing_moves_under_the_readers_eyes(visits: dict[str, Visit]) -> None:
    assert {name: visit.shift for name, visit in visits.items() if visit.shift > MOST_SHIFT} == {}


def test_folds_tabs_copy_buttons_and_widgets_do_what_they_are_for(visits: dict[str, Visit]) -> None:
    assert {name: visit.wrong for name, visit in visits.items() if visit.wrong} == {}


def test_no_page_complains_or_asks_another_host(visits: dict[str, Visit]) -> None:
    assert {name: visit.heard for name, visit in visits.items() if visit.heard} == {}


@tools
def test_axe_finds_nothing_with_folds_open_and_widgets_alive(visits: dict[str, Visit]) -> None:
    assert {name: visit.inaccessible for name, visit in visits.items() if visit.inaccessible} == {}


@tools
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_stands_out_from_its_ground(page: Any, scheme: str) -> None:
    """The chapter with the most kinds of text."""
    chapter = page(1440, scheme)
    chapter.goto("/attention/")
    use(chapter, copy=False)
    assert inaccessible(chapter, runOnly=["color-contrast"]) == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_search_and_the_choice_of_colours_work(page: Any, width: int, scheme: str) -> None:
    chapter = page(width, scheme)
    chapter.goto("/")
    assert toggled(chapter)
    assert searched(chapter, "softmax")


@tools
def test_html_validate_finds_nothing(site: Path, names: list[str]) -> None:
    assert invalid(site, names) == []


@tools
def test_the_scripts_hold_what_their_types_promise() -> None:
    assert mistyped() == []
