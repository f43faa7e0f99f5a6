"""docs/reading.md: what a trained sorter's attention shows, and what it does not."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from executed import example
from snippets.attention import scaled_dot_product_attention
from snippets.multi_head import MultiHeadAttention
from snippets.sorting import (
    BETTER,
    EncoderBlock,
    Sorter,
    better_recipe,
    evaluate,
    sample,
    sorting_loss,
    with_positions,
)

Values = dict[str, Any]  # what an example returns: the values that the prose quotes


@torch.no_grad()
def look(model: Sorter, digits: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Sort digits (batch, T); return what is written and each layer's weights."""
    scores, weights = model(digits)
    return scores.argmax(dim=-1), weights  # (batch, T), (batch, heads, T, T) each


def top_digit(weights: Tensor, digits: Tensor) -> Tensor:
    """Read the digit under the largest weight of each row.

    weights (batch, T, T), digits (batch, T); returns (batch, T).
    """
    return digits.gather(1, weights.argmax(dim=-1))


def near_target(weights: Tensor, digits: Tensor) -> Tensor:
    """Mark the rows whose top key holds the target, or its neighbour in sorted order.

    weights (batch, T, T), digits (batch, T); returns (batch, T), boolean.
    """
    ordered = digits.sort(dim=-1).values
    looked = top_digit(weights, digits)
    below = torch.cat([ordered[:, :1], ordered[:, :-1]], dim=1)
    above = torch.cat([ordered[:, 1:], ordered[:, -1:]], dim=1)
    return (looked == below) | (looked == ordered) | (looked == above)


@example
def one_input(better_recipe: Values) -> Values:
    """One input: what each row must write, and the digit it looks at most."""
    model = better_recipe["models"][0]
    digits = torch.tensor([[7, 2, 9, 2, 5, 0, 8, 3]])
    written, (_, layer2) = look(model, digits)
    mean = layer2.mean(dim=1)  # over heads: (batch, T, T)
    looked = top_digit(mean, digits)

    print("input        ", *digits[0].tolist())
    print("writes       ", *written[0].tolist())
    print("looks most at", *looked[0].tolist())
    return {
        "digits": digits[0],
        "written": written[0],
        "looked": looked[0],
        "weights": mean[0],
        "hits": (looked == written).sum(),
        "misses": (looked != written).sum(),
        "rows": len(written[0]),
        "near": bool(near_target(mean, digits).all()),
        "largest": mean.max(),
        "row_sums": mean[0].sum(dim=-1),
    }


@example
def heat_map(one_input: Values) -> Values:
    """The same weights as a map; a frame marks each place that holds the value."""
    weights, digits, written = (one_input[k] for k in ("weights", "digits", "written"))
    _, axes = plt.subplots(figsize=(5.2, 4.4))
    drawn = axes.pcolormesh(weights, vmin=0, cmap="viridis")
    for row, column in (digits == written[:, None]).nonzero().tolist():
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor="C1", lw=2)
        axes.add_patch(frame)
    axes.invert_yaxis()
    centres = torch.arange(8) + 0.5
    axes.set_xticks(centres, digits.tolist())
    axes.set_yticks(centres, written.tolist())
    axes.set(xlabel="digit that is read", ylabel="digit that the row must write")
    plt.colorbar(drawn, label="weight, mean over heads")
    return {"framed": (digits == written[:, None]).sum()}


def share_on_target(weights: Tensor, digits: Tensor) -> Tensor:
    """Share of rows whose top key holds the digit that the row must write."""
    ordered = digits.sort(dim=-1).values
    return (top_digit(weights, digits) == ordered).float().mean()


@example
def over_thousands(with_positions: Values, better_recipe: Values) -> Values:
    """The same measure on 5,000 new inputs, ten trained models, five untrained."""
    torch.manual_seed(0)
    digits, _ = sample(5000)
    untrained = []
    for seed in range(5):
        torch.manual_seed(seed)
        untrained.append(Sorter(BETTER))
    groups = {"published": with_positions["models"], "mended": better_recipe["models"]}
    groups["untrained"] = untrained

    ranges, near = {}, {}
    print("layer 2, top key holds the target:")
    for name, models in groups.items():
        means = [look(model, digits)[1][1].mean(dim=1) for model in models]
        hits = [share_on_target(mean, digits).item() for mean in means]
        ranges[name] = [min(hits), max(hits)]
        close = [near_target(mean, digits).float().mean().item() for mean in means]
        near[name] = [min(close), max(close)]
        print(f"{name:14} {min(hits):5.1%} to {max(hits):.1%}")
    chance = 1 / 8 + 7 / 8 * 1 / 10
    print(f"{'a random key':14} {chance:5.1%}")
    return {**ranges, "chance": chance, "inputs": len(digits), "near": near}


