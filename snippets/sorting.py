"""docs/sorting.md: an encoder block, two of which learn to sort eight digits."""

import math
import platform
import time
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executed import example
from snippets.multi_head import MultiHeadAttention
from snippets.positions import sinusoids

Values = dict[str, Any]  # what an example returns: the values that the prose quotes
LENGTH = 8  # digits in a sequence
STEPS = 1500
SEEDS = range(5)


class EncoderBlock(nn.Module):
    """Attention, then a feed-forward net; each reads a norm and adds its result.

    The pre-LN form: x + f(LayerNorm(x)). With `norm_last`, the original paper's
    post-LN form: LayerNorm(x + f(x)).
    """

    def __init__(self, d_model: int, heads: int, norm_last: bool = False) -> None:
        super().__init__()
        self.norm_last = norm_last
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model),
            nn.GELU(),
            nn.Linear(4 * d_model, d_model),
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map x (batch, T, d_model) to the same shape.

        Also returns the attention weights (batch, heads, T, T).
        """
        if self.norm_last:
            mixed, weights = self.attention(x, mask)
            x = self.norm1(x + mixed)
            return self.norm2(x + self.feed_forward(x)), weights
        mixed, weights = self.attention(self.norm1(x), mask)
        x = x + mixed  # (batch, T, d_model)
        return x + self.feed_forward(self.norm2(x)), weights


@dataclass(frozen=True)
class Recipe:
    """How a sorter is built and trained. The defaults are the published recipe."""

    positions: bool = True
    scaled: bool = True  # multiply the embedding by sqrt(d_model)
    final_norm: bool = False
    lr: float = 1e-3
    weight_decay: float = 0.0  # AdamW without decay is Adam
    clip: float | None = None  # largest norm of a gradient
    cosine: bool = False  # let the learning rate fall to zero
    steps: int = STEPS


class Sorter(nn.Module):
    """Two encoder blocks between an embedding of digits and a choice of digit."""

    def __init__(self, recipe: Recipe, d_model: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.factor = math.sqrt(d_model) if recipe.scaled else 1.0
        self.embedding = nn.Embedding(10, d_model)
        blocks = [EncoderBlock(d_model, heads) for _ in range(2)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(d_model) if recipe.final_norm else nn.Identity()
        self.head = nn.Linear(d_model, 10)
        places = sinusoids(LENGTH, d_model)
        # a buffer and not a parameter: saved with the model, never trained
        self.register_buffer("places", places if recipe.positions else 0 * places)

    def forward(
        self,
        digits: Tensor,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Score ten digits for every place: (batch, T) to (batch, T, 10).

        Also returns the attention weights of each block, (batch, heads, T, T).
        """
        x = self.embedding(digits) * self.factor + self.places  # (batch, T, d_model)
        weights = []
        for block in self.blocks:
            x, looked = block(x, mask)
            weights.append(looked)
        return self.head(self.norm(x)), weights


def sample(batch: int) -> tuple[Tensor, Tensor]:
    """Draw random digits and the same digits in order, (batch, T) each."""
    digits = torch.randint(10, (batch, LENGTH))
    return digits, digits.sort(dim=-1).values


def sorting_loss(model: Sorter, digits: Tensor, ordered: Tensor) -> Tensor:
    """Mean cross-entropy over all the places of all the sequences."""
    scores, _ = model(digits)
    return F.cross_entropy(scores.flatten(0, 1), ordered.flatten())


@dataclass
class Run:
    """A trained sorter, its loss at every step, and how it does on new sequences."""

    model: Sorter
    losses: Tensor  # (steps,)
    places: float  # share of right digits
    sequences: float  # share of sequences with no wrong digit


def train(recipe: Recipe, seed: int) -> tuple[Sorter, Tensor]:
    """Train a new sorter on batches of 128; return it and its losses (steps,)."""
    torch.manual_seed(seed)
    model = Sorter(recipe)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        recipe.lr,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.steps)
    losses = torch.zeros(recipe.steps)
    for step in range(recipe.steps):
        loss = sorting_loss(model, *sample(128))
        optimizer.zero_grad()
        loss.backward()
        if recipe.clip:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        if recipe.cosine:
            cosine.step()
        losses[step] = loss.detach()
    return model, losses


