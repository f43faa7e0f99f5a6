"""docs/phobert.md: a published Transformer, read block by block."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import transformers as hf
from torch import Tensor, nn

from executed import example
from snippets.attention import entropy, scaled_dot_product_attention, viewed

Values = dict[str, object]  # what an example returns: the values that the prose quotes

SENTENCE = "Giảng viên giải thích rất dễ hiểu nhưng phòng học quá nóng"

# The weights: which repository, which commit of it, and the hash of the one file that holds them.
SOURCE = "vinai/phobert-base"
REVISION = "01daacda68afe13d83023d16ec647239e344a1e6"
SHA256 = "a0b0f0912c710147fbaac015b0a4011216a0061a56c03b840b639e40d3bb49cc"
FILES = ("config.json", "vocab.txt", "bpe.codes", "pytorch_model.bin")

# Heads to look at, (layer, head), counted from 1.
HEADS = [(1, 1), (1, 6), (6, 4), (9, 8), (12, 1), (12, 10)]

# What the small vocabulary is learned from: a lecturer's feedback forms, segmented into words.
FEEDBACK = """
Giảng_viên giải_thích rất rõ và ví_dụ rất dễ hiểu
Giảng_viên rất nhiệt_tình nhưng phòng học quá nóng
Bài giảng dễ hiểu nhưng phòng học quá nhỏ
Phòng học nóng quá và máy chiếu quá mờ
Giảng_viên giải_thích bài tập dễ hiểu
Nhưng bài tập quá khó và phòng học quá nóng
"""


def phobert_config(**changes: Any) -> hf.RobertaConfig:
    """Give the configuration of PhoBERT-base, or of a relative with some changes.

    The values of the published config.json; PhoBERT is a RoBERTa by architecture.
    """
    settings = {
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "hidden_size": 768,  # d_model
        "intermediate_size": 3072,  # d_ff
        "max_position_embeddings": 258,
        "vocab_size": 64001,
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "layer_norm_eps": 1e-5,
    }
    return hf.RobertaConfig(**settings | changes)


@example
def configuration() -> Values:
    """PhoBERT-base beside the base model of the original paper."""
    config = phobert_config()
    original = {"d_model": 512, "heads": 8, "d_ff": 2048}
    phobert = {
        "d_model": config.hidden_size,
        "heads": config.num_attention_heads,
        "d_ff": config.intermediate_size,
    }
    for model in (original, phobert):
        model["d_k"] = model["d_model"] // model["heads"]

    print("         original  PhoBERT-base")
    print(f"layers      6 + 6 {config.num_hidden_layers:13}")
    for name in phobert:
        print(f"{name:8} {original[name]:8} {phobert[name]:13}")
    return {
        **phobert,
        "published": [
            *(config.num_hidden_layers, phobert["heads"], phobert["d_model"]),
            *(phobert["d_k"], phobert["d_ff"]),
            *(config.max_position_embeddings, config.vocab_size),
        ],
        "d_k_original": original["d_k"],
        "times_wider": phobert["d_ff"] // phobert["d_model"],
    }


def count(module: nn.Module, pattern: str = "") -> int:
    """Count the parameters whose name matches a regular expression; all by default."""
    parameters = module.named_parameters()
    return sum(p.numel() for name, p in parameters if re.search(pattern, name))


@example
def parameters() -> Values:
    """Every parameter of PhoBERT-base, by part, without a single weight."""
    with torch.device("meta"):  # shapes only: no numbers in them, no download
        model = hf.RobertaModel(phobert_config())

    parts = {
        "word table": count(model.embeddings, "word"),
        "other embeddings": count(model.embeddings, "position|token_type|LayerNorm"),
        "attention": count(model.encoder, r"attention\.(self|output\.dense)"),
        "feed-forward": count(model.encoder, r"\d\.(intermediate|output)\.dense"),
        "LayerNorm": count(model.encoder, "LayerNorm"),
        "pooler": count(model, "pooler"),
    }
    total = count(model)
    for name, number in parts.items():
        print(f"{name:16} {number:11,} {number / total:6.1%}")
    print(f"{'all':16} {total:11,}")
    return {
        "parts": parts,
        "total": total,
        "without_pooler": total - parts["pooler"],
        "embeddings": count(model.embeddings),
        "embedding_share": count(model.embeddings) / total,
        "word_share": parts["word table"] / total,
        "blocks": count(model.encoder),
        "block_share": count(model.encoder) / total,
        "bytes": 4 * total,
        "vocabulary": model.config.vocab_size,
    }


@example
def where_they_live(parameters: dict[str, Any]) -> None:
    """Draw the parameters by part."""
    parts = parameters["parts"]
    millions = [number / 1e6 for number in parts.values()]
    _, axes = plt.subplots(figsize=(5.2, 3))
    colours = ["C0", "C0", "C1", "C1", "C1", "C2"]  # embeddings, blocks, pooler
    bars = axes.barh(list(parts), millions, color=colours)
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.invert_yaxis()
    axes.set(xlabel="parameters (millions)", xlim=(0, 66))


@example
def one_block() -> Values:
    """What one block holds, counted and derived."""
    with torch.device("meta"):
        model = hf.RobertaModel(phobert_config(num_hidden_layers=1))
    attention = count(model.encoder, r"attention\.(self|output\.dense)")
    feed_forward = count(model.encoder, r"\d\.(intermediate|output)\.dense")

    d, d_ff = 768, 3072
    formula = {"attention": 4 * d * d + 4 * d, "feed-forward": 2 * d * d_ff + d_ff + d}
    print(f"{'':13}{'counted':>10}{'by formula':>12}")
    for name, counted in (("attention", attention), ("feed-forward", feed_forward)):
        print(f"{name:13}{counted:10,}{formula[name]:12,}")
    return {
        "attention": attention,
        "feed_forward": feed_forward,
        "formula": formula,
        "millions": [attention / 1e6, feed_forward / 1e6],
        "ratio": feed_forward / attention,
    }


def block_by_hand(block: Any, x: Tensor, heads: int = 12) -> tuple[Tensor, Tensor]:
    """Do what one RobertaLayer does, with this book's own attention.

    x is (batch, T, d_model). Returns the block's output in that shape, and weights of
    shape (batch, heads, T, T). Each LayerNorm comes after its sum, as in the 2017 paper.
    """

    def split(y: Tensor) -> Tensor:
        cut: Tensor = y.unflatten(-1, (heads, -1))  # (batch, T, heads, d_k)
        return cut.transpose(1, 2)  # (batch, heads, T, d_k)

    project, after = block.attention.self, block.attention.output
    query, key, value = (p(x) for p in (project.query, project.key, project.value))
    heads_in = split(query), split(key), split(value)
    mixed, weights = scaled_dot_product_attention(*heads_in)  # (batch, heads, T, d_k)
    mixed = mixed.transpose(1, 2).flatten(2)  # (batch, T, d_model)
    x = after.LayerNorm(x + after.dense(mixed))

    wide = F.gelu(block.intermediate.dense(x))  # (batch, T, d_ff)
    x = block.output.LayerNorm(x + block.output.dense(wide))
    return x, weights


def phobert_by_hand(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Do what the whole RobertaModel does, for ids (batch, T) without padding.

    Returns (batch, T, d_model), and the weights, (layers, batch, heads, T, T).
    """
    table = model.embeddings
    positions = torch.arange(ids.size(1)) + table.padding_idx + 1
    x = table.word_embeddings(ids) + table.position_embeddings(positions)
    x = table.LayerNorm(x + table.token_type_embeddings.weight[0])
    seen = []
    for block in model.encoder.layer:
        x, weights = block_by_hand(block, x)
        seen.append(weights)
    return x, torch.stack(seen)


