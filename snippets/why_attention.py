"""docs/why-attention.md: one step from any token to any other, and what that step costs."""

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executed import example
from snippets.multi_head import MultiHeadAttention

Values = dict[str, object]  # what an example returns: the values that the prose quotes


def read_in_order(rnn: nn.RNN, x: Tensor) -> Tensor:
    """Read x (T, d) with the weights of a one-layer RNN, one token after the other.

    h_t = tanh(W x_t + b + U h_{t-1} + c). Returns all states, (T, d).
    """
    w, u, b, c = rnn.all_weights[0]  # of the first layer
    state = torch.zeros(rnn.hidden_size)
    states = []
    for token in x:
        new = w @ token + b
        old = u @ state + c
        state = torch.tanh(new + old)  # the next turn of the loop needs this one
        states.append(state)
    return torch.stack(states)


@example
def one_after_the_other() -> Values:
    """The loop of an RNN by hand and by the library."""
    torch.manual_seed(0)
    rnn = nn.RNN(input_size=8, hidden_size=8)
    x = torch.randn(12, 8)  # (T, d): twelve tokens
    by_hand = read_in_order(rnn, x)
    by_library, _ = rnn(x)
    print("states:", tuple(by_hand.shape))
    print(f"largest difference: {(by_hand - by_library).abs().max():.0e}")
    return {"difference": (by_hand - by_library).abs().max().detach()}


def forgetting_less(lstm: nn.LSTM, bias: float) -> nn.LSTM:
    """Set the bias of every forget gate, so that the cell keeps sigmoid(bias) a step.

    PyTorch adds two biases and stores the gates in the order input, forget, cell,
    output.
    """
    forget = slice(lstm.hidden_size, 2 * lstm.hidden_size)
    _, _, bias_input, bias_state = lstm.all_weights[0]
    with torch.no_grad():
        bias_input[forget] = bias
        bias_state[forget] = 0
    return lstm


def reach(layer: nn.Module, length: int, d_model: int = 64) -> Tensor:
    """Measure how much each input of a random sequence moves the last output.

    The layer returns its output (1, T, d_model) first. Returns the length of the
    gradient at each distance from the last token, (T,), divided by the one at
    distance 0. In float64: the squares in a norm of 1e-30 are zero in float32.
    """
    x = torch.randn(1, length, d_model, dtype=torch.float64, requires_grad=True)
    last = layer.double()(x)[0][0, -1]  # (d_model,)
    (gradient,) = torch.autograd.grad(last, x, torch.randn_like(last))
    lengths: Tensor = gradient[0].norm(dim=-1).flip(0)  # by distance: the last token first
    return lengths / lengths[0]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: nn.RNN(64, 64, batch_first=True),
    "LSTM": lambda: nn.LSTM(64, 64, batch_first=True),
    "LSTM, bias 2": lambda: forgetting_less(nn.LSTM(64, 64, batch_first=True), 2),
    "attention": lambda: MultiHeadAttention(d_model=64, heads=4),
}


@example
def first_to_last() -> Values:
    """How much of the gradient at the last token is left at the first of 100."""
    print("first of 100 tokens, against the last:")
    curves = {}
    for name, build in LAYERS.items():
        runs = []
        for seed in range(5):
            torch.manual_seed(seed)
            runs.append(reach(build(), length=100))
        curves[name] = torch.stack(runs)  # (seeds, T)
        first = curves[name][:, -1]
        print(f"{name:13} {first.min():.1e} to {first.max():.1e}")
    left = {name: [runs[:, -1].min(), runs[:, -1].max()] for name, runs in curves.items()}
    attention = curves["attention"]
    return {
        "curves": curves,
        "seeds": attention.size(0),
        "rnn": left["RNN"],
        "lstm": left["LSTM"],
        "lstm_bias": left["LSTM, bias 2"],
        "attention": left["attention"],
        # The near half of the other tokens against the far half, seed by seed.
        "near_to_far": attention[:, 1:50].mean(1) / attention[:, 50:].mean(1),
        "half_to_the_99": 0.5**99,
    }


@example
def reach_against_distance(first_to_last: dict[str, Any]) -> None:
    """Draw the gradient against distance, a line and a band over seeds a layer."""
    _, axes = plt.subplots(figsize=(5.2, 3.8))
    for i, (name, runs) in enumerate(first_to_last["curves"].items()):
        distance = range(runs.size(1))
        low, high = runs.min(0).values, runs.max(0).values
        axes.fill_between(distance, low, high, color=f"C{i}", alpha=0.3, linewidth=0)
        axes.plot(distance, runs.log().mean(0).exp(), color=f"C{i}")
        where = {"attention": (50, 2e1), "LSTM, bias 2": (52, 1e-5)}
        where |= {"LSTM": (72, 1e-13), "RNN": (36, 1e-22)}
        axes.text(*where[name], name, color=f"C{i}")
    axes.set_yscale("log")
    axes.set(xlabel="distance from the last token", ylim=(1e-36, 1e4))
    axes.set_ylabel("gradient, last token = 1")