@torch.no_grad()
def evaluate(model: Sorter, sequences: int) -> tuple[float, float]:
    """Sort new sequences; return the share of right digits, and of right sequences."""
    right = []
    for _ in range(0, sequences, 1000):
        digits, ordered = sample(1000)
        right.append(model(digits)[0].argmax(dim=-1) == ordered)
    hits = torch.cat(right)  # (sequences, T)
    return hits.float().mean().item(), hits.all(dim=-1).float().mean().item()


def train_and_test(recipe: Recipe, seed: int, sequences: int = 20_000) -> Run:
    """Train with one seed, then test on sequences drawn after the training."""
    model, losses = train(recipe, seed)
    return Run(model, losses, *evaluate(model, sequences))


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """Mean over a few seeds with its 95 % bootstrap interval: (mean, low, high).

    Efron (1979). All the ways to draw as many seeds again, with repetition.
    """
    draws = torch.tensor(list(product(values, repeat=len(values))))  # n^n rows
    means = draws.double().mean(dim=-1)
    low, high = means.quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return means.mean().item(), low, high


def wilson(rate: float, trials: int) -> tuple[float, float]:
    """95 % interval for a share counted in `trials` draws; sound near 0 and 1.

    Wilson (1927), the score interval.
    """
    z = 1.96
    centre = (rate + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z**2 / (4 * trials**2))
    spread /= 1 + z**2 / trials
    return max(0.0, centre - spread), min(1.0, centre + spread)


@example
def the_task() -> None:
    """Three inputs and what must come out."""
    torch.manual_seed(0)
    digits, ordered = sample(3)
    for before, after in zip(digits.tolist(), ordered.tolist(), strict=True):
        print(*before, " ->  ", *after)


@example
def who_hears_whom() -> Values:
    """Change one token: which outputs move, in each half of a block."""
    torch.manual_seed(0)
    block = EncoderBlock(d_model=64, heads=4)
    before = torch.randn(1, 8, 64)  # (batch, T, d_model)
    after = before.clone()
    after[0, 2] = torch.randn(64)  # one token changes

    outputs = {
        "attention": [block.attention(x)[0] for x in (before, after)],
        "feed-forward": [block.feed_forward(x) for x in (before, after)],
    }
    moved = {}
    for name, (old, new) in outputs.items():
        moved[name] = (new != old).any(dim=-1)[0].nonzero().flatten()
        print(f"{name:12} moves places", *moved[name].tolist())
    return {
        "by_attention": len(moved["attention"]),
        "by_feed_forward": len(moved["feed-forward"]),
        "places": moved["feed-forward"],
    }


@example
def a_mean_is_not_enough() -> Values:
    """With its weights held fixed, attention is a linear map; the block is not."""
    torch.manual_seed(0)
    block = EncoderBlock(d_model=64, heads=4)
    weights = torch.softmax(torch.randn(8, 8), dim=-1)  # fixed
    a, b = torch.randn(2, 8, 64)  # (T, d_model) each

    def mix(x: Tensor) -> Tensor:
        return weights @ F.linear(x, block.attention.value.weight)

    off = []
    for name, half in ("fixed mixing", mix), ("feed-forward", block.feed_forward):
        whole, parts = half(a + b) + half(0 * a), half(a) + half(b)
        off.append((whole - parts).abs().max().item())
        print(f"{name}: off from linear by {off[-1]:.0e}")
    return {"mixing": off[0], "feed_forward": off[1]}


def deep_stack(depth: int, norm_last: bool, d_model: int = 64) -> nn.ModuleList:
    """Stack blocks, initialised as the theorem assumes: Xavier, no biases."""
    blocks = [EncoderBlock(d_model, 4, norm_last) for _ in range(depth)]
    for name, parameter in nn.ModuleList(blocks).named_parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return nn.ModuleList(blocks)


def last_gradient(depth: int, norm_last: bool, seed: int) -> float:
    """Norm of the loss gradient of the last block's last matrix, before training."""
    torch.manual_seed(seed)
    blocks = deep_stack(depth, norm_last)
    head, x = nn.Linear(64, 10), torch.randn(32, 8, 64)
    for block in blocks:
        x, _ = block(x)
    if not norm_last:  # pre-LN ends with one more norm
        x = F.layer_norm(x, x.shape[-1:])
    labels = torch.randint(10, (32 * 8,))
    last = blocks[-1].get_parameter("feed_forward.2.weight")
    loss = F.cross_entropy(head(x).flatten(0, 1), labels)
    return float(torch.autograd.grad(loss, last)[0].norm())


