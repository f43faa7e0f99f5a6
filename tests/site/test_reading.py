"""docs/assets/scripts/reading.js and book.css: progress is remembered on the device, and the pages are fit to read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Open = Callable[..., Any]
NAMES = ("why-attention", "attention", "multi-head", "masks", "positions", "sorting", "reading", "cost", "phobert",
         "in-practice")  # fmt: skip


def read(page: Any, address: str) -> None:
    """Open a chapter, and read it to its end."""
    page.goto(address)
    page.locator("article > :last-child").scroll_into_view_if_needed()
    page.locator(".md-nav--primary .md-nav__link--active .read-mark").first.wait_for(state="attached")


def marked(page: Any) -> list[str]:
    """The chapters of the home page's list that carry the mark."""
    return [link.text_content() for link in page.locator("article table td:first-child > a:has(.read-mark)").all()]


def test_a_chapter_is_read_when_its_end_was_on_screen_and_not_before(page: Open) -> None:
    reader = page()
    reader.goto("/why-attention/")
    reader.goto("/")
    assert marked(reader) == []
    read(reader, "/why-attention/")
    reader.goto("/")
    assert marked(reader) == ["Why attention (read)"]
    assert reader.locator(".progress").inner_text().startswith(f"1 of {len(NAMES)} chapters read.")
    link = reader.get_by_label("Navigation", exact=True).get_by_role("link", name="Why attention (read)")
    assert link.is_visible()  # in words too, for those who do not see the mark


def test_the_home_page_goes_on_where_the_reader_stopped(page: Open) -> None:
    reader = page()
    reader.goto("/")
    assert reader.locator(".continue, .progress").count() == 0
    reader.goto("/masks/")
    reader.locator("#the-guard").evaluate("heading => heading.scrollIntoView()")
    reader.goto("/")
    go_on = reader.get_by_role("link", name="Continue: Masks")
    assert go_on.get_attribute("href").endswith("/masks/#the-guard")
    read(reader, "/masks/")
    reader.goto("/")
    assert reader.locator(".continue").inner_text() == "Continue: Positions"


def test_a_reader_who_has_read_all_of_it_is_offered_nothing_more(page: Open) -> None:
    reader = page()
    reader.goto("/")
    reader.evaluate("names => localStorage.setItem('/progress', JSON.stringify({read: names}))", NAMES)
    reader.reload()
    assert len(marked(reader)) == len(NAMES)
    assert reader.locator(".continue").count() == 0
    assert reader.get_by_role("link", name="Start with attention").is_visible()


def test_what_was_read_can_be_forgotten(page: Open) -> None:
    reader = page()
    read(reader, "/masks/")
    reader.goto("/")
    reader.get_by_role("button", name="Forget it").press("Enter")
    assert reader.locator(".read-mark, .progress, .continue").count() == 0
    assert reader.evaluate("localStorage.getItem('/progress')") is None
    assert reader.evaluate("document.activeElement.innerText") == "Start with attention"


def test_storage_that_holds_something_else_does_no_harm(page: Open) -> None:
    reader = page()
    reader.goto("/")
    for kept in ("no json", "null", '{"read": 7, "last": ["<b>"]}'):
        reader.evaluate("kept => localStorage.setItem('/progress', kept)", kept)
        reader.reload()
        assert marked(reader) == []
    read(reader, "/masks/")


def test_without_storage_the_pages_are_as_they_are(page: Open) -> None:
    reader = page()
    for method in ("getItem", "setItem"):  # for us alone: the theme complains aloud
        reader.add_init_script(
            f"""const {method} = Storage.prototype.{method};
            Storage.prototype.{method} = function (key, ...rest) {{
                if (key.endsWith("progress")) throw new DOMException("denied", "SecurityError");
                return {method}.call(this, key, ...rest);
            }}"""
        )
    reader.goto("/why-attention/")
    reader.locator("article > :last-child").scroll_into_view_if_needed()
    reader.goto("/")
    assert reader.locator(".read-mark, .progress, .continue").count() == 0


def test_progress_is_remembered_for_pages_opened_from_the_disk_too(browser: Any, site: Path) -> None:
    context = browser.new_context()
    reader = context.new_page()
    read(reader, (site / "masks/index.html").as_uri())
    reader.goto((site / "index.html").as_uri())
    assert marked(reader) == ["Masks (read)"]
    context.close()


def test_the_home_page_shows_what_this_is_in_one_screen(page: Open) -> None:
    reader = page(1440)
    reader.goto("/")
    reader.locator(".widget--alive").wait_for()
    for part in ("h1", ".lead", ".start .md-button", ".widget--alive", ".typed"):
        box = reader.locator(f"article {part}").first.bounding_box()
        assert box["y"] + box["height"] <= 900, part
    phone = page(390)
    phone.goto("/")
    phone.locator(".widget--alive").wait_for()
    assert phone.locator(".start").bounding_box()["y"] < 844 / 2 + 100
    assert phone.locator(".widget--alive").bounding_box()["y"] < 700


