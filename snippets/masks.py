"""docs/masks.md: what keeps a token from seeing the answer, and the guard that proves it."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.colors import ListedColormap
from torch import Tensor, nn

from executed import example
from snippets.attention import scaled_dot_product_attention

Model = Callable[[Tensor], Tensor]  # tokens to outputs
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # query, key, value to output
Values = dict[str, object]  # what an example returns: the values that the prose quotes


def causal_mask(length: int) -> Tensor:
    """Let token i see tokens 0 to i, and no later one.

    Returns a boolean (T, T), query by key: True keeps, on the diagonal and below it.
    The mask of section 3.2.3 of "Attention Is All You Need" (2017).
    """
    return torch.ones(length, length, dtype=torch.bool).tril()


@example
def hidden_scores() -> Values:
    """Minus infinity in the scores is zero in the weights."""
    torch.manual_seed(0)
    scores = torch.randn(4, 4)  # (T_query, T_key)
    hidden = scores.masked_fill(~causal_mask(4), -math.inf)
    weights = hidden.softmax(dim=-1)
    print("scores:", hidden.numpy().round(2), sep="\n")
    print("weights:", weights.numpy().round(2), sep="\n")
    return {"hidden": weights.triu(1), "exp_of_minus_infinity": math.exp(-math.inf)}


@example
def causal_weights() -> Values:
    """Five tokens under a causal mask, as a heat map."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 5, 8)  # five tokens, d_k = 8
    _, weights = scaled_dot_product_attention(query, key, value, causal_mask(5))
    print("largest weight on a later token:", weights.triu(1).max().item())
    print("row sums:", weights.sum(-1).numpy().round(3))

    tokens = ["the", "cat", "sat", "down", "again"]
    _, axes = plt.subplots(figsize=(4.8, 3.9))
    axes.pcolormesh(tokens, tokens, weights, vmin=0, vmax=1)
    for (row, column), weight in np.ndenumerate(weights.numpy()):
        colour = "white" if weight < 0.6 else "black"
        axes.text(column, row, f"{weight:.2f}", color=colour, ha="center", va="center")
    axes.invert_yaxis()
    axes.set(xlabel="token attended to (key)", ylabel="token that asks (query)")
    return {
        "weights": weights,
        "upper_triangle": weights.triu(1).max(),
        "first_row": weights[0],
        "row_sums": weights.sum(-1),
    }


def influence(model: Model, x: Tensor, other: Tensor) -> Tensor:
    """Measure how far output i moves when token j is replaced by another token.

    x and other: (batch, T) or (batch, T, d), different at every position; the model
    returns (batch, T, d). Put it in eval mode first: dropout moves outputs too.
    Returns (T, T): row i, column j, the largest change over the batch.
    """
    columns = []
    with torch.no_grad():
        before = model(x)  # (batch, T, d)
        for j in range(x.size(1)):
            changed = x.clone()
            changed[:, j] = other[:, j]
            moved = (model(changed) - before).abs()
            columns.append(moved.amax(dim=(0, 2)))  # (T,)
    return torch.stack(columns, dim=1)  # (T, T)


def assert_causal(model: Model, x: Tensor, other: Tensor, tol: float = 1e-5) -> None:
    """Raise AssertionError if a changed token moves an earlier output by more than tol.

    x and other as in influence.
    """
    leak = influence(model, x, other).triu(1)  # above the diagonal: i before j
    if leak.max() <= tol:
        return
    i, j = divmod(int(leak.argmax()), x.size(1))
    raise AssertionError(f"token {j} moves output {i} by {leak[i, j]:.2g}")


class NextDigit(nn.Module):
    """Predict the next digit at every position: one attention and a linear layer.

    attend(query, key, value) is the attention on trial. Digits (batch, T) in, with T
    at most longest; logits (batch, T, 10) out.
    """

    def __init__(self, attend: Attend, d_model: int = 32, longest: int = 16) -> None:
        super().__init__()
        self.attend = attend
        self.digit = nn.Embedding(10, d_model)
        self.position = nn.Embedding(longest, d_model)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.logits = nn.Linear(d_model, 10)

    def forward(self, digits: Tensor) -> Tensor:
        position = self.position.weight[: digits.size(1)]  # (T, d_model)
        x = self.digit(digits) + position  # (batch, T, d_model)
        attended = self.attend(self.query(x), self.key(x), self.value(x))
        logits: Tensor = self.logits(x + attended)  # (batch, T, 10)
        return logits


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Do it right: True keeps the keys up to and including the query's own place."""
    keep = causal_mask(query.size(-2))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


