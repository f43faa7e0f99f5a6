"""What was worked out from a text before: one edit costs what one chapter costs, however large the book."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from executed.book import BookError
from executed.installed import version
from executed.statements import sha
from executed.store import Store


class Memo:
    """What one function made of texts, by name: a file of the store, which may be deleted at any time."""

    def __init__(self, store: Store, name: str, *makers: ModuleType, packages: tuple[str, ...] = ()) -> None:
        """Nothing is known once the code of `makers`, the version of one of their packages, or Python has changed."""
        self._store, self._file = store, store.folder / f"{name}.json"
        code = [Path(str(module.__file__)).read_text("utf-8") for module in makers]
        self._maker = sha("".join([*code, *map(version, packages), sys.version]))
        body = json.loads(store.read_text(self._file) or "{}")
        self._known: dict[str, Any] = body["known"] if body.get("maker") == self._maker else {}
        self._anew = False

    def of(self, name: str, text: str | Callable[[Any], str | None], make: Callable[[], Any]) -> Any:
        """What `make` returns, which must be JSON and follow from the text alone; of each name the last is kept.

        What the text is may be told from what was made of it: then `text` is a function of that, and where it returns
        None, no text says it all, and `make` is asked each time.
        """

        def told(made: Any) -> str | None:
            said = text(made) if callable(text) else text
            return None if said is None else sha(said)

        if name in self._known:
            before, made = self._known[name]
            if before is not None and before == told(made):
                return made
        made = make()
        self._known[name] = told(made), made
        self._anew = True
        return made

    def keep(self) -> None:
        """Write down what is new."""
        if self._anew:
            with suppress(BookError):  # without it only the next build takes longer
                self._store.write_text(self._file, json.dumps({"maker": self._maker, "known": self._known}))
