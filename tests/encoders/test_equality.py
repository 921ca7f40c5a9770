"""Every architecture against `transformers`: hidden states, gradients, folders, tokenizers."""

from __future__ import annotations

import json
import os
import random
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from tercet.nn.device_tokens import DeviceTokens, PackedTokens
from tercet.nn.folder import load_encoder, save_encoder
from tercet.nn.names import to_hugging_face
from tercet.nn.plan import padded_blocks
from tercet.text import tokenizer as tokenizer_module
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Tokens

WHOLE = os.environ.get("TERCET_WHOLE", "0") not in ("", "0")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CPU = torch.device("cpu")
LENGTHS = [5, 1, 17, 40, 5, 3, 64, 33, 9]
ODD = [
    *("", " ", "\t\n", "  two  spaces ", "😀👩‍🚀 emoji", "\x00\x07 control \x1b[0m", "naïve Ärger"),
    *(
        "漢字かな",
        "a" * 90,
        "\u200b\ufeff\ufffd",
        "don't -- stop!",
        "A film , it 's good .",
        "ﬁﬂ Ⅷ",
    ),
    *(
        "<s> and </s> in text",
        "[SEP] and [MASK] in text",
        "<mask>",
        "▁ Ġ ##",
        "né\u0301e",
        "e\u0301",
    ),
]
NAMES = ["bert", "mpnet", "distilbert", "electra", "roberta", "camembert", "xlm-roberta"]
NAMES += ["modernbert", "deberta-v2"]


def ragged(lengths: list[int], *, vocabulary: int, types: int = 0) -> Tokens:
    generator = np.random.default_rng(0)
    ids = generator.integers(5, vocabulary, sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kinds = generator.integers(0, max(types, 1), len(ids)).astype(np.int32)
    return Tokens(ids, kinds, offsets, longest=max(lengths), truncated=0)


def their_hidden(model: Any, tokens: Tokens) -> Tensor:
    """Hidden states of the real tokens [total, width]."""
    shape = len(tokens), tokens.longest
    real = torch.from_numpy(np.arange(tokens.longest) < tokens.lengths[:, None])
    ids, kinds = torch.full(shape, model.config.pad_token_id), torch.zeros(shape, dtype=torch.int64)
    ids[real] = torch.from_numpy(tokens.ids.astype(np.int64))
    kinds[real] = torch.from_numpy(tokens.types.astype(np.int64))
    inputs = {"input_ids": ids, "attention_mask": real.long()}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = kinds
    hidden: Tensor = model(**inputs).last_hidden_state[real]
    return hidden


def reference(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder, attn_implementation="eager", dtype="float32").eval()


def test_hidden_states_and_gradients_equal_those_of_transformers(family: Path) -> None:
    compare(family)


@pytest.mark.skipif(not WHOLE, reason="TERCET_WHOLE=1 compares encoders of base size")
@pytest.mark.parametrize("name", NAMES)
def test_encoders_of_base_size_equal_those_of_transformers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from encoders import FAMILIES, make_folder, make_texts

    assert set(NAMES) == set(FAMILIES)
    make_folder(FAMILIES[name], make_texts(200), tmp_path)
    print(f"{name}: hidden states, gradients at most {compare(tmp_path / 'plain')} apart")


def compare(folder: Path) -> tuple[float, float]:
    """The greatest differences of hidden states, and of gradients relative to their length."""
    encoder = load_encoder(folder, dropout=0.0, attention_dropout=0.0).eval()
    config = encoder.config
    tokens = ragged(LENGTHS, vocabulary=config.vocabulary, types=config.token_types)
    model = reference(folder)
    ours, theirs = encoder(DeviceTokens.from_host(tokens, CPU)), their_hidden(model, tokens)
    apart = float((ours - theirs).detach().abs().max())
    assert apart <= 2e-5
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0))
    (ours * weights).mean().backward()
    (theirs * weights).mean().backward()
    gradients = to_hugging_face(
        {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None},
        config.architecture,
    )
    expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert gradients.keys() == expected.keys()
    # Keys' biases have no effect: their gradients are nothing but rounding.
    floor = 1e-3 * max(gradient.norm() for gradient in expected.values())
    relative = {
        name: float((gradients[name] - gradient).norm() / max(gradient.norm(), floor))
        for name, gradient in expected.items()
    }
    assert max(relative.values()) <= 1e-4, max(relative, key=lambda name: relative[name])
    return apart, max(relative.values())


