"""executed/outside.py: what cannot run here says so, on the page and in the terminal; records stand in for it."""

import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from executed import outside
from executed.book import Book
from executed.cli import main
from executed.outside import fetch, hub_cache, missing
from executed.runner import Progress
from executed.stage import stage
from executed.staged import Staged, unchanged

HUB = "hub:someone/model@0123456789abcdef"
SNIPPET = f"""
from executed import example

@example(needs="{HUB}")
def tokens():
    print("seven tokens")
    return {{"count": 7}}

@example
def doubled(tokens):
    print(tokens["count"] * 2)
"""
CHAPTER = """# A

{{ example("a.tokens") }}

{{ example("a.doubled") }}

{{ when_run("a.tokens") }}

    It found {{ a.tokens.count }} tokens.

    A second paragraph.

{{ when_not_run("a.tokens") }}
    What was published:

    {{ published("x") }}

After.
"""
FIGURE = '[[figure]]\nid = "x"\npublished = 8\nkind = "hub"\ntol = 1\nours = "a.tokens.count"\n'


@pytest.fixture
def root(write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    root = write_book({"a": SNIPPET}, {"index": CHAPTER})
    (root / "docs/reference_figures.toml").write_text(FIGURE)
    monkeypatch.chdir(root)
    return root


def download() -> None:
    """What a download leaves behind."""
    snapshot = hub_cache() / "models--someone--model/snapshots/0123456789abcdef"
    snapshot.mkdir(parents=True)
    (snapshot / "pytorch_model.bin").write_text("")


def quietly(root: Path) -> Staged:
    return stage(root, progress=Progress(io.StringIO()))


def test_what_cannot_run_here_says_so_in_its_place_with_the_command_that_runs_it(root: Path) -> None:
    staged = quietly(root)
    page = staged.pages["index.md"]
    assert (staged.report(), staged.strict, staged.ran) == ([], [], [])
    assert 'print("seven tokens")' in page
    assert page.count('!!! not-run "Not run here"') == 2
    assert "the weights of someone/model, which are not on this machine" in page
    assert "executed run a.tokens" in page
    assert "{ .text .output }" not in page


def test_published_figures_stand_in_marked_as_published_elsewhere(root: Path) -> None:
    page = quietly(root).pages["index.md"]
    assert re.search(
        r'What was published:\n+!!! published-elsewhere "Published elsewhere, not run here"\n    `x`:\n\n    - 8', page
    )
    assert "It found" not in page
    assert page.rstrip().endswith("After.")


def test_with_the_weights_in_the_cache_it_runs_and_the_prose_follows(root: Path) -> None:
    quietly(root)
    assert unchanged(root) is not None
    download()
    assert unchanged(root) is None
    page = quietly(root).pages["index.md"]
    assert "\nIt found 7 tokens.\n\nA second paragraph.\n" in page
    assert "seven tokens\n```" in page
    assert "published-elsewhere" not in page
    assert "not-run" not in page


def test_a_value_that_is_not_there_must_stand_under_a_condition(root: Path) -> None:
    (root / "docs/index.md").write_text(CHAPTER + "\nThere are {{ a.tokens.count }}.\n")
    (report,) = quietly(root).report()
    assert report.startswith("docs/index.md:20: a.tokens cannot run here, so it has no values: indent")


def test_a_condition_on_a_misspelt_example_is_an_error(root: Path) -> None:
    (root / "docs/index.md").write_text(CHAPTER.replace('when_run("a.tokens")', 'when_run("a.token")'))
    assert "docs/index.md:7: there is no example a.token; did you mean a.tokens?" in quietly(root).report()


def test_a_record_shows_the_result_and_where_it_came_from(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download()
    assert [main(["record", name]) for name in ("a.tokens", "a.doubled")] == [0, 0]
    assert "written: records/a.tokens.json" in capsys.readouterr().out
    assert json.loads((root / "records/a.tokens.json").read_text())["result"]["values"] == {"count": 7}
    monkeypatch.setenv("HF_HOME", str(tmp_path / "elsewhere"))
    for entry in (root / ".executed/results").glob("*/*"):
        entry.unlink()
    staged = quietly(root)
    assert (staged.report(), staged.strict, staged.ran) == ([], [], [])
    page = staged.pages["index.md"]
    assert "It found 7 tokens." in page
    assert re.search(r"Recorded on \d{4}-\d\d-\d\d on .+, not run by this build\.", page)


def test_a_record_of_other_code_is_noted_on_the_page_and_refused_by_a_strict_build(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write_book: Callable[..., Path]
) -> None:
    download()
    assert [main(["record", name]) for name in ("a.tokens", "a.doubled")] == [0, 0]
    monkeypatch.setenv("HF_HOME", str(tmp_path / "elsewhere"))
    write_book({"a": SNIPPET.replace("seven", "eight")})
    staged = quietly(root)
    assert staged.report() == []
    assert [str(problem).partition(":")[0] for problem in staged.strict] == [
        "records/a.tokens.json",
        "records/a.doubled.json",
    ]
    assert "The code has changed since." in staged.pages["index.md"]


def test_run_answers_at_once_where_the_hub_cannot_be_reached(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a.tokens"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("snippets/a.py:4: someone/model could not be downloaded: ")
    assert error.count("\n") == 1


def test_status_tells_what_is_absent_and_why(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["status"])
    assert "absent  a.tokens  needs the weights of someone/model" in capsys.readouterr().out


def test_an_optional_package_is_looked_for_by_name() -> None:
    assert missing("package:json") == ""
    assert missing("package:no_such_package") == "the package no_such_package, which is not installed"


def test_a_download_that_stopped_before_the_weights_is_not_there(root: Path) -> None:
    download()
    (weights,) = hub_cache().rglob("pytorch_model.bin")
    weights.rename(weights.with_name("config.json"))
    assert missing(HUB)


def test_fetch_leaves_alone_what_is_there(root: Path) -> None:
    download()
    fetch(HUB)
    with pytest.raises(LookupError, match="someone/other could not be downloaded"):
        fetch("hub:someone/other@0123")


def hang(model: str, revision: str) -> None:
    """A download on a line that went dead."""
    time.sleep(60)


def test_a_download_on_a_dead_line_is_given_up_soon(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: None)
    monkeypatch.setattr(outside, "_download", hang)
    monkeypatch.setattr(outside, "SILENCE", 0.3)
    begun = time.monotonic()
    with pytest.raises(LookupError, match=r"could not be downloaded: nothing came for 0.3 s; .* try again"):
        fetch(HUB)
    assert time.monotonic() - begun < 10


def test_the_weights_are_downloaded_last(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out: list[list[str]] = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *_, ignore_patterns, **__: left_out.append(ignore_patterns)
    )
    outside._download("someone/model", "0123")
    assert ["*.bin" in patterns for patterns in left_out] == [True, False]


def test_a_machine_without_a_home_has_no_hub_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert missing(HUB)


@pytest.mark.parametrize(
    ("need", "message"),
    [("hub:someone/model", "pins no revision"), ("hubs:someone/model@1", "is none of"), ("a GPU", "is none of")],
)
def test_a_need_that_cannot_be_read_is_an_error_of_its_line(
    write_book: Callable[..., Path], need: str, message: str
) -> None:
    book = Book.read(write_book({"a": SNIPPET.replace(HUB, need)}))
    (problem,) = book.problems
    assert (problem.line, message in problem.message) == (3, True)


def test_a_timing_names_its_machine_and_threads_and_says_that_its_digits_vary(write_book: Callable[..., Path]) -> None:
    source = (
        "from executed import example\n\n@example(varies=True, alone=True, threads=2)\ndef one():\n    print('3 ms')\n"
    )
    page = quietly(write_book({"a": source}, {"index": '{{ example("a.one") }}\n'})).pages["index.md"]
    assert re.search(r"Measured on .+, threads: 2\. The digits differ from run to run\.\n\{: \.recorded \}", page)
