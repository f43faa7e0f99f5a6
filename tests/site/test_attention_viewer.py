"""docs/assets/scripts/widgets/attention-viewer.js: where each token looks, with the numbers of the examples."""

import gzip
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.site.reader import AXE
from executed.capture import quotable
from executed.numbers import formatted
from snippets import phobert
from tests.small_phobert import build

ROOT = Path(__file__).parents[2]
SHOWN = """
(viewer) => {
  const texts = (selector) => [...viewer.querySelectorAll(selector)].map((one) => one.textContent);
  const row = Number(viewer.querySelector(".viewer-asking :checked").value);
  return {
    row,
    lines: [...viewer.querySelectorAll("path.chosen")].map((one) => Number(one.style.getPropertyValue("--weight"))),
    read: texts(".viewer-weight"),
    marked: texts("tr.chosen td"),
    matrix: [...viewer.querySelectorAll("tbody tr")].map((one) => [...one.cells].slice(1).map((td) => td.textContent)),
    entropies: texts("dd"),
    sentence: viewer.querySelector("[aria-live]").textContent,
  };
}
"""
ADDED = """
([data, language]) => {
  const element = document.createElement("div");
  element.className = "widget widget--alive added";
  document.querySelector("article").prepend(element);
  window.viewer = book.attentionViewer(element, data, language);
}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the chapter on PhoBERT shows where its weights are, of a small model with random weights."""
    folder = tmp_path_factory.mktemp("phobert")
    with pytest.MonkeyPatch.context() as patch:
        load = partial(phobert.load_phobert, str(folder), sha256=build(folder))
        patch.setattr(phobert, "load_phobert", load)
        return quotable(phobert.every_head(phobert.reading()))


def alive(page: Any, chapter: str) -> Any:
    """The viewer of a chapter, once it has started."""
    page.goto(f"/{chapter}/")
    page.locator('[data-widget="attention-viewer"]').scroll_into_view_if_needed()
    viewer = page.locator('[data-widget="attention-viewer"].widget--alive')
    viewer.wait_for()
    return viewer


def added(page: Any, data: Any, language: str = "en") -> Any:
    """A viewer of other data, in a chapter that has loaded the script."""
    alive(page, "attention")
    page.evaluate(ADDED, [data, language])
    return page.locator(".added")


def rounded(values: Any) -> Any:
    """As the prose quotes them."""
    return [rounded(one) for one in values] if isinstance(values, list) else formatted(values, "num", 2, "en")


def expected(data: Any, layer: int, head: int, row: int) -> dict[str, Any]:
    entropies = [data["entropy"][layer][head][row], data["mean_entropy"][layer][head], data["uniform"]]
    return {
        "row": row,
        "lines": data["weights"][layer][head][row],
        "read": rounded(data["weights"][layer][head][row]),
        "marked": rounded(data["weights"][layer][head][row]),
        "matrix": rounded(data["weights"][layer][head]),
        "entropies": rounded(entropies),
    }


def shown(viewer: Any) -> dict[str, Any]:
    found = viewer.evaluate(SHOWN)
    return {key: value for key, value in found.items() if key != "sentence"}


def test_four_tokens_have_the_weights_and_entropies_of_the_example(page: Any, result: Any) -> None:
    viewer = alive(page(), "attention")
    for row in range(4):
        viewer.locator(".viewer-asking label").nth(row).click()
        assert shown(viewer) == expected(result("attention.where_four_tokens_look").values, 0, 0, row)
    assert viewer.locator(".controls").count() == 0  # nothing to choose


def test_every_head_of_the_sorter_and_their_mean_have_the_numbers_of_the_example(page: Any, result: Any) -> None:
    values = result("reading.every_head").values
    viewer = alive(page(), "reading")
    layers, heads = viewer.locator(".controls fieldset").all()
    for layer in range(2):
        layers.get_by_role("radio", name=str(layer + 1)).check(force=True)
        for head in range(5):
            heads.get_by_role("radio").nth(head).check(force=True)
            data, number = (values["mean"], 0) if head == 0 else (values, head - 1)
            for row in range(8):
                viewer.locator(".viewer-asking input").nth(row).evaluate("one => one.click()")
                assert shown(viewer) == expected({**values, **data}, layer, number, row)


def test_the_heads_of_a_phobert_are_chosen_from_lists(page: Any, small: Any) -> None:
    viewer = added(page(), small)
    layers, heads = viewer.get_by_label("Layer"), viewer.get_by_label("Head")
    assert layers.locator("option").all_inner_texts() == [str(layer) for layer in range(1, 13)]
    assert heads.locator("option").all_inner_texts() == ["mean", *(str(head) for head in range(1, 13))]
    for layer, head in phobert.HEADS:
        layers.select_option(str(layer))
        heads.select_option(str(head))
        viewer.locator(".viewer-asking label").nth(11).click()
        assert shown(viewer) == expected(small, layer - 1, head - 1, 11)


