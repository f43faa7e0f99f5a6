"""The parameter calculator in docs/in-practice.md: what snippets/in_practice.py computes, on the reader's own sizes."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snippets.in_practice import SIZES, plan

AXE = Path(__file__).parents[2] / "benchmarks/site/node_modules/axe-core/axe.min.js"
PARTS = ["words", "positions", "attention", "feed_forward", "norms", "head"]
UNITS = {"byte": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
Open = Callable[..., Any]
SET = """([element, sizes]) => {
    for (const [name, value] of Object.entries(sizes)) {
        const range = element.querySelector(`[id$="-${name}"]`);
        if (range.type === "checkbox") {
            if (range.checked !== Boolean(value)) range.click();
        } else {
            const exact = range.parentElement.querySelector("[type=number]");
            exact.value = value;
            exact.dispatchEvent(new Event("input"));
        }
    }
}"""


def calculator(page: Any, address: str = "/in-practice/") -> Any:
    page.goto(address)
    found = page.locator('.widget[data-widget="calculator"]')
    found.scroll_into_view_if_needed()
    found.locator(".calculator").wait_for()
    return found


def shown(found: Any) -> dict[str, int]:
    rows = found.locator(".calculator-parts tbody td:nth-child(2)").all_inner_texts()
    numbers = [*rows, found.locator(".calculator-total b").inner_text()]
    return dict(zip([*PARTS, "total"], [int(number.replace(",", "")) for number in numbers], strict=True))


def memory(found: Any) -> list[float]:
    """The bytes of one attention's scores, and of all."""
    pairs = [text.split() for text in found.locator("dd").all_inner_texts()]
    return [float(number) * UNITS[unit.removesuffix("s")] for number, unit in pairs]


def agrees(found: Any, sizes: dict[str, int]) -> None:
    expected = plan(sizes)
    assert shown(found) == {name: expected[name] for name in [*PARTS, "total"]}
    assert memory(found) == pytest.approx([expected["scores"], expected["all_scores"]], rel=6e-3)


def test_it_starts_from_three_models_and_counts_each_as_the_book_does(page: Open, result: Any) -> None:
    chapter = page(320)
    found = calculator(chapter)
    assert chapter.evaluate("document.documentElement.scrollWidth") <= 320
    for name, total in result("in_practice.planned").values["counted"].items():
        button = found.get_by_role("button", name=name)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert shown(found)["total"] == total
        agrees(found, SIZES[name])
    assert found.locator(".calculator-start [aria-pressed=true]").count() == 1


def test_any_other_sizes_are_counted_as_the_python_function_does(page: Open, result: Any) -> None:
    found = calculator(page())
    element, draw = found.element_handle(), random.Random(0)
    choices = result("in_practice.planned").values["choices"]
    for _ in range(25):
        sizes = {name: draw.randint(stops[0], stops[-1]) for name, stops in choices.items()}
        found.page.evaluate(SET, [element, sizes])
        agrees(found, sizes)
        uneven = found.get_by_text("equal heads").count()
        assert uneven == bool(sizes["d_model"] % sizes["heads"])
    assert found.locator(".calculator-start [aria-pressed=true]").count() == 0


def test_a_slider_moves_by_keyboard_from_stop_to_stop_and_says_the_number(page: Open, result: Any) -> None:
    chapter = page()
    found = calculator(chapter)
    slider = found.get_by_role("slider", name="Layers", exact=True)
    slider.focus()
    chapter.keyboard.press("ArrowRight")
    stops = result("in_practice.planned").values["choices"]["layers"]
    more = stops[stops.index(12) + 1]
    assert slider.get_attribute("aria-valuetext") == str(more)
    assert found.get_by_role("spinbutton", name="Layers, exact number").input_value() == str(more)
    agrees(found, {**SIZES["PhoBERT-base"], "layers": more})
    total = found.locator(".calculator-total b").inner_text()
    found.locator('[role="status"]', has_text=f"{total} parameters. Scores: ").wait_for(state="attached")
    chapter.keyboard.press("ArrowLeft")
    assert found.get_by_role("button", name="PhoBERT-base").get_attribute("aria-pressed") == "true"


def test_a_number_that_cannot_be_is_told_and_changes_nothing(page: Open) -> None:
    found = calculator(page())
    width = found.get_by_role("spinbutton", name="Heads, exact number")
    for wrong in ("0", "", "1.5", "-3", "100000"):
        width.fill(wrong)
        assert width.get_attribute("aria-invalid") == "true"
        assert found.get_by_text("Heads: a whole number from 1 to 128.").first.is_visible()
        agrees(found, SIZES["PhoBERT-base"])
    width.fill("7")
    assert width.get_attribute("aria-invalid") == "false"
    assert found.get_by_text("A width of 768 does not divide into 7 equal heads.").first.is_visible()
    width.fill("16")
    assert found.locator(".calculator-trouble").inner_text() == ""
    assert found.get_by_text("= 48 a head").is_visible()
    found.get_by_role("spinbutton", name="Tokens in a text, T, exact number").fill("300")
    assert found.get_by_text("A table of 258 positions is too short for 300 tokens.").first.is_visible()


def test_it_works_from_the_disk(page: Open, site: Path, heard: list[str]) -> None:
    found = calculator(page(), (site / "in-practice/index.html").as_uri())
    agrees(found, SIZES["PhoBERT-base"])
    assert [one for one in heard if "values" in one or "widgets" in one] == []
    heard.clear()  # the search of such a build is for a server


@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed: npm ci --prefix benchmarks/site")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (820, "dark")])
def test_axe_finds_nothing(page: Open, width: int, scheme: str) -> None:
    chapter = page(width, scheme)
    found = calculator(chapter)
    fold = found.get_by_role("button", name="Outside the blocks")
    assert not found.get_by_label("A pooler").is_visible()
    fold.click()
    assert found.get_by_label("A pooler").is_checked()
    found.get_by_role("spinbutton", name="Heads, exact number").fill("0")
    chapter.evaluate(AXE.read_text("utf-8"))
    wrong = chapter.evaluate("axe.run('.widget[data-widget=calculator]').then((found) => found.violations)")
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in wrong] == []
