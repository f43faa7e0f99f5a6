"""docs/attention.md: every claim of the chapter, held against what it publishes and against PyTorch."""

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from snippets.attention import AttentionHead, colour_wishes, entropy, scaled_dot_product_attention, viewed

FOUR = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@st.composite
def attention_inputs(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Query, key and value of any batch, lengths and widths; a mask that leaves each query a key."""
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    queries, keys, d_k, d_v = (draw(st.integers(1, 9)) for _ in range(4))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    query = torch.randn(*leading, queries, d_k, dtype=dtype)
    key = torch.randn(*leading, keys, d_k, dtype=dtype)
    value = torch.randn(*leading, keys, d_v, dtype=dtype)
    mask = None
    if draw(st.booleans()):
        mask = torch.rand(queries, keys) < 0.5
        mask[torch.arange(queries), torch.randint(keys, (queries,))] = True
    return query, key, value, mask


@given(attention_inputs())
@settings(deadline=None)
def test_the_code_is_pytorchs_formula_for_any_shape_mask_and_precision(inputs: Any) -> None:
    query, key, value, mask = inputs
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert (output - theirs).abs().max() < TOLERANCE[query.dtype]


@given(attention_inputs())
@settings(deadline=None)
def test_each_row_of_weights_is_positive_and_sums_to_one(inputs: Any) -> None:
    query, key, value, mask = inputs
    _, weights = scaled_dot_product_attention(query, key, value, mask)
    assert weights.shape == (*query.shape[:-1], key.size(-2))
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights[..., mask] > 0 if mask is not None else weights > 0).all()


@given(attention_inputs())
@settings(deadline=None)
def test_a_hidden_key_has_a_weight_of_exactly_zero(inputs: Any) -> None:
    query, key, value, mask = inputs
    _, weights = scaled_dot_product_attention(query, key, value, mask)
    if mask is not None:
        assert (weights[..., ~mask] == 0).all()


@given(attention_inputs())
@settings(deadline=None)
def test_no_coordinate_of_the_output_leaves_the_range_of_the_values(inputs: Any) -> None:
    query, key, value, mask = inputs
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    slack = TOLERANCE[query.dtype]
    assert (output <= value.amax(-2, keepdim=True) + slack).all()
    assert (output >= value.amin(-2, keepdim=True) - slack).all()


def test_query_and_key_of_different_width_are_an_error() -> None:
    with pytest.raises(RuntimeError):
        scaled_dot_product_attention(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3))


def test_the_dictionary_has_no_orange_and_the_soft_lookup_answers(result: Any) -> None:
    lookup = result("attention.soft_lookup")
    assert "dictionary:   None" in lookup.text
    red, green = 10, 20
    assert red < lookup.values["soft"] < green


def test_sharpness_goes_from_the_plain_mean_to_the_best_key(result: Any) -> None:
    lookup = result("attention.soft_lookup").values
    assert lookup["flat"] == pytest.approx((10 + 20 + 30) / 3)
    assert lookup["sharp"] == pytest.approx(10, abs=0.01)


def test_as_the_lookup_sharpens_green_first_holds_and_then_falls(result: Any) -> None:
    curve = result("attention.sharpness").values
    assert curve["green_at_zero"] == pytest.approx(1 / 3)
    assert 1 / 3 < curve["green_peak"] < 0.4


def test_only_rounding_makes_a_weight_zero_without_a_mask() -> None:
    far = torch.tensor([0.0, -200.0])
    assert far.softmax(-1)[1] == 0
    assert far.double().softmax(-1)[1] > 0


def test_the_four_rows_are_those_of_the_reference(result: Any) -> None:
    published = [
        [0.320, 0.180, 0.320, 0.180],
        [0.180, 0.320, 0.320, 0.180],
        [0.230, 0.230, 0.410, 0.129],
        [0.209, 0.209, 0.209, 0.373],
    ]
    weights = result("attention.four_tokens").values["weights"]
    assert [[round(weight, 3) for weight in row] for row in weights] == published


def test_in_the_first_three_rows_no_weight_is_larger_than_the_one_on_the_third_token(result: Any) -> None:
    weights = result("attention.four_tokens").values["weights"]
    assert all(row[2] == max(row) for row in weights[:3])


def test_the_steps_of_the_third_row_end_in_the_third_row(result: Any) -> None:
    steps = result("attention.third_row").values
    row = result("attention.four_tokens").values["weights"][2]
    assert steps["weights"] == pytest.approx(row)
    assert steps["scores"] == [1, 1, 2, 0]


def test_a_dot_product_of_zero_still_gets_weight(result: Any) -> None:
    steps = result("attention.third_row").values
    assert steps["exponentials"][3] == 1
    assert steps["weights"][3] > 0.1


def test_third_token_attends_equally_to_the_first_two_and_most_to_itself(result: Any) -> None:
    third = result("attention.four_tokens").values["weights"][2]
    assert third[0] == third[1]
    assert max(third) == third[2]


def test_fourth_token_is_orthogonal_to_the_others_and_weighs_them_equally(result: Any) -> None:
    assert (FOUR[:3] @ FOUR[3] == 0).all()
    fourth = result("attention.four_tokens").values["weights"][3]
    assert fourth[0] == fourth[1] == fourth[2] < fourth[3]


def test_first_token_gives_the_third_what_it_gives_itself(result: Any) -> None:
    four = result("attention.four_tokens").values
    assert four["first_to_third"] == four["first_to_itself"] > four["first_to_second"]


def test_the_third_token_takes_in_a_little_of_the_fourth(result: Any) -> None:
    four = result("attention.four_tokens").values
    assert torch.tensor(four["output"]).shape == FOUR.shape
    assert four["output"][2][2] == pytest.approx(four["third_to_fourth"])


@given(st.integers(1, 30), st.integers(0, 2**31))
@settings(deadline=None)
def test_entropy_is_ln_t_less_the_distance_from_an_even_row(length: int, seed: int) -> None:
    weights = torch.randn(5, length, generator=torch.Generator().manual_seed(seed)).mul(3).softmax(-1)
    apart = (weights * (weights * length).log()).sum(-1)  # Kullback-Leibler divergence
    torch.testing.assert_close(entropy(weights), math.log(length) - apart, atol=1e-5, rtol=1e-4)


def test_entropy_is_zero_for_one_token_and_not_nan() -> None:
    assert entropy(torch.eye(4)).tolist() == [0] * 4


def test_the_fourth_row_looks_most_widely_and_the_third_least_and_all_are_nearly_even(result: Any) -> None:
    values = result("attention.where_four_tokens_look").values
    ((entropies,),) = values["entropy"]
    assert max(entropies) == entropies[3]
    assert min(entropies) == entropies[2]
    assert values["uniform"] == pytest.approx(math.log(4))
    assert all(0.9 * values["uniform"] < one < values["uniform"] for one in entropies)
    assert values["mean_entropy"] == [[pytest.approx(sum(entropies) / 4)]]


def test_the_viewer_has_the_weights_of_the_four_tokens(result: Any) -> None:
    values, four = result("attention.where_four_tokens_look").values, result("attention.four_tokens").values
    ((weights,),) = values["weights"]
    assert weights == [pytest.approx(row, abs=1e-6) for row in four["weights"]]
    assert values["tokens"] == ["first", "second", "third", "fourth"]


def test_of_several_heads_the_viewer_also_has_the_mean_and_how_widely_that_looks() -> None:
    torch.manual_seed(0)
    weights = torch.randn(2, 3, 5, 5).mul(3).softmax(dim=-1)  # (layers, heads, T, T)
    seen: Any = viewed(weights, list("abcde"))
    for layer in range(2):
        mean = weights[layer].mean(dim=0)
        assert (seen["mean"]["weights"][layer][0] - mean).abs().max() <= 1e-6
        torch.testing.assert_close(seen["mean"]["entropy"][layer][0], entropy(mean))
        torch.testing.assert_close(seen["mean"]["mean_entropy"][layer][0], entropy(mean).mean())
        assert (seen["mean"]["entropy"][layer][0] > seen["entropy"][layer].mean(dim=0)).all()  # it is concave


def test_under_dropout_rows_no_longer_sum_to_one_but_do_on_average(result: Any) -> None:
    dropout = result("attention.dropout_on_weights").values
    assert dropout["without"] == pytest.approx([1] * 4)
    assert all(abs(row - 1) > 0.05 for row in dropout["with_dropout"])
    assert max(dropout["with_dropout"]) == pytest.approx(1 / 0.9, abs=1e-3)
    assert dropout["mean"] == pytest.approx(1, abs=0.01)


def test_the_librarys_own_weights_sum_to_one_only_in_evaluation_mode() -> None:
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(16, 2, dropout=0.5, batch_first=True)
    x = torch.randn(1, 9, 16)
    one = torch.ones(1, 9)
    assert not torch.allclose(attention(x, x, x)[1].sum(-1), one, atol=0.01)
    attention.eval()
    assert torch.allclose(attention(x, x, x)[1].sum(-1), one)


def test_with_one_vector_in_both_roles_interest_is_mutual_and_with_learned_roles_it_is_not(
    result: Any,
) -> None:
    scores = FOUR @ FOUR.T
    assert torch.equal(scores, scores.T)
    roles = result("attention.three_roles").values
    assert abs(roles["there"] - roles["back"]) > 0.1


@pytest.mark.parametrize("length", [1, 7, 50])
def test_the_same_parameters_serve_any_length(length: int, result: Any) -> None:
    head = AttentionHead(d_model=16, d_k=8, d_v=8)
    output, weights = head(torch.randn(length, 16))
    assert output.shape == (length, 8)
    assert weights.shape == (length, length)
    count = sum(p.numel() for p in head.parameters())
    assert count == result("attention.three_roles").values["parameters"]


@given(st.integers(1, 5), st.integers(2, 6), st.data())
@settings(deadline=None)
def test_the_answer_is_the_number_of_the_token_that_owns_the_colour(
    batch: int, colours: int, data: st.DataObject
) -> None:
    wishes = data.draw(st.integers(1, colours))
    tokens, answers, owner = colour_wishes(batch, colours, wishes)
    wish, own = tokens[..., : wishes * colours], tokens[..., wishes * colours : -1]
    assert (own.argmax(-1).sort(-1).values == torch.arange(colours)).all()
    for b in range(batch):
        for t in range(colours):
            wanted = wish[b, t].view(wishes, colours).argmax(-1)
            assert len(set(wanted.tolist())) == wishes
            for w in range(wishes):
                holder = owner[b, t, w]
                assert own[b, holder].argmax() == wanted[w]
                assert answers[b, t, w] == tokens[b, holder, -1]


def test_one_head_learns_to_attend_to_the_token_that_owns_the_colour(result: Any) -> None:
    learned = result("attention.learned_lookup").values
    assert learned["first_loss"] > 0.7
    assert learned["new_loss"] < 0.01
    assert learned["on_owner"] > 0.95


def test_a_matching_colour_raises_the_score_and_a_wrong_one_never_does(result: Any) -> None:
    asks = result("attention.what_it_learned").values
    assert asks["smallest_match"] > 5
    assert asks["largest_mismatch"] < 0


def test_the_number_travels_through_the_value_and_not_the_score(result: Any) -> None:
    asks = result("attention.what_it_learned").values
    assert asks["number_in_score"] < 0.5
    assert asks["number_in_value"] == pytest.approx(1, abs=0.1)


def test_a_score_is_the_product_through_both_matrices() -> None:
    head, x = AttentionHead(9, 8, 1), torch.randn(4, 9)
    asks = head.query.weight.T @ head.key.weight
    assert torch.allclose(head.query(x) @ head.key(x).T, x @ asks @ x.T, atol=1e-5)


def test_dividing_by_the_root_of_d_k_brings_the_spread_from_eight_to_one(result: Any) -> None:
    spread = result("attention.dot_products").values
    assert spread["d_k"] == 64
    assert spread["std_unscaled"] == pytest.approx(8, abs=0.15)
    assert spread["std_scaled"] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("draw", [torch.randn, lambda *size: (2 * torch.rand(*size) - 1) * 3**0.5])
def test_the_variance_of_a_dot_product_is_d_k_whatever_the_distribution(draw: Any) -> None:
    torch.manual_seed(0)
    for d_k in (3, 48):
        scores = (draw(50_000, d_k) * draw(50_000, d_k)).sum(-1)
        assert scores.var() == pytest.approx(d_k, rel=0.05)


def test_undivided_one_of_sixty_four_random_keys_takes_most_of_the_row(result: Any) -> None:
    largest = result("attention.largest_weight").values
    assert largest["mean_unscaled"] == pytest.approx(0.794, abs=0.01)
    assert largest["mean_scaled"] == pytest.approx(0.108, abs=0.003)
    assert largest["error_unscaled"] < 0.005
    assert largest["error_scaled"] < 0.001
    assert largest["times_even"] == pytest.approx(64 * largest["mean_scaled"])


def test_the_published_means_are_ordinary_for_eight_queries_and_not_for_sixty_four(
    result: Any,
) -> None:
    small = result("attention.small_samples").values
    assert 0.025 < small["as_low_unscaled_8"] < 0.975
    assert 0.025 < small["as_low_scaled_8"] < 0.975
    assert small["as_low_unscaled_64"] < 0.02
    assert small["as_low_scaled_64"] < 0.06


@given(st.integers(2, 8), st.integers(0, 1000))
@settings(deadline=None)
def test_the_trace_of_the_softmax_jacobian_is_one_minus_the_sum_of_squares(keys: int, seed: int) -> None:
    torch.manual_seed(seed)
    scores = torch.randn(keys, dtype=torch.float64)
    jacobian = torch.func.jacrev(lambda s: s.softmax(-1))(scores)
    p = scores.softmax(-1)
    assert torch.allclose(jacobian, p.diag() - torch.outer(p, p))
    assert jacobian.trace() == pytest.approx(float(1 - p.square().sum()))


def test_undivided_the_trace_falls_as_d_grows_and_divided_it_does_not(result: Any) -> None:
    sweep = result("attention.scaling_sweep").values
    traces = sweep["traces"]
    assert all(later < earlier for earlier, later in itertools.pairwise(traces))
    assert sweep["first_trace"] == pytest.approx(0.955, abs=0.01)
    assert sweep["last_trace"] == pytest.approx(0.075, abs=0.015)
    assert max(sweep["scaled_traces"]) - min(sweep["scaled_traces"]) < 0.02


def test_the_spread_follows_the_root_of_d_at_every_size(result: Any) -> None:
    sweep = result("attention.scaling_sweep").values
    for d, spread in zip(sweep["sizes"], sweep["spread"], strict=True):
        assert spread == pytest.approx(math.sqrt(d), rel=0.03)
    assert sweep["spread_at_256"] == pytest.approx(16, rel=0.03)


def test_in_a_wide_head_the_undivided_median_gradient_vanishes_and_the_mean_grows(result: Any) -> None:
    gradient = result("attention.gradients").values
    assert gradient["median_unscaled"] < gradient["median_scaled"] / 10
    assert gradient["mean_unscaled"] > gradient["mean_scaled"] * 5
    assert 0.3 < gradient["starved"] < 0.5


def test_at_the_size_of_an_original_head_even_the_median_is_larger_undivided(result: Any) -> None:
    gradient = result("attention.gradients").values
    assert gradient["head"] == 64
    assert gradient["median_unscaled_head"] > 2 * gradient["median_scaled_head"]


def test_the_division_makes_the_gradient_even_over_queries(result: Any) -> None:
    ratio = result("attention.uneven_gradients").values
    assert ratio["ratio_scaled_head"] < 4
    assert ratio["ratio_unscaled_head"] > 50


def test_undivided_a_sure_query_gets_almost_nothing_and_a_torn_one_very_much() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 64, 64, 64)
    query.requires_grad_()
    weights = (query @ key.mT).softmax(-1)
    (gradient,) = torch.autograd.grad(weights @ value, query, torch.randn(64, 64, 64))
    length, largest = gradient.norm(dim=-1), weights.amax(-1)
    sure, torn = length[largest > 0.999].median(), length[largest < 0.6].median()
    assert sure < 0.2
    assert torn > 10


def test_queries_ten_times_as_long_still_sum_to_one_and_look_at_one_token(result: Any) -> None:
    row = result("attention.ten_times_the_query").values
    assert row["sum"] == pytest.approx(1)
    assert row["third_to_itself"] > 0.99


@given(st.permutations(range(4)))
def test_shuffled_tokens_give_outputs_shuffled_the_same_way(order: list[int]) -> None:
    output, _ = scaled_dot_product_attention(FOUR, FOUR, FOUR)
    moved, _ = scaled_dot_product_attention(FOUR[order], FOUR[order], FOUR[order])
    assert torch.allclose(moved, output[order], atol=1e-6)