def test_pointing_at_a_token_or_a_cell_shows_its_row(page: Any) -> None:
    viewer = alive(page(), "reading")
    viewer.locator(".viewer-asking label").nth(5).hover()
    assert shown(viewer)["row"] == 5
    cell = viewer.locator("tbody tr").nth(2).locator("td").nth(3)
    cell.hover()
    assert shown(viewer)["row"] == 2
    page_says = cell.locator("span").evaluate("one => getComputedStyle(one).opacity")
    assert float(page_says) > 0


def test_tapping_a_token_or_a_cell_shows_its_row(page: Any) -> None:
    viewer = alive(page(390, has_touch=True, is_mobile=True), "reading")
    viewer.locator(".viewer-asking label").nth(5).tap()
    assert shown(viewer)["row"] == 5
    viewer.locator("tbody tr").nth(2).locator("td").nth(3).tap()
    assert shown(viewer)["row"] == 2


def test_the_keyboard_reaches_all_of_it(page: Any) -> None:
    opened = page()
    viewer = alive(opened, "reading")
    focused = partial(
        opened.evaluate, "document.activeElement.name?.replace(/.*-/, '') || document.activeElement.tagName"
    )
    viewer.locator(".controls :checked").first.focus()
    assert focused() == "layer"
    opened.keyboard.press("ArrowLeft")  # from layer 2
    assert (focused(), viewer.locator("[name$=layer]:checked").get_attribute("value")) == ("layer", "0")
    opened.keyboard.press("Tab")
    assert focused() == "head"
    opened.keyboard.press("ArrowRight")
    assert (focused(), viewer.locator("[name$=head]:checked").get_attribute("value")) == ("head", "0")
    opened.keyboard.press("Tab")
    assert focused() == "row"
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowDown")
    assert shown(viewer)["row"] == 2
    opened.keyboard.press("Tab")
    place = partial(opened.evaluate, "[document.activeElement.parentNode.rowIndex, document.activeElement.cellIndex]")
    assert (focused(), place()) == ("TD", [3, 1])  # headings have row and column 0
    for key, there in [("ArrowRight", [3, 2]), ("ArrowDown", [4, 2]), ("End", [4, 8]), ("ArrowRight", [4, 8]),
                       ("ArrowUp", [3, 8]), ("ArrowLeft", [3, 7]), ("Home", [3, 1])]:  # fmt: skip
        opened.keyboard.press(key)
        assert place() == there
        assert shown(viewer)["row"] == there[0] - 1
    opened.keyboard.press("Tab")
    assert not viewer.evaluate("one => one.contains(document.activeElement)")


def test_a_sentence_says_to_whom_the_row_gives_what(page: Any) -> None:
    viewer = alive(page(), "attention")
    sentence = viewer.locator("[aria-live]")
    assert sentence.get_attribute("aria-live") == "off"  # nobody has asked for anything
    viewer.locator(".viewer-asking label").nth(2).click()
    assert sentence.get_attribute("aria-live") == "polite"
    assert sentence.inner_text() == (
        "“third” gives 0.41 to itself, 0.23 to “first”, 0.23 to “second”, and 0.13 to “fourth”."
    )


def test_of_a_long_row_the_sentence_has_the_three_largest_and_says_which_of_two_alike(page: Any, result: Any) -> None:
    viewer, values = alive(page(), "reading"), result("reading.every_head").values
    viewer.locator(".viewer-asking label").nth(1).click()
    row = values["mean"]["weights"][1][0][1]
    order = sorted(range(8), key=lambda key: -row[key])[:3]
    names = {1: "itself", 3: "“2” (place 4)"}
    parts = [f"{rounded(row[key])} to {names.get(key, '“' + values['tokens'][key] + '”')}" for key in order]
    said = f"“2” (place 2) gives {', '.join(parts)}, and less to each of the others."
    assert viewer.locator("[aria-live]").inner_text() == said


def test_in_vietnamese_words_and_commas_are_vietnamese(page: Any, result: Any) -> None:
    viewer = added(page(), result("reading.every_head").values, "vi")
    assert viewer.locator("legend").all_inner_texts()[:2] == ["Lớp", "Head"]
    assert viewer.locator("dd").last.inner_text() == "2,08"
    assert "dành 0," in viewer.locator("[aria-live]").inner_text()


