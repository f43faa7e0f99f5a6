"""docs/in-practice.md: when another tool is better, four usual mistakes, and how to read any model's configuration."""

import math
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executed import example
from snippets.attention import colour_wishes, train
from snippets.masks import NextDigit, assert_causal, causal, inverted
from snippets.multi_head import (
    MultiHeadAttention,
    SplitWithoutTranspose,
    WishReader,
    as_library,
)
from snippets.positions import sinusoids

Values = dict[str, object]  # what an example returns: the values that the prose quotes


class TableReader(nn.Module):
    """A small Transformer over the columns of a table: each number is a token.

    The number in column i becomes the vector x_i w_i + b_i, so b_i says which column
    it is. Two encoder layers, the mean over columns, two classes.
    """

    def __init__(self, columns: int, d_model: int = 32) -> None:
        super().__init__()
        self.scale = nn.Parameter(0.1 * torch.randn(columns, d_model))
        self.shift = nn.Parameter(0.1 * torch.randn(columns, d_model))
        layer = nn.TransformerEncoderLayer(d_model, 4, 2 * d_model, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.answer = nn.Linear(d_model, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, columns) to logits (batch, 2)."""
        tokens = x.unsqueeze(-1) * self.scale + self.shift  # (batch, columns, d_model)
        logits: Tensor = self.answer(self.layers(tokens).mean(1))
        return logits


def fit(model: nn.Module, x: Tensor, y: Tensor, steps: int, lr: float) -> nn.Module:
    """Train a classifier on random batches of 64 with AdamW; return it in eval mode."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Count how many of y the model's largest logit names."""
    with torch.no_grad():
        return float((model(x).argmax(-1) == y).float().mean())


def compare_on_a_table(seed: int) -> dict[str, tuple[float, float]]:
    """Train three models on one split of scikit-learn's breast cancer table.

    Returns, by name, the accuracy on the test rows and the seconds for training.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(train_x)
    train_x, test_x = scaler.transform(train_x), scaler.transform(test_x)
    results = {}
    linear = LogisticRegression()
    boosting = HistGradientBoostingClassifier(random_state=0)
    for name, model in (("linear", linear), ("boosting", boosting)):
        start = time.perf_counter()
        model.fit(train_x, train_y)
        seconds = time.perf_counter() - start
        results[name] = (float(model.score(test_x, test_y)), seconds)

    start = time.perf_counter()
    torch.manual_seed(seed)
    reader = TableReader(columns=x.shape[1])
    fit(reader, torch.tensor(train_x).float(), torch.tensor(train_y), steps=60, lr=2e-3)
    seconds = time.perf_counter() - start
    right = accuracy(reader, torch.tensor(test_x).float(), torch.tensor(test_y))
    return results | {"Transformer": (right, seconds)}


@example(timeout=300, varies=True)
def small_table() -> Values:
    """Three models on one small table, over eight splits."""
    splits = [compare_on_a_table(seed) for seed in range(8)]
    table = {name: torch.tensor([split[name] for split in splits]) for name in splits[0]}
    print("             accuracy, 8 splits    seconds")
    for name, runs in table.items():
        right, seconds = runs.unbind(1)  # (splits,) each
        between = f"({right.min():.3f}-{right.max():.3f})"
        print(f"{name:12} {right.mean():.3f} {between} {seconds.median():7.2f}")
    ahead = table["Transformer"][:, 0] - table["boosting"][:, 0]
    took = {name: runs[:, 1].median() for name, runs in table.items()}
    return {
        "rows": 569,
        "columns": 30,
        "splits": len(splits),
        "test_rows": 171,
        "linear": table["linear"][:, 0].mean(),
        "boosting": table["boosting"][:, 0].mean(),
        "transformer": table["Transformer"][:, 0].mean(),
        "ahead": ahead.mean(),
        "ahead_range": [ahead.min(), ahead.max()],
        "two_errors": 2 * ahead.std() / len(splits) ** 0.5,
        "times_slower": took["Transformer"] / took["boosting"],
        "times_slower_linear": took["Transformer"] / took["linear"],
    }


THINGS = ("giảng viên", "bài tập", "phòng học", "giáo trình", "bài thi", "trợ giảng")
GOOD = ("tốt", "hay", "rõ ràng", "hữu ích", "thú vị", "hợp lý", "dễ chịu", "tuyệt")
BAD = ("tệ", "chán", "lộn xộn", "vô ích", "khó hiểu", "bất tiện", "mệt mỏi", "dở")


def clause(draw: random.Random, good: bool, negation: bool) -> str:
    """Say that something is good or bad, sometimes as not the opposite."""
    negated = negation and draw.random() < 0.4
    word = draw.choice(GOOD if good != negated else BAD)
    how = draw.choice(("không", "không hề") if negated else ("rất", "khá", ""))
    return f"{draw.choice(THINGS)} {how} {word}"


def reviews(count: int, turning: bool, seed: int) -> tuple[list[str], Tensor]:
    """Make course reviews in Vietnamese, and whether each is favourable, (count,).

    Plain ones agree with themselves: two clauses joined by và (and). Turning ones
    hold one clause for and one against, with negations, joined by nhưng (but) or
    mặc dù (although); the main clause decides.
    """
    draw = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        good = draw.random() < 0.5
        main = clause(draw, good, turning)
        if turning:
            side = clause(draw, not good, turning)
            forms = [f"{side} nhưng {main}", f"tuy {side} nhưng {main}"]
            forms += [f"{main} mặc dù {side}", f"mặc dù {side} {main}"]
            text = draw.choice(forms)
        else:
            text = f"{main} và {clause(draw, good, turning)}"
        texts.append(" ".join(text.split()))
        labels.append(int(good))
    return texts, torch.tensor(labels)


@example
def some_reviews() -> Values:
    """Three reviews of each kind."""
    for kind, turning in (("plain", False), ("turning", True)):
        texts, labels = reviews(3, turning, seed=1)
        print(f"{kind}:")
        for text, label in zip(texts, labels, strict=True):
            print(" ", "+" if label else "-", text)
    return {}


class ReviewReader(nn.Module):
    """A small Transformer that reads syllables, with or without positions.

    Two encoder layers of two heads, the mean over the tokens that are no padding,
    two classes. Token 0 is padding.
    """

    def __init__(self, vocabulary: int, positions: bool, d_model: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, d_model, padding_idx=0)
        self.positions = positions
        layer = nn.TransformerEncoderLayer(d_model, 2, 2 * d_model, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.answer = nn.Linear(d_model, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, T) to logits (batch, 2)."""
        padding = tokens == 0
        x = self.embed(tokens)  # (batch, T, d_model)
        if self.positions:
            x = x + sinusoids(tokens.size(1), x.size(2))
        x = self.layers(x, src_key_padding_mask=padding)
        real = (~padding).unsqueeze(-1)
        logits: Tensor = self.answer((x * real).sum(1) / real.sum(1))
        return logits


def numbered(texts: list[str], vocabulary: dict[str, int]) -> Tensor:
    """Turn texts into token numbers, (batch, T), filled up with 0; 1 is unknown."""
    rows = [torch.tensor([vocabulary.get(word, 1) for word in text.split()]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def read_reviews(count: int, turning: bool, seed: int, positions: bool = True) -> float:
    """Train a ReviewReader on count reviews; score it on 1,000 new ones."""
    texts, labels = reviews(count, turning, seed)
    new_texts, new_labels = reviews(1000, turning, seed + 1000)
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {word: number for number, word in enumerate(words, start=2)}
    torch.manual_seed(seed)
    model = ReviewReader(len(words) + 2, positions)
    fit(model, numbered(texts, vocabulary), labels, steps=200, lr=5e-3)
    new = numbered(new_texts, vocabulary)
    return accuracy(model, new, new_labels)


def count_words(count: int, turning: bool, seed: int, longest: int) -> float:
    """Score TF-IDF and a linear model, over runs of up to longest words, on 1,000 new reviews."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = reviews(count, turning, seed)
    new_texts, new_labels = reviews(1000, turning, seed + 1000)
    words = TfidfVectorizer(ngram_range=(1, longest), token_pattern=r"\S+")
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=1000))
    model.fit(texts, labels.numpy())
    return float(model.score(new_texts, new_labels.numpy()))


def over_seeds(score: Callable[[int], float], seeds: int = 5) -> list[float]:
    """Score with seeds 0, 1, 2, ... and return the scores in order of size."""
    return sorted(score(seed) for seed in range(seeds))


@example(timeout=300)
def plain_reviews() -> Values:
    """100 plain reviews for each model."""
    scores = {
        "TF-IDF, linear": over_seeds(lambda seed: count_words(100, False, seed, 1)),
        "Transformer": over_seeds(lambda seed: read_reviews(100, False, seed)),
    }
    for name, (worst, *_, best) in scores.items():
        print(f"{name:15} {worst:.3f} to {best:.3f}")
    return {
        "tfidf": scores["TF-IDF, linear"],
        "transformer": scores["Transformer"],
        "count": 100,
    }


@example(timeout=300)
def turning_small() -> Values:
    """300 turning reviews for each model."""
    return turning_scores(300)


@example(timeout=300)
def turning_large() -> Values:
    """2,000 turning reviews for each model."""
    return turning_scores(2000)


def turning_scores(count: int) -> Values:
    """Score words, runs of three words and the Transformer on turning reviews."""
    scores = {
        "words": over_seeds(lambda seed: count_words(count, True, seed, 1)),
        "three words": over_seeds(lambda seed: count_words(count, True, seed, 3)),
        "Transformer": over_seeds(lambda seed: read_reviews(count, True, seed)),
    }
    print(f"{count} turning reviews")
    for name, (worst, *_, best) in scores.items():
        print(f"{name:12} {worst:.3f} to {best:.3f}")
    ends = {name: [worst, best] for name, (worst, *_, best) in scores.items()}
    return {
        "count": count,
        "words": ends["words"],
        "three_words": ends["three words"],
        "transformer": ends["Transformer"],
    }


class WithoutRoot(MultiHeadAttention):
    """Get it wrong: the scores are not divided by the root of d_k."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        roles = (self.query, self.key, self.value)
        query, key, value = (self.split(role(x)) for role in roles)
        scores = query @ key.mT  # (batch, heads, T, T)
        weights = scores.softmax(-1)
        mixed = (weights @ value).transpose(1, 2).flatten(2)
        return self.output(mixed), weights


def wish_error(attention: type[MultiHeadAttention], d_model: int, seed: int) -> float:
    """Train one head on colour_wishes for 100 steps; return its error on new ones."""
    torch.manual_seed(seed)
    model = WishReader(features=9, d_model=d_model, heads=1, wishes=1)
    model.attention = attention(d_model, heads=1)
    train(model, wishes=1, steps=100, lr=0.01)
    tokens, answers, _ = colour_wishes(batch=5000)
    with torch.no_grad():
        return float(F.mse_loss(model(tokens)[0], answers))


@example(timeout=300)
def no_root() -> Values:
    """A narrow head and a wide one, trained with and without the division."""
    print("error on new sequences, 5 seeds")
    errors = {}
    for d_k in (8, 128):
        for name, attention in (("divided", MultiHeadAttention), ("not", WithoutRoot)):
            runs = over_seeds(lambda seed: wish_error(attention, d_k, seed))
            errors[d_k, name] = runs
            print(f"d_k = {d_k:3} {name:8} {runs[0]:.3f} to {runs[-1]:.3f}")
    return {
        "narrow_right": [errors[8, "divided"][0], errors[8, "divided"][-1]],
        "narrow_wrong": [errors[8, "not"][0], errors[8, "not"][-1]],
        "wide_right": [errors[128, "divided"][0], errors[128, "divided"][-1]],
        "wide_wrong": [errors[128, "not"][0], errors[128, "not"][-1]],
    }


def parity(ours: MultiHeadAttention) -> float:
    """Measure how far a module is from PyTorch's own with the same weights."""
    x = torch.randn(2, 10, ours.output.in_features)
    theirs, _ = as_library(ours)(x, x, x)
    return float((ours(x)[0] - theirs).abs().max().detach())


@example
def caught_no_root() -> Values:
    """Parity with the library, narrow and wide."""
    torch.manual_seed(0)
    off = {}
    for d_k in (8, 128):
        right = parity(MultiHeadAttention(d_k, heads=1))
        wrong = parity(WithoutRoot(d_k, heads=1))
        off[d_k] = (right, wrong)
        print(f"d_k = {d_k:3}: right {right:.0e}, no root {wrong:.0e}")
    return {"right": max(right for right, _ in off.values()), "wrong": [off[8][1], off[128][1]]}


def repeating(batch: int, length: int) -> Tensor:
    """Draw rows that repeat three random digits again and again, (batch, length)."""
    return torch.randint(10, (batch, 3)).repeat(1, length // 3 + 1)[:, :length]


def learn_to_repeat(attend: Callable[..., Tensor], seed: int) -> tuple[float, float]:
    """Train a NextDigit on repeating; return its last loss and its score when it writes."""
    torch.manual_seed(seed)
    model = NextDigit(attend)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        digits = repeating(64, 10)
        logits = model(digits[:, :-1])  # (batch, 9, 10)
        loss = F.cross_entropy(logits.flatten(0, 1), digits[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    truth = repeating(500, 9)
    written = truth[:, :3]  # the model is given three digits and writes six
    with torch.no_grad():
        for _ in range(6):
            following = model(written)[:, -1].argmax(-1, keepdim=True)
            written = torch.cat([written, following], dim=1)
    return loss.item(), (written == truth)[:, 3:].float().mean().item()


@example(timeout=300)
def leaking_mask() -> Values:
    """Loss in training and score in writing, with the right mask and the inverted one."""
    print("mask      training loss  right, writing")
    ends = {}
    for attend in (causal, inverted):
        runs = torch.tensor([learn_to_repeat(attend, seed) for seed in range(5)])
        (loss, right), (most, best) = runs.amin(0).tolist(), runs.amax(0).tolist()
        ends[attend.__name__] = [[loss, most], [right, best]]
        print(f"{attend.__name__:9} {loss:.2f} to {most:.2f} {right:8.2f} to {best:.2f}")
    return {
        "causal_loss": ends["causal"][0],
        "causal_right": ends["causal"][1],
        "inverted_loss": ends["inverted"][0],
        "inverted_right": ends["inverted"][1],
        "honest": 2 / 9 * math.log(10),
    }


@example(raises=AssertionError)
def caught_mask() -> None:
    """The guard of the chapter on masks, on the untrained model."""
    torch.manual_seed(0)
    digits = repeating(8, 6)
    assert_causal(NextDigit(inverted), digits, other=(digits + 1) % 10)


def mean_error(attention: type[MultiHeadAttention], seed: int) -> float:
    """Train two heads to report the mean of a sequence's numbers; return the error."""
    torch.manual_seed(seed)
    model = WishReader(features=9, d_model=16, heads=2, wishes=1)
    model.attention = attention(16, heads=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        tokens, _, _ = colour_wishes(batch=64)
        error = F.mse_loss(model(tokens)[0].mean(1).squeeze(-1), tokens[..., -1].mean(1))
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return float(error.detach())


def two_headed_wish_error(attention: type[MultiHeadAttention], seed: int) -> float:
    """Train two heads on colour_wishes for 150 steps; return the error on new ones."""
    torch.manual_seed(seed)
    model = WishReader(features=9, d_model=16, heads=2, wishes=1)
    model.attention = attention(16, heads=2)
    train(model, wishes=1, steps=150, lr=0.01)
    tokens, answers, _ = colour_wishes(batch=5000)
    with torch.no_grad():
        return float(F.mse_loss(model(tokens)[0], answers))


@example(timeout=300)
def wrong_split() -> Values:
    """An easy task and a real one, with the right split and the wrong one."""
    print("error           easy  lookup")
    ends = {}
    for name, attention in (("right", MultiHeadAttention), ("view alone", SplitWithoutTranspose)):
        easy = over_seeds(lambda seed: mean_error(attention, seed))
        lookup = over_seeds(lambda seed: two_headed_wish_error(attention, seed))
        ends[name] = [easy[-1], lookup[0], lookup[-1]]
        print(f"{name:10} {easy[-1]:9.4f}  {lookup[0]:.3f} to {lookup[-1]:.3f}")
    right, wrong = ends.values()
    return {
        "easy": [right[0], wrong[0]],
        "lookup_right": right[1:],
        "lookup_wrong": wrong[1:],
    }


@example
def caught_split() -> Values:
    """Parity, and a shuffle: without positions, outputs must move with their tokens."""
    torch.manual_seed(0)
    x, order = torch.randn(2, 10, 64), torch.randperm(10)
    print("           off PyTorch  off after shuffle")
    found = []
    for module in (MultiHeadAttention(64, 4), SplitWithoutTranspose(64, 4)):
        off = parity(module)
        shuffled = (module(x[:, order])[0] - module(x)[0][:, order]).abs().max().item()
        found.append((off, shuffled))
        name = "view alone" if isinstance(module, SplitWithoutTranspose) else "right"
        print(f"{name:10} {off:11.0e} {shuffled:15.0e}")
    return {"right": found[0], "wrong": found[1]}


@example(timeout=300)
def blind_reader(turning_large: dict[str, Any]) -> Values:
    """2,000 turning reviews again, for a Transformer that knows no order."""
    blind = over_seeds(lambda seed: read_reviews(2000, True, seed, positions=False))
    sighted = turning_large["transformer"]
    print(f"with positions    {sighted[0]:.3f} to {sighted[-1]:.3f}")
    print(f"without           {blind[0]:.3f} to {blind[-1]:.3f}")
    return {"blind": [blind[0], blind[-1]], "sighted": sighted}


@example
def caught_blind() -> Values:
    """Read reviews backwards: does anything move?"""
    torch.manual_seed(0)
    tokens = torch.randint(1, 50, (8, 12))  # (batch, T)
    moved = {}
    for positions in (True, False):
        model = ReviewReader(50, positions).eval()
        with torch.no_grad():
            change = (model(tokens.flip(1)) - model(tokens)).abs().max().item()
        moved[positions] = change
        print(f"positions {positions!s:5}: moved by {change:.0e}")
    return {"sighted": moved[True], "blind": moved[False]}


@dataclass
class Description:
    """What describe reads from a configuration; parameters counts them by part."""

    kind: str
    d_model: int
    layers: int
    heads: int
    d_k: int
    d_ff: int
    parameters: dict[str, int]
    score_bytes: int

    def __str__(self) -> str:
        total = sum(self.parameters.values())
        lines = [
            f"{self.kind}: {self.layers} layers, d_model {self.d_model:,}",
            f"{self.heads} heads of d_k {self.d_k}, d_ff {self.d_ff:,}",
            *(f"{part:13} {n:13,} {n / total:6.1%}" for part, n in self.parameters.items()),
            f"{'all':13} {total:13,}",
            f"scores, a layer: {self.score_bytes / 1e6:,.1f} MB",
        ]
        return "\n".join(lines)


PARTS = {  # the first that a parameter's name matches
    "embeddings": r"embed|^wte|^wpe|^shared",
    "norms": r"norm|(^|\.)ln_",
    "attention": r"att(entio)?n",
    "feed-forward": r"(^|\.)(h|layers?|block)\.\d+\.",
    "rest": r"",
}


def describe(config: Any, T: int) -> Description:
    """Read a transformers configuration: an object, or the path of a config.json.

    The model is built on the meta device: all shapes, no memory, no weights. Its
    parameters are sorted by name; a norm inside the embeddings counts as theirs.
    score_bytes: float32 scores of one layer for one sequence of T tokens, by hand.
    """
    from transformers import AutoConfig, AutoModel

    if isinstance(config, str | Path):
        config = AutoConfig.from_pretrained(config)
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    parameters = dict.fromkeys(PARTS, 0)
    for name, parameter in model.named_parameters():  # shared ones come once
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name, re.I))
        parameters[part] += parameter.numel()

    def first(*names: str) -> int | None:
        return next((value for name in names if (value := getattr(config, name, None))), None)

    d_model, heads = config.hidden_size, config.num_attention_heads
    layers = first("num_hidden_layers", "n_layers") or 0
    decoder = first("num_decoder_layers", "decoder_layers") or 0
    names = ("intermediate_size", "d_ff", "n_inner", "hidden_dim", "ffn_dim", "encoder_ffn_dim")
    return Description(
        kind=config.model_type,
        d_model=d_model,
        layers=layers + (decoder if config.is_encoder_decoder else 0),
        heads=heads,
        d_k=first("head_dim", "d_kv") or d_model // heads,
        d_ff=first(*names) or 4 * d_model,
        parameters={part: count for part, count in parameters.items() if count},
        score_bytes=4 * heads * T * T,
    )


@example
def phobert() -> Values:
    """The shape of PhoBERT-base, from the numbers in its configuration."""
    from transformers import RobertaConfig

    config = RobertaConfig(vocab_size=64001, max_position_embeddings=258, type_vocab_size=1)
    found = describe(config, T=256)
    print(found)
    return {
        "total": sum(found.parameters.values()),
        "parameters": found.parameters,
        "d_k": found.d_k,
    }


@example
def four_more() -> Values:
    """Four other families, by their default configurations."""
    from transformers import BertConfig, GPT2Config, LlamaConfig, T5Config

    totals = {}
    print("       layers heads d_k   d_ff  parameters")
    for config in (BertConfig(), GPT2Config(), T5Config(), LlamaConfig()):
        found = describe(config, T=1024)
        totals[found.kind] = sum(found.parameters.values())
        shape = f"{found.layers:6} {found.heads:5} {found.d_k:3} {found.d_ff:6,}"
        print(f"{found.kind:6} {shape} {totals[found.kind]:13,}")
    return {"totals": totals}


@example
def norm_before_or_after() -> Values:
    """Find where the norms stand: a post-LN block puts out vectors that are normalised."""
    from transformers import AutoModel, BertConfig, GPT2Config, LlamaConfig, RobertaConfig

    torch.manual_seed(0)
    small: dict[str, Any] = {"vocab_size": 50, "hidden_size": 32}
    small |= {"num_attention_heads": 2, "num_hidden_layers": 2}
    small |= {"bos_token_id": 0, "eos_token_id": 0}
    spreads: Values = {}
    print("spread of what the first block puts out")
    for family in (BertConfig, RobertaConfig, GPT2Config, LlamaConfig):
        model = AutoModel.from_config(family(**small)).eval()  # untrained
        tokens = torch.randint(2, 50, (4, 10))  # (batch, T)
        states = model(tokens, output_hidden_states=True).hidden_states
        spread = states[1].std(-1, correction=0)  # (batch, T)
        spreads[model.config.model_type] = [spread.min(), spread.max()]
        print(f"{model.config.model_type:8} {spread.min():.2f} to {spread.max():.2f}")
    return spreads


@example
def long_input() -> Values:
    """The score matrices of a model of PhoBERT's shape, if it could read a whole report."""
    from transformers import RobertaConfig

    bytes_at = {}
    for length in (256, 4096, 32768):
        config = RobertaConfig(max_position_embeddings=length + 2)
        bytes_at[length] = describe(config, length).score_bytes
        print(f"T = {length:6,}: {bytes_at[length] / 1e6:10,.1f} MB a layer")
    return {"longest": length, "bytes": bytes_at[length]}


@example
def feed_forward_share(phobert: dict[str, Any]) -> Values:
    """Feed-forward parameters for each one in attention."""
    parameters = phobert["parameters"]
    ratio = parameters["feed-forward"] / parameters["attention"]
    print(f"{ratio:.3f}")
    return {"ratio": ratio}


FORMULAS = {  # sums of products; each may use the ones above it
    "blocks": "layers + decoder_layers",
    "attentions": "layers + 2 * decoder_layers",
    "all_norms": "blocks + attentions + other_norms",
    "square": "d_model * d_model",
    "words": "vocabulary * d_model",
    "positions": "position_rows * d_model + type_rows * d_model",
    "attention": "4 * attentions * square + 4 * attentions * d_model",
    "feed_forward": "2 * blocks * d_model * d_ff + blocks * d_ff + blocks * d_model",
    "norms": "2 * all_norms * d_model",
    "head": "pooler * square + pooler * d_model + own_head * words",
    "total": "words + positions + attention + feed_forward + norms + head",
    "bytes": "4 * total",
    "scores": "4 * heads * T * T",
    "all_scores": "attentions * scores",
}
SIZES = {  # of three published models
    "original base": {
        "layers": 6, "decoder_layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048,
        "vocabulary": 37000, "position_rows": 0, "type_rows": 0, "other_norms": 0,
        "pooler": 0, "own_head": 0, "T": 512,
    },
    "PhoBERT-base": {
        "layers": 12, "decoder_layers": 0, "d_model": 768, "heads": 12, "d_ff": 3072,
        "vocabulary": 64001, "position_rows": 258, "type_rows": 1, "other_norms": 1,
        "pooler": 1, "own_head": 0, "T": 256,
    },
    "GPT-2 small": {
        "layers": 12, "decoder_layers": 0, "d_model": 768, "heads": 12, "d_ff": 3072,
        "vocabulary": 50257, "position_rows": 1024, "type_rows": 0, "other_norms": 1,
        "pooler": 0, "own_head": 0, "T": 1024,
    },
}  # fmt: skip


def plan(sizes: dict[str, int]) -> dict[str, int]:
    """Count what a Transformer of these sizes would hold, before anyone builds it.

    Every linear layer but the output matrix has a bias. The last four results: all
    parameters and their bytes in float32; the bytes of the scores of one attention,
    for one sequence in float32, and of all attentions.
    """
    known = dict(sizes)
    for name, formula in FORMULAS.items():
        products = [product.split(" * ") for product in formula.split(" + ")]
        numbers = [[int(known.get(f, f)) for f in factors] for factors in products]
        known[name] = sum(map(math.prod, numbers))
    return {name: known[name] for name in FORMULAS}


@example
def planned(phobert: dict[str, Any], four_more: dict[str, Any]) -> Values:
    """Three models by formula, and as PyTorch counts them."""
    with torch.device("meta"):
        original = nn.Transformer(batch_first=True)  # the rest: defaults
        words = nn.Embedding(37000, 512)  # of both languages, and of the output
    parts = nn.ModuleList([words, original.encoder.layers, original.decoder.layers])
    counted = {
        "original base": sum(p.numel() for p in parts.parameters()),
        "PhoBERT-base": phobert["total"],
        "GPT-2 small": four_more["totals"]["gpt2"],
    }
    print(f"{'':14}{'by formula':>13}{'counted':>13}")
    found = {name: plan(sizes)["total"] for name, sizes in SIZES.items()}
    for name, total in found.items():
        print(f"{name:14}{total:13,}{counted[name]:13,}")
    return {
        "formulas": FORMULAS,
        "sizes": SIZES,
        "totals": found,
        "counted": counted,
        "choices": {
            "layers": [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128],
            "decoder_layers": [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48],
            "d_model": [64, 128, 256, 384, 512, 768, 1024, 1280, 1600, 2048, 4096, 8192],
            "heads": [1, 2, 4, 8, 12, 16, 20, 25, 32, 64, 128],
            "d_ff": [256, 512, 1024, 1536, 2048, 3072, 4096, 5120, 6400, 8192, 16384, 32768],
            "vocabulary": [1000, 8000, 16000, 32000, 37000, 50257, 64001, 128000, 256000],
            "T": [2**n for n in range(4, 18)],
            "position_rows": [0, 128, 256, 258, *(2**n for n in range(9, 18))],
            "type_rows": [0, 1, 2],
            "other_norms": [0, 1, 2],
            "pooler": [0, 1],
            "own_head": [0, 1],
        },
    }
