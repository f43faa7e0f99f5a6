"""docs/phobert.md: its sentences, held against what the examples did.

What needs the published weights runs here on a small PhoBERT, through the same loader: that proves the code and
its shapes, not the published numbers.
"""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
import transformers as hf
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from torch import Tensor, nn

from executed.book import Book
from executed.capture import open_figures, quotable
from executed.render import Page, Renderer
from executed.reproduction import directives
from executed.stage import chapters
from executed.store import Outcomes
from executed.unused import asked
from snippets import phobert
from snippets.attention import entropy
from snippets.phobert import FEEDBACK, SENTENCE, count, join, learn_merges, new_style, phobert_config
from tests.small_phobert import build

ROOT = Path(__file__).parents[1]
PUBLISHED = {
    figure["id"]: figure["published"]
    for figure in tomllib.loads((ROOT / "docs/reference_figures.toml").read_text("utf-8"))["figure"]
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a small PhoBERT, and the hash of its weights."""
    folder = tmp_path_factory.mktemp("phobert")
    return folder, build(folder)


@pytest.fixture(scope="module")
def loaded(small: tuple[Path, str]) -> tuple[Any, Any]:
    folder, sha256 = small
    return phobert.load_phobert(str(folder), sha256=sha256)


@pytest.fixture(scope="module")
def reading(small: tuple[Path, str]) -> Any:
    """What the example of that name returns for the small PhoBERT, with the real loader."""
    folder, sha256 = small
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phobert, "load_phobert", partial(phobert.load_phobert, str(folder), sha256=sha256))
        return phobert.reading()


@pytest.fixture
def drawn() -> Iterator[Callable[[], list[str]]]:
    """The texts of the figure that an example has drawn."""
    plt.close("all")
    yield lambda: [part.get_text() for part in plt.gcf().findobj() if isinstance(part, Text)]
    plt.close("all")


# A few numbers say what it is


def test_the_settings_are_the_published_ones(result: Any) -> None:
    values = result("phobert.configuration").values
    assert values["published"] == PUBLISHED["phobert.config"]


def test_d_k_is_64_in_both_and_the_feed_forward_net_four_times_as_wide(result: Any) -> None:
    values = result("phobert.configuration").values
    assert values["d_k"] == values["d_k_original"] == 64
    assert values["times_wider"] == 4 == 2048 // 512
    assert values["heads"] > 8
    assert values["d_model"] > 512


# Where the parameters live


def test_the_parts_add_up_to_the_whole(result: Any) -> None:
    values = result("phobert.parameters").values
    assert sum(values["parts"].values()) == values["total"] == 134_998_272
    assert values["without_pooler"] == 134_407_680
    assert values["embeddings"] == 49_353_216 == values["parts"]["word table"] + values["parts"]["other embeddings"]
    inside = sum(values["parts"][name] for name in ("attention", "feed-forward", "LayerNorm"))
    assert values["blocks"] == 85_054_464 == inside


def test_embeddings_are_36_6_percent_and_the_word_table_alone_36_4(result: Any) -> None:
    values = result("phobert.parameters").values
    assert round(values["embedding_share"], 3) == 0.366
    assert round(values["word_share"], 3) == 0.364
    assert values["parts"]["word table"] == 64_001 * 768
    assert values["vocabulary"] == 64_001


def test_the_parameters_take_four_bytes_each_in_float32(result: Any) -> None:
    values = result("phobert.parameters").values
    assert values["bytes"] == values["total"] * torch.zeros(1, dtype=torch.float32).element_size()


def test_on_the_meta_device_there_are_shapes_and_no_numbers() -> None:
    with torch.device("meta"):
        model = hf.RobertaModel(phobert_config(num_hidden_layers=1))
    assert all(p.is_meta for p in model.parameters())
    with pytest.raises(RuntimeError):
        model.embeddings.LayerNorm.weight.sum().item()


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 4), st.sampled_from([1, 2, 4]), st.sampled_from([8, 24]), st.integers(1, 3))
def test_the_parts_add_up_for_any_configuration(layers: int, heads: int, d_model: int, wider: int) -> None:
    d_ff = wider * d_model
    config = phobert_config(
        num_hidden_layers=layers, num_attention_heads=heads, hidden_size=d_model, intermediate_size=d_ff, vocab_size=50
    )
    with torch.device("meta"):
        model = hf.RobertaModel(config)
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    assert count(model.encoder, r"attention\.(self|output\.dense)") == layers * attention
    assert count(model.encoder, r"\d\.(intermediate|output)\.dense") == layers * feed_forward
    assert count(model.encoder) == layers * (attention + feed_forward + 4 * d_model)
    assert count(model.embeddings) == (50 + 258 + 1 + 2) * d_model


def test_the_longest_bar_is_feed_forward_and_attention_comes_third(result: Any) -> None:
    parts = result("phobert.parameters").values["parts"]
    assert sorted(parts, key=parts.get, reverse=True)[:3] == ["feed-forward", "word table", "attention"]
    (figure,) = result("phobert.where_they_live").figures
    assert all(name in figure for name in (*parts, "56.7", "49.2", "28.3"))


def test_the_feed_forward_net_holds_twice_what_attention_does(result: Any) -> None:
    values = result("phobert.one_block").values
    assert values["formula"] == {"attention": values["attention"], "feed-forward": values["feed_forward"]}
    assert 1.99 < values["ratio"] < 2
    assert [round(million, 2) for million in values["millions"]] == PUBLISHED["phobert.block"]
    assert 4 * 768**2 + 2 * 4 * 768**2 == 12 * 768**2  # without the biases, exactly twice


# A block, in our own code


def test_our_blocks_differ_from_the_library_by_rounding_only(result: Any) -> None:
    values = result("phobert.parity").values
    assert values["shape"] == [2, 12, 768]
    assert 0 < values["float32"] < 1e-4
    assert values["float64"] < 1e-12
    assert values["size"] > 0.1  # what is compared is not near zero


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 3), st.integers(1, 20), st.integers(0, 2**31))
def test_our_phobert_gives_what_the_library_gives(batch: int, length: int, seed: int) -> None:
    torch.manual_seed(seed)
    config = phobert_config(hidden_size=24, intermediate_size=40, vocab_size=50, num_hidden_layers=3)
    config._attn_implementation = "eager"
    model = hf.RobertaModel(config).eval().double()
    ids = torch.randint(2, 50, (batch, length))
    with torch.no_grad():
        ours, weights = phobert.phobert_by_hand(model, ids)
        library = model(ids, output_attentions=True)
    torch.testing.assert_close(ours, library.last_hidden_state)
    torch.testing.assert_close(weights, torch.stack(library.attentions))


def test_the_layer_norm_comes_after_the_sum() -> None:
    torch.manual_seed(0)
    block: Any = hf.RobertaModel(phobert_config(hidden_size=24, intermediate_size=96, vocab_size=50)).encoder.layer[0]
    output, _ = phobert.block_by_hand(block.eval(), 100 * torch.randn(1, 5, 24))
    torch.testing.assert_close(output.mean(-1), torch.zeros(1, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(output.var(-1, correction=0), torch.ones(1, 5), atol=1e-3, rtol=0)


def test_phobert_has_one_row_of_token_types_and_bert_two(result: Any) -> None:
    values = result("phobert.token_types").values
    assert (phobert_config().type_vocab_size, hf.BertConfig().type_vocab_size) == (1, 2)
    assert values["phobert"] == 768
    assert values["bert"] == 2 * 768
    other = result("phobert.parameters").values["parts"]["other embeddings"]
    assert other == (258 + 1 + 2) * 768  # positions, token types, a LayerNorm


def test_the_row_can_be_moved_into_the_word_table_but_not_left_out(result: Any) -> None:
    values = result("phobert.token_types").values
    assert values["change"] < 1e-5 < 0.1 < values["size"]
    torch.manual_seed(0)
    model = hf.RobertaModel(phobert_config(hidden_size=24, intermediate_size=96, vocab_size=50)).eval()
    ids = torch.randint(4, 50, (1, 6))
    with torch.no_grad():
        before = model(ids).last_hidden_state
        model.embeddings.token_type_embeddings.weight.zero_()
        assert (model(ids).last_hidden_state - before).abs().max() > 1e-3


def test_our_two_functions_read_every_parameter_but_the_poolers() -> None:
    torch.manual_seed(0)
    model: Any = hf.RobertaModel(phobert_config(hidden_size=24, intermediate_size=96, vocab_size=50)).eval()
    ours, _ = phobert.phobert_by_hand(model, torch.randint(4, 50, (1, 6)))
    ours.square().sum().backward()
    unread = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert unread == {"pooler.dense.weight", "pooler.dense.bias"}


def test_the_mask_for_padding_and_dropout_are_not_in_our_two_functions() -> None:
    torch.manual_seed(0)
    model = hf.RobertaModel(phobert_config(hidden_size=24, intermediate_size=96, vocab_size=50)).eval()
    ids = torch.tensor([[0, 11, 12, 2, 7, 7]])
    with torch.no_grad():
        ours, _ = phobert.phobert_by_hand(model, ids)
        torch.testing.assert_close(ours, model(ids).last_hidden_state)
        hidden = torch.tensor([[1, 1, 1, 1, 0, 0]])
        assert (model(ids, attention_mask=hidden).last_hidden_state - ours).abs().max() > 1e-3
        assert (model.train()(ids).last_hidden_state - ours).abs().max() > 1e-3


# Why 258 rows hold 256 tokens


def test_the_first_token_has_row_two_and_256_rows_are_left(result: Any) -> None:
    values = result("phobert.position_rows").values
    assert (values["first"], values["rows"], values["usable"]) == (2, 258, 256)
    assert values["of_ids"] == [2, 3, 4, 5, 6, 1, 1]


def test_256_tokens_fit_and_257_raise_an_error_about_an_index(result: Any) -> None:
    text = result("phobert.one_too_many").text
    assert text.startswith("256 tokens -> (1, 256, 24)")
    assert "257 tokens" not in text
    assert "index" in text.splitlines()[-1]
    assert "length" not in text


# Words first


def test_twelve_syllables_are_ten_words(result: Any) -> None:
    values = result("phobert.segmentation").values
    assert (values["syllables"], values["words"]) == (12, 10)
    assert values["segmented"].split() == PUBLISHED["phobert.tokens"][1:-1]


def test_the_segmenter_joins_five_syllables_that_are_three_words(result: Any) -> None:
    assert result("phobert.hard_to_segment").values["cut"][0] == "học_sinh_học_sinh_học"


def test_the_air_conditioner_is_found_in_one_spelling_only(result: Any) -> None:
    _, _, old, new = result("phobert.hard_to_segment").values["cut"]
    assert "điều hòa" in old
    assert "điều_hoà" in new
    assert new_style(old).replace("_", " ") == new.replace("_", " ")


# One text, several spellings


def test_the_sentence_has_58_or_73_code_points(result: Any) -> None:
    values = result("phobert.two_forms").values
    assert (values["nfc"], values["nfd"]) == (58, 73)
    assert values["equal"] is False
    assert values["equal_segmented"] is True
    assert values["marks"] == 2


def test_pyvi_brings_text_to_nfc_before_it_cuts() -> None:
    from pyvi.ViTokenizer import tokenize

    segmented = tokenize(unicodedata.normalize("NFD", SENTENCE))
    assert segmented == unicodedata.normalize("NFC", segmented)


def test_no_normal_form_merges_the_two_spellings_and_a_rule_does(result: Any) -> None:
    merged = result("phobert.two_spellings").values["merged"]
    assert merged.pop("new_style") is True
    assert set(merged) == {"NFC", "NFD", "NFKC", "NFKD", "casefold"}
    assert not any(merged.values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hòa bình", "hoà bình"), ("Hòa", "Hoà"), ("khỏe", "khoẻ"), ("thủy", "thuỷ"), ("xóa", "xoá"), ("họa", "hoạ"),
        ("hoàn", "hoàn"), ("quý", "quý"), ("của", "của"), ("ngoài", "ngoài"), ("hoa", "hoa"), ("khuya", "khuya"),
    ],
)  # fmt: skip
def test_the_tone_mark_moves_to_the_last_vowel_and_other_words_stay(old: str, new: str) -> None:
    assert new_style(old) == new
    assert new_style(new) == new


# Pieces of words


@given(st.lists(st.text("aábcnhg", min_size=1, max_size=6), min_size=1, max_size=12), st.integers(0, 30))
@settings(deadline=None, max_examples=50)
def test_each_merge_is_the_most_frequent_pair_of_neighbours(words: list[str], most: int) -> None:
    learned = learn_merges(" ".join(words), most)
    assert len(learned) <= most
    spelled = [[*word[:-1], word[-1] + "</w>"] for word in words]
    for pair in learned:  # counted again, without strings and regular expressions
        pairs = [two for pieces in spelled for two in pairwise(pieces)]
        assert pairs.count(pair) == max(map(pairs.count, pairs))
        for pieces in spelled:
            place = 0
            while place < len(pieces) - 1:
                if (pieces[place], pieces[place + 1]) == pair:
                    pieces[place : place + 2] = ["".join(pair)]
                place += 1
    if len(learned) < most:
        assert all(len(pieces) == 1 for pieces in spelled)


def test_a_pair_is_joined_only_where_both_pieces_are_whole() -> None:
    assert join("n ó ng", ("ó", "ng")) == "n óng"
    assert join("n ó ngh", ("ó", "ng")) == "n ó ngh"
    assert join("a . b", (".", "b")) == "a .b"


def test_after_the_merges_every_word_is_one_piece(result: Any) -> None:
    values = result("phobert.merges").values
    assert len(FEEDBACK.split("\n")[1:-1]) == 6  # six short sentences
    assert values["learned"] < 100
    assert values["steps"][0] == "n ó n g</w>"
    assert values["steps"][-1] == "nóng</w>"


def test_a_mistake_in_the_input_is_no_error_but_another_input(result: Any) -> None:
    values = result("phobert.traps").values
    assert values["segmented"] == {"tokens": 10, "unknown": 0}
    assert values["not_segmented"]["tokens"] > 12
    assert values["not_segmented"]["unknown"] == 0
    assert values["nfd"]["tokens"] > 40
    assert values["nfd"]["unknown"] > 10
    assert values["small"]["tokens"] > 10


def test_this_vocabulary_has_never_seen_a_tone_mark_alone(loaded: tuple[Any, Any]) -> None:
    tokenizer, _ = loaded
    assert not [piece for piece in tokenizer.get_vocab() if any(map(unicodedata.combining, piece))]


def test_a_reader_without_a_tokenizer_class_gets_nothing_for_a_text(small: tuple[Path, str], tmp_path: Path) -> None:
    # Why the loader names PhobertTokenizer and leaves AutoTokenizer alone.
    shutil.copytree(small[0], tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    config.pop("tokenizer_class")
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    guessed = hf.AutoTokenizer.from_pretrained(tmp_path)
    named = hf.PhobertTokenizer.from_pretrained(tmp_path)
    assert guessed.tokenize("phòng học quá nóng") != named.tokenize("phòng học quá nóng")
    assert named.tokenize("phòng học quá nóng") == ["phòng", "học", "quá", "nóng"]


# With the weights


def test_one_revision_is_pinned_and_the_examples_name_the_same(small: tuple[Path, str]) -> None:
    source = Path(phobert.__file__).read_text("utf-8")
    needed = re.findall(r'needs="hub:(.*)@(.*)"', source)
    assert len(needed) == 5
    assert set(needed) == {(phobert.SOURCE, phobert.REVISION)}
    assert re.fullmatch("[0-9a-f]{40}", phobert.REVISION)
    assert re.fullmatch("[0-9a-f]{64}", phobert.SHA256)
    assert sorted(path.name for path in small[0].iterdir()) == sorted(phobert.FILES)


def test_the_loader_refuses_weights_of_another_hash(small: tuple[Path, str]) -> None:
    with pytest.raises(ValueError, match="hash"):
        phobert.load_phobert(str(small[0]), sha256=phobert.SHA256)


def test_the_loader_refuses_a_model_with_a_missing_weight(small: tuple[Path, str], tmp_path: Path) -> None:
    shutil.copytree(small[0], tmp_path, dirs_exist_ok=True)
    file = tmp_path / "pytorch_model.bin"
    weights = torch.load(file)
    del weights["roberta.encoder.layer.3.attention.self.key.weight"]
    torch.save(weights, file)
    with pytest.raises(ValueError, match=r"missing.*layer\.3\.attention\.self\.key\.weight"):
        phobert.load_phobert(str(tmp_path), sha256=hashlib.sha256(file.read_bytes()).hexdigest())


def test_the_loader_opens_no_code_in_the_weights(small: tuple[Path, str], tmp_path: Path) -> None:
    shutil.copytree(small[0], tmp_path, dirs_exist_ok=True)
    file = tmp_path / "pytorch_model.bin"
    torch.save({"harm": partial(os.mkdir, tmp_path / "harm"), "more": nn.Linear(2, 2)}, file)
    with pytest.raises(Exception, match=r"(?i)weights_only|unsupported"):
        phobert.load_phobert(str(tmp_path), sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    assert not (tmp_path / "harm").exists()


def test_the_loaded_weights_are_those_of_the_file(small: tuple[Path, str], loaded: tuple[Any, Any]) -> None:
    _, model = loaded
    weights = torch.load(small[0] / "pytorch_model.bin")
    assert not model.training
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, weights[f"roberta.{name}"])


LOAD_TWICE = """
import contextlib, sys, urllib.request
from snippets import phobert
weights, hub = sys.argv[1:]
for _ in range(2):
    tokenizer, model = phobert.load_phobert(sha256=weights)
    print(tokenizer.tokenize("phòng học"), model.config.num_hidden_layers, type(model).__name__)
    print("loaded", file=sys.stderr)
    with contextlib.suppress(OSError):  # from then on the hub is gone
        urllib.request.urlopen(hub + "/leave")
"""

FETCH = """
import time
from snippets import phobert
started = time.perf_counter()
try:
    phobert.fetch("config.json")
except ConnectionError as error:
    print(f"{time.perf_counter() - started:.1f} {error}")
"""

NOWHERE = "http://127.0.0.1:9"


def elsewhere(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process: the library reads its settings when it is imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_a_network_the_loader_says_so_within_seconds(tmp_path: Path, offline: str) -> None:
    done = elsewhere(FETCH, HF_HUB_CACHE=str(tmp_path), HF_ENDPOINT=NOWHERE, HF_HUB_OFFLINE=offline)
    seconds, _, message = done.stdout.partition(" ")
    assert message.startswith(f"{phobert.SOURCE} is not in the cache, and: ")
    assert float(seconds) < 10
    assert "Retrying" not in done.stderr


@pytest.fixture
def hub(small: tuple[Path, str]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers as the hub does, with the small PhoBERT, and a list of what it was asked."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if "GET /leave" in asked:
                self.close_connection = True  # gone: not even an error
                return
            asked.append(f"{self.command} {self.path}")
            body = b"{}"
            if self.path.startswith("/api/models/"):
                body = json.dumps({"id": phobert.SOURCE, "sha": phobert.REVISION, "siblings": []}).encode()
            elif (file := small[0] / self.path.rsplit("/", 1)[-1]).exists():
                body = file.read_bytes()
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{len(body)}"')
            self.send_header("X-Repo-Commit", phobert.REVISION)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_GET = do_HEAD = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_what_is_not_in_the_cache_is_downloaded_and_then_needs_no_network(
    small: tuple[Path, str], hub: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, asked = hub
    done = elsewhere(LOAD_TWICE, small[1], address, HF_HUB_CACHE=str(tmp_path), HF_ENDPOINT=address)
    assert done.stdout == "['phòng', 'học'] 12 RobertaModel\n" * 2, done.stderr
    got = [request for request in asked if request.startswith("GET") and "/resolve/" in request]
    assert sorted(got) == sorted(f"GET /{phobert.SOURCE}/resolve/{phobert.REVISION}/{name}" for name in phobert.FILES)
    assert done.stderr.split("loaded\n")[1] == ""


def test_only_eager_gives_the_weights(result: Any) -> None:
    assert result("phobert.two_kernels").values == {"sdpa": 0, "eager": 12}


def test_phobert_has_no_fast_tokenizer(loaded: tuple[Any, Any]) -> None:
    assert loaded[0].is_fast is False


def test_the_sentence_is_twelve_tokens_none_cut_and_the_shape_is_layers_heads_t_t(reading: Any) -> None:
    assert reading["tokens"] == PUBLISHED["phobert.tokens"]
    assert reading["shape"] == list(reading["attention"].shape) == PUBLISHED["phobert.attention-shape"]
    assert reading["length"] == 12
    assert reading["cut"] == 0


def test_every_row_of_attention_adds_up_to_one(reading: Any) -> None:
    torch.testing.assert_close(reading["attention"].sum(-1), torch.ones(12, 12, 12))


def test_our_own_blocks_are_phobert(reading: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert reading["by_hand"] < 1e-4
    assert reading["size"] > 0.1


def test_loading_prints_nothing(small: tuple[Path, str], capfd: pytest.CaptureFixture[str]) -> None:
    phobert.load_phobert(str(small[0]), sha256=small[1])
    assert capfd.readouterr() == ("", "")


# Where nóng looks


def test_the_heads_are_the_published_ones_and_name_the_largest_three(
    reading: Any, drawn: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    values: Any = phobert.heads_from_nong(reading)
    assert [(one["layer"], one["head"]) for one in values["heads"]] == phobert.HEADS
    assert [(one["layer"], one["head"]) for one in PUBLISHED["phobert.heads-from-nong"]] == phobert.HEADS
    query = PUBLISHED["phobert.tokens"].index("nóng")
    special = []
    for one in values["heads"]:
        row = reading["attention"][one["layer"] - 1][one["head"] - 1][query].tolist()
        by_weight = sorted(zip(reading["tokens"], row, strict=True), key=lambda pair: -pair[1])
        assert [tuple(pair) for pair in one["top"]] == by_weight[:3]
        special.append(row[0] + row[11])
    assert values["largest"].item() == max(one["top"][0][1] for one in values["heads"])
    assert values["most_special"].item() == pytest.approx(max(special))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 42
    assert {"Giảng_viên", "nóng", "</s>", "12.10"} <= set(drawn())


def test_the_map_and_the_viewer_have_every_head(reading: Any, drawn: Callable[[], list[str]]) -> None:
    values: Any = phobert.every_head(reading)
    assert values["tokens"] == reading["tokens"]
    assert values["count"] == 12 * 12
    assert {"layer", "head", "12"} <= set(drawn())
    (image,) = plt.gca().images
    shown = image.get_array()
    assert shown is not None
    for layer, head in phobert.HEADS:
        weights = reading["attention"][layer - 1, head - 1]
        top, left = (layer - 1) * 13, (head - 1) * 13
        assert shown[top : top + 12, left : left + 12].tolist() == weights.tolist()
        assert (values["weights"][layer - 1][head - 1] - weights).abs().max() <= 1e-6
        assert values["entropy"][layer - 1][head - 1].tolist() == entropy(weights).tolist()


def chapter_with(book: Book, returned: dict[str, Any], result: Any, capsys: pytest.CaptureFixture[str]) -> Page:
    """The chapter as rendered where its examples with a need returned this; without any, where they are absent."""
    pages, outcomes = chapters(ROOT), Outcomes()
    (page,) = (page for page in pages if page.path == "docs/phobert.md")
    for name in book.order({one.split(book)[0] for one in asked(page)} & book.examples.keys()):
        if not book.examples[name].options.needs:
            outcomes.results[name] = result(name)
        elif not returned:
            outcomes.absent[name] = "weights"
        else:
            if name not in returned:
                parameters, needs = book.examples[name].parameters, book.examples[name].needs
                given = {
                    to: returned[need] if need in returned else result(need).returned()
                    for to, need in zip(parameters, needs, strict=True)
                }
                returned[name] = getattr(phobert, book.examples[name].function)(**given)
            left = {
                "text": capsys.readouterr().out or "read",
                "figures": open_figures(),
                "values": quotable(returned[name]),
            }
            outcomes.results[name] = replace(result("phobert.large"), name=name, **left)
            plt.close("all")
    Renderer(book, outcomes, directives(book, outcomes.results, pages)).render(page, "en")
    return page


def test_where_the_weights_are_the_chapter_shows_every_head(
    reading: Any, result: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page = chapter_with(Book.read(ROOT), {"phobert.reading": reading}, result, capsys)
    assert page.problems == []
    assert '<div class="widget" data-widget="attention-viewer" data-example="phobert.every_head">' in page.text
    assert len(page.figures["phobert.every_head-1.svg"]) < 100_000
    assert '"tokens": ["<s>", "Giảng_viên", ' in page.files["values/phobert.every_head.js"]
    assert "$unquotable" not in page.files["values/phobert.every_head.js"]


def test_where_the_weights_are_not_the_chapter_has_no_viewer(result: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = chapter_with(Book.read(ROOT), {}, result, capsys)
    assert page.problems == []
    assert "every_head" not in page.text
    assert not [path for path in page.files if "every_head" in path]


def test_the_published_rows_are_as_the_chapter_tells_them() -> None:
    rows = [row["top"] for row in PUBLISHED["phobert.heads-from-nong"]]
    assert sum("phòng" in [token for token, _ in row] for row in rows) == 2
    assert all(row[0][0] != "phòng" for row in rows)
    assert sum(row[0][0] in ("nóng", "<s>", "</s>") for row in rows) == 5
    assert sum(sum(weight for token, weight in row if token in ("<s>", "</s>")) > 0.9 for row in rows) == 2
    assert PUBLISHED["phobert.heads-from-nong"][3]["top"][0][0] == "</s>"
    assert PUBLISHED["phobert.heads-from-nong"][3]["layer"] in (9, 10, 11)


# What training did


def test_a_row_on_k_tokens_has_entropy_ln_k(result: Any) -> None:
    entropies = result("phobert.looking_at_a_few").values["entropies"]
    assert {int(k): v for k, v in entropies.items()} == pytest.approx({k: math.log(k) for k in (1, 2, 3, 6, 12)})


def test_an_untrained_phobert_looks_at_everything_alike(result: Any) -> None:
    values = result("phobert.untrained").values
    assert values["seeds"] == 5
    assert 2.4 < values["lowest"] <= values["mean"] <= values["highest"] < values["maximum"] == math.log(12)
    assert values["mean"] == pytest.approx(2.46, abs=0.01)
    assert 0.06 < values["share_low"] < 1 / 12 < values["share_high"] < 0.11
    assert torch.tensor(values["by_layer"]).shape == (5, 12)


def test_the_initial_weights_are_small_so_scores_are_near_zero() -> None:
    torch.manual_seed(0)
    model: Any = hf.RobertaModel(phobert_config(vocab_size=1000, num_hidden_layers=1)).eval()
    project = model.encoder.layer[0].attention.self
    assert project.query.weight.std() < 0.03
    x = model.embeddings(torch.randint(4, 1000, (1, 12)))
    query, key = (part(x).unflatten(-1, (12, 64)).transpose(1, 2) for part in (project.query, project.key))
    assert (query @ key.mT / 8).abs().mean() < 0.5


def by_another_way(attention: Tensor) -> tuple[list[float], list[float]]:
    """Entropy and share to the first token by layer, with plain loops."""
    entropies, shares = [], []
    for layer in attention.tolist():
        rows = [row for head in layer for row in head]
        entropies.append(sum(-sum(p * math.log(p) for p in row if p) for row in rows) / len(rows))
        shares.append(sum(row[0] for row in rows) / len(rows))
    return entropies, shares


def test_entropy_and_share_by_layer_are_means_over_heads_and_queries(
    reading: Any, result: Any, drawn: Callable[[], list[str]]
) -> None:
    entropies, shares = by_another_way(reading["attention"])
    values: Any = phobert.entropy_by_layer(reading, result("phobert.untrained").returned())
    assert {"PhoBERT", "untrained", "ln T", "layer", "entropy (nats)"} <= set(drawn())
    assert values["trained"].tolist() == pytest.approx(entropies, abs=1e-5)
    assert values["lowest"].item() == pytest.approx(min(entropies), abs=1e-5)
    assert values["highest"].item() == pytest.approx(max(entropies), abs=1e-5)
    assert values["lowest_layer"] == entropies.index(min(entropies)) + 1

    plt.close("all")
    values = phobert.share_to_first(reading)
    assert {"to <s>", "to </s>", "even share"} <= set(drawn())
    assert values["to_first"].tolist() == pytest.approx(shares, abs=1e-6)
    assert values["highest_layer"] == shares.index(max(shares)) + 1
    both = reading["attention"][..., [0, 11]].sum(-1).mean((1, 2))
    assert values["both"].item() == pytest.approx(both.max().item())


def test_the_published_layers_lie_below_the_control(result: Any) -> None:
    published = PUBLISHED["phobert.entropy-by-layer"]
    assert max(published) < result("phobert.untrained").values["lowest"] - 0.5
    shares = PUBLISHED["phobert.share-to-first-token-by-layer"]
    assert shares[1] > 0.5
    assert published[1] < sum(published) / 12  # the second layer is narrow
    narrowest = sorted(range(12), key=lambda layer: published[layer])[:3]
    assert sorted(narrowest) == [8, 9, 10]
    assert all(shares[layer] < 1 / 12 for layer in narrowest)


# Check yourself


def test_phobert_large_has_the_same_d_k_and_a_smaller_share_of_embeddings(result: Any) -> None:
    values = result("phobert.large").values
    assert values["d_k"] == 64
    assert round(values["total"] / 1e6) == 369
    assert values["share"] < result("phobert.parameters").values["embedding_share"] / 2


def test_an_encoder_block_grows_with_the_square_of_the_width(result: Any) -> None:
    values = result("phobert.original_blocks").values
    assert values["defaults"] == [512, 8, 6]
    assert values["block_ratio"] == pytest.approx((768 / 512) ** 2, abs=0.01)
    assert values["phobert"] == result("phobert.parameters").values["blocks"]
    assert 1.8 < values["ratio"] < 2
