"""The commit that a book is built from, and the address of a line of its source there."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from executed.book import SNIPPETS, Span

# How hosts of repositories write the address of some lines of a file at a commit.
ADDRESSES = {
    "github.com": "https://{host}/{repository}/blob/{commit}/{path}#L{first}-L{last}",
    "codeberg.org": "https://{host}/{repository}/src/commit/{commit}/{path}#L{first}-L{last}",
    "gitlab": "https://{host}/{repository}/-/blob/{commit}/{path}#L{first}-{last}",
}
REMOTE = re.compile(
    r"(?:https://(?:[^@/]+@)?|git@|ssh://git@)(?P<host>[\w.-]+)[:/](?P<repository>[\w./~-]+?)(?:\.git)?/?"
)
WORDS = {
    "en": ("at commit", "with changes that are not committed"),
    "vi": ("ở commit", "với những thay đổi chưa commit"),
}


@dataclass(frozen=True)
class Commit:
    """The commit that a repository stands at, where to find it, and which files are not as it has them."""

    name: str = ""
    address: str = ""
    changed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, root: Path) -> "Commit":
        """What git says of a repository; nothing where there is no git or no commit."""
        if not (name := head(root)):
            return cls()
        changed = _git(root, "diff", "--name-only", "-z", "--relative", "HEAD", "--", SNIPPETS).split("\0")
        changed += _git(root, "ls-files", "--others", "-z", "--", SNIPPETS).split("\0")
        address = _address(_git(root, "config", "--get", "remote.origin.url"))
        inside = _git(root, "rev-parse", "--show-prefix")  # where a book is one folder of its repository
        return cls(name, address.replace("{path}", f"{quote(inside)}{{path}}"), frozenset(changed))

    def source(self, path: str, lines: Span, language: str) -> str:
        """Some lines of a file at this commit, in Markdown: a link where the repository has a known address."""
        at, uncommitted = WORDS.get(language, WORDS["en"])
        place = f"`{path}:{lines.first}`"
        if not self.name:
            return place
        if path in self.changed:
            return f"{place}, {uncommitted}"
        if self.address:
            where = {"path": quote(path), "first": lines.first, "last": lines.last}
            place = f"[{place}]({self.address.format(commit=self.name, **where)})"
        return f"{place} {at} `{self.name[:10]}`"


def head(root: Path) -> str:
    """The commit that a repository stands at; empty where there is none."""
    return _git(root, "rev-parse", "--verify", "--quiet", "HEAD")


def _git(root: Path, *words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _address(remote: str) -> str:
    found = REMOTE.fullmatch(remote)
    for host, address in ADDRESSES.items() if found else ():
        if found and host in found["host"]:
            return address.replace("{host}", found["host"]).replace("{repository}", found["repository"])
    return ""