def test_padded_blocks_as_on_a_gpu_give_the_same(family: Path) -> None:
    encoder = load_encoder(family, dropout=0.0, attention_dropout=0.0)
    tokens = ragged(LENGTHS, vocabulary=encoder.config.vocabulary)
    packed = PackedTokens.pack(
        tokens, padded_blocks(tokens.lengths), used=len(tokens), pinned=False
    )
    padded, exact = packed.unpack(packed.buffer), DeviceTokens.from_host(tokens, CPU)
    hidden = encoder(padded)
    assert (hidden - encoder(exact)).abs().max() <= 1e-5
    hidden.pow(2).mean().backward()
    trained = [p.grad for name, p in encoder.named_parameters() if not name.startswith("pooler.")]
    assert all(torch.isfinite(gradient).all() for gradient in trained)


def test_weights_survive_load_and_save_bit_for_bit(family: Path, tmp_path: Path) -> None:
    save_encoder(load_encoder(family), tmp_path)
    before, after = (load_file(folder / "model.safetensors") for folder in (family, tmp_path))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    tokens = ragged(LENGTHS, vocabulary=100)
    models = [reference(folder) for folder in (family, tmp_path)]
    with torch.no_grad():
        first, second = (their_hidden(model, tokens) for model in models)
    assert torch.equal(first, second)


