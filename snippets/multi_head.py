"""docs/multi-head.md: several attentions side by side, held against PyTorch's own."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from executed import example
from snippets.attention import (
    Values,
    colour_wishes,
    scaled_dot_product_attention,
    train,
)


class MultiHeadAttention(nn.Module):
    """Let each token gather from the others in several ways at once.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O, section 3.2.2 of
    "Attention Is All You Need" (2017), with d_k = d_v = d_model / heads.

    Raises ValueError if d_model cannot be divided into equal heads.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{d_model} does not divide into {heads} equal heads")
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def split(self, x: Tensor) -> Tensor:
        """Cut (batch, T, d_model) into heads: (batch, heads, T, d_k)."""
        batch, length, d_model = x.shape
        x = x.view(batch, length, self.heads, d_model // self.heads)
        return x.transpose(1, 2)  # (batch, heads, T, d_k)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attend within x (batch, T, d_model); True in mask keeps a key.

        Returns the output (batch, T, d_model) and the weights (batch, heads, T, T).
        """
        query, key, value = self.query(x), self.key(x), self.value(x)
        mixed, weights = scaled_dot_product_attention(
            self.split(query), self.split(key), self.split(value), mask
        )  # (batch, heads, T, d_k), (batch, heads, T, T)
        joined = mixed.transpose(1, 2).flatten(2)  # (batch, T, d_model)
        return self.output(joined), weights


class SplitWithoutTranspose(MultiHeadAttention):
    """The usual mistake: the right shape by view alone."""

    def split(self, x: Tensor) -> Tensor:
        """Reach (batch, heads, T, d_k) without a transpose."""
        batch, length, d_model = x.shape
        return x.view(batch, self.heads, length, d_model // self.heads)


class WishReader(nn.Module):
    """Read tokens, attend with any number of heads, write answers."""

    def __init__(
        self,
        features: int,
        d_model: int,
        heads: int,
        wishes: int,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(features, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.answer = nn.Linear(d_model, wishes)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, T, features) to answers (batch, T, wishes)."""
        mixed, weights = self.attention(self.embed(tokens))
        return self.answer(mixed), weights


def as_library(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Build PyTorch's own module with the same weights, in the same precision."""
    d_model, dtype = ours.output.in_features, ours.output.weight.dtype
    theirs = nn.MultiheadAttention(d_model, ours.heads, batch_first=True, dtype=dtype)
    with torch.no_grad():
        inputs = [ours.query, ours.key, ours.value]  # PyTorch stacks these three
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in inputs]))
        theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in inputs]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    return theirs


@example
def one_row_of_weights() -> Values:
    """One row of weights returns one mean; two rows return two values."""
    dog_bites_man = torch.tensor([5.0, 2.0])  # values: who bites, who is bitten
    man_bites_dog = torch.tensor([2.0, 5.0])

    one_row = torch.tensor([[0.5, 0.5]])  # half of the row on each
    two_rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # a row for each
    for name, rows in (("one row: ", one_row), ("two rows:", two_rows)):
        print(name, (rows @ dog_bites_man).tolist(), (rows @ man_bites_dog).tolist())
    return {
        "one_row": one_row @ dog_bites_man,
        "one_row_swapped": one_row @ man_bites_dog,
        "two_rows": two_rows @ dog_bites_man,
        "two_rows_swapped": two_rows @ man_bites_dog,
    }


