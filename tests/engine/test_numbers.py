"""executed/numbers.py: numbers as a reader of the page's language writes them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executed.numbers import DEFAULT_DIGITS, FILTERS, as_bytes, formatted, listed, num, pct, sci, si

finite = st.floats(allow_nan=False, allow_infinity=False) | st.integers()


@pytest.mark.parametrize(
    ("value", "digits", "english", "vietnamese"),
    [
        (0.6874, 3, "0.687", "0,687"),
        (1234.5, 1, "1,234.5", "1.234,5"),
        (1234.5, 0, "1,234", "1.234"),
        (-0.0004, 3, "0.000", "0,000"),
        (-0.0, 1, "0.0", "0,0"),
        (-1.5, 1, "−1.5", "−1,5"),
        (0.15, 1, "0.1", "0,1"),
        (2, 2, "2.00", "2,00"),
        (10**30 + 1, 0, "1,000,000,000,000,000,000,000,000,000,001", "1.000.000.000.000.000.000.000.000.000.001"),
        (5e-324, 2, "0.00", "0,00"),
    ],
)
def test_num_has_the_decimals_asked_for(value: float, digits: int, english: str, vietnamese: str) -> None:
    assert num(value, digits, "en") == english
    assert num(value, digits, "vi") == vietnamese


@given(finite, st.integers(0, 20))
def test_num_rounds_once_and_to_the_nearest(value: float, digits: int) -> None:
    written = Fraction(num(value, digits, "en").replace(",", "").replace("−", "-"))
    assert abs(written - Fraction(value)) <= Fraction(1, 2 * 10**digits)


@given(finite, st.integers(0, 6), st.sampled_from(sorted(FILTERS)), st.sampled_from(["en", "vi"]))
def test_every_filter_writes_every_number_and_no_negative_zero(
    value: float, digits: int, name: str, language: str
) -> None:
    written = formatted(value, name, digits, language)
    assert any(character.isdigit() for character in written)
    assert not (written.startswith("−") and not any(digit in written for digit in "123456789"))


def test_pct_is_of_a_hundred() -> None:
    assert pct(0.988, 1, "en") == "98.8%"
    assert pct(0.988, 1, "vi") == "98,8%"
    assert pct(0.285, 0, "en") == "28%"
    assert pct(-0.00001, 1, "en") == "0.0%"
    assert pct(12, 0, "en") == "1,200%"


def test_sci_has_one_digit_before_the_point() -> None:
    assert sci(8.94e-08, 1, "en") == "8.9\u00a0×\u00a010⁻⁸"
    assert sci(-8.94e-08, 1, "vi") == "−8,9\u00a0×\u00a010⁻⁸"
    assert sci(9.99e5, 1, "en") == "1.0\u00a0×\u00a010⁶"
    assert sci(5e-324, 0, "en") == "5\u00a0×\u00a010⁻³²⁴"
    assert sci(10**400, 1, "en") == "1.0\u00a0×\u00a010⁴⁰⁰"
    assert sci(0, 3, "en") == sci(-0.0, 3, "en") == "0"


def test_si_goes_up_a_prefix_where_rounding_does() -> None:
    assert si(134998272, 1, "en") == "135.0\u202fM"
    assert si(999.96, 1, "en") == "1.0\u202fk"
    assert si(999_950_000, 1, "vi") == "1,0\u202fG"
    assert si(0.0015, 1, "en") == "1.5\u202fm"
    assert si(0.9999, 1, "en") == "999.9\u202fm"
    assert si(0.99996, 1, "en") == "1.0"
    assert si(1e-15, 1, "en") == "0.0\u202fp"
    assert si(-2500, 1, "en") == "−2.5\u202fk"
    assert si(0, 1, "en") == "0.0"
    assert si(10**20, 0, "en") == "100,000\u202fP"


def test_bytes_are_counted_in_thousands() -> None:
    assert as_bytes(268435456, 1, "en") == "268.4\u202fMB"
    assert as_bytes(999, 1, "en") == "999\u202fB"
    assert as_bytes(999.6, 1, "en") == as_bytes(1000, 1, "en") == "1.0\u202fkB"
    assert as_bytes(0, 1, "en") == "0\u202fB"
    assert formatted(1500, "bytes", DEFAULT_DIGITS["bytes"], "vi") == "1,5\u202fkB"


def test_what_is_no_finite_number_has_a_sign_of_its_own() -> None:
    for name in FILTERS:
        assert formatted([math.nan, math.inf, -math.inf], name, 2, "en") == "NaN, ∞, −∞"


def test_semicolons_stand_between_items_that_hold_commas() -> None:
    assert formatted([0.5, 0.25], "num", 2, "en") == "0.50, 0.25"
    assert formatted([0.5, 0.25], "num", 2, "vi") == "0,50; 0,25"
    assert formatted([1000, 1], "num", 0, "en") == "1,000; 1"
    assert listed(["a", "b"]) == "a, b"


@pytest.mark.parametrize("value", [True, None, "3", [], {}, [1, "x"], {"$unquotable": "a Module"}])
def test_only_numbers_can_be_formatted(value: object) -> None:
    with pytest.raises(TypeError, match="num formats numbers, and this is "):
        formatted(value, "num", 2, "en")


def test_what_could_not_be_kept_says_what_it_was() -> None:
    with pytest.raises(TypeError, match=r"this is a Module$"):
        formatted([{"$unquotable": "a Module"}], "num", 2, "en")
