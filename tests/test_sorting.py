"""docs/sorting.md: an encoder block, the sorter made of two, its limit without positions, and a better recipe."""

import base64
import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from snippets.positions import sinusoids
from snippets.sorting import (
    BETTER,
    EncoderBlock,
    Recipe,
    Sorter,
    mean_interval,
    sample,
    scores_of,
    sorting_loss,
    train,
    wilson,
)


def library_block(block: EncoderBlock) -> nn.TransformerEncoderLayer:
    """PyTorch's own encoder layer with the same weights."""
    d_model, heads = block.attention.output.in_features, block.attention.heads
    theirs = nn.TransformerEncoderLayer(
        d_model, heads, 4 * d_model, dropout=0, activation="gelu", batch_first=True, norm_first=not block.norm_last
    ).double()
    with torch.no_grad():
        inputs = [block.attention.query, block.attention.key, block.attention.value]
        theirs.self_attn.in_proj_weight.copy_(torch.cat([layer.weight for layer in inputs]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([layer.bias for layer in inputs]))
        theirs.self_attn.out_proj.load_state_dict(block.attention.output.state_dict())
        theirs.linear1.load_state_dict(block.feed_forward[0].state_dict())
        theirs.linear2.load_state_dict(block.feed_forward[2].state_dict())
        theirs.norm1.load_state_dict(block.norm1.state_dict())
        theirs.norm2.load_state_dict(block.norm2.state_dict())
    return theirs


# The encoder block


@settings(deadline=None, max_examples=40)
@given(
    heads=st.sampled_from([1, 2, 4]),
    batch=st.integers(1, 3),
    length=st.integers(1, 9),
    norm_last=st.booleans(),
    masked=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_the_block_is_the_librarys_encoder_layer(
    heads: int, batch: int, length: int, norm_last: bool, masked: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    block = EncoderBlock(16, heads, norm_last).double()
    for norm in (block.norm1, block.norm2):  # as after training: neither one nor zero
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(batch, length, 16, dtype=torch.float64)
    keep = (torch.rand(length, length) < 0.5) | torch.eye(length, dtype=torch.bool)
    ours, weights = block(x, keep if masked else None)
    theirs = library_block(block)(x, src_mask=~keep if masked else None)
    torch.testing.assert_close(ours, theirs)
    assert ours.shape == x.shape
    assert weights.shape == (batch, heads, length, length)


def test_attention_moves_every_place_and_the_feed_forward_net_only_the_one_that_changed(result: Any) -> None:
    values = result("sorting.who_hears_whom").values
    assert values["by_attention"] == 8
    assert values["by_feed_forward"] == 1
    assert values["places"] == [2]


def test_fixed_mixing_is_linear_and_the_feed_forward_net_is_not(result: Any) -> None:
    values = result("sorting.a_mean_is_not_enough").values
    assert values["mixing"] < 1e-5
    assert values["feed_forward"] > 0.05


# LayerNorm first, or last


def test_the_pre_ln_gradient_falls_with_the_root_of_the_depth_and_the_post_ln_gradient_does_not(result: Any) -> None:
    values = result("sorting.norm_first_or_last").values
    assert values["root"] == 4
    assert 2.5 < values["pre"] < 5
    assert values["post"] < 1.2
    post, pre = torch.tensor(values["norms"])  # (seeds, depths) each
    assert pre[:, -1].max() < post[:, -1].min()
    assert (pre.mean(dim=0).diff() < 0).all()


def test_gpt2_is_pre_ln_and_bert_and_phoberts_roberta_are_post_ln() -> None:
    import transformers as hf

    torch.manual_seed(0)
    x = 5 + 3 * torch.randn(1, 6, 16)
    small: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    small |= {"num_attention_heads": 2}

    def leaves_a_norm(layer: nn.Module) -> bool:
        layer.eval()
        output = layer(x)
        output = output[0] if isinstance(output, tuple) else output
        return torch.allclose(output, F.layer_norm(output, (16,)), atol=1e-3)

    assert leaves_a_norm(hf.BertModel(hf.BertConfig(**small)).encoder.layer[0])
    assert leaves_a_norm(hf.RobertaModel(hf.RobertaConfig(**small)).encoder.layer[0])
    gpt2 = hf.GPT2Model(hf.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))
    assert not leaves_a_norm(gpt2.h[0])


# The sorter


def test_the_task_is_to_sort(result: Any) -> None:
    for line in result("sorting.the_task").text.strip().splitlines():
        before, after = (side.split() for side in line.split("->"))
        assert sorted(before) == after
        assert len(after) == 8


def test_the_parameters_add_up_block_by_block(result: Any) -> None:
    count = result("sorting.parameter_count").values
    assert count["attention"] == 4 * (64 * 64 + 64)
    assert count["feed_forward"] == 64 * 256 + 256 + 256 * 64 + 64
    assert count["block"] == count["attention"] + count["feed_forward"] + count["norms"] == 49_984
    assert (count["embedding"], count["head"]) == (640, 650)
    assert count["all"] == 640 + 2 * 49_984 + 650 == 101_258
    assert count["share"] == pytest.approx(2 / 3, abs=0.01)


def test_with_and_without_positions_the_sorter_has_the_same_parameters() -> None:
    with_, without = (Sorter(Recipe(positions=flag)) for flag in (True, False))
    shapes = [[tuple(p.shape) for p in model.parameters()] for model in (with_, without)]
    assert shapes[0] == shapes[1]
    assert torch.equal(with_.get_buffer("places"), sinusoids(8, 64))
    assert torch.count_nonzero(without.get_buffer("places")) == 0


def test_adamw_without_decay_is_adam() -> None:
    recipe = Recipe(steps=5)
    _, losses = train(recipe, seed=3)
    torch.manual_seed(3)
    model = Sorter(recipe)
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    for expected in losses.tolist():
        loss = sorting_loss(model, *sample(128))
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_the_first_losses_are_the_published_ones(result: Any) -> None:
    assert result("sorting.with_positions").values["shown"][0] == pytest.approx(9.5350, abs=0.01)
    assert result("sorting.without_positions").values["shown"][0] == pytest.approx(9.4835, abs=0.01)


def test_the_published_accuracy_lies_inside_our_range_over_seeds(result: Any) -> None:
    values = result("sorting.with_positions").values
    assert len(values["sequences"]) == 5
    assert values["range"][0] < 0.988 < values["range"][1]
    assert values["places_range"][0] < 0.998 < values["places_range"][1]


def test_a_training_run_meets_a_small_part_of_all_inputs(result: Any) -> None:
    values = result("sorting.share_of_all_inputs").values
    assert values["drawn"] == 1500 * 128
    assert values["share"] < 0.002


# Without positions


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**16))
def test_without_positions_shuffled_digits_give_shuffled_outputs(seed: int) -> None:
    torch.manual_seed(seed)
    model = Sorter(Recipe(positions=False)).double()
    digits, _ = sample(4)
    order = torch.randperm(8)
    torch.testing.assert_close(model(digits[:, order])[0], model(digits)[0][:, order])