@example
def parity() -> Values:
    """Our blocks against the library's, same weights, in two precisions."""
    torch.manual_seed(0)
    config = phobert_config(vocab_size=1000)  # few words, blocks of full size
    model = hf.RobertaModel(config, add_pooling_layer=False).eval()
    ids = torch.randint(4, 1000, (2, 12))  # (batch, T)

    largest = {}
    for dtype in (torch.float32, torch.float64):
        model.to(dtype)
        with torch.no_grad():
            ours, _ = phobert_by_hand(model, ids)
            library = model(ids).last_hidden_state
        difference = (ours - library).abs().max()
        largest[str(dtype).removeprefix("torch.")] = difference
        print(f"{dtype}: largest difference {difference:.0e}")
    return {**largest, "size": library.abs().mean(), "shape": list(library.shape)}


@example
def token_types() -> Values:
    """The table of token types, in BERT and in PhoBERT, and what its one row does."""
    counts = {}
    models = {
        "BERT": (hf.BertModel, hf.BertConfig()),
        "PhoBERT": (hf.RobertaModel, phobert_config()),
    }
    for name, (build, config) in models.items():
        with torch.device("meta"):
            counts[name] = count(build(config).embeddings, "token_type")
        print(f"{name:8} rows: {config.type_vocab_size}  parameters: {counts[name]:,}")

    torch.manual_seed(0)
    config = phobert_config(vocab_size=1000, num_hidden_layers=2)
    model = hf.RobertaModel(config).eval()
    ids = torch.randint(4, 1000, (2, 12))  # (batch, T)
    with torch.no_grad():
        before = model(ids).last_hidden_state
        row = model.embeddings.token_type_embeddings.weight[0]
        model.embeddings.word_embeddings.weight += row  # to every word
        row.zero_()
        change = (model(ids).last_hidden_state - before).abs().max()
    print(f"moved to the word table: change {change:.0e}")
    return {
        "bert": counts["BERT"],
        "phobert": counts["PhoBERT"],
        "change": change,
        "size": before.abs().mean(),
    }


