"""docs/cost.md: what a text twice as long costs, in time and in memory, and how blocks avoid half the bill."""

import ctypes
import math
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor

from executed import example
from snippets.attention import scaled_dot_product_attention
from snippets.multi_head import MultiHeadAttention
from snippets.why_attention import processor, timed

Values = dict[str, object]  # what an example returns: the values that the prose quotes
LENGTHS = (256, 512, 1024, 2048, 4096)


def queries_keys_values(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw the input of an attention with d_model = 64 and four heads, one sequence.

    Returns query, key and value, (batch, heads, T, d_k) = (1, 4, length, 16) each.
    """
    query, key, value = torch.randn(3, 1, 4, length, 16)
    return query, key, value


@example
def score_matrix() -> Values:
    """The size of the score matrix, from the tensor itself."""
    print("    T    scores      size")
    sizes = []
    for length in LENGTHS:
        query, key, _ = queries_keys_values(length)
        scores = query @ key.mT  # (1, 4, T, T)
        sizes.append(scores.nbytes)
        print(f"{length:5} {scores.numel():10,} {scores.nbytes / 1e6:6.1f} MB")
    return {
        "bytes": sizes,
        "megabytes": [size / 1e6 for size in sizes],
        "first": sizes[0],
        "last": sizes[-1],
        "growth": sizes[-1] / sizes[-2],
        "input": query.nbytes,
    }


def peak_memory() -> int:
    """Ask the operating system for the most memory this process has held, in bytes."""
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_the_peak() -> None:
    """Set this process's peak back to what it holds now, where that can be done (Linux)."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        switch.write_text("5")


def allocator(keep: bool) -> None:
    """Tell glibc's allocator (Linux) to keep what is freed, or to give it back at once.

    Its default is in between: it gives large blocks back, and changes its mind about
    what is large as it goes. Elsewhere this does nothing.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if keep:
            libc.mallopt(-4, 0)  # M_MMAP_MAX: no block gets a mapping of its own
            libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: and nothing goes back
        else:
            libc.mallopt(-4, 2**16)  # M_MMAP_MAX: blocks may get a mapping again
            libc.mallopt(-3, 2**16)  # M_MMAP_THRESHOLD: from 64 KiB all do
            libc.malloc_trim(0)


def memory_of(run: Callable[[int], object], length: int) -> int:
    """Measure how far the peak memory rises during run(length), in bytes.

    In a fresh child process, because a peak never falls. A short run comes first, to
    load the library's code, and freed memory goes back, so only what lives counts.
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(16)
            allocator(keep=False)
            forget_the_peak()
            before = peak_memory()
            result = run(length)  # in a name: it must be alive when we look
            os.write(send, str(peak_memory() - before).encode())
            del result
        finally:
            os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    with os.fdopen(receive) as answer:
        return int(answer.read())


def read_in_blocks(query: Tensor, key: Tensor, value: Tensor, block: int) -> Tensor:
    """Attend to keys and values that come a block at a time.

    For each query we keep three things: the largest score so far, the sum of the
    exponentials, and the same sum with values. This is the online softmax.
    query (..., T_query, d_k), key and value (..., T_key, d_k), output as query.
    """
    largest = query.new_full((*query.shape[:-1], 1), -math.inf)  # (..., T_query, 1)
    total, output = torch.zeros_like(largest), torch.zeros_like(query)
    for keys, values in zip(key.split(block, -2), value.split(block, -2), strict=True):
        scores = query @ keys.mT / math.sqrt(query.size(-1))  # (..., T_query, block)
        highest = torch.maximum(largest, scores.amax(-1, keepdim=True))
        weights = (scores - highest).exp()  # not yet divided by their sum
        shrink = (largest - highest).exp()  # mends what was summed under a smaller one
        total = shrink * total + weights.sum(-1, keepdim=True)
        output = shrink * output + weights @ values
        largest = highest
    return output / total


def attention_in_blocks(query: Tensor, key: Tensor, value: Tensor, block: int = 128) -> Tensor:
    """Compute exact attention that never holds more than block x block scores a head.

    The idea of FlashAttention (Dao et al., 2022). There it is one kernel, whose
    blocks stay in the fast memory of the chip.
    """
    parts = [read_in_blocks(q, key, value, block) for q in query.split(block, -2)]
    return torch.cat(parts, dim=-2)


@example
def same_answer() -> Values:
    """Attention in blocks of any size against attention all at once."""
    torch.manual_seed(0)
    print("block  float32  float64")
    largest = {}
    for block in (8, 64, 100, 300):
        off = []
        for dtype in (torch.float32, torch.float64):
            q, k, v = (x.to(dtype) for x in queries_keys_values(300))
            full, _ = scaled_dot_product_attention(q, k, v)
            off.append((attention_in_blocks(q, k, v, block) - full).abs().max().item())
        largest[block] = off
        print(f"{block:5}  {off[0]:.0e}    {off[1]:.0e}")
    return {
        "single": max(one for one, _ in largest.values()),
        "double": max(two for _, two in largest.values()),
    }


@example
def two_blocks() -> Values:
    """The online softmax for one query and four keys, two at a time."""
    scores, values = torch.tensor([1.0, 3.0, 2.0, 5.0]), torch.tensor([10.0, 20, 30, 40])
    largest, total, output = -math.inf, torch.tensor(0.0), torch.tensor(0.0)
    print("read    largest     sum   answer")
    answers = []
    for start in (0, 2):
        block = scores[start : start + 2]
        highest = max(largest, block.max().item())
        shrink = math.exp(largest - highest)
        weights = (block - highest).exp()
        total = shrink * total + weights.sum()
        output = shrink * output + weights @ values[start : start + 2]
        largest = highest
        answers.append((output / total).item())
        print(f"{start + 2} keys {largest:9.1f} {total:8.3f} {answers[-1]:7.2f}")
    full = (scores.softmax(-1) @ values).item()
    print(f"all at once: {full:19.2f}")
    return {"answers": answers, "full": full, "shrink": shrink}


ATTENTIONS: dict[str, Callable[..., object]] = {
    "by hand": scaled_dot_product_attention,
    "SDPA": F.scaled_dot_product_attention,
    "in blocks": attention_in_blocks,
}


def attend_once(attend: Callable[..., object], length: int) -> object:
    """Draw an input and attend to it, with nothing kept for a gradient."""
    with torch.no_grad():
        return attend(*queries_keys_values(length))


@example(varies=True)
def peak_by_length() -> Values:
    """How far the peak rises, by hand, by the library and in blocks."""
    print("megabytes above the start")
    print("    T", *(f"{name:>9}" for name in ATTENTIONS))
    rises: dict[str, list[int]] = {name: [] for name in ATTENTIONS}
    for length in LENGTHS:
        for name, attend in ATTENTIONS.items():
            run = partial(attend_once, attend)
            rises[name].append(memory_of(run, length))
        shown = (f"{rises[name][-1] / 1e6:9.1f}" for name in ATTENTIONS)
        print(f"{length:5}", *shown)
    return {
        "rises": rises,
        "by_hand": rises["by hand"][-1],
        "sdpa": rises["SDPA"][-1],
        "blocks": rises["in blocks"][-1],
        "matrices": rises["by hand"][-1] / (4 * 4 * LENGTHS[-1] ** 2),
        "growth": [rises[name][-1] / rises[name][-2] for name in ATTENTIONS],
        "length": LENGTHS[-1],
    }


@example(alone=True, varies=True)
def times() -> Values:
    """The three ways against T, with memory kept between calls."""
    allocator(keep=True)
    runs: dict[str, list[Tensor]] = {name: [] for name in ATTENTIONS}
    print(f"{processor()}, {torch.get_num_threads()} thread")
    print("milliseconds (median of 7)")
    print("    T", *(f"{name:>9}" for name in ATTENTIONS))
    for length in LENGTHS:
        inputs = queries_keys_values(length)
        for name, attend in ATTENTIONS.items():
            with torch.inference_mode():
                runs[name].append(timed(partial(attend, *inputs), repeats=7))
        print(f"{length:5}", *(f"{runs[name][-1].median():9.2f}" for name in ATTENTIONS))
    medians = {name: torch.stack(all_runs).median(-1).values for name, all_runs in runs.items()}
    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "runs": {name: torch.stack(all_runs) for name, all_runs in runs.items()},
        "milliseconds": medians["by hand"],
        "sdpa": medians["SDPA"],
        "growth": medians["by hand"][1:] / medians["by hand"][:-1],
        "sdpa_growth": medians["SDPA"][1:] / medians["SDPA"][:-1],
        "near_four": 2.5 < medians["by hand"][-1] / medians["by hand"][-2] < 6,
        "faster": medians["by hand"][-1] / medians["SDPA"][-1],
    }