def test_the_blind_sorter_gets_no_whole_sequence_and_three_digits_in_ten(result: Any) -> None:
    values = result("sorting.without_positions").values
    assert values["sequences"] == [0.0] * 5
    assert all(share == pytest.approx(0.301, abs=0.02) for share in values["places"])


def test_the_limit_is_what_brute_force_finds_for_short_sequences() -> None:
    """The formula on 3 digits of 4, against all 64 inputs and the best table of answers that sees no order."""
    answers: dict[tuple[int, ...], list[int]] = {}
    for digits in itertools.product(range(4), repeat=3):
        ordered = sorted(digits)
        answers.setdefault(tuple(ordered), []).extend(ordered)  # every place of every order
    loss, right = 0.0, 0
    for seen in answers.values():
        counts = [seen.count(v) for v in set(seen)]
        loss -= sum(n * math.log(n / len(seen)) for n in counts)
        right += max(counts)
    formula_loss, formula_right = 0.0, 0.0
    for digits in itertools.combinations_with_replacement(range(4), 3):
        counts = [digits.count(v) for v in set(digits)]
        probability = math.factorial(3) / math.prod(map(math.factorial, counts)) / 4**3
        formula_loss -= probability * sum(n / 3 * math.log(n / 3) for n in counts)
        formula_right += probability * max(counts) / 3
    assert loss / (64 * 3) == pytest.approx(formula_loss)
    assert right / (64 * 3) == pytest.approx(formula_right)


