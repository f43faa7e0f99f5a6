"""Whether the site is light, quick, valid and for everyone: `python benchmarks/site/measure.py`.

Builds the book into a temporary folder, serves it compressed, and prints a table for each part (ten minutes on two
cores). Name parts to measure only those; `--site FOLDER` takes a site that is built already.

types       docs/assets/scripts, by TypeScript, as strict as it goes
valid       the HTML of every page, by html-validate
weight      what a first visit to a page transfers, when it first shows something, how far things move after that
axe         every page with its folds open and its widgets alive, dark on a phone and light at a desk
lighthouse  every page, on a phone and at a desk. Throttling is simulated, but multiplies what a page took here: measure
            on a machine that has nothing else to do

Ends with status 1 if a budget is not kept. Needs Chromium, Node.js and, once, `npm ci --prefix benchmarks/site`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.site.reader import CHROMIUM, NODE_MODULES, inaccessible, listen, pages, painted, settled, use  # noqa: E402
from benchmarks.site.serve import built, served  # noqa: E402

HEAVIEST = 350_000
"""Bytes that a first visit to a page may transfer: compressed, with style, scripts, fonts and the search."""
MOST_SHIFT = 0.1
LEAST = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}
NUMBERS = {
    "first-contentful-paint": "first paint, ms",
    "largest-contentful-paint": "largest paint, ms",
    "total-blocking-time": "blocked, ms",
    "cumulative-layout-shift": "layout shift",
}


def mistyped() -> list[str]:
    """What TypeScript says of the site's scripts."""
    said = subprocess.run([NODE_MODULES / ".bin/tsc", "-p", HERE / "tsconfig.json"], capture_output=True, text=True)
    return (said.stdout + said.stderr).splitlines() if said.returncode else []


def invalid(site: Path, names: list[str]) -> list[str]:
    """What html-validate says of pages, one line a kind: where first, what, how often."""
    files = [site / f"{name}index.html"[1:] if name.endswith("/") else site / name[1:] for name in names]
    settings: list[str | Path] = ["-c", HERE / ".htmlvalidate.json", "-f", "json"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:  # into a pipe it would write the first 64 KiB only
        command = [NODE_MODULES / ".bin/html-validate", *settings, *files]
        complained = subprocess.run(command, stdout=said, stderr=subprocess.PIPE, text=True).stderr
        said.seek(0)
        try:
            checked = json.load(said)
        except ValueError:
            return [f"html-validate could not run: {complained}"]
    found: dict[tuple[str, str], list[str]] = {}
    for file in checked:
        name = Path(file["filePath"]).relative_to(site.resolve()).as_posix()
        for one in file["messages"]:
            place = f"{name}:{one['line']}:{one['column']}"
            found.setdefault((one["ruleId"], one["message"]), []).append(place)
    return [f"{places[0]}: {message} ({rule}; {len(places)} times)" for (rule, message), places in found.items()]


def table(head: list[str], rows: list[list[Any]]) -> None:
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print(flush=True)


def types(site: Path) -> bool:
    wrong = mistyped()
    print(*wrong, f"scripts: {len(wrong)} lines from TypeScript\n", sep="\n", flush=True)
    return not wrong


def valid(site: Path) -> bool:
    wrong = invalid(site, pages(site))
    print(*wrong, f"HTML: {len(pages(site))} pages, {len(wrong)} kinds of mistake\n", sep="\n", flush=True)
    return not wrong


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


def weight(site: Path) -> bool:
    sent: list[tuple[str, int]] = []
    rows, kept = [], True
    with chromium() as browser, served(site, sent=sent) as address:
        for name in pages(site):
            for width in (390, 1440):
                # What a service worker keeps for later is loaded once the page stands: not part of showing it.
                context = browser.new_context(viewport={"width": width, "height": 900}, service_workers="block")
                sent.clear()
                page = context.new_page()
                page.goto(f"{address}{name}", wait_until="load")
                transferred, requests = settled(page, sent), len(sent)
                first, shift = painted(page)
                rows.append([name, width, f"{transferred / 1000:.0f}", requests, f"{first:.0f}", f"{shift:.3f}"])
                kept = kept and transferred <= HEAVIEST and shift <= MOST_SHIFT
                context.close()
    table(["page", "width", "kB transferred", "requests", "first paint, ms", "layout shift"], rows)
    return kept


def axe(site: Path) -> bool:
    found: dict[str, list[str]] = {}
    opened: Counter[str] = Counter()
    with chromium() as browser, served(site) as address:
        for width, scheme in ((390, "dark"), (1440, "light")):
            for name in pages(site):
                heard: list[str] = []
                context = browser.new_context(
                    base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme
                )
                page = context.new_page()
                listen(page, address, heard)
                page.goto(name, wait_until="load")
                counts, wrong = use(page, copy=False)
                opened.update({"pages": 1, **counts})
                for what in [*inaccessible(page), *heard, *wrong]:
                    found.setdefault(what, []).append(f"{name} {width} {scheme}")
                context.close()
    print("axe:", ", ".join(f"{count} {kind}" for kind, count in opened.items()), f"opened; {len(found)} findings")
    table(["finding", "where first", "times"], [[what, at[0], len(at)] for what, at in found.items()])
    return not found


def lighthouse(site: Path) -> bool:
    rows, wanting, kept = [], Counter[str](), True
    with served(site) as address:
        command: list[str | Path] = [
            "node",
            HERE / "lighthouse.mjs",
            CHROMIUM or "",
            *(f"{address}{name}" for name in pages(site)),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout or ():
                one = json.loads(line)
                numbers = [round(one["numbers"][name], 3 if "shift" in name else None) for name in NUMBERS]
                rows.append([one["address"].removeprefix(address), one["form"], *one["scores"].values(), *numbers])
                kept = kept and all(one["scores"][name] >= least for name, least in LEAST.items())
                wanting.update(f"{each['says']} ({each['audit']}): {each['at']}" for each in one["wanting"])
        kept = kept and running.returncode == 0
    table(["page", "form", *LEAST, *NUMBERS.values()], rows)
    for what, count in wanting.most_common():
        print(f"{count} times: {what}")
    return kept


PARTS: dict[str, Callable[[Path], bool]] = {
    "types": types,
    "valid": valid,
    "weight": weight,
    "axe": axe,
    "lighthouse": lighthouse,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    arguments.add_argument("--site", type=Path, help="a site that is built already")
    chosen = arguments.parse_args()
    if unknown := set(chosen.parts) - PARTS.keys():
        arguments.error(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    if not NODE_MODULES.exists() or CHROMIUM is None or not shutil.which("node"):
        arguments.error("Chromium, Node.js or its packages are missing (npm ci --prefix benchmarks/site)")
    kept = True
    with built(chosen.site) as site:
        for part in chosen.parts or PARTS:
            start = time.monotonic()
            good = PARTS[part](site)
            verdict = "as it should be" if good else "NOT as it should be"
            print(f"{part}: {verdict} ({time.monotonic() - start:.0f} s)\n", flush=True)
            kept = kept and good
    sys.exit(not kept)


if __name__ == "__main__":
    main()
