"""docs/positions.md: attention has no order; what is added so that a model knows who comes first."""

import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executed import example
from snippets.masks import causal_mask
from snippets.multi_head import MultiHeadAttention

Values = dict[str, object]  # what an example returns: the values that the prose quotes


@example
def dog_bites_man() -> Values:
    """The same three words in two orders give every word the same output."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=16, heads=2)
    words = torch.randn(1, 3, 16)  # dog, bites, man: one vector each

    one, _ = attention(words)  # dog bites man
    two, _ = attention(words.flip(1))  # man bites dog
    two = two.flip(1)  # back in the order dog, bites, man
    moved = (one - two).abs().amax(dim=-1)[0]  # (3,)
    for word, distance in zip(["dog", "bites", "man"], moved.tolist(), strict=True):
        print(f"{word:6} moves by {distance:.0e}")
    return {"moved": moved, "largest": moved.max()}


@example
def shuffle_without() -> Values:
    """Permute the input, un-permute the output: nothing has changed but the rounding."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=64, heads=4)
    x = torch.randn(1, 20, 64)  # (batch, T, d_model)
    order = torch.randperm(20)

    straight, _ = attention(x)
    shuffled, _ = attention(x[:, order])
    back = shuffled[:, order.argsort()]
    difference = (back - straight).abs().max().item()
    print(f"largest difference {difference:.1e}")
    print("equal within rounding:", torch.allclose(back, straight, atol=1e-6))
    print("equal bit for bit:    ", torch.equal(back, straight))
    return {
        "equal": torch.allclose(back, straight, atol=1e-6),
        "bit_for_bit": torch.equal(back, straight),
        "difference": difference,
        "size": straight.abs().max(),
    }


def sinusoids(length: int, d_model: int) -> Tensor:
    """Give each position a vector of sines and cosines, slower from left to right.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) the cosine of the
    same angle, section 3.5 of "Attention Is All You Need" (2017).
    Returns (length, d_model).
    Raises ValueError if d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"sinusoids come in pairs: d_model = {d_model} is odd")
    position = torch.arange(length)[:, None]  # (length, 1)
    speed = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    angle = position * speed  # (length, d_model / 2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (length, d_model / 2, 2)
    return pairs.flatten(1)  # sin, cos, sin, cos, ...


@example
def shuffle_with_sinusoids() -> Values:
    """Add a position to each place, and the order matters."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=64, heads=4)
    x = torch.randn(1, 20, 64)
    order = torch.randperm(20)
    places = sinusoids(20, 64)  # stay where they are when the tokens move

    straight, _ = attention(x + places)
    shuffled, _ = attention(x[:, order] + places)
    back = shuffled[:, order.argsort()]
    difference = (back - straight).abs().max().item()
    print(f"largest difference {difference:.2f}")
    print("equal within rounding:", torch.allclose(back, straight, atol=1e-6))
    return {
        "equal": torch.allclose(back, straight, atol=1e-6),
        "difference": difference,
        "size": straight.abs().max(),
    }


@example
def first_rows() -> Values:
    """The first six numbers of the first two positions, d_model = 32."""
    encoding = sinusoids(64, 32)
    print(encoding[:2, :6].numpy().round(3))
    return {"pe0": encoding[0, :6], "pe1": encoding[1, :6]}


@example
def sinusoid_map() -> Values:
    """All encodings as a picture: position down, dimension across."""
    encoding = sinusoids(64, 32)  # (T, d_model)
    _, axes = plt.subplots(figsize=(5.2, 3.8))
    image = axes.imshow(encoding, "RdBu", aspect="auto", interpolation="none")
    plt.colorbar(image, ticks=[-1, 0, 1], label="value")
    axes.set(xlabel="dimension", ylabel="position")

    fastest, slowest = (2 * math.pi * 10_000 ** (i / 32) for i in (0, 30))
    print(f"first pair: a full turn in {fastest:.1f} positions")
    print(f"last pair:  a full turn in {slowest:,.0f}")
    return {"fastest": fastest, "slowest": slowest, "length": len(encoding)}


def rotation(steps: int, d_model: int) -> Tensor:
    """Build the matrix that moves every encoding on by the same number of positions.

    Each pair (sin, cos) is the hand of a clock; the matrix turns each by its own angle.
    Returns (d_model, d_model), so that rotation(k, d) @ PE(p) = PE(p + k) for every p.
    """
    speed = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    matrix = torch.zeros(d_model, d_model)
    for i, angle in zip(range(0, d_model, 2), steps * speed, strict=True):
        turn = [[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]]
        matrix[i : i + 2, i : i + 2] = torch.tensor(turn)  # each pair has its own block
    return matrix


@example
def fixed_rotation() -> Values:
    """One matrix turns every position into the one five places later."""
    encoding = sinusoids(100, 32)
    matrix = rotation(5, 32)  # made from the 5 alone: it has not seen a position
    turned = encoding[:-5] @ matrix.T  # (95, 32): all p at once
    difference = (turned - encoding[5:]).abs().max().item()
    print(f"PE(p + 5) - R PE(p), largest: {difference:.0e}")
    return {"difference": difference}