def test_the_blind_limit_is_exact(result: Any) -> None:
    values = result("sorting.blind_limit").values
    assert values["multisets"] == math.comb(17, 8)
    assert values["loss"] == pytest.approx(1.6491, abs=5e-5)
    assert values["accuracy"] == pytest.approx(0.29991, abs=1e-5)
    torch.manual_seed(0)  # a million inputs agree, within what counting allows
    counts = F.one_hot(torch.randint(10, (1_000_000, 8)), 10).sum(dim=1)
    assert counts.amax(dim=-1).double().mean().item() / 8 == pytest.approx(values["accuracy"], abs=5e-4)


def test_no_answer_beats_the_histogram() -> None:
    torch.manual_seed(0)
    histogram = F.one_hot(torch.randint(10, (500, 8)), 10).double().mean(dim=1)
    other = torch.rand(500, 10).double()
    other = 0.9 * histogram + 0.1 * other / other.sum(dim=-1, keepdim=True)
    entropy = -torch.special.xlogy(histogram, histogram).sum(dim=-1)
    assert (-torch.special.xlogy(histogram, other).sum(dim=-1) >= entropy - 1e-12).all()


def test_the_blind_models_end_just_above_the_limit_and_the_others_far_below(result: Any) -> None:
    values = result("sorting.loss_curves").values
    assert 0 < values["above"][0] <= values["above"][1] < 0.08
    assert values["accuracy_gap"] < 0.01
    assert values["trained_below"] < 0.2 < result("sorting.blind_limit").values["loss"]
    for runs in (result(f"sorting.{name}").values for name in ("with_positions", "without_positions")):
        assert min(runs["first"]) > 4 * max(runs["end"])


def test_with_a_constant_learning_rate_the_loss_jumps_late_in_every_run(result: Any) -> None:
    assert result("sorting.loss_curves").values["spikes"][0] > 3


# What the first loss gives away


def test_the_first_loss_is_three_to_four_times_ln_10_over_the_five_seeds(result: Any) -> None:
    values = result("sorting.loss_curves").values
    assert values["ln_10"] == pytest.approx(math.log(10))
    assert values["times_ln_10"] == pytest.approx(4.14, abs=0.02)  # seed 0, the highest
    before = result("sorting.first_loss").values
    first = result("sorting.with_positions").values["first"]
    assert len(first) == 5
    assert before["scaled"] == pytest.approx([min(first), max(first)], rel=1e-4)
    assert before["times_ln_10"] == pytest.approx([loss / math.log(10) for loss in before["scaled"]])
    assert before["times_ln_10"][0] > 2.5


def test_without_the_factor_the_first_loss_is_near_ln_10(result: Any) -> None:
    values = result("sorting.first_loss").values
    assert 2.3 < values["plain"][0] < values["plain"][1] < 3
    assert values["scaled"][0] > 2.5 * math.log(10)
    assert values["spread_scaled"] > 5 * values["spread_plain"]


def test_pytorch_draws_an_embedding_with_variance_one() -> None:
    torch.manual_seed(0)
    assert nn.Embedding(1000, 64).weight.var().item() == pytest.approx(1, abs=0.02)