@example(alone=True, varies=True)
def fresh_pages() -> Values:
    """The same call at T = 2,048, with memory fetched anew each time and with it kept."""
    import resource

    query, key, value = queries_keys_values(2048)

    def faults_and_time(keep: bool) -> tuple[float, float]:
        def attend() -> None:
            scaled_dot_product_attention(query, key, value)
            allocator(keep)  # what it freed stays, or goes back to the system

        timed(attend, repeats=6)  # by then the allocator has settled
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        runs = timed(attend, repeats=6)  # eight calls: two to warm up
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        return faults / 8, runs.median().item()

    kept, fresh = faults_and_time(keep=True), faults_and_time(keep=False)
    for name, (faults, milliseconds) in (("fresh", fresh), ("kept", kept)):
        print(f"{name:6} {faults:8,.0f} page faults {milliseconds:6.0f} ms")
    return {"fresh": fresh, "kept": kept}


@example
def bill(peak_by_length: dict[str, Any], times: dict[str, Any]) -> None:
    """Draw memory and time against T, both axes logarithmic."""
    _, (memory, time) = plt.subplots(2, 1, figsize=(5.2, 5.6), sharex=True)
    for name in ATTENTIONS:
        rises = [rise / 1e6 for rise in peak_by_length["rises"][name]]
        memory.plot(LENGTHS, rises, "o-", label=name)
        time.plot(LENGTHS, times["runs"][name].median(-1).values, "o-")
    memory.set(xscale="log", yscale="log", ylabel="peak memory (MB)")
    time.set(xscale="log", yscale="log", ylabel="milliseconds", xlabel="T (tokens)")
    for axes in memory, time:
        axes.set_yticks([1, 10, 100], ["1", "10", "100"])
    time.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
    time.minorticks_off()
    memory.legend()