@example
def when_it_looks_elsewhere(better_recipe: Values) -> Values:
    """Is the right digit written by the rows whose top key holds another one?"""
    torch.manual_seed(0)
    digits, ordered = sample(5000)
    right, elsewhere = [], []
    for model in better_recipe["models"]:
        written, (_, layer2) = look(model, digits)
        away = top_digit(layer2.mean(dim=1), digits) != ordered  # (batch, T)
        right.append((written == ordered)[away].float().mean().item())
        elsewhere.append(int(away.sum()))
    print(f"rows that look elsewhere: {sum(elsewhere):,}")
    print(f"right all the same: {min(right):.2%} to {max(right):.2%}")
    return {"rows": sum(elsewhere), "right": [min(right), max(right)]}


@example
def every_head(better_recipe: Values) -> Values:
    """The same input: where each row looks in each head of both layers."""
    from snippets.attention import viewed

    digits = torch.tensor([[7, 2, 9, 2, 5, 0, 8, 3]])
    written, layers = look(better_recipe["models"][0], digits)
    weights = torch.cat(layers)  # (layers, heads, T, T)
    tokens = [str(digit) for digit in digits[0].tolist()]
    writes = [str(digit) for digit in written[0].tolist()]

    fig, axes = plt.subplots(2, 4, figsize=(5.6, 3.3), sharex=True, sharey=True)
    for axis, head in zip(axes.flat, weights.flatten(0, 1), strict=True):
        axis.pcolormesh(head, vmin=0, vmax=1, cmap="viridis")
        axis.set_xticks(torch.arange(8) + 0.5, tokens)
        axis.set_yticks(torch.arange(8) + 0.5, writes)
    axes[0, 0].invert_yaxis()
    for head in range(4):
        axes[0, head].set_title(f"head {head + 1}")
    axes[0, 0].set_ylabel("layer 1")
    axes[1, 0].set_ylabel("layer 2")
    fig.supxlabel("digit that is read")
    seen: Values = {**viewed(weights, tokens), "writes": writes}
    layer1, layer2 = seen["mean_entropy"]  # (heads,) each
    return {
        **seen,
        "layer1": [layer1.min(), layer1.max()],
        "layer2": [layer2.min(), layer2.max()],
    }


@example
def head_by_head(better_recipe: Values) -> Values:
    """The same measure for each head of both layers, five models."""
    torch.manual_seed(0)
    digits, _ = sample(5000)
    hits = torch.zeros(5, 2, 4)  # (seeds, layers, heads)
    for seed, model in enumerate(better_recipe["models"]):
        for layer, weights in enumerate(look(model, digits)[1]):
            for head in range(4):
                hits[seed, layer, head] = share_on_target(weights[:, head], digits)
    hits = hits.sort(dim=-1, descending=True).values  # heads have no names
    for layer in 0, 1:
        low, high = hits[:, layer].amin(dim=0), hits[:, layer].amax(dim=0)
        spans = [f"{a:.0%}-{b:.0%}" for a, b in zip(low, high, strict=True)]
        print(f"layer {layer + 1}, best head first:", *spans[:2])
        print(f"{'':25}", *spans[2:])

    _, axes = plt.subplots(figsize=(5.2, 3.2))
    for layer in 0, 1:
        for seed in range(5):
            places = torch.arange(4) + 5 * layer + 0.12 * (seed - 2)
            axes.plot(places, hits[seed, layer], "o", color=f"C{layer}")
    axes.axhline(1 / 8 + 7 / 80, linestyle="--", color="C3", label="a random key")
    axes.set_xticks([1.5, 6.5], ["heads of layer 1", "heads of layer 2"])
    axes.set(ylabel="top key holds the target", ylim=(0, 1))
    axes.legend()
    best, worst = hits[:, 1, 0], hits[:, 1, -1]
    return {
        "best": [best.min(), best.max()],
        "worst": [worst.min(), worst.max()],
        "layer1_best": hits[:, 0, 0].max(),
    }