@example
def position_rows() -> Values:
    """Which row of the position table each token gets."""
    config = phobert_config(hidden_size=24, intermediate_size=96, vocab_size=100)
    model = hf.RobertaModel(config)
    ids = torch.tensor([[0, 11, 12, 13, 2, 1, 1]])  # <s> three words </s> <pad> <pad>
    rows = model.embeddings.create_position_ids_from_input_ids(ids, padding_idx=1)
    print("id: ", *(f"{i:3}" for i in ids[0]))
    print("row:", *(f"{i:3}" for i in rows[0]))

    first = rows[0, 0].item()
    usable = config.max_position_embeddings - first
    print(f"{usable} of {config.max_position_embeddings} rows are for tokens")
    return {
        "first": first,
        "rows": config.max_position_embeddings,
        "usable": usable,
        "of_ids": rows[0],
    }


@example(raises=RuntimeError)
def one_too_many() -> Values:
    """256 tokens fit, 257 do not."""
    config = phobert_config(hidden_size=24, intermediate_size=96, vocab_size=100)
    model = hf.RobertaModel(config).eval()
    for length in (256, 257):
        ids = torch.full((1, length), 7)
        print(length, "tokens ->", tuple(model(ids).last_hidden_state.shape))
    return {}


@example
def segmentation() -> Values:
    """The sentence, cut into words by pyvi."""
    from pyvi.ViTokenizer import tokenize

    words = tokenize(SENTENCE)
    print(fill(words, 42))
    syllables = SENTENCE.split()
    print(len(syllables), "syllables,", len(words.split()), "words")
    return {"segmented": words, "syllables": len(syllables), "words": len(words.split())}


@example
def hard_to_segment() -> Values:
    """Sentences that are hard to segment."""
    from pyvi.ViTokenizer import tokenize

    cut = {
        "pupils study biology": tokenize("học sinh học sinh học"),
        "he ages fast, or: the old man walks fast": tokenize("Ông già đi nhanh quá"),
        "the room has air conditioning": tokenize("Phòng học có máy điều hòa"),
        "the same, other spelling": tokenize("Phòng học có máy điều hoà"),
    }
    for meaning, words in cut.items():
        print(f"{meaning}:\n  {words}")
    return {"cut": list(cut.values())}


@example
def two_forms() -> Values:
    """One sentence in two Unicode forms, before and after the segmenter."""
    from pyvi.ViTokenizer import tokenize

    nfc, nfd = (unicodedata.normalize(form, SENTENCE) for form in ("NFC", "NFD"))
    print("code points: NFC", len(nfc), " NFD", len(nfd))
    print("equal:", nfc == nfd)
    print("equal once segmented:", tokenize(nfc) == tokenize(nfd))
    letter = "ễ"
    parts = unicodedata.normalize("NFD", letter)
    print(letter, "in NFD:", *(f"U+{ord(part):04X}" for part in parts))
    return {
        "nfc": len(nfc),
        "nfd": len(nfd),
        "equal": nfc == nfd,
        "equal_segmented": tokenize(nfc) == tokenize(nfd),
        "marks": len(parts) - 1,
    }


