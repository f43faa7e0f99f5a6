"""What an example's result depends on, as one hash and in words."""

import json
import platform
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import executed.book
from executed import installed, reach, statements
from executed.book import Book, Example
from executed.memo import Memo
from executed.reach import Reach
from executed.statements import sha
from executed.store import Store

# The parts of a fingerprint that are not the book's own code.
SURROUNDINGS = ("package ", "need ", "python", "machine", "engine")


@dataclass(frozen=True)
class Fingerprint:
    """A hash and, for `executed status`, the parts it was made of."""

    digest: str
    parts: dict[str, str]


@lru_cache(maxsize=1)
def _engine() -> str:
    """The parts of the engine that decide what a result looks like."""
    here = Path(__file__).parent
    files = ("__init__.py", "worker.py", "capture.py", "book.mplstyle")
    return sha("".join(sha((here / name).read_bytes()) for name in files))


class Fingerprints:
    """Fingerprints of a book's examples, each computed once."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._memo = Memo(Store(book.root), "reach", executed.book, installed, reach, statements)
        self._reach = Reach(book, self._memo)
        self._known: dict[str, Fingerprint] = {}

    def of(self, name: str) -> Fingerprint:
        for one in self.book.order([name]) if name not in self._known else ():
            if one not in self._known:
                self._known[one] = self._compute(self.book.examples[one])
        return self._known[name]

    def keep(self) -> None:
        """Remember what leads to what, for the next time."""
        self._memo.keep()

    def code(self, name: str) -> str:
        """A hash of the code behind an example and all it needs, whatever machine and versions it runs on."""
        parts: dict[str, str] = {}
        for one in self.book.order([name]):
            parts |= {part: digest for part, digest in self.of(one).parts.items() if not part.startswith(SURROUNDINGS)}
        return sha(json.dumps(parts, sort_keys=True))

    def _compute(self, example: Example) -> Fingerprint:
        options, root = example.options, self.book.root
        parts = self._reach.parts(example)
        parts |= {f"need {need}": self._known[need].digest for need in example.needs}
        for file in options.files:  # all of a folder
            parts[f"file {file}"] = file_digest(root, file)
            for path in sorted((root / file).rglob("*")):
                parts[f"file {path.relative_to(root).as_posix()}"] = file_digest(root, str(path))
        parts |= {f"outside {need}": "named" for need in options.needs}
        parts["options"] = json.dumps([options.raises, options.threads, options.alone, options.memory, example.needs])
        parts["python"] = "{}.{}".format(*sys.version_info)
        parts["machine"] = f"{platform.system()} {platform.machine()}"
        parts["engine"] = _engine()
        return Fingerprint(sha(json.dumps(parts)), parts)


def file_digest(root: Path, path: str) -> str:
    """The state of a repository file or folder listing that an example read; `absent` is a state too."""
    target = root / path
    try:
        if target.is_dir():
            return sha("\n".join(sorted(entry.name for entry in target.iterdir())))
        return sha(target.read_bytes())
    except OSError:
        return "absent"


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """What changed between two fingerprints, in words."""
    words = []
    for part in sorted(old.keys() | new.keys()):
        before, after = old.get(part), new.get(part)
        if before == after:
            continue
        if part.startswith("package ") and before and after:
            words.append(f"{part.removeprefix('package ')} {before} -> {after}")
        elif before is None:
            words.append(f"now uses {part}")
        else:
            words.append(f"{part} changed" if after is not None else f"no longer uses {part}")
    if not words and list(old) != list(new):
        words.append("its statements stand in another order")
    return words
