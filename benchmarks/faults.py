"""What it takes to break a build: `python benchmarks/faults.py` (five to six minutes on two cores; `--quick`: one).

Builds a small book of its own in a temporary folder, breaks the build in every way below, and checks each time that

- every stored result that loads is the one that a clean build gives,
- what had been reported as finished is still there,
- no process is left,
- the message says what is wrong, where, and what to do, and is no traceback,
- the next build without the fault ends well and writes the same bytes as a clean one.

`--only NAME` tries one fault. Faults that need a file system of their own (a full disk, one that cannot be written)
mount it in a namespace that ends with this program: as root or where Linux lets a user make one; else they are left
out, and the table says so. The clock is set back by patching Python's own in every process of a build.
Exit status 1: something did not survive.
"""

import argparse
import http.server
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bs4 import BeautifulSoup

from executed.store import Result, Store

ROOT = Path(__file__).parents[1]
HOOK = (ROOT / "executed/hook.py").as_posix()
MARK = "EXECUTED_FAULTS"
SEED = 20261130
FINISHED = re.compile(r"^  (\S+)  [\d.]+ s, \d+ left$", re.M)
ANSWER = 20
"""Seconds within which any fault must be answered."""

MKDOCS = f"""
    site_name: x
    theme: {{name: material, font: false}}
    plugins: []
    hooks: ['{HOOK}']
    markdown_extensions: [admonition, attr_list, md_in_html, tables, footnotes, pymdownx.details, pymdownx.highlight,
                          pymdownx.superfences]
"""
STAGE = ("executed", "stage", "../staged")
BOOK = {
    "pyproject.toml": '[tool.executed]\npreload = ["matplotlib.pyplot"]\n',
    "dữ liệu.txt": "bốn từ rất ngắn\n",
    "snippets/small.py": """
        import time

        from executed import example


        @example
        def words():
            with open("dữ liệu.txt", encoding="utf-8") as file:
                words = file.read().split()
            print(*words, sep="\\n")
            return {"words": words, "count": len(words)}


        @example
        def trained():
            for step in range(3):
                time.sleep(0.05)
                print("step", step, flush=True)
            return {"weights": [step / 7 for step in range(20_000)]}


        @example
        def tested(trained):
            time.sleep(0.1)
            print(sum(trained["weights"]))
            return {"sum": sum(trained["weights"])}


        @example
        def drawn(tested):
            import matplotlib.pyplot as plt

            plt.plot([0, tested["sum"]])
            plt.title("A line")


        @example
        def slow():
            time.sleep(0.3)
            print("slow and steady")


        @example
        def counted():
            time.sleep(0.1)
            return {"squares": [n * n for n in range(100)]}


        @example(raises=ZeroDivisionError)
        def divided():
            1 / 0
    """,
    "docs/index.md": """
        # Start

        Here begins [the first chapter](<chương một.md>).
    """,
    "docs/chương một.md": """
        # Chương một

        {{ example("small.words") }}

        {{ example("small.trained") }}

        {{ example("small.tested") }}

        {{ example("small.drawn", alt="A line.") }}

        {{ example("small.slow") }}

        {{ example("small.divided") }}

        The last square is {{ small.counted.squares[99] }}, of {{ small.words.count }} words.
    """,
}


class NotHere(Exception):
    """A trial cannot be made on this machine, and why; without a word, where it came at the wrong moment."""


def check(true: object, words: str) -> None:
    if not true:
        raise AssertionError(words)


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
    return root


def processes(mark: str) -> dict[int, str]:
    """All processes that were started, however indirectly, with this mark in their environment: their command lines."""
    found = {}
    for process in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            if f"{MARK}={mark}".encode() in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                found[process] = Path(f"/proc/{process}/cmdline").read_text("utf-8").replace("\0", " ")
        except OSError:
            continue
    return found


