"""What an example needs from outside the repository: a hub model, a package, a GPU. Only looks; `fetch` downloads.

A build never downloads: it takes a hub model from the local cache or does without. So it answers at once, with or
without a network, and a page never waits for half a gigabyte.
"""

import importlib.util
import os
import shutil
from pathlib import Path

KINDS = {
    "hub": 'a model of the Hugging Face hub, "hub:owner/model@revision"',
    "package": 'an optional package, "package:underthesea"',
    "gpu": 'a CUDA device, "gpu"',
}


WEIGHTS = (".bin", ".safetensors")
OTHER_FRAMEWORKS = ["*.h5", "*.msgpack", "*.ot", "*.onnx", "*.tflite"]


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
    return Path(named or Path(home) / "hub").expanduser()


def fetch(need: str) -> None:
    """Download a hub model into its cache, with a progress bar. Raises LookupError where it cannot be had."""
    kind, _, name = need.partition(":")
    if kind != "hub" or not missing(need):
        return
    from huggingface_hub import HfApi, snapshot_download

    model, _, revision = name.partition("@")
    try:
        HfApi().model_info(model, revision=revision, timeout=5)  # a download would try for half a minute to get through
        snapshot_download(model, revision=revision, ignore_patterns=OTHER_FRAMEWORKS)
    except Exception as error:  # offline, refused, timed out, disk full: all mean that it cannot be had now
        reason = str(error).splitlines()[0]
        raise LookupError(f"{model} could not be downloaded: {reason}") from None
