"""Results on disk, in `.executed/`, keyed by example and fingerprint. Never committed, always safe to delete.

An entry is one JSON file whose first line is the hash of the rest, written aside and renamed into place, so it is
either whole or not there; a damaged one counts as not there. Returned objects lie beside it as pickles of our own
making and are checked against the hash in the entry before they are read.
"""

import json
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from executed.book import BookError, Problem
from executed.capture import visible
from executed.statements import sha

FOLDER = ".executed"
RECORDS = "records"
KEPT = f"{FOLDER}/staged.json"
"""The staged book of last time."""
DAY = 24 * 3600


@dataclass(frozen=True)
class Result:
    """What one run of one example left, and where it came from."""

    name: str
    text: str
    figures: list[str]
    values: dict[str, Any]
    seconds: float
    memory: int
    """The most memory the process held, in bytes."""
    started: float
    fingerprint: str
    parts: dict[str, str]
    files: dict[str, str]
    """Repository files the run read, with the hash of each."""
    needs: dict[str, str]
    """The digest of each result that was handed to the run."""
    machine: str
    pickled: str = ""
    """The hash of the pickle of what the example returned; empty where it could not be pickled."""
    unpickled: str = ""
    """Why it could not be."""
    digest: str = field(default="", compare=False)
    """The hash of everything a page or another example sees of this result."""
    entry: Path = field(default=Path(), compare=False, repr=False)

    def returned(self) -> Any:
        """The object the example returned, tensors and models included.

        Raises LookupError where it could not be kept or its file is damaged.
        """
        if not self.pickled:
            raise LookupError(f"{self.name} returned something that cannot be kept for others: {self.unpickled}")
        try:
            data = self.pickle_file.read_bytes()
        except OSError:
            data = b""
        if sha(data) != self.pickled:
            raise LookupError(f"{self.pickle_file} is damaged; delete it and build again")
        return pickle.loads(data)

    @property
    def recorded(self) -> bool:
        """Whether this came from a record and not from a run on this machine."""
        return self.entry.parent.name == RECORDS

    def intact(self) -> bool:
        """Whether the returned object can still be handed on as it was kept."""
        try:
            return not self.pickled or sha(self.pickle_file.read_bytes()) == self.pickled
        except OSError:
            return False

    @property
    def pickle_file(self) -> Path:
        return self.entry.with_suffix(".pickle")


@dataclass(frozen=True)
class Failure:
    """Why an example left no result."""

    name: str
    fingerprint: str
    message: str
    path: str
    line: int
    trace: tuple[str, ...] = ()
    text: str = ""
    files: dict[str, str] = field(default_factory=dict)
    timeout: float = 0.0
    """The seconds it was given."""


@dataclass
class Outcomes:
    """What a run of the book has: results and failures by example, and which examples really ran."""

    results: dict[str, Result] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """What cannot run here and has no record, and what it lacks."""
    outdated: list[str] = field(default_factory=list)
    """Examples whose record came from other code."""


def failure_text(failure: Failure) -> str:
    """One readable block for a failed example: what happened, where, and how the run got there."""
    lines = [f"{failure.path}:{failure.line}: {failure.name}: {failure.message}"]
    lines += [f"    {line}" for line in failure.trace]
    if failure.text:
        lines += ["  printed before that:", *(f"    {line}" for line in failure.text.split("\n"))]
    return visible("\n".join(lines))