def new_style(text: str) -> str:
    """Move the tone mark to the last vowel of oa, oe and uy: hòa to hoà, thủy to thuỷ.

    Takes NFC text; leaves words that are written in capitals alone.
    """
    for tone in "\u0300\u0301\u0309\u0303\u0323":  # huyền, sắc, hỏi, ngã, nặng
        for first, last in ("oa", "oe", "uy"):
            old = unicodedata.normalize("NFC", first + tone) + last
            new = first + unicodedata.normalize("NFC", last + tone)
            text = re.sub(rf"{old}(?!\w)", new, text)
    return text


@example
def two_spellings() -> Values:
    """Two ways to place the tone mark; what does not merge them, and what does."""
    old, new = "hòa", "hoà"
    merged = {}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        a, b = (unicodedata.normalize(form, word) for word in (old, new))
        merged[form] = a == b
    merged["casefold"] = old.casefold() == new.casefold()
    merged["new_style"] = new_style(old) == new
    for name, same in merged.items():
        print(f"{name:10}", "the same" if same else "still two")
    return {"merged": merged}


def learn_merges(text: str, most: int) -> list[tuple[str, str]]:
    """Learn byte-pair encoding: join the most frequent neighbours, again and again.

    Returns at most that many merges, in order. The last letter of a word carries </w>.
    """
    words = Counter(text.split())
    spelled = {word: " ".join(word) + "</w>" for word in words}
    learned: list[tuple[str, str]] = []
    while len(learned) < most:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(spelled[word].split()):
                pairs[pair] += times
        if not pairs:
            break  # every word is one piece
        learned.append(max(pairs, key=lambda pair: (pairs[pair], pair)))
        spelled = {word: join(pieces, learned[-1]) for word, pieces in spelled.items()}
    return learned


def join(pieces: str, pair: tuple[str, str]) -> str:
    """Join a pair wherever it stands side by side, as in "n ó ng" to "n óng"."""
    left, right = map(re.escape, pair)
    return re.sub(rf"(?<!\S){left} {right}(?!\S)", "".join(pair), pieces)


def write_vocabulary(folder: Path, text: str, most: int) -> hf.PhobertTokenizer:
    """Write vocab.txt and bpe.codes as PhoBERT has them, and open them with its tokenizer.

    In the vocabulary a piece that ends a word stands bare, any other ends in @@.
    """
    learned = learn_merges(text, most)
    letters = set("".join(text.split()))
    pieces = [*letters, *(letter + "</w>" for letter in letters), *map("".join, learned)]
    bare = {p.removesuffix("</w>") if p.endswith("</w>") else p + "@@" for p in pieces}
    (folder / "vocab.txt").write_text("".join(f"{p} 1\n" for p in sorted(bare)), "utf-8")
    codes = "".join(f"{left} {right} 1\n" for left, right in learned)
    (folder / "bpe.codes").write_text(codes, "utf-8")
    return hf.PhobertTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))


@example
def merges() -> Values:
    """The first merges that a few sentences teach, and a word that they build."""
    learned = learn_merges(FEEDBACK, most=100)
    print("first merges:", *(" + ".join(pair) for pair in learned[:3]), sep="\n  ")

    steps = ["n ó n g</w>"]
    for pair in learned:
        joined = join(steps[-1], pair)
        if joined != steps[-1]:
            steps.append(joined)
    print("nóng:", *steps, sep="\n  ")
    return {"learned": len(learned), "steps": steps}


@example
def traps() -> Values:
    """One sentence, typed in four ways, through PhoBERT's tokenizer with our vocabulary."""
    from pyvi.ViTokenizer import tokenize

    with TemporaryDirectory() as folder:
        tokenizer = write_vocabulary(Path(folder), FEEDBACK, most=100)
    segmented = tokenize(SENTENCE)
    typed = {
        "segmented": segmented,
        "not segmented": SENTENCE,
        "segmented, then NFD": unicodedata.normalize("NFD", segmented),
        "small first letter": segmented.lower(),
    }
    counts = {}
    print(f"{'':20}tokens  unknown")
    for name, text in typed.items():
        ids = tokenizer.encode(text, add_special_tokens=False)
        counts[name] = {"tokens": len(ids), "unknown": ids.count(tokenizer.unk_token_id)}
        print(f"{name:20}{len(ids):6}{counts[name]['unknown']:9}")
    print("not segmented:", *tokenizer.tokenize(SENTENCE)[:5], "...")
    return {
        "segmented": counts["segmented"],
        "not_segmented": counts["not segmented"],
        "nfd": counts["segmented, then NFD"],
        "small": counts["small first letter"],
    }


