"""What an example needs from outside the repository: a hub model, a package, a GPU. Only looks; `fetch` downloads.

A build never downloads: it takes a hub model from the local cache or does without. So it answers at once, with or
without a network, and a page never waits for half a gigabyte.
"""

import importlib.util
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

KINDS = {
    "hub": 'a model of the Hugging Face hub, "hub:owner/model@revision"',
    "package": 'an optional package, "package:underthesea"',
    "gpu": 'a CUDA device, "gpu"',
}


WEIGHTS = (".bin", ".safetensors")
OTHER_FRAMEWORKS = ["*.h5", "*.msgpack", "*.ot", "*.onnx", "*.tflite"]
SILENCE = 15
"""Seconds without a new byte after which a download is given up."""


def mistake(need: str) -> str:
    """What is wrong with how a need is written; empty where nothing is."""
    kind, _, name = need.partition(":")
    if kind not in KINDS:
        return f"needs={need!r} is none of {'; '.join(KINDS.values())}"
    if kind == "hub" and not all(name.partition("@")):
        return f"needs={need!r} pins no revision: write {KINDS['hub']}"
    return ""


def missing(need: str) -> str:
    """Why a need cannot be met on this machine as it is; empty where it can."""
    kind, _, name = need.partition(":")
    if kind == "package":
        return "" if importlib.util.find_spec(name) else f"the package {name}, which is not installed"
    if kind == "gpu":
        return "" if shutil.which("nvidia-smi") else "a GPU, which this machine does not have"
    model, _, revision = name.partition("@")
    snapshot = hub_cache() / f"models--{model.replace('/', '--')}" / "snapshots" / revision
    if snapshot.is_dir() and any(file.suffix in WEIGHTS for file in snapshot.iterdir()):
        return ""
    return f"the weights of {model}, which are not on this machine"


def hub_cache() -> Path:
    """Where huggingface_hub keeps what it downloaded, by the same variables and in the same order as it looks."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(os.path.expanduser(named or Path(home) / "hub"))  # where there is no home, `~` stays `~`


def fetch(need: str) -> None:
    """Download a hub model into its cache, with a progress bar. Raises LookupError where it cannot be had."""
    kind, _, name = need.partition(":")
    if kind != "hub" or not missing(need):
        return
    from huggingface_hub import HfApi

    model, _, revision = name.partition("@")
    try:
        HfApi().model_info(model, revision=revision, timeout=5)  # a download would try for half a minute to get through
        _download_watched(model, revision)
    except Exception as error:  # offline, refused, timed out, disk full: all mean that it cannot be had now
        reason = str(error).splitlines()[0]
        raise LookupError(f"{model} could not be downloaded: {reason}") from None


def _download_watched(model: str, revision: str) -> None:
    """Download in a process of its own, which can be ended when the line is dead: its own patience lasts minutes."""
    blobs = hub_cache() / f"models--{model.replace('/', '--')}" / "blobs"
    ignored = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends this process, and this one that
    with multiprocessing.get_context("spawn").Pool(1, signal.signal, ignored) as pool:
        download = pool.apply_async(_download, (model, revision))
        seen, since = set[tuple[int, int]](), time.monotonic()
        while not download.ready():
            download.wait(0.2)
            states = [file.stat() for file in blobs.glob("*") if file.exists()]
            if (now := {(state.st_size, state.st_mtime_ns) for state in states}) != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > SILENCE:
                raise TimeoutError(f"nothing came for {SILENCE} s; what had come is kept, so try again")
        download.get()


def _download(model: str, revision: str) -> None:
    from huggingface_hub import snapshot_download

    weights = [f"*{suffix}" for suffix in WEIGHTS]
    try:
        for later in (weights, []):  # the weights come last: where they are, everything is
            snapshot_download(model, revision=revision, ignore_patterns=[*OTHER_FRAMEWORKS, *later])
    except Exception as error:  # the hub's own cannot all go from one process to another
        raise OSError(str(error)) from None