def test_without_javascript_the_home_page_has_the_figure(page: Open) -> None:
    reader = page(java_script_enabled=False)
    reader.goto("/")
    assert reader.locator(".start + figure svg").is_visible()


def test_nothing_is_wider_than_a_small_screen(page: Open) -> None:
    """So nothing is at twice the size on a larger one either."""
    reader = page(320)
    for name in ("", "attention/", "sorting/", "reproduction/", "glossary/"):
        reader.goto(f"/{name}")
        over = reader.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, name


def test_the_first_tab_leads_past_the_navigation_and_each_stop_has_an_outline(page: Open) -> None:
    reader = page()
    reader.goto("/masks/")
    reader.keyboard.press("Tab")
    assert reader.evaluate("document.activeElement.innerText").strip() == "Skip to content"
    for _ in range(12):
        reader.keyboard.press("Tab")
        style = "({ outlineStyle, outlineWidth }) => outlineStyle != 'none' && outlineWidth != '0px'"
        focused = "getComputedStyle(document.activeElement)"
        if not reader.evaluate("document.activeElement.matches('.md-search__input, body, label, .md-toggle')"):
            assert reader.evaluate(f"({style})({focused})"), reader.evaluate("document.activeElement.outerHTML")


def test_print_opens_the_folds_and_leaves_out_what_paper_cannot_do(page: Open) -> None:
    reader = page()
    reader.goto("/attention/")
    closed = reader.locator("article details:not([open])").count()
    reader.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert reader.locator("article details:not([open])").count() == 0
    reader.emulate_media(media="print")
    for gone in (".md-header", ".md-sidebar--primary", ".md-footer", ".widget", "details.made", ".headerlink"):
        assert not any(one.is_visible() for one in reader.locator(gone).all()), gone
    assert reader.locator(".replaced, figure.drawn").first.is_visible()
    reader.evaluate("dispatchEvent(new Event('afterprint'))")
    assert reader.locator("article details:not([open])").count() == closed


def test_the_page_lies_still_for_those_who_ask_for_it(page: Open) -> None:
    reader = page(reduced_motion="reduce")
    reader.goto("/")
    assert reader.locator("article .md-button").first.evaluate("one => getComputedStyle(one).transition") in (
        "none", "none 0s", "none 0s ease 0s",
    )  # fmt: skip


def test_colours_are_the_systems_until_a_reader_chooses_and_stay_chosen(page: Open) -> None:
    reader = page(scheme="dark")
    reader.goto("/attention/")

    def shows(scheme: str, primary: str) -> None:
        reader.locator(f"body[data-md-color-scheme={scheme}][data-md-color-primary={primary}]").wait_for()
        assert button.count() == 1

    button = reader.locator("label[for^=__palette]:not([hidden])")
    shows("slate", "black")
    reader.emulate_media(color_scheme="light")
    shows("default", "white")
    button.click()  # light
    button.click()  # dark
    shows("slate", "black")
    reader.reload()
    shows("slate", "black")
    reader.locator("#__palette_2").focus()
    reader.keyboard.press("Enter")  # the system's again
    shows("default", "white")
    reader.emulate_media(color_scheme="dark")
    shows("slate", "black")
    reader.locator("meta[name=color-scheme][content=dark]").wait_for(state="attached")
    assert reader.evaluate("document.querySelector('meta[name=theme-color]').content").startswith("rgb")


def test_vietnamese_words_in_an_english_sentence_are_read_aloud_as_such(page: Open) -> None:
    reader = page()
    reader.goto("/attention/")
    assert reader.locator("em[lang=vi]").first.inner_text() == "đường"
    assert reader.locator("em:not([lang])").first.inner_text() == "road"


def test_on_a_phone_published_and_ours_stand_side_by_side_and_no_table_scrolls(page: Open) -> None:
    reader = page(390)
    reader.goto("/reproduction/")
    row = reader.locator("#the-figures-of-the-article-and-ours ~ .md-typeset__scrollwrap tbody tr").nth(1)
    published, ours = (row.locator("td").nth(number).bounding_box() for number in (2, 3))
    assert published["y"] == ours["y"]
    assert ours["x"] + ours["width"] <= 390
    tables = reader.locator(".md-typeset__scrollwrap").evaluate_all(
        "all => all.map(one => one.scrollWidth - one.clientWidth)"
    )
    assert len(tables) == 2
    assert max(tables) <= 0


def test_on_a_phone_the_names_of_the_chapters_before_and_after_are_whole(page: Open) -> None:
    reader = page(390)
    for name in NAMES:
        reader.goto(f"/{name}/")
        for title in reader.locator(".md-footer__title .md-ellipsis").all():
            assert title.evaluate("title => title.scrollWidth <= title.clientWidth"), name