def eventually(true: Callable[[], object], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@dataclass
class Said:
    status: int
    text: str


@dataclass
class Clean:
    """What a build without a fault gives."""

    results: dict[str, Result]
    staged: Path
    seconds: float


class Trial:
    """A fresh book, and what builds of it say and leave."""

    clean: Clean
    number = 0

    def __init__(self, folder: Path, files: dict[str, str] = BOOK, name: str = "một cuốn sách") -> None:
        Trial.number += 1
        self.mark = f"{os.getpid()}-{Trial.number}"
        self.place = folder / self.mark
        self.root = write(self.place / name, files)
        self.store = Store(self.root)

    def start(self, *words: str, **environment: str | None) -> "subprocess.Popen[bytes]":
        settings: dict[str, str | None] = {
            **os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT), MARK: self.mark, **environment
        }  # fmt: skip
        self.log = self.place / f"log-{len(list(self.place.iterdir()))}"
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=self.root, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={name: value for name, value in settings.items() if value is not None},
            )  # fmt: skip

    def said(self, build: "subprocess.Popen[bytes]", seconds: float = 60) -> Said:
        try:
            status = build.wait(seconds)
        except subprocess.TimeoutExpired:
            build.kill()
            status = build.wait()
            check(False, f"no answer within {seconds:g} s")
        return Said(status, self.log.read_text("utf-8", "replace"))

    def build(self, *words: str, **environment: str | None) -> Said:
        """What a build says that nobody interrupts."""
        return self.said(self.start(*(words or STAGE), **environment))

    def stored(self) -> dict[str, Result]:
        """Each result that loads, whatever its file looks like."""
        entries = sorted((self.root / ".executed/results").glob("*/*.json"))
        loaded = [self.store.load(entry.parent.name, entry.stem) for entry in entries]
        return {result.name: result for result in loaded if result}

    def has_ended(self) -> None:
        check(eventually(lambda: not processes(self.mark)), f"left running: {processes(self.mark)}")

    def is_sound(self, *said: Said) -> None:
        """Checks all that a fault must leave as it was, then builds again without it."""
        self.has_ended()
        stored = {}
        for name, same in self.clean.results.items():
            if result := self.store.load(name, same.fingerprint):
                stored[name] = result
                check(result.digest == same.digest, f"{name} is stored with another result: {result.text!r}")
                check(result.unpickled == same.unpickled, f"{name} is stored as not to be kept: {result.unpickled}")
        for one in said:
            check("Traceback" not in one.text, f"a traceback:\n{one.text}")
            lost = {name for name in FINISHED.findall(one.text) if name in self.clean.results.keys() - stored.keys()}
            check(not lost, f"finished and lost: {lost}")
        again = self.build()
        check(again.status == 0, f"the next build failed:\n{again.text}")
        self.is_as_clean(again)
        self.has_ended()

    def is_as_clean(self, said: Said, folder: str = "staged") -> None:
        check(pages(self.place / folder) == pages(self.clean.staged), f"other pages or figures:\n{said.text}")
        check(set(self.stored()) >= set(self.clean.results), "the next build left out a result")


def pages(folder: Path) -> dict[str, str]:
    """All files of a staged book, without the line that says when and how long an example ran."""
    texts = {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in folder.rglob("*.[ms][dv]*")}
    return {path: re.sub(r"` ran on .*", "", text) for path, text in texts.items()}


def clean(folder: Path) -> Clean:
    trial, begun = Trial(folder, name="clean"), time.monotonic()
    said = trial.build()
    check(said.status == 0, said.text)
    return Clean(trial.stored(), trial.place / "staged", time.monotonic() - begun)


@dataclass
class Fault:
    words: str
    trials: Callable[[Path], Iterator[Callable[[], str]]]
    """Given a folder, yields trials; each returns what the user was told."""


FAULTS: dict[str, Fault] = {}
Trials = Iterator[Callable[[], str]]


def fault(words: str) -> Callable[[Callable[[Path], Trials]], Callable[[Path], Trials]]:
    def add(function: Callable[[Path], Trials]) -> Callable[[Path], Trials]:
        FAULTS[function.__name__] = Fault(words, function)
        return function

    return add


def told(said: Said, *patterns: str, status: int = 1) -> str:
    """The line that says what to do; it must hold all the patterns."""
    check(said.status == status, f"exit status {said.status}:\n{said.text}")
    lines = [line for line in said.text.splitlines() if re.search(patterns[0], line)]
    check(lines, f"not told {patterns[0]!r}:\n{said.text}")
    for pattern in patterns[1:]:
        check(re.search(pattern, said.text), f"not told {pattern!r}:\n{said.text}")
    return lines[-1].strip()


def at_moments(folder: Path, tries: int, salt: str, hit: Callable[[Trial, "subprocess.Popen[bytes]"], str]) -> Trials:
    """Builds, and breaks each at another moment."""
    moments = random.Random(f"{SEED} {salt}")
    for number in moments.sample(range(tries), tries):
        after = Trial.clean.seconds * (number + moments.random()) / tries

        def one(after: float = after) -> str:
            trial = Trial(folder)
            build = trial.start(*STAGE)
            time.sleep(after)
            try:
                words = hit(trial, build)
            finally:
                said = trial.said(build, ANSWER)
            trial.is_sound(said)
            return words

        yield one


@fault("the build is killed (SIGKILL) at a random moment")
def kill_build(folder: Path) -> Trials:
    def hit(trial: Trial, build: "subprocess.Popen[bytes]") -> str:
        build.kill()
        return "nothing: the shell says that it was killed"

    yield from at_moments(folder, 30, "build", hit)


def strike(trial: Trial, which: int) -> None:
    """Kill the fork server (0) or the youngest of its workers (-1), as soon as there is one."""

    def found() -> list[int]:
        return [process for process, command in processes(trial.mark).items() if "executed.worker" in command]

    eventually(lambda: len(found()) > -which, 2)
    if len(seen := found()) <= -which:
        raise NotHere
    with suppress(ProcessLookupError):
        os.kill(seen[which], signal.SIGKILL)


@fault("the fork server is killed at a random moment")
def kill_server(folder: Path) -> Trials:
    def hit(trial: Trial, build: "subprocess.Popen[bytes]") -> str:
        strike(trial, 0)
        said = trial.said(build, ANSWER)
        check(said.status == 0, f"the build did not get over it:\n{said.text}")
        return "nothing: its jobs run again"

    yield from at_moments(folder, 8, "server", hit)


