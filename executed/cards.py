"""Social cards: the picture that stands for a page where somebody shares its address.

Drawn once with matplotlib and kept in `.executed/cards/` by what is on it, so a build in which nothing has changed
draws nothing. The same words give the same bytes.
"""

import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executed.installed import version
from executed.statements import sha
from executed.store import FOLDER, Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, MARGIN, MARK = 1200, 630, 76, 288
GROUND, TEXT, MUTED, ACCENT = "#ffffff", "#1c2128", "#57606a", "#0b57a8"
TITLE_LINES, DESCRIPTION_LINES = 3, 5
RECT = re.compile(r"<rect\b[^>]*>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')

Words = tuple[str, str]
"""Title and description."""


def cards(root: Path, site: str, mark: str, asked: Iterable[Words]) -> dict[Words, Path]:
    """The card of each page; cards that no page has any more are deleted.

    Raises BookError where a card cannot be kept.
    """
    folder = root / FOLDER / "cards"
    made_by = sha(f"{Path(__file__).read_text('utf-8')} {version('matplotlib')} {site} {mark}")
    files = {words: folder / f"{sha(f'{made_by} {words}')[:32]}.png" for words in asked}
    missing = {words: file for words, file in files.items() if not file.exists()}
    for words, file in missing.items():
        Store(root).write_bytes(file, drawn(site, mark, *words))
    for file in set(folder.glob("*.png")) - set(files.values()):
        file.unlink(missing_ok=True)
    return files


def drawn(site: str, mark: str, title: str, description: str) -> bytes:
    """One card as a PNG; `mark` is an SVG made of rectangles."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=GROUND)
        renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        _draw_mark(figure, mark, WIDTH - MARGIN - MARK, (HEIGHT - MARK) / 2)

        def write(text: str, x: float, y: float, pixels: float, colour: str, weight: str = "normal") -> float:
            shown = figure.text(
                x / WIDTH, 1 - y / HEIGHT, text, color=colour, fontsize=pixels * 0.72, fontweight=weight,
                fontfamily="DejaVu Sans", verticalalignment="baseline", parse_math=False,
            )  # fmt: skip
            return float(shown.get_window_extent(renderer).width)

        def width(text: str, pixels: float, weight: str) -> float:
            taken = write(text, 0, 0, pixels, GROUND, weight)
            figure.texts[-1].remove()
            return taken

        def wrapped(text: str, pixels: float, weight: str, room: float) -> list[str]:
            lines = [""]
            for word in text.split():
                longer = f"{lines[-1]} {word}".strip()
                if lines[-1] and width(longer, pixels, weight) > room:
                    lines.append(word)
                else:
                    lines[-1] = longer
            return lines

        room = WIDTH - 3 * MARGIN - MARK
        size, title_lines = 72.0, wrapped(title, 72, "bold", room)
        if len(title_lines) > 2:
            size, title_lines = 50.0, wrapped(title, 50, "bold", room)
        title_lines = _at_most(title_lines, TITLE_LINES)
        description_lines = _at_most(wrapped(description, 31, "normal", room), DESCRIPTION_LINES)
        write(site, MARGIN, MARGIN + 32, 31, ACCENT)
        height = len(title_lines) * size * 1.2 + 20 + len(description_lines) * 46
        baseline = MARGIN + 60 + (HEIGHT - 2 * MARGIN - 60 - height) / 2 + size
        for line in title_lines:
            write(line, MARGIN, baseline, size, TEXT, "bold")
            baseline += size * 1.2
        baseline += 20 + 46 - size
        for line in description_lines:
            write(line, MARGIN, baseline, 31, MUTED)
            baseline += 46
        file = BytesIO()
        figure.savefig(file, format="png", dpi=100, metadata={"Software": None})
        return file.getvalue()


def _at_most(lines: list[str], count: int) -> list[str]:
    return lines if len(lines) <= count else [*lines[: count - 1], f"{lines[count - 1]} …"]


def _draw_mark(figure: "Figure", mark: str, left: float, top: float) -> None:
    """The rectangles of an SVG whose view box is a square from zero."""
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.transforms import IdentityTransform

    box = re.search(r'viewBox="0 0 ([\d.]+)', mark)
    fill = re.search(r'<svg\b[^>]*\bfill="([^"]+)"', mark)
    scale = MARK / float(box[1] if box else 24)
    for rect in RECT.findall(mark):
        found = dict(ATTRIBUTE.findall(rect))
        x, y, wide, high, corner = (float(found.get(name, 0)) * scale for name in ("x", "y", "width", "height", "rx"))
        figure.add_artist(
            FancyBboxPatch(
                (left + x + corner, HEIGHT - (top + y + high) + corner),
                wide - 2 * corner,
                high - 2 * corner,
                boxstyle=f"round,pad={corner}",
                linewidth=0,
                transform=IdentityTransform(),
                facecolor=found.get("fill") or (fill[1] if fill else "black"),
                alpha=float(found.get("opacity", 1)),
            )
        )
