"""docs/in-practice.md: advice that was run, mistakes that raise no error, and any model's configuration."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, BertConfig, GPT2Config, LlamaConfig, RobertaConfig, T5Config, XLMRobertaConfig

from snippets.in_practice import (
    BAD,
    GOOD,
    SIZES,
    THINGS,
    ReviewReader,
    clause,
    describe,
    parity,
    plan,
    repeating,
    reviews,
)
from snippets.multi_head import MultiHeadAttention
from snippets.sorting import EncoderBlock


def test_boosting_does_not_win_and_the_transformer_is_no_better_and_dear(result: Any) -> None:
    table = result("in_practice.small_table").values
    assert table["ahead"] == pytest.approx(table["transformer"] - table["boosting"], abs=1e-6)
    assert abs(table["ahead"]) < 0.02
    assert table["ahead_range"][0] <= 0 <= table["ahead_range"][1]
    assert abs(table["linear"] - table["transformer"]) < 0.02
    assert table["times_slower"] > 2
    assert table["times_slower_linear"] > 50


def test_the_table_is_what_scikit_learn_brings(result: Any) -> None:
    from sklearn.datasets import load_breast_cancer

    x, _ = load_breast_cancer(return_X_y=True)
    table = result("in_practice.small_table").values
    assert x.shape == (table["rows"], table["columns"])
    assert table["test_rows"] == math.ceil(0.3 * len(x))


def test_a_report_needs_tens_of_gigabytes_of_scores_a_layer(result: Any) -> None:
    longest = result("in_practice.long_input").values
    assert longest["bytes"] == 4 * 12 * longest["longest"] ** 2


def test_a_plain_review_agrees_with_itself_and_a_turning_one_holds_one_clause_each_way() -> None:
    for text, good in zip(*reviews(200, False, 0), strict=True):
        assert any(word in text for word in (GOOD if good else BAD))
        assert "không" not in text
    texts, labels = reviews(2000, True, 0)
    assert all("nhưng" in text or "mặc dù" in text for text in texts)
    assert labels.float().mean() == pytest.approx(0.5, abs=0.05)


def test_six_things_have_eight_words_of_praise_and_eight_of_blame() -> None:
    assert (len(set(THINGS)), len(set(GOOD)), len(set(BAD))) == (6, 8, 8)
    assert not set(GOOD) & set(BAD)


@pytest.mark.parametrize("good", [True, False])
def test_negation_turns_a_word_round(good: bool) -> None:
    draw = random.Random(0)
    for _ in range(100):
        text = clause(draw, good, negation=True)
        word = GOOD if good != ("không" in text) else BAD
        assert text.endswith(word)


def test_the_main_clause_decides() -> None:
    for text, good in zip(*reviews(300, True, 1), strict=True):
        if " nhưng " in text:
            main = text.split(" nhưng ")[1]
        elif " mặc dù " in text:
            main = text.split(" mặc dù ")[0]
        else:
            continue
        positive = main.endswith(GOOD) != ("không" in main)
        assert positive == bool(good)


def test_on_plain_reviews_counting_words_is_enough(result: Any) -> None:
    plain = result("in_practice.plain_reviews").values
    assert len(plain["tfidf"]) == len(plain["transformer"]) == 5
    assert min(plain["tfidf"]) > 0.98
    assert min(plain["tfidf"]) >= min(plain["transformer"])


def test_on_turning_reviews_counting_words_is_guessing_however_many(result: Any) -> None:
    for size in ("small", "large"):
        words = result(f"in_practice.turning_{size}").values["words"]
        assert 0.44 < words[0] < words[1] < 0.56


def test_the_transformer_reads_order_if_it_gets_enough_examples(result: Any) -> None:
    few = result("in_practice.turning_small").values
    many = result("in_practice.turning_large").values
    assert few["transformer"][1] < 0.75
    assert many["transformer"][0] > 0.7
    assert many["transformer"][0] > many["three_words"][1]
    assert 0.56 < many["three_words"][1] < 0.8


def test_without_the_root_a_wide_head_is_stuck_and_a_narrow_one_learns_faster(result: Any) -> None:
    root = result("in_practice.no_root").values
    assert root["wide_right"][1] < 0.02
    assert root["wide_wrong"][0] > 0.05
    assert root["narrow_wrong"][1] < root["narrow_right"][1]


def test_parity_finds_the_missing_root_at_any_size(result: Any) -> None:
    caught = result("in_practice.caught_no_root").values
    assert caught["right"] < 1e-5
    assert min(caught["wrong"]) > 1e-2


def test_parity_passes_the_right_module() -> None:
    torch.manual_seed(0)
    assert parity(MultiHeadAttention(24, heads=3)) < 1e-6


def test_the_leaking_model_looks_better_in_training_and_guesses_when_it_writes(result: Any) -> None:
    mask = result("in_practice.leaking_mask").values
    assert mask["inverted_loss"][1] < mask["honest"] < mask["causal_loss"][0]
    assert mask["causal_right"][0] > 0.9
    assert mask["inverted_right"][1] < 0.2


def test_two_of_nine_targets_cannot_be_known(result: Any) -> None:
    rows = repeating(50, 10)
    assert (rows[:, 3:] == rows[:, :-3]).all()
    assert result("in_practice.leaking_mask").values["honest"] == pytest.approx(2 / 9 * math.log(10))


def test_the_guard_stops_the_inverted_mask_before_training(result: Any) -> None:
    assert result("in_practice.caught_mask").text.startswith("AssertionError: token")


def test_the_wrong_split_learns_the_easy_task_and_not_the_lookup(result: Any) -> None:
    split = result("in_practice.wrong_split").values
    assert max(split["easy"]) < 0.01
    assert split["lookup_right"][1] < 0.02
    assert split["lookup_wrong"][0] > 0.4


def test_parity_and_a_shuffle_both_find_the_wrong_split(result: Any) -> None:
    caught = result("in_practice.caught_split").values
    assert max(caught["right"]) < 1e-5
    assert min(caught["wrong"]) > 1e-2


def test_without_positions_the_transformer_guesses_on_turning_reviews(result: Any) -> None:
    reader = result("in_practice.blind_reader").values
    assert 0.44 < reader["blind"][0] < reader["blind"][1] < 0.56
    assert reader["sighted"][0] > reader["blind"][1]


def test_a_reader_without_positions_does_not_notice_a_review_read_backwards(result: Any) -> None:
    caught = result("in_practice.caught_blind").values
    assert caught["blind"] < 1e-5 < 1e-3 < caught["sighted"]


def test_padding_does_not_move_a_readers_answer() -> None:
    torch.manual_seed(0)
    model = ReviewReader(20, positions=True).eval()
    tokens = torch.randint(2, 20, (3, 5))
    padded = torch.cat([tokens, torch.zeros(3, 4, dtype=torch.long)], dim=1)
    assert torch.allclose(model(tokens), model(padded), atol=1e-5)


PHOBERT = RobertaConfig(vocab_size=64001, max_position_embeddings=258, type_vocab_size=1)
SMALL_LLAMA = LlamaConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
)


@pytest.mark.parametrize(
    ("config", "attention", "feed_forward"),
    [
        (PHOBERT, 12 * 4 * (768**2 + 768), 12 * (8 * 768**2 + 5 * 768)),
        (BertConfig(), 12 * 4 * (768**2 + 768), 12 * (8 * 768**2 + 5 * 768)),
        (GPT2Config(), 12 * 4 * (768**2 + 768), 12 * (8 * 768**2 + 5 * 768)),
        (T5Config(), 18 * 4 * 512**2 + 2 * 32 * 8, 12 * 2 * 512 * 2048),
        (LlamaConfig(), 32 * 4 * 4096**2, 32 * 3 * 4096 * 11008),
        (SMALL_LLAMA, 2 * (2 * 32 * 32 + 2 * 32 * 16), 2 * 3 * 32 * 11008),
    ],
    ids=["phobert", "bert", "gpt2", "t5", "llama", "grouped"],
)
def test_the_parts_are_those_of_arithmetic_and_sum_to_the_model(config: Any, attention: int, feed_forward: int) -> None:
    found = describe(config, T=100)
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    assert sum(found.parameters.values()) == model.num_parameters()
    assert found.parameters["attention"] == attention
    assert found.parameters["feed-forward"] == feed_forward
    assert found.score_bytes == 4 * config.num_attention_heads * 100**2


def test_phobert_base_has_the_published_parameters(result: Any) -> None:
    found = result("in_practice.phobert").values
    assert found["total"] == 134_998_272
    assert found["d_k"] == 64
    assert found["parameters"]["embeddings"] == 49_353_216
    assert found["parameters"]["rest"] == 768**2 + 768


def test_a_post_ln_block_puts_out_spread_one_and_a_pre_ln_block_does_not(result: Any) -> None:
    spreads = result("in_practice.norm_before_or_after").values
    for family in ("bert", "roberta"):
        assert spreads[family] == pytest.approx([1, 1], abs=1e-3)
    for family in ("gpt2", "llama"):
        assert spreads[family][1] < 0.5
    torch.manual_seed(0)
    for norm_last in (True, False):  # the same with blocks of our own, whatever goes in
        spread = EncoderBlock(32, 4, norm_last)(5 + 3 * torch.randn(4, 10, 32))[0].std(-1, correction=0)
        assert torch.allclose(spread, torch.ones(4, 10), atol=1e-3) == norm_last


@pytest.mark.parametrize("family", [RobertaConfig, XLMRobertaConfig])
def test_roberta_and_its_relatives_lose_two_rows_of_the_position_table(family: Any) -> None:
    small = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    config = family(**small, intermediate_size=32, max_position_embeddings=12, pad_token_id=1)
    model = AutoModel.from_config(config).eval()
    usable = 12 - (config.pad_token_id + 1)
    assert model(torch.full((1, usable), 7)).last_hidden_state.shape == (1, 10, 16)
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, usable + 1), 7))


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_training_keeps_the_scores_of_every_layer_and_inference_of_none(layers: int) -> None:
    blocks = [EncoderBlock(16, 2) for _ in range(layers)]
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    def run(x: torch.Tensor) -> int:
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            for block in blocks:
                x, _ = block(x)
        return len({tensor.data_ptr() for tensor in kept if tensor.shape[-2:] == (9, 9)})

    assert run(torch.randn(1, 9, 16)) == layers
    with torch.no_grad():
        assert run(torch.randn(1, 9, 16)) == 0


def test_inference_holds_one_layer_at_a_time(result: Any) -> None:
    values = result("cost.layers_and_batch").values
    assert values["inference_layers"] < 1.5
    assert values["each_layer"] > 0.9


def test_a_path_does_as_well_as_an_object(tmp_path: Path) -> None:
    PHOBERT.save_pretrained(tmp_path)
    assert describe(str(tmp_path / "config.json"), T=256) == describe(PHOBERT, T=256)


def test_the_other_families_are_counted_exactly(result: Any) -> None:
    totals = result("in_practice.four_more").values["totals"]
    assert totals == {"bert": 109_482_240, "gpt2": 124_439_808, "t5": 60_506_624, "llama": 6_607_343_616}


def test_the_feed_forward_part_has_twice_the_parameters_of_attention(result: Any) -> None:
    assert result("in_practice.feed_forward_share").values["ratio"] == pytest.approx(2, abs=0.01)


# Plan one of your own


def test_not_one_parameter_is_missing(result: Any) -> None:
    values = result("in_practice.planned").values
    assert values["totals"] == values["counted"]
    assert values["totals"]["PhoBERT-base"] == result("phobert.parameters").values["total"]
    assert values["totals"]["GPT-2 small"] == result("in_practice.four_more").values["totals"]["gpt2"]


def test_the_parts_are_those_that_were_counted(result: Any) -> None:
    parts, found = result("phobert.parameters").values["parts"], plan(SIZES["PhoBERT-base"])
    assert found["words"] == parts["word table"]
    assert found["attention"] == parts["attention"]
    assert found["feed_forward"] == parts["feed-forward"]
    assert found["head"] == parts["pooler"]
    assert found["positions"] + found["norms"] == parts["other embeddings"] + parts["LayerNorm"]
    blocks = found["attention"] + found["feed_forward"] + plan({**SIZES["PhoBERT-base"], "other_norms": 0})["norms"]
    assert blocks == result("phobert.original_blocks").values["phobert"]
    original = plan({**SIZES["original base"], "vocabulary": 0})["total"]
    assert blocks / original == result("phobert.original_blocks").values["ratio"]


def test_the_sizes_of_the_three_models_are_those_of_their_configurations(result: Any) -> None:
    gpt2, sizes = GPT2Config(), SIZES["GPT-2 small"]
    assert (gpt2.n_layer, gpt2.n_embd, gpt2.n_head) == (sizes["layers"], sizes["d_model"], sizes["heads"])
    assert (gpt2.vocab_size, gpt2.n_positions) == (sizes["vocabulary"], sizes["position_rows"])
    sizes = SIZES["PhoBERT-base"]
    published = [sizes["layers"], sizes["heads"], sizes["d_model"], 64, sizes["d_ff"], sizes["position_rows"]]
    assert result("phobert.configuration").values["published"] == [*published, sizes["vocabulary"]]
    assert sizes["T"] == result("phobert.position_rows").values["usable"]
    sizes = SIZES["original base"]
    defaults = result("phobert.original_blocks").values["defaults"]
    assert defaults == [sizes["d_model"], sizes["heads"], sizes["layers"]]


@settings(deadline=None, max_examples=30)
@given(
    layers=st.integers(0, 3),
    decoder_layers=st.integers(0, 3),
    heads=st.integers(1, 4),
    d_k=st.integers(1, 9),
    d_ff=st.integers(1, 99),
    vocabulary=st.integers(1, 99),
    own_head=st.booleans(),
)
def test_the_formulas_count_what_pytorch_counts(
    layers: int, decoder_layers: int, heads: int, d_k: int, d_ff: int, vocabulary: int, own_head: bool
) -> None:
    d_model = heads * d_k
    with torch.device("meta"):
        options = (d_model, heads, d_ff)
        parts: list[torch.nn.Module] = [torch.nn.TransformerEncoderLayer(*options) for _ in range(layers)]
        parts += [torch.nn.TransformerDecoderLayer(*options) for _ in range(decoder_layers)]
        parts += [torch.nn.Embedding(vocabulary, d_model), torch.nn.LayerNorm(d_model)]
        parts += [torch.nn.Linear(d_model, vocabulary, bias=False)] * own_head
    sizes = {**dict.fromkeys(SIZES["GPT-2 small"], 0), "layers": layers, "decoder_layers": decoder_layers}
    sizes |= {"d_model": d_model, "heads": heads, "d_ff": d_ff, "vocabulary": vocabulary}
    sizes |= {"other_norms": 1, "own_head": int(own_head), "T": 7}
    counted = sum(p.numel() for part in parts for p in part.parameters())
    found = plan(sizes)
    assert (found["total"], found["bytes"]) == (counted, 4 * counted)
    scores = torch.zeros(1, heads, 7, 7)
    assert found["scores"] == scores.nbytes
    assert found["all_scores"] == scores.nbytes * (layers + 2 * decoder_layers)


def test_double_widths_make_blocks_grow_fourfold_and_the_table_twofold() -> None:
    sizes = SIZES["GPT-2 small"]
    once, twice = plan(sizes), plan({**sizes, "d_model": 2 * sizes["d_model"], "d_ff": 2 * sizes["d_ff"]})
    assert twice["words"] == 2 * once["words"]
    for part in "attention", "feed_forward":
        assert twice[part] / once[part] == pytest.approx(4, abs=0.01)


def test_double_length_makes_scores_grow_fourfold_and_parameters_not_at_all() -> None:
    sizes = SIZES["GPT-2 small"]
    once, twice = plan(sizes), plan({**sizes, "T": 2 * sizes["T"]})
    assert (twice["scores"], twice["total"]) == (4 * once["scores"], once["total"])


def test_more_heads_make_more_scores_and_no_more_parameters() -> None:
    sizes = SIZES["GPT-2 small"]
    once, twice = plan(sizes), plan({**sizes, "heads": 2 * sizes["heads"]})
    assert (twice["scores"], twice["total"]) == (2 * once["scores"], once["total"])
