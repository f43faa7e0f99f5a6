"""The pytest fixture that hands over published results, through the same engine and store as the site."""

from collections.abc import Callable
from pathlib import Path

import pytest

from executed.book import Book
from executed.runner import run
from executed.store import Outcomes, Result, Store, failure_text


@pytest.fixture(scope="session")
def _outcomes(request: pytest.FixtureRequest) -> Callable[[str], Outcomes]:
    root = Path(request.config.rootpath)
    book, store = Book.read(root), Store(root)
    known = Outcomes()
    # test_attention.py will ask for results of snippets/attention.py: run them together, not one by one.
    tested = {item.path.stem.removeprefix("test_") for item in request.session.items}
    likely = [name for name, example in book.examples.items() if example.module in tested]

    def bring(name: str) -> Outcomes:
        if name not in book.examples:
            pytest.fail(book.why_missing(name), pytrace=False)
        if name not in {**known.results, **known.failures, **known.absent}:
            found = run(book, store, {name, *likely})
            known.results.update(found.results)
            known.failures.update(found.failures)
            known.absent.update(found.absent)
        return known

    return bring


@pytest.fixture
def result(_outcomes: Callable[[str], Outcomes]) -> Callable[[str], Result]:
    """`result("attention.four_tokens")`: its text, figures, values and, with `.returned()`, the object itself."""

    def published(name: str) -> Result:
        outcomes = _outcomes(name)
        if name in outcomes.failures:
            pytest.fail(failure_text(outcomes.failures[name]), pytrace=False)
        if name in outcomes.absent:
            pytest.skip(f"{name} needs {outcomes.absent[name]}")
        return outcomes.results[name]

    return published
