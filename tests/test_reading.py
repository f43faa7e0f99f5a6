"""docs/reading.md: what the attention of trained sorters shows, and what is left of it when it is tested."""

import itertools
import math
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.multi_head import MultiHeadAttention
from snippets.reading import (
    Meddled,
    gradient_sizes,
    kendall,
    leave_one_out,
    level,
    look,
    meddle,
    near_target,
    share_on_target,
    shuffle_keys,
    swap_rows,
    top_digit,
)
from snippets.sorting import BETTER, Sorter, sample

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 8))
seeds = st.integers(0, 2**16)


def weights_of(shape: tuple[int, int, int]) -> torch.Tensor:
    """Random attention weights, (batch, heads, T, T)."""
    batch, heads, length = shape
    return torch.rand(batch, heads, length, length).softmax(dim=-1)


# One input


def test_the_published_input_is_sorted_and_most_rows_look_at_what_they_write(result: Any) -> None:
    values = result("reading.one_input").values
    assert values["digits"] == [7, 2, 9, 2, 5, 0, 8, 3]
    assert values["written"] == [0, 2, 2, 3, 5, 7, 8, 9]
    assert values["rows"] == 8
    assert values["hits"] + values["misses"] == 8
    assert values["hits"] == sum(a == b for a, b in zip(values["looked"], values["written"], strict=True)) >= 5
    assert values["row_sums"] == pytest.approx([1] * 8, abs=1e-5)


def test_each_row_looks_most_at_its_value_or_a_neighbour_in_sorted_order(result: Any) -> None:
    assert result("reading.one_input").values["near"] is True


def test_the_map_frames_each_column_that_holds_the_value(result: Any) -> None:
    assert result("reading.heat_map").values["framed"] == 10  # six digits once, and the 2 twice in two rows
    (figure,) = result("reading.heat_map").figures
    assert "digit that the row must write" in figure


# Thousands of inputs


def test_the_measure_counts_rows_whose_top_key_holds_the_target() -> None:
    digits = torch.tensor([[3, 1, 2]])
    weights = torch.tensor([[[0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]]])
    assert top_digit(weights, digits).tolist() == [[1, 2, 1]]
    assert share_on_target(weights, digits).item() == pytest.approx(2 / 3)
    assert near_target(weights, digits).tolist() == [[True, True, False]]


def test_the_top_key_holds_the_target_far_more_often_than_chance_in_every_seed(result: Any) -> None:
    values = result("reading.over_thousands").values
    assert values["chance"] == pytest.approx(0.2125)
    assert values["inputs"] == 5000
    assert values["mended"][0] > 2.5 * values["chance"]
    assert values["published"][0] > 1.3 * values["chance"]
    assert values["published"][1] < values["mended"][0]


def test_in_untrained_models_it_is_at_or_below_chance(result: Any) -> None:
    values = result("reading.over_thousands").values
    assert values["untrained"][1] < values["chance"] + 0.02


def test_with_neighbours_counted_an_untrained_model_reaches_more_too(result: Any) -> None:
    values = result("reading.over_thousands").values
    assert values["near"]["mended"][0] > values["mended"][0]
    assert values["near"]["untrained"][1] > values["untrained"][1]
    assert values["near"]["mended"][0] > 1.5 * values["near"]["untrained"][1]


def test_a_random_key_or_an_untrained_model_often_hits_a_neighbour(result: Any) -> None:
    values = result("reading.with_neighbours").values
    near = result("reading.over_thousands").values["near"]
    assert {name: values[name] for name in near} == near
    torch.manual_seed(1)  # chance once more, by another way: a random digit of the input
    digits, ordered = sample(20_000)
    looked = digits.gather(1, torch.randint(8, digits.shape))
    places = torch.arange(8)
    hits = [looked == ordered[:, (places + step).clamp(0, 7)] for step in (-1, 0, 1)]
    assert values["chance"] == pytest.approx(torch.stack(hits).any(dim=0).float().mean().item(), abs=0.01)
    assert values["chance"] > 1.5 * result("reading.over_thousands").values["chance"]
    assert values["untrained"][1] < values["chance"] + 0.05
    assert values["mended"][0] > 1.8 * values["chance"]


