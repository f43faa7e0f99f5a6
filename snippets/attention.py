"""docs/attention.md: scaled dot-product attention, and why the scores are divided by sqrt(d_k)."""

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executed import example

Values = dict[str, object]  # what an example returns: the values that the prose quotes


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mix the values of all tokens, each query by its own weights.

    softmax(Q K^T / sqrt(d_k)) V, equation 1 of "Attention Is All You Need" (2017).

    query (..., T_query, d_k), key (..., T_key, d_k), value (..., T_key, d_v);
    mask, boolean, broadcastable to (..., T_query, T_key): True keeps a key.
    Returns the output (..., T_query, d_v) and the weights (..., T_query, T_key).
    Raises RuntimeError, from the product, if query and key differ in d_k.
    """
    d_k = query.size(-1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)  # (..., T_query, T_key)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)  # exp(-inf) is exactly 0
    weights = scores.softmax(dim=-1)  # over the keys: each row sums to 1
    return weights @ value, weights  # (..., T_query, d_v), (..., T_query, T_key)


class AttentionHead(nn.Module):
    """One attention: three learned products, then scaled dot-product attention.

    Q = x W_Q, K = x W_K, V = x W_V: one head of section 3.2.2 of
    "Attention Is All You Need" (2017).
    """

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (..., T, d_model) to output (..., T, d_v), weights (..., T, T)."""
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


