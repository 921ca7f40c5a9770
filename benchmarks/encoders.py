"""Every encoder architecture at its base shape: sentences per second against sentence-transformers.

    python benchmarks/encoders.py [FAMILY...] [--device cpu|cuda] [--precision fp32|bf16]
    python benchmarks/encoders.py [FAMILY...] --folders DIR --make    only makes the encoders

Makes its own encoders with random weights (the layers, width and vocabulary size of the published
base model), tokenizers and texts, so that it needs no network and no data. Texts have as many words
as Quora's questions. Both libraries read the same folder, the same texts and, on a CPU,
use the same threads; their runs alternate, and medians are compared. On a CPU both compute in fp32,
and the peer has its default batches of 32; with --precision bf16 the peer has the faster of fp32
and bf16. On a GPU ours computes in bf16, and the peer has its best of fp16 and bf16 with batches of
128 and 512 (fp32 and its default of 32 are far slower). Each family's result is written as soon as
it is measured; --out, by default results/encoders.json, keeps those of other families and machines.
--folders keeps the encoders, so that they can be made before a machine is reserved.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from records import cpu

SEED = 11711
WORDS = {4: 2, 5: 4, 6: 8, 7: 11, 8: 12, 9: 12, 10: 11, 11: 9, 12: 7, 13: 5, 14: 4, 15: 3, 17: 4,
         20: 3, 24: 3, 32: 2}  # fmt: skip
"""Words per text, with weights: about as in quora-dev, 10.9 on average."""
VOCABULARY = 20_000
"""Distinct words, drawn by Zipf's law."""
CONSONANTS, VOWELS = "b c d f g l m n p r s t v st tr", "a e i o u"
SYLLABLES = [first + then for first in CONSONANTS.split() for then in VOWELS.split()]
PEER_BATCHES = {"cpu": (32,), "cuda": (128, 512)}
PEER_TYPES = {
    ("cpu", "fp32"): ("float32",),
    ("cpu", "bf16"): ("float32", "bfloat16"),
    ("cuda", "bf16"): ("float16", "bfloat16"),
    ("cuda", "fp32"): ("float32",),
}
HOW = {"fp32": "both in fp32", "bf16": "ours in bf16"}
SENTENCES = {"cpu": 320, "cuda": 16_384}
RUNS = {"cpu": 3, "cuda": 3}
WARM_UP = 64
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")
ANGLED = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
SQUARE = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


@dataclass(frozen=True, slots=True)
class Family:
    """An architecture at its base shape.

    config: the class of `transformers` and what differs from its defaults, which are the base shape
    pieces: how its tokenizer makes pieces
    special: its special tokens by role, in the order of their ids
    """

    config: str
    settings: dict[str, Any]
    pieces: str
    special: dict[str, str]


FAMILIES = {
    "bert": Family("BertConfig", {}, "wordpiece", SQUARE),
    "mpnet": Family("MPNetConfig", {"vocab_size": 30_527}, "wordpiece", ANGLED),
    "distilbert": Family("DistilBertConfig", {}, "wordpiece", SQUARE),
    "electra": Family(
        "ElectraConfig",
        {
            "embedding_size": 768,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_attention_heads": 12,
        },
        "wordpiece",
        SQUARE,
    ),
    "roberta": Family(
        "RobertaConfig",
        {"vocab_size": 50_265, "max_position_embeddings": 514, "type_vocab_size": 1},
        "bpe",
        ANGLED,
    ),
    "camembert": Family(
        "CamembertConfig",
        {"vocab_size": 32_005, "max_position_embeddings": 514, "type_vocab_size": 1},
        "unigram",
        ANGLED,
    ),
    "xlm-roberta": Family(
        "XLMRobertaConfig",
        {"vocab_size": 250_002, "max_position_embeddings": 514, "type_vocab_size": 1},
        "unigram",
        ANGLED,
    ),
    "modernbert": Family(
        "ModernBertConfig",
        {
            "pad_token_id": 0,
            "bos_token_id": 2,
            "cls_token_id": 2,
            "eos_token_id": 3,
            "sep_token_id": 3,
        },
        "bpe",
        SQUARE,
    ),
    "deberta-v2": Family(
        "DebertaV2Config",
        {
            "vocab_size": 128_100,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "relative_attention": True,
            "position_biased_input": False,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "position_buckets": 256,
            "norm_rel_ebd": "layer_norm",
            "type_vocab_size": 0,
        },
        "unigram",
        SQUARE,
    ),
}