def test_rows_that_look_elsewhere_are_right_as_well(result: Any) -> None:
    values = result("reading.when_it_looks_elsewhere").values
    assert values["rows"] > 1000
    assert values["right"][0] > 0.99


# Head by head


def test_the_heads_of_layer_one_are_nearly_even_and_those_of_layer_two_choose(result: Any) -> None:
    values = result("reading.every_head").values
    first, second = values["mean_entropy"]
    assert values["layer1"] == [min(first), max(first)]
    assert values["layer2"] == [min(second), max(second)]
    assert min(first) > 0.95 * values["uniform"]
    assert max(second) < 0.8 * values["uniform"]
    assert values["uniform"] == pytest.approx(math.log(8))


def test_the_maps_of_the_heads_are_of_the_first_input_and_their_mean_is_the_map_above(result: Any) -> None:
    values, one = result("reading.every_head").values, result("reading.one_input").values
    assert values["tokens"] == [str(digit) for digit in one["digits"]]
    assert values["writes"] == [str(digit) for digit in one["written"]]
    heads = torch.tensor(values["weights"])  # (layers, heads, T, T)
    assert heads.shape == (2, 4, 8, 8)
    torch.testing.assert_close(heads[1].mean(dim=0), torch.tensor(one["weights"]), atol=1e-6, rtol=0)
    torch.testing.assert_close(torch.tensor(values["mean"]["weights"])[:, 0], heads.mean(dim=1), atol=1e-6, rtol=0)
    (figure,) = result("reading.every_head").figures
    words = set(re.findall(r">([^<>]+)</text>", figure))
    assert {"layer 1", "layer 2", *(f"head {head}" for head in range(1, 5))} <= words


def test_no_two_heads_of_layer_two_are_alike(result: Any) -> None:
    second = torch.tensor(result("reading.every_head").values["weights"])[1]  # (heads, T, T)
    for a, b in itertools.combinations(second, 2):
        assert (a - b).abs().sum(dim=-1).mean() / 2 > 0.2  # total variation, mean over rows


def test_the_heads_of_layer_two_look_at_the_target_and_those_of_layer_one_mostly_do_not(result: Any) -> None:
    values = result("reading.head_by_head").values
    assert values["best"][0] > 0.5
    assert values["best"][0] > values["layer1_best"]
    assert values["worst"][0] < values["best"][1]


# Meddle with it


@settings(deadline=None)
@given(shapes, seeds)
def test_meddled_weights_are_still_weights(shape: tuple[int, int, int], seed: int) -> None:
    torch.manual_seed(seed)
    weights = weights_of(shape)
    for change in (shuffle_keys, swap_rows, level):
        changed = change(weights)
        assert changed.shape == weights.shape
        torch.testing.assert_close(changed.sum(dim=-1), torch.ones(weights.shape[:-1]))
    torch.testing.assert_close(shuffle_keys(weights).sort(dim=-1).values, weights.sort(dim=-1).values)
    torch.testing.assert_close(swap_rows(weights).sum(dim=-2), weights.sum(dim=-2))