def test_heads_and_prefixes_of_task_models_are_left_out(new_family: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

    plain = load_encoder(new_family)
    for kind in (AutoModelForSequenceClassification, AutoModelForMaskedLM):
        folder = tmp_path / kind.__name__
        kind.from_pretrained(new_family).save_pretrained(folder)
        state = load_encoder(folder).state_dict()
        wanted = plain.state_dict()
        assert all(torch.equal(state[name], wanted[name]) for name in state)
        assert {name for name in wanted if not name.startswith("pooler.")} <= state.keys()


def texts(count: int, sample: Path) -> list[str]:
    """Real sentences, odd ones, and odd mixtures of both."""
    generator = random.Random(0)
    lines = [line for file in sample.glob("*.csv") for line in file.read_text().splitlines()]
    words = [word for line in lines for word in line.split()]
    alphabet = [
        chr(code) for code in (*range(32, 127), *range(0xA1, 0x250), *range(0x3041, 0x3060))
    ]
    chosen = generator.sample(lines, min(count // 3, len(lines)))
    mixed: list[str] = []
    while len(mixed) + len(ODD) + len(chosen) < count:
        parts = [generator.choice(words) for _ in range(generator.randrange(12))]
        parts.append("".join(generator.choices(alphabet, k=generator.randrange(8))))
        parts.append(generator.choice(ODD))
        generator.shuffle(parts)
        mixed.append(generator.choice(["", " ", "  "]).join(parts))
    return [*ODD, *chosen, *mixed]


def rows(tokens: Tokens) -> list[list[int]]:
    return [ids.tolist() for ids in np.split(tokens.ids, tokens.offsets[1:-1])]


def test_tokens_equal_those_of_transformers(
    new_family: Path, sample_data: Path, encode_pairs: Any, tmp_path: Path
) -> None:
    ours, theirs = Tokenizer.load(new_family), AutoTokenizer.from_pretrained(new_family)
    ours.save(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    every = texts(10_000 if WHOLE else 600, sample_data)
    pairs = list(zip(every, reversed(every), strict=True))
    # In parts: `transformers` keeps all that it cuts off, which takes gigabytes.
    for start, longest in product(range(0, len(every), 200), (9, 64)):
        part, joined = every[start : start + 200], pairs[start : start + 200]
        options = {"truncation": "longest_first", "max_length": longest, "padding": False}
        options["return_token_type_ids"] = True
        singles = theirs(part, **options)["input_ids"]
        both = theirs([a for a, _ in joined], [b for _, b in joined], **options)
        ours_joined = encode_pairs(ours, joined, max_tokens=longest)
        assert rows(ours.encode(part, max_tokens=longest)) == singles
        assert rows(ours_joined) == both["input_ids"]
        assert ours_joined.types.tolist() == [*chain(*both["token_type_ids"])]
        assert again(part, **options)["input_ids"] == singles
    assert ours.mask_id == theirs.mask_token_id
    assert set(theirs.all_special_ids) <= ours.special_ids


def test_parts_of_a_long_text_have_the_pieces_of_the_whole(
    family: Path, sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(0)
    spaces = [" ", "  ", "\n", " \n ", "\n\n", "    ", "\t ", " \u3000"]
    every = texts(300, sample_data)
    text = "".join(part + generator.choice(spaces) for part in every)
    tokenizer = Tokenizer.load(family)
    whole = tokenizer.pieces([text], limit=10**6)
    monkeypatch.setattr(tokenizer_module, "PART_CHARACTERS", 20)
    monkeypatch.setattr(tokenizer_module, "STEP_CHARACTERS", max(map(len, every)) + 1000)
    parts = tokenizer.pieces([text], limit=10**6)
    assert len(whole.ids) > 3000
    assert parts.ids.tolist() == whole.ids.tolist()


def test_the_pair_template_is_the_familys_own(make_family: Any) -> None:
    separators = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "distilbert": 1, "electra": 1}
    for family, count in (separators | {"modernbert": 1, "deberta-v2": 1}).items():
        folder = make_family(family)
        slots = Tokenizer.load(folder).template.pair_slots
        assert [slot.text for slot in slots] == [None, 0, *[None] * count, 1, None], family
        assert load_encoder(folder).config.architecture.pair_separators == count, family


def test_one_token_type_serves_every_token(make_family: Any) -> None:
    """A RoBERTa whose tokenizer numbers the second sentence: it knows one type, and takes that."""
    encoder = load_encoder(make_family("roberta")).eval()
    plain = ragged([5, 9], vocabulary=100)
    numbered = Tokens(plain.ids, np.ones_like(plain.types), plain.offsets, 9, 0)
    first, second = (encoder(DeviceTokens.from_host(tokens, CPU)) for tokens in (plain, numbered))
    assert torch.equal(first, second)


@pytest.mark.parametrize("length", [2, 5, 6, 8, 9, 16, 17, 63])
def test_sliding_windows_equal_those_of_transformers(make_family: Any, length: int) -> None:
    folder = make_family("modernbert")
    tokens = ragged([length, length - 1, length], vocabulary=100)
    with torch.no_grad():
        ours = load_encoder(folder).eval()(DeviceTokens.from_host(tokens, CPU))
        assert (ours - their_hidden(reference(folder), tokens)).abs().max() <= 2e-5


def test_the_older_keys_of_modernbert_are_read(make_family: Any, tmp_path: Path) -> None:
    source = make_family("modernbert")
    config = json.loads((source / "config.json").read_text())
    for key in ("layer_types", "rope_parameters"):
        config.pop(key)
    config |= {"global_attn_every_n_layers": 2, "global_rope_theta": 900.0}
    config["local_rope_theta"] = 70.0
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes())
    tokens = ragged(LENGTHS, vocabulary=100)
    encoder = load_encoder(tmp_path).eval()
    save_encoder(encoder, tmp_path / "saved")
    for folder in (tmp_path, tmp_path / "saved"):
        with torch.no_grad():
            ours = encoder(DeviceTokens.from_host(tokens, CPU))
            assert (ours - their_hidden(reference(folder), tokens)).abs().max() <= 2e-5
