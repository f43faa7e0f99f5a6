"""docs/multi-head.md: every claim of the chapter, held against what it publishes and against PyTorch."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

from snippets.multi_head import (
    MultiHeadAttention,
    SplitWithoutTranspose,
    WishReader,
    as_library,
)

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}


@given(
    heads=st.integers(1, 6),
    d_k=st.integers(1, 8),
    batch=st.integers(1, 3),
    length=st.integers(1, 9),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    masked=st.booleans(),
    seed=st.integers(0, 2**16),
)
@settings(deadline=None)
def test_with_the_same_weights_the_library_says_the_same(
    heads: int, d_k: int, batch: int, length: int, dtype: torch.dtype, masked: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    ours = MultiHeadAttention(heads * d_k, heads).to(dtype)
    x = torch.randn(batch, length, heads * d_k, dtype=dtype)
    mask = None
    if masked:
        mask = torch.rand(length, length) < 0.5
        mask.fill_diagonal_(True)
    output, weights = ours(x, mask)
    theirs, their_weights = as_library(ours)(
        x, x, x, attn_mask=None if mask is None else ~mask, average_attn_weights=False
    )
    assert output.shape == x.shape
    assert weights.shape == (batch, heads, length, length)
    assert (output - theirs).abs().max() < TOLERANCE[dtype]
    assert (weights - their_weights).abs().max() < TOLERANCE[dtype]


def test_the_library_reads_a_boolean_mask_the_other_way_round() -> None:
    torch.manual_seed(0)
    ours, x = MultiHeadAttention(16, 2), torch.randn(1, 5, 16)
    keep = torch.ones(5, 5, dtype=torch.bool).tril()
    output, _ = ours(x, keep)
    theirs = as_library(ours)
    assert torch.allclose(theirs(x, x, x, attn_mask=~keep)[0], output, atol=1e-6)
    keep_off_diagonal = keep.logical_not() | torch.eye(5, dtype=torch.bool)
    assert not torch.allclose(theirs(x, x, x, attn_mask=~keep_off_diagonal)[0], output, atol=1e-2)


def test_one_row_of_weights_forgets_who_was_who_and_two_rows_do_not(result: Any) -> None:
    rows = result("multi_head.one_row_of_weights").values
    assert rows["one_row"] == rows["one_row_swapped"]
    assert rows["two_rows"] == rows["two_rows_swapped"][::-1] == [5.0, 2.0]


def test_one_head_stops_at_the_limit_and_two_heads_go_to_zero(result: Any) -> None:
    wishes = result("multi_head.two_wishes").values
    limit = result("multi_head.one_head_is_stuck").values["limit"]
    assert wishes["one_head"] == [pytest.approx(limit, abs=0.03)] * 3
    assert wishes["two_heads_worst"] == max(wishes["two_heads"]) < 0.01


def test_one_head_and_two_heads_have_the_same_parameters(result: Any) -> None:
    counts = {sum(p.numel() for p in WishReader(13, 16, heads, 2).parameters()) for heads in (1, 2)}
    assert counts == {result("multi_head.two_wishes").values["parameters"]}


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_whichever_way_the_row_is_shared_one_mixture_loses_half_of_the_variance(share: float, result: Any) -> None:
    torch.manual_seed(0)
    both = torch.randn(200_000, 2)  # a and b
    mixture = both @ torch.tensor([[share], [1 - share]])
    answer = mixture @ torch.linalg.lstsq(mixture, both).solution  # the best linear reading
    limit = result("multi_head.one_head_is_stuck").values["limit"]
    assert F.mse_loss(answer, both) == pytest.approx(limit, abs=0.01)


def test_each_head_took_one_wish(result: Any) -> None:
    differ = result("multi_head.heads_differ").values
    assert differ["larger"] > 0.9
    assert sorted(max(head) == head[1] for head in differ["share"]) == [False, True]


def test_the_maps_show_each_head_bright_on_one_wish(result: Any) -> None:
    differ = result("multi_head.heads_differ").values
    for head, weights in enumerate(differ["one_sequence"]):
        wish = differ["share"][head].index(max(differ["share"][head]))
        for row, owners in zip(weights, differ["owner"], strict=True):
            assert max(row) == row[owners[wish]] > 0.6


def test_four_heads_solve_it_too_and_do_not_all_take_one_wish(result: Any) -> None:
    four = result("multi_head.four_heads").values
    assert four["error"] < 0.01
    assert four["least_clear"] < 0.7


def test_without_the_output_matrix_each_head_owns_its_slice() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)

    def moved() -> list[bool]:
        before, _ = layer(x)
        with torch.no_grad():
            layer.value.weight[:4] += 1  # the values of the first head only
        after, _ = layer(x)
        changed: list[bool] = ((after - before).abs().amax((0, 1)) > 1e-6).tolist()
        return changed

    assert moved() == [True] * 8
    with torch.no_grad():
        layer.output.weight.copy_(torch.eye(8))
    assert moved() == [True] * 4 + [False] * 4


def test_the_difference_from_the_library_is_rounding(result: Any) -> None:
    parity = result("multi_head.parity").values
    for name in ("mha_output", "mha_weights", "sdpa_output"):
        assert parity[name] < 1e-6
        assert parity[name + "_float64"] < 1e-14
    assert parity["epsilon_ratio"] == 2**29
    assert 0.05 < parity["shrinks"] / parity["epsilon_ratio"] < 20


def test_a_mistake_in_the_formula_would_not_shrink_in_float64() -> None:
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        ours, x = MultiHeadAttention(16, 4).to(dtype), torch.randn(2, 5, 16, dtype=dtype)
        theirs = as_library(ours)
        ours.heads = 2  # divides by the root of the wrong d_k
        assert (ours(x)[0] - theirs(x, x, x)[0]).abs().max() > 1e-3


def test_the_wrong_split_gives_the_first_head_two_tokens_cut_in_half(result: Any) -> None:
    split = result("multi_head.where_tokens_go").values
    assert split["same_shape"]
    assert split["right"] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert split["wrong"] == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_the_wrong_split_deals_out_whole_tokens(result: Any) -> None:
    heads = result("multi_head.who_gets_what").values
    assert heads["right"] == [[1, 1, 1, 1, 2, 2, 2, 2]] * 4
    assert heads["wrong"] == [[1] * 8, [1] * 8, [2] * 8, [2] * 8]


def test_parity_catches_the_split_without_transpose(result: Any) -> None:
    caught = result("multi_head.caught_by_parity").values
    assert caught["right"] < 1e-6
    assert caught["wrong"] > caught["size"]


def test_nothing_but_parity_complains_about_the_wrong_split() -> None:
    x = torch.randn(2, 10, 64)
    output, weights = SplitWithoutTranspose(64, 4)(x)
    assert output.shape == x.shape
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 10))


@given(st.integers(1, 8), st.integers(1, 8))
def test_a_layer_has_four_square_matrices_and_four_vectors_whatever_the_heads(heads: int, d_k: int) -> None:
    d_model = heads * d_k
    count = sum(p.numel() for p in MultiHeadAttention(d_model, heads).parameters())
    assert count == 4 * d_model**2 + 4 * d_model


def test_the_published_counts_add_up(result: Any) -> None:
    counts = result("multi_head.parameter_count").values
    assert counts["count"] == counts["weights"] + counts["biases"] == 1_050_624
    sixteen = MultiHeadAttention(counts["d_model"], 16)
    assert sum(p.numel() for p in sixteen.parameters()) == counts["count"]
    assert counts["d_k_of_eight"] == 64


def test_heads_that_do_not_divide_the_model_are_an_error(result: Any) -> None:
    assert "ValueError: 100 does not divide into 8" in result("multi_head.unequal_heads").text


def test_every_kernel_that_answers_gives_the_formula(result: Any) -> None:
    kernels = result("multi_head.kernels").values
    assert "MATH" in kernels["answer"]
    assert kernels["worst"] < 1e-5


def test_the_documentation_promises_an_error_that_the_default_path_does_not_raise(
    result: Any,
) -> None:
    promise = result("multi_head.what_the_documentation_says").values["sentence"]
    assert "error is thrown if both attn_mask and is_causal are set" in promise
    both = result("multi_head.two_masks_at_once").values
    assert both["difference"] == 0
    assert both["refused"] == ["math kernel", "default with dropout"]


@pytest.mark.filterwarnings("ignore:Flash attention", "ignore:Both fused kernels")
def test_dropout_makes_the_default_path_fall_back_on_the_math_kernel() -> None:
    query = torch.randn(1, 2, 6, 16)
    F.scaled_dot_product_attention(query, query, query, dropout_p=0.1)
    with sdpa_kernel(SDPBackend.MATH):
        F.scaled_dot_product_attention(query, query, query, dropout_p=0.1)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="kernel"):
        F.scaled_dot_product_attention(query, query, query, dropout_p=0.1)


def test_joining_the_masks_yourself_works_with_dropout_and_with_the_math_kernel() -> None:
    query = torch.randn(1, 2, 6, 16)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    mask[:, 2] = False
    F.scaled_dot_product_attention(query, query, query, attn_mask=mask, dropout_p=0.1)
    default = F.scaled_dot_product_attention(query, query, query, attn_mask=mask)
    with sdpa_kernel(SDPBackend.MATH):
        plain = F.scaled_dot_product_attention(query, query, query, attn_mask=mask)
    assert torch.allclose(default, plain, atol=1e-6)


def test_the_library_returns_the_output_and_not_the_weights() -> None:
    query = torch.randn(1, 2, 6, 16)
    returned = F.scaled_dot_product_attention(query, query, query)
    assert isinstance(returned, torch.Tensor)
    assert returned.shape == query.shape
