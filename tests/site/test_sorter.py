"""The trained sorter in docs/sorting.md, on the reader's own digits."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from snippets.sorting import Sorter, sample

AXE = Path(__file__).parents[2] / "benchmarks/site/node_modules/axe-core/axe.min.js"
RUN = """async ([example, inputs, blind]) => {
    await book.load("assets/scripts/transformer.js");
    const model = book.transformer(await book.values(example));
    return inputs.map((digits) => model.run(digits, blind));
}"""
Open = Callable[..., Any]


def widget(page: Any, address: str = "/sorting/") -> Any:
    page.goto(address)
    found = page.locator('.widget[data-widget="sorter"]')
    found.scroll_into_view_if_needed()
    return found


def loaded(page: Any, address: str = "/sorting/") -> Any:
    found = widget(page, address)
    found.get_by_role("button", name="Load the model").click()
    found.get_by_role("textbox").wait_for()
    return found


def cells(found: Any, row: str) -> list[str]:
    texts: list[str] = found.locator(f"tr.sorter-{row} td").all_inner_texts()
    return [text.removesuffix("✗") for text in texts]


def test_the_scores_and_the_weights_are_pytorchs(page: Open, result: Any) -> None:
    chapter = page()
    chapter.goto("/sorting/")
    for example in ("sorting.to_take_along", "sorting.blind_to_take_along"):
        values = result(example).values
        stored = torch.frombuffer(bytearray(base64.b64decode(values["scores"])), dtype=torch.float32)
        runs = chapter.evaluate(RUN, [example, values["inputs"], False])
        scores = torch.tensor([row for run in runs for row in run["scores"]]).flatten()
        assert len(scores) == 10 * sum(map(len, values["inputs"]))
        assert (scores - stored).abs().max() < 1e-4

    torch.manual_seed(2)
    digits = sample(30)[0]
    model: Sorter = result("sorting.better_recipe").returned()["models"][0]
    for blind in (False, True):
        if blind:
            model.get_buffer("places").zero_()
        runs = chapter.evaluate(RUN, ["sorting.to_take_along", digits.tolist(), blind])
        with torch.no_grad():
            scores, weights = model(digits)
        assert (torch.tensor([run["scores"] for run in runs]) - scores).abs().max() < 1e-4
        ours = torch.tensor([run["weights"] for run in runs])  # (batch, layers, heads, T, T)
        assert (ours - torch.stack(weights, dim=1)).abs().max() < 1e-5


def test_a_model_comes_when_it_is_asked_for_and_the_button_says_how_large_it_is(page: Open, site: Path) -> None:
    chapter = page()
    asked: list[str] = []
    chapter.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    found = widget(chapter)
    size = (site / "values/sorting.to_take_along.js").stat().st_size
    button = found.get_by_role("button", name=f"Load the model ({size / 1000:.0f} kB)")
    button.wait_for()
    assert not [name for name in asked if "take_along" in name]
    button.click()
    found.get_by_role("textbox").wait_for()
    assert {name for name in asked if "take_along" in name} == {"sorting.to_take_along.js"}


def test_it_sorts_what_is_typed_and_shows_how_sure_it_is_and_where_it_looks(page: Open, result: Any) -> None:
    found = loaded(page(390))
    line = found.get_by_text("Checked in this browser").inner_text()
    assert f"on {len(result('sorting.to_take_along').values['inputs'])} stored inputs" in line
    assert int(line.rpartition("−")[2].strip().strip(".")) >= 5  # at most so many 1e-5

    viewer, box = found.locator(".viewer"), found.get_by_role("textbox")
    before = viewer.inner_text()
    box.fill("92837465")
    assert cells(found, "reads") == list("92837465")
    assert cells(found, "writes") == cells(found, "belongs") == list("23456789")
    assert found.locator(".sorter-mark").count() == 0
    sure = [int(cell) for cell in found.locator("td.sorter-right").all_inner_texts()]
    assert len(sure) == 8
    assert min(sure) > 50
    assert viewer.inner_text() != before
    found.locator('[role="status"]', has_text="It writes 2 3 4 5 6 7 8 9. All right.").wait_for(state="attached")

    found.get_by_role("button", name="Shuffle").click()
    assert sorted(box.input_value()) == list("23456789")
    box.fill("1")
    found.get_by_role("button", name="Random digits").click()
    assert len(cells(found, "reads")) == len(box.input_value()) == 8


def test_without_positions_it_fails_and_says_where(page: Open) -> None:
    found = loaded(page())
    found.get_by_label("set to zero in this model").check()
    written, right = cells(found, "writes"), cells(found, "belongs")
    wrong = [place for place in range(8) if written[place] != right[place]]
    assert wrong
    assert found.get_by_role("img", name="wrong").count() == len(wrong)
    places = found.locator(".sorter-says").inner_text().rpartition("Wrong in places ")[2]
    assert [int(place) for place in places.replace("and", "").strip(".").split(",")] == [place + 1 for place in wrong]
    found.get_by_label("as trained").check()
    assert cells(found, "writes") == right

    found.get_by_label("another model, trained without").check()
    found.get_by_text("with no positions from the first step on").wait_for()
    found.get_by_role("textbox").fill("11111111")
    rows = found.locator(".sorter-share").all()
    assert min(int(text) for text in rows[1].locator("td").all_inner_texts()) > 90
    found.get_by_role("textbox").fill("12345678")
    shares = [cell for row in rows for cell in row.locator("td").all_inner_texts()]
    assert max(int(share or 0) for share in shares) < 40


def test_fewer_digits_run_on_the_first_places_and_the_page_says_that_this_was_never_taught(page: Open) -> None:
    chapter = page(320)
    found = loaded(chapter)
    assert chapter.evaluate("document.documentElement.scrollWidth") <= 320
    note = found.get_by_text("nothing has taught the model to sort that")
    assert not note.is_visible()
    box = found.get_by_role("textbox")
    box.fill("3x1")
    assert (box.input_value(), cells(found, "reads")) == ("31", ["3", "1"])
    assert note.is_visible()
    assert found.get_by_text("Only digits can be sorted here. It writes").first.is_visible()
    box.fill("")
    assert found.locator(".sorter-says").inner_text() == "Type a digit."
    assert not found.locator(".sorter-table").is_visible()
    assert not note.is_visible()


def test_the_keyboard_is_enough(page: Open) -> None:
    chapter = page()
    found = widget(chapter)
    found.get_by_role("button", name="Load the model").focus()
    chapter.keyboard.press("Enter")
    found.get_by_role("textbox").wait_for()
    chapter.keyboard.press("Tab")
    assert found.get_by_role("textbox").evaluate("one => one === document.activeElement")
    chapter.keyboard.press("Control+A")
    chapter.keyboard.type("40")
    assert cells(found, "reads") == ["4", "0"]
    for _ in range(3):
        chapter.keyboard.press("Tab")
    chapter.keyboard.press("ArrowDown")
    assert found.get_by_label("set to zero in this model").is_checked()


def test_a_model_that_does_not_arrive_can_be_asked_for_again(page: Open, heard: list[str]) -> None:
    chapter = page(service_workers="block")
    found = widget(chapter)
    chapter.route("**/values/sorting.*to_take_along.js", lambda route: route.abort())
    found.get_by_role("button", name="Load the model").click()
    found.get_by_text("could not be loaded").wait_for()
    chapter.unroute_all()
    found.get_by_role("button", name="Load the model").click()
    found.get_by_role("textbox").wait_for()
    chapter.route("**/values/sorting.*to_take_along.js", lambda route: route.abort())
    found.locator('input[value="without"]').click()
    found.locator(".sorter-says", has_text="could not be loaded").wait_for()
    assert found.get_by_label("as trained").is_checked()
    assert cells(found, "writes") == cells(found, "belongs")
    heard.clear()


def test_it_works_from_the_disk(page: Open, site: Path, heard: list[str]) -> None:
    found = loaded(page(), (site / "sorting/index.html").as_uri())
    found.get_by_role("textbox").fill("31415926")
    assert cells(found, "writes") == list("11234569")
    found.locator(".viewer").wait_for()
    assert [one for one in heard if "values" in one or "widgets" in one] == []
    heard.clear()  # the search of such a build is for a server


@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed: npm ci --prefix benchmarks/site")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (820, "dark")])
def test_axe_finds_nothing(page: Open, width: int, scheme: str) -> None:
    chapter = page(width, scheme)
    found = loaded(chapter)
    found.get_by_role("textbox").fill("5310")
    found.locator('input[value="zeroed"]').check()
    chapter.evaluate(AXE.read_text("utf-8"))
    wrong = chapter.evaluate("axe.run('.widget[data-widget=sorter]').then((found) => found.violations)")
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in wrong] == []
