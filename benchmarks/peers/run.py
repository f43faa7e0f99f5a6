"""Our engine beside others, on the same chapters: `python benchmarks/peers/run.py` (README.md says what is measured).

Run it in the book's own environment, with nothing else running. The first time it installs each peer into an
environment of its own below --cache: about 2 minutes and 1.3 GB each, with PyTorch's CPU build. Then all contenders
build the book in turn, scenario by scenario, so that a slow moment of the machine hits all of them: about 17 minutes
on two cores with three peers. Prints Markdown tables. `--real` adds a cold build of this repository's book: 6 minutes.
"""

import argparse
import contextlib
import html
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import workload
from contenders import OURS, PEERS, ROOT, WORKLOAD, Contender
from workload import EDITS

from executed.book import Book
from executed.store import Result, Store

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "executed-transformer/peers"
TARGETS = {"cold": 1.0, "warm": 1.0, "prose": 1.0, "code": 1.0, "common": 1.0, "plot": 0.2}
"""Each scenario that is timed, and the most that ours may take, in times of the fastest peer that answers rightly."""
LIMIT = 1.25
"""The most that a cold build of ours may take, in times of the least that its examples allow."""
BUILD_LIMIT, HANG_LIMIT = 300, 60
"""Seconds after which the benchmark itself ends a build; the second for a cell that never ends."""


@dataclass(frozen=True)
class Build:
    """What one build did."""

    seconds: float
    status: int
    ran: dict[str, set[int]]
    """The cells that ran, by chapter."""
    wrong: str
    """What is wrong with its answer; empty where nothing is."""
    log: str
    hung: bool
    left: int
    """Processes that it left behind."""


