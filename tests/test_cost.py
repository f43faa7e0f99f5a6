"""docs/cost.md: what a text twice as long costs, and how exact attention does without the matrix."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from executed import reference
from snippets.attention import scaled_dot_product_attention
from snippets.cost import attention_in_blocks, memory_of, queries_keys_values, stack


def test_the_score_matrix_has_the_published_sizes_and_grows_exactly_four_times(result: Any) -> None:
    scores = result("cost.score_matrix").values
    assert [round(size, 1) for size in scores["megabytes"]] == [1.0, 4.2, 16.8, 67.1, 268.4]
    assert all(later == 4 * earlier for earlier, later in zip(scores["bytes"], scores["bytes"][1:], strict=False))
    assert scores["growth"] == 4
    assert scores["input"] == 4096 * 64 * 4


def test_each_head_has_a_matrix_of_its_own() -> None:
    query, key, _ = queries_keys_values(10)
    assert (query @ key.mT).shape == (1, 4, 10, 10)
    assert query.size(1) * query.size(3) == 64


linux = pytest.mark.skipif(sys.platform != "linux", reason="other allocators, other peaks")


@linux
def test_the_measured_peak_counts_what_is_alive_at_once() -> None:
    def two_of_three(length: int) -> tuple[bytearray, bytearray]:
        first = bytearray(length * 10**6)
        second = bytearray(length * 10**6)
        del first
        return second, bytearray(length * 10**6)

    assert memory_of(lambda length: bytearray(length * 10**6), 80) == pytest.approx(80e6, abs=4e6)
    assert memory_of(two_of_three, 80) == pytest.approx(160e6, abs=4e6)


@linux
def test_by_hand_two_matrices_are_alive_and_the_library_holds_none(result: Any) -> None:
    peak = result("cost.peak_by_length").values
    assert peak["matrices"] == pytest.approx(2, abs=0.1)
    by_hand, sdpa, blocks = peak["growth"]
    assert by_hand == pytest.approx(4, abs=0.3)
    assert sdpa < 3
    assert blocks < 3
    assert peak["sdpa"] < peak["by_hand"] / 50
    assert peak["blocks"] < peak["by_hand"] / 20


def test_time_is_quadratic_for_all_and_near_four_times_at_the_long_end(result: Any) -> None:
    times = result("cost.times").values
    for name in ("milliseconds", "sdpa"):
        two_doublings = times[name][-1] / times[name][-3]
        assert 6 < two_doublings < 40
    assert times["faster"] > 1
    assert times["threads"] == 1
    assert times["processor"] in result("cost.times").text


@linux
def test_fresh_memory_costs_page_faults_and_kept_memory_does_not(result: Any) -> None:
    pages = result("cost.fresh_pages").values
    assert pages["fresh"][0] > 1000
    assert pages["kept"][0] < pages["fresh"][0] / 10


def test_in_the_article_every_doubling_took_a_little_less_than_four_times_as_long() -> None:
    published = {figure.id: figure.published for figure in reference.read(Path(__file__).parents[1])}
    for shorter, longer in itertools.pairwise(published["cost.milliseconds"]):
        assert 3 < longer / shorter < 4


@linux
def test_layers_multiply_the_peak_only_in_training(result: Any) -> None:
    peak = result("cost.layers_and_batch").values
    assert peak["inference_layers"] == pytest.approx(1, abs=0.1)
    assert 3 < peak["training_layers"] < 8
    assert 1 <= peak["each_layer"] < 1.3


@linux
def test_eight_sequences_take_eight_times_the_memory(result: Any) -> None:
    assert result("cost.layers_and_batch").values["batch"] == pytest.approx(8, abs=0.5)


def test_only_training_keeps_a_graph() -> None:
    assert stack(2, 1, True, 4).requires_grad
    assert not stack(2, 1, False, 4).requires_grad


def test_the_square_overtakes_the_rest_of_a_block_at_six_times_the_width(result: Any) -> None:
    share = result("cost.share_of_a_block").values
    length, d = share["equal_768"], 768
    assert 2 * length**2 * d == 4 * d**2 * length + 8 * d**2 * length
    assert share["at_512"] <= 0.1


@st.composite
def inputs_in_blocks(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Queries, keys and values of any number, scale and width, and a size of block."""
    torch.manual_seed(draw(st.integers(0, 2**16)))
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    queries, keys, d_k = (draw(st.integers(1, 20)) for _ in range(3))
    scale = draw(st.sampled_from([0.1, 1.0, 30.0]))
    query = scale * torch.randn(*leading, queries, d_k, dtype=torch.float64)
    key, value = torch.randn(2, *leading, keys, d_k, dtype=torch.float64)
    return query, key, value, draw(st.integers(1, 25))


@given(inputs_in_blocks())
@settings(deadline=None)
def test_attention_in_blocks_is_exact_for_any_block(drawn: Any) -> None:
    query, key, value, block = drawn
    blocks = attention_in_blocks(query, key, value, block)
    full, _ = scaled_dot_product_attention(query, key, value)
    assert torch.allclose(blocks, full, atol=1e-12)
    assert torch.allclose(blocks, F.scaled_dot_product_attention(query, key, value), atol=1e-12)


def test_the_published_difference_is_rounding(result: Any) -> None:
    same = result("cost.same_answer").values
    assert same["single"] < 1e-5
    assert same["double"] < 1e-13


def test_after_two_keys_the_answer_is_that_of_two_and_after_four_it_is_exact(result: Any) -> None:
    two = result("cost.two_blocks").values
    scores, values = torch.tensor([1.0, 3.0]), torch.tensor([10.0, 20.0])
    assert two["answers"][0] == pytest.approx((scores.softmax(-1) @ values).item())
    assert two["answers"][1] == pytest.approx(two["full"])
    assert two["shrink"] == pytest.approx(torch.tensor(3.0 - 5.0).exp().item())


def test_scores_too_large_for_an_exponential_are_no_trouble_in_blocks() -> None:
    query = key = 100 * torch.eye(4)
    assert torch.isfinite(attention_in_blocks(query, key, torch.eye(4), 1)).all()


def test_sixty_five_thousand_tokens_are_four_doublings_from_the_table(result: Any) -> None:
    more = result("cost.one_more_doubling").values
    assert more["bytes"] == 4 * 4 * more["length"] ** 2
    assert more["factor"] == 4 ** more["doublings"]


def test_a_quarter_of_the_batch_has_the_same_scores_at_twice_the_length() -> None:
    assert 32 * 512**2 == 8 * 1024**2
    assert 8 * 1024 == 32 * 512 / 2
