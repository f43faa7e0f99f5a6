"""docs/why-attention.md: one step from any token to any other, what it gains and what it costs."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from snippets.multi_head import MultiHeadAttention
from snippets.why_attention import (
    LAYERS,
    LibraryAttention,
    forgetting_less,
    processor,
    reach,
    read_in_order,
    timed,
)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
@settings(deadline=None)
def test_the_loop_agrees_with_pytorchs_rnn(length: int, inputs: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    rnn, x = nn.RNN(inputs, width), torch.randn(length, inputs)
    assert torch.allclose(read_in_order(rnn, x), rnn(x)[0], atol=1e-5)


def test_the_published_loop_agrees_up_to_rounding(result: Any) -> None:
    assert result("why_attention.one_after_the_other").values["difference"] < 1e-6


def test_a_state_depends_on_every_token_before_it_and_on_none_after() -> None:
    torch.manual_seed(0)
    rnn, x = nn.RNN(4, 4), torch.randn(6, 4)
    before = read_in_order(rnn, x)
    x[2] += 1
    moved = (read_in_order(rnn, x) - before).abs().amax(-1) > 0
    assert moved.tolist() == [False, False, True, True, True, True]


def test_the_forget_gate_multiplies_the_cell_by_the_sigmoid_of_its_bias() -> None:
    lstm = forgetting_less(nn.LSTM(3, 3), 2.0)
    with torch.no_grad():
        w, u, bias, other = lstm.all_weights[0]
        w.zero_()
        u.zero_()
        bias[:3] = -100  # the input gate is shut: nothing is added
        other[:3] = 0
    _, (_, cell) = lstm(torch.zeros(1, 3), (torch.zeros(1, 3), torch.ones(1, 3)))
    assert cell.flatten().tolist() == pytest.approx([torch.tensor(2.0).sigmoid().item()] * 3)


def test_reach_is_the_gradient_at_each_distance_from_the_last_token() -> None:
    class Fading(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            powers = 0.5 ** torch.arange(x.size(1) - 1, -1, -1, dtype=x.dtype)
            return ((x * powers[:, None]).cumsum(1),)

    expected = 0.5 ** torch.arange(8, dtype=torch.float64)
    assert torch.allclose(reach(Fading(), 8, d_model=5), expected)


def test_attention_keeps_what_rnn_and_fresh_lstm_lose_in_every_seed(result: Any) -> None:
    values = result("why_attention.first_to_last").values
    assert values["seeds"] == 5
    assert values["rnn"][1] < 1e-30
    assert 1e-25 < values["lstm"][0] < values["lstm"][1] < 1e-19
    assert 1e-5 < values["lstm_bias"][0] < values["lstm_bias"][1] < 0.05
    assert 0.05 < values["attention"][0] < values["attention"][1] < 0.5
    assert values["lstm"][0] > values["half_to_the_99"]


def test_the_rnns_gradient_is_not_zero_but_its_square_is_in_float32(result: Any) -> None:
    left = result("why_attention.first_to_last").values["rnn"]
    assert left[0] > 0
    assert torch.tensor(left[1]).square() == 0
    assert torch.tensor(left[1]) > 0


def test_the_rnn_loses_about_half_at_each_step(result: Any) -> None:
    for curve in result("why_attention.first_to_last").values["curves"]["RNN"]:
        assert 0.35 < curve[-1] ** (1 / 99) < 0.6


def test_fresh_forget_gates_start_near_one_half() -> None:
    torch.manual_seed(0)
    _, _, one, two = nn.LSTM(64, 64).all_weights[0]
    assert (one + two)[64:128].sigmoid().mean().item() == pytest.approx(0.5, abs=0.03)


def test_distance_makes_no_difference_to_attention_after_the_last_token(result: Any) -> None:
    for ratio in result("why_attention.first_to_last").values["near_to_far"]:
        assert 0.75 < ratio < 1.3


def test_a_step_is_shared_with_all_tokens_about_one_over_t_each(result: Any) -> None:
    ten, hundred, thousand = result("why_attention.longer_sequences").values["left"]
    assert ten[0] > hundred[1]
    assert hundred[0] > thousand[1]
    assert thousand[1] > 0.5**99
    torch.manual_seed(0)
    for length in (10, 1000):
        _, weights = MultiHeadAttention(64, 4)(torch.randn(1, length, 64))
        assert weights.max() < 20 / length
        assert weights.mean().item() == pytest.approx(1 / length)


def test_a_query_that_points_at_one_key_gives_it_nearly_the_whole_row_at_any_distance() -> None:
    key = torch.eye(64)
    weights = (40 * key[0] @ key.T).softmax(-1)
    assert weights[0] > 0.999


@given(st.integers(1, 3), st.integers(1, 20), st.booleans())
@settings(deadline=None)
def test_the_timed_attention_is_the_one_of_the_book(batch: int, length: int, masked: bool) -> None:
    torch.manual_seed(length)
    ours = MultiHeadAttention(16, 4)
    theirs = LibraryAttention(16, 4)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(batch, length, 16)
    mask = torch.ones(length, length, dtype=torch.bool).tril() if masked else None
    assert torch.allclose(ours(x, mask)[0], theirs(x, mask)[0], atol=1e-5)


def test_attention_wins_when_short_and_loses_when_long(result: Any) -> None:
    race = result("why_attention.lstm_against_attention").values
    assert race["short"] > 1
    assert race["long"] > 1
    assert race["ends"][0] <= race["won"] < race["lost"] <= race["ends"][1]  # the lines cross once


def test_at_the_long_end_attention_grows_faster_than_the_lstm(result: Any) -> None:
    race = result("why_attention.lstm_against_attention").values
    lstm, attention = (row[-1] / row[-3] for row in race["medians"])  # two doublings
    assert attention > lstm
    assert attention > 8
    lstm, attention = race["growth"]  # the last one
    assert attention > lstm


def test_the_time_names_its_machine_and_threads(result: Any) -> None:
    race = result("why_attention.lstm_against_attention")
    assert race.values["processor"] in race.text
    assert race.values["threads"] == 1
    assert processor()


def test_a_timing_warms_up_and_repeats() -> None:
    calls = itertools.count()
    runs = timed(lambda: next(calls), repeats=5)
    assert next(calls) == 7
    assert runs.tolist() == sorted(runs.tolist())


def test_multiplications_are_equal_at_twice_the_width(result: Any) -> None:
    work = result("why_attention.work_and_waiting").values
    d, length = work["d"], work["equal"]
    assert 8 * d**2 * length == 4 * d**2 * length + 2 * length**2 * d
    assert work["times"] == pytest.approx(1 / 2 + work["longest"] / (4 * d))
    assert sum(matrix.numel() for matrix in nn.LSTM(d, d).all_weights[0][:2]) == 8 * d**2
    products = [layer for layer in MultiHeadAttention(d, 4).modules() if isinstance(layer, nn.Linear)]
    assert sum(layer.weight.numel() for layer in products) == 4 * d**2


def test_the_gap_doubles_each_time_the_text_does() -> None:
    ratio = [1 / 2 + length / 256 for length in (4096, 8192)]
    assert ratio[1] / ratio[0] == pytest.approx(2, rel=0.05)


def test_a_gate_open_enough_brings_the_gradient_to_the_first_token(result: Any) -> None:
    half = result("why_attention.half_after_a_hundred").values
    assert half["keep"] ** 99 == pytest.approx(0.5)
    assert 1 / (1 + math.exp(-half["bias"])) == pytest.approx(half["keep"], abs=1e-5)
    assert 0.5 < half["left"][0] < half["left"][1] < 10


def test_the_four_layers_have_the_same_width() -> None:
    for build in LAYERS.values():
        assert build()(torch.randn(1, 3, 64))[0].shape == (1, 3, 64)
