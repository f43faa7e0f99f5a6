"""docs/masks.md: every sentence that states a fact, held against what the examples really did."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from snippets import masks
from snippets.attention import scaled_dot_product_attention
from snippets.masks import NextDigit, assert_causal, causal_mask, influence

WRONG = [masks.inverted, masks.query_axis, masks.off_by_one, masks.too_late]


def digits_and_others(length: int = 6, batch: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    digits = torch.randint(10, (batch, length), generator=torch.Generator().manual_seed(seed))
    return digits, (digits + 1) % 10


# Minus infinity, before the softmax


def test_the_exponential_of_minus_infinity_is_zero(result: Any) -> None:
    assert result("masks.hidden_scores").values["exp_of_minus_infinity"] == 0


def test_hidden_scores_become_weights_of_exactly_zero(result: Any) -> None:
    shown = result("masks.hidden_scores")
    assert torch.count_nonzero(torch.tensor(shown.values["hidden"])) == 0
    assert shown.text.count("-inf") == 6  # of a 4 x 4 triangle


@given(st.integers(1, 40))
def test_token_i_sees_the_tokens_up_to_and_including_itself(length: int) -> None:
    keep = causal_mask(length)
    assert keep.dtype == torch.bool
    assert keep.shape == (length, length)
    assert keep.sum(dim=1).tolist() == list(range(1, length + 1))
    assert all(keep[i, : i + 1].all() for i in range(length))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 12), st.sampled_from([1, 8, 32]),
    st.sampled_from([torch.float32, torch.float64]), st.integers(0, 2**31),
)  # fmt: skip
def test_the_causal_mask_does_what_is_causal_does_in_the_library(
    b: int, h: int, t: int, d: int, dtype: torch.dtype, seed: int
) -> None:
    query, key, value = torch.randn(3, b, h, t, d, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    ours, weights = scaled_dot_product_attention(query, key, value, causal_mask(t))
    library = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(ours, library, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(masks.causal(query, key, value), library, atol=1e-5, rtol=1e-4)
    assert torch.count_nonzero(weights.triu(1)) == 0  # for any vectors


def test_no_weight_falls_on_a_later_token(result: Any) -> None:
    values = result("masks.causal_weights").values
    assert values["upper_triangle"] == 0
    assert values["weights"][0] == values["first_row"] == [1, 0, 0, 0, 0]


def test_every_row_still_adds_up_to_one(result: Any) -> None:
    assert result("masks.causal_weights").values["row_sums"] == pytest.approx([1] * 5, abs=1e-6)


def test_the_heat_map_has_text_and_all_five_words(result: Any) -> None:
    (figure,) = result("masks.causal_weights").figures
    assert all(word in figure for word in ("the", "cat", "sat", "down", "again", "(key)", "(query)"))


# Who wears a mask


def test_bert_and_roberta_see_later_tokens_and_gpt2_does_not(result: Any) -> None:
    leaks = result("masks.encoder_and_decoder").values["leaks"]
    assert leaks["BERT"] > 0.1
    assert leaks["RoBERTa"] > 0.1
    assert leaks["GPT-2"] < 1e-5


def test_influence_is_the_pattern_of_the_jacobian() -> None:
    torch.manual_seed(3)
    weights = torch.randn(5, 5) * (torch.rand(5, 5) > 0.5)  # output i = sum of weights[i, j] x_j
    x, other = torch.randn(2, 4, 5, 3)
    moved = influence(lambda x: weights @ x, x, other)
    assert torch.equal(moved > 1e-6, weights != 0)


# The guard


def test_above_the_diagonal_nothing_moved(result: Any) -> None:
    values = result("masks.guard_on_causal").values
    assert values["above"] == 0
    moved = torch.tensor(values["moved"])
    assert (moved.tril() > 0.01).sum() == 21  # and on and below it, everything did


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.integers(0, 2**31))
def test_the_guard_lets_the_right_mask_pass_and_stops_each_wrong_one(length: int, seed: int) -> None:
    torch.manual_seed(seed)
    digits, others = digits_and_others(length, seed=seed)
    assert_causal(NextDigit(masks.causal), digits, others)
    for attend in WRONG:
        with pytest.raises(AssertionError, match=r"token \d+ moves output \d+ by \d"):
            assert_causal(NextDigit(attend), digits, others)


def test_the_guard_does_not_need_to_know_the_model() -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(4, 4, batch_first=True)
    both_ways = nn.LSTM(4, 4, batch_first=True, bidirectional=True)
    x, other = torch.randn(2, 2, 5, 4)
    assert_causal(lambda x: lstm(x)[0], x, other)
    with pytest.raises(AssertionError):
        assert_causal(lambda x: both_ways(x)[0], x, other)


def test_dropout_would_move_outputs_too() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5))
    x, other = torch.randn(2, 2, 5, 4)
    with pytest.raises(AssertionError):
        assert_causal(model, x, other)
    assert_causal(model.eval(), x, other)


def test_a_large_tolerance_sleeps_through_a_leak() -> None:
    digits, others = digits_and_others()
    assert_causal(NextDigit(masks.off_by_one), digits, others, tol=100)


def test_the_guard_does_not_let_nan_pass() -> None:
    x, other = torch.randn(2, 1, 4, 3)
    with pytest.raises(AssertionError, match="nan"):
        assert_causal(lambda x: x * math.nan, x, other)


# Four wrong masks


def test_all_four_wrong_masks_are_caught(result: Any) -> None:
    said = result("masks.guard_on_wrong_masks").values["said"]
    assert said.pop("causal") == "passes"
    assert set(said) == {attend.__name__ for attend in WRONG}
    assert all("moves output" in message for message in said.values())


def test_only_the_causal_mask_has_no_leak(result: Any) -> None:
    values = result("masks.influence_maps").values
    assert values["pairs"] == 15
    assert values["off_by_one"] == 5
    assert values["leaks"] == {
        "no mask": 15, "causal": 0, "inverted": 15, "query axis": 15, "off by one": 5,
        "after softmax": 15,
    }  # fmt: skip


def test_after_the_softmax_the_weights_on_later_tokens_are_zero_but_rows_are_short() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 6, 8)
    weights = masks.too_late(query, key, torch.eye(6))  # the values are the unit vectors
    assert torch.count_nonzero(weights.triu(1)) == 0
    assert (weights.sum(dim=-1)[:-1] < 0.999).all()


def test_after_the_softmax_the_later_tokens_enter_by_one_number_a_row() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 6, 8)
    late = masks.too_late(query, key, torch.eye(6))
    right = masks.causal(query, key, torch.eye(6))
    torch.testing.assert_close(late / late.sum(dim=-1, keepdim=True), right)


def test_one_mask_means_opposite_things_in_two_places(result: Any) -> None:
    values = result("masks.two_conventions").values
    assert values["keep"] > 0.1
    assert values["flipped"] < 1e-5


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 8), st.sampled_from([1, 2, 4]), st.integers(0, 2**31))
def test_true_keeps_in_sdpa_and_drops_in_multihead_attention(length: int, heads: int, seed: int) -> None:
    torch.manual_seed(seed)
    layer = nn.MultiheadAttention(8, heads, batch_first=True, bias=False)
    x = torch.randn(1, length, 8)
    keep = causal_mask(length)
    query, key, value = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (x @ layer.in_proj_weight.T).chunk(3, dim=-1)
    )
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=keep)
    by_sdpa = layer.out_proj(mixed.transpose(1, 2).flatten(2))
    by_layer, _ = layer(x, x, x, attn_mask=~keep)
    torch.testing.assert_close(by_sdpa, by_layer, atol=1e-5, rtol=1e-4)


# What a leak looks like in training


def test_guessing_costs_ln_10(result: Any) -> None:
    assert result("masks.random_digits").values["guessing"] == pytest.approx(math.log(10))


def test_with_the_right_mask_nothing_is_learned(result: Any) -> None:
    low, high = result("masks.random_digits").values["ends"]["causal"]
    assert 2.29 < low <= high < 2.33


def test_leaking_masks_end_far_below_ln_10(result: Any) -> None:
    ends = result("masks.random_digits").values["ends"]
    floor = math.log(10) / 16
    for name in ("inverted", "query_axis", "off_by_one"):
        low, high = ends[name]
        assert floor * 0.95 < low <= high < 0.3, name
    assert ends["inverted"][1] < 0.16


def test_after_the_softmax_sinks_slowly_and_well_below_ln_10(result: Any) -> None:
    values = result("masks.random_digits").values
    low, high = values["ends"]["too_late"]
    assert 0.5 < low <= high < 2.1
    for curve in values["curves"]["too_late"]:
        assert curve[20] > 2.1  # it looks honest at first
    for curve in values["curves"]["off_by_one"]:
        assert curve[50] < 0.5


def test_the_curves_are_of_the_seeds_and_steps_that_are_told(result: Any) -> None:
    values = result("masks.random_digits").values
    assert all(len(runs) == values["seeds"] for runs in values["curves"].values())
    assert all(len(run) == values["steps"] for runs in values["curves"].values() for run in runs)


def test_the_figure_of_the_losses_names_its_lines(result: Any) -> None:
    (figure,) = result("masks.loss_curves").figures
    assert all(name in figure for name in ("right mask", "after softmax", "off by one", "ln 10"))


# Padding


def test_padding_is_hidden_on_the_key_axis_and_not_on_the_query_axis(result: Any) -> None:
    values = result("masks.padding").values
    assert values["keys"] == 0
    assert values["queries"] > 0.05


def test_a_decoder_joins_both_masks() -> None:
    torch.manual_seed(0)
    keep = torch.arange(6) < torch.tensor([6, 4])[:, None]  # (batch, T), padding on the right
    both = causal_mask(6) & keep[:, None, :]
    assert both.any(dim=-1).all()  # padded on the right, no row is empty
    x, other = torch.randn(2, 2, 6, 8)

    def attend(x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=both)

    assert_causal(attend, x, other)
    changed = torch.where(keep[..., None], x, other)
    assert torch.equal(attend(changed)[keep], attend(x)[keep])


def test_with_heads_the_padding_mask_has_one_axis_more() -> None:
    torch.manual_seed(0)
    keep = torch.arange(6) < torch.tensor([6, 4])[:, None]
    x, other = torch.randn(2, 2, 3, 6, 8)  # (batch, heads, T, d)
    changed = torch.where(keep[:, None, :, None], x, other)
    mask = keep[:, None, None, :]
    before, _ = scaled_dot_product_attention(x, x, x, mask)
    after, _ = scaled_dot_product_attention(changed, changed, changed, mask)
    real = keep[:, None, :].expand(2, 3, 6)
    assert torch.equal(before[real], after[real])


# A row with nothing to look at


def test_an_empty_row_is_nan_or_zero_depending_on_whom_you_ask(result: Any) -> None:
    assert result("masks.empty_row").values["empty"] == {
        "by hand": "nan",
        "F.sdpa": "0.0",
        "nn.MHA, weights": "nan",
        "nn.MHA, no weights": "0.0",
        "the same, in eval": "nan",
    }


def test_without_weights_multihead_attention_gives_its_output_bias() -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    assert torch.count_nonzero(layer.out_proj.bias) == 0  # where it starts
    nn.init.normal_(layer.out_proj.bias)
    x = torch.randn(1, 4, 8)
    drop = torch.ones(4, 4, dtype=torch.bool)
    output, _ = layer(x, x, x, attn_mask=drop, need_weights=False)
    torch.testing.assert_close(output[0, 0], layer.out_proj.bias)


def test_one_nan_row_spoils_the_next_layer_and_every_gradient(result: Any) -> None:
    values = result("masks.nan_spreads").values
    assert values["first"] == 1
    assert values["second"] == values["rows"] == 4
    assert math.isfinite(values["loss"])  # the loss looks healthy
    assert values["spoilt"] == 1


# One new token


def test_is_causal_shows_the_newest_token_only_the_oldest_value(result: Any) -> None:
    values = result("masks.one_new_token").values
    assert values["first_value"] is True
    assert values["wrong_by"] > 0.1
    assert values["right_by"] < 1e-5


@given(st.integers(1, 5), st.integers(5, 9))
@settings(deadline=None, max_examples=15)
def test_is_causal_puts_the_triangle_in_the_top_left_corner(queries: int, keys: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(queries, 8), torch.randn(keys, 8), torch.randn(keys, 8)
    flagged = F.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0]
    top_left, _ = scaled_dot_product_attention(query, key, value, causal_mask(keys)[:queries])
    torch.testing.assert_close(flagged, top_left, atol=1e-5, rtol=1e-4)


def test_several_new_tokens_need_the_last_rows_of_the_triangle(result: Any) -> None:
    assert result("masks.two_new_tokens").values["off_by"] < 1e-5


# Check yourself


def test_the_floor_of_a_perfect_cheat_is_a_sixteenth_of_ln_10(result: Any) -> None:
    floor = result("masks.leak_floor").values["floor"]
    assert floor == pytest.approx(math.log(10) / 16)
    ends = result("masks.random_digits").values["ends"]
    assert min(ends, key=lambda name: ends[name][0]) == "inverted"


def test_a_mask_that_hides_too_much_passes_the_guard(result: Any) -> None:
    values = result("masks.too_strict").values
    assert values["leak"] == 0
    assert values["first"] == 0