def stack(layers: int, batch: int, train: bool, length: int) -> Tensor:
    """Send batch sequences through several attention layers, written by hand.

    Returns the last output, (batch, length, 64). With train it carries the graph,
    and the graph holds on to the weights of every layer.
    """
    x = torch.randn(batch, length, 64)
    with torch.set_grad_enabled(train):
        for _ in range(layers):
            x = MultiHeadAttention(d_model=64, heads=4)(x)[0]
    return x


@example(varies=True)
def layers_and_batch() -> Values:
    """Peak memory for more layers and for more sequences, with and without training."""
    print("T = 1,024, megabytes above the start")
    print("layers batch  inference  training")
    rises = {}
    for layers, batch in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 8)):
        forward = memory_of(partial(stack, layers, batch, False), 1024) / 1e6
        training = memory_of(partial(stack, layers, batch, True), 1024) / 1e6
        rises[layers, batch] = (forward, training)
        print(f"{layers:6} {batch:5} {forward:10.0f} {training:9.0f}")
    matrix = 4 * 4 * 1024**2
    return {
        "inference_layers": rises[8, 1][0] / rises[1, 1][0],
        "training_layers": rises[8, 1][1] / rises[1, 1][1],
        "batch": rises[1, 8][0] / rises[1, 1][0],
        "matrix": matrix,
        "each_layer": (rises[8, 1][1] - rises[4, 1][1]) * 1e6 / 4 / matrix,
    }


@example
def share_of_a_block() -> Values:
    """How much of an encoder block's multiplications depend on T squared."""
    print("share of the T² terms")
    print("     T   d = 64  d = 768")
    shares = {}
    for length in (128, 512, 2048, 8192, 32768):
        row = []
        for d in (64, 768):
            pairs = 2 * length**2 * d  # scores, and the weighted sum of values
            tokens = 4 * d**2 * length + 8 * d**2 * length  # q k v o; feed-forward
            row.append(pairs / (pairs + tokens))
        shares[length] = row
        print(f"{length:6,} {row[0]:8.0%} {row[1]:8.0%}")
    return {"equal_768": 6 * 768, "at_512": shares[512][1]}


@example
def one_more_doubling(score_matrix: dict[str, Any]) -> Values:
    """The score matrix at a length of 65,536, by arithmetic."""
    doublings = int(math.log2(65_536 // LENGTHS[-1]))
    size = score_matrix["last"] * 4**doublings
    print(f"{doublings} doublings: {4**doublings} times, {size / 1e9:.1f} GB")
    return {"doublings": doublings, "factor": 4**doublings, "bytes": size, "length": 65_536}
