"""A tiny random encoder of every architecture, with a tokenizer of its own kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

SPECIAL = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]", "unk": "[UNK]"}
ANGLED = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    # Wider than usual, so that a wrong bias or a skipped layer changes the result visibly.
    "initializer_range": 0.1,
}
DISENTANGLED: dict[str, Any] = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
}
FAMILIES = (
    *("bert", "mpnet", "roberta", "xlm-roberta", "camembert", "distilbert", "electra"),
    *("modernbert", "deberta-v2", "deberta-v2-apart"),
)
LONGEST = 64


@pytest.fixture(scope="session")
def make_family(
    tmp_path_factory: pytest.TempPathFactory,
    sample_data: Path,
    tiny_encoder: Path,
    tiny_mpnet: Path,
) -> Callable[[str], Path]:
    """The folder of a family's tiny encoder: 32 wide, 64 tokens."""
    texts = [line for file in sample_data.glob("*.csv") for line in file.read_text().splitlines()]

    @cache
    def make(family: str) -> Path:
        if family in ("bert", "mpnet"):
            return tiny_encoder if family == "bert" else tiny_mpnet
        folder = tmp_path_factory.mktemp(family)
        if family in ("distilbert", "electra"):
            vocabulary = word_pieces(folder, family, tiny_encoder)
        else:
            tokenizer = subwords(family, texts)
            tokenizer.save_pretrained(folder)
            vocabulary = len(tokenizer)
        save_random(family, vocabulary, folder)
        return folder

    return make


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest, make_family: Callable[[str], Path]) -> Path:
    return make_family(request.param)


@pytest.fixture(scope="session", params=FAMILIES[2:-1])
def new_family(request: pytest.FixtureRequest, make_family: Callable[[str], Path]) -> Path:
    return make_family(request.param)


@pytest.fixture
def sentence_folder(new_family: Path, tmp_path: Path) -> Path:
    """The same in the form of sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    transformer = Transformer(str(new_family), max_seq_length=40)
    model = SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu")
    model.save(str(tmp_path / "sentence"))
    return tmp_path / "sentence"


def word_pieces(folder: Path, family: str, source: Path) -> int:
    """BERT's tokenizer under the name of another family."""
    for file in ("tokenizer.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(source / file, folder)
    settings = json.loads((source / "tokenizer_config.json").read_text())
    kinds = {"distilbert": "DistilBertTokenizer", "electra": "ElectraTokenizer"}
    settings["tokenizer_class"] = kinds[family]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(json.loads((source / "config.json").read_text())["vocab_size"])


def subwords(family: str, texts: list[str]) -> Any:
    """A byte-level BPE or a Unigram tokenizer, trained on texts, as `transformers` makes it."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    names = SPECIAL if family.startswith(("modernbert", "deberta")) else ANGLED
    special = [*names.values()]
    if family in ("roberta", "modernbert"):
        learner: Any = trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        learner = trainers.UnigramTrainer(
            vocab_size=400, special_tokens=special, unk_token=names["unk"], show_progress=False
        )
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.train_from_iterator(texts, learner)
    trained = json.loads(backend.to_str())["model"]
    tokens: dict[str, Any] = {f"{role}_token": name for role, name in names.items()}
    limit = {"model_max_length": LONGEST}
    if family == "roberta":
        merges = [tuple(merge) for merge in trained["merges"]]
        return transformers.RobertaTokenizer(vocab=trained["vocab"], merges=merges, **limit)
    if family == "modernbert":
        cls, sep = backend.token_to_id("[CLS]"), backend.token_to_id("[SEP]")
        backend.post_processor = processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
        )
        backend.decoder = decoders.ByteLevel()
        inputs = {"model_input_names": ["input_ids", "attention_mask"]}
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=backend, **tokens, **inputs, **limit
        )
    pieces = [(piece, score) for piece, score in trained["vocab"]]
    kinds = {
        "xlm-roberta": transformers.XLMRobertaTokenizer,
        "camembert": transformers.CamembertTokenizer,
    }
    kind = kinds.get(family, transformers.DebertaV2Tokenizer)
    if family in kinds:
        order = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        others = [(piece, score) for piece, score in pieces if piece not in order]
        pieces = [*((piece, 0.0) for piece in order), *others]
    return kind(vocab=pieces, **limit)


def save_random(family: str, vocabulary: int, folder: Path) -> None:
    """Write config.json and model.safetensors; biases and norms are made random too."""
    config = config_of(family, vocabulary)
    from transformers import AutoModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModel.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(folder)


def config_of(family: str, vocabulary: int) -> Any:
    """The configuration of a tiny encoder, by `transformers`."""
    import transformers

    shape = SHAPE | {"vocab_size": vocabulary}
    behind_padding = {"max_position_embeddings": LONGEST + 2, "type_vocab_size": 1}
    positions = {"max_position_embeddings": LONGEST}
    ends = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
    if family == "roberta":
        return transformers.RobertaConfig(**shape, **behind_padding, **ends)
    if family == "xlm-roberta":
        return transformers.XLMRobertaConfig(**shape, **behind_padding, **ends)
    if family == "camembert":
        return transformers.CamembertConfig(**shape, **behind_padding, **ends)
    if family == "distilbert":
        return transformers.DistilBertConfig(
            vocab_size=vocabulary, dim=32, n_layers=3, n_heads=2, hidden_dim=64, **positions
        )
    if family == "electra":
        return transformers.ElectraConfig(**shape, **positions, embedding_size=16)
    if family == "modernbert":
        ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 2)
        ids |= {"cls_token_id": 0, "sep_token_id": 1}
        return transformers.ModernBertConfig(**shape, **positions, local_attention=8, **ids)
    if family == "deberta-v2":
        options = {"share_att_key": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm"}
        return transformers.DebertaV2Config(**shape, **positions, **DISENTANGLED, **options)
    options = {"type_vocab_size": 2, "embedding_size": 16}
    return transformers.DebertaV2Config(**shape, **positions, **DISENTANGLED, **options)