@settings(deadline=None)
@given(shapes, seeds)
def test_without_a_change_the_meddled_layer_is_the_trained_one(shape: tuple[int, int, int], seed: int) -> None:
    torch.manual_seed(seed)
    batch, heads, length = shape
    attention = MultiHeadAttention(8 * heads, heads).double()
    same = Meddled(attention, lambda weights: weights).double()
    x = torch.randn(batch, length, 8 * heads, dtype=torch.float64)
    for ours, theirs in zip(same(x), attention(x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_meddling_leaves_the_trained_model_as_it_was() -> None:
    torch.manual_seed(0)
    model, (digits, _) = Sorter(BETTER), sample(4)
    before = model(digits)[0]
    after = meddle(model, 1, level)(digits)[0]
    assert torch.equal(model(digits)[0], before)
    assert not torch.allclose(after, before)


def test_layer_one_can_be_shuffled_or_levelled_and_most_digits_survive(result: Any) -> None:
    values = result("reading.meddling").values
    assert values["shuffle_keys"][0][0] > 0.6
    assert values["level"][0][0] > 0.6


def test_layer_two_cannot_but_far_more_than_a_tenth_survives(result: Any) -> None:
    values = result("reading.meddling").values
    assert values["shuffle_keys"][1][1] < values["shuffle_keys"][0][0]
    assert values["shuffle_keys"][1][0] > 0.2


def test_after_a_shuffle_some_rows_follow_the_weights_and_some_stay_right(result: Any) -> None:
    values = result("reading.follow_the_weights").values
    assert 0.2 < values["follows"][0] <= values["follows"][1] < 0.9
    assert 0.1 < values["stays"][0] <= values["stays"][1] < 0.7


# Three rankings


@settings(deadline=None)
@given(st.permutations(range(7)))
def test_kendalls_tau_counts_pairs(order: list[int]) -> None:
    a, b = torch.arange(7.0), torch.tensor(order).float()
    pairs = [(i, j) for i in range(7) for j in range(i)]
    expected = sum(1 if order[i] > order[j] else -1 for i, j in pairs) / len(pairs)
    assert kendall(a, b).item() == pytest.approx(expected)
    assert kendall(b, b).item() == 1
    assert kendall(b, -b).item() == -1


def test_the_gradient_is_that_of_the_written_digits_score() -> None:
    torch.manual_seed(0)
    model, (digits, _) = Sorter(BETTER).double(), sample(2)
    sizes = gradient_sizes(model, digits)
    assert sizes.shape == (2, 8, 8)
    row, token, eps = 3, 5, 1e-6
    scores = model(digits)[0]
    best = scores[0, row].argmax()
    places, slope = model.get_buffer("places"), []
    for dimension in range(64):  # a token's vector moves as its place does
        with torch.no_grad():
            places[token, dimension] += eps
            slope.append(((model(digits)[0] - scores)[0, row, best] / eps).item())
            places[token, dimension] -= eps
    assert sizes[0, row, token].item() == pytest.approx(torch.tensor(slope).norm().item(), rel=1e-3)


def test_leave_one_out_hides_a_token_from_all_the_others() -> None:
    torch.manual_seed(0)
    model, (digits, _) = Sorter(BETTER), sample(2)
    other = digits.clone()
    other[:, 5] = (other[:, 5] + 1) % 10
    keep = torch.arange(8) != 5
    with torch.no_grad():
        moved = (model(digits, keep)[0] - model(other, keep)[0]).abs().amax(dim=-1)
    assert moved[:, torch.arange(8) != 5].max() == 0  # nobody notices a change of the hidden token
    left_out = leave_one_out(model, digits)
    assert left_out.shape == (2, 8, 8)
    assert (left_out >= 0).all()
    assert (left_out <= 1).all()


def test_all_three_are_highest_where_the_value_stands(result: Any) -> None:
    values = result("reading.one_row_three_ways").values
    assert values["writes"] == 5
    for shares in values["shares"].values():
        assert shares.index(max(shares)) == 4  # the 5 in 7 2 9 2 5 0 8 3
        assert sum(shares) == pytest.approx(1)


def test_the_nine_matters_without_being_looked_at(result: Any) -> None:
    values = result("reading.one_row_three_ways").values
    assert values["attention"][1] < 1 / 8
    assert values["left_out"][0] > 1.5 * values["attention"][1]


def test_the_three_rankings_agree_only_in_part(result: Any) -> None:
    values = result("reading.three_rankings").values
    for low, high in values.values():
        assert -0.1 < low <= high < 0.8
    assert values["attention_gradient"][0] > values["attention_left_out"][0]


# Could it have been otherwise?


def test_a_sorter_that_cannot_choose_where_to_look_sorts_as_well(result: Any) -> None:
    values = result("reading.without_looking").values
    assert values["range"][0] > 0.98


def test_its_weights_are_all_one_eighth() -> None:
    torch.manual_seed(0)
    model = meddle(meddle(Sorter(BETTER), 0, level), 1, level)
    _, weights = look(model, sample(3)[0])
    assert all((layer == 1 / 8).all() for layer in weights)


# Check yourself


def test_chance_is_a_fifth(result: Any) -> None:
    values = result("reading.chance_by_hand").values
    assert values["derived"] == pytest.approx(0.2125)
    assert values["counted"] == pytest.approx(values["derived"], abs=0.003)