@example
def guard_on_causal() -> Values:
    """The guard lets the right mask pass."""
    torch.manual_seed(0)
    digits = torch.randint(10, (8, 6))  # (batch, T)
    model = NextDigit(causal)
    moved = influence(model, digits, other=(digits + 1) % 10)  # (T, T)
    assert_causal(model, digits, other=(digits + 1) % 10)
    for row in moved.tolist():
        print("".join(f"{distance:6.2f}" for distance in row))
    return {"moved": moved, "above": moved.triu(1).max()}


def inverted(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Get it wrong: hide what should be kept, and keep what should be hidden."""
    keep = ~causal_mask(query.size(-2))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


def query_axis(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Get it wrong: the triangle lies along the query axis, as if rows were keys."""
    keep = causal_mask(query.size(-2)).T
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


def off_by_one(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Get it wrong: one diagonal too many, so that each token sees the next."""
    length = query.size(-2)
    keep = torch.ones(length, length, dtype=torch.bool).tril(diagonal=1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


def too_late(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Get it wrong: the softmax has already divided by a sum over later tokens."""
    _, weights = scaled_dot_product_attention(query, key, value)
    return (weights * causal_mask(query.size(-2))) @ value


@example
def guard_on_wrong_masks() -> Values:
    """The guard stops each wrong mask before any training."""
    torch.manual_seed(0)
    digits = torch.randint(10, (8, 6))
    said = {}
    for attend in (causal, inverted, query_axis, off_by_one, too_late):
        try:
            assert_causal(NextDigit(attend), digits, other=(digits + 1) % 10)
            said[attend.__name__] = "passes"
        except AssertionError as error:
            said[attend.__name__] = str(error)
        print(f"{attend.__name__:10}", said[attend.__name__])
    return {"said": said}


@example
def influence_maps() -> Values:
    """Which output moves when which token changes, for each mask."""
    torch.manual_seed(0)
    digits = torch.randint(10, (8, 6))
    attentions = {
        "no mask": F.scaled_dot_product_attention,
        "causal": causal,
        "inverted": inverted,
        "query axis": query_axis,
        "off by one": off_by_one,
        "after softmax": too_late,
    }
    fig, grid = plt.subplots(3, 2, figsize=(4.4, 6.6), sharex=True, sharey=True)
    leaks = {}
    for axes, (name, attend) in zip(grid.flat, attentions.items(), strict=True):
        moves = influence(NextDigit(attend), digits, (digits + 1) % 10) > 1e-5
        leaks[name] = moves.triu(1).sum().item()
        seen = moves.int() + moves.triu(1)  # 0: still, 1: moves, 2: moves and must not
        axes.pcolormesh(seen, cmap=ListedColormap(["none", "C0", "C1"]), vmin=0, vmax=2)
        i, j = moves.triu(1).nonzero(as_tuple=True)
        axes.plot(j + 0.5, i + 0.5, "x", color="black")
        axes.set(title=name, aspect="equal", xticks=[], yticks=[])
    grid[0, 0].invert_yaxis()
    fig.supxlabel("token that changes")
    fig.supylabel("output that moves")
    return {"leaks": leaks, "off_by_one": leaks["off by one"], "pairs": 6 * 5 // 2}


@example
def two_conventions() -> Values:
    """The same boolean mask means opposite things in two places of one library."""
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, num_heads=2, batch_first=True)
    x, other = torch.randn(2, 1, 6, 16)  # (batch, T, d_model) each
    keep = causal_mask(6)
    plain = influence(lambda x: layer(x, x, x, attn_mask=keep)[0], x, other)
    flipped = influence(lambda x: layer(x, x, x, attn_mask=~keep)[0], x, other)
    leak, flipped_leak = plain.triu(1).max(), flipped.triu(1).max()
    print(f"keep   moved by a later token: {leak:.2f}")
    print(f"~keep  moved by a later token: {flipped_leak:.2f}")
    return {"keep": leak, "flipped": flipped_leak}


def last_hidden(model: nn.Module, tokens: Tensor) -> Tensor:
    """Run a Hugging Face model and keep its last vectors, (batch, T, d_model)."""
    hidden: Tensor = model(tokens).last_hidden_state
    return hidden


@example
def encoder_and_decoder() -> Values:
    """Small BERT, RoBERTa and GPT-2, freshly initialised: which of them is causal?"""
    import transformers as hf

    torch.manual_seed(0)
    small: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16}
    small |= {"num_hidden_layers": 2, "num_attention_heads": 2}
    small |= {"initializer_range": 0.3}  # large enough to see
    models = {
        "BERT": hf.BertModel(hf.BertConfig(**small)),
        "RoBERTa": hf.RobertaModel(hf.RobertaConfig(**small)),
        "GPT-2": hf.GPT2Model(hf.GPT2Config(**small, bos_token_id=0, eos_token_id=0)),
    }
    tokens = torch.randint(10, 30, (4, 6))  # (batch, T)
    leaks = {}
    for name, model in models.items():
        hidden = partial(last_hidden, model.eval())
        leaks[name] = influence(hidden, tokens, other=tokens + 20).triu(1).max()
        print(f"{name:8} moved by a later token: {leaks[name]:.2f}")
    return {"leaks": leaks}


def train_on_random_digits(attend: Attend, seed: int, steps: int = 200) -> Tensor:
    """Train a NextDigit where there is nothing to learn: each digit is drawn alone.

    Returns the mean cross-entropy of each step, in nats, on fresh digits, (steps,).
    """
    torch.manual_seed(seed)
    model = NextDigit(attend)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        digits = torch.randint(10, (64, 17))
        logits = model(digits[:, :-1])  # (batch, 16, 10)
        loss = F.cross_entropy(logits.flatten(0, 1), digits[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


@example(timeout=120)
def random_digits() -> Values:
    """Train on random digits with the right mask and with each wrong one."""
    ends = {}
    curves = {}
    for attend in (causal, inverted, query_axis, off_by_one, too_late):
        runs = torch.stack([train_on_random_digits(attend, seed) for seed in range(3)])
        last = runs[:, -50:].mean(dim=1)  # of each seed, the last 50 steps
        print(f"{attend.__name__:10} {last.min():.2f} to {last.max():.2f}")
        ends[attend.__name__] = [last.min().item(), last.max().item()]
        curves[attend.__name__] = runs.tolist()
    return {
        "ends": ends,
        "curves": curves,
        "guessing": math.log(10),
        "seeds": len(runs),
        "steps": runs.size(1),
    }


@example
def loss_curves(random_digits: dict[str, Any]) -> Values:
    """Loss against step, one line a seed."""
    _, axes = plt.subplots(figsize=(5.2, 3.6))
    labels = {"causal": "right mask", "too_late": "after softmax"}
    labels |= {"off_by_one": "off by one"}
    for colour, (name, label) in enumerate(labels.items()):
        for seed, curve in enumerate(random_digits["curves"][name]):
            smooth = torch.tensor(curve).unflatten(0, (-1, 10)).mean(dim=1)
            steps = torch.arange(len(smooth)) * 10 + 5  # ten steps a point
            axes.plot(steps, smooth, color=f"C{colour}", label=None if seed else label)
    axes.axhline(math.log(10), linestyle="--", color="C3", label="guessing, ln 10")
    axes.set(xlabel="training step", ylabel="loss (nats)", ylim=(0, 2.8))
    axes.legend(loc=(0.45, 0.2))
    return {}


@example
def padding() -> Values:
    """Two sentences of different length in one batch: padding hidden on either axis."""
    torch.manual_seed(0)
    lengths = torch.tensor([6, 4])  # the second sentence ends in two padding tokens
    keep = torch.arange(6) < lengths[:, None]  # (batch, T)
    x, other = torch.randn(2, 2, 6, 8)  # (batch, T, d) each
    changed = torch.where(keep[..., None], x, other)  # new vectors in the padding only

    masks = {"keep[:, None, :]": keep[:, None, :]}  # (batch, 1, T)
    masks["keep[:, :, None]"] = keep[:, :, None]  # (batch, T, 1)
    moved = []
    for name, mask in masks.items():
        before = F.scaled_dot_product_attention(x, x, x, mask)
        after = F.scaled_dot_product_attention(changed, changed, changed, mask)
        moved.append((after - before)[keep].abs().max().item())
        print(f"{name}  moved by padding: {moved[-1]:.2f}")
    return {"keys": moved[0], "queries": moved[1]}


@example
def empty_row() -> Values:
    """A query whose every key is hidden: not the same answer everywhere."""
    torch.manual_seed(0)
    x = torch.randn(1, 4, 8)  # (batch, T, d)
    real = torch.tensor([False, True, True, True])  # token 0 is padding
    keep = causal_mask(4) & real
    print(keep.int().numpy())
    layer = nn.MultiheadAttention(8, num_heads=2, batch_first=True)

    rows = {"by hand": scaled_dot_product_attention(x, x, x, keep)[0]}
    rows["F.sdpa"] = F.scaled_dot_product_attention(x, x, x, keep)
    drop = {"attn_mask": ~keep}
    rows["nn.MHA, weights"] = layer(x, x, x, **drop, need_weights=True)[0]
    rows["nn.MHA, no weights"] = layer(x, x, x, **drop, need_weights=False)[0]
    layer.eval()
    with torch.no_grad():
        rows["the same, in eval"] = layer(x, x, x, **drop, need_weights=False)[0]

    empty = {name: output[0, 0].abs().max().item() for name, output in rows.items()}
    for name, largest in empty.items():
        print(f"{name:20} {largest:.0f}")
    return {"empty": {name: str(largest) for name, largest in empty.items()}}


@example
def nan_spreads() -> Values:
    """One empty row spoils the next layer, and every gradient."""
    torch.manual_seed(0)
    keep = causal_mask(4) & torch.tensor([False, True, True, True])
    project = nn.Linear(8, 8)
    x = project(torch.randn(4, 8))  # (T, d)
    first, _ = scaled_dot_product_attention(x, x, x, keep)
    second, _ = scaled_dot_product_attention(first, first, first, keep)
    print("NaN after layer 1, rows:", first.isnan().any(dim=-1).sum().item())
    print("NaN after layer 2, rows:", second.isnan().any(dim=-1).sum().item())

    loss = first[1:].square().mean()  # the empty row is left out of the loss
    (gradient,) = torch.autograd.grad(loss, project.weight)
    spoilt = gradient.isnan().float().mean().item()
    print(f"loss {loss.item():.2f}, gradients that are NaN: {spoilt:.0%}")
    return {
        "first": first.isnan().any(dim=-1).sum(),
        "second": second.isnan().any(dim=-1).sum(),
        "rows": len(second),
        "loss": loss,
        "spoilt": spoilt,
    }


@example
def one_new_token() -> Values:
    """One query, six keys from a cache, and `is_causal` in the wrong corner."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 6, 8)  # (batch, T, d) each
    whole = F.scaled_dot_product_attention(query, key, value, is_causal=True)

    newest = query[:, -1:]  # the other keys and values come from the cache
    flagged = F.scaled_dot_product_attention(newest, key, value, is_causal=True)
    unmasked = F.scaled_dot_product_attention(newest, key, value)

    wrong_by = (flagged - whole[:, -1:]).abs().max().item()
    right_by = (unmasked - whole[:, -1:]).abs().max().item()
    is_first = torch.equal(flagged[0, 0], value[0, 0])
    print(f"no mask:        off by {right_by:.1f}")
    print(f"is_causal=True: off by {wrong_by:.1f}")
    print(f"equal to the first value: {is_first}")
    return {"wrong_by": wrong_by, "right_by": right_by, "first_value": is_first}


@example
def two_new_tokens() -> Values:
    """Several new tokens at once need the last rows of the causal mask."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 6, 8)
    whole = F.scaled_dot_product_attention(query, key, value, is_causal=True)

    keep = causal_mask(6)[-2:]  # (2 queries, 6 keys)
    newest = F.scaled_dot_product_attention(query[:, -2:], key, value, attn_mask=keep)
    print(keep.int().numpy())
    print(f"off by {(newest - whole[:, -2:]).abs().max():.1f}")
    return {"off_by": (newest - whole[:, -2:]).abs().max()}


@example
def leak_floor() -> Values:
    """How low a leaking model can get when the last target is not in its input."""
    floor = math.log(10) / 16
    print(f"ln 10 / 16 = {floor:.4f}")
    return {"floor": floor}


@example
def too_strict() -> Values:
    """One diagonal too few: nothing leaks, and the first token sees nothing."""
    torch.manual_seed(0)
    x, other = torch.randn(2, 1, 6, 8)
    keep = causal_mask(6).tril(diagonal=-1)
    attend = F.scaled_dot_product_attention
    moved = influence(lambda x: attend(x, x, x, keep), x, other)
    print("largest leak:", moved.triu(1).max().item())
    print("first output moves:", moved[0].max().item())
    return {"leak": moved.triu(1).max(), "first": moved[0].max()}