class Bench:
    """One contender's project, and a copy of the state that a cold build left it in."""

    def __init__(self, contender: Contender, cache: Path) -> None:
        self.contender = contender
        self.bin = cache / "venvs" / contender.name / "bin" if contender.requirements else Path(sys.executable).parent
        self.work = cache / "work" / contender.name
        self.project, self.built = self.work / "project", self.work / "built"
        self.colds: list[tuple[float, float, float]] = []
        """Of our own cold builds: what each took, and the least that its examples allowed."""

    def builds(self, scenario: str) -> list[Build]:
        """Build the scenario from the state that its description names, here or in README.md."""
        if scenario == "cold":
            return [self._cold()]
        self.restore()
        if scenario == "warm":
            self._build()
            return [self._build()]
        if scenario in TARGETS:
            self._write(scenario)
            return [self._build(scenario)]
        if scenario == "loop":
            self._write(scenario)
            return [self._build(scenario, limit=HANG_LIMIT)]
        made = []
        for strict in (True, False):  # each twice: a failure must not count as done the second time
            self.restore()
            self._write(scenario, strict=strict)
            made += [self._build(scenario, strict), self._build(scenario, strict)]
        return made

    def _cold(self) -> Build:
        shutil.rmtree(self.work, ignore_errors=True)
        self.project.mkdir(parents=True)
        self._write()
        build = self._build("cold")
        if build.wrong:
            raise SystemExit(f"{self.contender.name}: the cold build failed: {build.wrong}\n{build.log[-3000:]}")
        if self.contender is OURS:
            self.colds.append((build.seconds, *least(self.project)))
        shutil.copytree(self.project, self.built, symlinks=True)
        return build

    def restore(self) -> None:
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self.built, self.project, symlinks=True)

    def _write(self, *edits: str, strict: bool = True) -> None:
        files = self.contender.files(workload.chapters(*edits), workload.common(*edits), strict)
        for path, text in files.items():
            target = self.project / path
            if not target.exists() or target.read_text("utf-8") != text:  # keep the time of what is as it was
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, "utf-8")

    def _build(self, scenario: str = "warm", strict: bool = True, limit: float = BUILD_LIMIT) -> Build:
        trace, log = self.work / "trace.txt", self.work / "build.log"
        trace.unlink(missing_ok=True)
        importable = [HERE / "trace", *([self.project / self.contender.path] if self.contender.path else [])]
        environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.bin.parent),
            "PYTHONPATH": ":".join(map(str, importable)),
            "PEERBENCH_TRACE": str(trace),
            "NO_COLOR": "1",
            "NO_MKDOCS_2_WARNING": "1",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        program, *arguments = self.contender.command(strict)
        command = [str(self.bin / program), *arguments]
        with log.open("wb") as output:
            begun = time.perf_counter()
            child = subprocess.Popen(
                command, cwd=self.project, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(limit)
            seconds = time.perf_counter() - begun
        hung = child.poll() is None
        left = end_all(f"PEERBENCH_TRACE={trace}") - hung
        ran: dict[str, set[int]] = {}
        for line in trace.read_text("utf-8").splitlines() if trace.exists() else ():
            chapter, cell = line.split()
            ran.setdefault(chapter, set()).add(int(cell))
        wrong = self._wrong(scenario, child.wait(), set(ran))
        return Build(seconds, child.returncode, ran, wrong, log.read_text("utf-8", "replace"), hung, left)

    def _wrong(self, scenario: str, status: int, ran: set[str]) -> str:
        if scenario == "cold":
            shown = dict.fromkeys(("ch01", "ch02", "ch03", "ch04", "ch05"), "check 3027") | {"ch06": "palette 5065"}
            due = set(shown)
        else:
            edit = EDITS.get(scenario)
            shown = dict.fromkeys(edit.pages, edit.fresh) if edit else {}
            due = set(edit.runs) if edit else set()
        stale = [page for page, text in shown.items() if text not in self.text(page)]
        needless = sorted(ran - due)
        words = [f"**stale** {' '.join(stale)}"] if stale else []
        words += [f"**needless** {' '.join(needless)}"] if needless else []
        words += [f"exit {status}"] if status else []
        return ", ".join(words)

    def text(self, chapter: str) -> str:
        """The built page of a chapter without its tags: highlighters split outputs."""
        page = self.project / self.contender.page(chapter)
        return html.unescape(re.sub(r"<[^<>]*>", "", page.read_text("utf-8", "replace"))) if page.exists() else ""

    def named(self, scenario: str, log: str) -> str:
        """What a build says about the cell that raises, or never ends: the page, the line of its file."""
        edit = EDITS[scenario]
        files = self.contender.files(workload.chapters(scenario), "", True)
        source = next(text for path, text in files.items() if edit.where in path).splitlines()
        first = next(number for number, line in enumerate(source, 1) if "boom-" in line or "while True:" in line)
        told = [
            line for line in log.splitlines() if re.search(r"error|fail|exception|longer|file |shown by", line, re.I)
        ]
        page = any(re.search(rf'{edit.where}(?!")', line) for line in told)
        place = re.search(rf"(?:line |:)({first}|{first + (scenario == 'loop')})\b", log)
        return " and ".join(["page"] * page + ["line"] * bool(place)) or "neither page nor line"

    def versions(self) -> str:
        """What is installed; asking for it also brings the files into memory, so that no build waits for the disk."""
        packages = [*(self.contender.requirements or ("mkdocs-material",)), *WORKLOAD]
        code = "import sys, torch, matplotlib.pyplot, importlib.metadata as found\n"
        code += "print(', '.join(f'{name} {found.version(name)}' for name in sys.argv[1:]))"
        names = [name.partition("=")[0] for name in packages]
        asked = subprocess.run([self.bin / "python", "-c", code, *names], check=True, capture_output=True, text=True)
        return asked.stdout.strip()


def end_all(mark: str) -> int:
    """End what still runs with this in its environment; how many processes that were."""
    ended = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
    return ended


def install(contender: Contender, cache: Path) -> None:
    """An environment for a peer, kept while what it asks for stays the same."""
    folder = cache / "venvs" / contender.name
    wanted = "\n".join((*WORKLOAD, *contender.requirements))
    note = folder / "requirements.txt"
    if note.exists() and note.read_text("utf-8") == wanted:
        return
    print(f"installing {contender.name}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "-qq", *wanted.split()], check=True)
    note.write_text(wanted, "utf-8")


Builds = dict[str, dict[str, list[Build]]]
"""By scenario and contender."""


def measure(benches: list[Bench], scenarios: list[str], rounds: int) -> Builds:
    made: Builds = {scenario: {bench.contender.name: [] for bench in benches} for scenario in scenarios}
    for bench in benches:
        if "cold" not in scenarios and not bench.built.exists():
            bench.builds("cold")
    for scenario in scenarios:
        for turn in range(rounds if scenario in TARGETS else 1):
            for bench in benches:
                builds = bench.builds(scenario)
                made[scenario][bench.contender.name] += builds
                took = " ".join(f"{build.seconds:.1f}" for build in builds)
                print(f"{scenario} {turn + 1}: {bench.contender.name} {took} s", file=sys.stderr, flush=True)
    return made


def seconds(builds: list[Build]) -> float:
    return statistics.median(build.seconds for build in builds)


def what_ran(build: Build) -> str:
    parts = [
        chapter if len(cells) == 5 else f"{chapter} cell {' '.join(map(str, sorted(cells)))}"
        for chapter, cells in sorted(build.ran.items())
    ]
    return f"ran {', '.join(parts) if len(build.ran) < 6 else 'all six'}" if parts else "ran nothing"


def speed_tables(made: Builds) -> None:
    timed = [scenario for scenario in made if scenario in TARGETS]
    if not timed:
        return
    rows = []
    for name in made[timed[0]]:
        row = [name]
        for scenario in timed:
            *_, last = builds = made[scenario][name]
            wrong = f", {last.wrong}" if last.wrong else ""
            row.append(f"{seconds(builds):.2f} s, {what_ran(last)}{wrong}")
        rows.append(row)
    table(["", *timed], rows)
    if len(rows) == 1:
        return
    rows = []
    for scenario in timed:
        right = {
            name: seconds(builds) for name, builds in made[scenario].items() if not any(one.wrong for one in builds)
        }
        ours = right.pop(OURS.name, None)
        best = min(right, key=lambda name: right[name], default=None)
        mine = f"{ours:.2f} s" if ours is not None else "wrong"
        if best is None or ours is None:
            rows.append([scenario, mine, "none answers rightly", "", "a right answer", met(ours is not None)])
            continue
        ratio = ours / right[best]
        rows.append(
            [
                scenario,
                mine,
                f"{right[best]:.2f} s, {best}",
                f"{ratio:.2f}",
                f"{TARGETS[scenario]:g}",
                met(ratio <= TARGETS[scenario]),
            ]
        )
    table(["", "ours", "fastest right peer", "times that", "at most", "met"], rows)


def failure_table(made: Builds, benches: list[Bench]) -> None:
    failing = [scenario for scenario in ("raise", "loop") if scenario in made]
    rows = []
    for bench in benches if failing else ():
        row = [bench.contender.name]
        for scenario in failing:
            builds = made[scenario][bench.contender.name]
            for first, *again in [builds[:2], builds[2:]] if scenario == "raise" else [builds]:
                ends = ", then ".join(f"exit {build.status}" for build in (first, *again))
                ends = f"{ends} after {first.seconds:.0f} s" if scenario == "loop" else ends
                left = f", {first.left} processes left" if first.left else ""
                said = f"names {bench.named(scenario, first.log)}"
                row.append(f"never ends, ended at {HANG_LIMIT} s" if first.hung else f"{ends}; {said}{left}")
        rows.append(row)
    head = {"raise": ["a cell raises, strict", "with the defaults"], "loop": ["a cell never ends"]}
    if rows:
        table(["", *(title for scenario in failing for title in head[scenario])], rows)


def results(root: Path) -> tuple[Book, dict[str, Result]]:
    book, store = Book.read(root), Store(root)
    return book, {name: result for name in book.examples if (result := store.newest(name))}


def least(root: Path) -> tuple[float, float]:
    """What no build of a book can go below: the longest chain of needs, and all seconds shared by the cores."""
    book, found = results(root)
    ends: dict[str, float] = {}
    for name in book.order(book.examples):
        own = found[name].seconds if name in found else 0.0
        ends[name] = own + max((ends[need] for need in book.examples[name].needs), default=0.0)
    return max(ends.values()), sum(one.seconds for one in found.values()) / (os.cpu_count() or 1)


def limit_row(what: str, colds: list[tuple[float, float, float]]) -> list[str]:
    """Cold builds, each against the least that its own examples allowed: the median of the ratios, and its build."""
    ratio, cold, chain, shared = statistics.median_low((took / max(bounds), took, *bounds) for took, *bounds in colds)
    return [what, f"{cold:.1f} s", f"{chain:.1f} s", f"{shared:.1f} s", f"{ratio:.2f}", f"{LIMIT}", met(ratio <= LIMIT)]


def the_real_book(measured: float) -> list[str]:
    if measured:
        return limit_row("this book", [(measured, *least(ROOT))])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "book"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".executed", ".git", ".venv", "site", "__pycache__"))
        environment = {**os.environ, "PYTHONPATH": str(root), "NO_MKDOCS_2_WARNING": "1"}
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        begun = time.perf_counter()
        subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
        return limit_row("this book", [(time.perf_counter() - begun, *least(root))])


