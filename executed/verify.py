"""Runs a book again from the beginning, in fresh processes, and compares with what is stored."""

import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executed.book import Book
from executed.fingerprint import Fingerprints
from executed.pool import run_apart
from executed.runner import look, machine, run
from executed.store import Outcomes, Result, Store

# What two processors may make of the same arithmetic, and what nobody sees in a figure (in points).
RELATIVE, ABSOLUTE, VISIBLE = 1e-6, 1e-9, 0.01
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
IMAGE = re.compile(r'"data:[^"]*"')
NAME = re.compile(r'( id="|href="#|url\(#)[^")]*')


@dataclass(frozen=True)
class Verdict:
    """What came of running one example again."""

    name: str
    differences: tuple[str, ...] = ()
    """What is not as stored, in words; nothing where all of it is."""
    why: str = ""

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.why}", *(f"    {difference}" for difference in self.differences)])


def verify(book: Book, store: Store, names: list[str]) -> Iterator[Verdict]:
    """Run the named examples again, in a store of their own; a verdict for each that has a result.

    What they need and is not named is not run again: they are handed what is stored of it.
    """
    stored = _stored(book, store, book.order(names))
    order = [name for name in book.order(names) if name in names]
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        again = _run(book, Path(folder) / "first", order, stored)
        found: dict[str, tuple[str, ...]] = {}
        for name in order:
            if name in again.absent or (name in stored and stored[name].recorded):
                continue
            if name in again.failures:
                found[name] = (again.failures[name].message,)
            elif name not in stored:
                found[name] = ("there is nothing stored that still holds",)
            else:
                found[name] = tuple(differences(stored[name], again.results[name], varies(book, name)))
        differing = [name for name, words in found.items() if words and name in again.results]
        once_more = _run(book, Path(folder) / "second", differing, again.results | stored).results
        for name, words in found.items():
            if not words:
                yield Verdict(name)
            elif name in again.failures:
                yield Verdict(name, words, "it failed this time")
            elif name not in stored:
                yield Verdict(name, words, "run it first (mkdocs build, or executed run)")
            elif source := [need for need in book.examples[name].needs if found.get(need)]:
                yield Verdict(name, words, f"it follows from {', '.join(source)}")
            elif name not in once_more or list(differences(again.results[name], once_more[name], False)):
                yield Verdict(name, words, RANDOM)
            elif stored[name].machine != machine():
                yield Verdict(name, words, f"it was stored by another machine, {stored[name].machine}")
            else:
                yield Verdict(name, words, SURROUNDINGS)


def varies(book: Book, name: str) -> bool:
    """Whether an example is a measurement, or makes something of one."""
    return any(book.examples[one].options.varies for one in book.order([name]))


RANDOM = (
    "each run gives something else: look for a generator without a seed, the clock, the order of a set, threads"
    " (a measurement says varies=True)"
)
SURROUNDINGS = (
    "two fresh runs agree, and not with what is stored: something outside the code and its packages has changed,"
    " or what is stored is wrong (executed run replaces it)"
)


def _run(book: Book, folder: Path, names: list[str], needs: dict[str, Result]) -> Outcomes:
    """Run examples in fresh processes and keep the results in a folder; what they need comes from elsewhere."""
    for name in needs.keys() & set(book.order(names)) - set(names):
        target = folder / "results" / name
        target.mkdir(parents=True)
        for file in (needs[name].entry, needs[name].pickle_file):
            if file.exists():
                shutil.copy(file, target)
    return run(book, Store(book.root, folder), names, execute=run_apart)


def _stored(book: Book, store: Store, order: list[str]) -> dict[str, Result]:
    fingerprints, found = Fingerprints(book), dict[str, Result]()
    for name in order:
        result, _ = look(book, store, name, fingerprints.of(name), found)
        if result and all(need in found for need in book.examples[name].needs):
            found[name] = result
    return found


def differences(old: Result, new: Result, shape_only: bool, visible: float = VISIBLE) -> Iterator[str]:
    """What is not the same in two results, in words: text to the letter, numbers and drawn data within tolerance.

    With `shape_only`, for measurements, numbers may differ and what stands around them may not. In figures, what moves
    by no more than `visible` points has not moved.
    """
    before, after = (_shape(old.text), _shape(new.text)) if shape_only else (old.text, new.text)
    if before != after:
        pairs = zip(before.split("\n"), after.split("\n"), strict=False)
        line, (was, now) = next(((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, ("", "")))
        yield f"line {line} printed {was!r}, and now {now!r}" if line else "one printed more lines than the other"
    yield from _values(old.values, new.values, "", shape_only)
    if len(old.figures) != len(new.figures):
        yield f"it drew {len(old.figures)} figure(s), and now {len(new.figures)}"
    elif not shape_only:
        for number, (was, now) in enumerate(zip(old.figures, new.figures, strict=True), 1):
            yield from (f"figure {number}: {words}" for words in _drawn(was, now, visible))


def _shape(text: str) -> str:
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)  # 1,049 and 998 may be two runs of one measurement
    return re.sub(r"[ \t]+", " ", NUMBER.sub("#", plain))


def _values(old: Any, new: Any, path: str, shape_only: bool) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from _values(old[key], new[key], f"{path}.{key}", shape_only)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _values(was, now, f"{path}[{index}]", shape_only)
    elif _is_number(old) and _is_number(new):
        if not shape_only and not _close(old, new):
            yield f"the value {path.lstrip('.')} was {old}, and is now {new}"
    elif type(old) is not type(new) or (old != new and not (shape_only and isinstance(old, str | bool))):
        yield f"the value {path.lstrip('.') or 'returned'} was {str(old)[:60]}, and is now {str(new)[:60]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(old: float, new: float) -> bool:
    if old == new or (math.isnan(old) and math.isnan(new)):
        return True
    return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _drawn(old: str, new: str, visible: float) -> Iterator[str]:
    if IMAGE.findall(old) != IMAGE.findall(new):
        yield "an image in it differs"
    old, new = (NAME.sub(r"\1", IMAGE.sub("", svg)) for svg in (old, new))
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        yield "it is built otherwise (other labels, or more or fewer lines and points)"
        return
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    moved = [distance for was, now in pairs if was != now and (distance := abs(float(was) - float(now))) > visible]
    if moved:
        yield f"{len(moved)} coordinates moved, by up to {max(moved):.3g} points"