@example
def looking_at_a_few() -> Values:
    """The entropy of a row that looks at some tokens equally and at no other."""
    entropies = {}
    for tokens in (1, 2, 3, 6, 12):
        row = torch.zeros(12)
        row[:tokens] = 1 / tokens
        entropies[tokens] = entropy(row).item()
        print(f"{tokens:2} of 12 tokens: {entropies[tokens]:.2f}")
    return {"entropies": entropies, "three": entropies[3]}


@example
def two_kernels() -> Values:
    """Ask for the attention weights under both implementations."""
    config = phobert_config(hidden_size=24, intermediate_size=96, vocab_size=100)
    hf.logging.set_verbosity_error()  # one long line of warning under sdpa
    given = {}
    for kernel in ("sdpa", "eager"):  # sdpa is the default
        config._attn_implementation = kernel
        model = hf.RobertaModel(config).eval()
        output = model(torch.tensor([[0, 11, 12, 2]]), output_attentions=True)
        given[kernel] = len(output.attentions)
        print(f"{kernel:5} gives {given[kernel]:2} tensors of weights")
    return {**given}


@example
def untrained() -> Values:
    """The control: PhoBERT-base with fresh random weights, five times."""
    entropies, to_first = [], []
    for seed in range(5):
        torch.manual_seed(seed)
        model = hf.RobertaModel(phobert_config(attn_implementation="eager")).eval()
        ids = torch.randint(4, 64000, (1, 12))
        ids[0, 0], ids[0, -1] = 0, 2  # <s> and </s>
        with torch.no_grad():
            seen = model(ids, output_attentions=True).attentions
        attention = torch.cat(seen)  # (layers, heads, T, T)
        entropies.append(entropy(attention).mean(dim=(1, 2)))  # (layers,)
        to_first.append(attention[..., 0].mean(dim=(1, 2)))  # (layers,): to <s>

    by_layer, share = torch.stack(entropies), torch.stack(to_first)  # (seeds, layers)
    print(f"entropy, mean  {by_layer.mean():.2f}")
    print(f"by layer       {by_layer.min():.2f} to {by_layer.max():.2f}")
    print(f"ln 12          {math.log(12):.2f}")
    print(f"share to <s>   {share.min():.2f} to {share.max():.2f}")
    print(f"1 / 12         {1 / 12:.2f}")
    return {
        "by_layer": by_layer,
        "to_first": share,
        "mean": by_layer.mean(),
        "lowest": by_layer.min(),
        "highest": by_layer.max(),
        "maximum": math.log(12),
        "share_low": share.min(),
        "share_high": share.max(),
        "even": 1 / 12,
        "seeds": len(by_layer),
    }