@example
def dot_products() -> Values:
    """PE(p) . PE(p + k) for five p: the same curve five times."""
    encoding = sinusoids(500, 32)
    starts = torch.tensor([100, 150, 200, 250, 300])
    distances = torch.arange(-60, 61)
    curves = [encoding[p + distances] @ encoding[p] for p in starts]
    products = torch.stack(curves)  # (5, 121)
    spread = (products.amax(dim=0) - products.amin(dim=0)).max().item()
    outwards = products[0, 60:]  # from k = 0 to k = 60
    rises = (outwards[1:] > outwards[:-1]).sum().item()
    print(f"spread over five starts: {spread:.0e}")
    print(f"steps that go up again: {rises} of 60")

    _, axes = plt.subplots(figsize=(5.2, 3.4))
    for p, curve in zip(starts.tolist(), products, strict=True):
        axes.plot(distances, curve, label=f"p = {p}", linewidth=6 - p / 60)
    axes.set(xlabel="distance k (positions)", ylabel="PE(p) · PE(p + k)")
    axes.legend()
    return {
        "spread": spread,
        "rises": rises,
        "steps": 60,
        "curve": products[0],
        "asymmetry": (products[0] - products[0].flip(0)).abs().max(),
    }


@example
def after_projection() -> Values:
    """With a query and a key matrix in between, the score depends on p as well."""
    torch.manual_seed(0)
    encoding = sinusoids(300, 32)
    query, key = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
    with torch.no_grad():
        scores = query(encoding) @ key(encoding).T  # (T_query, T_key)
    five_on = scores.diagonal(5)  # every p with p + 5
    print(f"scores five places on: {five_on.min():.2f} to {five_on.max():.2f}")
    return {"lowest": five_on.min(), "highest": five_on.max()}


@example(raises=IndexError)
def past_the_table() -> Values:
    """A table of learned positions has a last row."""
    position = nn.Embedding(512, 64)  # one learned vector for each of 512 places
    position(torch.tensor([511]))  # the last place
    position(torch.tensor([512]))  # one more
    return {}


def rotate(x: Tensor, first: int = 0) -> Tensor:
    """Turn each pair of dimensions by an angle that grows with the position (RoPE).

    Section 3.2.2 of "RoFormer" (2021), for queries and keys (..., T, d) with d even;
    first is the position of the first token. Returns the same shape.
    """
    length, d = x.shape[-2:]
    speed = 10_000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)  # (d / 2,)
    angle = (first + torch.arange(length))[:, None] * speed  # (T, d / 2)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., T, d / 2)
    cos, sin = angle.cos(), angle.sin()
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return torch.stack(turned, dim=-1).flatten(-2)  # (..., T, d)


