"""How the engine's cost grows with a book: a generated one, built cold, warm, after one edit, and by plain MkDocs.

    python benchmarks/scale.py              # 1,000 and 2,000 examples, about ten minutes on two cores
    python benchmarks/scale.py 100 200      # other sizes

A book of n examples has n / 5 chapters of five examples, and n / 10 modules of helpers that the chapters share. Each
example prints, returns a value that prose quotes, and takes milliseconds: what is left is the engine's own cost. The
plain build is MkDocs on the staged Markdown, without the hook. Times are medians of three in one run.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

EXAMPLES, EXAMPLES_IN_CHAPTER, EXAMPLES_FOR_HELPER = (1000, 2000), 5, 10
HOOK = Path(__file__).parents[1] / "executed/hook.py"
SETTINGS = """
site_name: Scale
theme: {name: material, font: false}
plugins: [search]
markdown_extensions: [admonition, attr_list, tables, pymdownx.superfences, pymdownx.details, pymdownx.highlight]
"""
PROSE = (
    "Attention gives each token a weighted mean of the others. The weights come from a softmax over the scores of a"
    " query against every key, so they are positive and their sum is one. Nothing in this paragraph is measured.\n\n"
)


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    seconds: float
    memory: int
    """The most memory of any of its processes, in bytes."""
    output: str


def write_book(root: Path, examples: int) -> None:
    """Write a book of so many examples."""
    for folder in ("snippets", "docs"):
        (root / folder).mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.executed]\npreload = []\n")
    (root / "mkdocs.yml").write_text(f"{SETTINGS}hooks: ['{HOOK.as_posix()}']\n")
    (root / "plain.yml").write_text(f"{SETTINGS}docs_dir: plain\n")
    helpers, chapters = examples // EXAMPLES_FOR_HELPER, examples // EXAMPLES_IN_CHAPTER
    for number in range(helpers):
        below = f"from snippets.helper_{number - 1} import shift as below\n" if number % 10 else "below = int\n"
        (root / f"snippets/helper_{number}.py").write_text(
            f'"""Helpers {number}."""\n\n{below}\nSCALE = {number}\n\n\ndef shift(x):\n    """Shift x."""\n'
            f"    return below(x) + SCALE\n\n\ndef other(x):\n    return x * SCALE\n"
        )
    for number in range(chapters):
        used = [number % helpers, (7 * number + 3) % helpers]
        lines = ["from executed import example", *(f"from snippets import helper_{one}" for one in sorted(set(used)))]
        page = [f"# Chapter {number}\n"]
        for index in range(EXAMPLES_IN_CHAPTER):
            need = f"step_{index - 1}" if index % 5 == 4 else ""
            lines += ["", "", "@example", f"def step_{index}({need}):"]
            lines += [f"    total = sum(helper_{used[index % 2]}.shift(x) for x in range({index + 10}))"]
            lines += ["    for row in range(3):", f'        print("row", row, total * {number} + row)']
            lines += ['    return {"total": total}']
            page += [f"## Step {'abcde'[index]}\n", PROSE * 3, f'{{{{ example("chapter_{number}.step_{index}") }}}}\n']
            page += [f"The total is {{{{ chapter_{number}.step_{index}.total }}}}.\n"]
        (root / f"snippets/chapter_{number}.py").write_text("\n".join(lines) + "\n")
        (root / f"docs/chapter_{number}.md").write_text("\n".join(page))
    (root / "docs/index.md").write_text("# Scale\n")


def cost(root: Path, *words: str, fails: bool = False) -> Cost:
    """Run `python -m ...` in the book."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=root, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        output.seek(0)
        said = output.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not fails:
        raise SystemExit(f"python -m {' '.join(words)} failed:\n{said[-2000:]}")
    return Cost(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), said)


def edited(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text, f"{old!r} is not in {file}"
    file.write_text(text.replace(old, new, 1))


def measured(root: Path, repeats: int) -> dict[str, list[Cost]]:
    """Each build of the book, `repeats` times, the kinds in turn."""
    found: dict[str, list[Cost]] = {"cold": [cost(root, "mkdocs", "build", "--strict")]}
    cost(root, "executed", "stage", "plain")
    chapter, page = root / "snippets/chapter_1.py", root / "docs/chapter_1.md"
    for turn in range(repeats):
        found.setdefault("plain MkDocs", []).append(cost(root, "mkdocs", "build", "-f", "plain.yml"))
        found.setdefault("warm", []).append(cost(root, "mkdocs", "build", "--strict"))
        edited(page, "Attention" if turn == 0 else "Looking" * turn, "Looking" * (turn + 1))
        found.setdefault("prose edit", []).append(cost(root, "mkdocs", "build", "--strict"))
        edited(chapter, '"row"' if turn == 0 else f'"line{turn - 1}"', f'"line{turn}"')
        found.setdefault("code edit", []).append(cost(root, "mkdocs", "build", "--strict"))
        edited(root / "snippets/helper_3.py", f"SCALE = {3 + turn}", f"SCALE = {4 + turn}")
        found.setdefault("helper edit", []).append(cost(root, "mkdocs", "build", "--strict"))
        found.setdefault("status", []).append(cost(root, "executed", "status"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=int, nargs="*", default=list(EXAMPLES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave the books in this folder")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="scale-"))
    print("| examples | build | examples run | seconds | over plain, ms an example | memory, MB |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    for examples in arguments.examples:
        root = folder / str(examples)
        write_book(root, examples)
        found = measured(root, arguments.repeats)
        plain = statistics.median(one.seconds for one in found["plain MkDocs"])
        for kind, costs in found.items():
            seconds = statistics.median(one.seconds for one in costs)
            ran = re.search(r"(\d+) examples ran", costs[-1].output)
            over = "" if kind in ("plain MkDocs", "status") else f"{1000 * (seconds - plain) / examples:.2f}"
            memory = max(one.memory for one in costs) / 1e6
            print(
                f"| {examples:,} | {kind} | {ran[1] if ran else 0} | {seconds:.2f} | {over} | {memory:.0f} |",
                flush=True,
            )
    if not arguments.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
