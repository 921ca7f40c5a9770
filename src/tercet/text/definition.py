"""Reading the definition of a tokenizer from a folder: tokenizer.json, or the older vocab.txt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from tercet.errors import TercetError
from tercet.files import MOST_JSON, parse_json, refuse_pointer
from tercet.text.settings import follow_settings

ADDED_FILE = "added_tokens.json"
# Further files that `transformers` may read; they are copied to saved folders.
COMPANIONS = (
    *("tokenizer_config.json", "special_tokens_map.json", ADDED_FILE),
    *("vocab.txt", "vocab.json", "merges.txt"),
)
# Older forms of a tokenizer that are not read.
OLDER = ("spm.model", "sentencepiece.bpe.model", "spiece.model", "vocab.json")
# By role, used if the settings do not name a special token.
USUAL = {
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
    "unk": ("[UNK]", "<unk>"),
}


@dataclass(frozen=True, slots=True)
class Definition:
    """The backend, the special token of each role, and further files to save, by name."""

    backend: Backend
    special: dict[str, str]
    companions: dict[str, bytes]


def read_definition(folder: Path, *, is_saved: bool = False) -> Definition:
    """Read the tokenizer of a folder; its own truncation and padding are switched off.

    is_saved: whether `Tokenizer.save` wrote it: then tokenizer.json says all
    """
    companions = {name: _content(folder / name) for name in COMPANIONS if (folder / name).is_file()}
    settings = _settings(folder, companions)
    if (folder / "tokenizer.json").is_file():
        backend = _from_json(folder / "tokenizer.json")
        backend.no_truncation()
        backend.no_padding()
    elif "vocab.txt" in companions:
        backend = _from_vocabulary(folder / "vocab.txt", companions["vocab.txt"], settings)
        if "tokenizer_config.json" not in companions:
            companions["tokenizer_config.json"] = json.dumps(_bert_settings(backend)).encode()
    else:
        raise TercetError(_missing(folder))
    own = {name: content for name, content in companions.items() if _is_own(folder, name)}
    if not is_saved:
        added = _json_object(folder / ADDED_FILE, own.get(ADDED_FILE, b"{}"))
        follow_settings(backend, settings, added, folder=folder)
    return Definition(backend, _special(backend, settings), own)


def _content(path: Path) -> bytes:
    if path.stat().st_size > MOST_JSON:
        raise TercetError(f"{path} has more than {MOST_JSON:,} bytes; a tokenizer has fewer.")
    return path.read_bytes()


def _is_own(folder: Path, name: str) -> bool:
    """Whether a file is in the folder itself or in the hub's cache, whose folders hold links.

    A stranger's folder may link to any file of this machine, which must not be saved elsewhere.
    """
    file, here = (folder / name).resolve(), folder.resolve()
    blobs = here.parent.parent / "blobs"
    is_blob = here.parent.name == "snapshots" and file.is_relative_to(blobs)
    return is_blob or file.is_relative_to(here)


def _missing(folder: Path) -> str:
    older = next((name for name in OLDER if (folder / name).is_file()), None)
    if older is None:
        return f"{folder} has no tokenizer: neither tokenizer.json nor vocab.txt."
    return (
        f"{folder} has a tokenizer only as {older}, which is not read: write tokenizer.json with "
        "transformers' AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
    )


def _settings(folder: Path, companions: dict[str, bytes]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        settings |= _json_object(folder / name, companions.get(name, b"{}"))
    return settings


def _json_object(path: Path, content: bytes) -> dict[str, Any]:
    values: dict[str, Any] = {}
    try:
        values |= parse_json(content)
    except (ValueError, TypeError) as error:
        raise TercetError(f"{path} is not a JSON object: {error}.") from error
    return values


def _from_json(path: Path) -> Backend:
    content = _content(path)
    try:
        return _with_exact_scores(Backend.from_buffer(content), content)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the Rust side raises bare Exception, and panics
        refuse_pointer(path)
        raise TercetError(f"{path} is not a tokenizer definition: {error}.") from error


def _with_exact_scores(backend: Backend, content: bytes) -> Backend:
    """Unigram's scores as they are written: the Rust side reads some with an error in the last bit,
    which decides between pieces in different order, such as 0 11 1 and 0 1 11."""
    if isinstance(backend.model, models.Unigram):
        model = parse_json(content)["model"]
        vocabulary = [(piece, score) for piece, score in model["vocab"]]
        fallback = bool(model.get("byte_fallback"))
        backend.model = models.Unigram(vocabulary, model["unk_id"], fallback)
    return backend


def _from_vocabulary(path: Path, content: bytes, settings: dict[str, Any]) -> Backend:
    """The WordPiece tokenizer of a vocab.txt, one piece per line, as in BERT and MPNet."""
    try:
        # Not splitlines(): a piece may be a character that Unicode counts as a line end.
        lines = content.decode("utf-8").replace("\r\n", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise TercetError(f"{path} is not UTF-8 text: {error}.") from error
    vocabulary = {piece: index for index, piece in enumerate(lines)}
    names = {role: _name(role, vocabulary, settings) for role in USUAL}
    cls, sep, unknown = names["cls"], names["sep"], names["unk"]
    if cls is None or sep is None or unknown is None:
        raise TercetError(f"{path} must contain the tokens [CLS], [SEP] and [UNK], one per line.")
    backend = Backend(models.WordPiece(vocabulary, unk_token=unknown))
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens(
        [_added(role, name, settings) for role, name in names.items() if name]
    )
    ends = (sep, vocabulary[sep]), (cls, vocabulary[cls])
    backend.post_processor = (
        processors.RobertaProcessing(*ends, add_prefix_space=False)
        if str(settings.get("tokenizer_class", "")).startswith("MPNet")
        else processors.BertProcessing(*ends)
    )
    return backend


def _name(role: str, vocabulary: dict[str, int], settings: dict[str, Any]) -> str | None:
    """The token of a role: from the settings, else a usual one, if it exists."""
    token = settings.get(f"{role}_token")
    chosen = token.get("content") if isinstance(token, dict) else token
    names = (chosen, *USUAL[role]) if isinstance(chosen, str) else USUAL[role]
    return next((name for name in names if name in vocabulary), None)


def _added(role: str, name: str, settings: dict[str, Any]) -> AddedToken:
    token = settings.get(f"{role}_token")
    strips = isinstance(token, dict) and bool(token.get("lstrip"))
    return AddedToken(name, lstrip=strips, normalized=False, special=True)


def _special(backend: Backend, settings: dict[str, Any]) -> dict[str, str]:
    vocabulary = backend.get_vocab(with_added_tokens=True)
    # The model's own unknown token takes precedence over the settings.
    unknown = getattr(backend.model, "unk_token", None)
    chosen = settings | ({"unk_token": unknown} if unknown else {})
    names = {role: _name(role, vocabulary, chosen) for role in USUAL}
    return {role: name for role, name in names.items() if name is not None}


def _bert_settings(backend: Backend) -> dict[str, Any]:
    names = {f"{role}_token": name for role, name in _special(backend, {}).items()}
    return {"tokenizer_class": "BertTokenizer", "do_lower_case": True} | names
