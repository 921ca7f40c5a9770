"""What the settings of a folder say of its tokenizer beside tokenizer.json, and override there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from tercet.errors import TercetError

# The classes of `transformers` that take all from tokenizer.json.
GENERIC = ("PreTrainedTokenizer", "TokenizersBackend")
_NORMALIZER_KEYS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def follow_settings(
    backend: Backend, settings: dict[str, Any], added: dict[str, Any], *, folder: Path
) -> None:
    """Change a tokenizer as `transformers` does after tokenizer.json or vocab.txt.

    settings: of tokenizer_config.json and special_tokens_map.json
    added: ids of added_tokens.json, which count only where the settings name no added tokens
    """
    kind = str(settings.get("tokenizer_class") or "").removesuffix("Fast")
    if isinstance(backend.normalizer, normalizers.BertNormalizer) and kind not in GENERIC:
        _set_normalizer(backend, settings)
    prefix, splitter = settings.get("add_prefix_space"), backend.pre_tokenizer
    is_roberta = kind == "RobertaTokenizer" and isinstance(splitter, pre_tokenizers.ByteLevel)
    if is_roberta and isinstance(prefix, bool):
        splitter.add_prefix_space = prefix
        backend.pre_tokenizer = splitter
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    for id_, token in sorted(_added_tokens(settings, added, folder).items()):
        if token.content not in known:
            _add(backend, token, id_, folder)


def _set_normalizer(backend: Backend, settings: dict[str, Any]) -> None:
    normalizer = backend.normalizer
    for key, name in _NORMALIZER_KEYS.items():
        # Without strip_accents, accents go where texts are lower-cased.
        is_usual = key == "strip_accents" and settings.get(key, "") is None
        if is_usual or isinstance(settings.get(key), bool):
            setattr(normalizer, name, settings[key])
    backend.normalizer = normalizer


def _added_tokens(
    settings: dict[str, Any], added: dict[str, Any], folder: Path
) -> dict[int, AddedToken]:
    try:
        if (decoder := settings.get("added_tokens_decoder")) is not None:
            return {int(id_): _token(**token) for id_, token in decoder.items()}
        if not added:
            return {}
        values = [value for key, value in settings.items() if key.endswith("_token")]
        values += settings.get("additional_special_tokens") or []
        named = {value["content"] if isinstance(value, dict) else value for value in values}
        return {
            int(id_): AddedToken(name, normalized=name not in named, special=name in named)
            for name, id_ in added.items()
        }
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise TercetError(f"The added tokens of {folder} cannot be read: {error}.") from error


def _token(content: str, **settings: Any) -> AddedToken:
    return AddedToken(content, **{name: settings[name] for name in _FLAGS if name in settings})


def _add(backend: Backend, token: AddedToken, id_: int, folder: Path) -> None:
    """Have a token matched as a whole; a new one gets the next id, which has to be its own."""
    is_new = backend.token_to_id(token.content) is None
    add = backend.add_special_tokens if token.special else backend.add_tokens
    add([token])
    given = backend.token_to_id(token.content)
    if is_new and given != id_:
        raise TercetError(
            f"{folder}: its settings give the added token {token.content!r} the id {id_}, and the "
            f"next free one is {given}; write the tokenizer again with transformers' "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