@example
def longer_sequences() -> Values:
    """The first token's share under attention, for longer and longer sequences."""
    lengths = (10, 100, 1000)
    left = {}
    for length in lengths:
        runs = []
        for seed in range(5):
            torch.manual_seed(seed)
            runs.append(reach(LAYERS["attention"](), length)[-1].item())
        left[length] = [min(runs), max(runs)]
        print(f"first of {length:5,}: {min(runs):.3f} to {max(runs):.3f}")
    return {"left": [left[length] for length in lengths]}


def timed(function: Callable[[], object], repeats: int) -> Tensor:
    """Time a function in milliseconds, after two calls to warm up; (repeats,), sorted."""
    function(), function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(1000 * (time.perf_counter() - start))
    return torch.tensor(times).sort().values


def processor() -> str:
    """Name the processor that this runs on, as well as the system can."""
    information = Path("/proc/cpuinfo")  # Linux
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


class LibraryAttention(MultiHeadAttention):
    """The same layer, with PyTorch's own attention: no weights to hand back."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        """Attend within x (batch, T, d_model)."""
        roles = (self.query, self.key, self.value)
        query, key, value = (self.split(role(x)) for role in roles)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.output(mixed.transpose(1, 2).flatten(2)), None


@example(alone=True, varies=True)
def lstm_against_attention() -> Values:
    """Time one sequence through an LSTM and through attention of equal width."""
    torch.manual_seed(0)
    layers = {"LSTM": nn.LSTM(64, 64, batch_first=True), "attention": LibraryAttention(64, 4)}
    lengths = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    times: dict[str, list[Tensor]] = {name: [] for name in layers}
    for length in lengths:
        x = torch.randn(1, length, 64)  # one sequence
        for name, layer in layers.items():
            with torch.inference_mode():
                times[name].append(timed(lambda: layer(x), repeats=7))

    print(f"{processor()}, {torch.get_num_threads()} thread")
    print("median milliseconds")
    print("    T     LSTM  attention")
    pairs = [[runs.median().item() for runs in pair] for pair in zip(*times.values(), strict=True)]
    for length, (lstm, attention) in zip(lengths, pairs, strict=True):
        print(f"{length:5} {lstm:8.2f} {attention:10.2f}")
    medians = torch.tensor(pairs).T  # (2, lengths)
    won = [t for t, (lstm, attention) in zip(lengths, pairs, strict=True) if attention < lstm]
    lost = [t for t in lengths if t not in won]
    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "lengths": lengths,
        "medians": medians,
        "spread": torch.stack([torch.stack(runs) for runs in times.values()]),
        "repeats": 7,
        "won": max(won, default=0),
        "lost": min(lost, default=0),
        "ends": [lengths[0], lengths[-1]],
        "short": medians[0, 0] / medians[1, 0],
        "long": medians[1, -1] / medians[0, -1],
        "growth": medians[:, -1] / medians[:, -2],
    }


@example
def time_against_length(lstm_against_attention: dict[str, Any]) -> None:
    """Draw both times against length, with the middle half of the repetitions."""
    lengths = lstm_against_attention["lengths"]
    _, axes = plt.subplots(figsize=(5.2, 3.4))
    for i, (name, runs) in enumerate(zip(("LSTM", "attention"), lstm_against_attention["spread"], strict=True)):
        low, middle, high = runs.quantile(torch.tensor([0.25, 0.5, 0.75]), dim=-1)
        axes.plot(lengths, middle, "o-", color=f"C{i}", label=name)
        axes.fill_between(lengths, low, high, color=f"C{i}", alpha=0.3, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axes.set(xlabel="tokens in the sequence, T", ylabel="milliseconds")
    axes.legend()


@example
def work_and_waiting() -> Values:
    """Count multiplications, and the steps that must wait for each other."""
    d = 64
    print("    T   multiplications      steps in turn")
    print("        LSTM   attention     LSTM attention")
    for length in (64, 128, 1024, 8192):
        lstm = 8 * d**2 * length  # four gates, each W x and U h
        attention = 4 * d**2 * length + 2 * length**2 * d  # q k v o; scores, mix
        print(f"{length:5} {lstm / 1e6:5.0f} M {attention / 1e6:7.0f} M {length:11} {1:5}")
    equal = 2 * d  # 8 d^2 T = 4 d^2 T + 2 T^2 d
    return {"equal": equal, "longest": length, "times": attention / lstm, "d": d}


@example
def half_after_a_hundred() -> Values:
    """The bias that lets the cell keep one half over 99 steps, and the measured reach."""
    keep = 0.5 ** (1 / 99)  # a step
    bias = torch.tensor(keep).logit().item()
    left = []
    for seed in range(5):
        torch.manual_seed(seed)
        lstm = forgetting_less(nn.LSTM(64, 64, batch_first=True), bias)
        left.append(reach(lstm, length=100)[-1].item())
    print(f"keep {keep:.4f} a step: bias {bias:.2f}")
    print(f"measured: {min(left):.1f} to {max(left):.1f}")
    return {"keep": keep, "bias": bias, "left": [min(left), max(left)]}