def make_texts(count: int) -> list[str]:
    """Distinct texts of made-up words, as long as questions."""
    draw = np.random.default_rng(SEED)
    sizes = draw.integers(1, 4, VOCABULARY)
    words = ["".join(draw.choice(SYLLABLES, size)) for size in sizes]
    chances = 1.0 / np.arange(1, VOCABULARY + 1)
    lengths, weights = np.array(list(WORDS)), np.array(list(WORDS.values()), np.float64)
    texts: dict[str, None] = {}
    while len(texts) < count:
        length = int(draw.choice(lengths, p=weights / weights.sum()))
        chosen = draw.choice(VOCABULARY, length, p=chances / chances.sum())
        texts[" ".join(words[place] for place in chosen).capitalize() + "?"] = None
    return list(texts)


def make_folder(family: Family, texts: list[str], folder: Path) -> None:
    """A folder of sentence-transformers: random weights, a tokenizer and mean pooling."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    plain = folder / "plain"
    torch.manual_seed(SEED)
    config = getattr(transformers, family.config)(**family.settings)
    transformers.AutoModel.from_config(config).save_pretrained(plain)
    roles = {f"{role}_token": name for role, name in family.special.items()}
    has_types = getattr(config, "type_vocab_size", 0) > 1 or family.config == "BertConfig"
    inputs = ["input_ids", *(["token_type_ids"] if has_types else []), "attention_mask"]
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(family, texts),
        model_input_names=inputs,
        model_max_length=512,
        **roles,
    ).save_pretrained(plain)
    transformer = Transformer(str(plain), max_seq_length=512)
    modules = [transformer, Pooling(config.hidden_size, "mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "sentence"))


def made_folders(
    names: list[str], texts: list[str], device: str, kept: Path | None = None
) -> Iterator[tuple[str, Path]]:
    """Families and their folders; on a GPU all are made first, as its time is dear.

    kept: where folders stay and are found again
    """
    with tempfile.TemporaryDirectory() as place:
        folders = {name: (kept or Path(place)) / name for name in names}
        if device == "cuda" and kept is None:
            with ProcessPoolExecutor(len(names), get_context("spawn")) as pool:
                for made in [
                    pool.submit(make_folder, FAMILIES[name], texts, folder)
                    for name, folder in folders.items()
                ]:
                    made.result()
        for name, folder in folders.items():
            if not folder.exists():
                make_folder(FAMILIES[name], texts, folder)
            yield name, folder / "sentence"
            if kept is None:
                shutil.rmtree(folder)


def make_tokenizer(family: Family, texts: list[str]) -> Any:
    """Word pieces, byte-level BPE or Unigram, trained on the texts."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    special = list(family.special.values())
    options: dict[str, Any] = {"special_tokens": special, "show_progress": False}
    unknown = family.special["unk"]
    if family.pieces == "wordpiece":
        backend = Tokenizer(models.WordPiece(unk_token=unknown))
        backend.normalizer = normalizers.BertNormalizer()
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=16_000, **options)
    elif family.pieces == "bpe":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=16_000, initial_alphabet=alphabet, **options)
    else:
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        backend.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=8_000, unk_token=unknown, **options)
    backend.train_from_iterator(texts, trainer)
    cls, sep = family.special["cls"], family.special["sep"]
    second = f"{sep}:0 $B:0" if family.special is ANGLED else "$B:1"
    types = 0 if family.special is ANGLED else 1
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 {second} {sep}:{types}",
        special_tokens=[(name, backend.token_to_id(name)) for name in (cls, sep)],
    )
    return backend


Encode = Callable[[list[str]], Any]


def our_encoder(folder: Path, device: str, precision: Any) -> Encode:
    import tercet

    return tercet.load(folder, device=device, precision=precision).embed


def peer_encoder(folder: Path, device: str, dtype: str, batch: int) -> Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    options = {} if dtype == "float32" else {"model_kwargs": {"torch_dtype": getattr(torch, dtype)}}
    model = SentenceTransformer(str(folder), device=device, **options)
    return lambda texts: model.encode(
        texts, batch_size=batch, show_progress_bar=False, normalize_embeddings=True
    )


def seconds(encode: Encode, texts: list[str]) -> float:
    start = time.perf_counter()
    encode(texts)
    return time.perf_counter() - start


