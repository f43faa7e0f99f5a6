"""SECURITY.md: what it says of the repository itself, and that each test it names exists."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from executed.book import dotted
from executed.store import Store

ROOT = Path(__file__).parents[1]
OPENERS = (
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "marshal.loads",
    "shelve.open",
    "joblib.load",
    "torch.load",
)


def calls(folder: str) -> list[tuple[str, str]]:
    """Every call in a folder's modules: where, and what by its dotted name."""
    return [
        (file.relative_to(ROOT).as_posix(), dotted(node.func))
        for file in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]


def test_every_test_that_it_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text("utf-8")))
    there = {
        name for file in (ROOT / "tests").rglob("*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert named - there == set()
    assert len(named) > 20


def test_pickles_are_opened_in_two_places_only() -> None:
    opened = [call for folder in ("executed", "snippets") for call in calls(folder) if call[1] in OPENERS]
    assert opened == [("executed/store.py", "pickle.loads"), ("executed/worker.py", "pickle.loads")]


def test_no_code_from_a_hub_is_trusted() -> None:
    for file in [*(ROOT / "executed").glob("*.py"), *(ROOT / "snippets").glob("*.py")]:
        assert "trust_remote_code" not in file.read_text("utf-8")


def test_only_executed_run_downloads() -> None:
    words = ("fetch", "snapshot_download", "hf_hub_download", "from_pretrained", "urlopen", "urlretrieve")
    asking = [call for call in calls("executed") if call[1].rpartition(".")[2] in words]
    assert asking == [("executed/cli.py", "fetch"), ("executed/outside.py", "snapshot_download")]


def test_a_pickle_beside_a_record_is_not_opened(tmp_path: Path) -> None:
    result = {
        "name": "a.one", "text": "", "figures": [], "values": {}, "seconds": 1.0, "memory": 1, "started": 1.0,
        "fingerprint": "f", "parts": {}, "files": {}, "needs": {}, "machine": "m", "pickled": "somebody's hash",
    }  # fmt: skip
    (tmp_path / "records").mkdir()
    (tmp_path / "records/a.one.json").write_text(json.dumps({"code": "c", "result": result}))
    (tmp_path / "records/a.one.pickle").write_bytes(b"somebody's pickle")
    record = Store(tmp_path).record("a.one")
    assert record is not None
    with pytest.raises(LookupError, match="cannot be kept for others"):
        record[1].returned()


def test_the_repository_holds_no_store_no_pickle_and_no_link() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    held = [(line.split(" ")[0], line.partition("\t")[2]) for line in listed.splitlines()]
    assert held
    assert [path for mode, path in held if mode == "120000"] == []
    unwanted = r"\.executed\b|site/|.*\.(pickle|pkl|pt|pth|bin|npz)$"
    assert [path for _, path in held if re.match(unwanted, path)] == []
    assert {".executed", "/site"} <= set((ROOT / ".gitignore").read_text().split("\n"))
