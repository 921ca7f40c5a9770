"""The model folder: the legacy sentence-transformers format, with the heads of Tercet.

modules.json, sentence_bert_config.json, config_sentence_transformers.json, 1_Pooling/, the encoder
and the tokenizer are read by `sentence-transformers` and `transformers`, old and new;
heads.safetensors, tercet.json and seen.safetensors only by Tercet. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError
from safetensors import SafetensorError

import tercet
from tercet.data.sketch import Sketch
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.files import read_json_object, replace_folder, write_json, write_text
from tercet.folders.model_card import ModelInfo, model_card
from tercet.folders.seen_file import write_seen
from tercet.specs import HEADS, OBJECTIVES
from tercet.text.tokenizer import Tokenizer

# Torch is imported where it is needed: ONNX folders are read and written without it.
if TYPE_CHECKING:
    from torch import Tensor, dtype

    from tercet.network.network import Network
    from tercet.nn.encoder import Encoder

FORMAT = 1
INFO_FILE = "tercet.json"
HEADS_FILE = "heads.safetensors"
MODULES_FILE = "modules.json"
TRANSFORMER_FILE = "sentence_bert_config.json"


class Parts(NamedTuple):
    """The parts of a model."""

    network: Network
    tokenizer: Tokenizer
    info: ModelInfo


def is_model_folder(folder: Path) -> bool:
    return (folder / INFO_FILE).is_file()


def save_model_folder(
    folder: Path,
    parts: Parts,
    *,
    types: Mapping[str, dtype] | None = None,
    sketch: Sketch | None = None,
) -> None:
    """Write a model folder; an older model folder of that name is replaced.

    types: from `stored_types`, for tensors that came from a folder; others are stored as float32
    sketch: of the rows that the model was trained on, if they were recorded
    """
    from tercet.nn.folder import as_types, save_encoder, save_tensors

    network, tokenizer, info = parts
    types = types or {}
    with replace_model_folder(folder) as writing:
        save_encoder(network.encoder, writing, types=types)
        tokenizer.save(writing)
        heads = {name: _stored(tensor) for name, tensor in network.head_state().items()}
        save_tensors(as_types(heads, types), writing / HEADS_FILE)
        write_info(writing / INFO_FILE, info)
        _write_modules(writing, network, info)
        write_seen(writing, sketch)
        write_text(writing / "README.md", model_card(info, config=network.encoder.config))


def load_model_folder(folder: Path, *, layers: int | None = None) -> Parts:
    """Read a model folder that `save_model_folder` wrote; the network is on the CPU.

    layers: of one of its depths, which alone is read; default: all depths
    """
    from tercet.network.network import Network
    from tercet.nn.folder import load_encoder

    info = read_info(folder / INFO_FILE)
    full = _check_depths(folder, info, layers)
    info = info if layers is None else info.at(layers)
    tokenizer = Tokenizer.load(folder, is_saved=True)
    encoder = load_encoder(folder, dropout=None, attention_dropout=None, layers=layers)
    tokenizer.check_fits(encoder.config.vocabulary, token_types=encoder.config.token_types)
    check_max_tokens(folder, info, most=encoder.config.max_tokens)
    if info.pooling == "pooler" and encoder.pooler is None:
        raise TercetError(f"{folder}: `pooling` is pooler, but the encoder has no pooler.")
    heads = _read_heads(folder / HEADS_FILE, layers=layers, full=full)
    if layers not in (None, full) and info.pooling == "pooler":
        _set_pooler(folder / HEADS_FILE, encoder, heads)
    _check_sizes(folder / INFO_FILE, info, heads)
    _check_shapes(folder / HEADS_FILE, info, encoder, heads)
    network = Network(encoder, pooling=info.pooling, tasks=info.tasks, depths=info.tasks_by_depth())
    network.load_head_state(heads)
    return Parts(network.eval(), tokenizer, info)


def _check_depths(folder: Path, info: ModelInfo, layers: int | None) -> int:
    """The number of layers of the full depth; raises where a depth is not there."""
    from tercet.nn.config import read_config

    full = read_config(folder).layers
    depths = [*(info.depths or ()), full]
    if beyond := [depth for depth in depths[:-1] if depth >= full]:
        raise TercetError(
            f"{folder / INFO_FILE}: `depths` has {beyond[0]}, but the encoder has {full} layers."
        )
    if layers is not None and layers not in depths:
        raise untrained_depth(folder, layers, depths)
    return full


def untrained_depth(folder: Path, layers: int, depths: Sequence[int]) -> ArgumentError:
    """The error for a number of layers after which a model was not trained to answer."""
    *others, last = map(str, sorted(depths))
    trained = f"{', '.join(others)} and {last}" if others else last
    return ArgumentError(
        f"{folder}: was not trained to answer after {layers} layers; it answers after {trained}.",
        "layers",
    )


def _set_pooler(path: Path, encoder: Encoder, heads: dict[str, Tensor]) -> None:
    """Move the pooler of a lesser depth from what was read into the encoder."""
    pooler = encoder.pooler
    assert pooler is not None
    for name, parameter in pooler.named_parameters():
        tensor = heads.pop(f"pooler/{name}", None)
        if tensor is None or tensor.shape != parameter.shape:
            raise TercetError(f"{path}: lacks the pooler of {encoder.config.layers} layers.")
        parameter.data = tensor.float()


def stored_types(folder: Path) -> dict[str, dtype]:
    """The types of the tensors in a model folder, by their names in its files."""
    from safetensors.torch import load_file

    from tercet.nn.folder import WEIGHTS_FILE

    files = (folder / WEIGHTS_FILE, folder / HEADS_FILE)
    return {name: tensor.dtype for file in files for name, tensor in load_file(file).items()}


def check_max_tokens(folder: Path, info: ModelInfo, *, most: int) -> None:
    """Raise if the folder allows longer rows than the encoder."""
    if info.max_tokens > most:
        raise TercetError(
            f"{folder / INFO_FILE}: `max_tokens` is {info.max_tokens}, but the encoder takes "
            f"at most {most}."
        )


@contextmanager
def replace_model_folder(folder: Path) -> Iterator[Path]:
    """`replace_folder`, for a new folder, an empty one or an older model folder."""
    if folder.exists() and not folder.is_dir():
        raise TercetError(f"{folder}: is a file; a model is written to a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not is_model_folder(folder):
        raise TercetError(
            f"{folder}: holds other files and is not a model folder, so it is not overwritten; "
            "use a new or an empty folder."
        )
    try:
        with replace_folder(folder) as writing:
            yield writing
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TercetError(f"{folder}: cannot be written: {reason}.") from error


def update_info(folder: Path, **changes: Any) -> None:
    """Change some keys of the metadata of a model folder, and its card."""
    from tercet.nn.config import read_config

    info = read_info(folder / INFO_FILE).model_copy(update=changes)
    write_info(folder / INFO_FILE, info)
    write_text(folder / "README.md", model_card(info, config=read_config(folder)))


def write_info(path: Path, info: ModelInfo) -> None:
    """Write the file that `read_info` reads."""
    described: dict[str, Any] = {"format": FORMAT, "tercet": tercet.__version__}
    described |= info.model_dump(mode="json", exclude_none=True)
    if info.metrics is not None:
        described["metrics"] = info.metrics  # None means undefined here
    for depth, known in (info.depths or {}).items():
        described["depths"][str(depth)]["metrics"] = known.metrics
    if info.plugins:
        described["plugins"] = info.plugins
    write_json(path, described)


def _write_modules(folder: Path, network: Network, info: ModelInfo) -> None:
    width = network.encoder.config.width
    # sentence-transformers has no pooler: it gets a dense layer with tanh on cls.
    has_pooler = info.pooling == "pooler"
    pooling = "cls" if has_pooler else info.pooling
    kinds = ["Transformer", "Pooling", *(["Dense"] if has_pooler else []), "Normalize"]
    paths = ["", *(f"{place}_{kind}" for place, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / MODULES_FILE, modules)
    limits = {"max_seq_length": info.max_tokens, "do_lower_case": info.lower_case}
    write_json(folder / TRANSFORMER_FILE, limits)
    # The release of this format: readers warn about folders that are newer than themselves.
    versions = {"sentence_transformers": "2.0.0", "transformers": "4.6.1", "pytorch": "1.8.1"}
    write_json(
        folder / "config_sentence_transformers.json",
        {"__version__": versions, "similarity_fn_name": "cosine"},
    )
    (folder / "1_Pooling").mkdir()
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    settings: dict[str, Any] = {"word_embedding_dimension": width}
    settings |= {f"pooling_mode_{key}": pooling == mode for key, mode in modes.items()}
    settings["pooling_mode_mean_sqrt_len_tokens"] = False
    write_json(folder / "1_Pooling" / "config.json", settings)
    if has_pooler:
        _write_pooler(folder / "2_Dense", network, width=width)


def _write_pooler(folder: Path, network: Network, *, width: int) -> None:
    from tercet.nn.folder import save_tensors

    pooler = network.encoder.pooler
    assert pooler is not None
    folder.mkdir()
    write_json(
        folder / "config.json",
        {
            "in_features": width,
            "out_features": width,
            "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh",
        },
    )
    weights = {f"linear.{name}": _stored(part) for name, part in pooler.dense.named_parameters()}
    save_tensors(weights, folder / "model.safetensors")


def _stored(tensor: Tensor) -> Tensor:
    return tensor.detach().float().cpu().contiguous()


def read_info(path: Path) -> ModelInfo:
    """The metadata of a model folder."""
    content = read_json_object(path)
    version = content.pop("format", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise TercetError(f"{path}: `format` is {version!r}; it should be a whole number from 1.")
    if version > FORMAT:
        raise TercetError(
            f"{path}: has format {version}, and this release of Tercet reads up to {FORMAT}; "
            "upgrade Tercet."
        )
    content.pop("tercet", None)
    _check_plugins(path, content.pop("plugins", None) or {})
    try:
        return ModelInfo.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise TercetError(f"{path}: `{key}`: {message}.") from error


def _check_plugins(path: Path, plugins: Mapping[str, str]) -> None:
    """Raise unless the parts of users' own that a model needs are registered."""
    registries = {registry.sort: registry for registry in (HEADS, OBJECTIVES)}
    for part, file in plugins.items():
        sort, _, kind = part.partition(" ")
        if sort not in registries or kind not in registries[sort]:
            raise TercetError(
                f"{path}: the model uses the {sort} `{kind}` of the plugin {file}, which is not "
                "loaded; model folders never import code, so load that plugin first."
            )