@example(timeout=180)
def two_wishes() -> Values:
    """Two wishes a token: one head against two, equal parameters, three seeds."""
    curves, errors = {}, {}
    for heads in (1, 2):
        for seed in (0, 1, 2):
            torch.manual_seed(seed)
            model = WishReader(features=13, d_model=16, heads=heads, wishes=2)
            curves[heads, seed] = train(model, wishes=2, steps=300, lr=0.01)
            tokens, answers, _ = colour_wishes(batch=50_000, wishes=2)  # new ones
            with torch.no_grad():
                errors[heads, seed] = F.mse_loss(model(tokens)[0], answers).item()

    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters in either model")
    print("error on new sequences, three seeds:")
    for name, heads in (("one head ", 1), ("two heads", 2)):
        print(name, *(f"{errors[heads, seed]:8.4f}" for seed in (0, 1, 2)))
    return {
        "parameters": parameters,
        "one_head": [errors[1, seed] for seed in (0, 1, 2)],
        "two_heads": [errors[2, seed] for seed in (0, 1, 2)],
        "two_heads_worst": max(errors[2, seed] for seed in (0, 1, 2)),
        "one_head_curves": [curves[1, seed] for seed in (0, 1, 2)],
        "two_heads_curves": [curves[2, seed] for seed in (0, 1, 2)],
        "two_headed_model": model,
    }


@example
def one_head_is_stuck(two_wishes: dict[str, Any]) -> Values:
    """The loss of one head stops at the limit of one mean; two heads go on."""
    _, axes = plt.subplots(figsize=(5, 3.2))
    axes.plot(np.array(two_wishes["one_head_curves"]).T, color="C0", alpha=0.7)
    axes.plot(np.array(two_wishes["two_heads_curves"]).T, color="C1", alpha=0.7)
    axes.axhline(0.5, linestyle="--", color="C2")
    for text, height, colour in (
        ("one head", 0.75, "C0"),
        ("limit of one mean", 0.24, "C2"),
        ("two heads", 0.06, "C1"),
    ):
        axes.text(300, height, text, color=colour, ha="right")
    axes.set(xlabel="step", ylabel="mean squared error", ylim=(0, 1.3))
    return {"limit": 0.5}


@example
def heads_differ(two_wishes: dict[str, Any]) -> Values:
    """How much of each head's weight lies on the first wish and on the second."""
    torch.manual_seed(1)
    tokens, _, owner = colour_wishes(batch=2000, wishes=2)
    with torch.no_grad():
        _, weights = two_wishes["two_headed_model"](tokens)  # (2000, 2, 4, 4)
    share = torch.stack([w.gather(2, owner).mean((0, 1)) for w in weights.unbind(1)])
    print("mean weight on  1st wish  2nd wish")
    for head in (0, 1):
        print(f"head {head + 1} {share[head, 0]:16.2f} {share[head, 1]:9.2f}")
    return {
        "share": share,
        "larger": share.max(-1).values.min(),
        "one_sequence": weights[0],
        "owner": owner[0],
    }


@example
def two_heads_as_maps(heads_differ: dict[str, Tensor]) -> None:
    """Draw both heads' weights for one sequence, with the wishes marked."""
    _, axes = plt.subplots(1, 2, figsize=(5.2, 2.9), sharey=True)
    for head, ax in enumerate(axes):
        weights = heads_differ["one_sequence"][head]
        ax.pcolormesh(weights, vmin=0, vmax=1)
        for row, wish in np.ndindex(4, 2):
            column = heads_differ["owner"][row, wish]
            colour = "white" if weights[row, column] < 0.6 else "black"
            mark = ("1st", "2nd")[wish]
            place = (column + 0.5, row + 0.5)
            ax.text(*place, mark, color=colour, ha="center", va="center")
        ax.set(title=f"head {head + 1}", xlabel="token attended to")
        ax.set(xticks=[], yticks=[])
    axes[0].set_ylabel("token that asks")
    axes[0].invert_yaxis()


