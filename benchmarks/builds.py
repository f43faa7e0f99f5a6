"""What a build costs: `python benchmarks/builds.py` (about a minute and a half on two cores; nothing else should run).

Works on a copy of the book in a temporary folder and prints a table of whole-process times:

cold     every example runs, the store is empty
warm     nothing changed since: nothing runs
plain    MkDocs alone, on the Markdown that `executed stage` wrote: the least any build can take
prose    a word of a chapter changed
save     `mkdocs serve` is running; from saving a chapter until the page that is served shows it

Warm, prose and plain are taken in turn, so that a slow moment of the machine hits all three; their ratios are what to
quote. Seconds belong to the machine they were measured on.
"""

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
TURNS = 7


def seconds(root: Path, *words: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", *words], cwd=root, env=ENVIRONMENT, check=True, capture_output=True)
    return time.perf_counter() - begun


def saved_to_served(root: Path) -> float:
    """Seconds from saving a chapter to the served page that shows it, the median of several saves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"], cwd=root,
                              env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    chapter = root / "docs/attention.md"
    text, taken = chapter.read_text("utf-8"), []
    try:
        for turn in range(-1, 5):
            mark = f"Saved in turn {'abcdef'[turn]}."
            chapter.write_text(f"{text}\n{mark}\n", "utf-8")
            begun = time.perf_counter()
            while mark not in fetched(f"http://127.0.0.1:{port}/attention/"):
                time.sleep(0.01)
            if turn >= 0:  # the first waits for the server to start
                taken.append(time.perf_counter() - begun)
            time.sleep(1)
    finally:
        server.terminate()
        server.wait()
        chapter.write_text(text, "utf-8")
    return statistics.median(taken)


def fetched(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "book"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".executed", ".git", ".venv", "site", "__pycache__"))
        config = (root / "mkdocs.yml").read_text("utf-8")
        (root / "plain.yml").write_text(re.sub(r"hooks:\n  - .*\n", "", config) + "\ndocs_dir: staged\n", "utf-8")
        cold = seconds(root, "mkdocs", "build", "--strict")
        seconds(root, "executed", "stage", "staged")
        chapter = root / "docs/attention.md"
        taken: dict[str, list[float]] = {"warm": [], "plain": [], "prose": []}
        for turn in range(TURNS):
            taken["warm"].append(seconds(root, "mkdocs", "build", "--strict"))
            taken["plain"].append(seconds(root, "mkdocs", "build", "-f", "plain.yml"))
            chapter.write_text(f"{chapter.read_text('utf-8')}\nOnce more{' again' * turn}.\n", "utf-8")
            taken["prose"].append(seconds(root, "mkdocs", "build", "--strict"))
        saved = saved_to_served(root)
    plain = statistics.median(taken["plain"])
    print("| build | median | min | max | times plain |\n| --- | --- | --- | --- | --- |")
    print(f"| cold | {cold:.1f} s | | | |")
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"| {name} | {median:.2f} s | {min(times):.2f} s | {max(times):.2f} s | {median / plain:.2f} |")
    print(f"| save | {saved:.2f} s | | | |")


if __name__ == "__main__":
    main()