@fault("a worker is killed at a random moment")
def kill_worker(folder: Path) -> Trials:
    def hit(trial: Trial, build: "subprocess.Popen[bytes]") -> str:
        strike(trial, -1)
        said = trial.said(build, ANSWER)
        return told(said, r"snippets/small\.py:\d+: small\.\w+: .*signal 9") if said.status else ""

    yield from at_moments(folder, 8, "worker", hit)


# A job in the background starts with SIGINT ignored.
INTERRUPTIBLE = """
    import runpy, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@fault("Ctrl-C and SIGTERM, to `executed` and to `mkdocs build`")
def interrupt(folder: Path) -> Trials:
    for number in (signal.SIGINT, signal.SIGTERM):
        for words in (STAGE, ("mkdocs", "build")):
            for after in (0.5, 0.0, 0.8):

                def one(number: int = number, words: tuple[str, ...] = words, after: float = after) -> str:
                    trial = Trial(folder, {**BOOK, "mkdocs.yml": MKDOCS})
                    write(trial.place, {"interruptible.py": INTERRUPTIBLE})
                    build = trial.start("interruptible", *words, PYTHONPATH=f"{ROOT}{os.pathsep}{trial.place}")
                    check(eventually((trial.root / ".executed").exists, ANSWER), "it did not begin")
                    time.sleep(after)
                    build.send_signal(number)
                    begun = time.monotonic()
                    said = trial.said(build, ANSWER)
                    check(time.monotonic() - begun < 3, "it took longer than 3 s to stop")
                    check(said.status, f"it ended before the signal came:\n{said.text}")
                    trial.is_sound(said)
                    if number == signal.SIGINT and words[0] == "executed":
                        return told(said, "interrupted; finished results are kept")
                    return "nothing: the shell says that it was ended" if number == signal.SIGTERM else "Aborted!"

                yield one


def mount(*words: str) -> None:
    if subprocess.run(["mount", *words], capture_output=True).returncode:
        raise NotHere("no file system can be mounted here")


@contextmanager
def mounted(place: Path, *words: str) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    mount(*words, str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def in_namespace() -> None:
    """Start this program again in a mount namespace of its own, where Linux lets us."""
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if "FAULTS_MOUNTED" not in os.environ and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
        os.environ["FAULTS_MOUNTED"] = "1"
        os.execvp(words[0], [*words, sys.executable, *sys.argv])


@fault("the disk is full, or out of inodes, from the start or at some later moment (tmpfs)")
def disk_full(folder: Path) -> Trials:
    sizes = [f"size={kilobytes}k" for kilobytes in (32, 4, 8, 16, 64, 160, 320, 480)]
    inodes = [f"nr_inodes={number}" for number in (2, 3, 5, 10, 14, 20)]
    for limit in sizes + inodes:

        def one(limit: str = limit) -> str:
            trial = Trial(folder)
            with mounted(trial.root / ".executed", "-t", "tmpfs", "-o", limit, "tmpfs") as place:
                said = trial.build()
                words = ""
                if said.status:
                    words = told(said, r"[Nn]o (space|room) left on", r"\.executed|small\.py:\d+: ")
                mount("-o", "remount,size=100m,nr_inodes=10000", str(place))
                trial.is_sound(said)
            return words

        yield one


@fault("`.executed` cannot be written (a read-only mount)")
def read_only(folder: Path) -> Trials:
    for prepared in (False, True):

        def one(prepared: bool = prepared) -> str:
            trial = Trial(folder)
            if prepared:
                check(trial.build().status == 0, "the first build failed")
            with mounted(trial.root / ".executed", "--bind", str(trial.root / ".executed")) as place:
                mount("-o", "remount,bind,ro", str(place))
                if prepared:  # nothing needs to run, and so nothing needs to be written
                    (trial.root / "docs/chương một.md").write_text("# Một\n" + BOOK["docs/chương một.md"])
                    write(trial.root, {"docs/chương một.md": BOOK["docs/chương một.md"] + "\nMore.\n"})
                    check(trial.build().status == 0, "a build that has all its results failed")
                    write(trial.root, BOOK)
                    write(trial.root, {"dữ liệu.txt": "khác\n"})
                said = trial.build()
                words = told(said, r"\.executed:1: Read-only file system .*build again")
            write(trial.root, BOOK)
            trial.is_sound(said)
            return words

        yield one


@fault("`.executed` is a file, a link to nowhere, or holds files where folders should be")
def no_folder(folder: Path) -> Trials:
    def file(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not a folder")

    kinds: list[Callable[[Path], None]] = [
        file,
        lambda path: path.symlink_to("/nonexistent/place"),
        lambda path: path.symlink_to(path),
        lambda path: file(path / "tmp"),
        lambda path: file(path / "results"),
        lambda path: (path / "lock").mkdir(parents=True),
    ]
    for kind in kinds:

        def one(kind: Callable[[Path], None] = kind) -> str:
            trial = Trial(folder)
            place = trial.root / ".executed"
            kind(place)
            said = trial.build()
            words = told(said, r"\.executed:1: .*build again")
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
            trial.is_sound(said)
            return words

        yield one


@fault("`.executed` is deleted in the middle of a build")
def deleted(folder: Path) -> Trials:
    def hit(trial: Trial, build: "subprocess.Popen[bytes]") -> str:
        shutil.rmtree(trial.root / ".executed", ignore_errors=True)
        said = trial.said(build, ANSWER)
        words = told(said, "[Bb]uild(s?) again|build again") if said.status else ""
        (trial.log).write_text("")  # what had finished was deleted
        return words

    yield from at_moments(folder, 8, "deleted", hit)


@fault("foreign files, folders and links among the stored results")
def foreign(folder: Path) -> Trials:
    def one() -> str:
        trial = Trial(folder)
        check(trial.build().status == 0, "the first build failed")
        for result in trial.stored().values():
            beside = result.entry.parent
            (beside / "notes.txt").write_text("hello")
            (beside / "list.json").write_text("[1, 2]")
            (beside / "null.json").write_text("null")
            (beside / "folder.json").mkdir()
            (beside / "link.json").symlink_to("nowhere")
            shutil.copy(result.entry, beside / f"{'0' * 64}.json")  # a whole entry under a wrong name
            (beside / ".DS_Store").write_bytes(bytes(range(256)))
        check(trial.store.load("small.trained", "0" * 64) is None, "an entry was taken for another")
        (trial.root / ".executed/results/a file").write_text("")
        pickle = trial.stored()["small.trained"].pickle_file
        pickle.unlink()
        pickle.mkdir()  # what was returned is a folder now, and another example needs it
        shutil.rmtree(trial.stored()["small.tested"].entry.parent)
        said = trial.build("executed", "status")
        check(said.status == 0, said.text)
        said = trial.build()
        words = told(said, r"\.executed:1: Is a directory .*build again") if said.status else "nothing"
        if pickle.is_dir():
            pickle.rmdir()
        trial.is_sound(said)
        collected = trial.build("executed", "gc")
        check(collected.status == 0, collected.text)
        left = [str(file) for file in (trial.root / ".executed/results").glob("*/*") if len(file.stem) != 64]
        check(not left, f"left by gc: {left}")
        trial.is_sound(collected)
        return words

    yield one


@fault("every byte of entries, returned objects and what is remembered changed in turn; each cut off at every length")
def corrupted(folder: Path) -> Trials:
    moments = random.Random(SEED)
    trial = Trial(folder)

    def damages(file: Path, places: int) -> Iterator[str]:
        data = file.read_bytes()
        for position in range(0, len(data), max(1, len(data) // places)):
            other = data[position] ^ moments.randrange(1, 256)
            for damaged in (data[:position] + bytes([other]) + data[position + 1 :], data[:position]):
                file.write_bytes(damaged)
                yield f"byte {position} of {file.name}, which has {len(damaged)} now"

    def one(name: str, pickled: bool) -> str:
        if not trial.stored():
            trial.build()
        result = trial.stored()[name]
        for damage in damages(result.pickle_file if pickled else result.entry, 4000):
            found = trial.store.load(name, result.fingerprint)
            if pickled:
                check(found and not found.intact(), f"a damaged object counts as intact: {damage}")
            else:
                check(found in (None, result), f"a damaged entry was read: {damage}")
        trial.is_sound()
        return "nothing: it runs again, `executed status` says that its stored result is damaged"

    def remembered() -> str:
        files = sorted((trial.root / ".executed").glob("*.json"))
        check({"staged.json", "reach.json"} <= {file.name for file in files}, f"remembered is only {files}")
        for file in files:
            for damage in damages(file, 1000):
                check(trial.store.read_text(file) is None, f"a damaged file was read: {damage}")
        trial.is_sound()
        return "nothing: it is worked out again"

    for name in ("small.words", "small.drawn"):
        yield lambda name=name: one(name, False)  # type: ignore[misc]
    yield lambda: one("small.counted", True)
    yield remembered


@fault("the clock is set back, and files from the future")
def clock(folder: Path) -> Trials:
    def shifted(trial: Trial, days: int) -> Said:
        patch = f"import time\nnow = time.time\ntime.time = lambda: now() + {days * 24 * 3600}\n"
        write(trial.place / "patched", {"sitecustomize.py": patch})
        return trial.build(PYTHONPATH=f"{ROOT}{os.pathsep}{trial.place / 'patched'}")

    def one(first: int, second: int) -> str:
        trial = Trial(folder)
        first_said = shifted(trial, first)
        check(first_said.status == 0, first_said.text)
        for file in (*trial.root.rglob("*.py"), *trial.root.rglob("*.json"), trial.root / "dữ liệu.txt"):
            os.utime(file, (time.time() + first * 24 * 3600,) * 2)
        again = shifted(trial, second)
        check("nothing ran" in again.text, f"something ran again:\n{again.text}")
        for path, old, new in (("dữ liệu.txt", "bốn", "bốt"), ("snippets/small.py", "slow and", "slow or ")):
            file = trial.root / path
            before = file.stat()
            file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            check(file.stat().st_size == before.st_size, "the edit is to have the same length")
        edited = shifted(trial, second)
        check(sorted(FINISHED.findall(edited.text)) == ["small.slow", "small.words"], f"not seen:\n{edited.text}")
        write(trial.root, BOOK)
        check(trial.build().status == 0, "the way back failed")
        trial.is_sound(first_said, again)
        return "nothing: only contents count"

    for first, second in ((400, 0), (0, -400)):
        yield lambda first=first, second=second: one(first, second)  # type: ignore[misc]


@fault("eight builds at once; and the one that is at work is killed")
def eight(folder: Path) -> Trials:
    def one(kill: bool) -> str:
        trial = Trial(folder)
        builds = []
        for number in range(8):
            build = trial.start("executed", "stage", f"../staged{number}")
            builds.append((build, trial.log))
        if kill:
            check(eventually(lambda: any(FINISHED.search(log.read_text("utf-8")) for _, log in builds), 30), "none ran")
            first = next(build for build, log in builds if FINISHED.search(log.read_text("utf-8")))
            first.kill()
        said = [Said(build.wait(60), log.read_text("utf-8")) for build, log in builds]
        statuses = [one.status for one in said]
        check(sorted(statuses) == [-9] * kill + [0] * (8 - kill), f"{statuses}\n" + said[-1].text)
        ran = [name for one in said for name in FINISHED.findall(one.text)]
        check(sorted(ran) == sorted(Trial.clean.results), f"work was done twice, or not at all: {ran}")
        for number, status in enumerate(statuses):
            if status == 0:
                trial.is_as_clean(said[number], f"staged{number}")
        trial.is_sound(*said)
        return next(line.strip() for one in said for line in one.text.splitlines() if "waiting for it" in line)

    for kill in (False, True):
        yield lambda kill=kill: one(kill)  # type: ignore[misc]


@fault("no home, a home that is not there or cannot be written, no folder for temporary files")
def homeless(folder: Path) -> Trials:
    def one(**environment: str | None) -> str:
        trial = Trial(folder, {**BOOK, "pyproject.toml": "[tool.executed]\npreload = []\n"})
        said = trial.build(**environment)
        check(said.status == 0, said.text)
        trial.is_sound(said)
        return "nothing"

    def unwritable() -> str:
        with mounted(folder / "home", "-t", "tmpfs", "-o", "ro", "tmpfs") as home:
            return one(HOME=str(home), XDG_CACHE_HOME=None, XDG_CONFIG_HOME=None, MPLCONFIGDIR=None)

    yield lambda: one(HOME=None, MPLCONFIGDIR=None)
    yield lambda: one(HOME="/nonexistent", MPLCONFIGDIR=None, TMPDIR="/nonexistent")
    yield unwritable


# What an example may do to the engine: its body, and what must come of it (`=`: printed; else a failure that says it).
UNRULY: dict[str, tuple[str, str]] = {
    "daemon": ("""
        import os, time
        for session in range(2):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(1000)
                os._exit(0)
        print("gone")""", "=gone"),
    "daemon_and_crash": ("""
        import ctypes, os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        ctypes.string_at(0)""", "ended by signal 11"),
    "daemon_and_limit": ("""
        import subprocess, time
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        time.sleep(1000)""", "ran longer than its limit of 2 s"),
    "both_return": ("import os\nprint('once', flush=True)\nos.fork()", "=once"),
    "closes_output": ("import os\nprint('before')\nos.close(1)\nprint('after')", "Bad file descriptor"),
    "closes_stream": ("import sys\nprint('before')\nsys.stdout.close()\nsys.stderr = None", "=before"),
    "aborts": ("import os\nos.abort()", "ended by signal 6"),
    "elsewhere": ("import os\nos.chdir('/')\nprint(os.getcwd())", "=/"),
    "deletes_its_folder": ("""
        import os, shutil
        shutil.rmtree(os.path.dirname(os.readlink("/proc/self/fd/1")))""", "could not be written"),
    "hangs_at_exit": ("import atexit, time\natexit.register(time.sleep, 1000)\nprint('ok')", "=ok"),
    "threads": ("""
        import threading, time
        for _ in range(3):
            threading.Thread(target=time.sleep, args=[1000]).start()
        print("ok")""", "=ok"),
    "late_thread": ("""
        import threading, time
        def late():
            time.sleep(1000)
            print("late")
        threading.Thread(target=late, daemon=True).start()
        print("ok")""", "=ok"),
    "deaf": ("""
        import signal, time
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(1000)""", "ran longer than its limit of 2 s"),
    "stops_itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "ran longer than its limit of 2 s"),
    "patches": ("""
        import builtins, io, json, os, pathlib, time
        builtins.open = json.dumps = json.loads = time.sleep = lambda *_, **__: {}["no"]
        pathlib.Path.exists = lambda self: False
        said, builtins.print = print, lambda *_, **__: None
        said("ok")""", "=ok"),
    "ends_the_server": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "ended twice"),
    "floods": ("print('x' * 10_000_000)", "printed more than 1 MiB"),
    "child_floods": ("import subprocess\nsubprocess.run(['head', '-c', '10000000', '/dev/zero'])", "more than 1 MiB"),
    "exits": ("raise SystemExit('bye')", "called sys.exit('bye')"),
    "endless": ("loop = []\nloop.append(loop)\nreturn loop", "RecursionError"),
    "no_path": ("import sys\nsys.path.clear()\nprint('ok')", "=ok"),
}  # fmt: skip


@fault("examples that fork daemons, kill the fork server, patch builtins, hang, flood, close and delete, in one book")
def unruly(folder: Path) -> Trials:
    def one() -> str:
        source = "from executed import example\n"
        for name, (body, _) in UNRULY.items():
            lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
            source += f"\n\n@example(timeout=2)\ndef {name}():\n{lines}\n"
        chapter = "".join(f'{{{{ example("unruly.{name}") }}}}\n\n' for name in UNRULY)
        trial = Trial(folder, {**BOOK, "snippets/unruly.py": source, "docs/unruly.md": chapter})
        begun = time.monotonic()
        said = trial.build()
        check(time.monotonic() - begun < 40, "it took too long")
        stored = {name: result.text for name, result in trial.stored().items()}
        for name, (_, outcome) in UNRULY.items():
            if outcome[0] == "=":
                got = stored.get(f"unruly.{name}")
                check(got == outcome[1:], f"{name}: {got!r} instead of {outcome[1:]!r}\n{said.text}")
            else:
                told(said, rf"snippets/unruly\.py:\d+: unruly\.{name}: .*{re.escape(outcome)}")
        check(
            len(trial.stored()) == len(trial.clean.results) + sum(one[1][0] == "=" for one in UNRULY.values()),
            said.text,
        )
        (trial.root / "snippets/unruly.py").unlink()
        (trial.root / "docs/unruly.md").unlink()
        trial.is_sound(said)
        return "each in one block: `snippets/unruly.py:LINE: unruly.NAME: ...`, " + told(
            said, "ran longer than its limit"
        )

    yield one


ATTACKS = (
    "</svg><script>alert(1)</script>", "<script>alert(1)</script>", "</pre></code><img src=x onerror=alert(1)>",
    "{{ 1 }}", "{% raw %}", "---", "```\n<b>bold</b>", "~~~", "]]>", "<![CDATA[", "&lt;b&gt; & &amp;", "<!--", "-->",
    "[link](javascript:alert(1))", "\x1b[31mred\x1b[0m", "\x1b]8;;javascript:alert(1)\x07", "\x00\x07\x7f",
    "$x$ \\(y\\)", "| a | b |", '!!! danger "x"', "[^1]: note", "# heading", "@@@", "\u202egnirts", "\ud800", "\ufffe",
)  # fmt: skip


@fault("output, figures, keys and values that hold markup, scripts, escape codes, broken UTF-8 (`mkdocs build`)")
def hostile(folder: Path) -> Trials:
    figures = 200
    source = f"""
        import sys

        from executed import example

        ATTACKS = {ATTACKS!r}


        @example
        def printed():
            for attack in ATTACKS:
                print(attack)
            sys.stdout.flush()
            sys.stdout.buffer.write(b"\\xff\\xfe\\xc3(\\xa0\\xf8 broken\\n")
            return {{"attacks": list(ATTACKS), "by_name": {{attack: attack for attack in ATTACKS}}}}


        @example
        def labelled():
            import matplotlib.pyplot as plt

            figure, axes = plt.subplots()
            shown = [attack for attack in ATTACKS if attack != "\\ud800"]
            for row, attack in enumerate(shown):
                axes.text(0, row / len(shown), attack, gid=f'"><script>alert({{row}})</script>', parse_math=False)
            axes.set(title=shown[0], xlabel=shown[2], ylabel=shown[8])


        @example
        def many():
            import matplotlib.pyplot as plt

            plt.rcParams["figure.max_open_warning"] = 0
            for number in range({figures}):
                plt.figure(figsize=(1, 1))
                plt.title(f"Figure {{number}}")


        @example(raises=ValueError)
        def raised():
            raise ValueError("<script>alert(1)</script> {{{{ 1 }}}}")
    """
    quoted = "".join(f"- Quoted: {{{{ hostile.printed.attacks[{number}] }}}}.\n" for number in range(len(ATTACKS)))
    alts = ", ".join(['"One of many."'] * figures)
    chapter = f"""# Hostile\n
{{{{ example("hostile.printed") }}}}

