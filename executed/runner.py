"""Decides which examples must run, runs them in order and as many at once as there are cores, keeps what they left."""

import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from executed import capture
from executed.book import SNIPPETS, Book, Example, Module
from executed.fingerprint import Fingerprint, Fingerprints, differences, file_digest
from executed.outside import missing
from executed.pool import MOST_OUTPUT, Ended, Pool
from executed.store import Failure, Outcomes, Result, Store
from executed.worker import UNWRITTEN, state

PASSING = ""
"""The fingerprint of a failure that has its cause outside its example, so that a try is always worth while."""
Execute = Callable[[Path, float], Ended]


@lru_cache(maxsize=1)
def machine() -> str:
    """The machine as a page names it: processor, cores, system."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists() and (found := re.search(r"model name\s*:\s*(.+)", cpus.read_text())):
        model = found[1]
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def look(
    book: Book, store: Store, name: str, fingerprint: Fingerprint, needs: dict[str, Result]
) -> tuple[Result | None, str]:
    """The stored result of an example if it still holds, or why the example must run, in words."""
    stored = store.load(name, fingerprint.digest)
    if stored is None:
        old = store.newest(name)
        if old is None:
            return None, "never ran"
        return None, "; ".join(differences(old.parts, fingerprint.parts)) or "its stored result is damaged"
    changed = [path for path, digest in stored.files.items() if file_digest(book.root, path) != digest]
    if changed:
        return None, f"{', '.join(changed)} changed"
    other = [need for need, digest in stored.needs.items() if need in needs and needs[need].digest != digest]
    return (None, f"{', '.join(other)} has another result") if other else (stored, "")


class Progress:
    """Tells a person what runs, how long it takes and how many are left: one living line on a terminal, else lines."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.living = self.stream.isatty()
        self.running: dict[str, float] = {}
        self.ended = 0

    def waits(self) -> None:
        print("  another process runs examples of this book; waiting for it", file=self.stream, flush=True)

    def started(self, name: str) -> None:
        self.running[name] = time.monotonic()

    def finished(self, name: str, failed: bool, left: int) -> None:
        seconds = time.monotonic() - self.running.pop(name)
        self.ended += 1
        self._clear()
        mark = "FAILED " if failed else ""
        print(f"  {mark}{name}  {seconds:.1f} s, {left} left", file=self.stream, flush=True)

    def tick(self, left: int) -> None:
        if self.living and self.running:
            now = time.monotonic()
            names = ", ".join(f"{name} {now - begun:.0f} s" for name, begun in self.running.items())
            width = shutil.get_terminal_size().columns - 1
            self._clear()
            print(f"  {self.ended} done, {left} left: {names}"[:width], end="", file=self.stream, flush=True)

    def _clear(self) -> None:
        if self.living:
            print("\r\x1b[K", end="", file=self.stream)