@example
def four_heads() -> Values:
    """Four heads for two wishes: where does the weight of each lie?"""
    torch.manual_seed(0)
    model = WishReader(features=13, d_model=16, heads=4, wishes=2)
    train(model, wishes=2, steps=300, lr=0.01)
    tokens, answers, owner = colour_wishes(batch=2000, wishes=2)
    with torch.no_grad():
        output, weights = model(tokens)  # (2000, 4, 2), (2000, 4, 4, 4)
    print(f"error on new sequences: {F.mse_loss(output, answers):.4f}")
    print("mean weight on  1st wish  2nd wish")
    share = torch.stack([w.gather(2, owner).mean((0, 1)) for w in weights.unbind(1)])
    for head in range(4):
        print(f"head {head + 1} {share[head, 0]:16.2f} {share[head, 1]:9.2f}")
    return {
        "error": F.mse_loss(output, answers),
        "least_clear": share.max(-1).values.min(),
    }


@example
def parity() -> Values:
    """The largest difference from PyTorch, same weights, in two precisions."""
    largest: dict[torch.dtype, list[float]] = {}
    print("         output  weights SDPA    epsilon")
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        ours = MultiHeadAttention(d_model=64, heads=4).to(dtype)
        x = torch.randn(2, 10, 64, dtype=dtype)  # (batch, T, d_model)
        output, weights = ours(x)
        theirs, their_weights = as_library(ours)(x, x, x, average_attn_weights=False)

        roles = (ours.query, ours.key, ours.value)
        q, k, v = (ours.split(role(x)) for role in roles)  # (2, 4, 10, 16) each
        by_hand, _ = scaled_dot_product_attention(q, k, v)
        sdpa = F.scaled_dot_product_attention(q, k, v)

        pairs = ((output, theirs), (weights, their_weights), (by_hand, sdpa))
        largest[dtype] = [(one - two).abs().max().item() for one, two in pairs]
        shown = [f"{n:.1e}" for n in (*largest[dtype], torch.finfo(dtype).eps)]
        print(str(dtype).removeprefix("torch."), "", *shown)
    single, double = largest.values()
    return {
        "mha_output": single[0],
        "mha_weights": single[1],
        "sdpa_output": single[2],
        "mha_output_float64": double[0],
        "mha_weights_float64": double[1],
        "sdpa_output_float64": double[2],
        "shrinks": single[0] / double[0],
        "epsilon_ratio": torch.finfo(torch.float32).eps / torch.finfo(torch.float64).eps,
    }


@example
def where_tokens_go() -> Values:
    """Which tokens the first of two heads gets, with and without the transpose."""
    x = torch.arange(4).view(1, 4, 1).expand(1, 4, 4).contiguous()
    print("four tokens, d_model = 4:")
    print(x[0].numpy())

    right = MultiHeadAttention(d_model=4, heads=2).split(x)  # (1, 2, 4, 2)
    wrong = SplitWithoutTranspose(d_model=4, heads=2).split(x)  # (1, 2, 4, 2)
    print("first head, view and transpose:")
    print(right[0, 0].tolist())
    print("first head, view alone:")
    print(wrong[0, 0].tolist())
    return {
        "right": right[0, 0],
        "wrong": wrong[0, 0],
        "same_shape": right.shape == wrong.shape,
    }


@example
def who_gets_what() -> Values:
    """Colour each entry of (T, d_model) by the head that receives it."""
    numbered = torch.arange(4 * 8).view(1, 4, 8)  # (batch, T, d_model)
    modules = {
        "view and transpose": MultiHeadAttention(d_model=8, heads=2),
        "view alone": SplitWithoutTranspose(d_model=8, heads=2),
    }
    heads = {}
    _, axes = plt.subplots(1, 2, figsize=(5.2, 2.6), sharey=True)
    for ax, (name, module) in zip(axes, modules.items(), strict=True):
        second_head = module.split(numbered)[0, 1]  # (T, d_k)
        heads[name] = torch.isin(numbered[0], second_head) + 1  # 1 or 2
        ax.pcolormesh(heads[name], cmap="viridis", vmin=0.4, vmax=2.3, ec="k", lw=0.5)
        for (token, place), head in np.ndenumerate(heads[name].numpy()):
            colour = ("white", "black")[head - 1]
            ax.text(place + 0.5, token + 0.5, head, color=colour, ha="center", va="center")
        ax.set(title=name, xlabel="dimension", xticks=[], yticks=[])
    axes[0].set_ylabel("token")
    axes[0].invert_yaxis()
    return {"right": heads["view and transpose"], "wrong": heads["view alone"]}