@example
def norm_first_or_last() -> Values:
    """The gradient in the last block before the first step, against depth."""
    depths = [2, 4, 8, 16, 32]
    forms = {"post-LN": True, "pre-LN": False}
    _, axes = plt.subplots(figsize=(5.2, 3.2))
    ratio, scatter = {}, []
    for name, norm_last in forms.items():
        norms = torch.tensor(
            [[last_gradient(n, norm_last, seed) for n in depths] for seed in range(5)]
        )  # (seeds, depths)
        axes.loglog(depths, norms.mean(dim=0), "o-", base=2, label=name)
        axes.fill_between(depths, norms.amin(dim=0), norms.amax(dim=0), alpha=0.3)
        ratio[name] = (norms[:, 0] / norms[:, -1]).mean().item()
        scatter.append(norms.tolist())
        print(f"{name:8} depth 2 / depth 32: {ratio[name]:.2f}")
    axes.set(xlabel="blocks", ylabel="gradient norm, last block")
    axes.set_xticks(depths, [str(n) for n in depths])
    axes.set_yticks([0.05, 0.1, 0.2], ["0.05", "0.1", "0.2"])
    axes.minorticks_off()
    axes.legend()
    return {
        "post": ratio["post-LN"],
        "pre": ratio["pre-LN"],
        "root": math.sqrt(depths[-1] / depths[0]),
        "deepest": depths[-1],
        "shallowest": depths[0],
        "norms": scatter,
    }


@example
def parameter_count() -> Values:
    """Where the parameters of the sorter are."""
    model = Sorter(Recipe())
    block = model.blocks[0]
    norms = [block.get_submodule(name) for name in ("norm1", "norm2")]
    parts: dict[str, nn.Module] = {
        "embedding  10 x 64": model.embedding,
        "attention  4 (64 x 64 + 64)": block.get_submodule("attention"),
        "feed-forward  64 x 256 and back": block.get_submodule("feed_forward"),
        "two LayerNorms  2 x 2 x 64": nn.ModuleList(norms),
        "one block": block,
        "head  64 x 10 + 10": model.head,
        "all, with two blocks": model,
    }
    count = {}
    for name, part in parts.items():
        count[name.split("  ")[0]] = sum(p.numel() for p in part.parameters())
        print(f"{name:32} {sum(p.numel() for p in part.parameters()):7,}")
    return {
        "embedding": count["embedding"],
        "attention": count["attention"],
        "feed_forward": count["feed-forward"],
        "norms": count["two LayerNorms"],
        "block": count["one block"],
        "head": count["head"],
        "all": count["all, with two blocks"],
        "share": count["feed-forward"] / count["one block"],
    }


def table(runs: list[Run], first_seed: int = 0) -> None:
    """Print one line a run: first and last loss, then how it does on new sequences."""
    print("seed  first loss  last   digits  sequences")
    for seed, run in enumerate(runs, first_seed):
        first, last = run.losses[0], run.losses[-1]
        shares = f"{run.places:7.2%}  {run.sequences:8.2%}"
        print(f"{seed:4}  {first:10.4f}  {last:.4f} {shares}")


