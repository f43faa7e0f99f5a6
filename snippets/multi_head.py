"""docs/multi-head.md: several attentions side by side, held against PyTorch's own."""

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
            raise ValueError(f"d_model = {d_model} does not divide into {heads} equal heads")
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
        """Attend within x (batch, T, d_model); mask as in scaled_dot_product_attention.

        Returns the output (batch, T, d_model) and the weights (batch, heads, T, T).
        """
        query, key, value = self.query(x), self.key(x), self.value(x)
        mixed, weights = scaled_dot_product_attention(
            self.split(query), self.split(key), self.split(value), mask
        )  # (batch, heads, T, d_k), (batch, heads, T, T)
        joined = mixed.transpose(1, 2).flatten(2)  # (batch, T, d_model)
        return self.output(joined), weights


class SplitWithoutTranspose(MultiHeadAttention):
    """The usual mistake: the right shape by view alone. Kept to show how it is caught."""

    def split(self, x: Tensor) -> Tensor:
        """Reach (batch, heads, T, d_k) without a transpose, so tokens mix up."""
        batch, length, d_model = x.shape
        return x.view(batch, self.heads, length, d_model // self.heads)


class WishReader(nn.Module):
    """Attention with room to read tokens and write answers; the head count is free."""

    def __init__(self, features: int, d_model: int, heads: int, wishes: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.answer = nn.Linear(d_model, wishes)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Take tokens (batch, T, features); return answers (batch, T, wishes) and weights."""
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

    one_head = torch.tensor([[0.5, 0.5]])  # half of the row on each
    two_heads = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # a row for each
    print("one head: ", one_head @ dog_bites_man, one_head @ man_bites_dog)
    print("two heads:", two_heads @ dog_bites_man, two_heads @ man_bites_dog)
    return {
        "one_head": one_head @ dog_bites_man,
        "one_head_swapped": one_head @ man_bites_dog,
        "two_heads": two_heads @ dog_bites_man,
        "two_heads_swapped": two_heads @ man_bites_dog,
    }


@example(timeout=180)
def two_wishes() -> Values:
    """Two wishes a token: one head against two, equal parameters, three seeds."""
    curves, errors = {}, {}
    for heads in (1, 2):
        for seed in (0, 1, 2):
            torch.manual_seed(seed)
            model = WishReader(features=13, d_model=16, heads=heads, wishes=2)
            curves[heads, seed] = train(model, wishes=2, steps=400, lr=0.01)
            tokens, answers, _ = colour_wishes(batch=50_000, wishes=2)  # new ones
            with torch.no_grad():
                errors[heads, seed] = F.mse_loss(model(tokens)[0], answers).item()

    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters; error on new sequences, three seeds:")
    for name, heads in (("one head ", 1), ("two heads", 2)):
        print(name, *(f"{errors[heads, seed]:8.4f}" for seed in (0, 1, 2)))
    return {
        "parameters": parameters,
        "one_head": [errors[1, seed] for seed in (0, 1, 2)],
        "two_heads": [errors[2, seed] for seed in (0, 1, 2)],
        "one_head_best": min(errors[1, seed] for seed in (0, 1, 2)),
        "two_heads_worst": max(errors[2, seed] for seed in (0, 1, 2)),
        "one_head_curves": [curves[1, seed] for seed in (0, 1, 2)],
        "two_heads_curves": [curves[2, seed] for seed in (0, 1, 2)],
        "two_headed_model": model,
    }


@example
def one_head_is_stuck(two_wishes: dict[str, Any]) -> Values:
    """The loss of one head stops at the limit of one mean; two heads go on."""
    _, axes = plt.subplots()
    axes.plot(np.array(two_wishes["one_head_curves"]).T, color="C0", alpha=0.7)
    axes.plot(np.array(two_wishes["two_heads_curves"]).T, color="C1", alpha=0.7)
    axes.axhline(0.5, linestyle="--", color="C2")
    for text, height, colour in (
        ("one head", 0.75, "C0"),
        ("limit of one mean", 0.24, "C2"),
        ("two heads", 0.06, "C1"),
    ):
        axes.text(400, height, text, color=colour, ha="right")
    axes.set(xlabel="step", ylabel="mean squared error", ylim=(0, 1.3))
    return {"limit": 0.5}


@example
def heads_differ(two_wishes: dict[str, Any]) -> Values:
    """The weights of both heads, on one sequence and over many."""
    torch.manual_seed(1)
    tokens, _, owner = colour_wishes(batch=2000, wishes=2)
    with torch.no_grad():
        _, weights = two_wishes["two_headed_model"](tokens)  # (2000, 2, 4, 4)

    _, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), sharey=True)
    for head, ax in enumerate(axes):
        ax.pcolormesh(weights[0, head], vmin=0, vmax=1)
        for row, wish in np.ndindex(4, 2):
            column = owner[0, row, wish].item()
            colour = "white" if weights[0, head, row, column] < 0.6 else "black"
            ax.text(column + 0.5, row + 0.5, ("1st", "2nd")[wish],
                    color=colour, ha="center", va="center")  # fmt: skip
        ax.set(title=f"head {head + 1}", xlabel="token attended to", xticks=[], yticks=[])
    axes[0].set_ylabel("token that asks")
    axes[0].invert_yaxis()

    share = torch.stack([weights[:, h].gather(2, owner).mean((0, 1)) for h in (0, 1)])
    print("mean weight over 2,000 sequences   1st wish  2nd wish")
    for head in (0, 1):
        print(f"head {head + 1}{share[head, 0]:37.2f}{share[head, 1]:10.2f}")
    return {"share": share, "larger": share.max(-1).values.min()}


@example
def parity() -> Values:
    """The largest difference from PyTorch, same weights, in two precisions."""
    print("          MHA output  MHA weights     SDPA   machine epsilon")
    rows = []
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        ours = MultiHeadAttention(d_model=64, heads=4).to(dtype)
        x = torch.randn(2, 10, 64, dtype=dtype)  # (batch, T, d_model)
        output, weights = ours(x)
        theirs, their_weights = as_library(ours)(x, x, x, average_attn_weights=False)

        q, k, v = (ours.split(layer(x)) for layer in (ours.query, ours.key, ours.value))
        by_hand, _ = scaled_dot_product_attention(q, k, v)
        kernel = F.scaled_dot_product_attention(q, k, v)

        pairs = ((output, theirs), (weights, their_weights), (by_hand, kernel))
        row = [(one - other).abs().max().item() for one, other in pairs]
        name = str(dtype).removeprefix("torch.")
        print(f"{name:9} {row[0]:10.2e} {row[1]:12.2e} {row[2]:8.2e}"
              f" {torch.finfo(dtype).eps:17.2e}")  # fmt: skip
        rows.append(row)
    single, double = rows
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
    print("four tokens, d_model = 4, each filled with its own number:")
    print(x[0])
    right = MultiHeadAttention(d_model=4, heads=2).split(x)
    wrong = SplitWithoutTranspose(d_model=4, heads=2).split(x)
    print("shapes:", tuple(right.shape), tuple(wrong.shape))
    print("first head, view and transpose:", right[0, 0].tolist())
    print("first head, view alone:        ", wrong[0, 0].tolist())
    return {"right": right[0, 0], "wrong": wrong[0, 0], "same_shape": right.shape == wrong.shape}


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
        print(f"{name:15} {tuple(output.shape)}  differs by {differences[name]:.1e}")
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
    for kernel in (
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
    ):
        try:
            with sdpa_kernel(kernel):
                output = F.scaled_dot_product_attention(query, key, value)
            difference[kernel.name] = (output - by_hand).abs().max()
            print(f"{kernel.name:20} differs by {difference[kernel.name]:.1g}")
        except RuntimeError:
            print(f"{kernel.name:20} not on this machine")
    return {"worst": max(difference.values()), "answer": list(difference)}


@example
def two_masks_at_once() -> Values:
    """What attn_mask together with is_causal does, by kernel and with dropout."""
    [promise] = [
        line.strip()
        for line in str(F.scaled_dot_product_attention.__doc__).splitlines()
        if "error is thrown" in line
    ]
    print("documentation:", promise)

    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 4, 6, 16)
    padding = torch.tensor([[True, True, False, True, True, True]])  # hides one token
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    joined = F.scaled_dot_product_attention(query, key, value, attn_mask=padding & causal)
    every_kernel = list(SDPBackend.__members__.values())
    accepted = {}
    for name, allowed, dropout in (
        ("default", every_kernel, 0.0),
        ("default, dropout", every_kernel, 0.1),
        ("math kernel", SDPBackend.MATH, 0.0),
    ):
        try:
            with sdpa_kernel(allowed):
                output = F.scaled_dot_product_attention(
                    query, key, value, attn_mask=padding, is_causal=True, dropout_p=dropout
                )
            difference = (output - joined).abs().max()
            print(f"{name:17} accepted; {difference:g} from both masks joined")
            accepted[name] = True
        except RuntimeError as error:
            print(f"{name:17} {type(error).__name__}: {str(error).split(': ')[-1]}")
            accepted[name] = False
    return {
        "promise": promise,
        "accepted": list(accepted.values()),
        "difference": difference,
    }