class Run:
    """One pass over the book: everything asked for and all it needs, each at most once."""

    def __init__(
        self,
        book: Book,
        store: Store,
        execute: Execute,
        executor: Executor,
        workers: int,
        progress: Progress,
        force: Iterable[str],
        remembered: dict[str, Failure],
        expect: Callable[[Iterable[str]], None],
    ) -> None:
        self.book, self.store, self.progress = book, store, progress
        self.execute, self.executor, self.workers = execute, executor, workers
        self.force, self.remembered, self.expect = set(force), remembered, expect
        self.fingerprints = Fingerprints(book)
        self.outcomes = Outcomes()

    def all(self, names: Iterable[str]) -> Outcomes:
        order = [name for name in self.book.order(names) if not self._replaced(name)]
        stale = self._stale(order)
        self.fingerprints.keep()
        if not stale:
            return self.outcomes
        if self.force:  # a person waits for just these
            return self._bring(order, stale)
        with self.store.turn(self.progress.waits) as waited:
            return self._bring(order, self._stale(order) if waited else stale)

    def _bring(self, order: list[str], stale: set[str]) -> Outcomes:
        self.expect(self._preload(stale))
        pending = sorted(stale, key=self._urgency(order, stale), reverse=True)
        running: dict[Future[Ended], tuple[str, Path]] = {}
        while pending or running:
            for name in self._ready(pending, [name for name, _ in running.values()]):
                pending.remove(name)
                if not self._settled(name):
                    folder = self._write_job(self.book.examples[name])
                    self.progress.started(name)
                    timeout = self.book.examples[name].options.timeout
                    running[self.executor.submit(self.execute, folder, timeout)] = (name, folder)
            self.progress.tick(len(pending) + len(running))
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                name, folder = running.pop(future)
                self._finish(name, folder, future.result(), len(pending) + len(running))
        return self.outcomes

    def _stale(self, order: list[str]) -> set[str]:
        """What may have to run. An example whose need is stale gets another look when that need has ended."""
        stale: set[str] = set()
        for name in order:
            stored = self._look(name)
            if stored and name not in self.force and not stale.intersection(self.book.examples[name].needs):
                self.outcomes.results[name] = stored
            else:
                stale.add(name)
        for name in reversed(order):  # a damaged object is made again before it is handed on
            for need in self.book.examples[name].needs if name in stale else ():
                if need in self.outcomes.results and not self.outcomes.results[need].intact():
                    del self.outcomes.results[need]
                    stale.add(need)
                    self.force.add(need)
        return stale

    def _preload(self, stale: set[str]) -> list[str]:
        """The modules of `[tool.executed] preload` that what has to run will import."""
        parts = {part for name in stale for part in self.fingerprints.of(name).parts}
        return [name for name in self.book.settings.preload if f"package {name.partition('.')[0]}" in parts]

    def _replaced(self, name: str) -> bool:
        """Whether an example that cannot run here is represented by its stored result, its record, or its absence."""
        example = self.book.examples[name]
        lacks = list(filter(None, map(missing, example.options.needs)))
        lacks += [self.outcomes.absent[need] for need in example.needs if need in self.outcomes.absent]
        known = self.outcomes.results
        recorded = [need for need in example.needs if need in known and not known[need].pickled]
        if not lacks and not recorded:
            return False
        if stored := self._look(name):
            self.outcomes.results[name] = stored
        elif record := self.store.record(name):
            code, self.outcomes.results[name] = record
            if code != self.fingerprints.code(name):
                self.outcomes.outdated.append(name)
        else:
            self.outcomes.absent[name] = lacks[0] if lacks else f"{recorded[0]} itself, of which there is only a record"
        return True

    def _look(self, name: str) -> Result | None:
        return look(self.book, self.store, name, self.fingerprints.of(name), self.outcomes.results)[0]

    def _urgency(self, order: list[str], stale: set[str]) -> Callable[[str], float]:
        """Seconds until the last example that waits for this one can end, as far as past runs and time limits tell."""
        urgency: dict[str, float] = {}
        for name in reversed(order):
            if name in stale:
                known = self.store.newest(name)
                after = [urgency[other] for other in stale if name in self.book.examples[other].needs]
                likely = known.seconds if known else self.book.examples[name].options.timeout
                urgency[name] = likely + max(after, default=0.0)
        return lambda name: urgency[name]

    def _ready(self, pending: list[str], running: list[str]) -> list[str]:
        """What can start now: its needs have ended, a worker is free, and a timing has the machine to itself."""
        examples = self.book.examples
        ended = self.outcomes.results.keys() | self.outcomes.failures.keys()
        able = [name for name in pending if ended >= set(examples[name].needs)]
        if any(examples[name].options.alone for name in running):
            return []
        together = [name for name in able if not examples[name].options.alone]
        if together:
            return together[: self.workers - len(running)]
        return [] if running else able[:1]

    def _settled(self, name: str) -> bool:
        """Whether an outcome is known without a run: a need failed, or its needs came out as they were before."""
        example, fingerprint = self.book.examples[name], self.fingerprints.of(name)
        if name not in self.force and (stored := self._look(name)):
            self.outcomes.results[name] = stored
            return True
        known = self.remembered.get(name)
        if (
            known
            and (known.fingerprint, known.timeout) == (fingerprint.digest, example.options.timeout)
            and all(file_digest(self.book.root, path) == digest for path, digest in known.files.items())
        ):
            self.outcomes.failures[name] = known
            return True
        for need in example.needs:
            if need in self.outcomes.failures:
                why = f"could not run: it needs {need}, which failed"
            elif not self.outcomes.results[need].pickled:
                why = (
                    f"could not run: it needs {need}, which returned something that cannot be handed on "
                    f"({self.outcomes.results[need].unpickled})"
                )
            else:
                continue
            self.outcomes.failures[name] = Failure(name, PASSING, why, example.path, example.line)
            return True
        return False

    def _write_job(self, example: Example) -> Path:
        folder = self.store.new_folder(example.name)
        needs = {
            parameter: self.outcomes.results[need]
            for parameter, need in zip(example.parameters, example.needs, strict=True)
        }
        followed = [self._modules(self.fingerprints.of(one)) for one in self.book.order([example.name])]
        job = {
            "root": str(self.book.root),
            "followed": sorted({one.path for modules in followed for one in modules}),
            "module": f"{SNIPPETS}.{example.module}",
            "function": example.function,
            "needs": {parameter: (str(need.pickle_file), need.pickled) for parameter, need in needs.items()},
            "memory": example.options.memory,
            "threads": example.options.threads,
            "raises": example.options.raises,
        }
        with self.store.writing():
            (folder / "job.json").write_text(json.dumps(job), "utf-8")
        return folder

    def _finish(self, name: str, folder: Path, ended: Ended, left: int) -> None:
        if ended.reason == "stopped":
            return
        example, fingerprint = self.book.examples[name], self.fingerprints.of(name)
        printed = _beginning(folder / "output")
        text = capture.readable(printed[:MOST_OUTPUT])
        if len(printed) > MOST_OUTPUT and not ended.reason:
            ended = Ended(ended.status, "output")
        try:
            outcome = json.loads((folder / "outcome.json").read_text("utf-8"))
        except (OSError, ValueError):
            outcome = {"error": _how_it_ended(ended, example), "files": {}}
            outcome |= _where_it_stood(folder / "trace", self.book.root)
            outcome["passing"] = ended.reason == "server" or ended.status == UNWRITTEN
        files = {path: file_digest(self.book.root, path) for path in outcome["files"]}
        edited = self._edited(fingerprint, outcome["files"])
        if ended.reason:
            outcome["error"] = _how_it_ended(ended, example)
        elif edited:
            outcome = {"error": f"{', '.join(edited)} changed while it ran; build again", "passing": True}
        if "error" in outcome:
            failure = Failure(
                name,
                PASSING if outcome.get("passing") else fingerprint.digest,
                outcome["error"],
                outcome.get("path", example.path),
                outcome.get("line", example.line),
                tuple(outcome.get("trace", ())),
                _last_lines(text),
                files,
                example.options.timeout,
            )
            self.outcomes.failures[name] = failure
            self.store.save_failure(failure)
        else:
            needs = {need: self.outcomes.results[need].digest for need in example.needs}
            result = Result(
                name,
                text,
                outcome["figures"],
                outcome["values"],
                outcome["seconds"],
                outcome["memory"],
                outcome["started"],
                fingerprint.digest,
                fingerprint.parts,
                files,
                needs,
                machine(),
            )
            self.outcomes.results[name] = self.store.save(result, folder / "returned.pickle")
        self.outcomes.ran.append(name)
        shutil.rmtree(folder, ignore_errors=True)
        self.progress.finished(name, "error" in outcome, left)

    def _edited(self, fingerprint: Fingerprint, opened: dict[str, list[int]]) -> list[str]:
        """Files that are not as the fingerprint or the example's first look found them: it may have read either."""
        parts, root = fingerprint.parts, self.book.root
        declared = [part.removeprefix("file ") for part in parts if part.startswith("file ")]
        return [
            *(one.path for one in self._modules(fingerprint) if not _reads(root / one.path, one.data)),
            *(path for path in declared if file_digest(root, path) != parts[f"file {path}"]),
            *(path for path, seen in opened.items() if state(str(root / path)) != seen),
        ]

    def _modules(self, fingerprint: Fingerprint) -> list[Module]:
        """The modules that an example imports, as far as the text tells."""
        parts = [part for part in fingerprint.parts if part.startswith("module ")]
        return [self.book.modules[part.removeprefix("module ")] for part in parts]


