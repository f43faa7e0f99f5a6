"""executed/cards.py: a picture for each page, drawn once."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from executed import cards

MARK = '<svg viewBox="0 0 24 24" fill="#3d7fd6"><rect x="1" y="1" width="6" height="6" rx="1" opacity=".5"/></svg>'
WORDS = ("Chú ý: $x$ và đường", "Một câu nói về chương này.")


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.fixture(scope="module")
def png() -> bytes:
    return cards.drawn("A book", MARK, *WORDS)


def test_a_card_has_the_size_that_is_shared_and_the_same_bytes_every_time(png: bytes) -> None:
    assert size(png) == (1200, 630)
    assert png == cards.drawn("A book", MARK, *WORDS)
    assert len(png) < 100_000


def test_vietnamese_letters_are_drawn_and_no_boxes_in_their_place(recwarn: pytest.WarningsRecorder) -> None:
    cards.drawn("A book", MARK, "Ắ ằ ẵ ặ đ ơ ư", "Ệ ỗ ợ ử ỹ ậ")
    assert [str(one.message) for one in recwarn if "missing from font" in str(one.message)] == []


def test_nothing_is_written_past_the_edge_of_a_long_title_and_description() -> None:
    from io import BytesIO

    import matplotlib.image

    image = matplotlib.image.imread(BytesIO(cards.drawn("A book", "", "Long words " * 20, "Many more of them " * 40)))
    margins = [image[:, :40], image[:, -40:], image[:20], image[-20:]]
    assert all((margin[..., :3] == 1).all() for margin in margins)
    assert (image[..., :3] < 0.5).any()


def test_a_card_is_drawn_once_and_deleted_when_no_page_has_it_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def draw(site: str, mark: str, title: str, description: str) -> bytes:
        drawn.append(title)
        return title.encode()

    monkeypatch.setattr(cards, "drawn", draw)
    first = cards.cards(tmp_path, "s", MARK, [("a", "x"), ("b", "y")])
    assert cards.cards(tmp_path, "s", MARK, [("a", "x"), ("b", "y")]) == first
    assert drawn == ["a", "b"]
    again = cards.cards(tmp_path, "s", MARK, [("a", "another")])
    assert drawn == ["a", "b", "a"]
    assert [file.read_text() for file in (tmp_path / ".executed/cards").iterdir()] == ["a"]
    assert again[("a", "another")] not in first.values()


def test_another_name_or_mark_of_the_site_draws_all_cards_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "drawn", lambda *words: b"x")
    asked = [("a", "x")]
    made = [cards.cards(tmp_path, *site, asked)["a", "x"] for site in (("s", MARK), ("t", MARK), ("s", ""))]
    assert len(set(made)) == 3


def test_cards_that_are_there_cost_no_import_of_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "drawn", lambda *words: b"x")
    cards.cards(tmp_path, "s", MARK, [("a", "x")])
    code = f"""
import sys
from pathlib import Path
from executed import cards
cards.cards(Path({str(tmp_path)!r}), "s", {MARK!r}, [("a", "x")])
assert "matplotlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