def test_the_positions_are_drowned(result: Any) -> None:
    values = result("sorting.drowned").values
    assert values["place"] == pytest.approx(math.sqrt(32))
    assert values["digit_scaled"] == pytest.approx(64, rel=0.1)
    assert values["scaled"] < 0.01
    assert values["plain"] > 0.25


def test_a_final_norm_mends_the_first_loss_and_not_the_slow_start(result: Any) -> None:
    values = result("sorting.which_of_two").values
    assert values["norm_first"] < 3
    assert values["no_factor"][1] < 0.2
    assert values["norm"][0] > 4 * values["no_factor"][1]
    assert values["published"][0] > 4 * values["no_factor"][1]


# A better recipe


def test_the_better_recipe_differs_as_the_chapter_says() -> None:
    assert not BETTER.scaled
    assert BETTER.final_norm
    assert BETTER.cosine
    assert BETTER.clip
    assert BETTER.weight_decay == 0.1
    assert BETTER.lr == 3 * Recipe().lr
    assert BETTER.steps == Recipe().steps == 1500


def test_the_better_recipe_sorts_at_least_999_sequences_in_a_thousand_in_every_seed(result: Any) -> None:
    values = result("sorting.better_recipe").values
    assert len(values["sequences"]) == 5
    assert values["range"][0] >= 0.999
    assert values["range"][0] > result("sorting.with_positions").values["range"][1]


def test_the_sorter_sorts_the_published_example(result: Any) -> None:
    values = result("sorting.sorts").values
    assert values["digits"] == [7, 2, 9, 2, 5, 0, 8, 3]
    assert values["written"] == [0, 2, 2, 3, 5, 7, 8, 9]


def test_the_intervals_are_those_of_the_textbook() -> None:
    mean, low, high = mean_interval([0.0, 1.0])  # resampled: 0, 1/2, 1/2, 1
    assert (mean, low, high) == pytest.approx((0.5, 0.0375, 0.9625))
    seeds = [0.9, 0.95, 0.96, 0.98, 0.99]
    mean, low, high = mean_interval(seeds)
    assert mean == pytest.approx(0.956)
    assert min(seeds) < low < mean < high < max(seeds)
    low, high = wilson(0.0, 20_000)
    assert low == 0
    assert high == pytest.approx(1.96**2 / (20_000 + 1.96**2), rel=1e-6)
    assert wilson(0.3, 10)[0] == pytest.approx(0.1078, abs=1e-4)


def test_training_repeats_itself_bit_for_bit() -> None:
    recipe = Recipe(steps=8)
    assert torch.equal(train(recipe, seed=1)[1], train(recipe, seed=1)[1])


def test_the_time_names_its_machine(result: Any) -> None:
    values = result("sorting.time_of_training").values
    assert values["seconds"] > 0
    assert values["machine"] in result("sorting.time_of_training").text


# Check yourself


def test_a_blind_sorter_can_get_one_order_of_each_set_right() -> None:
    """All 4^3 inputs, and all the ways to replace four digits by four: at most one order of each set comes out."""
    inputs = list(itertools.product(range(4), repeat=3))
    best: dict[tuple[int, ...], int] = {}
    for replacement in itertools.product(range(4), repeat=4):
        right: dict[tuple[int, ...], int] = {}
        for digits in inputs:
            ordered = tuple(sorted(digits))
            right[ordered] = right.get(ordered, 0) + (tuple(replacement[d] for d in digits) == ordered)
        best = {key: max(best.get(key, 0), n) for key, n in right.items()}
    assert set(best.values()) == {1}


def test_the_best_luck_of_a_blind_sorter(result: Any) -> None:
    values = result("sorting.best_luck").values
    assert values["share"] == math.comb(17, 8) / 10**8
    assert 4 < values["in_20000"] < 6