def _reads(file: Path, data: bytes) -> bool:
    try:
        return file.read_bytes() == data
    except OSError:
        return False


def run(
    book: Book,
    store: Store,
    names: Iterable[str],
    *,
    executor: Executor | None = None,
    execute: Execute | None = None,
    pool: Pool | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    force: Iterable[str] = (),
    remembered: dict[str, Failure] | None = None,
) -> Outcomes:
    """Bring the named examples and all they need up to date.

    `executor` may be any `concurrent.futures.Executor`; with one on other machines, `execute` is
    `executed.pool.run_apart` and the store lies on a disk they share. `force` names examples to run even where
    their result holds; `remembered` holds failures that need no second try while nothing they depend on changed.
    An interrupt ends every process at once; what had finished is kept.
    """
    workers = workers or os.cpu_count() or 1
    own_pool = pool or Pool(book.root)
    threads = executor or ThreadPoolExecutor(workers)
    try:
        return Run(
            book,
            store,
            execute or own_pool.run,
            threads,
            workers,
            progress or Progress(),
            force,
            remembered or {},
            own_pool.expect,
        ).all(names)
    except BaseException:
        own_pool.close()
        raise
    finally:
        if pool is None:
            own_pool.close()
        if executor is None:
            threads.shutdown(cancel_futures=True)