def _read_heads(path: Path, *, layers: int | None, full: int) -> dict[str, Tensor]:
    """The tensors of all depths, or of one, without what their names begin with there."""
    from safetensors import safe_open

    from tercet.network.network import DEPTHS, depth_prefix
    from tercet.nn.folder import check_finite

    own = "" if layers in (None, full) else depth_prefix(layers)
    try:
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(own)]  # noqa: SIM118
            if layers == full:
                names = [name for name in names if not name.startswith(DEPTHS)]
            stored = {name.removeprefix(own): file.get_tensor(name) for name in names}
    except FileNotFoundError as error:
        raise TercetError(f"{path}: is missing from this model folder.") from error
    except (SafetensorError, OSError) as error:
        raise TercetError(f"{path}: cannot be read as safetensors: {error}.") from error
    check_finite(stored, path)
    return stored


def _check_sizes(path: Path, info: ModelInfo, heads: Mapping[str, Tensor]) -> None:
    """Raise if the metadata describes more than heads.safetensors holds, before it is made."""
    most = sum(tensor.numel() for tensor in heads.values())
    by_depth = [info.tasks, *info.tasks_by_depth().values()]
    for name, task in (each for tasks in by_depth for each in tasks.items()):
        blocks = [task.side, *(p for m in task.modes.values() for p in (m.head, m.shared))]
        for key, value in (pair for block in blocks if block for pair in dict(block).items()):
            counts = [n for n in _listed(value) if isinstance(n, int) and not isinstance(n, bool)]
            if max(counts, default=0) > (len(heads) if key == "layers" else most):
                raise TercetError(
                    f"{path}: `{key}` of task `{name}` is {shorten(str(value))}, which is more "
                    f"than {HEADS_FILE} holds."
                )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_shapes(
    path: Path, info: ModelInfo, encoder: Encoder, heads: Mapping[str, Tensor]
) -> None:
    """Raise unless the tensors of heads.safetensors are those that the metadata describes."""
    import torch

    from tercet.network.network import Network
    from tercet.nn.folder import Unfilled

    # Without memory: what the metadata describes may be of any size.
    with torch.device("meta"), Unfilled():
        network = Network(
            encoder, pooling=info.pooling, tasks=info.tasks, depths=info.tasks_by_depth()
        )
    wanted = network.head_state()
    if differing := sorted(heads.keys() ^ wanted.keys()):
        name = differing[0]
        wrong = "is missing" if name in wanted else f"belongs to no head of {INFO_FILE}"
        raise TercetError(f"{path}: tensor {name!r} {wrong}.")
    for name, tensor in wanted.items():
        if heads[name].shape != tensor.shape:
            raise TercetError(
                f"{path}: tensor {name!r} has shape {list(heads[name].shape)}; {INFO_FILE} "
                f"requires {list(tensor.shape)}."
            )