@example
def rope_scores() -> Values:
    """Move a whole sentence 1,000 places on: its scores stay."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 6, 32, dtype=torch.float64)  # any six queries and keys
    here = rotate(query) @ rotate(key).T  # positions 0 to 5
    there = rotate(query, first=1000) @ rotate(key, first=1000).T
    moved = (there - here).abs().max().item()
    turned = (here - query @ key.T).abs().max().item()
    print(f"1,000 places on, scores move by {moved:.0e}")
    print(f"against no rotation, by {turned:.1f}")
    return {"moved": moved, "turned": turned}


class CopyPrevious(nn.Module):
    """Say at each place which digit stood one place before.

    positions is "learned", "sinusoids" or "rope". Digits (batch, T) in,
    with T at most 48; logits (batch, T, 10) out.
    """

    def __init__(self, positions: str, d_model: int = 64) -> None:
        super().__init__()
        self.positions = positions
        self.digit = nn.Embedding(10, d_model)
        self.table = nn.Embedding(48, d_model)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.logits = nn.Linear(d_model, 10)

    def forward(self, digits: Tensor) -> Tensor:
        x = self.digit(digits)  # (batch, T, d_model)
        length, d_model = x.shape[-2:]
        if self.positions == "learned":
            x = x + self.table.weight[:length]
        if self.positions == "sinusoids":
            x = x + sinusoids(length, d_model)
        query, key = self.query(x), self.key(x)
        if self.positions == "rope":
            query, key = rotate(query), rotate(key)
        value, mask = self.value(x), causal_mask(length)
        mixed = F.scaled_dot_product_attention(query, key, value, mask)
        logits: Tensor = self.logits(x + mixed)
        return logits


def train_to_copy(positions: str, seed: int) -> CopyPrevious:
    """Train a CopyPrevious on 16 random digits at a time, never more."""
    torch.manual_seed(seed)
    model = CopyPrevious(positions)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(300):
        digits = torch.randint(10, (64, 16))
        logits = model(digits)[:, 1:]  # nothing stands before the first
        before = digits[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), before.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


@example
def longer_than_trained() -> Values:
    """Train on 16 places, test on 48: the accuracy at each place."""
    digits = torch.randint(10, (500, 48), generator=torch.Generator().manual_seed(0))
    accuracy = {}
    for positions in ("learned", "sinusoids", "rope"):
        for seed in range(2):
            said = train_to_copy(positions, seed)(digits).argmax(dim=-1)  # (500, 48)
            right = said[:, 1:] == digits[:, :-1]
            accuracy[positions, seed] = right.float().mean(dim=0)  # (47,)

    _, axes = plt.subplots(figsize=(5.2, 3.6))
    colours = {"learned": "C0", "sinusoids": "C1", "rope": "C2"}
    for (positions, seed), curve in accuracy.items():
        label = None if seed else positions
        axes.plot(range(1, 48), curve, colours[positions], label=label)
    axes.axvline(15.5, color="C5", linestyle=":")
    axes.axhline(0.1, color="C5", linestyle="--")
    axes.set(xlabel="position", ylabel="accuracy", ylim=(0, 1.05))
    axes.legend()
    last = {}  # the lowest and the highest of the seeds, at some places
    for name in colours:
        curves = torch.stack([accuracy[name, seed] for seed in range(2)])
        last[name] = {
            "trained": curves[:, :15].min(),
            "beyond": curves[:, 23:].mean(dim=1).max(),
            "beyond_low": curves[:, 23:].mean(dim=1).min(),
            "first_new": curves[:, 15].min(),
        }
    return {"accuracy": last, "chance": 0.1}


@example
def marked_first_token() -> Values:
    """Uniform causal attention on a marked first token writes 1 / (position + 1)."""
    marker = torch.tensor([[1.0], [0], [0], [0], [0], [0]])  # (T, 1): the first is marked
    alike = torch.zeros(6, 8)  # queries and keys that prefer nothing
    seen = F.scaled_dot_product_attention(alike, alike, marker, is_causal=True)
    print(seen.flatten().numpy().round(3))
    print((1 / seen).flatten().numpy().round(3))
    return {"output": seen.flatten(), "inverse": (1 / seen).flatten()}


class Blind(nn.Module):
    """Two attention layers on digits; nothing tells them positions."""

    def __init__(self, d_model: int = 64) -> None:
        super().__init__()
        self.digit = nn.Embedding(10, d_model)
        layers = [MultiHeadAttention(d_model, heads=4) for _ in range(2)]
        self.layers = nn.ModuleList(layers)

    def forward(self, digits: Tensor, mask: Tensor | None) -> Tensor:
        x: Tensor = self.digit(digits)
        for attention in self.layers:
            x = F.layer_norm(x + attention(x, mask)[0], x.shape[-1:])
        return x  # (batch, T, d_model)


def read_position(states: Tensor) -> Tensor:
    """Fit a linear probe on half of the batch, apply it to the other.

    states (batch, T, d). Returns the positions read off, (batch / 2, T).
    """
    states = F.pad(states, (0, 1), value=1.0).double()  # 1: the intercept
    seen, unseen = states.chunk(2)
    position = torch.arange(seen.size(1)).double().expand(seen.shape[:2])
    fit = torch.linalg.lstsq(seen.flatten(0, 1), position.reshape(-1, 1))
    read: Tensor = unseen @ fit.solution
    return read.squeeze(-1)


@example
def mask_leaks_position() -> Values:
    """Read the position from untrained states, with a causal mask and without."""
    length = 32
    position = torch.arange(length).double()
    explained: dict[str, list[float]] = {"causal": [], "none": []}
    read = {}
    for seed in range(5):
        torch.manual_seed(seed)
        model, digits = Blind(), torch.randint(10, (1000, length))
        for name, mask in ("causal", causal_mask(length)), ("none", None):
            with torch.no_grad():
                read[name] = read_position(model(digits, mask))
            missed = (read[name] - position).square().mean()
            explained[name].append(1 - (missed / position.var(correction=0)).item())
    for name, shares in explained.items():
        print(f"mask {name:7} explained {min(shares):6.3f} to {max(shares):6.3f}")

    _, axes = plt.subplots(figsize=(5.2, 3.6))
    means = {name: places.mean(dim=0) for name, places in read.items()}  # last seed
    for name, mean in means.items():
        axes.plot(mean, label=f"mask: {name}")
    axes.plot(position, ":", label="truth")
    axes.set(xlabel="true position", ylabel="position read off (mean)")
    axes.legend()
    ranges = {name: [min(shares), max(shares)] for name, shares in explained.items()}
    return {"explained": ranges, "read": means, "seeds": len(explained["none"])}


@example
def twins() -> Values:
    """The same word twice in a sentence, without positions."""
    torch.manual_seed(0)
    x = torch.randn(1, 8, 16)
    x[:, 6] = x[:, 2]  # the same word at two places
    output, _ = MultiHeadAttention(d_model=16, heads=2)(x)
    difference = (output[0, 6] - output[0, 2]).abs().max().item()
    print("largest difference:", difference)
    return {"difference": difference}


@example
def nearest_twin() -> Values:
    """Which of the next 100,000 encodings is closest to that of position 0."""
    encoding = sinusoids(100_001, 32)
    distance = (encoding[1:] - encoding[0]).norm(dim=-1)
    closest = distance.argmin().item() + 1
    print(f"closest: position {closest}, {distance.min():.2f} away")
    return {"closest": closest, "distance": distance.min()}
