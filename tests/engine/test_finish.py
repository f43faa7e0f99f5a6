"""executed/finish.py: pages as a validator, a screen reader and a slow phone want them."""

from executed.finish import finished, with_proportions

SVG = '<svg width="9pt" viewBox="0 0 90.5 30" version="1.1"><text style="fill: red">a > b</text></svg>'


def test_each_block_of_code_says_how_many_lines_it_has() -> None:
    page = (
        '<pre><span></span><code>one\n<span class="n">two</span>\n\nfour\n</code></pre><pre id="a"><code>1</code></pre>'
    )
    lines = finished(page)
    assert '<pre><span></span><code style="--lines:4">one' in lines
    assert '<pre id="a"><code style="--lines:1">1</code></pre>' in lines


def test_code_in_a_sentence_and_code_with_a_style_are_left_alone() -> None:
    page = '<p><code>x</code></p><pre><code class="a">x</code></pre>'
    assert finished(page) == page


def test_a_long_table_says_how_many_rows_it_has_and_a_short_one_nothing() -> None:
    short, long = ("<table>" + "<tr><td>1</td></tr>\n" * rows + "</table>" for rows in (50, 51))
    told = long.replace("<table>", '<table style="--rows:51">')
    assert finished(f"{short}<p>a</p>{long}") == f"{short}<p>a</p>{told}"


def test_a_figure_keeps_its_shape_and_its_style() -> None:
    assert with_proportions(SVG).startswith('<svg style="aspect-ratio: 90.5 / 30" width="9pt"')
    styled = SVG.replace("<svg", '<svg style="stroke-linejoin: round"')
    assert with_proportions(styled).startswith(
        '<svg style="aspect-ratio: 90.5 / 30; stroke-linejoin: round" width="9pt"'
    )
    assert with_proportions(styled).endswith('<text style="fill: red">a > b</text></svg>')


def test_a_figure_without_a_view_box_stays_as_it_is() -> None:
    assert with_proportions('<svg width="9"><g></g></svg>') == '<svg width="9"><g></g></svg>'


def test_the_search_is_a_dialog_with_the_name_that_its_field_has() -> None:
    page = '<div class="md-search" role="dialog"><input name="query" aria-label="Tìm kiếm"></div>'
    assert '<div class="md-search" role="dialog" aria-label="Tìm kiếm">' in finished(page)


def test_what_is_copied_is_said_aloud() -> None:
    page = '<div class="md-dialog" data-md-component="dialog"></div>'
    assert finished(page) == '<div class="md-dialog" role="status" data-md-component="dialog"></div>'


def test_the_form_of_colours_is_left_to_the_book_where_it_has_a_script_for_it() -> None:
    form = '<form data-md-component="palette"></form>'
    ours = '<script src="../assets/scripts/palette.js"></script>'
    assert finished(form) == form
    assert finished(form + ours) == f"<form data-palette></form>{ours}"


def test_the_toggles_of_the_theme_are_valid_and_still_not_remembered_by_a_browser() -> None:
    toggle = '<input class="md-toggle" type="checkbox" id="__drawer" autocomplete="off">'
    page = finished(f'{toggle}<label class="md-overlay" for="__drawer"></label><label tabindex="">a</label>')
    assert '<input class="md-toggle" type="checkbox" id="__drawer" form="__toggles">' in page
    assert page.count('<form id="__toggles" autocomplete="off" hidden></form>') == 1
    assert "tabindex" not in page
