"""docs/positions.md: every sentence that states a fact, held against what the examples really did."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from snippets.masks import causal_mask
from snippets.multi_head import MultiHeadAttention
from snippets.positions import Blind, rotate, rotation, sinusoids

widths = st.sampled_from([2, 4, 16, 32, 64])


# A set, not a sequence


def test_dog_is_the_same_vector_whether_it_bites_or_is_bitten(result: Any) -> None:
    values = result("positions.dog_bites_man").values
    assert len(values["moved"]) == 3
    assert max(values["moved"]) == values["largest"] < 1e-6


def test_shuffling_the_tokens_shuffles_the_outputs_and_nothing_else(result: Any) -> None:
    values = result("positions.shuffle_without").values
    assert values["equal"] is True
    assert values["difference"] < 1e-6
    assert values["size"] > 0.1


def test_but_not_bit_for_bit(result: Any) -> None:
    assert result("positions.shuffle_without").values["bit_for_bit"] is False


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.integers(1, 20), st.sampled_from([1, 2, 4]), st.integers(0, 2**31))
def test_without_positions_attention_is_permutation_equivariant(batch: int, length: int, heads: int, seed: int) -> None:
    torch.manual_seed(seed)
    attention = MultiHeadAttention(16, heads).double()
    x = torch.randn(batch, length, 16, dtype=torch.float64)
    order = torch.randperm(length)
    torch.testing.assert_close(attention(x[:, order])[0], attention(x)[0][:, order])


def test_the_librarys_attention_is_permutation_equivariant_too() -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, 4, batch_first=True).double()
    x = torch.randn(2, 10, 16, dtype=torch.float64)
    order = torch.randperm(10)
    shuffled = x[:, order]
    torch.testing.assert_close(layer(shuffled, shuffled, shuffled)[0], layer(x, x, x)[0][:, order])


# Say where each token stands


@settings(deadline=None)
@given(st.integers(1, 200), widths)
def test_the_sinusoids_are_the_formula(length: int, d_model: int) -> None:
    encoding = sinusoids(length, d_model)
    assert encoding.shape == (length, d_model)
    for p in {0, length // 2, length - 1}:
        for i in range(d_model // 2):
            angle = p / 10_000 ** (2 * i / d_model)
            assert encoding[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-4)
            assert encoding[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-4)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="33 is odd"):
        sinusoids(4, 33)


def test_with_sinusoids_order_matters(result: Any) -> None:
    values = result("positions.shuffle_with_sinusoids").values
    assert values["equal"] is False
    assert values["difference"] > 0.01


# A row of clocks


def test_the_first_rows_are_the_published_ones(result: Any) -> None:
    values = result("positions.first_rows").values
    assert values["pe0"] == [0, 1, 0, 1, 0, 1]
    assert [round(v, 3) for v in values["pe1"]] == [0.841, 0.54, 0.533, 0.846, 0.311, 0.95]


def test_after_one_step_the_first_pair_has_moved_furthest(result: Any) -> None:
    values = result("positions.first_rows").values
    zero, one = torch.tensor(values["pe0"]), torch.tensor(values["pe1"])
    first, second, third = (one - zero).unflatten(0, (3, 2)).norm(dim=-1).tolist()
    assert first > second > third
    assert first > 2 * third


def test_the_clocks_run_from_six_positions_to_tens_of_thousands(result: Any) -> None:
    values = result("positions.sinusoid_map").values
    assert values["fastest"] == pytest.approx(2 * math.pi)
    assert values["slowest"] == pytest.approx(2 * math.pi * 10_000 ** (30 / 32))
    assert values["length"] == 64


def test_the_slow_columns_hardly_move_over_the_map() -> None:
    encoding = sinusoids(64, 32)
    travel = encoding.max(dim=0).values - encoding.min(dim=0).values
    assert travel[:2].min() > 1.9
    assert travel[-2:].max() < 0.02


def test_the_map_names_its_axes(result: Any) -> None:
    (figure,) = result("positions.sinusoid_map").figures
    assert "position" in figure
    assert "dimension" in figure


# A step is a rotation


@settings(deadline=None)
@given(st.integers(-50, 50), st.integers(0, 100), widths)
def test_one_matrix_moves_every_position_on(steps: int, p: int, d_model: int) -> None:
    encoding = sinusoids(201, d_model)
    p += 50
    torch.testing.assert_close(rotation(steps, d_model) @ encoding[p], encoding[p + steps], atol=1e-4, rtol=0)


@given(st.integers(-50, 50), widths)
@settings(deadline=None)
def test_the_matrix_is_a_rotation(steps: int, d_model: int) -> None:
    matrix = rotation(steps, d_model)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(d_model))
    assert torch.linalg.det(matrix).item() == pytest.approx(1, abs=1e-4)


def test_the_difference_of_the_rotation_is_rounding(result: Any) -> None:
    values = result("positions.fixed_rotation").values
    assert values["difference"] < 1e-4


def test_the_dot_product_knows_only_the_distance(result: Any) -> None:
    values = result("positions.dot_products").values
    assert values["spread"] < 1e-3
    for distance in (-60, -7, 0, 1, 33):
        expected = sum(math.cos(distance / 10_000 ** (2 * i / 32)) for i in range(16))
        assert values["curve"][60 + distance] == pytest.approx(expected, abs=1e-3)


def test_the_dot_product_is_the_same_to_the_left_and_to_the_right(result: Any) -> None:
    assert result("positions.dot_products").values["asymmetry"] < 1e-3


def test_the_dot_product_falls_near_the_middle_but_not_everywhere(result: Any) -> None:
    values = result("positions.dot_products").values
    outwards = values["curve"][60:]
    assert outwards[0] > outwards[1] > outwards[2] > outwards[3]
    assert max(outwards) == outwards[0]
    assert 15 <= values["rises"] <= 45
    assert values["steps"] == 60


def test_after_two_learned_matrices_the_score_depends_on_the_place(result: Any) -> None:
    values = result("positions.after_projection").values
    assert values["highest"] - values["lowest"] > 1


# Learn them instead


def test_a_table_has_a_last_row(result: Any) -> None:
    assert "IndexError" in result("positions.past_the_table").text


def test_bert_roberta_and_gpt2_have_tables_of_positions() -> None:
    import transformers as hf

    small: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32}
    small |= {"num_hidden_layers": 1, "num_attention_heads": 2}
    bert = hf.BertModel(hf.BertConfig(**small, max_position_embeddings=70))
    roberta = hf.RobertaModel(hf.RobertaConfig(**small, max_position_embeddings=70))
    gpt2 = hf.GPT2Model(hf.GPT2Config(**small, n_positions=70, bos_token_id=0, eos_token_id=0))
    tables = [bert.embeddings.position_embeddings, roberta.embeddings.position_embeddings, gpt2.wpe]
    assert all(isinstance(table, nn.Embedding) for table in tables)
    assert [table.num_embeddings for table in tables] == [70, 70, 70]


# Turn the query and the key


def test_rope_scores_stay_when_the_sentence_moves(result: Any) -> None:
    values = result("positions.rope_scores").values
    assert values["moved"] < 1e-10
    assert values["turned"] > 1


@settings(deadline=None)
@given(st.integers(0, 5000), st.integers(1, 8), widths, st.integers(0, 2**31))
def test_rope_scores_depend_on_the_distance_for_every_query_and_key(first: int, length: int, d: int, seed: int) -> None:
    query, key = torch.randn(2, length, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    here = rotate(query) @ rotate(key).T
    there = rotate(query, first) @ rotate(key, first).T
    torch.testing.assert_close(here, there, atol=1e-9, rtol=0)


@given(st.integers(1, 50), widths)
@settings(deadline=None)
def test_rope_turns_and_does_not_stretch(length: int, d: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, length, d)
    torch.testing.assert_close(rotate(x).norm(dim=-1), x.norm(dim=-1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(rotate(x)[:, 0], x[:, 0])  # position zero turns nothing


# Longer than anything in training


def test_all_three_learn_the_task_inside_the_trained_length(result: Any) -> None:
    accuracy = result("positions.longer_than_trained").values["accuracy"]
    assert all(accuracy[name]["trained"] > 0.85 for name in ("learned", "sinusoids", "rope"))


def test_learned_positions_fall_to_chance_at_the_first_new_place(result: Any) -> None:
    values = result("positions.longer_than_trained").values
    assert values["chance"] == 0.1
    assert values["accuracy"]["learned"]["first_new"] < 0.3
    assert values["accuracy"]["learned"]["beyond"] < 0.2


def test_sinusoids_fall_to_chance_soon_after(result: Any) -> None:
    accuracy = result("positions.longer_than_trained").values["accuracy"]
    assert accuracy["sinusoids"]["first_new"] > 0.5
    assert accuracy["sinusoids"]["beyond"] < 0.2


def test_rope_goes_on_past_the_trained_length_with_a_slow_decline(result: Any) -> None:
    accuracy = result("positions.longer_than_trained").values["accuracy"]
    assert accuracy["rope"]["first_new"] > 0.95
    assert 0.7 < accuracy["rope"]["beyond_low"] <= accuracy["rope"]["beyond"] < 1


def test_no_gradient_reaches_the_rows_of_places_that_were_not_in_training() -> None:
    from snippets.positions import CopyPrevious

    model = CopyPrevious("learned")
    model(torch.randint(10, (4, 16))).sum().backward()
    assert model.table.weight.grad is not None
    assert torch.count_nonzero(model.table.weight.grad[16:]) == 0
    assert torch.count_nonzero(model.table.weight.grad[:16]) > 0


# The mask tells, too


def test_a_marked_first_token_is_diluted_to_one_over_n(result: Any) -> None:
    values = result("positions.marked_first_token").values
    assert values["inverse"] == pytest.approx([1, 2, 3, 4, 5, 6], abs=1e-4)
    assert values["output"] == pytest.approx([1 / n for n in range(1, 7)], abs=1e-6)


def test_the_probe_reads_positions_under_a_causal_mask_only(result: Any) -> None:
    values = result("positions.mask_leaks_position").values
    assert 0.1 < values["explained"]["causal"][0] < values["explained"]["causal"][1] < 0.7
    assert values["explained"]["none"][1] < 0.01
    assert max(values["read"]["none"]) - min(values["read"]["none"]) < 1  # a flat line


def test_the_probe_knows_the_early_positions_better_than_the_late_ones(result: Any) -> None:
    read = result("positions.mask_leaks_position").values["read"]["causal"]
    assert read[8] - read[0] > 3 * abs(read[31] - read[23])


def test_without_a_mask_the_untrained_layers_are_equivariant_and_with_one_they_are_not() -> None:
    torch.manual_seed(0)
    model = Blind().double()
    digits = torch.randint(10, (2, 12))
    order = torch.randperm(12)
    torch.testing.assert_close(model(digits[:, order], None), model(digits, None)[:, order])
    mask = causal_mask(12)
    moved = model(digits[:, order], mask) - model(digits, mask)[:, order]
    assert moved.abs().max() > 0.01


# Check yourself


def test_the_same_word_twice_gets_the_same_output(result: Any) -> None:
    assert result("positions.twins").values["difference"] < 1e-6


def test_the_closest_encoding_is_the_neighbour(result: Any) -> None:
    values = result("positions.nearest_twin").values
    assert values["closest"] == 1
    assert values["distance"] > 1
    assert F.pairwise_distance(*sinusoids(500, 32)[[200, 201]]).item() == pytest.approx(values["distance"], abs=1e-3)
