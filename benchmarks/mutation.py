"""Is a result ever kept that a change could have changed? `python benchmarks/mutation.py` (twelve minutes on two cores
that have nothing else to do; needs the stored results of a build).

1. Mutants, however long it takes (five minutes): every statement of every snippet module is changed in every way that
   mutants.py knows, one at a time, and the engine computes all fingerprints anew.
2. Traces: each example runs once more, unchanged, in modules that note which statements run and which names are looked
   up by whom (watched.py). What an example uses is thus known without the engine's analysis: a change to what it uses
   must change its fingerprint. Long examples are watched for their first seconds, as many as `--minutes`.
3. Reruns, for what is left: a sample of (mutant, example) pairs really runs, of examples that take less than two
   seconds and come out the same each time. Where the fingerprint did not change, text, values and figures must come out
   as stored; where it did and they come out the same, the run was needless.

`--books 500` puts 500 random books to the same question instead, by the strategy of tests/engine/test_fingerprint.py.
Ends with 1 if anything stale was found.
"""

import argparse
import gc
import importlib
import io
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from mutants import Mutant, variants
from watched import Used, Watch, used

from executed import runner, worker
from executed.book import Book, read_module
from executed.fingerprint import Fingerprints
from executed.pool import Ended
from executed.statements import binders, statements
from executed.store import FOLDER, Result, Store

ROOT = Path(__file__).parents[1]
CHEAP = 2.0
"""Seconds an example of the reruns may take."""
UNNOTICED = ("docstring", "comments and layout", "definition added")
"""Kinds of change that do nothing."""
Pair = tuple[Mutant, str]
Tried = tuple[Mutant, frozenset[str], bool]
"""A mutant, the examples whose fingerprint it changes, and whether its module can be imported."""

STORE = Store(ROOT)
# Of each process: its copy of the book, the fingerprints, which examples import a module by what their fingerprints
# say, how many mutants it has seen.
root: Path
book: Book
digests: dict[str, str]
importers: dict[str, list[str]]
seen = 0


