"""Where a result came from, as its page says it: when and how long it ran, with what, and from which source."""

import re
import textwrap
import time

from executed.book import Example, Span
from executed.commit import Commit
from executed.markup import escaped
from executed.numbers import formatted
from executed.store import Result

WORDS = {
    "en": (
        "How this was made",
        "`{name}` ran on {day} UTC for {seconds} s",
        ", threads: {threads}",
        ", memory: {memory} at most, libraries included",
        "on {machine}.",
        "Fingerprint",
        "Source",
    ),
    "vi": (
        "Kết quả này từ đâu ra",
        "`{name}` chạy lúc {day} UTC trong {seconds} giây",
        ", số luồng: {threads}",
        ", bộ nhớ nhiều nhất: {memory}, kể cả thư viện",
        "trên {machine}.",
        "Dấu vân tay",
        "Mã nguồn",
    ),
}


def made_block(result: Result, example: Example, lines: Span, commit: Commit, language: str) -> str:
    """How a result was made, folded away: time, memory, threads, machine, versions, fingerprint and source."""
    title, ran, with_threads, with_memory, on, print_of, source = WORDS.get(language, WORDS["en"])
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(result.started))
    digits = 2 if result.seconds < 10 else 0
    said = ran.format(name=result.name, day=day, seconds=formatted(result.seconds, "num", digits, language))
    said += with_threads.format(threads=example.options.threads)
    if result.memory:
        said += with_memory.format(memory=formatted(result.memory, "bytes", 0, language))
    versions = [f"Python {result.parts.get('python', '?')}"]
    versions += [f"{name} {version}" for name, version in packages(result)]
    lines_of = [
        f"{said}, {on.format(machine=escaped(result.machine))}",
        f"{', '.join(map(escaped, versions))}.",
        f"{print_of} `{result.fingerprint[:16]}`. {source}: {commit.source(example.path, lines, language)}.",
    ]
    return f'??? made "{title}"\n' + textwrap.indent("\n".join(lines_of), "    ")


def packages(result: Result) -> list[tuple[str, str]]:
    """The packages that a result was made with and their versions, by the names that PyPI has for them."""
    found = {}
    for part, version in result.parts.items():
        if part.startswith("package "):
            name, _, plain = version.rpartition(" ")  # `sklearn` comes with "scikit-learn 1.9.1"
            found[re.sub(r"[-_.]+", "-", name or part.removeprefix("package ")).lower()] = plain
    return sorted(found.items())


def timing_line(result: Result, example: Example, language: str) -> str:
    """Says of a timing on which machine it was taken, with how many threads: without that its digits mean nothing."""
    words = {"vi": "Đo trên {}, số luồng: {}. Mỗi lần chạy cho những chữ số khác."}
    said = words.get(language, "Measured on {}, threads: {}. The digits differ from run to run.")
    return f"{said.format(escaped(result.machine), example.options.threads)}\n{{: .recorded }}"


def record_line(result: Result, outdated: bool, language: str) -> str:
    """Says of a recorded result that it was not made by this build, and when and where it was."""
    day = time.strftime("%Y-%m-%d", time.gmtime(result.started))
    words = {"vi": "Kết quả ghi lại ngày {} trên {}."}.get(language, "Recorded on {} on {}, not run by this build.")
    note = {"vi": " Mã đã thay đổi từ đó."}.get(language, " The code has changed since.") if outdated else ""
    return f"{words.format(day, escaped(result.machine))}{note}\n{{: .recorded }}"