class Meddled(MultiHeadAttention):
    """Trained attention whose weights are changed before they are used."""

    def __init__(
        self,
        trained: MultiHeadAttention,
        change: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__(trained.query.in_features, trained.heads)
        self.load_state_dict(trained.state_dict())
        self.change = change

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attend within x (batch, T, d_model), with the changed weights."""
        query, key = self.split(self.query(x)), self.split(self.key(x))
        value = self.split(self.value(x))  # (batch, heads, T, d_k)
        _, weights = scaled_dot_product_attention(query, key, value, mask)
        weights = self.change(weights)  # (batch, heads, T, T)
        joined = (weights @ value).transpose(1, 2).flatten(2)  # (batch, T, d_model)
        return self.output(joined), weights


def meddle(model: Sorter, layer: int, change: Callable[[Tensor], Tensor]) -> Sorter:
    """Copy a trained sorter and change the attention weights of one layer."""
    meddled = deepcopy(model)
    block = meddled.blocks[layer]
    assert isinstance(block, EncoderBlock)
    block.attention = Meddled(block.attention, change)
    return meddled


def shuffle_keys(weights: Tensor) -> Tensor:
    """Deal out each row's weights anew among the keys, all heads alike."""
    batch, _, length, _ = weights.shape
    order = torch.rand(batch, 1, length, length).argsort(dim=-1)
    return weights.gather(-1, order.expand_as(weights))


def swap_rows(weights: Tensor) -> Tensor:
    """Give each token the row of another token, all heads alike."""
    batch, _, length, _ = weights.shape
    order = torch.rand(batch, 1, length, 1).argsort(dim=-2)
    return weights.gather(-2, order.expand_as(weights))


def level(weights: Tensor) -> Tensor:
    """Give every key the same weight."""
    return torch.full_like(weights, 1 / weights.shape[-1])


@example
def meddling(better_recipe: Values) -> Values:
    """Change the weights of one layer; count the digits that come out as before."""
    torch.manual_seed(0)
    digits, _ = sample(2000)
    survive: dict[str, list[list[float]]] = {}
    print("digits written as before, in %")
    print("                layer 1     layer 2")
    for change in shuffle_keys, swap_rows, level:
        name = change.__name__
        survive[name] = []
        for layer in 0, 1:
            kept = []
            for model in better_recipe["models"]:
                before, _ = look(model, digits)
                after, _ = look(meddle(model, layer, change), digits)
                kept.append((after == before).float().mean().item())
            survive[name].append([min(kept), max(kept)])
        spans = [f"{100 * low:3.0f} to {100 * high:3.0f}" for low, high in survive[name]]
        print(f"{name:14}", *spans, sep="  ")
    return survive


@example
def follow_the_weights(better_recipe: Values) -> Values:
    """After a shuffle in layer 2: does the row write the digit it now looks at?"""
    torch.manual_seed(0)
    digits, ordered = sample(5000)
    follows, stays = [], []
    for model in better_recipe["models"]:
        written, (_, layer2) = look(meddle(model, 1, shuffle_keys), digits)
        looked = top_digit(layer2.mean(dim=1), digits)
        moved = looked != ordered  # rows that now look at a wrong digit
        follows.append((written == looked)[moved].float().mean().item())
        stays.append((written == ordered)[moved].float().mean().item())
    print(f"writes what it looks at: {min(follows):.0%} to {max(follows):.0%}")
    print(f"writes the right digit:  {min(stays):.0%} to {max(stays):.0%}")
    return {"follows": [min(follows), max(follows)], "stays": [min(stays), max(stays)]}


def kendall(a: Tensor, b: Tensor) -> Tensor:
    """Kendall's rank correlation along the last dimension, 1 for the same order.

    Pairs ordered alike, less pairs ordered differently, over all the pairs.
    """
    first, second = torch.combinations(torch.arange(a.shape[-1])).unbind(dim=-1)
    alike = (a[..., first] - a[..., second]).sign()
    alike = alike * (b[..., first] - b[..., second]).sign()  # (..., pairs)
    tau: Tensor = alike.mean(dim=-1)
    return tau


def gradient_sizes(model: Sorter, digits: Tensor) -> Tensor:
    """How strongly each token's embedding moves what each row writes.

    Norm of the gradient of the score of the written digit: (batch, T rows, T tokens).
    """
    kept: list[Tensor] = []
    hook = model.embedding.register_forward_hook(lambda *call: kept.append(call[2]))
    scores, _ = model(digits)
    hook.remove()
    best = scores.amax(dim=-1).sum(dim=0)  # (T,)
    rows = [torch.autograd.grad(row, kept[0], retain_graph=True)[0] for row in best]
    sizes: Tensor = torch.stack(rows, dim=1).norm(dim=-1)
    return sizes


@torch.no_grad()
def leave_one_out(model: Sorter, digits: Tensor) -> Tensor:
    """How far each row's output moves when no token may attend to one of them.

    Total variation distance, (batch, T rows, T tokens left out).
    """
    whole = model(digits)[0].softmax(dim=-1)  # (batch, T, 10)
    moved = []
    for token in range(digits.shape[1]):
        keep = torch.arange(digits.shape[1]) != token  # (T,): hides one key
        without = model(digits, keep)[0].softmax(dim=-1)
        moved.append((without - whole).abs().sum(dim=-1) / 2)
    return torch.stack(moved, dim=-1)


@example
def three_rankings(better_recipe: Values) -> Values:
    """Rank the tokens of each row by attention, by gradient and by leaving one out."""
    torch.manual_seed(0)
    digits, _ = sample(500)
    taus: dict[str, list[float]] = {}
    for model in better_recipe["models"]:
        rankings = {"attention": look(model, digits)[1][1].mean(dim=1)}
        rankings["gradient"] = gradient_sizes(model, digits)
        rankings["leave one out"] = leave_one_out(model, digits)
        for a, b in torch.combinations(torch.arange(3)).tolist():
            pair = [list(rankings)[a], list(rankings)[b]]
            tau = kendall(rankings[pair[0]], rankings[pair[1]]).mean().item()
            taus.setdefault(" / ".join(pair), []).append(tau)
    print("Kendall's tau, mean over rows")
    for name, values in taus.items():
        print(f"{name:25}  {min(values):.2f} to {max(values):.2f}")
    spans = [[min(values), max(values)] for values in taus.values()]
    names = ["attention_gradient", "attention_left_out", "gradient_left_out"]
    return dict(zip(names, spans, strict=True))


@example
def one_row_three_ways(better_recipe: Values) -> Values:
    """Which tokens matter to one row, by three measures."""
    model = better_recipe["models"][0]
    digits = torch.tensor([[7, 2, 9, 2, 5, 0, 8, 3]])
    written, (_, layer2) = look(model, digits)
    row = 4  # must write 5
    measures = {
        "attention": layer2.mean(dim=1)[0, row],
        "gradient": gradient_sizes(model, digits)[0, row],
        "leave one out": leave_one_out(model, digits)[0, row],
    }
    _, axes = plt.subplots(figsize=(5.2, 3.2))
    for i, (name, sizes) in enumerate(measures.items()):
        places = torch.arange(8) + 0.27 * (i - 1)
        axes.bar(places, sizes / sizes.sum(), width=0.27, label=name)
    axes.set_xticks(range(8), digits[0].tolist())
    axes.set(xlabel="digit that is read", ylabel="share of the row")
    axes.legend()

    print("the 9, for the row that writes 5, all seeds")
    nine: dict[str, list[float]] = {"attention": [], "leave one out": []}
    for model in better_recipe["models"]:
        looked = look(model, digits)[1][1].mean(dim=1)[0, row, 2]
        moved = leave_one_out(model, digits)[0, row, 2]
        nine["attention"].append(looked.item())
        nine["leave one out"].append(moved.item())
    for name, values in nine.items():
        print(f"  {name:14} {min(values):.2f} to {max(values):.2f}")
    spans = [[min(values), max(values)] for values in nine.values()]
    return {
        "writes": written[0, row],
        "attention": spans[0],
        "left_out": spans[1],
        "shares": {name: sizes / sizes.sum() for name, sizes in measures.items()},
    }


def train_level(seed: int, steps: int) -> Sorter:
    """Train a new sorter all of whose attention weights are 1 / T, always."""
    torch.manual_seed(seed)
    model = meddle(meddle(Sorter(BETTER), 0, level), 1, level)
    optimizer = torch.optim.AdamW(model.parameters(), BETTER.lr, weight_decay=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = sorting_loss(model, *sample(128))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        cosine.step()
    return model


@example(timeout=300)
def without_looking() -> Values:
    """Sorters that never could look anywhere in particular, five seeds."""
    steps = 300
    sequences = []
    for seed in range(5):
        model = train_level(seed, steps)
        sequences.append(evaluate(model, 20_000)[1])
        print(f"seed {seed}: {sequences[-1]:.2%} of whole sequences")
    return {"range": [min(sequences), max(sequences)], "steps": steps}


@example
def chance_by_hand() -> Values:
    """How often a random key holds the target, counted."""
    torch.manual_seed(0)
    digits, ordered = sample(100_000)
    key = torch.randint(8, digits.shape)  # a random key for each row
    counted = (digits.gather(1, key) == ordered).float().mean().item()
    chance = 1 / 8 + 7 / 8 * 1 / 10
    print(f"counted {counted:.2%}, derived {chance:.2%}")
    return {"counted": counted, "derived": chance}


@example
def with_neighbours(over_thousands: Values) -> Values:
    """How often the top key holds the target or its neighbour, against chance."""
    torch.manual_seed(0)
    digits, _ = sample(5000)
    random_keys = torch.rand(5000, 8, 8)  # (batch, T, T): any key may be the largest
    chance = near_target(random_keys, digits).float().mean().item()

    print("top key holds the target or a neighbour:")
    for name, (low, high) in over_thousands["near"].items():
        print(f"{name:14} {low:5.1%} to {high:.1%}")
    print(f"{'a random key':14} {chance:5.1%}")
    return {**over_thousands["near"], "chance": chance}
