"""Make the icons of the installed book from its mark, ../logo.svg: `python docs/assets/icons/make.py`.

Needs playwright and Chromium, and for the smallest files oxipng or the like afterwards. A system may cut a maskable
icon to any shape: the mark keeps to the circle in its middle that is always left.
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
MARK = (HERE.parent / "logo.svg").read_text("utf-8")
# Name, size, ground, and how much of the width the mark takes.
ICONS = (("192", 192, "transparent", 100), ("512", 512, "transparent", 100), ("maskable", 512, "#fff", 56))


def main() -> None:
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"]).new_page()
        for name, size, ground, share in ICONS:
            page.set_viewport_size({"width": size, "height": size})
            page.set_content(
                f'<body style="margin:0;height:100vh;display:grid;place-items:center;background:{ground}">'
                f'<div style="width:{share}%;line-height:0">{MARK}</div>'
            )
            page.screenshot(path=HERE / f"{name}.png", omit_background=True)


if __name__ == "__main__":
    main()