def same_lines(ours: Bench, other: Bench) -> str:
    """How many of the lines that our examples printed the other's pages show too, digit for digit; warnings aside."""
    found = results(ours.project)[1].values()
    lines = [
        (one.name.partition(".")[0], line) for one in found for line in one.text.splitlines() if "Warning:" not in line
    ]
    same = sum(line in other.text(chapter) for chapter, line in lines)
    return f"{same} of {len(lines)} printed lines"


def met(holds: bool) -> str:
    return "yes" if holds else "**no**"


def table(head: list[str], rows: list[list[str]]) -> None:
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = [peer.name for peer in PEERS]
    scenarios = [*TARGETS, "raise", "loop"]
    options.add_argument("--peers", nargs="*", choices=known, default=known[:3], help=f"default: {' '.join(known[:3])}")
    options.add_argument("--only", nargs="+", choices=scenarios, default=scenarios, help="default: every scenario")
    options.add_argument("--rounds", type=int, default=3, help="timed builds of each scenario; the median counts")
    options.add_argument("--cache", type=Path, default=CACHE, help=f"default: {CACHE}")
    real = (
        "this repository's book too: measure its cold build, or take the SECONDS of the one that left the results here"
    )
    options.add_argument("--real", nargs="?", type=float, const=0.0, metavar="SECONDS", help=real)
    given = options.parse_args()
    peers = [peer for peer in PEERS if peer.name in given.peers]
    for peer in peers:
        install(peer, given.cache)
    benches = [Bench(contender, given.cache.resolve()) for contender in (OURS, *peers)]
    installed = [[bench.contender.name, bench.versions()] for bench in benches]
    made = measure(benches, given.only, given.rounds)
    for bench in benches:
        bench.restore()
    table(["", "versions", "shows what ours printed"],
          [[*row, same_lines(benches[0], bench)] for row, bench in zip(installed, benches, strict=True)])  # fmt: skip
    speed_tables(made)
    failure_table(made, benches)
    limits = []
    if "cold" in made:
        limits.append(limit_row("these chapters", benches[0].colds))
    if given.real is not None:
        limits.append(the_real_book(given.real))
    if limits:
        table(["cold", "took", "longest chain", "all by cores", "times the larger", "at most", "met"], limits)


if __name__ == "__main__":
    main()
