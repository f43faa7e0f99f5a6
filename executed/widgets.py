"""What comes alive in the reader's browser, on the values that an example returned: its place in the page, its data.

`{{ widget("reading.every_head", kind="attention-viewer") }}` leaves an element in the page; docs/assets/scripts/book.js
finds it and starts docs/assets/scripts/widgets/attention-viewer.js in it, with the values from
`values/reading.every_head.js`. Whatever stands before the directive, a figure or an output, is what readers without
JavaScript have.

With `loads=["sorting.trained"]` the values of further examples are published, and not loaded before the widget asks for
them: it knows the size of each and can tell the reader.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

SCRIPTS = "docs/assets/scripts/widgets"
FALLBACK = {
    "en": "Here stands something to play with. It needs JavaScript.",
    "vi": "Ở đây có một phần tương tác. Phần này cần JavaScript.",
}


def known(root: Path) -> list[str]:
    """The widgets there are: one script each."""
    return sorted(file.stem for file in (root / SCRIPTS).glob("*.js"))


def place(example: str, kind: str, language: str, loads: dict[str, int]) -> str:
    """The element that a widget starts in; `loads` are the examples it may ask for, each with its size in bytes."""
    words = FALLBACK.get(language, FALLBACK["en"])
    sizes = " ".join(f"{name}={size}" for name, size in loads.items())
    later = f' data-loads="{escape(sizes)}"' if loads else ""
    return f'<div class="widget" data-widget="{escape(kind)}" data-example="{escape(example)}"{later}>{words}</div>'


def data(example: str, values: dict[str, Any]) -> tuple[str, str]:
    """The file that hands an example's values to the page, a script so that it also loads from the disk: name, text."""
    return f"values/{example}.js", f"book.arrive({json.dumps(example)}, {json.dumps(values, ensure_ascii=False)});\n"