def _beginning(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MOST_OUTPUT + 1)
    except OSError:
        return b""


def _last_lines(text: str) -> str:
    """Enough of what a failed example printed to see how far it came."""
    return "\n".join(line[:160] for line in text.splitlines()[-10:])


def _how_it_ended(ended: Ended, example: Example) -> str:
    if ended.reason == "timeout":
        return f"ran longer than its limit of {example.options.timeout:g} s (timeout= in @example raises it)"
    if ended.reason == "output":
        return f"printed more than {MOST_OUTPUT // 2**20} MiB; print less"
    if ended.reason == "server":
        return "the process that starts the examples ended twice; what it said is above, if it said anything"
    if ended.status == UNWRITTEN:
        return (
            "what came of it could not be written: is the disk full, or was .executed deleted? Mend that, build again"
        )
    if ended.status < 0:
        return f"its process was ended by signal {-ended.status}"
    return f"its process ended by itself with exit status {ended.status}, before the example returned"


def _where_it_stood(trace: Path, root: Path) -> dict[str, Any]:
    """The innermost snippet line of a faulthandler dump, if there is one."""
    try:
        frames = re.findall(r'File "(.+?)", line (\d+) in (.+)', trace.read_text("utf-8", "replace"))
    except OSError:
        return {}
    own = [(Path(path), int(line), name) for path, line, name in frames if Path(path).is_relative_to(root / SNIPPETS)]
    if not own:
        return {}
    return {
        "path": own[0][0].relative_to(root).as_posix(),
        "line": own[0][1],
        "trace": [f"{path.relative_to(root).as_posix()}:{line} in {name}" for path, line, name in reversed(own)],
    }
