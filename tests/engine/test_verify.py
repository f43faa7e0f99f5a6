"""executed/verify.py: what is stored against another run of the same code."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executed.book import Book
from executed.runner import run
from executed.store import Result, Store
from executed.verify import Verdict, differences, verify

WriteBook = Callable[..., Path]
RESULT = Result("a.one", "x 1", ["<svg><path d='M 1 2'/></svg>"], {}, 0.1, 1, 0.0, "f", {}, {}, {}, "m")


def verdicts(root: Path, *names: str) -> dict[str, Verdict]:
    book = Book.read(root)
    run(book, Store(root), book.examples)
    return {one.name: one for one in verify(book, Store(root), list(names or book.examples))}


def test_a_book_that_says_the_same_again_has_nothing_to_report(write_book: WriteBook) -> None:
    root = write_book(
        {
            "a": """
            import random
            from executed import example

            @example
            def one():
                random.seed(0)
                print(random.random())
                return {"x": [random.random()]}

            @example
            def two(one):
                print(one["x"])
            """
        }
    )
    assert [str(one) for one in verdicts(root).values() if one.differences] == []


def test_what_differs_is_named_with_the_likely_reason(
    write_book: WriteBook, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    root = write_book(
        {
            "a": f"""
            import os, random
            from executed import example

            def times(name):
                file = os.path.join({str(outside)!r}, name)
                with open(file, "a") as counter:
                    counter.write("x")
                return os.path.getsize(file)

            @example
            def unseeded():
                print("drawn")
                return {{"x": random.random()}}

            @example
            def follows(unseeded):
                return {{"y": unseeded["x"] * 2}}

            @example
            def once():
                print("first" if times("once") == 1 else "later")

            @example(varies=True)
            def timing():
                print(f"{{random.random():.3f}} s")
                return {{"seconds": random.random()}}

            @example
            def made_of_it(timing):
                print(f"twice {{2 * timing['seconds']:.3f}} s")

            @example
            def fails():
                if times("fails") > 1:
                    raise ValueError("boom")

            @example
            def steady():
                print(1)
            """
        }
    )
    found = verdicts(root)
    differing = {name.removeprefix("a."): one for name, one in found.items() if one.differences}
    assert differing.keys() == {"unseeded", "follows", "once", "fails"}
    assert "generator without a seed" in differing["unseeded"].why
    assert differing["unseeded"].differences[0].startswith("the value x was 0.")
    assert differing["follows"].why == "it follows from a.unseeded"
    assert "two fresh runs agree" in differing["once"].why
    assert "ValueError: boom" in differing["fails"].differences[0]


def test_what_two_runs_agree_on_against_the_store_is_told_apart_from_chance(write_book: WriteBook) -> None:
    root = write_book({"a": "from executed import example\n@example\ndef one():\n    print('now')\n"})
    book, store = Book.read(root), Store(root)
    result = run(book, store, book.examples).results["a.one"]
    store.save(replace(result, text="then"), Path("none"))
    [found] = verify(book, store, ["a.one"])
    assert found.differences == ("line 1 printed 'then', and now 'now'",)
    assert "two fresh runs agree" in found.why


def test_an_example_alone_is_handed_what_is_stored_of_its_needs(write_book: WriteBook) -> None:
    source = """
    import random
    from executed import example

    @example
    def one():
        return {"x": random.random()}

    @example
    def two(one):
        print(one["x"])
    """
    assert not verdicts(write_book({"a": source}), "a.two")["a.two"].differences


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text": "x 2"}, "line 1 printed 'x 1', and now 'x 2'"),
        ({"text": "x 1\ny"}, "one printed more lines than the other"),
        ({"figures": []}, "it drew 1 figure(s), and now 0"),
        ({"figures": ["<svg><path d='M 1.5 2'/></svg>"]}, "figure 1: 1 coordinates moved, by up to 0.5 points"),
        ({"figures": ["<svg><path d='M 1.001 2'/></svg>"]}, ""),
        ({"figures": ["<svg><path d='M 1 2 3'/></svg>"]}, "figure 1: it is built otherwise"),
        ({"figures": ["<svg><path d='M 1 2'/><text>a</text></svg>"]}, "figure 1: it is built otherwise"),
    ],
)
def test_text_counts_to_the_letter_and_figures_by_what_is_drawn(change: dict[str, Any], words: str) -> None:
    found = list(differences(RESULT, replace(RESULT, **change), False))
    assert len(found) == bool(words)
    assert not words or found[0].startswith(words)


def test_who_compares_says_what_moved_too_little_to_be_seen() -> None:
    moved = replace(RESULT, figures=["<svg><path d='M 1.05 2'/></svg>"])
    assert list(differences(RESULT, moved, False)) != []
    assert list(differences(RESULT, moved, False, visible=0.1)) == []


IMAGE = '<svg><image id="i1" xlink:href="data:image/png;base64,{}"/></svg>'


@pytest.mark.parametrize(("data", "same"), [("aGk1", True), ("aGk2", False)])
def test_an_image_in_a_figure_counts_whole_and_names_do_not(data: str, same: bool) -> None:
    old, new = (replace(RESULT, figures=[svg]) for svg in (IMAGE.format("aGk1"), IMAGE.format(data)))
    new = replace(new, figures=[new.figures[0].replace('id="i1"', 'id="i2"')])
    assert (not list(differences(old, new, False))) is same


@pytest.mark.parametrize(
    ("old", "new", "same", "same_shape"),
    [
        (0.1, 0.1 + 1e-12, True, True),
        (0.1, 0.2, False, True),
        (float("nan"), float("nan"), True, True),
        (float("inf"), float("inf"), True, True),
        (float("nan"), 1.0, False, True),
        (1, True, False, False),
        ("a", "b", False, True),
        ([1, 2], [1, 2, 3], False, False),
        ({"a": 1}, {"b": 1}, False, False),
        (None, 0, False, False),
        (10**400, 10**400, True, True),
    ],
)
def test_values_count_within_tolerance_or_by_shape(old: Any, new: Any, same: bool, same_shape: bool) -> None:
    before, after = replace(RESULT, values={"x": old}), replace(RESULT, values={"x": new})
    assert (not list(differences(before, after, False))) is same
    assert (not list(differences(before, after, True))) is same_shape


@pytest.mark.parametrize(
    ("now", "same"),
    [("x 12.5", True), ("x 1,049", True), ("x 1, 2", False), ("x  9", True), ("y 1", False), ("x 1\nz", False)],
)
def test_of_a_measurement_only_the_words_around_its_numbers_count(now: str, same: bool) -> None:
    assert (not list(differences(RESULT, replace(RESULT, text=now), True))) is same
