"""docs/attention.md: scaled dot-product attention, and why the scores are divided by sqrt(d_k)."""

import math

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
    mask, boolean, broadcastable to (..., T_query, T_key): True keeps a key, False hides it.
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

    Q = x W_Q, K = x W_K, V = x W_V, section 3.2 of "Attention Is All You Need" (2017).
    """

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Take x (..., T, d_model); return the output (..., T, d_v) and weights (..., T, T)."""
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


def colour_wishes(
    batch: int,
    colours: int = 4,
    wishes: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a task that a token can solve only by asking the others.

    Each token owns one colour, no two the same, and a number. It wishes for some colours
    and must answer with the numbers of the tokens that own them.

    With T = colours, returns
    tokens (batch, T, wishes * T + T + 1): the wishes and the own colour one-hot, the number;
    answers (batch, T, wishes);
    owner (batch, T, wishes): the position of the token that owns the wished-for colour.
    """
    own = torch.rand(batch, colours).argsort(-1)  # the colours in a random order
    wish = torch.rand(batch, colours, colours).argsort(-1)[..., :wishes]
    number = torch.randn(batch, colours)
    one_hot = F.one_hot(wish, colours).flatten(2), F.one_hot(own, colours)
    tokens = torch.cat([*one_hot, number.unsqueeze(-1)], dim=-1)
    owner = own.argsort(-1).gather(1, wish.flatten(1))  # argsort inverts an order
    answers = number.gather(1, owner)
    return tokens, answers.view_as(wish), owner.view_as(wish)


def train(model: nn.Module, wishes: int, steps: int, lr: float) -> list[float]:
    """Fit model to colour_wishes by Adam, 64 new sequences a step; return the losses.

    model takes tokens (batch, T, features) and returns answers (batch, T, wishes) and weights.
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
        print(f"sharpness {sharpness:2}: {answers[sharpness]:.1f} from weights {shown}")
    return {"flat": answers[0], "soft": answers[2], "sharp": answers[20]}


@example
def third_row() -> Values:
    """The third token's weights, one step a line."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    scores = x @ x[2]  # the third token against each of the four
    scaled = scores / math.sqrt(3)
    grown = scaled.exp()
    weights = grown / grown.sum()
    print("dot products      ", scores.numpy())
    print("divided by sqrt(3)", scaled.numpy().round(3))
    print("exponential       ", grown.numpy().round(3))
    print("divided by the sum", weights.numpy().round(3))
    return {"scores": scores, "exponentials": grown, "weights": weights}


@example
def four_tokens() -> Values:
    """Four hand-written tokens attend to each other."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    output, weights = scaled_dot_product_attention(x, x, x)
    print("weights:", weights.numpy().round(3), sep="\n")
    print("output:", output.numpy().round(3), sep="\n")

    tokens = ["first", "second", "third", "fourth"]
    _, axes = plt.subplots(figsize=(5, 3.6))
    axes.pcolormesh(tokens, tokens, weights, vmin=0, vmax=0.5)
    for (row, column), weight in np.ndenumerate(weights.numpy()):
        colour = "white" if weight < 0.3 else "black"
        axes.text(column, row, f"{weight:.2f}", color=colour, ha="center", va="center")
    axes.invert_yaxis()
    axes.set(xlabel="token attended to (key)", ylabel="token that asks (query)")
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
def dropout_on_weights(four_tokens: dict[str, Tensor]) -> Values:
    """With dropout on the weights, a row no longer sums to 1; on average it does."""
    torch.manual_seed(0)
    weights = four_tokens["weights"]
    dropped = F.dropout(weights, p=0.1)  # each weight: 0, or divided by 0.9
    print("row sums:             ", weights.sum(-1).numpy().round(2))
    print("row sums with dropout:", dropped.sum(-1).numpy().round(2))

    many = F.dropout(weights.expand(10_000, 4, 4), p=0.1)
    print(f"mean of 10,000 draws:  {many.sum(-1).mean():.3f}")
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

    there, back = x[0] @ x[1], x[1] @ x[0]
    print(f"x as query and key: 0 asks 1 {there:6.2f}, 1 asks 0 {back:6.2f}")
    there, back = query[0] @ key[1], query[1] @ key[0]
    print(f"learned products:   0 asks 1 {there:6.2f}, 1 asks 0 {back:6.2f}")
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
    print(f"mean squared error before training: {losses[0]:.2f}")
    print(f"after {len(losses)} steps, new sequences:   {new_loss:.4f}")
    print(f"weight on the token that owns the colour: {on_owner:.2f}")
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
    fig, axes = plt.subplots(figsize=(5.6, 4.6))
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
    print(f"standard deviation of q.k:             {scores.std():.2f}")
    print(f"standard deviation of q.k / sqrt(d_k): {scaled.std():.2f}")
    return {
        "d_k": d_k,
        "std_unscaled": scores.std(),
        "std_scaled": scaled.std(),
        "variance": scores.var(),
    }


@example
def largest_weight() -> Values:
    """The largest of the weights over 64 keys, mean over 20,000 queries."""
    torch.manual_seed(0)
    query, key = torch.randn(20_000, 1, 64), torch.randn(20_000, 64, 64)
    scores = (query @ key.mT).squeeze(1)  # (20000, 64): each query has its own 64 keys
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
    published = {"unscaled": 0.687, "scaled": 0.096}  # elsewhere, sample size not given
    sizes = [4, 8, 16, 32, 64]
    as_low: dict[str, list[Tensor]] = {}
    _, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
    for ax, (name, value) in zip(axes, published.items(), strict=True):
        weights = largest_weight[name]  # (20000,)
        means = [weights[: len(weights) // n * n].view(-1, n).mean(1) for n in sizes]
        low, high = (torch.stack([m.quantile(q) for m in means]) for q in (0.025, 0.975))
        as_low[name] = [(m <= value).float().mean() for m in means]
        ax.vlines(range(len(sizes)), low, high, linewidth=6, alpha=0.6)
        ax.axhline(weights.mean(), color="C0", label="20,000 queries")
        ax.axhline(value, color="C1", linestyle="--", label="published")
        ax.set_xticks(range(len(sizes)), map(str, sizes))
        ax.set(title=name, xlabel="queries in the sample", ylim=(0, None))
    axes[0].set_ylabel("mean largest weight")
    axes[0].legend(loc="lower right")

    print("share of samples at or below the published value")
    print("queries ", *(f"{n:6}" for n in sizes))
    for name, shares in as_low.items():
        print(f"{name:9}", *(f"{share:6.1%}" for share in shares))
    return {
        "published_unscaled": published["unscaled"],
        "published_scaled": published["scaled"],
        "as_low_unscaled_8": as_low["unscaled"][1],
        "as_low_scaled_8": as_low["scaled"][1],
        "as_low_unscaled_64": as_low["unscaled"][4],
        "as_low_scaled_64": as_low["scaled"][4],
    }


@example
def scaling_sweep() -> Values:
    """The spread of q.k and the trace of the softmax Jacobian, over d."""
    torch.manual_seed(0)
    sizes = [1, 4, 16, 64, 256, 1024]
    spread, traces, scaled_traces = [], [], []
    print("    d  std of q.k  sqrt(d)  trace  trace, scaled")
    for d in sizes:
        query, key = torch.randn(2, 128, 64, d)  # 128 sequences of 64 tokens
        scores = query @ key.mT  # (128, 64, 64)
        trace, scaled_trace = (
            1 - s.softmax(-1).square().sum(-1).mean() for s in (scores, scores / math.sqrt(d))
        )
        print(f"{d:5} {scores.std():11.2f} {math.sqrt(d):8.2f} {trace:6.2f} {scaled_trace:14.2f}")
        spread.append(scores.std())
        traces.append(trace)
        scaled_traces.append(scaled_trace)

    _, axes = plt.subplots()
    axes.plot(sizes, scaled_traces, "o-", label="q·k / sqrt(d)")
    axes.plot(sizes, traces, "s-", label="q·k")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, map(str, sizes))
    axes.set(xlabel="d", ylabel="trace of the Jacobian", ylim=(0, 1))
    axes.legend()
    return {
        "sizes": sizes,
        "spread": spread,
        "traces": traces,
        "scaled_traces": scaled_traces,
        "first_trace": traces[0],
        "last_trace": traces[-1],
        "spread_at_256": spread[4],
    }


@example
def gradients() -> Values:
    """What reaches a query: the middle 80 % of gradient lengths, over d."""
    torch.manual_seed(0)
    sizes = [1, 4, 16, 64, 256, 1024]
    lengths: dict[str, list[Tensor]] = {"q·k / sqrt(d)": [], "q·k": []}
    for d in sizes:
        query, key = torch.randn(2, 64, 64, d).requires_grad_()
        value, signal = torch.randn(2, 64, 64, 64)
        for name, scale in zip(lengths, (1 / math.sqrt(d), 1.0), strict=True):
            output = (query @ key.mT * scale).softmax(-1) @ value
            (gradient,) = torch.autograd.grad(output, query, signal)
            lengths[name].append(gradient.norm(dim=-1).flatten())  # (4096,)

    _, axes = plt.subplots()
    for name, marker in zip(lengths, "os", strict=True):
        tenths = torch.tensor([0.1, 0.5, 0.9])
        low, middle, high = torch.stack([n.quantile(tenths) for n in lengths[name]]).T
        axes.plot(sizes, middle, marker + "-", label=name)
        axes.fill_between(sizes, low, high, alpha=0.25)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, map(str, sizes))
    axes.set(xlabel="d", ylabel="gradient length at a query", ylim=(1e-6, 1e3))
    axes.legend(loc="lower left")

    scaled, unscaled = (of_d[-1] for of_d in lengths.values())
    for name, length in (("scaled", scaled), ("unscaled", unscaled)):
        print(f"d = 1024, {name:9} mean {length.mean():6.2f}, median {length.median():.3f}")
    return {
        "mean_scaled": scaled.mean(),
        "mean_unscaled": unscaled.mean(),
        "median_scaled": scaled.median(),
        "median_unscaled": unscaled.median(),
        "median_unscaled_64": lengths["q·k"][3].median(),
        "starved": (unscaled < scaled.median() / 1000).float().mean(),
    }


@example
def ten_times_the_query() -> Values:
    """The third row again, with every query ten times as long."""
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    _, weights = scaled_dot_product_attention(10 * x, x, x)
    print(weights[2].numpy().round(3), f"sum {weights[2].sum():.3f}")
    return {"third_to_itself": weights[2, 2], "sum": weights[2].sum()}