class Store:
    """The folder of results of the repository at `root`, or another folder for the same."""

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        self.root = root
        self.folder = folder or root / FOLDER

    def load(self, name: str, fingerprint: str) -> Result | None:
        """The result stored for this fingerprint, or None: missing, damaged and half-written look the same."""
        found = self._read(self.folder / "results" / name / f"{fingerprint}.json")
        return found if found and (found.name, found.fingerprint) == (name, fingerprint) else None

    def newest(self, name: str) -> Result | None:
        """The latest result of any fingerprint: what to compare with, and how long a run may take."""
        found = [result for entry in self._entries(name) if (result := self._read(entry))]
        return max(found, key=lambda result: result.started, default=None)

    def _entries(self, name: str) -> list[Path]:
        return sorted((self.folder / "results" / name).glob("*.json"))

    def _read(self, entry: Path) -> Result | None:
        try:
            body = json.loads(self.read_text(entry) or "")
            return Result(**body, digest=checksum_of(body), entry=entry)
        except (ValueError, TypeError, KeyError):
            return None

    def read_text(self, file: Path) -> str | None:
        """The text that `write_text` wrote there; None where it is missing or not what was written."""
        try:
            checksum, _, text = file.read_text("utf-8").partition("\n")
        except (OSError, ValueError):
            return None
        return text if checksum == sha(text) else None

    def write_text(self, file: Path, text: str) -> None:
        """Write a text with its checksum. The file is whole or as it was before, whenever the process ends."""
        self._replace(file, f"{sha(text)}\n{text}".encode())

    def write_bytes(self, file: Path, data: bytes) -> None:
        """Write a file that is whole or not there, whenever the process ends."""
        self._replace(file, data)

    def save(self, result: Result, returned: Path) -> Result:
        """Keep a result. `returned` is the pickle that the worker left, or would have left beside its note why not."""
        entry = self.folder / "results" / result.name / f"{result.fingerprint}.json"
        body = {key: value for key, value in asdict(result).items() if key not in ("digest", "entry")}
        with self.writing():
            if (note := returned.with_suffix(".unpickled")).exists():
                body["unpickled"] = note.read_text("utf-8")
            elif returned.exists() or not result.pickled:
                data = returned.read_bytes()
                body["pickled"] = sha(data)
                self._replace(entry.with_suffix(".pickle"), data)
        self.write_text(entry, json.dumps(body))
        self._failure_file(result.name).unlink(missing_ok=True)
        return Result(**body, digest=checksum_of(body), entry=entry)

    def _replace(self, target: Path, data: bytes) -> None:
        with self.writing():
            handle, partial = tempfile.mkstemp(dir=self._work_folder())
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(partial, target)
            except BaseException:
                os.unlink(partial)
                raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Whatever stands in the way of writing becomes a message: BookError."""
        try:
            yield
        except OSError as error:
            file = error.filename2 or error.filename
            message = (
                f"{error.strerror}{f' ({file})' if file else ''}. Results are kept in this folder: make room, or let "
                "it be written, or delete what is in the way; then build again. What had finished is kept"
            )
            raise BookError(Problem(str(self.folder), 1, message)) from None

    def record_file(self, name: str) -> Path:
        return self.root / RECORDS / f"{name}.json"

    def write_record(self, result: Result, code: str) -> Path:
        """Write a result to be committed, with the hash of the code it came from."""
        body = {key: value for key, value in asdict(result).items() if key not in ("digest", "entry", "pickled")}
        text = json.dumps({"code": code, "result": body}, indent=1, ensure_ascii=False) + "\n"
        self._replace(self.record_file(result.name), text.encode())
        return self.record_file(result.name)

    def record(self, name: str) -> tuple[str, Result] | None:
        """A committed result and the hash of the code it came from, if there is a readable one."""
        try:
            found = json.loads(self.record_file(name).read_text("utf-8"))
            body = {**found["result"], "pickled": ""}  # a pickle that somebody committed is never opened
            return found["code"], Result(**body, digest=checksum_of(body), entry=self.record_file(name))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _failure_file(self, name: str) -> Path:
        return self.folder / "failures" / f"{name}.json"

    def save_failure(self, failure: Failure) -> None:
        """Note a failure for `executed status`. It never stands in for a result: a build tries again."""
        self._replace(self._failure_file(failure.name), json.dumps(asdict(failure)).encode())

    def failure(self, name: str) -> Failure | None:
        try:
            return Failure(**json.loads(self._failure_file(name).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def new_folder(self, prefix: str) -> Path:
        """An empty folder for a run in progress."""
        with self.writing():
            return Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=self._work_folder()))

    def _work_folder(self) -> Path:
        folder = self.folder / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        if not (ignore := self.folder / ".gitignore").exists() or not ignore.stat().st_size:  # the disk was full
            ignore.write_text("*\n", "utf-8")
        return folder

    @contextmanager
    def turn(self, waiting: Callable[[], None]) -> Iterator[bool]:
        """One run of the book at a time: two would do the same work twice, and disturb each other's timings.

        `waiting` is called if another one is at it, which may have brought by then what this one wants: True says so.
        The lock goes with its process, however that ends.
        """
        with self.writing():
            from filelock import FileLock, Timeout  # here: most builds run nothing and need no lock

            lock = FileLock(self._work_folder().with_name("lock"))
            waited = False
            try:
                lock.acquire(blocking=False)
            except Timeout:
                waited = True
                waiting()
                lock.acquire()
            list(self._leftovers())
        try:
            yield waited
        finally:
            lock.release()

    def collect(self, keep: set[tuple[str, str]]) -> Iterator[Path]:
        """Delete every entry that is not in `keep` (name, fingerprint) and leftovers of runs that were killed."""
        with self.writing():
            for entry in sorted((self.folder / "results").glob("*/*")):
                if (entry.parent.name, entry.stem) not in keep:
                    yield _deleted(entry)
                    if not any(entry.parent.iterdir()):
                        entry.parent.rmdir()
            names = {name for name, _ in keep}
            for entry in sorted((self.folder / "failures").glob("*.json")):
                if entry.stem not in names:
                    yield _deleted(entry)
            yield from self._leftovers()

    def _leftovers(self) -> Iterator[Path]:
        """Delete what runs that were killed have left, once it is so old that it can belong to none that lives."""
        for leftover in sorted((self.folder / "tmp").glob("*")):
            with suppress(OSError):  # it is gone by now, or another user's
                if abs(time.time() - leftover.lstat().st_mtime) > DAY:  # the clock may have been set back
                    yield _deleted(leftover)


def _deleted(path: Path) -> Path:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def checksum_of(body: dict[str, Any]) -> str:
    """The hash of what others see of a result: its text, figures, values and returned object."""
    seen = [body["text"], body["figures"], body["values"], body.get("pickled", "")]
    return sha(json.dumps(seen, sort_keys=True))