{{{{ figure("hostile.labelled", alt="Labels & <script>alert()</script>", caption="</svg> & ]]>") }}}}

{{{{ example("hostile.raised") }}}}

By name: {{{{ hostile.printed.by_name["-->"] }}}} and {{{{ hostile.printed.by_name["]]>"] }}}}.

{quoted}

{{{{ example("hostile.many", alt=[{alts}]) }}}}
"""

    def one() -> str:
        own = {"snippets/hostile.py": source, "docs/index.md": chapter, "mkdocs.yml": MKDOCS}
        trial = Trial(folder, {**BOOK, "docs/chương một.md": "# Một\n\nPlain.\n", **own})
        (trial.root / "snippets/small.py").unlink()
        said = trial.build("mkdocs", "build", "--strict", "--use-directory-urls")
        check(said.status == 0 and "Traceback" not in said.text, said.text)
        trial.has_ended()
        html = (trial.root / "site/index.html").read_text("utf-8")
        files = sorted(trial.root.glob("site/**/index.html"), key=lambda file: file.stat().st_size)
        plain, page = (BeautifulSoup(file.read_bytes(), "html.parser") for file in files)
        scripts = [str(script) for script in page.find_all("script")]
        check(len(scripts) == len(plain.find_all("script")) and "alert(" not in "".join(scripts), "a script came in")
        handlers = [(one.name, name) for one in page.find_all(True) for name in one.attrs if name.startswith("on")]
        check(not handlers, f"handlers: {handlers}")
        addresses = [str(one.get(name, "")) for one in page.find_all(True) for name in ("href", "src", "xlink:href")]
        check(not any("javascript:" in address for address in addresses), "an address that runs")
        (article,) = page.find_all("article")
        allowed = (
            r"h1|h2|p|pre|code|span|div|ul|li|a|nav|button|title|details|summary"
            r"|figure|figcaption|svg|g|path|text|defs|use|rect|clippath"
        )
        foreign = {one.name for one in article.find_all(True) if not re.fullmatch(allowed, one.name)}
        check(not foreign, f"elements: {foreign}")
        check(len(article.find_all("svg")) >= figures + 1, "a figure is missing")
        text = article.get_text()
        for attack in ATTACKS:
            shown = re.sub(r"\x1b.*\x07|\x1b\[\d*m|[\x00-\x09\x0b-\x1f\x7f\u202e\ud800\ufffe]|\n.*", "", attack)
            check(text.count(shown) >= 3, f"{attack!r} is not shown as it is: {text.count(shown)} times")
        check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html), "a control character in the page")
        for file in trial.root.glob("site/figures/*.svg"):
            ElementTree.parse(file)
        return "nothing: it is shown, letter by letter"

    yield one


@fault("names with spaces, quotes, signs and Vietnamese letters: the repository, a chapter, a file that is read")
def names(folder: Path) -> Trials:
    for name in ("một cuốn sách", 'it\'s 100 % "#1" & $HOME; {{ x }} ✓', "-rf", ".hidden"):

        def one(name: str = name) -> str:
            trial = Trial(folder, {**BOOK, "mkdocs.yml": MKDOCS}, name)
            built = trial.build("mkdocs", "build", "--strict")
            check(built.status == 0, built.text)
            page = (trial.root / "site/chương một/index.html").read_text("utf-8")
            check("bốn" in page and "slow and steady" in page, "the page is incomplete")
            trial.is_sound(built)
            return "nothing"

        yield one


@fault("snippet files and chapters that are empty, no UTF-8, or have a byte order mark, CRLF or null bytes")
def odd_files(folder: Path) -> Trials:
    good = textwrap.dedent("""
        from executed import example

        @example
        def one():
            print("một")
    """)
    chapter = '# One\n\n{{ example("odd.one") }}\n'
    kinds: dict[str, tuple[bytes, bytes, str]] = {
        "empty": (b"", b"# One\n", ""),
        "mark": (b"\xef\xbb\xbf" + good.encode(), b"\xef\xbb\xbf" + chapter.encode(), ""),
        "crlf": (good.replace("\n", "\r\n").encode(), chapter.replace("\n", "\r\n").encode(), ""),
        "latin": (
            good.encode("utf-8").replace("một".encode(), b"m\xf4t"),
            chapter.encode(),
            r"snippets/odd\.py:\d+: .*(UTF|utf)",
        ),
        "utf16": (good.encode("utf-16"), chapter.encode(), r"snippets/odd\.py:1: "),
        "null": (good.encode() + b"\0", chapter.encode(), r"snippets/odd\.py:\d+: .*null"),
        "chapter": (good.encode(), chapter.encode() + "một".encode("latin-1", "replace") + b"\xf4\xff", ""),
        "no end": (good.rstrip().encode() + b"\\", chapter.encode(), r"snippets/odd\.py:\d+: "),
        "directory": (b"", b"# One\n", ""),
    }
    for kind, (module, page, message) in kinds.items():

        def one(kind: str = kind, module: bytes = module, page: bytes = page, message: str = message) -> str:
            trial = Trial(folder)
            (trial.root / "snippets/odd.py").write_bytes(module)
            if kind == "directory":
                (trial.root / "snippets/odd.py").unlink()
                (trial.root / "snippets/odd.py").mkdir()
            (trial.root / "docs/odd.md").write_bytes(page)
            said = trial.build()
            words = told(said, message) if message else ""
            check(message or said.status == 0, said.text)
            check("Traceback" not in said.text, said.text)
            if not message and kind not in ("empty", "directory"):
                check(trial.stored()["odd.one"].text == "một", "another text")
            (trial.root / "docs/odd.md").unlink()
            shutil.rmtree(trial.root / "snippets/odd.py") if kind == "directory" else (
                trial.root / "snippets/odd.py"
            ).unlink()
            trial.is_sound(said)
            return words

        yield one


REVISION = "0123456789abcdef0123456789abcdef01234567"
HUB_FILES = {"config.json": b"{}", "vocab.txt": b"word 1\n" * 100, "pytorch_model.bin": bytes(range(256)) * 4000}


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub whose line can be cut in the middle of the weights: no byte more, and no end either."""

    cut = threading.Event()
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        if self.path.startswith("/api/"):
            files = [{"type": "file", "path": name, "size": len(data), "oid": name} for name, data in HUB_FILES.items()]
            siblings = [{"rfilename": name} for name in HUB_FILES]
            answer = files if "/tree/" in self.path else {"id": "someone/model", "sha": REVISION, "siblings": siblings}
            return self.answer(json.dumps(answer).encode(), {"Content-Type": "application/json"})
        data = HUB_FILES[name]
        begun = int(re.sub(r"bytes=(\d+)-.*", r"\1", self.headers.get("Range", "bytes=0-")))
        about = {"X-Repo-Commit": REVISION, "ETag": f'"{name}"', "Accept-Ranges": "bytes"}
        if begun:
            about["Content-Range"] = f"bytes {begun}-{len(data) - 1}/{len(data)}"
        return self.answer(data[begun:], about, 206 if begun else 200)

    def answer(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "GET" and len(data) > 100_000 and self.cut.is_set():
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            while self.cut.is_set():
                time.sleep(0.05)
            self.close_connection = True
        elif self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@fault("the network is unplugged in the middle of a download, and later plugged in again")
def unplugged(folder: Path) -> Trials:
    def one() -> str:
        source = f"""
            from pathlib import Path

            from executed import example
            from executed.outside import hub_cache


            @example(needs="hub:someone/model@{REVISION}")
            def weighed():
                (snapshot,) = hub_cache().glob("models--someone--model/snapshots/*")
                print({{file.name: file.stat().st_size for file in sorted(snapshot.iterdir())}})
        """
        chapter = '{{ example("hub.weighed") }}\n'
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        trial = Trial(folder, {**BOOK, "snippets/hub.py": source, "docs/hub.md": chapter})
        address = f"http://127.0.0.1:{server.server_port}"
        place: dict[str, str | None] = dict.fromkeys(("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy"))
        place |= {"HF_ENDPOINT": address, "HF_HOME": str(trial.place / "hub")}
        Hub.cut.set()
        said = trial.said(trial.start("executed", "run", "hub.weighed", **place), 25)
        words = told(said, r"snippets/hub\.py:\d+: someone/model could not be downloaded: .*again")
        check("Traceback" not in said.text, said.text)
        trial.has_ended()
        without = trial.build(**place)
        check(without.status == 0, without.text)
        page = (trial.place / "staged/hub.md").read_text("utf-8")
        check("the weights of someone/model" in page, "half a model counts as one")
        Hub.cut.clear()
        again = trial.said(trial.start("executed", "run", "hub.weighed", **place), 25)
        sizes = {name: len(data) for name, data in sorted(HUB_FILES.items())}
        check(again.status == 0 and str(sizes) in again.text, f"the second try: {again.text}")
        server.shutdown()
        (trial.root / "snippets/hub.py").unlink()
        (trial.root / "docs/hub.md").unlink()
        trial.is_sound(said, again)
        return words

    yield one


def plain(words: str, folder: Path) -> str:
    """A message without what differs from trial to trial, for a table."""
    words = re.sub(rf"{folder}/[^/]+/[^/]+/", "", words).replace("|", "\\|")
    words = re.sub(r"tmp/tmp\w+|[0-9a-f]{64}", "...", words)
    return re.sub(r"small\.py:\d+: small\.\w+", "small.py:LINE: small.NAME", words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one try of each, without the network")
    parser.add_argument("--only", choices=list(FAULTS), help="one fault")
    arguments = parser.parse_args()
    if sys.platform == "linux":
        in_namespace()
    failed = False
    print("| fault | tries | survived | what the user is told |\n| --- | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        folder = Path(temporary).resolve()
        Trial.clean = clean(folder)
        for name in [arguments.only] if arguments.only else FAULTS:
            if arguments.quick and name == "unplugged":
                continue
            begun, tries, survived, words = time.monotonic(), 0, 0, dict[str, None]()
            for trial in itertools.islice(FAULTS[name].trials(folder), 1 if arguments.quick else None):
                tries += 1
                try:
                    words[plain(trial(), folder)] = None
                    survived += 1
                except AssertionError as error:
                    print(f"{name}: {error}", file=sys.stderr)
                except NotHere as error:
                    tries -= 1
                    words[f"not tried: {error}" if str(error) else ""] = None
            failed |= survived < tries
            said = "; or: ".join(list(filter(None, words))[:2])
            print(f"| {FAULTS[name].words} | {tries} | {survived} | {said} |", flush=True)
            print(f"{name}: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
