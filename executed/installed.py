"""What is installed: distributions, their versions, and what they need. Nothing is imported for that."""

import importlib.metadata
import re
import sys
from functools import lru_cache
from pathlib import Path

MISSING = "missing"
# What a package uses where it is there, without requiring it.
UNSAID = {"torch": ("numpy",)}


def version(package: str) -> str:
    """The installed version of the distribution that an import name belongs to."""
    if found := _said(package, "Version"):
        return found[0]
    return ", ".join(f"{owner} {version(owner)}" for owner in _owners(package)) or MISSING


@lru_cache(maxsize=1024)
def required(package: str) -> list[str]:
    """The installed distributions that a package needs, or that install an import name."""
    if not _said(package, "Version"):
        return _owners(package)
    wanted = [one for one in _said(package, "Requires-Dist") if "extra ==" not in one]
    names = [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in wanted]
    return [name for name in (*names, *UNSAID.get(package, ())) if _said(name, "Version")]


@lru_cache(maxsize=4096)
def _said(distribution: str, field: str) -> list[str]:
    """What the metadata of an installed distribution says, without the description that makes most of its length."""
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return []
    head = (found.read_text("METADATA") or found.read_text("PKG-INFO") or "").partition("\n\n")[0]
    return re.findall(rf"^{field}: (.*)$", head, re.M)


@lru_cache(maxsize=1024)
def _owners(package: str) -> list[str]:
    """The distributions that install an import name.

    `importlib.metadata.packages_distributions` would list every installed file for that: a third of a second, in a
    build that may take one.
    """
    module = re.compile(rf"^{re.escape(package)}(/.*|\..*)?\.(py|so|pyd),", re.M)
    found = set()
    for distribution in importlib.metadata.distributions():
        declared = (distribution.read_text("top_level.txt") or "").split()
        if package in declared or (not declared and module.search(distribution.read_text("RECORD") or "")):
            found.add(distribution.metadata["Name"])
    return sorted(found)


def installed() -> list[str]:
    """All that is installed, as the names of the folders that say so: `torch-2.13.0.dist-info`."""
    return sorted({path.name for folder in sys.path for path in Path(folder or ".").glob("*.*-info")})