def measure(folder: Path, texts: list[str], *, device: str, precision: str) -> dict[str, Any]:
    """Medians of alternating runs; the peer's settings that are clearly slower run once."""
    import torch

    ours = our_encoder(folder, device, precision)
    exact = ours(texts[:WARM_UP])
    ours(texts)
    settings: dict[str, dict[str, Any]] = {}
    best: tuple[float, str, Encode] | None = None
    for dtype in PEER_TYPES[device, precision]:
        for batch in PEER_BATCHES[device]:
            peer = peer_encoder(folder, device, dtype, batch)
            cosines = (np.asarray(peer(texts[:WARM_UP]), np.float32) * exact).sum(axis=1)
            peer(texts[: 4 * batch])
            name = f"{dtype}, batch {batch}"
            once = seconds(peer, texts)
            settings[name] = {"seconds": once, "lowest_cosine": float(cosines.min())}
            if best is None or once < best[0]:
                best = once, name, peer
            del peer
            gc.collect()
            if device == "cuda":
                torch.cuda.empty_cache()
    assert best is not None
    _, name, peer = best
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(RUNS[device]):
        times["ours"].append(seconds(ours, texts))
        times["peer"].append(seconds(peer, texts))
    ours_median, peer_median = (statistics.median(times[side]) for side in ("ours", "peer"))
    return {
        "sentences": len(texts),
        "ours": len(texts) / ours_median,
        "peer": len(texts) / peer_median,
        "peer_setting": name,
        "ratio": peer_median / ours_median,
        "lowest_cosine": settings[name]["lowest_cosine"],
        "times": times,
        "peer_settings": settings,
    }


def token_count(folder: Path, texts: list[str]) -> float:
    import tercet

    model = tercet.load(folder, device="cpu")
    return float(model.tokenizer.encode(texts, max_tokens=512).lengths.mean())


def layer_count(folder: Path) -> int:
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(folder).num_hidden_layers)


def machine(device: str) -> dict[str, Any]:
    import torch

    known = {"processor": cpu(), "threads": torch.get_num_threads()}
    if device == "cuda":
        known["gpu"] = torch.cuda.get_device_name()
    return known


def commit() -> str:
    if "TERCET_COMMIT" in os.environ:
        return os.environ["TERCET_COMMIT"]
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def store(out: Path, family: str, result: dict[str, Any], *, device: str, precision: str) -> None:
    """Write a family's result beside those that are there."""
    document = json.loads(out.read_text("utf-8")) if out.is_file() else {}
    known = machine(device)
    where = known.get("gpu") or known["processor"]
    place = document.setdefault(f"{where}, {HOW[precision]}", {"families": {}})
    about = {"machine": known, "versions": {name: version(name) for name in PACKAGES}}
    place["families"][family] = {**result, "commit": commit(), **about}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="default: bf16 on a GPU")
    parser.add_argument("--sentences", type=int, help="default: 320 on a CPU, 16384 on a GPU")
    parser.add_argument("--folders", type=Path, help="keep the encoders here; default: nowhere")
    parser.add_argument("--make", action="store_true", help="only make the encoders")
    parser.add_argument("--out", type=Path, default=Path("results/encoders.json"))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.families if name not in FAMILIES]
    if unknown:
        sys.exit(f"Unknown family {unknown[0]!r}; known are {', '.join(FAMILIES)}.")
    device = arguments.device
    precision = arguments.precision or ("bf16" if device == "cuda" else "fp32")
    texts = make_texts(max(arguments.sentences or SENTENCES[device], 8_192))
    used = texts[: arguments.sentences or SENTENCES[device]]
    names = arguments.families or list(FAMILIES)
    folders = made_folders(names, texts[:8_192], device, arguments.folders)
    if arguments.make:
        print(*(folder for _, folder in folders), sep="\n")
        return
    print("| family | tokens per text | ours/s | peer/s | ratio | its best setting |")
    print("|---|---|---|---|---|---|", flush=True)
    for name, folder in folders:
        result = measure(folder, used, device=device, precision=precision)
        result["tokens_per_text"] = token_count(folder, used)
        result["layers"] = layer_count(folder)
        store(arguments.out, name, result, device=device, precision=precision)
        print(
            f"| {name} | {result['tokens_per_text']:.1f} | {result['ours']:.0f} | "
            f"{result['peer']:.0f} | {result['ratio']:.2f} | {result['peer_setting']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