def summary(runs: list[Run]) -> Values:
    """What other examples need of some runs, and what the prose quotes."""
    losses = torch.stack([run.losses for run in runs])  # (seeds, steps)
    places = [run.places for run in runs]
    sequences = [run.sequences for run in runs]
    steps = len(losses[0])
    return {
        "models": [run.model for run in runs],
        "losses": losses,
        "shown": losses[0, [0, steps // 3, 2 * steps // 3, -1]],  # seed 0
        "first": losses[:, 0],
        "end": losses[:, -100:].mean(dim=1),  # one batch alone is noisy
        "places": places,
        "sequences": sequences,
        "places_range": [min(places), max(places)],
        "range": [min(sequences), max(sequences)],
    }


@example(timeout=900)
def with_positions() -> Values:
    """Train the published sorter with five seeds."""
    runs = [train_and_test(Recipe(), seed) for seed in SEEDS]
    table(runs)
    return summary(runs)


@example(timeout=900)
def without_positions() -> Values:
    """Train the same model with the sinusoids set to zero."""
    runs = [train_and_test(Recipe(positions=False), seed) for seed in SEEDS]
    table(runs)
    return summary(runs)


BETTER = Recipe(
    scaled=False,
    final_norm=True,
    lr=3e-3,
    weight_decay=0.1,
    clip=1.0,
    cosine=True,
)


@example(timeout=900)
def better_seeds_0_to_2() -> Values:
    """Train with the mended recipe; shared out so that two cores can work."""
    return {"runs": [train_and_test(BETTER, seed) for seed in (0, 1, 2)]}


@example(timeout=900)
def better_seeds_3_and_4() -> Values:
    """Train with the mended recipe, the rest of the seeds."""
    return {"runs": [train_and_test(BETTER, seed) for seed in (3, 4)]}


@example
def better_recipe(
    better_seeds_0_to_2: Values,
    better_seeds_3_and_4: Values,
) -> Values:
    """All five seeds of the mended recipe."""
    runs = [*better_seeds_0_to_2["runs"], *better_seeds_3_and_4["runs"]]
    table(runs)
    return summary(runs)


@example
def sorts(better_recipe: Values) -> Values:
    """The trained sorter and the sequence that opens the chapter."""
    model = better_recipe["models"][0]
    digits = torch.tensor([[7, 2, 9, 2, 5, 0, 8, 3]])
    scores, _ = model(digits)  # (batch, T, 10)
    written = scores.argmax(dim=-1)[0]
    print("reads ", *digits[0].tolist())
    print("writes", *written.tolist())
    return {"digits": digits[0], "written": written}


@example
def share_of_all_inputs() -> Values:
    """How many of all the possible inputs a training run can have met."""
    possible, drawn = 10**LENGTH, STEPS * 128
    print(f"{drawn:,} of {possible:,}: at most {drawn / possible:.2%}")
    return {"drawn": drawn, "share": drawn / possible}


@example
def blind_limit() -> Values:
    """The best that any model without positions can do, over all inputs."""
    loss, accuracy, multisets = 0.0, 0.0, 0
    for digits in combinations_with_replacement(range(10), 8):
        counts = Counter(digits).values()  # how often each digit occurs
        orders = math.factorial(8) // math.prod(map(math.factorial, counts))
        probability = orders / 10**8  # of these digits, in any order
        shares = [n / 8 for n in counts]
        loss -= probability * sum(p * math.log(p) for p in shares)
        accuracy += probability * max(shares)
        multisets += 1
    print(f"over {multisets:,} sets of digits:")
    print(f"loss {loss:.4f}, accuracy {accuracy:.5f}")
    return {"loss": loss, "accuracy": accuracy, "multisets": multisets}


@example
def loss_curves(
    with_positions: Values,
    without_positions: Values,
    blind_limit: Values,
) -> Values:
    """Training loss of ten runs, and the limit of the blind ones."""
    curves = {"with positions": with_positions, "without": without_positions}
    _, axes = plt.subplots(figsize=(5.2, 3.6))
    for colour, (name, runs) in enumerate(curves.items()):
        smooth = runs["losses"].unflatten(1, (-1, 15)).mean(dim=-1)  # (seeds, 100)
        steps = torch.arange(smooth.shape[1]) * 15 + 7
        axes.semilogy(steps, smooth.T, color=f"C{colour}", linewidth=1)
        axes.plot([], [], color=f"C{colour}", label=name)
    axes.axhline(blind_limit["loss"], linestyle="--", color="C3", label="limit without")
    axes.set(xlabel="step", ylabel="loss")
    axes.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.legend()

    above = without_positions["end"] - blind_limit["loss"]
    blind = without_positions["places"]
    late = with_positions["losses"][:, 750:]  # (seeds, 750)
    spikes = (late.amax(dim=1) / late.median(dim=1).values).tolist()
    print("without, last 100 steps, above the limit:")
    print(f"  {above.min():.3f} to {above.max():.3f}")
    print("with, second half, highest / median loss:")
    print(" ", *[f"{spike:.0f}" for spike in spikes])
    return {
        "above": [above.min(), above.max()],
        "accuracy_gap": max(abs(x - blind_limit["accuracy"]) for x in blind),
        "times_ln_10": with_positions["losses"][0, 0] / math.log(10),
        "ln_10": math.log(10),
        "spikes": [min(spikes), max(spikes)],
        "trained_below": with_positions["end"].max(),
    }


@example
def first_loss() -> Values:
    """The loss before any training, with the factor and without."""
    recipes = {"times sqrt(d)": Recipe(), "no factor": Recipe(scaled=False)}
    losses: dict[str, list[float]] = {}
    sizes: dict[str, float] = {}
    for name, recipe in recipes.items():
        losses[name] = []
        for seed in SEEDS:
            torch.manual_seed(seed)
            model, (digits, ordered) = Sorter(recipe), sample(128)
            losses[name].append(sorting_loss(model, digits, ordered).item())
        sizes[name] = model(digits)[0].std().item()  # of the scores, last seed
        low, high = min(losses[name]), max(losses[name])
        print(f"{name:13}  loss {low:5.2f} to {high:5.2f}")
        print(f"{'':13}  scores spread by {sizes[name]:.2f}")
    print(f"{'ln 10':13}  {math.log(10):10.2f}")
    return {
        "scaled": [min(losses["times sqrt(d)"]), max(losses["times sqrt(d)"])],
        "times_ln_10": [pick(losses["times sqrt(d)"]) / math.log(10) for pick in (min, max)],
        "plain": [min(losses["no factor"]), max(losses["no factor"])],
        "spread_scaled": sizes["times sqrt(d)"],
        "spread_plain": sizes["no factor"],
    }


@example
def drowned() -> Values:
    """How loud the position is beside the digit, with the factor and without."""
    torch.manual_seed(0)
    digit = nn.Embedding(10, 64).weight  # entries drawn from N(0, 1)
    place = sinusoids(8, 64)
    shares = {}
    for name, factor in ("times sqrt(d)", 8), ("no factor", 1):
        digit_norm = (factor * digit).norm(dim=-1).mean().item()
        place_norm = place.norm(dim=-1).mean().item()
        shares[name] = place_norm**2 / (place_norm**2 + digit_norm**2)
        print(f"{name:13}  digit {digit_norm:5.1f}, place {place_norm:.1f}")
        print(f"{'':13}  place: {shares[name]:.1%} of the square")
    return {
        "scaled": shares["times sqrt(d)"],
        "plain": shares["no factor"],
        "place": place_norm,
        "digit_scaled": 8 * digit_norm,
    }


@example(timeout=300)
def which_of_two(with_positions: Values) -> Values:
    """Mend only the first loss, or let the positions be heard: the first 150 steps."""
    early = {"published": with_positions["losses"][:, :150]}
    trials = {
        "and a final norm": Recipe(final_norm=True, steps=150),
        "and no factor": Recipe(scaled=False, steps=150),
    }
    for name, recipe in trials.items():
        losses = [train(recipe, seed)[1] for seed in SEEDS]
        early[name] = torch.stack(losses)  # (seeds, steps)
    ends = {}
    print("                   first    steps 130-149")
    for name, loss in early.items():
        first, end = loss[:, 0].mean(), loss[:, 130:].mean(dim=1)
        ends[name] = [end.min().item(), end.max().item()]
        print(f"{name:18} {first:5.2f}    {end.min():.2f} to {end.max():.2f}")
    return {
        "published": ends["published"],
        "norm": ends["and a final norm"],
        "norm_first": early["and a final norm"][:, 0].amax(),
        "no_factor": ends["and no factor"],
    }


@example
def both_recipes(with_positions: Values, better_recipe: Values) -> Values:
    """Wrong sequences of ten sorters, each with its interval."""
    trials = 20_000
    print("mean over seeds, 95 % interval")
    means = {}
    _, axes = plt.subplots(figsize=(5.2, 3.2))
    recipes = {"published": with_positions, "mended": better_recipe}
    for row, (name, runs) in enumerate(recipes.items()):
        for seed, share in enumerate(runs["sequences"]):
            low, high = wilson(1 - share, trials)
            y, colour = -row + 0.12 * (2 - seed), f"C{row}"
            axes.plot([max(low, 1e-6), high], [y, y], color=colour, linewidth=2)
            if share < 1:
                axes.plot(1 - share, y, "o", color=colour)
        mean, low, high = mean_interval(runs["sequences"])
        wrong = sorted(1 - share for share in runs["sequences"])
        means[name] = {"interval": [low, high], "wrong": [wrong[0], wrong[-1]]}
        print(f"{name:9} {mean:.3%} ({low:.3%} to {high:.3%})")
    axes.set_xscale("log")
    axes.set_xlim(1e-5, 1)
    axes.set_yticks([0, -1], recipes)
    ticks = [1e-4, 1e-3, 1e-2, 1e-1, 1]
    axes.set_xticks(ticks, ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
    axes.set_xlabel("sequences with a mistake")
    return {"trials": trials, **means}


@example(varies=True, alone=True)
def time_of_training() -> Values:
    """How long the published training takes, from the first hundred steps."""
    warm_up, short = Recipe(steps=10), Recipe(steps=100)
    train(warm_up, seed=0)
    start = time.perf_counter()
    train(short, seed=0)
    seconds = (time.perf_counter() - start) * STEPS / short.steps

    level = torch.backends.cpu.get_cpu_capability()
    machine = f"{platform.machine()}, {level}, one thread"
    print(f"{STEPS:,} steps: about {seconds:.0f} s on this CPU")
    print(f"({machine})")
    return {"seconds": seconds, "machine": machine, "same_order": 1.5 < seconds < 150}


@example
def best_luck(blind_limit: Values) -> Values:
    """The largest share of whole sequences that a blind sorter can get right."""
    share = blind_limit["multisets"] / 10**8
    print(f"{blind_limit['multisets']:,} / 100,000,000 = {share:.3%}")
    return {"share": share, "in_20000": share * 20_000}


@example
def block_of_the_base_model() -> Values:
    """One encoder block as wide as the original base model's."""
    block = EncoderBlock(d_model=512, heads=8)
    count = sum(p.numel() for p in block.parameters())
    print(f"{count:,}")
    return {"count": count, "per_d_squared": count / 512**2}


def as_text(tensors: list[Tensor]) -> str:
    """Write numbers as a page can carry them: little-endian float32, in base64."""
    from base64 import b64encode

    flat = torch.cat([tensor.flatten() for tensor in tensors])
    return b64encode(flat.numpy().astype("<f4").tobytes()).decode()


@torch.no_grad()
def scores_of(model: Sorter, digits: list[int]) -> Tensor:
    """Score one input that may be shorter than LENGTH: it takes the first places.

    Returns (T, 10).
    """
    whole = model.get_buffer("places")
    model.places = whole[: len(digits)]
    scores: Tensor = model(torch.tensor([digits]))[0]
    model.places = whole
    return scores[0]


def written_out(model: Sorter) -> Values:
    """A sorter as a page can carry it, and the scores of some inputs to check by."""
    torch.manual_seed(1)
    inputs = sample(24)[0].tolist()
    inputs += [[digit] * LENGTH for digit in range(10)]  # all equal
    inputs += [list(range(LENGTH)), list(range(9, 1, -1))]  # in order, and backwards
    inputs += [inputs[0][:length] for length in range(1, LENGTH)]  # too short
    state = model.state_dict()
    block = model.blocks[0]
    return {
        "layout": [[name, list(tensor.shape)] for name, tensor in state.items()],
        "weights": as_text(list(state.values())),
        "heads": block.get_submodule("attention").heads,
        "epsilon": block.get_submodule("norm1").eps,
        "factor": model.factor,
        "inputs": inputs,
        "scores": as_text([scores_of(model, digits) for digits in inputs]),
    }


@example
def to_take_along(better_recipe: Values) -> Values:
    """The trained sorter, seed 0, as text."""
    written = written_out(better_recipe["models"][0])
    numbers = sum(math.prod(shape) for _, shape in written["layout"])
    print(f"{numbers:,} numbers, {len(written['weights']):,} characters")
    return written


@example
def blind_to_take_along(without_positions: Values) -> Values:
    """The sorter that never had positions, seed 0, as text."""
    written = written_out(without_positions["models"][0])
    numbers = sum(math.prod(shape) for _, shape in written["layout"])
    print(f"{numbers:,} numbers, {len(written['weights']):,} characters")
    return written


@example
def positions_taken_away(
    sorts: Values,
    better_recipe: Values,
    without_positions: Values,
) -> Values:
    """Three sorters: with positions, the same without them, and one that never had any."""
    from copy import deepcopy

    trained = better_recipe["models"][0]
    zeroed = deepcopy(trained)
    zeroed.places.zero_()
    models = {
        "with positions": trained,
        "the same, set to zero": zeroed,
        "trained without": without_positions["models"][0],
    }
    torch.manual_seed(1)
    trials, right = 20_000, {}
    print(f"{'':22}  digits  sequences")
    for name, model in models.items():
        digits, sequences = evaluate(model, trials)
        print(f"{name:22} {digits:7.3%}  {sequences:9.2%}")
        right[name] = {"digits": digits, "sequences": sequences}
    return {
        "with": right["with positions"],
        "zeroed": right["the same, set to zero"],
        "without": right["trained without"],
        "start": sorts["digits"],
        "length": LENGTH,
        "trials": trials,
    }