def fetch(name: str, source: str = SOURCE, revision: str = REVISION) -> Path:
    """Find one file of a model: in a local folder, in the cache, or on the hub.

    The cache is asked without the network. Then the hub gets one question and five
    seconds to answer it. Raises ConnectionError if it does not.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if (Path(source) / name).exists():
        return Path(source) / name
    try:
        found = hf_hub_download(source, name, revision=revision, local_files_only=True)
        return Path(found)
    except LocalEntryNotFoundError:
        try:  # the download itself would try for half a minute before it gives up
            HfApi().model_info(source, revision=revision, timeout=5)
        except Exception as error:
            message = f"{source} is not in the cache, and: {error}"
            raise ConnectionError(message) from error
        return Path(hf_hub_download(source, name, revision=revision))


def load_phobert(
    source: str = SOURCE, revision: str = REVISION, sha256: str = SHA256
) -> tuple[hf.PhobertTokenizer, Any]:
    """Load tokenizer and model, of one revision only, after a look at the hash.

    Raises ConnectionError if the files cannot be had, ValueError if they are not the
    ones we know, or if a weight is missing and would be left at a random value.
    """
    *_, weights = [fetch(name, source, revision) for name in FILES]
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ValueError(f"{weights.name}: hash {found[:12]}…, not {sha256[:12]}…")

    hf.logging.set_verbosity_error()  # the file also holds a head for guessing words;
    hf.logging.disable_progress_bar()  # that we leave it out needs no report
    tokenizer = hf.PhobertTokenizer.from_pretrained(weights.parent)
    loaded: Any = hf.RobertaModel.from_pretrained(
        weights.parent,
        attn_implementation="eager",  # the others do not give the attention weights
        weights_only=True,  # a .bin file is a pickle: tensors, and no code from it
        add_pooling_layer=False,
        output_loading_info=True,
    )
    model, report = loaded
    if report["missing_keys"]:
        raise ValueError(f"missing: {sorted(report['missing_keys'])}")
    return tokenizer, model.eval()


@example(needs="hub:vinai/phobert-base@01daacda68afe13d83023d16ec647239e344a1e6")
def reading() -> Values:
    """Tokens and all attention weights for the sentence."""
    from pyvi.ViTokenizer import tokenize

    tokenizer, model = load_phobert()
    ids = tokenizer(tokenize(SENTENCE), return_tensors="pt")["input_ids"]  # (1, T)
    tokens = tokenizer.convert_ids_to_tokens(ids[0])
    with torch.no_grad():
        output = model(ids, output_attentions=True)
        by_hand, _ = phobert_by_hand(model, ids)
    attention = torch.cat(output.attentions)  # (layers, heads, T, T)
    difference = (by_hand - output.last_hidden_state).abs().max()
    print(fill(" ".join(tokens), 42))
    print("attention:", tuple(attention.shape))
    print(f"our own blocks differ by at most {difference:.0e}")
    return {
        "tokens": tokens,
        "shape": list(attention.shape),
        "attention": attention,
        "by_hand": difference,
        "size": output.last_hidden_state.abs().mean(),
        "length": len(tokens),
        "cut": sum(token.endswith("@@") for token in tokens),
    }


@example(needs="hub:vinai/phobert-base@01daacda68afe13d83023d16ec647239e344a1e6")
def heads_from_nong(reading: dict[str, Any]) -> Values:
    """Where nóng looks, in six heads."""
    tokens, attention = reading["tokens"], reading["attention"]
    query = tokens.index("nóng")
    rows = torch.stack([attention[i - 1, j - 1, query] for i, j in HEADS])  # (6, T)

    found = []
    print("layer.head: most of the weight, %")
    for (layer, head), row in zip(HEADS, rows, strict=True):
        weights, keys = row.topk(3)
        top = [[tokens[k], w.item()] for k, w in zip(keys, weights, strict=True)]
        print(f"{layer:3}.{head:<3}", *(f"{token} {w:.0%}" for token, w in top))
        found.append({"layer": layer, "head": head, "top": top})

    names = [f"{layer}.{head}" for layer, head in HEADS]
    fig, axes = plt.subplots(figsize=(5.2, 3.6))
    mesh = axes.pcolormesh(rows, vmin=0, vmax=1)
    axes.set_xticks([k + 0.5 for k in range(len(tokens))], tokens, rotation=90)
    axes.set_yticks([k + 0.5 for k in range(len(names))], names)
    axes.invert_yaxis()
    axes.set(ylabel="layer.head")
    fig.colorbar(mesh, label="weight")
    return {
        "heads": found,
        "largest": rows.max(),
        "most_special": (rows[:, 0] + rows[:, -1]).max(),  # <s> and </s>
    }


@example(needs="hub:vinai/phobert-base@01daacda68afe13d83023d16ec647239e344a1e6")
def every_head(reading: dict[str, Any]) -> Values:
    """Where each token looks in every head, one small map each."""
    tokens, attention = reading["tokens"], reading["attention"]
    framed = F.pad(attention, (0, 1, 0, 1), value=math.nan)  # a gap after each map
    layers, heads, height, width = framed.shape
    mosaic = framed.transpose(1, 2).reshape(layers * height, heads * width)
    _, axes = plt.subplots(figsize=(5.2, 5.2))
    axes.imshow(mosaic.numpy(), cmap="viridis", vmin=0, vmax=1, interpolation="none")
    for ticks, size, count in (axes.set_xticks, width, heads), (axes.set_yticks, height, layers):
        places = [(one + 0.5) * size - 1 for one in range(count)]  # the gap is no part
        ticks(places, [str(one + 1) for one in range(count)])
    axes.set(xlabel="head", ylabel="layer")
    return {**viewed(attention, tokens), "count": layers * heads}


@example(needs="hub:vinai/phobert-base@01daacda68afe13d83023d16ec647239e344a1e6")
def entropy_by_layer(reading: dict[str, Any], untrained: dict[str, Any]) -> Values:
    """How widely each layer looks, trained and untrained."""
    trained = entropy(reading["attention"]).mean(dim=(1, 2))  # (layers,)
    control = untrained["by_layer"]  # (seeds, layers)
    layers = range(1, len(trained) + 1)
    _, axes = plt.subplots(figsize=(5.2, 3.2))
    axes.plot(layers, trained, "o-", label="PhoBERT")
    axes.plot(layers, control.mean(0), "s-", label="untrained")
    axes.axhline(math.log(reading["length"]), color="C2", linestyle="--", label="ln T")
    axes.set(xlabel="layer", ylabel="entropy (nats)", ylim=(0, 2.7), xticks=layers)
    axes.legend(loc="lower right")
    print("PhoBERT  ", *(f"{value:.2f}" for value in trained[:6]))
    print("         ", *(f"{value:.2f}" for value in trained[6:]))
    print(f"untrained {control.min():.2f} to {control.max():.2f}")
    return {
        "trained": trained,
        "lowest": trained.min(),
        "highest": trained.max(),
        "lowest_layer": int(trained.argmin()) + 1,
    }


@example(needs="hub:vinai/phobert-base@01daacda68afe13d83023d16ec647239e344a1e6")
def share_to_first(reading: dict[str, Any]) -> Values:
    """How much weight each layer gives to the two special tokens."""
    attention = reading["attention"]
    first = attention[..., 0].mean(dim=(1, 2))  # (layers,): to <s>
    last = attention[..., -1].mean(dim=(1, 2))  # to </s>
    layers = range(1, len(first) + 1)
    _, axes = plt.subplots(figsize=(5.2, 3.2))
    axes.plot(layers, first, "o-", label="to <s>")
    axes.plot(layers, last, "s-", label="to </s>")
    axes.axhline(1 / reading["length"], color="C2", linestyle="--", label="even share")
    axes.set(xlabel="layer", ylabel="share of the weight", ylim=(0, 1), xticks=layers)
    axes.legend()
    print("to <s> ", *(f"{value:.2f}" for value in first[:6]))
    print("       ", *(f"{value:.2f}" for value in first[6:]))
    return {
        "to_first": first,
        "highest": first.max(),
        "highest_layer": int(first.argmax()) + 1,
        "both": (first + last).max(),
    }


@example
def large() -> Values:
    """PhoBERT-large, from four numbers."""
    wide = {"num_hidden_layers": 24, "num_attention_heads": 16}
    wide |= {"hidden_size": 1024, "intermediate_size": 4096}
    with torch.device("meta"):
        model = hf.RobertaModel(phobert_config(**wide))
    share = count(model.embeddings) / count(model)
    print(f"parameters {count(model):,}")
    print(f"embeddings {share:.1%}")
    print(f"d_k        {1024 // 16}")
    return {"total": count(model), "share": share, "d_k": 1024 // 16}


@example
def original_blocks() -> Values:
    """The blocks of the original base model, which are the defaults of nn.Transformer."""
    with torch.device("meta"):
        original = nn.Transformer(batch_first=True)  # the rest: defaults
        phobert = hf.RobertaModel(phobert_config()).encoder
    encoder = count(original.encoder.layers[0])
    decoder = count(original.decoder.layers[0])
    print(f"original encoder block {encoder:10,}")
    print(f"original decoder block {decoder:10,}")
    print(f"PhoBERT block          {count(phobert.layer[0]):10,}")
    print(f"all blocks, original   {6 * encoder + 6 * decoder:10,}")
    print(f"all blocks, PhoBERT    {count(phobert):10,}")
    return {
        "phobert": count(phobert),
        "ratio": count(phobert) / (6 * encoder + 6 * decoder),
        "block_ratio": count(phobert.layer[0]) / encoder,
        "defaults": [original.d_model, original.nhead, len(original.encoder.layers)],
    }
