"""What a browser says of the whole book: `python benchmarks/browser.py` (six minutes on two cores).

Builds the book into a temporary folder, opens every page of it in Chromium, in both colour schemes and at the widths of
a phone, a tablet and a desk, and uses all that it offers: every fold, tab and copy button, every control of every
widget, the search, the choice of colours. Prints a table of what there was and what worked, and of what a reader should
never see: messages on the console, requests to other hosts, pages that can be pushed sideways. Ends with status 1 if
there is any. `--site FOLDER` takes a site that is built already.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.site.reader import CHROMIUM, SCHEMES, WIDTHS, listen, pages, searched, toggled, use  # noqa: E402
from benchmarks.site.serve import built, served  # noqa: E402


def visited(browser: Any, address: str, name: str, width: int, scheme: str) -> tuple[Counter[str], list[str]]:
    """Open a page and use it, the home page also for the search and the colours: what there was, what was wrong."""
    heard: list[str] = []
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    listen(page, address, heard)
    page.goto(name, wait_until="load")
    policy = page.locator("head > meta[http-equiv=Content-Security-Policy]")
    counts = Counter({"pages": 1, "with the policy": policy.count()})
    used, wrong = use(page, copy=width > 1000, at_most=8)
    counts.update(used)
    if name == "/":
        try:
            if not toggled(page):
                wrong.append("the choice of colours does not hold")
            if not searched(page, "softmax"):
                wrong.append("the search does not lead to what it finds")
        except Error as error:
            wrong.append(f"the search or the choice of colours: {error.message.splitlines()[0]}")
        counts.update({"searches": 1, "choices of colours": 1})
    context.close()
    return counts, [*wrong, *heard]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--site", type=Path, help="a site that is built already")
    chosen = arguments.parse_args()
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    with built(chosen.site) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        with served(site) as address:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    for name in pages(site):
                        there, said = visited(browser, address, name, width, scheme)
                        counts += there
                        for what in said:
                            wrong.setdefault(what, []).append(f"{name} {width} {scheme}")
        browser.close()
    print("| opened and used | |\n| --- | --- |")
    for kind, count in counts.items():
        print(f"| {kind} | {count} |")
    print(f"| what a reader should not meet | {len(wrong)} |\n")
    for what, at in wrong.items():
        print(f"- {what} ({at[0]}; {len(at)} times)")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