def test_another_widget_can_bring_other_data_as_often_as_it_likes(page: Any, result: Any) -> None:
    opened = page()
    four, eight = (result(name).values for name in ("attention.where_four_tokens_look", "reading.every_head"))
    viewer = added(opened, eight)
    viewer.get_by_role("radio", name="3", exact=True).last.check(force=True)  # head 3
    viewer.locator(".viewer-asking label").nth(7).click()
    opened.evaluate("data => window.viewer.update(data)", four)
    assert shown(viewer) == expected(four, 0, 0, 3)
    assert viewer.locator("[aria-live]").get_attribute("aria-live") == "off"  # who brings data says so itself
    opened.evaluate("data => window.viewer.update(data)", eight)
    assert shown(viewer) == expected(eight, 0, 0, 3)
    one = {"tokens": ["7"], "weights": [[[[1.0]]]], "entropy": [[[0.0]]], "mean_entropy": [[0.0]], "uniform": 0.0}
    opened.evaluate("data => window.viewer.update(data)", one)
    assert shown(viewer) == expected(one, 0, 0, 0)


@pytest.mark.parametrize("chapter", ["attention", "reading"])
def test_it_takes_the_place_of_the_figure_and_print_has_the_figure(page: Any, chapter: str) -> None:
    opened = page()
    viewer = alive(opened, chapter)
    figure = opened.locator("figure.replaced")
    assert figure.count() == 1
    assert viewer.locator(".viewer-caption").inner_text() == figure.locator("figcaption").text_content()
    assert not figure.is_visible()
    opened.emulate_media(media="print")
    assert figure.is_visible()
    assert not viewer.is_visible()


@pytest.mark.parametrize("chapter", ["attention", "reading"])
def test_without_javascript_the_figure_is_there_and_a_sentence_says_what_is_missing(page: Any, chapter: str) -> None:
    opened = page(java_script_enabled=False)
    opened.goto(f"/{chapter}/")
    place = opened.locator('[data-widget="attention-viewer"]')
    assert place.inner_text() == "Here stands something to play with. It needs JavaScript."
    before = opened.locator('figure.drawn:has(~ [data-widget="attention-viewer"])').last
    assert before.is_visible()


@pytest.mark.parametrize("chapter", ["attention", "reading"])
def test_it_works_from_the_disk(page: Any, site: Path, chapter: str) -> None:
    opened = page()
    index = (site / "search/search_index.json").read_text("utf-8")
    # Only an offline build has the search for the disk.
    opened.route("**/search_index.js", lambda route: route.fulfill(body=f"var __index = {index}"))
    opened.goto((site / chapter / "index.html").as_uri())
    opened.locator('[data-widget="attention-viewer"]').scroll_into_view_if_needed()
    opened.locator('[data-widget="attention-viewer"].widget--alive .viewer-asking label').nth(2).click()
    assert opened.locator("path.chosen").count() in (4, 8)


MEASURED = """
(viewer) => {
  const boxes = (selector) => [...viewer.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
  const inside = [...viewer.querySelectorAll("*")].filter((one) => !one.closest("legend, td > span"));
  return {
    beyond: Math.max(...inside.map((one) => one.getBoundingClientRect().right)) - viewer.getBoundingClientRect().right,
    targets: boxes("select, .controls fieldset label, .viewer-asking label").flatMap((box) => [box.width, box.height]),
    rows: boxes("tbody tr").map(({ height }) => height),
  };
}
"""


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_all_of_it_fits_and_what_is_pressed_is_large_enough(
    page: Any, small: Any, result: Any, width: int
) -> None:
    opened = page(width, has_touch=True)
    for data in result("attention.where_four_tokens_look").values, result("reading.every_head").values, small:
        measured = added(opened, data).evaluate(MEASURED)
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        assert measured["beyond"] <= 1
        assert min(measured["targets"]) >= 44
        assert min(measured["rows"]) >= 43


@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed: npm ci in benchmarks/site")
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_axe_finds_nothing(page: Any, small: Any, result: Any, width: int, scheme: str) -> None:
    opened = page(width, scheme, bypass_csp=True, reduced_motion="reduce")  # nothing half faded in
    wrong = "async () => (await axe.run('.widget', { resultTypes: ['violations'] })).violations.map(({ id }) => id)"
    viewer = added(opened, small)
    opened.evaluate(ADDED, [result("reading.every_head").values, "en"])
    viewer.last.locator("tbody tr").nth(3).locator("td").nth(1).focus()
    opened.evaluate(AXE.read_text("utf-8"))
    assert opened.evaluate(wrong) == []


def test_whoever_wants_less_motion_gets_none(page: Any) -> None:
    moves = "one => getComputedStyle(one.querySelector('path')).transitionDuration"
    assert alive(page(), "attention").evaluate(moves) != "0s"
    assert alive(page(reduced_motion="reduce"), "attention").evaluate(moves) == "0s"


def test_the_script_is_small(site: Path) -> None:
    script = (site / "assets/scripts/widgets/attention-viewer.js").read_bytes()
    assert len(gzip.compress(script)) < 8_000
    for values in "attention.where_four_tokens_look", "reading.every_head":
        assert len(gzip.compress((site / f"values/{values}.js").read_bytes())) < 8_000