def colour_wishes(
    batch: int,
    colours: int = 4,
    wishes: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a task that a token can solve only by asking the others.

    Each token owns one colour, no two the same, and a number. It wishes for some
    colours and must answer with the numbers of the tokens that own them.

    With T = colours, returns
    tokens (batch, T, wishes * T + T + 1): wishes and own colour one-hot, number;
    answers (batch, T, wishes);
    owner (batch, T, wishes): the position of the token that owns the colour.
    """
    own = torch.rand(batch, colours).argsort(-1)  # the colours in a random order
    wish = torch.rand(batch, colours, colours).argsort(-1)[..., :wishes]
    number = torch.randn(batch, colours)
    one_hot = F.one_hot(wish, colours).flatten(2), F.one_hot(own, colours)
    tokens = torch.cat([*one_hot, number.unsqueeze(-1)], dim=-1)
    owner = own.argsort(-1).gather(1, wish.flatten(1))  # argsort inverts an order
    answers = number.gather(1, owner)
    return tokens, answers.view_as(wish), owner.view_as(wish)


def train(
    model: nn.Module,
    wishes: int,
    steps: int,
    lr: float,
) -> list[float]:
    """Fit model to colour_wishes with Adam; return the losses.

    Each step draws 64 new sequences. model maps tokens
    (batch, T, features) to answers (batch, T, wishes) and weights.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        tokens, answers, _ = colour_wishes(batch=64, wishes=wishes)
        loss = F.mse_loss(model(tokens)[0], answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@example
def soft_lookup() -> Values:
    """A dictionary has no orange; a soft lookup answers anyway."""
    prices = {"red": 10.0, "green": 20.0, "blue": 30.0}
    print("dictionary:  ", prices.get("orange"))

    keys = torch.eye(3)  # red, green, blue: one direction each
    values = torch.tensor(list(prices.values()))
    orange = torch.tensor([1.0, 0.5, 0.0])  # the query: much red, some green

    answers = {}
    for sharpness in (0, 2, 20):
        weights = (sharpness * keys @ orange).softmax(-1)
        answers[sharpness] = weights @ values
        shown = weights.numpy().round(2)
        print(f"sharpness {sharpness:2}: {answers[sharpness]:.1f} from {shown}")
    return {"flat": answers[0], "soft": answers[2], "sharp": answers[20]}


@example
def sharpness() -> Values:
    """Draw the weights of the soft lookup against its sharpness."""
    scores = torch.tensor([1.0, 0.5, 0.0])  # orange against red, green, blue
    sharp = torch.linspace(0, 10, 101)
    weights = (sharp[:, None] * scores).softmax(-1)  # (101, 3)

    _, axes = plt.subplots(figsize=(5, 3))
    for name, curve in zip(("red", "green", "blue"), weights.T, strict=True):
        axes.plot(sharp, curve, color=f"tab:{name}", label=name)
    axes.set(xlabel="sharpness", ylabel="weight", ylim=(0, 1))
    axes.legend(loc="center right")
    return {"green_peak": weights[:, 1].max(), "green_at_zero": weights[0, 1]}


@example
def third_row() -> Values:
    """The third token's weights, one step a line."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    scores = x @ x[2]  # the third token against each of the four
    scaled = scores / math.sqrt(3)
    grown = scaled.exp()
    weights = grown / grown.sum()
    print("dot products", scores.numpy())
    print("/ sqrt(3)   ", scaled.numpy().round(3))
    print("exponential ", grown.numpy().round(3))
    print("/ their sum ", weights.numpy().round(3))
    return {"scores": scores, "exponentials": grown, "weights": weights}


@example
def four_tokens() -> Values:
    """Four hand-written tokens attend to each other."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    output, weights = scaled_dot_product_attention(x, x, x)
    print("weights:", weights.numpy().round(3), sep="\n")
    print("output:", output.numpy().round(3), sep="\n")
    return {
        "weights": weights,
        "output": output,
        "first_to_itself": weights[0, 0],
        "first_to_second": weights[0, 1],
        "first_to_third": weights[0, 2],
        "third_to_first": weights[2, 0],
        "third_to_itself": weights[2, 2],
        "third_to_fourth": weights[2, 3],
        "fourth_to_others": weights[3, 0],
        "fourth_to_itself": weights[3, 3],
    }


@example
def weights_as_a_map(four_tokens: dict[str, Tensor]) -> None:
    """Draw the four rows of weights as a heat map."""
    weights = four_tokens["weights"].numpy()
    tokens = ["first", "second", "third", "fourth"]
    _, axes = plt.subplots(figsize=(4.8, 3.4))
    axes.pcolormesh(tokens, tokens, weights, vmin=0, vmax=0.5)
    for (row, column), weight in np.ndenumerate(weights):
        colour = "white" if weight < 0.3 else "black"
        label = f"{weight:.2f}"
        axes.text(column, row, label, color=colour, ha="center", va="center")
    axes.invert_yaxis()
    axes.set(xlabel="token attended to (key)", ylabel="token that asks (query)")


def entropy(weights: Tensor) -> Tensor:
    """Measure how widely each row looks, in nats; (..., T, T) in, (..., T) out.

    0 when all weight is on one token, ln T when each of T tokens has the same.
    """
    of_rows: Tensor = torch.special.entr(weights).sum(-1)  # entr(p) = -p ln p
    return of_rows


def seen_by_heads(weights: Tensor) -> Values:
    """Weights (layers, heads, T, T), the entropy of each row, and its mean by head.

    The weights to six decimals, which is more than the attention viewer shows.
    """
    return {
        "weights": list(weights.double().round(decimals=6)),
        "entropy": list(entropy(weights)),
        "mean_entropy": entropy(weights).mean(dim=-1),
    }


def viewed(weights: Tensor, tokens: list[str]) -> Values:
    """Collect what the attention viewer shows of weights (layers, heads, T, T)."""
    even = torch.full((len(tokens),), 1 / len(tokens))
    mean = weights.mean(dim=1, keepdim=True)  # over heads: (layers, 1, T, T)
    several = {"mean": seen_by_heads(mean)} if weights.size(1) > 1 else {}
    own = seen_by_heads(weights)
    return {"tokens": tokens, "uniform": entropy(even), **own, **several}


@example
def where_four_tokens_look(four_tokens: dict[str, Tensor]) -> Values:
    """The four rows of weights, and how widely each looks."""
    tokens = ["first", "second", "third", "fourth"]
    return viewed(four_tokens["weights"][None, None], tokens)  # one layer, one head


@example
def dropout_on_weights(four_tokens: dict[str, Tensor]) -> Values:
    """With dropout on the weights, a row no longer sums to 1; on average it does."""
    torch.manual_seed(0)
    weights = four_tokens["weights"]
    dropped = F.dropout(weights, p=0.1)  # each weight: 0, or divided by 0.9
    print("row sums:    ", weights.sum(-1).numpy().round(2))
    print("with dropout:", dropped.sum(-1).numpy().round(2))

    many = F.dropout(weights.expand(10_000, 4, 4), p=0.1)
    print(f"mean of 10,000 draws: {many.sum(-1).mean():.3f}")
    return {
        "without": weights.sum(-1),
        "with_dropout": dropped.sum(-1),
        "mean": many.sum(-1).mean(),
    }


@example
def three_roles() -> Values:
    """Three learned products let one token ask without being asked back."""
    torch.manual_seed(0)
    x = torch.randn(5, 16)  # (T, d_model): five tokens
    head = AttentionHead(d_model=16, d_k=8, d_v=8)
    output, weights = head(x)
    query, key = head.query(x), head.key(x)  # (T, d_k)
    print("x", tuple(x.shape), "-> query and key", tuple(query.shape))
    print("weights", tuple(weights.shape), "-> output", tuple(output.shape))

    print("                    0 asks 1  1 asks 0")
    print(f"x in both roles    {x[0] @ x[1]:9.2f} {x[1] @ x[0]:9.2f}")
    there, back = query[0] @ key[1], query[1] @ key[0]
    print(f"learned roles      {there:9.2f} {back:9.2f}")
    return {
        "there": there.detach(),
        "back": back.detach(),
        "parameters": sum(p.numel() for p in head.parameters()),
    }


@example
def learned_lookup() -> Values:
    """One head learns to find the token that owns the wished-for colour."""
    torch.manual_seed(0)
    head = AttentionHead(d_model=9, d_k=8, d_v=1)
    losses = train(head, wishes=1, steps=400, lr=0.02)

    tokens, answers, owner = colour_wishes(batch=2000)  # sequences it has not seen
    with torch.no_grad():
        output, weights = head(tokens)
    on_owner = weights.gather(-1, owner).mean()
    new_loss = F.mse_loss(output, answers)
    print(f"error before training:     {losses[0]:.4f}")
    print(f"error on new sequences:    {new_loss:.4f}")
    print(f"weight on the right token: {on_owner:.4f}")
    return {
        "steps": len(losses),
        "first_loss": losses[0],
        "new_loss": new_loss,
        "on_owner": on_owner,
        "query_weight": head.query.weight.detach(),
        "key_weight": head.key.weight.detach(),
        "value_weight": head.value.weight.detach(),
    }


@example
def what_it_learned(learned_lookup: dict[str, Tensor]) -> Values:
    """The learned products, multiplied: which feature asks for which."""
    asks = learned_lookup["query_weight"].T @ learned_lookup["key_weight"]  # (9, 9)

    names = [f"{verb} {c}" for verb in ("wants", "owns") for c in "RGBY"] + ["number"]
    fig, axes = plt.subplots(figsize=(5.2, 4.4))
    mesh = axes.pcolormesh(names, names, asks, cmap="RdBu_r", vmin=-12, vmax=12)
    fig.colorbar(mesh, label="what the pair adds to q·k")
    axes.tick_params(axis="x", rotation=90)
    axes.invert_yaxis()
    axes.set(xlabel="feature of the key token", ylabel="feature of the query token")
    match = asks[:4, 4:8].diagonal()  # wants red x owns red, and so on
    mismatch = asks[:4, 4:8][~torch.eye(4, dtype=torch.bool)]
    return {
        "smallest_match": match.min(),
        "largest_mismatch": mismatch.max(),
        "number_in_score": torch.cat([asks[8], asks[:, 8]]).abs().max(),
        "number_in_value": learned_lookup["value_weight"][0, 8],
    }


@example
def dot_products() -> Values:
    """The spread of q.k when its 64 components are independent."""
    torch.manual_seed(0)
    d_k = 64
    query, key = torch.randn(200_000, d_k), torch.randn(200_000, d_k)
    scores = (query * key).sum(-1)  # (200000,): one dot product a pair
    scaled = scores / math.sqrt(d_k)
    print(f"std of q.k:             {scores.std():.2f}")
    print(f"std of q.k / sqrt(d_k): {scaled.std():.2f}")
    return {
        "d_k": d_k,
        "std_unscaled": scores.std(),
        "std_scaled": scaled.std(),
    }


@example
def largest_weight() -> Values:
    """The largest of the weights over 64 keys, mean over 20,000 queries."""
    torch.manual_seed(0)
    query, key = torch.randn(20_000, 1, 64), torch.randn(20_000, 64, 64)
    scores = (query @ key.mT).squeeze(1)  # (20000, 64): 64 keys a query
    largest = {
        "unscaled": scores.softmax(-1).amax(-1),  # (20000,)
        "scaled": (scores / math.sqrt(64)).softmax(-1).amax(-1),
    }
    mean = {name: weight.mean() for name, weight in largest.items()}
    error = {name: 1.96 * w.std() / math.sqrt(len(w)) for name, w in largest.items()}
    for name in largest:
        print(f"{name:9} {mean[name]:.4f} ± {error[name]:.4f}")
    print(f"all even  {1 / 64:.4f}")
    return {
        "unscaled": largest["unscaled"],
        "scaled": largest["scaled"],
        "mean_unscaled": mean["unscaled"],
        "mean_scaled": mean["scaled"],
        "error_unscaled": error["unscaled"],
        "error_scaled": error["scaled"],
        "keys": scores.size(-1),
        "times_even": mean["scaled"] * 64,
    }


@example
def small_samples(largest_weight: dict[str, Tensor]) -> Values:
    """How the same mean scatters when it is taken over few queries."""
    published = {"unscaled": 0.687, "scaled": 0.096}  # size not given
    sizes = [4, 8, 16, 32, 64]
    share: dict[str, list[float]] = {"unscaled": [], "scaled": []}
    _, axes = plt.subplots(2, 1, figsize=(4.4, 5.4), sharex=True)
    for ax, name in zip(axes, share, strict=True):
        weights = largest_weight[name]  # (20000,)
        for place, size in enumerate(sizes):
            samples = weights[: len(weights) // size * size]
            means = samples.view(-1, size).mean(1)  # one a sample
            low, high = means.quantile(torch.tensor([0.025, 0.975]))
            ax.vlines(place, low, high, linewidth=6, alpha=0.6)
            as_low = (means <= published[name]).float().mean()
            share[name].append(as_low.item())
        ax.axhline(weights.mean(), color="C0", label="20,000 queries")
        ax.axhline(published[name], color="C1", ls="--", label="published")
        ax.set_xticks(range(len(sizes)), map(str, sizes))
        ax.set(title=name, ylabel="mean largest weight", ylim=(0, None))
    axes[1].set_xlabel("queries in a sample")
    axes[0].legend(loc="lower right")

    print("samples as low as the published value")
    print("queries ", *(f"{size:5}" for size in sizes))
    for name, low_ones in share.items():
        print(f"{name:9}" + " ".join(f"{part:5.0%}" for part in low_ones))
    return {
        "published_unscaled": published["unscaled"],
        "published_scaled": published["scaled"],
        "as_low_unscaled_8": share["unscaled"][1],
        "as_low_scaled_8": share["scaled"][1],
        "as_low_unscaled_64": share["unscaled"][4],
        "as_low_scaled_64": share["scaled"][4],
    }


@example
def scaling_sweep() -> Values:
    """The spread of q.k and the trace of the softmax Jacobian, over d."""
    torch.manual_seed(0)
    sizes = [1, 4, 16, 64, 256, 1024]
    spread, traces, scaled_traces = [], [], []
    print("   d    std  sqrt(d)  trace  scaled")
    for d in sizes:
        query, key = torch.randn(2, 128, 64, d)  # 128 sequences of 64 tokens
        scores = query @ key.mT  # (128, 64, 64)
        p, scaled_p = scores.softmax(-1), (scores / math.sqrt(d)).softmax(-1)
        trace, scaled = (1 - w.square().sum(-1).mean() for w in (p, scaled_p))
        std, root = scores.std(), math.sqrt(d)
        print(f"{d:4} {std:6.2f} {root:8.2f} {trace:6.2f} {scaled:7.2f}")
        spread.append(std)
        traces.append(trace)
        scaled_traces.append(scaled)
    return {
        "sizes": sizes,
        "spread": spread,
        "traces": traces,
        "scaled_traces": scaled_traces,
        "first_trace": traces[0],
        "last_trace": traces[-1],
        "last_scaled_trace": scaled_traces[-1],
        "spread_at_256": spread[4],
    }


@example
def saturation(scaling_sweep: dict[str, Any]) -> None:
    """Draw the trace of the softmax Jacobian against d."""
    sizes = scaling_sweep["sizes"]
    _, axes = plt.subplots(figsize=(5, 3.2))
    axes.plot(sizes, scaling_sweep["scaled_traces"], "o-", label="q·k / sqrt(d)")
    axes.plot(sizes, scaling_sweep["traces"], "s-", label="q·k")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, map(str, sizes))
    axes.set(xlabel="d", ylabel="trace of the Jacobian", ylim=(0, 1))
    axes.legend()


@example
def gradients() -> Values:
    """The length of the gradient that reaches each query, over d."""
    torch.manual_seed(0)
    sizes = [1, 4, 16, 64, 256, 1024]
    lengths: dict[str, list[Tensor]] = {"q·k": [], "q·k / sqrt(d)": []}
    for d in sizes:
        query, key = torch.randn(2, 64, 64, d).requires_grad_()
        value, signal = torch.randn(2, 64, 64, 64)  # the signal: a random gradient
        for name, scale in (("q·k", 1.0), ("q·k / sqrt(d)", 1 / math.sqrt(d))):
            output = (query @ key.mT * scale).softmax(-1) @ value
            (gradient,) = torch.autograd.grad(output, query, signal)
            lengths[name].append(gradient.norm(dim=-1).flatten())  # (4096,)

    print("                    d   median     mean")
    for place in (3, 5):
        for name in lengths:
            n = lengths[name][place]
            print(f"{name:14} {sizes[place]:6} {n.median():8.3f} {n.mean():8.3f}")
    unscaled, scaled = lengths.values()
    return {
        "sizes": sizes,
        "lengths": lengths,
        "mean_unscaled": unscaled[5].mean(),
        "mean_scaled": scaled[5].mean(),
        "median_unscaled": unscaled[5].median(),
        "median_scaled": scaled[5].median(),
        "starved": (unscaled[5] < scaled[5].median() / 1000).float().mean(),
        "head": sizes[3],
        "median_unscaled_head": unscaled[3].median(),
        "median_scaled_head": scaled[3].median(),
    }


@example
def uneven_gradients(gradients: dict[str, Any]) -> Values:
    """Draw the median and the middle 80 % of the gradient lengths against d."""
    sizes, tenths = gradients["sizes"], torch.tensor([0.1, 0.5, 0.9])
    _, axes = plt.subplots(figsize=(5, 3.2))
    ratio = {}
    for name, colour in (("q·k / sqrt(d)", "C0"), ("q·k", "C1")):
        lengths = torch.stack(gradients["lengths"][name])  # (6, 4096)
        low, middle, high = lengths.quantile(tenths, dim=1)  # (6,) each
        axes.plot(sizes, middle, "o-", color=colour, label=name)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.25)
        ratio[name] = high / low
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, map(str, sizes))
    axes.set(xlabel="d", ylabel="gradient length at a query", ylim=(1e-6, 1e3))
    axes.legend(loc="lower left")
    return {
        "ratio_unscaled_head": ratio["q·k"][3],
        "ratio_scaled_head": ratio["q·k / sqrt(d)"][3],
    }


@example
def ten_times_the_query() -> Values:
    """The third row again, with every query ten times as long."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    _, weights = scaled_dot_product_attention(10 * x, x, x)
    print(weights[2].numpy().round(3), f"sum {weights[2].sum():.3f}")
    return {"third_to_itself": weights[2, 2], "sum": weights[2].sum()}