def start(folder: str) -> None:
    """A process of its own for mutants: a copy of the book, and what its examples import."""
    global root, book, digests, importers
    os.environ |= worker.ENVIRONMENT
    gc.disable()
    root = Path(tempfile.mkdtemp(dir=folder))
    for name in ("snippets", "executed", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(STORE.folder / "results", root / FOLDER / "results")
    os.chdir(root)
    book = Book.read(root)
    fingerprints = Fingerprints(book)
    digests = {name: fingerprints.of(name).digest for name in book.examples}
    fingerprints.keep()  # so that mutants are looked at as an edit is: with what is remembered
    importers = {module: [] for module in book.modules}
    for name in book.examples:
        parts = {part for one in book.order([name]) for part in fingerprints.of(one).parts}
        for module in book.modules:
            importers[module] += [name] if f"module {module}" in parts else []
    for module in book.settings.preload:
        importlib.import_module(module)


def write(mutant: Mutant | None, module: str) -> None:
    text = mutant.source(book.modules[module].lines) if mutant else book.modules[module].source
    (root / book.modules[module].path).write_text(text, "utf-8")


def attempt(mutant: Mutant) -> Tried:
    global seen
    seen += 1
    if seen % 100 == 0:  # the engine remembers every module it has read
        for remembered in (read_module, statements, binders):
            remembered.cache_clear()
        gc.collect()
    write(mutant, mutant.module)
    now = Book.read(root)
    fingerprints = Fingerprints(now)
    names = importers[mutant.module] if seen % 50 else digests  # the others are looked at now and then
    rerun = (name for name in names if name not in now.examples or fingerprints.of(name).digest != digests[name])
    found = mutant, frozenset(rerun), not mutant.importing or fork(lambda: imported(mutant.module), 20) == 0
    write(None, mutant.module)
    return found


def imported(module: str) -> None:
    with open(os.devnull, "w") as sys.stdout, open(os.devnull, "w") as sys.stderr:
        worker._compile_anew(str(root))
        sys.path.insert(0, str(root))
        importlib.import_module(f"snippets.{module}")


def fork(work: Callable[[], None], seconds: float) -> int:
    """Do something in a child: 0 if it came to its end."""
    if (pid := os.fork()) == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    deadline = time.monotonic() + seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


class Inline(Executor):
    """Does what it is given at once."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*given, **named))
        return future


def run(name: str, seconds: float, watch: Watch | None = None) -> tuple[str, dict[str, Any] | None]:
    """Run an example as the engine does: what it left, or how it failed; and what a watch saw."""
    seen_file = root.with_suffix(".seen")  # an example may write nothing into the book
    seen_file.unlink(missing_ok=True)

    def late(*_: object) -> None:
        assert watch
        watch.write(seen_file)
        os._exit(3)

    def work(folder: Path) -> None:
        if watch:
            worker._compile_anew = watch.install
            signal.signal(signal.SIGALRM, late)
            signal.alarm(max(int(seconds), 1))
        worker.run(folder)
        signal.alarm(0)
        if watch:
            watch.write(seen_file)

    def execute(folder: Path, _: float) -> Ended:
        return Ended(fork(lambda: work(folder), seconds + 30))

    store, progress = Store(root), runner.Progress(io.StringIO())
    found = runner.run(
        Book.read(root), store, [name], executor=Inline(), execute=execute, workers=1, progress=progress, force=[name]
    )
    saw = json.loads(seen_file.read_text()) if seen_file.exists() else None
    if failure := found.failures.get(name):
        return f"fails: {failure.message}", saw
    return comparable(found.results[name]), saw


def comparable(result: Result) -> str:
    return json.dumps([result.text, result.values, result.figures], sort_keys=True)


@cache
def stored(name: str) -> str:
    found = STORE.load(name, digests[name])
    return comparable(found) if found else ""


def trace(job: tuple[str, float]) -> tuple[str, dict[str, Any] | None, bool, bool]:
    """What one example uses, whether it ran to its end, and whether it came out as stored."""
    outcome, saw = run(*job, Watch(root / "snippets"))
    return job[0], saw, outcome[0] == "[", outcome == stored(job[0])


def again(pair: Pair) -> str:
    """Run an example in a mutated book: how it differs from what is stored, if it does."""
    mutant, name = pair
    write(mutant, mutant.module)
    outcome, _ = run(name, 30)
    write(None, mutant.module)
    return "" if outcome == stored(name) else outcome if outcome[0] != "[" else "another result"


def why_needless(mutant: Mutant, use: Used) -> str:
    if mutant.kind in (*UNNOTICED, "annotation"):
        return f"{mutant.kind}"
    if not use.uses(mutant):
        return "the run does not use what changed"
    if "swapped" in mutant.kind:
        return "swapped, and the order does not matter"
    if not mutant.importing and mutant.line not in use.ran.get(mutant.module, ()):
        return "the run does not come to the statement"
    return "the change makes no difference here"


def table(*rows: Iterable[object]) -> str:
    head, *body = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *body]) + "\n"


class Bench:
    """The three parts, each for its share of the time."""

    def __init__(self, executor: ProcessPoolExecutor, minutes: float, seed: int) -> None:
        self.executor, self.minutes, self.chance = executor, minutes, random.Random(seed)
        self.began = time.monotonic()
        self.book = Book.read(ROOT)
        self.trees = {name: module.tree for name, module in self.book.modules.items()}
        fingerprints = Fingerprints(self.book)
        found = {name: STORE.load(name, fingerprints.of(name).digest) for name in self.book.examples}
        seconds = {
            name: result.seconds
            for name, result in found.items()
            if result and all(found[need] for need in self.book.examples[name].needs)
        }
        if not seconds:
            sys.exit("no stored results: run `mkdocs build` first")
        self.names = sorted(seconds, key=lambda name: seconds[name])
        self.cheap = {name for name in seconds if seconds[name] < CHEAP and not self.book.examples[name].options.varies}

    def map(self, work: Callable[[Any], Any], jobs: list[Any], what: str, seconds: float = math.inf) -> Iterator[Any]:
        """Do the jobs in the processes, as many as are begun within the time."""
        size, done, end = 64, 0, time.monotonic() + seconds
        while done < len(jobs) and time.monotonic() < end:
            yield from self.executor.map(work, jobs[done : done + size], chunksize=4)
            done = min(done + size, len(jobs))
            print(f"\r{done:,} of {len(jobs):,} {what}, {time.monotonic() - self.began:.0f} s", end="", file=sys.stderr)
        print(file=sys.stderr)

    def measure(self) -> int:
        every = [
            one
            for module, tree in self.trees.items()
            for i in range(len(tree.body))
            for one in variants(module, tree, i)
        ]
        self.chance.shuffle(every)
        tried: list[Tried] = list(self.map(attempt, every, "mutants"))
        watched, steady = {}, set()
        jobs, fifth = [(name, self.minutes) for name in self.names], self.minutes * 60 / 5
        for name, saw, whole, same in self.map(trace, jobs, "traces", fifth):
            if saw:
                watched[name] = used(saw, whole, self.trees)
            if same and name in self.cheap:
                steady.add(name)

        changed = {id(mutant): names for mutant, names, _ in tried}
        suspects, kept, rerun = self.pairs(tried, watched, steady)
        sample = [one for both in zip(kept, rerun, strict=False) for one in both]
        sample = [one for one in suspects if one[1] in steady] + sample
        left = max(self.began + 5 * fifth - time.monotonic(), fifth)
        outcomes = list(zip(sample, self.map(again, sample, "pairs run again", left), strict=False))
        stale = [(pair, how) for pair, how in outcomes if how and pair[1] not in changed[id(pair[0])]]
        unknown = [one for one in suspects if one[1] not in steady]
        noticed = [(pair, how) for pair, how in outcomes if pair[1] in changed[id(pair[0])]]
        needless = Counter(why_needless(mutant, watched[name]) for (mutant, name), how in noticed if not how)
        lost = sum(
            not imports and mutant.module in use.ran and name not in names
            for mutant, names, imports in tried
            for name, use in watched.items()
        )
        silent = [mutant for mutant, names, imports in tried if not imports and not names]

        self.report_kinds(tried)
        pairs, whole = len(tried) * len(self.book.examples), sum(use.whole for use in watched.values())
        rerun_pairs = sum(len(names) for _, names, _ in tried)
        share = f"{sum(needless.values()) / max(len(noticed), 1):.0%}"
        print(table(
            ["", "count"],
            ["mutants", len(tried)],
            ["examples", len(self.book.examples)], ["traced to their end", whole],
            [f"traced for {self.minutes:g} s", len(watched) - whole],
            ["pairs (mutant, example)", pairs], ["fingerprint changed", rerun_pairs],
            ["fingerprint kept", pairs - rerun_pairs],
            ["of them held against a trace", sum(name not in names for _, names, _ in tried for name in watched)],
            ["kept, though the trace says that the example uses what changed", len(suspects)],
            ["kept, and run again", len(outcomes) - len(noticed)],
            ["**stale**: another result when run again", len(stale)],
            ["**stale?** by the trace, and too long to run again", len(unknown)],
            ["kept, while a definition that the example does not use breaks the import of its module", lost],
            ["mutants that break an import and change no fingerprint at all", len(silent)],
            ["changed, and run again", len(noticed)],
            ["of them with the same result: needless", f"{sum(needless.values()):,} ({share})"],
            *([f"needless: {why}", count] for why, count in needless.most_common()),
        ))  # fmt: skip
        for (mutant, name), how in [*stale, *((pair, "by the trace") for pair in unknown)][:40]:
            print(f"STALE {name}: {how}\n{mutant}\n")
        for mutant, name in suspects[:40]:
            print(f"LOOKED INTO {name}: {mutant}\n", file=sys.stderr)
        for mutant in silent[:20]:
            print(f"SILENT {mutant}\n")
        return len(stale) + len(unknown)

    def pairs(self, tried: list[Tried], watched: dict[str, Used], steady: set[str]) -> tuple[list[Pair], ...]:
        """Pairs that look stale by the trace, pairs that were kept, and pairs that are to run again; shuffled."""
        suspects, kept, rerun = [], [], []
        for mutant, names, imports in tried:
            for name, use in watched.items():
                if name in names:
                    alone = not names.intersection(self.book.examples[name].needs)  # its needs are as they are stored
                    if name in steady and alone and imports and mutant.kind != "definition deleted":
                        rerun.append((mutant, name))
                elif mutant.kind not in UNNOTICED and use.uses(mutant):
                    suspects.append((mutant, name))
                elif name in steady and imports and mutant.module in use.ran:
                    kept.append((mutant, name))
        for one in (suspects, kept, rerun):
            self.chance.shuffle(one)
        return suspects, kept, rerun

    def report_kinds(self, tried: list[Tried]) -> None:
        count: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for mutant, names, imports in tried:
            for kind in (mutant.kind, "**all**"):
                new = (1, not imports, len(self.book.examples) - len(names), len(names))
                count[kind] = [old + one for old, one in zip(count[kind], new, strict=True)]
        rows = sorted(count.items(), key=lambda row: row[1], reverse=True)
        heads = ["kind", "mutants", "of them fail to import", "fingerprints kept", "fingerprints changed"]
        print(table(heads, *([kind, *numbers] for kind, numbers in rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Is a result ever kept that a change could have changed?")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--books", type=int, default=0, help="try so many random books instead")
    options = parser.parse_args()
    if options.books:
        words = ["-m", "pytest", "-n0", "-k", "random_book", f"--hypothesis-seed={options.seed}"]
        environment = {**os.environ, "RANDOM_BOOKS": str(options.books)}
        command = [sys.executable, *words, "tests/engine/test_fingerprint.py"]
        sys.exit(subprocess.run(command, cwd=ROOT, env=environment).returncode)
    forked = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(2, forked, initializer=start, initargs=(folder,)) as executor,
    ):
        stale = Bench(executor, options.minutes, options.seed).measure()
    sys.exit(bool(stale))


if __name__ == "__main__":
    main()