@example
def caught_by_parity() -> Values:
    """The split without transpose runs without a word; the library disagrees."""
    torch.manual_seed(0)
    right, wrong = MultiHeadAttention(64, 4), SplitWithoutTranspose(64, 4)
    wrong.load_state_dict(right.state_dict())
    x = torch.randn(2, 10, 64)
    theirs, _ = as_library(right)(x, x, x)
    differences = {}
    for name, module in (("with transpose", right), ("without", wrong)):
        output, _ = module(x)
        differences[name] = (output - theirs).abs().max()
        print(f"{name:14} {tuple(output.shape)} off by {differences[name]:.0e}")
    return {
        "right": differences["with transpose"].detach(),
        "wrong": differences["without"].detach(),
        "size": theirs.abs().mean().detach(),
    }


@example
def parameter_count() -> Values:
    """The number of parameters does not depend on the number of heads."""
    d_model = 512
    for heads in (1, 2, 8, 64):
        module = MultiHeadAttention(d_model, heads)
        count = sum(p.numel() for p in module.parameters())
        print(f"{heads:2} heads, d_k = {d_model // heads:3}: {count:,} parameters")
    biases = 4 * d_model
    print(f"4 d_model² + 4 d_model = {4 * d_model**2:,} + {biases:,}")
    return {
        "d_model": d_model,
        "count": count,
        "weights": 4 * d_model**2,
        "biases": biases,
        "d_k_of_eight": d_model // 8,
    }


@example(raises=ValueError)
def unequal_heads() -> None:
    """Ask for heads that do not divide d_model."""
    MultiHeadAttention(d_model=100, heads=8)


@example
def kernels() -> Values:
    """Which of three kernels answer here, and how far each is from the formula by hand."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 10, 16)  # (batch, heads, T, d_k) each
    by_hand, _ = scaled_dot_product_attention(query, key, value)
    difference = {}
    for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
        try:
            with sdpa_kernel(SDPBackend.__members__[name]):
                output = F.scaled_dot_product_attention(query, key, value)
            difference[name] = (output - by_hand).abs().max()
            print(f"{name:20} off by {difference[name]:.1g}")
        except RuntimeError:
            print(f"{name:20} not available here")
    return {"worst": max(difference.values()), "answer": list(difference)}


@example
def what_the_documentation_says() -> Values:
    """Find the sentence of the documentation about attn_mask and is_causal."""
    lines = str(F.scaled_dot_product_attention.__doc__).splitlines()
    [sentence] = [line.strip() for line in lines if "error is thrown" in line]
    print(sentence)
    return {"sentence": sentence}


@example
def two_masks_at_once() -> Values:
    """What attn_mask together with is_causal does, by kernel and with dropout."""
    torch.manual_seed(0)
    attend = F.scaled_dot_product_attention
    query, key, value = torch.randn(3, 1, 4, 6, 16)  # each (batch, heads, T, d_k)
    padding = torch.tensor([[True, True, False, True, True, True]])  # hides one token
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    joined = attend(query, key, value, attn_mask=padding & causal)

    both = partial(attend, query, key, value, attn_mask=padding, is_causal=True)
    difference = (both() - joined).abs().max()
    print(f"default: accepted, off by {difference:g}")
    refused = []
    for name, kernel, dropout_p in (
        ("math kernel", sdpa_kernel(SDPBackend.MATH), 0.0),
        ("default with dropout", nullcontext(), 0.1),
    ):
        try:
            with kernel:
                both(dropout_p=dropout_p)
        except RuntimeError as error:
            refused.append(name)
            print(f"{name}: refused")
            print(f"  {error}")
    return {"difference": difference, "refused": refused}
