"""A PhoBERT small enough to be made on the spot: twelve layers, twelve heads, its own vocabulary and random weights."""

import hashlib
from pathlib import Path

import torch
import transformers as hf

from snippets.phobert import FEEDBACK, phobert_config, write_vocabulary


def build(folder: Path, seed: int = 0) -> str:
    """Write the four files that the published model has into a folder; return the hash of the weights.

    They come from a model with a head for guessing words, as the published ones do.
    """
    tokenizer = write_vocabulary(folder, FEEDBACK, most=100)
    config = phobert_config(
        hidden_size=48,
        intermediate_size=96,
        vocab_size=len(tokenizer),
        tokenizer_class="PhobertTokenizer",
        architectures=["RobertaForMaskedLM"],
    )
    torch.manual_seed(seed)
    model = hf.RobertaForMaskedLM(config)
    for name, weight in model.named_parameters():
        if "query.weight" in name or "key.weight" in name:
            torch.nn.init.normal_(weight, std=0.2)  # large: rows of attention that are far from even, in every layer
    config.save_pretrained(folder)
    weights = folder / "pytorch_model.bin"
    torch.save(model.state_dict(), weights)
    return hashlib.sha256(weights.read_bytes()).hexdigest()
