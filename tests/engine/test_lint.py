"""executed/lint.py: a number typed into prose is found, on its line; what may hold digits is left in peace."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executed.lint import naked_numbers


def found(source: str) -> list[tuple[int, str]]:
    """The naked numbers of a chapter, each with its line."""
    problems = naked_numbers(source, "docs/page.md")
    assert all(problem.path == "docs/page.md" for problem in problems)
    return [(problem.line, problem.message.split(" is typed")[0].removeprefix("the number ")) for problem in problems]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("12 heads", "12"),
        ("**3** heads", "3"),
        ("*3*rd", "3"),
        ("~~3~~", "3"),
        ("2,048 tokens", "2,048"),
        ("2048 tokens", "2048"),
        ("3x faster", "3"),
        ("a 12-head model", "12"),
        ("50 % of", "50 %"),
        ("50% of", "50%"),
        ("12,5 % của", "12,5 %"),
        ("T = 256", "256"),
        ("T=256", "256"),
        ("1e-3", "1e-3"),
        ("-3 and", "-3"),
        ("−3 and", "−3"),
        ("0.687", "0.687"),
        ("1\u202f000", "1\u202f000"),
        ("٣ heads", "٣"),
        ("３ heads", "３"),
        ("𝟛 heads", "𝟛"),
        ("² and", "²"),
        ("½ of", "½"),
        ("① first", "①"),
        ("Ⅻ", "Ⅻ"),
        ("[3 heads](page.md)", "3"),
        ('[heads](page.md "3 heads")', "3"),
        ("![3 heads](a.png)", "3"),
        ('![heads](a4.png "3 heads")', "3"),
        ("\\3 heads", "3"),
        ("&#51; heads", "3"),
        ("2000 steps", "2000"),
        ("2017 % of", "2017 %"),
        ("1950 steps", "1950"),
        ("2017 bước", "2017"),
        ("1984 MB", "1984"),
        ("$0.92$", "0.92"),
        ("$\\approx 0{,}92$", "0,92"),
        ("$98.8\\%$", "98.8"),
        ("$50\\,\\%$ and $=50\\%$", "50"),
        ("$$-0.92$$", "0.92"),
        ("$8.9\\times 10^{-8}$", "8.9"),
        ("`0.92`", "0.92"),
        ("`98.8%`", "98.8"),
        ("<code>0.92</code>", "0.92"),
        ("a (3) b", "3"),
        ("Section 3", "3"),
        ("costs $ 5 or so", "5"),
        ("<b>3</b> heads", "3"),
        ('<img alt="3 heads" src="4.png">', "3"),
        ("{{ a.b.c }}3", "3"),
        ("it is 3.", "3"),
    ],
)
def test_a_number_in_prose_is_found(written: str, number: str) -> None:
    assert found(written) == [(1, number)]
    assert found(f"# Title\n\nText\nand {written}\nmore") == [(4, number)]


@pytest.mark.parametrize(
    "source",
    [
        "GPT-2, float32, H100, A100-80GB, x86-64, d_k2, v2.13.0, BERT-base, n², W19-4828",
        "12 March 2024, March 2024, March 5, 2024 and 2024-03-05",
        "Ngày 12 tháng 3 năm 2024, tháng 3 năm 2024 và ngày 5 tháng 6.",
        "In 2017, since 1997, from 2017-2024 (2021).",
        "In 2017 researchers tried it, and since 1997 others did.",
        "$(768/512)^2 = 2.25$, $0.5^{99}$, $d = 0.5$, $3/8$, $[0.5, 1]$ and `x * 0.5`, `lr=0.5`, `0.5, 1`",
        "<pre><code>0.92</code></pre>",
        "# 3 heads",
        "3 heads\n=======",
        "`3` and `` ` 3 ``",
        "```\n3\n```",
        "~~~~ { .python }\n3\n```\n4\n~~~~",
        "$3$ and $d_k = 64$",
        "$$\n3\n$$",
        "---\ntitle: 3 heads\n---\n\nText.",
        "Text <!-- 3 --> text",
        "<!--\n3\n-->",
        "3 <!-- constant: the paper's own -->",
        "1. one\n2. two\n\n    3. three",
        "<https://x.y/3.14> and https://arxiv.org/abs/1706.03762, [x](http://y/3 'z') www.x3.org/4",
        "[x]: http://y/3\n\n[x]",
        "It had 3 heads [@key].",
        "It had 3 heads [@key; @other], and 4.",
        "It was\n3 heads\nlong [@key].",
        "As Doe et al. (2017) say in Fig. 2, p. 3, it is 28.4 [@key].",
        '!!! note "3 heads"\n    Text.',
        '???+ question "3 heads?"\n    Text.\n\n    !!! note "4"\n        Text.',
        '=== "3 heads"\n\n    Text.',
        "Text[^1].\n\n[^1]: Text.",
        '![x](y.png){ width=300 } and text {: #a3 .b4 data-x="5" }',
        "<code>3</code> <kbd>4</kbd> <pre>5</pre>",
        '<div class="a3" style="width: 4px">\ntext\n<svg width="3"><text>4</text></svg>\n</div>',
        "{{ a.b.c[3] | num(2) }} and {{ a['4'] }}",
        '{{ figure("a.b3", number=2, alt="{{ a.b.c[3] | num(2) }} of GPT-2") }}',
    ],
)
def test_digits_of_names_dates_headings_code_mathematics_and_citing_sentences_are_left_alone(source: str) -> None:
    assert found(source) == []


def test_a_sentence_that_cites_excuses_neither_its_neighbours_nor_what_follows() -> None:
    assert found("It was 3. See [@key]. It was 4.") == [(1, "3"), (1, "4")]
    assert found("It took 3.5. 12 of them [@key].") == [(1, "3.5")]
    assert found("It was 3. `code` is from [@key].") == [(1, "3")]
    assert found("It was 3. {{ a.b.c }} is from [@key].") == [(1, "3")]
    assert found("It was 3.[^1] See [@key].\n\n[^1]: x") == [(1, "3")]
    assert found("It was 3! softmax is from [@key].") == [(1, "3")]
    assert found('It was "3." $x$ is from [@key].') == [(1, "3")]
    assert found("**It was 3.** See [@key].") == [(1, "3")]
    assert found("It was 3\n\nSee [@key].") == [(1, "3")]
    assert found("- It was 3\n- See [@key]") == [(1, "3")]
    assert found("`[@key]` and 3") == [(1, "3")]


def test_a_reason_excuses_its_own_sentence_on_its_own_line_only() -> None:
    assert found("3 <!-- constant: a --> and 4\n5") == [(2, "5")]
    assert found("It has 3. It has 4. <!-- constant: a --> It has 5.") == [(1, "3"), (1, "5")]
    assert found("It has 3.<!-- constant: a --> It has 4 <!-- constant: b -->. It has 5.") == [(1, "5")]
    assert found("| 3 | 4 | <!-- constant: a -->\n| - | - |\n| 5 | 6 <!-- constant: b --> |\n| 7 | x |") == [(4, "7")]
    assert found("- It has 3 <!-- constant: a -->\n- It has 4") == [(2, "4")]
    assert found("3 <!-- constant: -->") == [(1, "3")]
    assert found("It has 3\ue001.") == [(1, "3")]
    assert found("3 <!-- a note -->") == [(1, "3")]


def test_tables_lists_quotations_and_footnotes_are_read_with_their_lines() -> None:
    assert found("| a | 3 |\n| --- | --- |\n| 4 | x |\n| y | 5 |") == [(1, "3"), (3, "4"), (4, "5")]
    assert found("- a\n- 3\n    - b 4\n\n1. 5 c") == [(2, "3"), (3, "4"), (5, "5")]
    assert found("> a\n> 3") == [(2, "3")]
    assert found("a[^1]\n\n[^1]: b\n    3\n\n    4") == [(4, "3"), (6, "4")]


def test_admonitions_and_tabs_are_read_four_spaces_in_and_deeper() -> None:
    source = (
        '!!! note "1"\n    In 2 words.\n\n    - 3 in a list\n\n    ??? question "4"\n        5 deep\n\n'
        "    | a | b |\n    | - | - |\n    | 6 | x |\n\n    ```\n    7\n    ```\n\n"
        '=== "8"\n\n    9 in a tab\n\n    <b>10</b>\n'
    )
    assert found(source) == [(2, "2"), (4, "3"), (7, "5"), (11, "6"), (19, "9"), (21, "10")]


def test_raw_html_is_read_with_its_texts_for_those_who_cannot_see() -> None:
    source = '<figure>\n<img\n  alt="3 heads" src="4.png">\n<figcaption>5</figcaption>\n'
    source += "<!-- 6\n-->\n<code>7\n</code>\n8\n</figure>"
    assert found(source) == [(2, "3"), (4, "5"), (9, "8")]


def test_alt_texts_and_captions_are_read_with_their_lines() -> None:
    source = "{{ figure('a.b', alt='2 cats',\n  caption=[\"{{ a.b.c[3] }} of \"\n  \"4\", 'five 5']) }}"
    assert found(source) == [(1, "2"), (3, "4"), (3, "5")]
    assert found('{{ example("a.b", alt="2 cats") }} <!-- constant: why -->') == []
    assert found('{{ figure("a.b",\n  alt="2 cats") }} <!-- constant: why -->') == []
    assert found('{{ figure("a.b", alt="2 cats <!-- constant: why -->. 3 dogs.", caption="4") }}') == [
        (1, "3"),
        (1, "4"),
    ]


def test_a_number_is_found_whatever_a_directive_before_it_spans() -> None:
    assert found('{{ figure("a.b",\n   alt="x",\n) }}\n\n3') == [(5, "3")]


def test_a_message_says_what_to_do() -> None:
    [problem] = naked_numbers("It has 12 heads.", "docs/page.md")
    assert str(problem).startswith("docs/page.md:1: the number 12 is typed into prose: bind it")
    assert "cite its source" in problem.message
    assert "<!-- constant: why -->" in problem.message


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.sampled_from(["](", "[^1]", "!!! ", "<b>", "{{ ", " }}", "<!--", "-->", "    ", "- "])
        | st.sampled_from('`$3[)"<&|\\\n ')
    )
)
def test_any_chapter_can_be_read(pieces: list[str]) -> None:
    lines = "".join(pieces).count("\n") + 1
    assert all(1 <= line <= lines for line, _ in found("".join(pieces)))


@pytest.mark.parametrize(
    "source",
    [
        *("p. " * 20_000, "x. " * 20_000, "3 " * 5000, "1," * 50_000),
        *("[@a;" * 5000, "{" * 5000, "{ .a" * 5000, "x" * 100_000),
    ],
    ids=lambda source: repr(source[:6]),
)
def test_no_chapter_hangs_the_lint(source: str) -> None:
    begun = time.perf_counter()
    naked_numbers(source, "docs/page.md")
    assert time.perf_counter() - begun < 30  # a search that backtracks would take hours