def test_a_block_has_about_twelve_d_squared_parameters(result: Any) -> None:
    values = result("sorting.block_of_the_base_model").values
    d = 512
    assert values["count"] == 12 * d**2 + 9 * d + 4 * d
    assert values["per_d_squared"] == pytest.approx(12, abs=0.1)


# Try it


def rebuilt(values: Any, recipe: Recipe) -> Sorter:
    """The sorter that a page gets, from nothing but what was written out."""
    model = Sorter(recipe)
    numbers = torch.frombuffer(bytearray(base64.b64decode(values["weights"])), dtype=torch.float32)
    sizes = [math.prod(shape) for _, shape in values["layout"]]
    parts = zip(values["layout"], numbers.split(sizes), strict=True)
    model.load_state_dict({name: part.view(shape) for (name, shape), part in parts})
    return model


@pytest.mark.parametrize(
    ("written", "trained", "recipe"),
    [
        ("to_take_along", "better_recipe", BETTER),
        ("blind_to_take_along", "without_positions", Recipe(positions=False)),
    ],
)
def test_what_comes_into_the_page_is_the_first_model_bit_by_bit(
    result: Any, written: str, trained: str, recipe: Recipe
) -> None:
    values = result(f"sorting.{written}").values
    ours, theirs = result(f"sorting.{trained}").returned()["models"][0], rebuilt(values, recipe)
    assert all(torch.equal(a, b) for a, b in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True))
    assert (values["heads"], values["epsilon"], values["factor"]) == (4, 1e-5, theirs.factor)
    stored = torch.frombuffer(bytearray(base64.b64decode(values["scores"])), dtype=torch.float32)
    with torch.no_grad():
        again = torch.cat([scores_of(theirs, digits) for digits in values["inputs"]])
    assert torch.allclose(stored.view(-1, 10), again, atol=1e-5)


def test_it_is_the_counted_parameters_and_a_few_more_for_the_last_norm(result: Any) -> None:
    sizes = {name: math.prod(shape) for name, shape in result("sorting.to_take_along").values["layout"]}
    last_norm = sizes["norm.weight"] + sizes["norm.bias"]
    assert sum(sizes.values()) - sizes["places"] == result("sorting.parameter_count").values["all"] + last_norm


def test_the_inputs_to_check_by_are_of_every_length_and_some_are_all_equal(result: Any) -> None:
    inputs = result("sorting.to_take_along").values["inputs"]
    assert {len(digits) for digits in inputs} == set(range(1, 9))
    assert all([digit] * 8 in inputs for digit in range(10))


def test_without_positions_neither_model_sorts_and_the_trained_one_does_a_little_better(result: Any) -> None:
    values = result("sorting.positions_taken_away").values
    assert values["with"]["sequences"] > 0.999
    assert values["zeroed"]["sequences"] == values["without"]["sequences"] == 0
    assert (
        0.2
        < values["zeroed"]["digits"]
        < values["without"]["digits"]
        < result("sorting.blind_limit").values["accuracy"]
    )


def test_without_positions_what_it_writes_moves_with_the_digits(result: Any) -> None:
    torch.manual_seed(0)
    order = torch.randperm(8)
    zeroed = result("sorting.better_recipe").returned()["models"][0]
    zeroed.places.zero_()
    for model in (zeroed, result("sorting.without_positions").returned()["models"][0]):
        digits = sample(50)[0]
        assert torch.allclose(model(digits)[0][:, order], model(digits[:, order])[0], atol=1e-4)


def test_each_column_is_roughly_the_histogram_of_the_digits(result: Any) -> None:
    digits = sample(500)[0]
    histogram = F.one_hot(digits, 10).float().mean(dim=1)  # (batch, 10)
    shares = result("sorting.without_positions").returned()["models"][0](digits)[0].softmax(dim=-1)
    assert (shares - histogram[:, None]).abs().mean() < 0.03
