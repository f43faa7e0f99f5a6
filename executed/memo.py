"""What was worked out from a text before: one edit costs what one chapter costs, however large the book."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from executed.book import BookError
from executed.reach import version
from executed.statements import sha
from executed.store import Store


class Memo:
    """What one function made of texts, by name: a file of the store, which may be deleted at any time."""

    def __init__(self, store: Store, name: str, *makers: ModuleType, packages: tuple[str, ...] = ()) -> None:
        """Nothing is known once the code of `makers`, or the version of one of their packages, has changed."""
        self._store, self._file = store, store.folder / f"{name}.json"
        code = [Path(str(module.__file__)).read_text("utf-8") for module in makers]
        self._maker = sha("".join([*code, *map(version, packages)]))
        body = json.loads(store.read_text(self._file) or "{}")
        self._known: dict[str, Any] = body["known"] if body.get("maker") == self._maker else {}
        self._anew = False

    def of(self, name: str, text: str, make: Callable[[], Any]) -> Any:
        """What `make` returns, which must be JSON and follow from the text alone. Of each name the last is kept."""
        key = sha(text)
        if self._known.get(name, [""])[0] != key:
            self._known[name] = [key, make()]
            self._anew = True
        return self._known[name][1]

    def keep(self) -> None:
        """Write down what is new."""
        if self._anew:
            with suppress(BookError):  # without it only the next build takes longer
                self._store.write_text(self._file, json.dumps({"maker": self._maker, "known": self._known}))
