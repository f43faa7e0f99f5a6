"""The book without a connection: pages that open from the disk, and pages that a browser keeps once they were visited.

`OFFLINE=true mkdocs build` makes the first: links name files, and the search loads as a script. Every other build is
for a server, and gets a service worker, docs/assets/scripts/service-worker.js, with the list of what there is to keep.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

SEARCH = "assets/scripts/iframe-worker.js"  # the theme's plugin looks for this name, and else asks another host
REGISTRATION = "assets/scripts/offline.js"
WORKER = "assets/scripts/service-worker.js"
MANIFEST = "manifest.webmanifest"
TOUCH_ICON = "assets/icons/192.png"
PUBLISHED = "service-worker.js"
"""At the root: a worker looks after the folder that it is in."""
KEPT = (".html", ".css", ".js", ".woff2", ".webmanifest", ".png", ".svg")
BESIDES = ("search/search_index.json",)
LEFT_OUT = ("404.html", "figures/", "assets/cards/", PUBLISHED)
"""What no page loads: figures stand in the pages."""


def settings(extra: dict[str, Any], scripts: list[Any], from_disk: bool) -> None:
    """Add to a site's settings the script that it needs to be read from the disk, or without a connection."""
    if from_disk:
        extra["polyfills"] = [*extra.get("polyfills", ()), SEARCH]
    elif REGISTRATION not in scripts:
        scripts.append(REGISTRATION)


def with_manifest(html: str, base_url: str) -> str:
    """A page that says how the book is installed, and under which icon."""
    base = base_url.rstrip("/")
    links = f'<link rel="manifest" href="{base}/{MANIFEST}"><link rel="apple-touch-icon" href="{base}/{TOUCH_ICON}">'
    return html.replace("</head>", f"  {links}\n  </head>", 1)


def publish_worker(site: Path) -> None:
    """Write the service worker of a finished site. Its text changes with anything in the site: so browsers renew it."""
    build, kept = sha256(), dict[str, int]()
    for file in sorted(site.rglob("*")):
        path = file.relative_to(site).as_posix()
        if file.is_file() and not path.endswith(".map") and path != PUBLISHED and not path.startswith("sitemap"):
            data = file.read_bytes()
            build.update(f"{path} {len(data)} ".encode() + data)
            if (path.endswith(KEPT) and not path.startswith(LEFT_OUT)) or path in BESIDES:
                page = path.removesuffix("index.html") if path == "index.html" or path.endswith("/index.html") else path
                kept[page] = len(data)
    told = json.dumps({"build": build.hexdigest()[:16], "files": kept}, separators=(",", ":"))
    (site / PUBLISHED).write_text(f"self.book = {told};\nimportScripts({json.dumps(WORKER)});\n", "utf-8")
